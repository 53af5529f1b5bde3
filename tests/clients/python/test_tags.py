"""Index tags: what a blob is found by."""

from harness import refused


def test_tags_come_with_a_blob_or_later(blob):
    blob.upload_blob(b"x", tags={"colour": "dark red", "n": "1"})
    assert blob.get_blob_tags() == {"colour": "dark red", "n": "1"}
    etag = blob.get_blob_properties().etag
    blob.set_blob_tags({"n": "2"})
    properties = blob.get_blob_properties()
    assert (properties.etag, properties.tag_count) == (etag, 1)
    assert blob.get_blob_tags() == {"n": "2"}
    blob.set_blob_tags({})
    assert blob.get_blob_tags() == {}


def test_a_condition_on_tags(blob):
    blob.upload_blob(b"x", tags={"state": "new"})
    with refused(412, "ConditionNotMet"):
        blob.upload_blob(b"y", overwrite=True, if_tags_match_condition="\"state\"='done'")
    with refused(412, "ConditionNotMet"):
        blob.download_blob(if_tags_match_condition="\"state\"='done'")
    blob.set_blob_tags({"state": "done"}, if_tags_match_condition="\"state\"='new'")
    assert blob.download_blob(if_tags_match_condition="\"state\"='done' OR \"state\"='new'").readall() == b"x"


def test_blobs_are_found_by_their_tags(container):
    for n in range(7):
        container.upload_blob(f"blob{n}", b"x", tags={"n": str(n), "parity": str(n % 2)})
    where = "\"parity\"='1' AND \"n\">='3'"
    pages = list(container.find_blobs_by_tags(where, results_per_page=1).by_page())
    found = [blob for page in pages for blob in page]
    assert [blob.name for blob in found] == ["blob3", "blob5"]
    assert found[0].tags == {"n": "3", "parity": "1"}
    listed = {blob.name: blob.tags for blob in container.list_blobs(include=["tags"])}
    assert listed["blob4"] == {"n": "4", "parity": "0"}
    container.delete_blob("blob3")
    assert [blob.name for blob in container.find_blobs_by_tags(where)] == ["blob5"]
