"""Every kind of credential over https: what it opens, what it does not, and how each refusal is called."""

import base64
import itertools
import json
import subprocess
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl, urlencode

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.blob import (
    AccessPolicy, AccountSasPermissions, BlobBlock, BlobClient, BlobSasPermissions, BlobServiceClient, ContainerClient,
    ContainerSasPermissions, ResourceTypes, Services, UserDelegationKey, generate_account_sas, generate_blob_sas,
    generate_container_sas,
)
from azure.storage.queue import QueueServiceClient, generate_queue_sas

from harness import ACCOUNT, DIRECT, KEY, Server, binary, refused

HOUR = timedelta(hours=1)
NOW = datetime.now(timezone.utc).replace(microsecond=0)
PAST, SOON = NOW - HOUR, NOW + HOUR
TENANT = "11111111-1111-1111-1111-111111111111"
PERSON = "22222222-2222-2222-2222-222222222222"


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """One server for all tests here that neither stop it nor move its time."""
    server = Server(tmp_path_factory.mktemp("secure") / "data", "--tls", "auto", "--oauth", "basic").start()
    assert server.blob_url.startswith("https://")
    yield server
    assert server.stop() == 0, server.log.read_text()


@pytest.fixture
def box(secure, numbers=itertools.count()):
    """A container of the test's own with a blob "b" in it."""
    box = secure.service().create_container(f"box{next(numbers)}")
    box.upload_blob("b", b"content")
    return box


@pytest.fixture
def serve(tmp_path):
    """Starts a server with these options for this test alone, and ends it."""
    server = Server(tmp_path / "data")

    def start(*options):
        server.options = options
        return server.start()

    yield start
    assert server.stop() == 0, server.log.read_text()


# Makers of credentials.


class Bearer:
    """Says who somebody is, signed by nobody: `--oauth basic` looks at the claims only."""

    def __init__(self, **claims):
        now = int(time.time())
        self.claims = {
            "aud": "https://storage.azure.com", "iss": f"https://sts.windows.net/{TENANT}/", "iat": now, "nbf": now - 60,
            "exp": now + 3600, "oid": PERSON, "tid": TENANT, **claims,
        }

    @property
    def token(self):
        parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, self.claims)]
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (*parts, b"nobody"))

    def get_token(self, *scopes, **_):
        # The client must not think that the token is over: the server shall say so.
        return AccessToken(self.token, int(time.time()) + 3600)


def account_sas(permission="rwdlac", types=ResourceTypes(True, True, True), expiry=SOON, **more):
    return generate_account_sas(ACCOUNT, KEY, types, AccountSasPermissions.from_string(permission), expiry, **more)


def container_sas(name, permission="rwdlac", expiry=SOON, key=KEY, **more):
    if isinstance(key, UserDelegationKey):
        more["user_delegation_key"] = key
    else:
        more["account_key"] = key
    if permission:
        more.update(permission=ContainerSasPermissions.from_string(permission), expiry=expiry)
    return generate_container_sas(ACCOUNT, name, **more)


def blob_sas(name, blob="b", permission="r", expiry=SOON, key=KEY, **more):
    if isinstance(key, UserDelegationKey):
        more["user_delegation_key"] = key
    else:
        more["account_key"] = key
    return generate_blob_sas(
        ACCOUNT, name, blob, permission=BlobSasPermissions.from_string(permission), expiry=expiry, **more
    )


def service(server, credential):
    return BlobServiceClient(server.blob_url, credential=credential, **server.settings)


def blob_of(server, box, credential, name="b", **more):
    return service(server, credential).get_blob_client(box.container_name, name, **more)


def delegation_key(server, start=PAST, expiry=SOON):
    return service(server, Bearer()).get_user_delegation_key(start, expiry)


def set_policy(box, permission, expiry=SOON):
    policy = AccessPolicy(permission=ContainerSasPermissions.from_string(permission), start=PAST, expiry=expiry)
    box.set_container_access_policy({"policy": policy})


def policy_sas(server, box):
    set_policy(box, "rwdlac")
    return service(server, container_sas(box.container_name, None, policy_id="policy"))


CREDENTIALS = {
    "key": lambda server, box: service(server, {"account_name": ACCOUNT, "account_key": KEY}),
    "named key": lambda server, box: service(server, AzureNamedKeyCredential(ACCOUNT, KEY)),
    "connection string": lambda server, box: server.service(),
    "connection string with a signature": lambda server, box: BlobServiceClient.from_connection_string(
        f"BlobEndpoint={server.blob_url};SharedAccessSignature={account_sas()};", **server.settings
    ),
    "account signature": lambda server, box: service(server, account_sas()),
    "account signature as a credential": lambda server, box: service(server, AzureSasCredential(account_sas())),
    "account signature for https": lambda server, box: service(server, account_sas(protocol="https")),
    "service signature": lambda server, box: service(server, container_sas(box.container_name)),
    "service signature for this address": lambda server, box: service(
        server, container_sas(box.container_name, ip="127.0.0.1-127.0.0.9", start=PAST)
    ),
    "policy signature": policy_sas,
    "user delegation signature": lambda server, box: service(
        server, container_sas(box.container_name, key=delegation_key(server))
    ),
    "bearer": lambda server, box: service(server, Bearer()),
}


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_it_opens(secure, box, kind):
    mine = CREDENTIALS[kind](secure, box).get_container_client(box.container_name)
    blob = mine.upload_blob("dir/ä b+c.txt", b"one", metadata={"colour": "blue"})
    blob.upload_blob(b"another", overwrite=True)
    assert blob.download_blob(offset=2, length=3).readall() == b"oth"
    assert blob.get_blob_properties().size == 7
    assert [found.name for found in mine.list_blobs()] == ["b", "dir/ä b+c.txt"]
    blob.delete_blob()
    assert not blob.exists()
    assert box.download_blob("b").readall() == b"content"


def test_a_token_reads_and_sets_policies_and_asks_for_the_account(secure, box):
    mine = service(secure, Bearer()).get_container_client(box.container_name)
    mine.set_container_access_policy({"policy": AccessPolicy(permission="r", expiry=SOON)})
    assert [policy.id for policy in mine.get_container_access_policy()["signed_identifiers"]] == ["policy"]
    assert mine.get_account_information()["account_kind"] == box.get_account_information()["account_kind"]


def test_a_token_opens_the_source_of_a_copy(secure, box):
    """For each operation that takes bytes from a URL; what the token does not open is not taken."""
    url = box.get_blob_client("b").url
    good, late = (f"Bearer {bearer.token}" for bearer in (Bearer(), Bearer(exp=int(time.time()) - 600)))
    box.upload_blob("pages", bytes(512), blob_type="PageBlob")
    box.upload_blob("source", b"p" * 512)
    pages = box.get_blob_client("source").url
    append = box.get_blob_client("append")
    append.create_append_blob()
    takers = [
        lambda token: box.get_blob_client("copied").start_copy_from_url(url, requires_sync=True, source_authorization=token),
        lambda token: box.get_blob_client("made").upload_blob_from_url(url, source_authorization=token, overwrite=True),
        lambda token: box.get_blob_client("listed").stage_block_from_url("AAAA", url, source_authorization=token),
        lambda token: append.append_block_from_url(url, source_authorization=token),
        lambda token: box.get_blob_client("pages").upload_pages_from_url(
            pages, offset=0, length=512, source_offset=0, source_authorization=token
        ),
    ]
    for take in takers:
        with refused(401, "CannotVerifyCopySource"):
            take(late)
        with refused(401, "CannotVerifyCopySource"):
            take(None)
        with refused(400, "InvalidHeaderValue"):
            take("Basic abc")
        take(good)
    box.get_blob_client("listed").commit_block_list([BlobBlock("AAAA")])
    for name in ("copied", "made", "listed", "append"):
        assert box.download_blob(name).readall() == b"content"
    assert box.download_blob("pages").readall() == b"p" * 512


def test_a_token_opens_every_part_of_a_batch(secure, box):
    mine = service(secure, Bearer()).get_container_client(box.container_name)
    for name in ("x", "y"):
        mine.upload_blob(name, b"")
    assert [answer.status_code for answer in mine.delete_blobs("x", "y")] == [202, 202]
    assert [found.name for found in mine.list_blobs()] == ["b"]


@pytest.mark.parametrize("delegated", [False, True], ids=["key", "user delegation"])
def test_a_signature_for_a_blob_opens_that_blob(secure, box, delegated):
    key = delegation_key(secure) if delegated else KEY
    box.upload_blob("other", b"x")
    token = blob_sas(box.container_name, permission="rw", key=key)
    mine = BlobClient.from_blob_url(f"{box.url}/b?{token}", **secure.settings)
    mine.upload_blob(b"changed", overwrite=True)
    assert mine.download_blob().readall() == b"changed"
    with refused(403, "AuthorizationPermissionMismatch"):
        mine.delete_blob()
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        blob_of(secure, box, token, "other").download_blob()
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        list(service(secure, token).get_container_client(box.container_name).list_blobs())


@pytest.mark.parametrize("delegated", [False, True], ids=["key", "user delegation"])
def test_a_signature_for_a_snapshot_opens_that_snapshot(secure, box, delegated):
    key = delegation_key(secure) if delegated else KEY
    blob = box.get_blob_client("b")
    first, second = (blob.create_snapshot()["snapshot"] for _ in range(2))
    blob.upload_blob(b"changed", overwrite=True)
    token = blob_sas(box.container_name, key=key, snapshot=first)
    assert blob_of(secure, box, token, snapshot=first).download_blob().readall() == b"content"
    for other in (second, None):
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            blob_of(secure, box, token, snapshot=other).download_blob()


def test_a_service_signature_is_for_blobs_not_for_containers(secure, box):
    mine = service(secure, container_sas(box.container_name)).get_container_client(box.container_name)
    for attempt in (mine.delete_container, mine.get_container_access_policy, lambda: mine.set_container_metadata({"a": "b"})):
        with refused(403, "AuthorizationFailure"):
            attempt()
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        list(service(secure, container_sas(box.container_name)).list_containers())
    assert box.exists()


def test_any_signature_tells_what_kind_of_account_it_is(secure, box):
    expected = {"sku_name": "Standard_RAGRS", "account_kind": "StorageV2"}
    name = box.container_name
    by_account = service(secure, account_sas("w"))
    for asked in (by_account, by_account.get_container_client(name), by_account.get_blob_client(name, "b")):
        assert expected.items() <= asked.get_account_information().items()
    # Whatever else they allow: a letter is not needed.
    for signature in (container_sas(name, "w"), container_sas(name, "d", key=delegation_key(secure))):
        by_container = service(secure, signature).get_container_client(name)
        assert expected.items() <= by_container.get_account_information().items()
        assert expected.items() <= by_container.get_blob_client("b").get_account_information().items()
    by_blob = blob_of(secure, box, blob_sas(name, permission="w"))
    assert expected.items() <= by_blob.get_account_information().items()
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        blob_of(secure, box, blob_sas(name, permission="w", expiry=PAST)).get_account_information()


def test_a_policy_decides_from_the_next_request_on(secure, box):
    set_policy(box, "r")
    token = container_sas(box.container_name, None, policy_id="policy")
    mine = blob_of(secure, box, token)
    assert mine.download_blob().readall() == b"content"
    with refused(403, "AuthorizationPermissionMismatch"):
        mine.upload_blob(b"x", overwrite=True)
    set_policy(box, "w")
    mine.upload_blob(b"changed", overwrite=True)
    with refused(403, "AuthorizationPermissionMismatch"):
        mine.download_blob()
    set_policy(box, "rw", expiry=NOW - timedelta(seconds=1))
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        mine.download_blob()
    set_policy(box, "rw")
    assert mine.download_blob().readall() == b"changed"
    box.set_container_access_policy({})
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        mine.download_blob()


def test_public_containers_are_open_to_anybody_from_the_next_request_on(secure, box):
    anybody = ContainerClient(secure.blob_url, box.container_name, **secure.settings)
    attempts = {
        "blob": lambda: anybody.download_blob("b").readall(),
        "list": lambda: list(anybody.list_blobs()),
        "write": lambda: anybody.upload_blob("b", b"x", overwrite=True),
    }
    for level, open_to_all in [(None, []), ("blob", ["blob"]), ("container", ["blob", "list"]), (None, [])]:
        box.set_container_access_policy({}, public_access=level)
        for name, attempt in attempts.items():
            if name in open_to_all:
                attempt()
            else:
                with refused(401, "NoAuthenticationInformation", ClientAuthenticationError):
                    attempt()
    assert box.download_blob("b").readall() == b"content"


# Refusals.

SIGNATURES = {
    "expired": (lambda name: blob_sas(name, expiry=PAST), "AuthenticationFailed"),
    "in the future": (lambda name: blob_sas(name, start=SOON, expiry=SOON + HOUR), "AuthenticationFailed"),
    "by another key": (lambda name: blob_sas(name, key="bm90IHRoZSBrZXk="), "AuthenticationFailed"),
    "for another container": (lambda name: container_sas(name + "x"), "AuthenticationFailed"),
    "for another blob": (lambda name: blob_sas(name, "c"), "AuthenticationFailed"),
    "without the right": (lambda name: blob_sas(name, permission="wd"), "AuthorizationPermissionMismatch"),
    "for another address": (lambda name: blob_sas(name, ip="10.1.2.3"), "AuthorizationSourceIPMismatch"),
    "of a policy that is not": (lambda name: container_sas(name, None, policy_id="nobody"), "AuthenticationFailed"),
    "account, expired": (lambda name: account_sas(expiry=PAST), "AuthenticationFailed"),
    "account, without the right": (lambda name: account_sas("wdlac"), "AuthorizationPermissionMismatch"),
    "account, not for blobs in it": (
        lambda name: account_sas(types=ResourceTypes(service=True, container=True)), "AuthorizationResourceTypeMismatch"
    ),
    "account, for queues": (lambda name: account_sas(services=Services(queue=True)), "AuthorizationServiceMismatch"),
    "account, for another address": (lambda name: account_sas(ip="10.1.2.3"), "AuthorizationSourceIPMismatch"),
}


@pytest.mark.parametrize("case", SIGNATURES)
def test_a_signature_is_refused(secure, box, case):
    make, code = SIGNATURES[case]
    with refused(403, code):
        blob_of(secure, box, make(box.container_name)).download_blob()


@pytest.fixture
def stored_plain(container):
    container.upload_blob("b", b"content")
    return container


def test_a_signature_for_https_is_refused_over_http(server, stored_plain):
    for token in (blob_sas("box", protocol="https"), account_sas(protocol="https")):
        with refused(403, "AuthorizationProtocolMismatch"):
            blob_of(server, stored_plain, token).download_blob()


CHANGES = {
    "sv": "2021-12-02", "ss": "bq", "srt": "so", "sp": "rwd", "st": "2020-01-01T00:00:00Z", "se": "2099-01-01T00:00:00Z",
    "sip": "127.0.0.0-127.0.0.255", "spr": "https", "sr": "c", "si": "policy", "sig": "A" * 43 + "=", "rscc": "no-store",
    "skoid": TENANT, "sktid": PERSON, "skt": "2020-01-01T00:00:00Z", "ske": "2099-01-01T00:00:00Z", "sks": "q",
    "skv": "2021-12-02", "saoid": PERSON, "scid": PERSON,
}


@pytest.mark.parametrize("kind", ["account", "blob", "user delegation"])
def test_no_parameter_can_be_changed_added_or_taken_away(secure, box, kind):
    bounds = {"start": PAST, "ip": "127.0.0.1", "protocol": "https,http"}
    token = {
        "account": lambda: account_sas("r", **bounds),
        "blob": lambda: blob_sas(box.container_name, **bounds),
        "user delegation": lambda: blob_sas(box.container_name, key=delegation_key(secure), **bounds),
    }[kind]()
    fields = dict(parse_qsl(token))
    assert blob_of(secure, box, urlencode(fields)).download_blob().readall() == b"content"
    foreign = {"ss", "srt"} if kind != "account" else {"sr", "si", "rscc"}
    if kind != "user delegation":
        foreign |= {"skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "scid"}
    changed = [{**fields, name: value} for name, value in CHANGES.items() if name not in foreign]
    taken = [{name: fields[name] for name in fields if name != gone} for gone in fields]
    let_in = []
    for attempt in changed + taken:
        try:
            blob_of(secure, box, urlencode(attempt)).download_blob()
            let_in.append(attempt)
        except HttpResponseError as error:
            assert error.status_code in (401, 403), (attempt, error)
    assert let_in == []


def test_a_user_delegation_signature_lives_as_long_as_its_key(secure, box):
    now = datetime.now(timezone.utc)
    end = now + timedelta(seconds=5)
    short, early = delegation_key(secure, PAST, end), delegation_key(secure, now + HOUR, now + 2 * HOUR)
    # Credentials are judged by the real time, whatever the test clock says.
    while datetime.now(timezone.utc) < end:
        time.sleep(0.1)
    for key in (short, early):
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            blob_of(secure, box, blob_sas(box.container_name, expiry=SOON + HOUR, key=key)).download_blob()


def test_a_user_delegation_signature_outlives_the_process(serve):
    server = serve("--tls", "auto", "--oauth", "basic")
    box = server.service().create_container("box")
    box.upload_blob("b", b"content")
    token = blob_sas("box", key=delegation_key(server))
    server.kill9()
    server.restart()
    assert blob_of(server, box, token).download_blob().readall() == b"content"


def test_a_user_delegation_signature_for_a_queue_opens_that_queue(secure):
    def queues(credential):
        return QueueServiceClient(secure.queue_url, credential=credential, **secure.settings)

    owner = queues(Bearer())
    key = owner.get_user_delegation_key(expiry=SOON, start=PAST)
    mine, other = owner.create_queue("mine"), owner.create_queue("other")

    def signed(permission):
        token = generate_queue_sas(ACCOUNT, "mine", permission=permission, expiry=SOON, user_delegation_key=key)
        return queues(token)

    signed("a").get_queue_client("mine").send_message("hello")
    assert signed("p").get_queue_client("mine").receive_message().content == "hello"
    with refused(403, "AuthorizationPermissionMismatch"):
        signed("a").get_queue_client("mine").receive_message()
    with refused(403, "AuthenticationFailed"):
        signed("a").get_queue_client("other").send_message("hello")
    assert mine.get_queue_properties().approximate_message_count == 1
    assert other.get_queue_properties().approximate_message_count == 0


def test_a_user_delegation_key_is_not_given_for_a_signature(secure):
    with refused(403, "AuthenticationFailed"):
        service(secure, account_sas()).get_user_delegation_key(PAST, SOON)


def test_a_user_delegation_key_is_not_given_for_a_key(secure):
    with refused(403, "AuthenticationFailed"):
        secure.service().get_user_delegation_key(PAST, SOON)


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1_700_000_000},
        {"nbf": 4_000_000_000},
        {"aud": "https://management.azure.com"},
        {"iss": "https://login.example.org/"},
    ],
    ids=["expired", "in the future", "for another audience", "by another issuer"],
)
def test_a_bearer_is_refused(secure, box, claims):
    with refused(401, "InvalidAuthenticationInfo", ClientAuthenticationError):
        blob_of(secure, box, Bearer(**claims)).download_blob()


def test_a_bearer_is_refused_over_http(serve):
    server = serve("--oauth", "basic")
    headers = {"Authorization": f"Bearer {Bearer().token}", "x-ms-version": "2021-12-02"}
    with pytest.raises(urllib.error.HTTPError) as caught:
        DIRECT.open(urllib.request.Request(f"{server.blob_url}?comp=list", headers=headers), timeout=10)
    assert (caught.value.code, caught.value.headers["x-ms-error-code"]) == (403, "AuthenticationFailed")


# Keys change while the server runs.


def account(folder, *words):
    command = [binary(), "account", *words, "--location", folder]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


def connect(server, text):
    """A client from the connection string in what `lazurite account show` says, on the port of this server."""
    line = next(line for line in text.splitlines() if "AccountKey=" in line)
    fields = dict(part.split("=", 1) for part in line[line.index("DefaultEndpointsProtocol"):].rstrip(";").split(";"))
    credential = {"account_name": fields["AccountName"], "account_key": fields["AccountKey"]}
    url = f"{server.urls['blob']}/{fields['AccountName']}"
    return BlobServiceClient(url, credential=credential, **server.settings), fields["AccountKey"]


def test_a_key_is_changed_while_the_server_runs(tmp_path, serve):
    folder = tmp_path / "data"
    account(folder, "add", "mine")
    server = serve("--tls", "auto")
    old, old_key = connect(server, account(folder, "show", "mine"))
    old.create_container("box").upload_blob("b", b"content")
    token = generate_blob_sas(
        "mine", "box", "b", account_key=old_key, permission=BlobSasPermissions(read=True), expiry=SOON
    )
    signed = BlobClient.from_blob_url(f"{old.url}box/b?{token}", **server.settings)
    assert signed.download_blob().readall() == b"content"

    account(folder, "rotate", "mine")
    new, new_key = connect(server, account(folder, "show", "mine"))
    assert new_key != old_key
    blob = new.get_blob_client("box", "b")
    # The old ones first: not one request after the rotation is judged by what was before.
    for stranger in (old.get_blob_client("box", "b"), signed):
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            stranger.download_blob()
    assert blob.download_blob().readall() == b"content"
    with refused(404, "ResourceNotFound"):
        server.service().get_service_properties()
