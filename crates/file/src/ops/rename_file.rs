//! Rename File, and what it has in common with Rename Directory: the source is moved to the path of the request, in one step.

use auth::{Caller, GrantKind, Scope};
use service::sources::without_signature;
use wire::file_path::{FilePath, PathKind};
use wire::http::{Head, Reply, StatusCode};
use wire::names::ShareName;
use wire::percent;

use super::Call;
use crate::change::rename::{RenamedKind, Renaming};
use crate::entering::{self, RenameNode};
use crate::error::FileError;
use crate::request::{flag, guid, required, text};
use crate::{Failure, request, smb_headers};

const SOURCE: &str = "x-ms-file-rename-source";

pub fn parse(head: &Head, kind: RenamedKind) -> Result<RenameNode, FileError> {
    let (target, path_kind) = match kind {
        RenamedKind::File => (request::file(head)?, PathKind::File),
        RenamedKind::Directory => (request::directory(head)?, PathKind::Directory),
    };
    request::only_base(head)?;
    request::no_conditions(head)?;
    let source = source(head, &target.share, path_kind)?;
    let metadata = request::metadata(head)?;
    let renaming = Renaming {
        kind,
        source_lease: guid(head, "x-ms-source-lease-id")?,
        target_lease: guid(head, "x-ms-destination-lease-id")?,
        replaces: flag(head, "x-ms-file-rename-replace-if-exists")?.unwrap_or(false),
        ignores_read_only: flag(head, "x-ms-file-rename-ignore-readonly")?.unwrap_or(false),
        settings: smb_headers::parse_optional(head)?,
        metadata: Some(metadata).filter(|metadata| !metadata.is_empty()),
        content_type: text(head, "x-ms-content-type")?.map(str::to_owned),
    };
    Ok(RenameNode { source, target, renaming })
}

/// The path of the source: the header has its URL, and the source must be in the same share. A snapshot never changes, so its files
/// cannot be renamed.
fn source(head: &Head, share: &ShareName, kind: PathKind) -> Result<FilePath, FileError> {
    let url = required(head, SOURCE)?;
    let wrong = || FileError::header(SOURCE, without_signature(url));
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let path = below_account(head, path).and_then(|path| percent::decode_path(path).ok()).ok_or_else(wrong)?;
    let (name, rest) = path.split_once('/').unwrap_or((&path, ""));
    let names_snapshot = percent::query_pairs(query)
        .flatten()
        .any(|(parameter, _)| parameter.eq_ignore_ascii_case(request::SHARE_SNAPSHOT));
    if name != share.as_str() || names_snapshot {
        return Err(wrong());
    }
    Ok(FilePath::parse(rest, kind, request::source_trailing_dots(head)?)?)
}

/// The part of a URL behind the account. The account is in the host or in the path, as it is in the URL of the request.
fn below_account<'a>(head: &Head, url: &'a str) -> Option<&'a str> {
    let (_, rest) = url.split_once("://")?;
    let (_, path) = rest.split_once('/')?;
    if !head.endpoint.ends_with(&format!("/{}", head.account)) {
        return Some(path);
    }
    path.strip_prefix(&head.account)?.strip_prefix('/')
}

/// Whether the caller may take the source away, and not only write the target.
async fn check_source(call: Call<'_>, rename: &RenameNode) -> Result<(), Failure> {
    if covers_source(call.asker.caller, &rename.source, &rename.target.path) {
        return Ok(());
    }
    // Then the URL of the source must bring a signature of its own.
    let url = source_at_endpoint(call.head)?;
    if call.asker.sources.may_write(&url).await? { Ok(()) } else { Err(FileError::UnauthorizedSource.into()) }
}

/// The URL of the source, with the endpoint that the request came to. The host of the source's URL may place the account elsewhere
/// than the request does; a signature must be judged for the path that is renamed, and for no other reading of the URL.
fn source_at_endpoint(head: &Head) -> Result<String, FileError> {
    let url = required(head, SOURCE)?;
    let below = below_account(head, url).ok_or_else(|| FileError::header(SOURCE, without_signature(url)))?;
    Ok(format!("{}/{below}", head.endpoint))
}

/// Whether the signature of the request is good for another path of the share, too: the source of a rename, or the file that gets
/// another name. One for a single file is not, unless the path is only spelled anew.
pub fn covers_source(caller: &Caller, source: &FilePath, target: &FilePath) -> bool {
    match caller {
        Caller::Owner | Caller::Bearer(_) => true,
        Caller::Anonymous => false,
        Caller::Sas(grant) => match &grant.kind {
            GrantKind::Account { .. } | GrantKind::Service(Scope::Share) => true,
            GrantKind::Service(_) => source == target,
        },
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    run_as(call, RenamedKind::File).await
}

pub async fn run_as(call: Call<'_>, kind: RenamedKind) -> Result<Reply, Failure> {
    let rename = parse(call.head, kind)?;
    check_source(call, &rename).await?;
    let shown = entering::rename(call, rename).await?;
    Ok(shown.changed(call.head, StatusCode::OK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MY_LEASE, header, refusal, request as head_of};
    use auth::{Grant, Permissions};
    use service::{Asker, HttpService, RequestError};

    const REPLACE: (&str, &str) = ("x-ms-file-rename-replace-if-exists", "true");

    #[tokio::test]
    async fn a_file_keeps_what_it_is() {
        let bench = Bench::with_share().await;
        bench.mkdir("a").await;
        bench.mkdir("b").await;
        let headers = [
            ("x-ms-type", "file"),
            ("x-ms-content-length", "5"),
            ("x-ms-content-language", "de"),
            ("x-ms-meta-a", "b"),
        ];
        bench.call("PUT", "share/a/file", &headers, b"hello").await.unwrap();
        bench.advance(1).await;
        let before = bench.file("a/file").await;
        let renamed = bench.rename("A/FILE", "b/New", &[]).await.unwrap();
        assert_eq!(renamed.status, 200);
        let after = bench.file("b/new").await;
        for name in [
            "x-ms-file-id",
            "x-ms-file-creation-time",
            "x-ms-file-last-write-time",
            "x-ms-file-permission-key",
            "x-ms-file-attributes",
            "content-language",
            "content-length",
            "x-ms-meta-a",
        ] {
            assert_eq!(header(&after, name), header(&before, name), "{name}");
        }
        for name in ["etag", "last-modified", "x-ms-file-change-time", "x-ms-file-parent-id"] {
            assert_ne!(header(&after, name), header(&before, name), "{name}");
            assert_eq!(header(&after, name), header(&renamed, name), "{name}");
        }
        assert_eq!(header(&after, "x-ms-file-parent-id"), header(&bench.directory("b").await, "x-ms-file-id"));
        assert_eq!(bench.read("b/new").await, b"hello");
        assert_eq!((bench.names("a").await, bench.names("b").await), (vec![], vec!["New".to_owned()]));
        // The same name, spelled in another way.
        bench.rename("b/new", "b/NEW", &[]).await.unwrap();
        assert_eq!(bench.names("b").await, ["NEW"]);
    }

    #[tokio::test]
    async fn what_the_request_sets() {
        let bench = Bench::with_share().await;
        bench.create("file", 0).await;
        let headers = [
            ("x-ms-content-type", "text/plain"),
            ("x-ms-meta-new", "1"),
            ("x-ms-file-attributes", "Hidden"),
            ("x-ms-file-creation-time", "2019-01-02T03:04:05.0000006Z"),
            ("x-ms-file-permission", "O:SYG:SYD:(A;;FA;;;BU)"),
        ];
        let key = header(&bench.file("file").await, "x-ms-file-permission-key").unwrap().to_owned();
        bench.rename("file", "new", &headers).await.unwrap();
        let after = bench.file("new").await;
        assert_eq!((header(&after, "content-type"), header(&after, "x-ms-meta-new")), (Some("text/plain"), Some("1")));
        assert_eq!(header(&after, "x-ms-file-attributes"), Some("Hidden"));
        assert_eq!(header(&after, "x-ms-file-creation-time"), Some(headers[3].1));
        assert_ne!(header(&after, "x-ms-file-permission-key"), Some(&*key));
        bench.rename("new", "file", &[("x-ms-file-permission", "inherit")]).await.unwrap();
        assert_eq!(header(&bench.file("file").await, "x-ms-file-permission-key"), Some(&*key));
    }

    #[tokio::test]
    async fn a_file_is_replaced_only_if_the_request_says_so() {
        let bench = Bench::with_share().await;
        bench.create("one", 100).await;
        bench.create("two", 200).await;
        bench.write("two", 0, &[1; 200]).await;
        bench.mkdir("dir").await;
        let exists = FileError::ResourceAlreadyExists;
        for (to, headers) in [("two", &[][..]), ("dir", &[]), ("dir", &[REPLACE])] {
            assert_eq!(refusal(bench.rename("one", to, headers).await), exists, "{to} {headers:?}");
        }
        let read_only = [("x-ms-file-attributes", "ReadOnly")];
        bench.call("PUT", "share/two?comp=properties", &read_only, b"").await.unwrap();
        assert_eq!(refusal(bench.rename("one", "two", &[REPLACE]).await), FileError::ReadOnlyAttribute);
        assert_eq!(refusal(bench.rename("one", "two", &[]).await), exists, "of the two faults");
        assert_eq!(bench.names("").await, ["dir", "one", "two"]);
        let id = header(&bench.file("one").await, "x-ms-file-id").unwrap().to_owned();
        let ignore = ("x-ms-file-rename-ignore-readonly", "true");
        bench.rename("one", "two", &[REPLACE, ignore]).await.unwrap();
        let after = bench.file("two").await;
        assert_eq!((header(&after, "x-ms-file-id"), header(&after, "content-length")), (Some(&*id), Some("100")));
        assert_eq!(bench.names("").await, ["dir", "two"]);
        let stats = bench.text("GET", "share?restype=share&comp=stats").await;
        assert!(stats.contains("<ShareUsageBytes>100<"), "{stats}");
        bench.sweep().await;
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), 0);
        // A read-only file can be renamed itself.
        bench.call("PUT", "share/two?comp=properties", &read_only, b"").await.unwrap();
        bench.rename("two", "three", &[]).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_not_there_and_the_wrong_kind() {
        let bench = Bench::with_share().await;
        bench.create("file", 0).await;
        bench.mkdir("dir").await;
        for (from, to, expected) in [
            ("no", "new", FileError::ResourceNotFound),
            ("no/no", "new", FileError::ResourceNotFound),
            ("file", "no/new", FileError::ParentNotFound),
            ("no", "no/new", FileError::ParentNotFound),
            ("dir", "new", FileError::ResourceTypeMismatch),
            ("file", "new?restype=directory", FileError::ResourceTypeMismatch),
        ] {
            assert_eq!(refusal(bench.rename(from, to, &[]).await), expected, "{from} {to}");
        }
        let leased = refusal(bench.rename("file", "new", &[("x-ms-source-lease-id", MY_LEASE)]).await);
        assert_eq!(leased, FileError::file_lease(concurrency::LeaseRefusal::NotPresent));
    }

    #[test]
    fn the_source_is_a_url_in_the_same_share() {
        let parsed = |endpoint: &str, url: &str| {
            let mut head = head_of("PUT", "share/new?comp=rename", &[(SOURCE, url)]);
            head.endpoint = endpoint.into();
            parse(&head, RenamedKind::File).map(|rename| rename.source.to_string())
        };
        let (by_path, by_host) = ("http://127.0.0.1:10003/acct", "http://acct.file.localhost:10003");
        for (endpoint, url) in [
            (by_path, "http://127.0.0.1:10003/acct/share/dir/a%20b"),
            (by_path, "https://other.name/acct/share/dir/a%20b?sv=1&sig=secret"),
            (by_host, "http://acct.file.localhost:10003/share/dir/a%20b"),
        ] {
            assert_eq!(parsed(endpoint, url).as_deref(), Ok("dir/a b"), "{url}");
        }
        for url in [
            "share/file",
            "/acct/share/file",
            "http://127.0.0.1:10003",
            "http://127.0.0.1:10003/other/share/file",
            "http://127.0.0.1:10003/acct/other/file",
            "http://127.0.0.1:10003/acct/share/%ff",
        ] {
            assert_eq!(parsed(by_path, url), Err(FileError::header(SOURCE, url)), "{url}");
        }
        for query in ["sharesnapshot=2026-11-15T18:00:00.0000000Z", "sv=1&ShareSnapshot=", "%73haresnapshot=x"] {
            let url = format!("http://h/acct/share/file?{query}");
            assert_eq!(parsed(by_path, &url), Err(FileError::header(SOURCE, &*url)), "{query}");
        }
        let told = parsed(by_path, "http://h/acct/other/file?sig=secret&sr=s");
        assert_eq!(told, Err(FileError::header(SOURCE, "http://h/acct/other/file?sr=s")), "no signature is shown");
        let wrong = RequestError::InvalidResourceName.into();
        for url in ["http://h/acct/share", "http://h/acct/share/", "http://h/acct/share/a/../b"] {
            assert_eq!(parsed(by_path, url), Err(FileError::clone(&wrong)), "{url}");
        }
        let missing = parse(&head_of("PUT", "share/new?comp=rename", &[]), RenamedKind::File).unwrap_err();
        assert_eq!(missing, RequestError::MissingRequiredHeader { name: SOURCE }.into());
    }

    /// The account is where the request has it, whatever host the URL of the source names.
    #[test]
    fn a_signature_is_judged_for_the_path_that_is_renamed() {
        let judged = |endpoint: &str, url: &str| {
            let mut head = head_of("PUT", "share/new?comp=rename", &[(SOURCE, url)]);
            head.endpoint = endpoint.into();
            source_at_endpoint(&head)
        };
        let (by_path, by_host) = ("http://127.0.0.1:10003/acct", "http://acct.file.localhost:10003");
        for (endpoint, url, expected) in [
            (by_path, "http://127.0.0.1:10003/acct/share/a%20b?sig=s", "http://127.0.0.1:10003/acct/share/a%20b?sig=s"),
            (by_path, "http://acct.file.localhost/acct/share/f?sig=s", "http://127.0.0.1:10003/acct/share/f?sig=s"),
            (by_host, "http://127.0.0.1:10003/acct/f?sig=s", "http://acct.file.localhost:10003/acct/f?sig=s"),
        ] {
            assert_eq!(judged(endpoint, url).as_deref(), Ok(expected), "{url}");
        }
    }

    /// The server is not asked for sources here, so no signature in the URL of a source counts.
    #[tokio::test]
    async fn a_signature_for_one_file_does_not_take_another_away() {
        let bench = Bench::with_share().await;
        bench.create("file", 0).await;
        let grant = |kind| {
            let (overrides, encryption_scope, delegation) = (None, None, None);
            Caller::Sas(Grant { kind, permissions: Permissions::of("w"), overrides, encryption_scope, delegation })
        };
        let of_account = GrantKind::Account { services: Permissions::of("f"), resource_types: Permissions::of("o") };
        let rename = async |caller: &Caller, from: &str, to: &str| {
            let source = format!("http://127.0.0.1:10003/acct/share/{from}?sig=secret");
            let head = head_of("PUT", &format!("share/{to}?comp=rename"), &[(SOURCE, &source)]);
            let asker = Asker { caller, ..Asker::OWNER };
            let mut body = wire::http::FixedBody::new(&b""[..]);
            bench.service.run_for(asker, crate::Op::RenameFile, &head, 1, &mut body).await
        };
        let of_file = grant(GrantKind::Service(Scope::File));
        assert_eq!(refusal(rename(&of_file, "file", "new").await), FileError::UnauthorizedSource);
        assert_eq!(refusal(rename(&Caller::Anonymous, "file", "file").await), FileError::UnauthorizedSource);
        rename(&of_file, "file", "file").await.unwrap();
        rename(&grant(GrantKind::Service(Scope::Share)), "file", "new").await.unwrap();
        rename(&grant(of_account), "new", "file").await.unwrap();
        // The rights are judged before the source is looked up.
        assert_eq!(refusal(rename(&of_file, "no", "new").await), FileError::UnauthorizedSource);
    }

    #[tokio::test]
    async fn dots_at_the_end_of_either_name() {
        let bench = Bench::with_share().await;
        bench.create("file", 0).await;
        let (keep, keep_source) = (("x-ms-allow-trailing-dot", "true"), ("x-ms-source-allow-trailing-dot", "true"));
        bench.rename("file.", "dots..", &[keep]).await.unwrap();
        assert_eq!(bench.names("").await, ["dots.."]);
        assert_eq!(refusal(bench.rename("dots..", "plain", &[]).await), FileError::ResourceNotFound);
        bench.rename("dots..", "plain.", &[keep_source]).await.unwrap();
        assert_eq!(bench.names("").await, ["plain"]);
    }
}
