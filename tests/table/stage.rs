//! What the tests begin with: a server, a table, a client.

use crate::harness::{Answer, Client, Headers, Server, Service};

pub const VERSION: (&str, &str) = ("x-ms-version", "2019-02-02");
pub const JSON: (&str, &str) = ("content-type", "application/json");
pub const ANY: (&str, &str) = ("if-match", "*");
pub const STALE: (&str, &str) = ("if-match", "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"");

pub struct Stage {
    pub server: Server,
    pub client: Client,
}

impl Stage {
    /// A server with the table `tab`.
    pub fn new() -> Stage {
        let server = Server::serving(Service::Table);
        let client = server.client();
        let stage = Stage { server, client };
        stage.call("POST Tables", &[], r#"{"TableName":"tab"}"#).ok();
        stage
    }

    pub fn call(&self, line: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Answer {
        call(&self.client, line, headers, body)
    }

    pub fn get(&self, target: &str) -> Answer {
        self.call(&format!("GET {target}"), &[], "")
    }

    /// Inserts an entity with more members than its keys.
    #[track_caller]
    pub fn insert(&self, partition: &str, row: &str, more: &str) -> Answer {
        let body = format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"{more}}}");
        self.call("POST tab", &[], body).ok()
    }

    /// Sends one change set and takes its answer apart.
    pub fn transact(&self, operations: &[Operation<'_>]) -> Vec<Part> {
        transact(&self.client, operations).expect("an answer")
    }
}

pub fn call(client: &Client, line: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Answer {
    client.call(line, &with_usual(headers), body)
}

fn with_usual<'a>(headers: Headers<'a>) -> Vec<(&'a str, &'a str)> {
    let mut all = headers.to_vec();
    for usual in [VERSION, JSON] {
        if !all.iter().any(|(name, _)| *name == usual.0) {
            all.push(usual);
        }
    }
    all
}

/// A request line, headers and body inside a change set.
pub type Operation<'a> = (&'a str, Headers<'a>, &'a str);

/// What one operation of a change set was answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Part {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The status, and the error code if there is one.
    pub fn said(&self) -> String {
        if self.status < 300 {
            return self.status.to_string();
        }
        let error: serde_json::Value = serde_json::from_str(self.body.trim()).expect("a refusal in JSON");
        format!("{} {}", self.status, error["odata.error"]["code"].as_str().expect("a code"))
    }
}

/// The body of a change set as clients write it.
pub fn change_set(operations: &[Operation<'_>]) -> String {
    let mut body = "--batch_x\r\nContent-Type: multipart/mixed; boundary=changeset_x\r\n\r\n".to_owned();
    for (line, headers, json) in operations {
        let (verb, target) = line.split_once(' ').expect("a verb and a target");
        let line = format!("{verb} http://127.0.0.1/devstoreaccount1/{target} HTTP/1.1");
        body += "--changeset_x\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        body += &format!("{line}\r\nContent-Type: application/json\r\n");
        for (name, value) in *headers {
            body += &format!("{name}: {value}\r\n");
        }
        body += &format!("\r\n{json}\r\n");
    }
    body + "--changeset_x--\r\n--batch_x--\r\n"
}

pub const BATCH: [(&str, &str); 2] = [VERSION, ("content-type", "multipart/mixed; boundary=batch_x")];

/// Sends a change set; `None` when the server goes away before the answer is there.
pub fn transact(client: &Client, operations: &[Operation<'_>]) -> Option<Vec<Part>> {
    let answer = client.try_call("POST $batch", &BATCH, change_set(operations)).ok()?;
    if answer.status != 202 {
        assert_eq!(answer.status, 503, "{} {}", answer.said(), String::from_utf8_lossy(&answer.body));
        return None;
    }
    Some(parts(&answer))
}

/// The answers inside an answer.
pub fn parts(answer: &Answer) -> Vec<Part> {
    let text = String::from_utf8(answer.body.clone()).expect("text");
    let parts = text.split("Content-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 ").skip(1);
    parts.map(part).collect()
}

fn part(text: &str) -> Part {
    let (head, rest) = text.split_once("\r\n\r\n").expect("an empty line");
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.get(..3)?.parse().ok()).expect("a status");
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").expect("a header");
        (name.to_owned(), value.to_owned())
    };
    let body = rest.split("\r\n--").next().expect("a delimiter").to_owned();
    Part { status, headers: lines.map(header).collect(), body }
}

/// A signature for the table `tab`, as the end of a URL. The fields are given as they stand there, but not encoded.
pub fn signature(client: &Client, fields: &[(&str, &str)]) -> String {
    let all = [&[("tn", "tab"), ("sv", "2019-02-02"), ("se", "2099-01-01T00:00:00Z")], fields].concat();
    let of = |name: &str| all.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
    let has_policy = !of("si").is_empty();
    let expiry = if has_policy { "" } else { of("se") };
    let lines = [
        of("sp"),
        of("st"),
        expiry,
        "/table/devstoreaccount1/tab",
        of("si"),
        of("sip"),
        of("spr"),
        of("sv"),
        of("spk"),
        of("srk"),
        of("epk"),
        of("erk"),
    ];
    let sent = all.iter().filter(|(name, _)| *name != "se" || !has_policy);
    let mut query: Vec<String> =
        sent.map(|(name, value)| format!("{name}={}", wire::percent::encode_value(value))).collect();
    query.push(format!("sig={}", wire::percent::encode_value(&client.sign(&lines.join("\n")))));
    query.join("&")
}

/// Sends a request that carries its signature in the URL.
pub fn call_signed(client: &Client, line: &str, headers: Headers<'_>, body: &str) -> Answer {
    let mut headers = headers.to_vec();
    let length = body.len().to_string();
    headers.push(("content-length", &length));
    let head = client.unsigned_head(line, &headers);
    client.call_odd(line, &head, body.as_bytes())
}
