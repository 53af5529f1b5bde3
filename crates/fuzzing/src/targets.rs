//! The decoders.

use std::sync::LazyLock;

use auth::{Account, AccountKey, Accounts, Policy, Request, Service};
use concurrency::Timestamp;
use wire::file_path::{FilePath, PathKind, TrailingDots};
use wire::multipart;
use wire::ranges::RangeHeader;
use wire::tags::Tags;
use wire::xml;

use crate::head;

/// A name, and what is done with the bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("request", request),
    ("xml", xml),
    ("json_entity", table::fuzzing::entity),
    ("filter", filter),
    ("multipart", multipart),
    ("sas", sas),
    ("ranges", ranges),
    ("file_path", file_path),
    ("security_descriptor", file::fuzzing::descriptor),
    ("block_list", block_list),
    ("tags", tags),
    ("query_sql", query_sql),
    ("query_data", query_data),
    ("blob_rows", blob::fuzzing::rows),
    ("file_rows", file::fuzzing::rows),
    ("smb_names", file::fuzzing::smb_names),
    ("queue_rows", queue::fuzzing::rows),
    ("table_rows", table::fuzzing::rows),
    ("smb_packet", smb::fuzzing::packet),
    ("smb_contexts", smb::fuzzing::contexts),
    ("smb_info", smb::fuzzing::info),
    ("smb_transform", smb::fuzzing::transform),
    ("smb_ntlm", smb::fuzzing::ntlm),
    ("smb_spnego", smb::fuzzing::spnego),
    ("smb_rpc", smb::fuzzing::rpc),
    ("log_batch", engine_embedded::fuzzing::log_batch),
];

/// Request line and head to the operation they name, in every service.
fn request(bytes: &[u8]) {
    let Some(head) = head::of(bytes) else { return };
    let _ = blob::Op::named_by(&head);
    let _ = file::Op::named_by(&head);
    let _ = queue::Op::named_by(&head);
    let _ = table::Op::named_by(&head);
    blob::fuzzing::head(&head);
    file::fuzzing::head(&head);
}

/// Every document that a request may carry.
fn xml(bytes: &[u8]) {
    let _ = xml::ServiceProperties::parse(bytes);
    let _ = xml::ServiceProperties::parse_common(bytes);
    let _ = xml::ServiceProperties::parse_for_files(bytes);
    let _ = xml::SignedIdentifiers::parse(bytes);
    let _ = xml::KeyInfo::parse(bytes);
    let _ = xml::QueryRequest::parse(bytes);
    let _ = xml::parse_queue_message(bytes);
}

fn block_list(bytes: &[u8]) {
    let _ = xml::parse_block_list(bytes);
}

fn filter(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        table::fuzzing::filter(text);
    }
}

/// The body of a batch: parts of parts, and the requests in them.
fn multipart(bytes: &[u8]) {
    for part in multipart::parts(bytes, "b", 100).unwrap_or_default() {
        for inner in multipart::parts(part.content, "c", 100).unwrap_or_default() {
            let _ = multipart::request(inner.content);
        }
        let _ = multipart::request(part.content);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = multipart::boundary(text);
    }
}

/// Who calls: signatures in the query and in the header, of every service.
fn sas(bytes: &[u8]) {
    static ACCOUNTS: LazyLock<Accounts> = LazyLock::new(|| {
        let key = AccountKey::from_base64("a2V5IG9mIHRoZSBmdXp6ZXI=").expect("a key");
        Accounts::new([Account::new("devstoreaccount1", vec![key])])
    });
    let Some(head) = head::of(bytes) else { return };
    for service in [Service::Blob, Service::Queue, Service::Table, Service::File] {
        let request = Request {
            service,
            method: head.method.as_str(),
            account: &head.account,
            path_style: true,
            path: &head.raw_path,
            query: head.query.pairs(),
            headers: &head.headers,
            https: false,
            peer: None,
        };
        let _ = auth::policy_named(&request);
        let _ = auth::identify(&request, &ACCOUNTS, Timestamp(0x8DE_0000_0000_0000), |_| None::<Policy>);
    }
}

fn ranges(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).ok();
    let _ = RangeHeader::parse(text);
    if let Some(text) = text {
        let _ = wire::dates::parse_http_date(text);
        let _ = wire::dates::parse_iso(text);
        let _ = wire::dates::parse_iso_ticks(text);
        let _ = concurrency::LeaseId::parse(text);
        let _ = wire::base64::decode(text);
    }
}

/// Paths of files: what is taken for one keeps its spelling, and is within every directory above it.
fn file_path(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for kind in [PathKind::File, PathKind::Directory] {
        for dots in [TrailingDots::Strip, TrailingDots::Keep] {
            let Ok(path) = FilePath::parse(text, kind, dots) else { continue };
            let again = FilePath::parse(&path.to_string(), kind, dots);
            assert_eq!(again.as_ref(), Ok(&path), "a path that was taken is taken again");
            for name in path.names() {
                let folded = name.folded();
                assert_eq!(wire::fold::fold(folded.as_str()), folded.as_str(), "folding is done once");
            }
            let mut above = Some(path.clone());
            while let Some(directory) = above {
                assert!(path.is_within(&directory));
                above = directory.split_last().map(|(parent, _)| parent);
            }
        }
    }
}

fn tags(bytes: &[u8]) {
    let _ = Tags::parse_xml(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Tags::parse_header(text);
    }
}

fn query_sql(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        run_query(text, b"a,b\n1,2\n\"x\"\"y\",\n", b"{\"a\":1,\"b\":[1,{\"c\":null}]}\n");
    }
}

fn query_data(bytes: &[u8]) {
    run_query("SELECT _1, COUNT(*) FROM BlobStorage WHERE _1 LIKE '%a%' OR _2 > 1", bytes, bytes);
    run_query("SELECT * FROM BlobStorage[*].b[*] AS s", bytes, bytes);
}

fn run_query(text: &str, delimited: &[u8], json: &[u8]) {
    let Ok(query) = query::Query::parse(text) else { return };
    let form = query::Delimited::default;
    for (input, mut data) in [(query::Input::Delimited(form()), delimited), (query::Input::Json, json)] {
        let mut out = Vec::new();
        let output = query::Output::Delimited(form());
        let mut run = query::Run::begin(query.clone(), input, output, data.len() as u64, [7; 16], &mut out);
        while !data.is_empty() && !run.is_over() {
            let before = data.len();
            run.push(&mut data, &mut out);
            assert!(data.len() < before || run.is_over(), "a query stands still");
        }
        run.finish(&mut out);
    }
}
