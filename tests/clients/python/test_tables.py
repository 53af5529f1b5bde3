"""Tables and entities through the azure-data-tables client."""

import uuid
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_table_sas,
)

from harness import ACCOUNT, KEY


@pytest.fixture
def table(server):
    return server.tables().create_table("people")


@contextmanager
def refused(status, code):
    """The block must fail with exactly this status and error code. Not every error of this client has one of its own."""
    with pytest.raises(HttpResponseError) as caught:
        yield
    said = caught.value.response.headers["x-ms-error-code"]
    assert (caught.value.status_code, said) == (status, code), caught.value.message


def person(row, **more):
    return {"PartitionKey": "all", "RowKey": str(row), **more}


def test_tables_come_and_go(server):
    tables = server.tables()
    for name in ("Beta", "alpha", "gamma"):
        tables.create_table(name)
    with refused(409, "TableAlreadyExists"):
        tables.create_table("ALPHA")
    assert [table.name for table in tables.list_tables(results_per_page=2)] == ["alpha", "Beta", "gamma"]
    assert [table.name for table in tables.query_tables("TableName eq 'Beta'")] == ["Beta"]
    tables.delete_table("beta")
    assert [table.name for table in tables.list_tables()] == ["alpha", "gamma"]


def test_every_type_there_and_back(table):
    entity = person(
        "ä 'quoted' 😀",
        text="line\nbreak \"quoted\" 日本語",
        number=-(2**31),
        big=EntityProperty(2**63 - 1, EdmType.INT64),
        whole=5.0,
        tiny=5e-324,
        infinite=float("-inf"),
        yes=True,
        when=datetime(2008, 7, 10, 10, 20, 30, 123456, tzinfo=timezone.utc),
        id=uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
        raw=bytes(range(256)),
    )
    table.create_entity(entity)
    found = table.get_entity("all", entity["RowKey"])
    assert dict(found) == entity
    assert isinstance(found["whole"], float)


def test_optimistic_concurrency(table):
    table.create_entity(person(1, count=0))
    first = table.get_entity("all", "1")
    condition = {"etag": first.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
    told = table.update_entity(person(1, count=1), mode=UpdateMode.MERGE, **condition)
    assert told["etag"] != first.metadata["etag"]
    for change in (
        lambda: table.update_entity(person(1, count=2), mode=UpdateMode.REPLACE, **condition),
        lambda: table.delete_entity(first, **condition),
    ):
        with refused(412, "UpdateConditionNotSatisfied"):
            change()
    with refused(404, "ResourceNotFound"):
        table.update_entity(person(2), mode=UpdateMode.REPLACE)
    table.upsert_entity(person(2, a=1), mode=UpdateMode.REPLACE)
    table.upsert_entity(person(2, b=2), mode=UpdateMode.MERGE)
    assert (table.get_entity("all", "2")["a"], table.get_entity("all", "2")["b"]) == (1, 2)
    with refused(409, "EntityAlreadyExists"):
        table.create_entity(person(1))


def test_queries(table):
    for start in range(0, 1_200, 100):
        rows = range(start, start + 100)
        table.submit_transaction([("create", person(f"{row:04}", n=row, even=row % 2 == 0)) for row in rows])
    pages = [list(page) for page in table.list_entities().by_page()]
    assert [len(page) for page in pages] == [1_000, 200]
    wanted = table.query_entities("RowKey ge @low and RowKey lt @high", parameters={"low": "0500", "high": "0510"})
    assert [entity["n"] for entity in wanted] == list(range(500, 510))
    assert len(list(table.query_entities("even and n lt 10"))) == 5
    selected = next(table.query_entities("RowKey eq '0007'", select=["n"]))
    assert dict(selected) == {"n": 7}
    with refused(400, "InvalidInput"):
        list(table.query_entities("n eq"))
    with refused(501, "NotImplemented"):
        list(table.query_entities("startswith(RowKey,'0')"))


def test_a_transaction_is_all_or_nothing(table):
    table.create_entity(person("there"))
    operations = [("upsert", person(1)), ("upsert", person(2)), ("create", person("there")), ("upsert", person(3))]
    with pytest.raises(TableTransactionError) as failed:
        table.submit_transaction(operations)
    assert (failed.value.index, failed.value.error_code) == (2, "EntityAlreadyExists")
    assert [entity["RowKey"] for entity in table.list_entities()] == ["there"]
    operations[2] = ("delete", person("there"))
    told = table.submit_transaction(operations)
    assert len(told) == 4 and len({part.get("etag") for part in told}) == 4
    assert [entity["RowKey"] for entity in table.list_entities()] == ["1", "2", "3"]


def test_what_was_acknowledged_survives_kill_9(server, table):
    table.submit_transaction([("create", person(row, n=row)) for row in range(100)])
    etag = table.upsert_entity(person(7, n=700))["etag"]
    server.kill9()
    server.restart()
    table = server.tables().get_table_client("people")
    assert len(list(table.list_entities())) == 100
    found = table.get_entity("all", "7")
    assert (found["n"], found.metadata["etag"]) == (700, etag)


def test_a_signature_reaches_as_far_as_it_says(server, table):
    for partition in ("a", "b", "c"):
        table.create_entity({"PartitionKey": partition, "RowKey": "1"})
    signature = generate_table_sas(
        AzureNamedKeyCredential(ACCOUNT, KEY),
        "people",
        permission="ra",
        expiry=datetime.now(timezone.utc) + timedelta(hours=1),
        start_pk="b",
        end_pk="b",
    )
    limited = TableServiceClient(server.table_url, credential=AzureSasCredential(signature), **server.settings)
    limited = limited.get_table_client("people")
    assert [entity["PartitionKey"] for entity in limited.list_entities()] == ["b"]
    limited.create_entity({"PartitionKey": "b", "RowKey": "2"})
    with refused(403, "AuthorizationFailure"):
        limited.create_entity({"PartitionKey": "c", "RowKey": "2"})
    with refused(403, "AuthorizationPermissionMismatch"):
        limited.delete_entity("b", "1")
