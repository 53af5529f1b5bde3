"""Query Blob Contents: rows and columns of a blob."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import DelimitedJsonDialect, DelimitedTextDialect

PEOPLE = b"name,age\nAda,36\nBob,7\n\"C, D\",70\n"
HEADED = DelimitedTextDialect(has_header=True)
PLAIN = DelimitedTextDialect()


def test_rows_and_columns(blob):
    blob.upload_blob(PEOPLE)
    found = blob.query_blob("SELECT name FROM BlobStorage WHERE age > 30", blob_format=HEADED, output_format=PLAIN)
    assert found.readall() == b'Ada\n"C, D"\n'
    found = blob.query_blob("SELECT SUM(age) FROM BlobStorage", blob_format=HEADED, output_format=DelimitedJsonDialect())
    assert found.readall() == b'{"_1":113}\n'


def test_a_large_blob(blob):
    blob.upload_blob(b"".join(b"%d,%d\n" % (n, n % 10) for n in range(500_000)))
    found = blob.query_blob("SELECT _1 FROM BlobStorage WHERE _2 = 3")
    assert len(found.readall().split()) == 50_000
    assert len(found) == blob.get_blob_properties().size


def test_what_is_wrong_with_a_record_is_told(blob):
    blob.upload_blob(b"1,2\n3\n4,5\n")
    errors = []
    found = blob.query_blob("SELECT _2 FROM BlobStorage", on_error=errors.append)
    assert found.readall() == b"2\n5\n"
    assert [(error.error, error.is_fatal) for error in errors] == [("InvalidColumnOrdinal", False)]


def test_what_is_no_query_is_refused(blob):
    blob.upload_blob(PEOPLE)
    with pytest.raises(HttpResponseError) as refused:
        blob.query_blob("DROP TABLE BlobStorage")
    assert refused.value.status_code == 400
