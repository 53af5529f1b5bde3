//! What the tests begin with: a server, a container, a client, and leases in every state.

use crate::harness::{ACCOUNT, Answer, Client, Headers, Server};

/// The id that holds or held the lease, and two others.
pub const A: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
pub const B: &str = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb";
pub const C: &str = "cccccccc-cccc-cccc-cccc-cccccccccccc";

pub const LEASE_STATES: [&str; 5] = ["available", "leased", "breaking", "broken", "expired"];

pub const APPEND_BLOB: (&str, &str) = ("x-ms-blob-type", "AppendBlob");
pub const PAGE_BLOB: (&str, &str) = ("x-ms-blob-type", "PageBlob");
pub const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

pub struct Stage {
    pub server: Server,
    pub client: Client,
}

impl Stage {
    /// A server with the container `cont`.
    pub fn new() -> Stage {
        Stage::on(Server::start())
    }

    /// The same, with lines of the account in the configuration file.
    pub fn with_settings(settings: &str) -> Stage {
        Stage::on(Server::with_settings(settings))
    }

    fn on(server: Server) -> Stage {
        let client = server.client();
        let stage = Stage { server, client };
        stage.call("PUT cont?restype=container", &[], "").ok();
        stage
    }

    pub fn call(&self, line: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Answer {
        self.client.call(line, headers, body)
    }

    pub fn get(&self, target: &str) -> Answer {
        self.call(&format!("GET {target}"), &[], "")
    }

    pub fn head(&self, target: &str) -> Answer {
        self.call(&format!("HEAD {target}"), &[], "")
    }

    /// Puts a blob, and goes on only if it worked.
    #[track_caller]
    pub fn put(&self, blob: &str, content: impl AsRef<[u8]>) -> Answer {
        self.call(&format!("PUT {blob}"), &[BLOCK_BLOB], content).ok()
    }

    /// The same as an append blob, its content in one block.
    #[track_caller]
    pub fn put_append(&self, blob: &str, content: impl AsRef<[u8]>) -> Answer {
        self.call(&format!("PUT {blob}"), &[APPEND_BLOB], "").ok();
        self.call(&format!("PUT {blob}?comp=appendblock"), &[], content).ok()
    }

    /// A page blob of zeros.
    #[track_caller]
    pub fn put_pages(&self, blob: &str, length: u64) -> Answer {
        let length = length.to_string();
        self.call(&format!("PUT {blob}"), &[PAGE_BLOB, ("x-ms-blob-content-length", &length)], "").ok()
    }

    /// Has the server take something from a URL.
    pub fn take(&self, line: &str, url: &str, headers: Headers<'_>) -> Answer {
        self.call(line, &[&[("x-ms-copy-source", url)], headers].concat(), "")
    }

    /// Where a blob of this server is, with a signature that allows to read it.
    pub fn readable(&self, blob: &str) -> String {
        self.signed(blob, "r", "2099-01-01T00:00:00Z")
    }

    /// The same with any permissions, until then.
    pub fn signed(&self, blob: &str, permissions: &str, end: &str) -> String {
        let path = blob.split('?').next().unwrap_or_default();
        self.signed_for(blob, ("b", path), permissions, end)
    }

    /// The same with a signature for all of its container.
    pub fn signed_by_container(&self, blob: &str, permissions: &str, end: &str) -> String {
        let container = blob.split('/').next().unwrap_or_default();
        self.signed_for(blob, ("c", container), permissions, end)
    }

    fn signed_for(&self, blob: &str, (kind, resource): (&str, &str), permissions: &str, end: &str) -> String {
        const VERSION: &str = "2020-12-06";
        let (path, query) =
            blob.split_once('?').map_or((blob, String::new()), |(path, query)| (path, format!("&{query}")));
        let resource = format!("/blob/{ACCOUNT}/{resource}");
        let fields = format!("{permissions}\n\n{end}\n{resource}\n\n\n\n{VERSION}\n{kind}\n\n\n\n\n\n\n");
        let signature = percent(&self.client.sign(&fields));
        self.client.url(&format!("{path}?sv={VERSION}&sr={kind}&sp={permissions}&se={end}&sig={signature}{query}"))
    }

    /// Writes something that has nothing to do with the test, so that the server has work and a reason to tidy up.
    pub fn put_elsewhere(&self) {
        let _ = self.call("PUT elsewhere?restype=container", &[], "");
        for count in 0..4 {
            self.put(&format!("elsewhere/{count}"), vec![count; 1 << 20]);
        }
    }

    #[track_caller]
    pub fn put_block(&self, blob: &str, id: &str, content: impl AsRef<[u8]>) -> Answer {
        self.call(&format!("PUT {blob}?comp=block&blockid={}", percent(id)), &[], content).ok()
    }

    /// Lease calls on a blob (`cont/blob`) or a container (`cont?restype=container`).
    pub fn lease(&self, target: &str, headers: Headers<'_>) -> Answer {
        self.call(&format!("PUT {}", with_comp(target, "lease")), headers, "")
    }

    #[track_caller]
    pub fn acquire(&self, target: &str, id: &str, duration: &str) {
        let headers =
            [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", duration), ("x-ms-proposed-lease-id", id)];
        self.lease(target, &headers).ok();
    }

    #[track_caller]
    pub fn break_lease(&self, target: &str, period: &str) {
        self.lease(target, &[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", period)]).ok();
    }

    /// Takes the lease of something unleased into a state, with A as the id it remembers.
    #[track_caller]
    pub fn bring_lease(&self, target: &str, state: &str) {
        match state {
            "available" => {}
            "leased" => self.acquire(target, A, "-1"),
            "breaking" => {
                self.acquire(target, A, "-1");
                self.break_lease(target, "60");
            }
            "broken" => {
                self.acquire(target, A, "-1");
                self.break_lease(target, "0");
            }
            "expired" => {
                self.acquire(target, A, "15");
                self.server.advance(16);
            }
            other => panic!("no lease is {other}"),
        }
        assert_eq!(self.lease_state(target), state);
    }

    #[track_caller]
    pub fn lease_state(&self, target: &str) -> String {
        self.head(target).ok().header("x-ms-lease-state").expect("a lease state").to_owned()
    }

    /// Everything a client can find out about the blob `cont/blob` and its container, so that a test can tell whether a
    /// refused request has changed anything.
    pub fn everything(&self) -> Vec<String> {
        let targets = [
            "?comp=list&include=metadata",
            "cont?restype=container",
            "cont?restype=container&comp=acl",
            "cont?restype=container&comp=list&include=metadata,snapshots,uncommittedblobs",
            "cont/blob",
            "cont/blob?comp=blocklist&blocklisttype=all",
        ];
        targets.iter().map(|target| told(&self.get(target))).collect()
    }
}

/// An answer as text, without what differs from one to the next.
fn told(answer: &Answer) -> String {
    if !answer.is_success() {
        return answer.said();
    }
    let headers = answer.headers.iter().filter(|(name, _)| name != "date" && name != "x-ms-request-id");
    let headers: Vec<String> = headers.map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{} {} {}", answer.status, headers.join(", "), String::from_utf8_lossy(&answer.body))
}

/// Appends `comp=` to a target with or without a query.
pub fn with_comp(target: &str, comp: &str) -> String {
    let joint = if target.contains('?') { '&' } else { '?' };
    format!("{target}{joint}comp={comp}")
}

/// Percent-encodes everything but letters and digits.
pub fn percent(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

/// The body of a Put Block List: ids with the element they stand in.
pub fn block_list(blocks: &[(&str, &str)]) -> String {
    let items: String = blocks.iter().map(|(kind, id)| format!("<{kind}>{id}</{kind}>")).collect();
    format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{items}</BlockList>")
}
