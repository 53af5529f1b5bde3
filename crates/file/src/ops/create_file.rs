//! Create File: a file of zeros, or one that begins with the bytes of the body. A file that is there is replaced.

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
use content::map::Gathered;
use content::upload::{self, Received};
use engine::{Changes, Rows, Tick};
use service::request::{BodySums, body_sums, stored};
use service::{HttpHeaders, RequestError, reply};
use wire::http::{Body, Head, Reply, StatusCode};

use super::Call;
use super::put_range::{BODY_BYTES_MAX, receive, set_sums};
use crate::announcement::Effect;
use crate::change::create::{self, NewFile, NewNode, Replacing};
use crate::entering::{self, Admission, NodeChange, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, refuse};
use crate::opens::events::Aspects;
use crate::reply::node::ShownNode;
use crate::request::{FILE_LENGTH, HTTP_HEADERS, required, text};
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

const TYPE: &str = "x-ms-type";
/// What NFS calls a file. Links are created by operations of their own.
const FILE_TYPE: &str = "x-ms-file-file-type";
/// Since this version a file can be created with its first bytes.
const BODY_SINCE: &str = "2026-02-06";

#[derive(Clone, Debug)]
struct CreateFile {
    new: NewNode,
    file: NewFile,
    /// The first bytes of the file.
    body: Option<Received>,
}

fn parse(head: &Head, may_replace: bool) -> Result<(Target, CreateFile), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let kind = required(head, TYPE)?;
    if !kind.eq_ignore_ascii_case("file") {
        return Err(FileError::header(TYPE, kind));
    }
    if let Some(kind) = text(head, FILE_TYPE)?.filter(|kind| !kind.eq_ignore_ascii_case("regular")) {
        return Err(FileError::header(FILE_TYPE, kind));
    }
    let length = request::file_length(head)?.ok_or(RequestError::MissingRequiredHeader { name: FILE_LENGTH })?;
    let replacing = Replacing { lease: request::lease_id(head)?, may_replace, ignores_read_only: false };
    let file = NewFile { length, headers: http_headers(head)?, replacing };
    let new = NewNode { settings: smb_headers::parse(head)?, metadata: request::metadata(head)? };
    Ok((target, CreateFile { new, file, body: None }))
}

/// The HTTP headers of the file. Four of them may also come under the names that HTTP has for them.
fn http_headers(head: &Head) -> Result<HttpHeaders, FileError> {
    let own = HttpHeaders::parse(head, &HTTP_HEADERS)?;
    let or = |own: Option<String>, name| if own.is_some() { Ok(own) } else { stored(head, name) };
    Ok(HttpHeaders {
        content_type: or(own.content_type, "content-type")?.or(Some(reply::CONTENT_TYPE_DEFAULT.to_owned())),
        content_encoding: or(own.content_encoding, "content-encoding")?,
        content_language: or(own.content_language, "content-language")?,
        cache_control: or(own.cache_control, "cache-control")?,
        ..own
    })
}

/// The sums that the body must have, if one is announced. It must fit into the file.
fn announced(head: &Head, body: &dyn Body, file: &NewFile) -> Result<Option<BodySums>, FileError> {
    match body.length() {
        Some(0) => return Ok(None),
        // A body whose length is not told is refused; a request that tells none at all has no body.
        None if head.has_header("transfer-encoding") => return Err(RequestError::MissingContentLengthHeader.into()),
        None => return Ok(None),
        Some(length) if !head.since(BODY_SINCE) => {
            return Err(FileError::header("content-length", length.to_string()));
        }
        Some(_) => {}
    }
    let length = upload::announced(head, body, BODY_BYTES_MAX)?.length;
    if length > file.length {
        return Err(FileError::header("content-length", length.to_string()));
    }
    Ok(Some(body_sums(head)?))
}

/// Whether the file may be created, before its bytes are asked for.
struct MayCreate(Replacing);

impl NodeRead for MayCreate {
    type Outcome = ();

    fn admission(&self, _: &Spot) -> Admission {
        Admission::of(RestAccess::Replace)
    }

    fn read(&self, spot: &Spot, _: &dyn Rows, now: Timestamp) -> Result<(), Halt> {
        self.0.judge(spot, now).map(|_lease| ()).map_err(refuse)
    }
}

impl NodeChange for CreateFile {
    type Outcome = ShownNode;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Replace).in_turn()
    }

    fn effect(&self) -> Effect {
        Effect::changed(Aspects::BYTES.and(Aspects::PROPERTIES))
    }

    fn announce(&self, spot: &Spot, rows: &dyn Rows) {
        create::announce(spot, &self.new, Some(&self.file), rows);
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        let first = self.body.as_ref().and_then(|received| received.staged.as_ref());
        let node = create::file(spot, &self.new, &self.file, first, rows, tick, changes)?;
        Ok(ShownNode::new(spot, node, tick.now))
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    // A signature that only lets create does not let replace.
    let (target, mut create) = parse(call.head, call.asker.caller.has(b'w'))?;
    let Some(sums) = announced(call.head, body, &create.file)? else {
        let shown = entering::commit(call, &target, create).await?;
        return Ok(shown.changed(call.head, StatusCode::CREATED));
    };
    let (spot, ()) = entering::look(call, &target, MayCreate(create.file.replacing)).await?;
    let received = receive(call, body, &Gathered::default(), &sums).await?;
    create.body = Some(received.clone());
    let shown = entering::commit_at(call, &target, Some(spot), create).await?;
    let mut answer = shown.changed(call.head, StatusCode::CREATED);
    set_sums(&mut answer, call.head, &received);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MY_LEASE, header, refusal, request as head_of};
    use auth::{Caller, Grant, GrantKind, Permissions};
    use service::{Asker, HttpService};
    use wire::http::FixedBody;

    const CREATE: [(&str, &str); 2] = [("x-ms-type", "file"), ("x-ms-content-length", "1000")];

    #[tokio::test]
    async fn a_file_of_zeros() {
        let bench = Bench::with_share().await;
        let made = bench.call("PUT", "share/File", &CREATE, b"").await.unwrap();
        assert_eq!(made.status, 201);
        for (name, value) in [
            ("x-ms-file-attributes", "Archive"),
            ("x-ms-file-parent-id", "0"),
            ("x-ms-request-server-encrypted", "true"),
        ] {
            assert_eq!(header(&made, name), Some(value), "{name}");
        }
        assert_eq!(header(&made, "x-ms-file-creation-time"), header(&made, "x-ms-file-last-write-time"));
        let told = bench.file("file").await;
        assert_eq!(header(&told, "content-length"), Some("1000"));
        assert_eq!(header(&told, "content-type"), Some("application/octet-stream"));
        assert_eq!(bench.read("file").await, vec![0; 1_000]);
        let ranges = bench.text("GET", "share/file?comp=rangelist").await;
        assert!(ranges.ends_with("<Ranges></Ranges>"), "{ranges}");
        assert_eq!(bench.names("").await, ["File"]);
    }

    #[tokio::test]
    async fn properties_as_given() {
        let bench = Bench::with_share().await;
        let headers = [
            ("x-ms-content-type", "text/plain"),
            ("x-ms-content-encoding", "gzip"),
            ("x-ms-content-language", "de"),
            ("x-ms-cache-control", "no-store"),
            ("x-ms-content-disposition", "inline"),
            ("x-ms-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
            ("x-ms-meta-Colour", "blue"),
            ("x-ms-file-attributes", "ReadOnly|System"),
            ("x-ms-file-creation-time", "2019-01-02T03:04:05.0000006Z"),
            ("x-ms-file-permission", "O:SYG:SYD:(A;;FA;;;BU)"),
        ];
        bench.call("PUT", "share/file", &[&CREATE[..], &headers].concat(), b"").await.unwrap();
        let told = bench.file("file").await;
        for (name, value) in [
            ("content-type", "text/plain"),
            ("content-encoding", "gzip"),
            ("content-language", "de"),
            ("cache-control", "no-store"),
            ("content-disposition", "inline"),
            ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
            ("x-ms-meta-colour", "blue"),
            ("x-ms-file-attributes", "ReadOnly | System | Archive"),
            ("x-ms-file-creation-time", "2019-01-02T03:04:05.0000006Z"),
            ("x-ms-type", "File"),
            ("x-ms-lease-state", "available"),
            ("x-ms-lease-status", "unlocked"),
            ("x-ms-server-encrypted", "true"),
        ] {
            assert_eq!(header(&told, name), Some(value), "{name}");
        }
        let restore = [("x-ms-file-attributes", "System"), ("x-ms-file-property-semantics", "Restore"), headers[9]];
        let made = bench.call("PUT", "share/as-given", &[&CREATE[..], &restore].concat(), b"").await.unwrap();
        assert_eq!(header(&made, "x-ms-file-attributes"), Some("System"));
    }

    /// Clients may leave `x-ms-` out. The names of the service count first.
    #[tokio::test]
    async fn four_properties_have_the_names_of_http_too() {
        let bench = Bench::with_share().await;
        let plain = [
            ("content-type", "text/plain"),
            ("content-encoding", "gzip"),
            ("content-language", "de"),
            ("cache-control", "no-store"),
        ];
        bench.call("PUT", "share/file", &[&CREATE[..], &plain].concat(), b"").await.unwrap();
        let told = bench.file("file").await;
        for (name, value) in plain {
            assert_eq!(header(&told, name), Some(value), "{name}");
        }
        let own = [("x-ms-content-type", "a/b"), ("x-ms-cache-control", "private")];
        bench.call("PUT", "share/file", &[&CREATE[..], &plain, &own].concat(), b"").await.unwrap();
        let told = bench.file("file").await;
        assert_eq!((header(&told, "content-type"), header(&told, "cache-control")), (Some("a/b"), Some("private")));
    }

    #[tokio::test]
    async fn a_file_that_is_there_is_replaced_but_keeps_its_id_and_lease() {
        let bench = Bench::with_share().await;
        bench.call("PUT", "share/file", &[&CREATE[..], &[("x-ms-meta-a", "b")]].concat(), b"").await.unwrap();
        bench.write("file", 0, b"old bytes").await;
        bench.lease("file", MY_LEASE).await;
        let before = bench.file("file").await;
        bench.advance(1).await;
        let lease = ("x-ms-lease-id", MY_LEASE);
        let made =
            bench.call("PUT", "share/FILE", &[CREATE[0], ("x-ms-content-length", "5"), lease], b"").await.unwrap();
        assert_eq!(made.status, 201);
        let after = bench.file("file").await;
        assert_eq!(header(&after, "x-ms-file-id"), header(&before, "x-ms-file-id"));
        assert_eq!((header(&after, "x-ms-lease-state"), header(&after, "x-ms-meta-a")), (Some("leased"), None));
        for name in ["etag", "x-ms-file-creation-time"] {
            assert_ne!(header(&after, name), header(&before, name), "{name}");
        }
        assert_eq!(bench.read("file").await, [0; 5]);
        assert_eq!(bench.names("").await, ["FILE"]);
        bench.call("DELETE", "share/file", &[lease], b"").await.unwrap();
        let stats = bench.text("GET", "share?restype=share&comp=stats").await;
        assert!(stats.contains("<ShareUsageBytes>0</ShareUsageBytes>"), "{stats}");
    }

    /// Older versions create files of zeros only.
    #[tokio::test]
    async fn first_bytes_have_their_version() {
        let bench = Bench::with_share().await;
        let create = async |version: &str| {
            let mut head = head_of("PUT", "share/file", &[CREATE[0], ("x-ms-content-length", "10")]);
            head.version = version.into();
            bench.send(head, &mut FixedBody::new(&b"hello"[..])).await
        };
        for version in ["2021-06-08", "2026-01-06"] {
            assert_eq!(refusal(create(version).await), FileError::header("content-length", "5"), "{version}");
        }
        assert!(bench.names("").await.is_empty());
        create("2026-02-06").await.unwrap();
        assert_eq!(bench.read("file").await, b"hello\0\0\0\0\0");
    }

    /// A body of a length that the client does not tell is not thrown away in silence.
    #[tokio::test]
    async fn a_body_without_a_length_is_refused() {
        struct Chunked(Option<&'static [u8]>);
        impl Body for Chunked {
            fn length(&self) -> Option<u64> {
                None
            }
            fn next(&mut self) -> wire::http::BoxFuture<'_, Option<Result<bytes::Bytes, wire::http::BodyError>>> {
                let piece = self.0.take();
                Box::pin(async move { piece.map(|piece| Ok(bytes::Bytes::from_static(piece))) })
            }
        }
        let bench = Bench::with_share().await;
        let chunked = [CREATE[0], CREATE[1], ("transfer-encoding", "chunked")];
        let refused = bench.send(head_of("PUT", "share/file", &chunked), &mut Chunked(Some(b"hello"))).await;
        assert_eq!(refusal(refused), RequestError::MissingContentLengthHeader.into());
        assert!(bench.names("").await.is_empty());
        // Without a body there is no length to tell.
        bench.send(head_of("PUT", "share/file", &CREATE), &mut Chunked(None)).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_with_its_first_bytes() {
        let bench = Bench::with_share().await;
        let length = ("x-ms-content-length", "10");
        let made = bench.call("PUT", "share/file", &[CREATE[0], length], b"hello").await.unwrap();
        assert_eq!(header(&made, "content-md5"), Some("XUFAKrxLKna5cZ2REBfFkg=="));
        assert_eq!(bench.read("file").await, b"hello\0\0\0\0\0");
        // Over another, with a sum that is right, and then with one that is not.
        let md5 = ("content-md5", "XUFAKrxLKna5cZ2REBfFkg==");
        bench.call("PUT", "share/file", &[CREATE[0], ("x-ms-content-length", "5"), md5], b"hello").await.unwrap();
        assert_eq!(bench.read("file").await, b"hello");
        let before = bench.figures();
        let wrong = refusal(bench.call("PUT", "share/file", &[CREATE[0], length, md5], b"hallo").await);
        assert!(matches!(wrong, FileError::Request(RequestError::Md5Mismatch { .. })), "{wrong:?}");
        let long = refusal(bench.call("PUT", "share/file", &[CREATE[0], length], b"eleven byte").await);
        assert_eq!(long, FileError::header("content-length", "11"));
        let large = FixedBody::new(vec![0; BODY_BYTES_MAX as usize + 1]);
        let head = head_of("PUT", "share/file", &[CREATE[0], ("x-ms-content-length", "99999999")]);
        let refused = refusal(bench.send(head, &mut { large }).await);
        assert_eq!(refused, RequestError::RequestBodyTooLarge { most: BODY_BYTES_MAX }.into());
        assert_eq!((bench.read("file").await.as_slice(), bench.figures()), (&b"hello"[..], before));
    }

    #[tokio::test]
    async fn lengths() {
        let bench = Bench::with_share().await;
        let create = async |version: &str, length: &str| {
            let headers = [CREATE[0], ("x-ms-content-length", length)];
            let all = [
                ("x-ms-file-attributes", "None"),
                ("x-ms-file-creation-time", "now"),
                ("x-ms-file-last-write-time", "now"),
                ("x-ms-file-permission", "inherit"),
            ];
            let mut head = head_of("PUT", "share/file", &[&headers[..], &all].concat());
            head.version = version.into();
            bench.send(head, &mut FixedBody::new(&b""[..])).await
        };
        let (new, old) = ("2020-02-10", "2019-07-07");
        assert!(create(new, "4398046511104").await.is_ok() && create(old, "1099511627776").await.is_ok());
        let range = FileError::from(RequestError::OutOfRangeInput);
        for (version, length) in
            [(new, "4398046511105"), (old, "1099511627777"), (new, "-1"), (new, "99999999999999999999")]
        {
            assert_eq!(refusal(create(version, length).await), range, "{length}");
        }
        assert_eq!(refusal(create(new, "x").await), FileError::header("x-ms-content-length", "x"));
    }

    #[tokio::test]
    async fn the_quota_holds_and_empty_files_fit_always() {
        let bench = Bench::new();
        bench.call("PUT", "share?restype=share", &[("x-ms-share-quota", "1")], b"").await.unwrap();
        let gib = 1_u64 << 30;
        bench.create("full", gib).await;
        let one = [CREATE[0], ("x-ms-content-length", "1")];
        assert_eq!(bench.refused("PUT", "share/more", &one).await, FileError::ShareSizeLimitReached);
        bench.create("empty", 0).await;
        // Its own bytes are given back first.
        bench.create("full", gib).await;
        let more = [CREATE[0], ("x-ms-content-length", "1073741825")];
        assert_eq!(bench.refused("PUT", "share/full", &more).await, FileError::ShareSizeLimitReached);
        bench.create("full", gib - 1).await;
        bench.create("more", 1).await;
        assert_eq!(bench.names("").await, ["empty", "full", "more"]);
    }

    #[tokio::test]
    async fn refusals_and_two_at_once() {
        let bench = Bench::with_share().await;
        let refused = async |headers: &[(&str, &str)]| bench.refused("PUT", "share/no/file", headers).await;
        let missing = |name| FileError::from(RequestError::MissingRequiredHeader { name });
        assert_eq!(refused(&[]).await, missing("x-ms-type"));
        assert_eq!(refused(&[("x-ms-type", "directory")]).await, FileError::header("x-ms-type", "directory"));
        assert_eq!(refused(&[CREATE[0]]).await, missing("x-ms-content-length"));
        assert_eq!(refused(&CREATE).await, FileError::ParentNotFound);
        let lease = [CREATE[0], CREATE[1], ("x-ms-lease-id", MY_LEASE)];
        let none = FileError::file_lease(concurrency::LeaseRefusal::NotPresent);
        assert_eq!(bench.refused("PUT", "share/file", &lease).await, none, "no lease on what is not there");
        let both = [&lease[..], &[("x-ms-file-permission-key", "1*2")]].concat();
        assert_eq!(bench.refused("PUT", "share/file", &both).await, none);
    }

    /// A signature for the whole account that has only the permission to create.
    fn creator() -> Caller {
        let kind = GrantKind::Account { services: Permissions::of("f"), resource_types: Permissions::of("o") };
        Caller::Sas(Grant {
            kind,
            permissions: Permissions::of("c"),
            overrides: None,
            encryption_scope: None,
            delegation: None,
        })
    }

    #[tokio::test]
    async fn who_may_create_only_may_not_replace() {
        let bench = Bench::with_share().await;
        let caller = creator();
        let asker = Asker { caller: &caller, ..Asker::OWNER };
        let create = async |body: &'static [u8]| {
            let head = head_of("PUT", "share/file", &CREATE);
            bench.service.run_for(asker, crate::Op::CreateFile, &head, 1, &mut FixedBody::new(body)).await
        };
        assert_eq!(create(b"").await.unwrap().status, 201);
        bench.lease("file", MY_LEASE).await;
        assert_eq!(refusal(create(b"").await), FileError::UnauthorizedOverwrite);
        assert_eq!(refusal(create(b"body").await), FileError::UnauthorizedOverwrite);
    }

    /// The refusal comes before the body is asked for.
    #[tokio::test]
    async fn a_body_that_is_not_wanted_is_not_read() {
        let bench = Bench::with_share().await;
        bench.mkdir("dir").await;
        let head = head_of("PUT", "share/dir", &CREATE);
        let refused = refusal(bench.send(head, &mut crate::testing::UnreadBody(5)).await);
        assert_eq!(refused, FileError::ResourceTypeMismatch);
    }
}
