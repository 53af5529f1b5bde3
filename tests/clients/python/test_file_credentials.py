"""Every kind of credential for files, over https: what it opens, what it does not, and how each refusal is called."""

import itertools
import ssl
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl, urlencode

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.fileshare import (
    AccessPolicy, AccountSasPermissions, FileSasPermissions, ResourceTypes, Services, ShareFileClient, ShareSasPermissions,
    ShareServiceClient, UserDelegationKey, generate_account_sas, generate_file_sas, generate_share_sas,
)

from harness import ACCOUNT, KEY, Server, refused
from test_credentials import Bearer

HOUR = timedelta(hours=1)
NOW = datetime.now(timezone.utc).replace(microsecond=0)
PAST, SOON = NOW - HOUR, NOW + HOUR


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """One server for all tests here that neither stop it nor move its time."""
    server = Server(tmp_path_factory.mktemp("secure") / "data", "--tls", "auto", "--oauth", "basic").start()
    assert server.file_url.startswith("https://")
    yield server
    assert server.stop() == 0, server.log.read_text()


@pytest.fixture
def docs(secure, numbers=itertools.count()):
    """A share of the test's own with a file "f" in it."""
    share = secure.shares().create_share(f"docs{next(numbers)}")
    share.get_file_client("f").upload_file(b"content")
    return share


# Makers of credentials.


def account_sas(permission="rwdlc", types=ResourceTypes(True, True, True), expiry=SOON, **more):
    return generate_account_sas(ACCOUNT, KEY, types, AccountSasPermissions.from_string(permission), expiry, **more)


def key_of(key):
    return {"user_delegation_key": key} if isinstance(key, UserDelegationKey) else {"account_key": key}


def share_sas(name, permission="rcwdl", expiry=SOON, key=KEY, **more):
    if permission:
        more.update(permission=ShareSasPermissions.from_string(permission), expiry=expiry)
    return generate_share_sas(ACCOUNT, name, **key_of(key), **more)


def file_sas(name, path=("f",), permission="r", expiry=SOON, key=KEY, **more):
    if permission:
        more.update(permission=FileSasPermissions.from_string(permission), expiry=expiry)
    return generate_file_sas(ACCOUNT, name, list(path), **key_of(key), **more)


def service(server, credential, **more):
    if isinstance(credential, Bearer):
        more["token_intent"] = "backup"
    return ShareServiceClient(server.file_url, credential=credential, **{**server.settings, **more})


def file_of(server, docs, credential, path="f", **more):
    return service(server, credential, **more).get_share_client(docs.share_name).get_file_client(path)


def delegation_key(server, start=PAST, expiry=SOON):
    return service(server, Bearer()).get_user_delegation_key(start=start, expiry=expiry)


def set_policy(docs, permission, expiry=SOON):
    policy = AccessPolicy(permission=ShareSasPermissions.from_string(permission), start=PAST, expiry=expiry)
    docs.set_share_access_policy({"policy": policy})


def by_policy(server, docs):
    set_policy(docs, "rcwdl")
    return service(server, share_sas(docs.share_name, None, policy_id="policy"))


CREDENTIALS = {
    "key": lambda server, docs: service(server, {"account_name": ACCOUNT, "account_key": KEY}),
    "named key": lambda server, docs: service(server, AzureNamedKeyCredential(ACCOUNT, KEY)),
    "connection string": lambda server, docs: server.shares(),
    "connection string with a signature": lambda server, docs: ShareServiceClient.from_connection_string(
        f"FileEndpoint={server.file_url};SharedAccessSignature={account_sas()};", **server.settings
    ),
    "account signature": lambda server, docs: service(server, account_sas()),
    "account signature as a credential": lambda server, docs: service(server, AzureSasCredential(account_sas())),
    "account signature for https": lambda server, docs: service(server, account_sas(protocol="https")),
    "share signature": lambda server, docs: service(server, share_sas(docs.share_name)),
    "share signature for this address": lambda server, docs: service(
        server, share_sas(docs.share_name, ip="127.0.0.1-127.0.0.9", start=PAST)
    ),
    "policy signature": by_policy,
    "user delegation signature": lambda server, docs: service(server, share_sas(docs.share_name, key=delegation_key(server))),
    "bearer": lambda server, docs: service(server, Bearer()),
}


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_it_opens(secure, docs, kind):
    mine = CREDENTIALS[kind](secure, docs).get_share_client(docs.share_name)
    directory = mine.create_directory("dir ä b+c")
    file = directory.upload_file("ä b+c.txt", b"one", metadata={"colour": "blue"})
    file.upload_file(b"another")
    assert file.download_file(offset=2, length=3).readall() == b"oth"
    assert file.get_file_properties().size == 7
    file.upload_range(b"X", 0, 1)
    file.resize_file(5)
    assert file.get_ranges() == [{"start": 0, "end": 4}]
    assert [found.name for found in mine.list_directories_and_files()] == ["dir ä b+c", "f"]
    moved = file.rename_file("dir ä b+c/moved")
    assert moved.download_file().readall() == b"Xnoth"
    lease = moved.acquire_lease()
    moved.delete_file(lease=lease)
    mine.delete_directory("dir ä b+c")
    assert docs.get_file_client("f").download_file().readall() == b"content"


def test_a_token_opens_shares_too(secure, docs):
    mine = service(secure, Bearer())
    share = mine.create_share(docs.share_name + "-mine")
    share.set_share_quota(5)
    assert docs.share_name in [found.name for found in mine.list_shares()]
    key = share.create_permission_for_share("O:SYG:SYD:(A;;FA;;;SY)")
    assert share.get_permission_for_share(key).startswith("O:SYG:SY")
    share.delete_share()


def ask(server, url, body=None, **headers):
    """The answer, without a client that would mend the request: status, and code or body."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    context = ssl.create_default_context(cafile=server.folder / "tls/cert.pem")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(urllib.request.Request(url, body, headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["x-ms-error-code"]


def test_a_token_must_say_what_it_is_for(secure, docs):
    """Access lists of files are passed over for whoever says that this is a backup; nobody else comes in by a token."""
    url = f"{secure.file_url}/{docs.share_name}/f"
    token = {"Authorization": f"Bearer {Bearer().token}"}
    new, old = {"x_ms_version": "2026-10-06"}, {"x_ms_version": "2021-12-02"}
    assert ask(secure, url, **token, **new, x_ms_file_request_intent="backup") == (200, "content")
    for refusal in (
        ask(secure, url, **token, **new),
        ask(secure, url, **token, **new, x_ms_file_request_intent="restore"),
        ask(secure, url, **token, **old, x_ms_file_request_intent="backup"),
    ):
        assert refusal[0] in (400, 401, 403)
    # Only the key for signatures is given without.
    body = f"<KeyInfo><Start>{PAST:%Y-%m-%dT%H:%M:%SZ}</Start><Expiry>{SOON:%Y-%m-%dT%H:%M:%SZ}</Expiry></KeyInfo>"
    url = f"{secure.file_url}/?restype=service&comp=userdelegationkey"
    status, key = ask(secure, url, body.encode(), **token, **new, Content_Type="application/xml")
    assert (status, "<SignedService>f</SignedService>" in key) == (200, True)


@pytest.mark.parametrize("delegated", [False, True], ids=["key", "user delegation"])
def test_a_signature_for_a_file_opens_that_file(secure, docs, delegated):
    key = delegation_key(secure) if delegated else KEY
    docs.create_directory("dir").upload_file("inner", b"x")
    token = file_sas(docs.share_name, permission="rw", key=key)
    mine = ShareFileClient.from_file_url(f"{docs.get_file_client('f').url}?{token}", **secure.settings)
    mine.upload_range(b"C", 0, 1)
    assert mine.download_file().readall() == b"Content"
    with refused(403, "AuthorizationPermissionMismatch"):
        mine.delete_file()
    for path in ("other", "dir/inner", "dir/f"):
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            file_of(secure, docs, token, path).download_file()
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        list(service(secure, token).get_share_client(docs.share_name).list_directories_and_files())
    deep = file_of(secure, docs, file_sas(docs.share_name, ("dir", "inner"), key=key), "dir/inner")
    assert deep.download_file().readall() == b"x"


# One operation for each letter, and what else it needs.
LETTERS = {
    "r": lambda share: share.get_file_client("f").download_file(),
    "c": lambda share: share.get_file_client("new").create_file(1),
    "w": lambda share: share.get_file_client("f").upload_range(b"x", 0, 1),
    "d": lambda share: share.get_file_client("f").delete_file(),
    "l": lambda share: list(share.list_directories_and_files()),
}
SHARE_SIGNERS = {
    "share": lambda server, docs, letters: share_sas(docs.share_name, letters),
    "account": lambda server, docs, letters: account_sas(letters),
    "user delegation": lambda server, docs, letters: share_sas(docs.share_name, letters, key=delegation_key(server)),
    "policy": lambda server, docs, letters: set_policy(docs, letters) or share_sas(docs.share_name, None, policy_id="policy"),
}


@pytest.mark.parametrize("kind", SHARE_SIGNERS)
@pytest.mark.parametrize("letter", LETTERS)
def test_each_letter_allows_its_own(secure, docs, kind, letter):
    mine = service(secure, SHARE_SIGNERS[kind](secure, docs, letter)).get_share_client(docs.share_name)
    for other, attempt in LETTERS.items():
        # Who may write may also make.
        if other == letter or (letter, other) == ("w", "c"):
            attempt(mine)
        else:
            with refused(403, "AuthorizationPermissionMismatch"):
                attempt(mine)


def test_a_signature_of_a_share_is_for_what_is_in_it(secure, docs):
    mine = service(secure, share_sas(docs.share_name)).get_share_client(docs.share_name)
    for attempt in (
        mine.delete_share, mine.get_share_access_policy, mine.get_share_properties, lambda: mine.set_share_metadata({"a": "b"}),
        lambda: mine.set_share_quota(5),
    ):
        with refused(403, "AuthorizationFailure"):
            attempt()
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        list(service(secure, share_sas(docs.share_name)).list_shares())


def test_a_policy_decides_from_the_next_request_on(secure, docs):
    set_policy(docs, "r")
    mine = file_of(secure, docs, share_sas(docs.share_name, None, policy_id="policy"))
    assert mine.download_file().readall() == b"content"
    with refused(403, "AuthorizationPermissionMismatch"):
        mine.upload_range(b"x", 0, 1)
    set_policy(docs, "w")
    mine.upload_range(b"C", 0, 1)
    with refused(403, "AuthorizationPermissionMismatch"):
        mine.download_file()
    set_policy(docs, "rw", expiry=NOW - timedelta(seconds=1))
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        mine.download_file()
    docs.set_share_access_policy({})
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        mine.download_file()


SIGNATURES = {
    "expired": (lambda name: file_sas(name, expiry=PAST), "AuthenticationFailed"),
    "in the future": (lambda name: file_sas(name, start=SOON, expiry=SOON + HOUR), "AuthenticationFailed"),
    "by another key": (lambda name: file_sas(name, key="bm90IHRoZSBrZXk="), "AuthenticationFailed"),
    "for another share": (lambda name: share_sas(name + "x"), "AuthenticationFailed"),
    "for another file": (lambda name: file_sas(name, ("g",)), "AuthenticationFailed"),
    "without the right": (lambda name: file_sas(name, permission="wd"), "AuthorizationPermissionMismatch"),
    "for another address": (lambda name: file_sas(name, ip="10.1.2.3"), "AuthorizationSourceIPMismatch"),
    "of a policy that is not": (lambda name: share_sas(name, None, policy_id="nobody"), "AuthenticationFailed"),
    "account, expired": (lambda name: account_sas(expiry=PAST), "AuthenticationFailed"),
    "account, without the right": (lambda name: account_sas("wdlc"), "AuthorizationPermissionMismatch"),
    "account, not for files in it": (
        lambda name: account_sas(types=ResourceTypes(service=True, container=True)), "AuthorizationResourceTypeMismatch"
    ),
    "account, for blobs": (lambda name: account_sas(services=Services(blob=True)), "AuthorizationServiceMismatch"),
    "account, for another address": (lambda name: account_sas(ip="10.1.2.3"), "AuthorizationSourceIPMismatch"),
}


@pytest.mark.parametrize("case", SIGNATURES)
def test_a_signature_is_refused(secure, docs, case):
    make, code = SIGNATURES[case]
    with refused(403, code):
        file_of(secure, docs, make(docs.share_name)).download_file()


CHANGES = {
    "sv": "2021-12-02", "ss": "bf", "srt": "so", "sp": "rwd", "st": "2020-01-01T00:00:00Z", "se": "2099-01-01T00:00:00Z",
    "sip": "127.0.0.0-127.0.0.255", "spr": "https", "sr": "s", "si": "policy", "sig": "A" * 43 + "=", "rscc": "no-store",
    "skoid": "11111111-1111-1111-1111-111111111111", "skt": "2020-01-01T00:00:00Z", "ske": "2099-01-01T00:00:00Z", "sks": "b",
}


@pytest.mark.parametrize("kind", ["account", "file", "user delegation"])
def test_no_parameter_can_be_changed_added_or_taken_away(secure, docs, kind):
    bounds = {"start": PAST, "ip": "127.0.0.1", "protocol": "https,http"}
    token = {
        "account": lambda: account_sas("r", **bounds),
        "file": lambda: file_sas(docs.share_name, **bounds),
        "user delegation": lambda: file_sas(docs.share_name, key=delegation_key(secure), **bounds),
    }[kind]()
    fields = dict(parse_qsl(token))
    assert file_of(secure, docs, urlencode(fields)).download_file().readall() == b"content"
    foreign = {"ss", "srt"} if kind != "account" else {"sr", "si", "rscc"}
    if kind != "user delegation":
        foreign |= {"skoid", "skt", "ske", "sks"}
    changed = [{**fields, name: value} for name, value in CHANGES.items() if name not in foreign]
    taken = [{name: fields[name] for name in fields if name != gone} for gone in fields]
    let_in = []
    for attempt in changed + taken:
        try:
            file_of(secure, docs, urlencode(attempt)).download_file()
            let_in.append(attempt)
        except HttpResponseError as error:
            assert error.status_code in (400, 401, 403), (attempt, error)
    assert let_in == []


def test_a_user_delegation_signature_lives_as_long_as_its_key(secure, docs):
    now = datetime.now(timezone.utc)
    end = now + timedelta(seconds=5)
    short, early = delegation_key(secure, PAST, end), delegation_key(secure, now + HOUR, now + 2 * HOUR)
    # Credentials are judged by the real time, whatever the test clock says.
    while datetime.now(timezone.utc) < end:
        time.sleep(0.1)
    for key in (short, early):
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            file_of(secure, docs, file_sas(docs.share_name, expiry=SOON + HOUR, key=key)).download_file()


def test_a_user_delegation_key_is_not_given_for_anything_else(secure, docs):
    for shares in (secure.shares(), service(secure, account_sas())):
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            shares.get_user_delegation_key(start=PAST, expiry=SOON)


def test_a_rename_needs_the_right_at_both_ends(secure, docs):
    docs.create_directory("dir")
    name = docs.share_name
    reading = file_of(secure, docs, share_sas(name, "r"))
    with refused(403, "AuthorizationPermissionMismatch"):
        reading.rename_file("dir/f")
    writing = file_of(secure, docs, share_sas(name, "rw"))
    moved = writing.rename_file("dir/f")
    assert moved.download_file().readall() == b"content"
    # Each end with a signature of its own.
    source = file_of(secure, docs, file_sas(name, ("dir", "f"), "w"), "dir/f")
    source.rename_file(f"back?{file_sas(name, ('back',), 'w')}")
    assert docs.get_file_client("back").download_file().readall() == b"content"


def test_headers_of_a_download_by_a_signature(secure, docs):
    token = file_sas(docs.share_name, content_type="a/b", cache_control="no-store", content_disposition="inline")
    seen = file_of(secure, docs, token).get_file_properties().content_settings
    assert (seen.content_type, seen.cache_control, seen.content_disposition) == ("a/b", "no-store", "inline")


@pytest.mark.parametrize(
    "claims",
    [{"exp": 1_700_000_000}, {"nbf": 4_000_000_000}, {"aud": "https://management.azure.com"}],
    ids=["expired", "in the future", "for another audience"],
)
def test_a_bearer_is_refused(secure, docs, claims):
    with refused(401, "InvalidAuthenticationInfo", ClientAuthenticationError):
        file_of(secure, docs, Bearer(**claims)).download_file()
