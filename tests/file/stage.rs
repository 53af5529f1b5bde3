//! What the tests begin with: a server, a share, a client; files and directories, and leases in every state.

use crate::harness::{Answer, Client, Element, Headers, Server, Service};

/// The id that holds or held the lease, and two others.
pub const A: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
pub const B: &str = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb";
pub const C: &str = "cccccccc-cccc-cccc-cccc-cccccccccccc";

pub const FILE: (&str, &str) = ("x-ms-type", "file");
pub const UPDATE: (&str, &str) = ("x-ms-write", "update");
pub const CLEAR: (&str, &str) = ("x-ms-write", "clear");
pub const LENGTH: &str = "x-ms-content-length";
pub const SOURCE: &str = "x-ms-file-rename-source";
pub const EVERYTHING: &str = "include=Timestamps,ETag,Attributes,PermissionKey";

pub const KIB: u64 = 1024;
pub const MIB: u64 = 1024 * KIB;
pub const GIB: u64 = 1024 * MIB;
pub const TIB: u64 = 1024 * GIB;

/// The share that every stage has.
pub const SHARE: &str = "share?restype=share";

pub struct Stage {
    pub server: Server,
    pub client: Client,
}

impl Stage {
    /// A server with the share `share`.
    pub fn new() -> Stage {
        let stage = Stage::empty();
        stage.make_share("share");
        stage
    }

    /// A server without a share.
    pub fn empty() -> Stage {
        let server = Server::serving(Service::File);
        let client = server.client();
        Stage { server, client }
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

    pub fn delete(&self, target: &str) -> Answer {
        self.call(&format!("DELETE {target}"), &[], "")
    }

    #[track_caller]
    pub fn make_share(&self, name: &str) -> Answer {
        self.call(&format!("PUT {name}?restype=share"), &[], "").ok()
    }

    #[track_caller]
    pub fn make_directory(&self, path: &str) -> Answer {
        self.call(&format!("PUT {}", directory(path)), &[], "").ok()
    }

    /// A file of zeros.
    #[track_caller]
    pub fn make_file(&self, path: &str, length: u64) -> Answer {
        self.create_file(path, length, &[]).ok()
    }

    pub fn create_file(&self, path: &str, length: u64, headers: Headers<'_>) -> Answer {
        let length = length.to_string();
        self.call(&format!("PUT {path}"), &[&[FILE, (LENGTH, length.as_str())], headers].concat(), "")
    }

    /// A file with a content: made, then written.
    #[track_caller]
    pub fn put_file(&self, path: &str, content: impl AsRef<[u8]>) -> Answer {
        let content = content.as_ref();
        let made = self.make_file(path, content.len() as u64);
        if content.is_empty() { made } else { self.write(path, 0, content) }
    }

    #[track_caller]
    pub fn write(&self, path: &str, offset: u64, content: impl AsRef<[u8]>) -> Answer {
        self.put_range(path, offset, content, &[]).ok()
    }

    pub fn put_range(&self, path: &str, offset: u64, content: impl AsRef<[u8]>, headers: Headers<'_>) -> Answer {
        let content = content.as_ref();
        let range = format!("bytes={offset}-{}", offset + content.len() as u64 - 1);
        self.call(
            &format!("PUT {path}?comp=range"),
            &[&[UPDATE, ("x-ms-range", range.as_str())], headers].concat(),
            content,
        )
    }

    /// Clears from the first byte to the last one.
    pub fn clear(&self, path: &str, first: u64, last: u64) -> Answer {
        let range = format!("bytes={first}-{last}");
        self.call(&format!("PUT {path}?comp=range"), &[CLEAR, ("x-ms-range", &range)], "")
    }

    pub fn resize(&self, path: &str, length: u64) -> Answer {
        self.call(&format!("PUT {path}?comp=properties"), &[(LENGTH, &length.to_string())], "")
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> Vec<u8> {
        self.get(path).ok().body
    }

    /// A part of a file, from the first byte to the last one.
    #[track_caller]
    pub fn read_range(&self, path: &str, first: u64, last: u64) -> Vec<u8> {
        let range = format!("bytes={first}-{last}");
        self.call(&format!("GET {path}"), &[("x-ms-range", &range)], "").ok().body
    }

    /// What List Ranges says: `0-511 1024-1535`.
    #[track_caller]
    pub fn ranges(&self, path: &str) -> String {
        ranges(&self.get(&format!("{path}?comp=rangelist")).ok().xml())
    }

    pub fn rename_file(&self, from: &str, to: &str, headers: Headers<'_>) -> Answer {
        let source = self.client.url(from);
        self.call(&format!("PUT {to}?comp=rename"), &[&[(SOURCE, source.as_str())], headers].concat(), "")
    }

    pub fn rename_directory(&self, from: &str, to: &str, headers: Headers<'_>) -> Answer {
        let source = self.client.url(from);
        let line = format!("PUT {to}?restype=directory&comp=rename");
        self.call(&line, &[&[(SOURCE, source.as_str())], headers].concat(), "")
    }

    /// The entries of a directory, in the order of the listing.
    #[track_caller]
    pub fn list(&self, path: &str, query: &str) -> Vec<Element> {
        let page = self.get(&format!("{}&comp=list&{query}", directory(path))).ok().xml();
        page.all("Entries").to_vec()
    }

    /// Their names: `a b dir/`, directories with a slash.
    #[track_caller]
    pub fn names(&self, path: &str) -> String {
        names(&self.list(path, ""))
    }

    /// How many bytes the share counts.
    #[track_caller]
    pub fn usage(&self, share: &str) -> u64 {
        let stats = self.get(&format!("{share}?restype=share&comp=stats")).ok().xml();
        stats.text_of("ShareUsageBytes").expect("a usage").parse().expect("a number")
    }

    /// Sets lines of the properties of the service.
    #[track_caller]
    pub fn set_service(&self, inside: &str) {
        let document = format!("<StorageServiceProperties>{inside}</StorageServiceProperties>");
        assert_eq!(self.call("PUT ?restype=service&comp=properties", &[], document).said(), "202");
    }

    /// From now on deleted shares are kept for so many days.
    #[track_caller]
    pub fn keep_deleted(&self, days: u32) {
        self.set_service(&format!(
            "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></ShareDeleteRetentionPolicy>"
        ));
    }

    /// Lease calls on a file (`share/file`) or a share (`share?restype=share`).
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

    /// Takes the lease of something unleased into a state, with A as the id it remembers. Files know three of them.
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

    /// An action in a few words: `acquire A`, `change A B`, `break 10`. Without more being said a lease is acquired for
    /// `duration`.
    pub fn act(&self, target: &str, action: &str, duration: &str) -> Answer {
        let id = |name: &&str| match *name {
            "A" => A,
            "B" => B,
            "C" => C,
            other => panic!("no id is called {other}"),
        };
        let words: Vec<&str> = action.split(' ').collect();
        let mut headers = vec![("x-ms-lease-action", words[0])];
        match &words[..] {
            ["acquire", proposed @ ..] => {
                headers.push(("x-ms-lease-duration", duration));
                headers.extend(proposed.iter().map(|name| ("x-ms-proposed-lease-id", id(name))));
            }
            ["renew" | "release", name] => headers.push(("x-ms-lease-id", id(name))),
            ["change", from, to] => {
                headers.extend([("x-ms-lease-id", id(from)), ("x-ms-proposed-lease-id", id(to))]);
            }
            ["break", period @ ..] => headers.extend(period.iter().map(|period| ("x-ms-lease-break-period", *period))),
            _ => panic!("no such action: {action}"),
        }
        self.lease(target, &headers)
    }

    /// What became of a lease: for a success the status, the state, and who holds it or how many seconds a break takes.
    /// X is an id that the server made.
    pub fn outcome(&self, target: &str, answer: &Answer, expected: &str) -> String {
        if !answer.is_success() {
            return answer.said();
        }
        let after = self.head(target);
        let state = after.header("x-ms-lease-state").unwrap_or("none");
        if let Some(told) = answer.header("x-ms-lease-time") {
            return format!("{} {state} {}", answer.status, about(told, expected));
        }
        let Some(id) = answer.header("x-ms-lease-id").filter(|_| state != "available") else {
            return format!("{} {state}", answer.status);
        };
        let known = [(A, "A"), (B, "B"), (C, "C")].into_iter().find(|(known, _)| *known == id);
        let holder = known.map_or("X", |(_, name)| name);
        // Only its holder may name a lease.
        let holds = self.call(&format!("HEAD {target}"), &[("x-ms-lease-id", id)], "");
        let is_consistent = holds.status == 200
            && after.header("x-ms-lease-status") == Some("locked")
            && after.header("x-ms-lease-duration").is_some();
        if is_consistent { format!("{} {state} {holder}", answer.status) } else { format!("{holds:?} {after:?}") }
    }

    /// Everything a client can find out about the share, its directory `dir` and its file `file`, so that a test can tell
    /// whether a refused request has changed anything.
    pub fn everything(&self) -> Vec<String> {
        let targets = [
            "?comp=list&include=metadata",
            "share?restype=share",
            "share?restype=share&comp=acl",
            "share?restype=share&comp=stats",
            &format!("share?restype=directory&comp=list&{EVERYTHING}"),
            "share?restype=directory",
            "share/dir?restype=directory",
            &format!("share/dir?restype=directory&comp=list&{EVERYTHING}"),
            "share/file",
            "share/file?comp=rangelist",
        ];
        targets.iter().map(|target| told(&self.get(target))).collect()
    }
}

/// An answer as text, without what differs from one to the next.
pub fn told(answer: &Answer) -> String {
    if !answer.is_success() {
        return answer.said();
    }
    let headers = answer.headers.iter().filter(|(name, _)| name != "date" && name != "x-ms-request-id");
    let headers: Vec<String> = headers.map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{} {} {}", answer.status, headers.join(", "), String::from_utf8_lossy(&answer.body))
}

/// Time does not stand still during a test: a second or two less is as good.
fn about(told: &str, expected: &str) -> String {
    let wanted: u64 = expected.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    match told.parse::<u64>() {
        Ok(seconds) if seconds <= wanted && seconds + 2 >= wanted => wanted.to_string(),
        _ => told.to_owned(),
    }
}

/// The target of a directory: `share/dir?restype=directory`.
pub fn directory(path: &str) -> String {
    format!("{path}?restype=directory")
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

/// The ranges of a list, the cleared ones with an exclamation mark.
pub fn ranges(list: &Element) -> String {
    assert_eq!(list.name, "Ranges");
    let shown = |range: &Element| {
        let mark = match range.name.as_str() {
            "Range" => "",
            "ClearRange" => "!",
            other => panic!("{other} among ranges"),
        };
        let text = |name: &str| range.text_of(name).expect("a number");
        format!("{mark}{}-{}", text("Start"), text("End"))
    };
    list.children.iter().filter(|child| child.name != "NextMarker").map(shown).collect::<Vec<_>>().join(" ")
}

/// The names of entries, directories with a slash.
pub fn names(entries: &[Element]) -> String {
    let shown = |entry: &Element| match entry.name.as_str() {
        "File" => name_of(entry),
        "Directory" => format!("{}/", name_of(entry)),
        other => panic!("{other} among entries"),
    };
    entries.iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// The name of an entry, whatever XML can say.
pub fn name_of(entry: &Element) -> String {
    let name = entry.find("Name").expect("a name");
    match name.attribute("Encoded") {
        None | Some("false") => name.text.clone(),
        Some("true") => wire::percent::decode_path(&name.text).expect("percent-encoded").into_owned(),
        Some(other) => panic!("Encoded={other}"),
    }
}

/// The attributes of an answer, in an order of their own.
pub fn attributes(text: Option<&str>) -> String {
    let mut words: Vec<&str> = text.unwrap_or("nothing").split('|').map(str::trim).collect();
    words.sort_unstable();
    words.join(" ")
}

/// Bytes that tell where they are.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_be_bytes());
    }
    bytes.truncate(length);
    bytes
}
