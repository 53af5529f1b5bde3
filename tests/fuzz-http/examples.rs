//! One good request, or a few, for each operation that there is. The compiler names an operation that has none.

use wire::percent;

use crate::files;
use crate::harness::{Answer, Client, Service};

/// A request as a value, to be changed. Nothing in it is encoded yet.
#[derive(Clone, Debug)]
pub struct Example {
    pub verb: String,
    /// Below the account.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Example {
    /// The request line as it is sent, without what is in front of the account.
    pub fn line(&self) -> String {
        let pairs: Vec<String> = self.query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let path = self.path.split('/').map(encoded).collect::<Vec<_>>().join("/");
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        format!("{} {path}{query}", self.verb)
    }

    /// The head of the request, signed.
    pub fn head(&self, client: &Client) -> String {
        // A line end would begin another header, and not even HTTP takes the others.
        let clean =
            |text: &str| text.chars().map(|char| if char.is_control() { '?' } else { char }).collect::<String>();
        let headers: Vec<(&str, String)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), clean(value))).collect();
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        client.head(&self.line(), &headers, Some(self.body.len() as u64))
    }

    /// For people.
    pub fn show(&self, head: &str) -> String {
        format!("{head:.3000}{:.3000}", String::from_utf8_lossy(&self.body))
    }
}

fn encoded(text: &str) -> String {
    percent::encode_value(text).into_owned()
}

/// What earlier answers said, to be used in later requests: `{etag}` in an example stands for the last ETag.
#[derive(Clone, Debug, Default)]
pub struct Learned(Vec<(&'static str, String)>);

/// Where the values come from: headers, then elements.
const FROM_HEADERS: &[(&str, &str)] = &[
    ("etag", "{etag}"),
    ("x-ms-lease-id", "{lease}"),
    ("x-ms-snapshot", "{snapshot}"),
    ("x-ms-version-id", "{version}"),
    ("x-ms-copy-id", "{copy}"),
    ("x-ms-popreceipt", "{receipt}"),
    ("x-ms-file-permission-key", "{permission}"),
    ("x-ms-continuation-nextpartitionkey", "{partition}"),
    ("x-ms-continuation-nextrowkey", "{row}"),
];
const FROM_ELEMENTS: &[(&str, &str)] =
    &[("NextMarker", "{marker}"), ("PopReceipt", "{receipt}"), ("MessageId", "{message}"), ("Version", "{deleted}")];
/// Before anything was learned.
const UNKNOWN: &str = "AAAA";

impl Learned {
    pub fn learn(&mut self, answer: &Answer) {
        for (header, name) in FROM_HEADERS {
            if let Some(value) = answer.header(header) {
                self.set(name, value);
            }
        }
        let body = String::from_utf8_lossy(&answer.body);
        for (element, name) in FROM_ELEMENTS {
            let value = body.split_once(&format!("<{element}>")).and_then(|(_, rest)| rest.split_once('<'));
            if let Some((value, _)) = value.filter(|(value, _)| !value.is_empty()) {
                self.set(name, value);
            }
        }
    }

    fn set(&mut self, name: &'static str, value: &str) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.to_owned()));
    }

    /// The example with what is known in the place of the names.
    pub fn filled(&self, example: &Example) -> Example {
        let fill = |text: &str| {
            let mut text = text.to_owned();
            for (_, name) in FROM_HEADERS.iter().chain(FROM_ELEMENTS) {
                if text.contains(name) {
                    let value = self.0.iter().find(|(known, _)| known == name).map_or(UNKNOWN, |(_, value)| value);
                    text = text.replace(name, value);
                }
            }
            text
        };
        let pairs =
            |pairs: &[(String, String)]| pairs.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        Example {
            verb: example.verb.clone(),
            path: fill(&example.path),
            query: pairs(&example.query),
            headers: pairs(&example.headers),
            body: example.body.clone(),
        }
    }
}

/// `PUT cont/blob?comp=lease`, not encoded.
pub fn example(line: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Example {
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let (verb, target) = line.split_once(' ').expect("a verb and a target");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    Example {
        verb: verb.to_owned(),
        path: path.to_owned(),
        query: pairs.map(|pair| own(pair.split_once('=').expect("a name and a value"))).collect(),
        headers: headers.iter().copied().map(own).collect(),
        body: body.as_ref().to_vec(),
    }
}

/// What makes the state that the examples are about, and then the examples.
pub fn of(service: Service, client: &Client) -> Vec<Example> {
    match service {
        Service::Blob => {
            let ops = blob::Op::ALL.iter().flat_map(|op| of_blobs(*op, client));
            blobs_before().into_iter().chain(ops).collect()
        }
        Service::Queue => {
            let before = [example("PUT que", &[], ""), example("POST que/messages", &[], MESSAGE)];
            before.into_iter().chain(queue::Op::ALL.iter().flat_map(|op| of_queues(*op))).collect()
        }
        Service::Table => {
            let before = [example("POST Tables", &[JSON], r#"{"TableName":"tab"}"#), insert("1"), insert("2")];
            before.into_iter().chain(table::Op::ALL.iter().flat_map(|op| of_tables(*op))).collect()
        }
        Service::File => {
            files::before().into_iter().chain(files::all(client).into_iter().flat_map(|(_, all)| all)).collect()
        }
    }
}

/// The operations of a service, as the metrics name them.
pub fn names(service: Service, client: &Client) -> Vec<&'static str> {
    match service {
        Service::Blob => blob::Op::ALL.iter().map(|op| op.name()).collect(),
        Service::Queue => queue::Op::ALL.iter().map(|op| op.name()).collect(),
        Service::Table => table::Op::ALL.iter().map(|op| op.name()).collect(),
        Service::File => files::all(client).iter().map(|(name, _)| *name).collect(),
    }
}

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const PAGE: (&str, &str) = ("x-ms-blob-type", "PageBlob");
const APPEND: (&str, &str) = ("x-ms-blob-type", "AppendBlob");
const LENGTH: (&str, &str) = ("x-ms-blob-content-length", "2048");
const RECORDS: &str = "name,size\nann,1\nbob,22\n\"ce\"\"d\",3\n";

fn blobs_before() -> Vec<Example> {
    vec![
        example("PUT cont?restype=container", &[], ""),
        example("PUT cont/block", &[BLOCK, ("x-ms-tags", "a=b&c=d"), ("x-ms-meta-Some", "thing")], RECORDS),
        example("PUT cont/json", &[BLOCK], "{\"a\":{\"b\":[1,2]}}\n{\"a\":3}\n"),
        example("PUT cont/page", &[PAGE, LENGTH], ""),
        example("PUT cont/append", &[APPEND], ""),
    ]
}

pub const SERVICE_PROPERTIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging><Version>1.0</Version>\
    <Delete>true</Delete><Read>false</Read><Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>\
    </Logging><HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>\
    </HourMetrics><Cors><CorsRule><AllowedOrigins>http://a.example,*</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>\
    <MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>*</AllowedHeaders></CorsRule></Cors>";
const OF_BLOBS_ALONE: &str = "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>3</Days></DeleteRetentionPolicy>\
    <StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument></StaticWebsite>";
pub const END_OF_PROPERTIES: &str = "</StorageServiceProperties>";
pub const POLICIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>\
    <Start>2026-01-01T00:00:00Z</Start><Expiry>2099-01-01T00:00:00.0000000Z</Expiry><Permission>r</Permission></AccessPolicy>\
    </SignedIdentifier></SignedIdentifiers>";
pub const KEY_INFO: &str =
    "<KeyInfo><Start>2026-01-01T00:00:00Z</Start><Expiry>2026-01-02T00:00:00Z</Expiry></KeyInfo>";
pub const PREFLIGHT: &[(&str, &str)] = &[
    ("origin", "http://a.example"),
    ("access-control-request-method", "PUT"),
    ("access-control-request-headers", "x-ms-date"),
];

fn query(sql: &str, format: &str) -> Example {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueryRequest><QueryType>SQL</QueryType><Expression>{sql}</Expression>\
         <InputSerialization><Format>{format}</Format></InputSerialization></QueryRequest>"
    );
    let blob = if format.contains("json") { "json" } else { "block" };
    example(&format!("POST cont/{blob}?comp=query"), &[], body)
}

const DELIMITED: &str = "<Type>delimited</Type><DelimitedTextConfiguration><ColumnSeparator>,</ColumnSeparator><FieldQuote>\"</FieldQuote>\
    <RecordSeparator>\n</RecordSeparator><EscapeChar></EscapeChar><HasHeaders>true</HasHeaders></DelimitedTextConfiguration>";
const LINES_OF_JSON: &str =
    "<Type>json</Type><JsonTextConfiguration><RecordSeparator>\n</RecordSeparator></JsonTextConfiguration>";

fn of_blobs(op: blob::Op, client: &Client) -> Vec<Example> {
    use blob::Op;
    let source = client.url("cont/block");
    let page_source = client.url("cont/page?snapshot={snapshot}");
    let from = [("x-ms-copy-source", source.as_str())];
    let one = |line: &str, headers: &[(&str, &str)], body: &str| vec![example(line, headers, body)];
    match op {
        Op::ListContainers => {
            one("GET ?comp=list&prefix=c&marker={marker}&maxresults=2&include=metadata,deleted", &[], "")
        }
        Op::GetBlobServiceProperties => one("GET ?restype=service&comp=properties", &[], ""),
        Op::SetBlobServiceProperties => {
            let body = [SERVICE_PROPERTIES, OF_BLOBS_ALONE, END_OF_PROPERTIES].concat();
            one("PUT ?restype=service&comp=properties", &[], &body)
        }
        Op::GetBlobServiceStats => one("GET ?restype=service&comp=stats", &[], ""),
        Op::GetAccountInformation => one("HEAD cont/block?restype=account&comp=properties", &[], ""),
        Op::GetUserDelegationKey => one("POST ?restype=service&comp=userdelegationkey", &[], KEY_INFO),
        Op::PreflightBlobRequest => one("OPTIONS cont/block", PREFLIGHT, ""),
        Op::BlobBatch => {
            let part = |request: String| {
                format!("--x\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\n{request}\r\n")
            };
            let tier = client.head("PUT cont/block?comp=tier", &[("x-ms-access-tier", "Cool")], Some(0));
            let body = format!("{}{}--x--\r\n", part(tier.clone()), part(tier));
            one("POST ?comp=batch", &[("content-type", "multipart/mixed; boundary=x")], &body)
        }
        Op::FindBlobsByTags => one("GET ?comp=blobs&where=\"a\"='b' AND @container='cont'&maxresults=3", &[], ""),
        Op::FindBlobsByTagsInContainer => {
            one("GET cont?restype=container&comp=blobs&where=a>='b'&marker={marker}", &[], "")
        }
        Op::CreateContainer => {
            one("PUT other?restype=container", &[("x-ms-meta-a", "1"), ("x-ms-blob-public-access", "blob")], "")
        }
        Op::GetContainerProperties => one("HEAD cont?restype=container", &[("x-ms-lease-id", "{lease}")], ""),
        Op::GetContainerMetadata => one("GET cont?restype=container&comp=metadata", &[], ""),
        Op::SetContainerMetadata => one("PUT cont?restype=container&comp=metadata", &[("x-ms-meta-b", "2")], ""),
        Op::GetContainerAcl => one("GET cont?restype=container&comp=acl", &[], ""),
        Op::SetContainerAcl => one("PUT cont?restype=container&comp=acl", &[], POLICIES),
        Op::DeleteContainer => one("DELETE other?restype=container", &[], ""),
        Op::LeaseContainer => {
            let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")];
            one("PUT other2?restype=container&comp=lease", &acquire, "")
        }
        Op::RestoreContainer => {
            let name = [("x-ms-deleted-container-name", "other"), ("x-ms-deleted-container-version", "{deleted}")];
            one("PUT other3?restype=container&comp=undelete", &name, "")
        }
        Op::RenameContainer => {
            one("PUT cont?restype=container&comp=rename", &[("x-ms-source-container-name", "other")], "")
        }
        Op::ListBlobs => one(
            "GET cont?restype=container&comp=list&prefix=&delimiter=/&marker={marker}&maxresults=3\
             &include=snapshots,metadata,uncommittedblobs,copy,deleted,tags,versions",
            &[],
            "",
        ),
        Op::PutBlob => vec![
            example(
                "PUT cont/block",
                &[BLOCK, ("x-ms-tags", "a=b"), ("x-ms-blob-content-type", "text/csv"), ("if-match", "*")],
                RECORDS,
            ),
            example("PUT cont/page", &[PAGE, LENGTH, ("x-ms-blob-sequence-number", "5")], ""),
            example("PUT cont/append", &[APPEND, ("x-ms-legal-hold", "false")], ""),
        ],
        Op::PutBlobFromUrl => one("PUT cont/fromurl", &[from[0], BLOCK, ("x-ms-source-if-match", "{etag}")], ""),
        Op::GetBlob => one(
            "GET cont/block?snapshot={snapshot}",
            &[("x-ms-range", "bytes=2-9"), ("x-ms-range-get-content-md5", "true")],
            "",
        ),
        Op::GetBlobProperties => one("HEAD cont/block?versionid={version}", &[("if-none-match", "{etag}")], ""),
        Op::SetBlobProperties => one(
            "PUT cont/page?comp=properties",
            &[("x-ms-blob-content-length", "4096"), ("x-ms-sequence-number-action", "increment")],
            "",
        ),
        Op::GetBlobMetadata => one("GET cont/block?comp=metadata", &[], ""),
        Op::SetBlobMetadata => {
            one("PUT cont/block?comp=metadata", &[("x-ms-meta-c", "3"), ("x-ms-lease-id", "{lease}")], "")
        }
        Op::GetBlobTags => one("GET cont/block?comp=tags", &[("x-ms-if-tags", "\"a\"='b'")], ""),
        Op::SetBlobTags => {
            let tags = "<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>";
            one("PUT cont/block?comp=tags", &[], tags)
        }
        Op::LeaseBlob => ["acquire", "renew", "change", "release", "break"]
            .iter()
            .map(|action| {
                let ids =
                    [("x-ms-lease-id", "{lease}"), ("x-ms-proposed-lease-id", "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")];
                let headers =
                    [("x-ms-lease-action", *action), ("x-ms-lease-duration", "15"), ("x-ms-lease-break-period", "0")];
                example("PUT cont/json?comp=lease", &[&headers[..], &ids].concat(), "")
            })
            .collect(),
        Op::SnapshotBlob => vec![
            example("PUT cont/block?comp=snapshot", &[("x-ms-meta-d", "4")], ""),
            example("PUT cont/page?comp=snapshot", &[], ""),
        ],
        Op::CopyBlob => one("PUT cont/copy", &[from[0], ("x-ms-source-if-tags", "\"a\"='b'")], ""),
        Op::CopyBlobFromUrl => one("PUT cont/copied", &[from[0], ("x-ms-requires-sync", "true")], ""),
        Op::AbortCopyBlob => one("PUT cont/copy?comp=copy&copyid={copy}", &[("x-ms-copy-action", "abort")], ""),
        Op::IncrementalCopyBlob => {
            one("PUT cont/incremental?comp=incrementalcopy", &[("x-ms-copy-source", &page_source)], "")
        }
        Op::DeleteBlob => one("DELETE cont/copied?deletetype=permanent", &[("x-ms-delete-snapshots", "include")], ""),
        Op::UndeleteBlob => one("PUT cont/copied?comp=undelete", &[], ""),
        Op::SetBlobTier => one("PUT cont/block?comp=tier&versionid={version}", &[("x-ms-access-tier", "Cool")], ""),
        Op::SetBlobExpiry => one(
            "PUT cont/block?comp=expiry",
            &[("x-ms-expiry-option", "RelativeToNow"), ("x-ms-expiry-time", "1000")],
            "",
        ),
        Op::SetBlobImmutabilityPolicy => {
            let until = [
                ("x-ms-immutability-policy-until-date", "Sun, 15 Nov 2099 18:00:00 GMT"),
                ("x-ms-immutability-policy-mode", "unlocked"),
            ];
            one("PUT cont/json?comp=immutabilityPolicies", &until, "")
        }
        Op::DeleteBlobImmutabilityPolicy => one("DELETE cont/json?comp=immutabilityPolicies", &[], ""),
        Op::SetBlobLegalHold => one("PUT cont/json?comp=legalhold", &[("x-ms-legal-hold", "false")], ""),
        Op::QueryBlobContents => vec![
            query(
                "SELECT name, CAST(size AS INT) * 2 FROM BlobStorage WHERE size BETWEEN 1 AND 9 OR name LIKE '%b_' LIMIT 5",
                DELIMITED,
            ),
            query(
                "SELECT COUNT(*), SUM(size), AVG(size), MIN(name) FROM BlobStorage s WHERE s.size &lt;&gt; '' AND NOT name IS NULL",
                DELIMITED,
            ),
            query(
                "SELECT b[0], CASE WHEN a IS NULL THEN 1 ELSE -(2) END FROM BlobStorage[*].a.b WHERE COALESCE(1, b) IN (1, 'x')",
                LINES_OF_JSON,
            ),
            query(
                "SELECT SUBSTRING(_1, 1, 2), UPPER(TRIM(_2)), TO_TIMESTAMP('2020-01-01T00:00:00Z') FROM BlobStorage",
                DELIMITED,
            ),
        ],
        Op::PutBlock => one("PUT cont/blocks?comp=block&blockid=QUFBQQ==", &[("x-ms-content-crc64", "")], "some bytes"),
        Op::PutBlockFromUrl => {
            one("PUT cont/blocks?comp=block&blockid=QUFBQg==", &[from[0], ("x-ms-source-range", "bytes=0-3")], "")
        }
        Op::PutBlockList => {
            let list = "<BlockList><Latest>QUFBQQ==</Latest><Uncommitted>QUFBQg==</Uncommitted></BlockList>";
            one("PUT cont/blocks?comp=blocklist", &[("x-ms-blob-content-type", "a/b")], list)
        }
        Op::GetBlockList => one("GET cont/blocks?comp=blocklist&blocklisttype=all", &[], ""),
        Op::PutPage => vec![
            example(
                "PUT cont/page?comp=page",
                &[("x-ms-range", "bytes=512-1023"), ("x-ms-page-write", "update")],
                [7; 512],
            ),
            example(
                "PUT cont/page?comp=page",
                &[("x-ms-range", "bytes=0-511"), ("x-ms-page-write", "clear"), ("x-ms-if-sequence-number-le", "7")],
                "",
            ),
        ],
        Op::PutPageFromUrl => {
            let ranges =
                [("x-ms-range", "bytes=0-511"), ("x-ms-source-range", "bytes=512-1023"), ("x-ms-page-write", "update")];
            one(
                "PUT cont/page?comp=page",
                &[&ranges[..], &[("x-ms-copy-source", &client.url("cont/page"))]].concat(),
                "",
            )
        }
        Op::GetPageRanges => one(
            "GET cont/page?comp=pagelist&prevsnapshot={snapshot}&maxresults=2&marker={marker}",
            &[("x-ms-range", "bytes=0-2047")],
            "",
        ),
        Op::AppendBlock => {
            one("PUT cont/append?comp=appendblock", &[("x-ms-blob-condition-maxsize", "100000")], "more")
        }
        Op::AppendBlockFromUrl => {
            one("PUT cont/append?comp=appendblock", &[from[0], ("x-ms-source-range", "bytes=1-4")], "")
        }
        Op::AppendBlobSeal => one("PUT cont/append2?comp=seal", &[("x-ms-blob-condition-appendpos", "0")], ""),
    }
}

const MESSAGE: &str = "<QueueMessage><MessageText>aGVsbG8=</MessageText></QueueMessage>";

fn of_queues(op: queue::Op) -> Vec<Example> {
    use queue::Op;
    let one = |line: &str, headers: &[(&str, &str)], body: &str| vec![example(line, headers, body)];
    match op {
        Op::ListQueues => one("GET ?comp=list&prefix=q&marker={marker}&maxresults=2&include=metadata", &[], ""),
        Op::GetQueueServiceProperties => one("GET ?restype=service&comp=properties", &[], ""),
        Op::SetQueueServiceProperties => {
            one("PUT ?restype=service&comp=properties", &[], &[SERVICE_PROPERTIES, END_OF_PROPERTIES].concat())
        }
        Op::GetQueueServiceStats => one("GET ?restype=service&comp=stats", &[], ""),
        Op::GetUserDelegationKey => one("POST ?restype=service&comp=userdelegationkey", &[], KEY_INFO),
        Op::PreflightQueueRequest => one("OPTIONS que/messages", PREFLIGHT, ""),
        Op::CreateQueue => one("PUT que2", &[("x-ms-meta-a", "1")], ""),
        Op::DeleteQueue => one("DELETE que2", &[], ""),
        Op::GetQueueMetadata => one("GET que?comp=metadata", &[], ""),
        Op::SetQueueMetadata => one("PUT que?comp=metadata", &[("x-ms-meta-b", "2")], ""),
        Op::GetQueueAcl => one("GET que?comp=acl", &[], ""),
        Op::SetQueueAcl => one("PUT que?comp=acl", &[], POLICIES),
        Op::PutMessage => vec![
            example("POST que/messages?visibilitytimeout=0&messagettl=7", &[], MESSAGE),
            example("POST que/messages?messagettl=-1", &[], MESSAGE),
        ],
        Op::GetMessages => vec![
            example("GET que/messages?numofmessages=2&visibilitytimeout=1", &[], ""),
            example("GET que/messages?numofmessages=32&visibilitytimeout=100", &[], ""),
        ],
        Op::PeekMessages => one("GET que/messages?peekonly=true&numofmessages=32", &[], ""),
        Op::ClearMessages => one("DELETE que2/messages", &[], ""),
        Op::UpdateMessage => one("PUT que/messages/{message}?popreceipt={receipt}&visibilitytimeout=3", &[], MESSAGE),
        Op::DeleteMessage => one("DELETE que/messages/{message}?popreceipt={receipt}", &[], ""),
    }
}

const JSON: (&str, &str) = ("content-type", "application/json");
const ANY: (&str, &str) = ("if-match", "*");
const ENTITY: &str = "tab(PartitionKey='p',RowKey='1')";
const PROPERTIES: &str = r#"{"s":"text","i":5,"l@odata.type":"Edm.Int64","l":"5","d":1.5,"b":true,"t@odata.type":"Edm.DateTime",
    "t":"2026-11-15T18:00:00.1234567Z","g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833","x@odata.type":"Edm.Binary","x":"AAEC"}"#;

fn insert(row: &str) -> Example {
    example("POST tab", &[JSON], format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\",\"n\":{row}}}"))
}

fn of_tables(op: table::Op) -> Vec<Example> {
    use table::Op;
    let one = |line: &str, headers: &[(&str, &str)], body: &str| vec![example(line, headers, body)];
    let entity = |verb: &str| format!("{verb} {ENTITY}");
    match op {
        Op::GetTableServiceProperties => one("GET ?restype=service&comp=properties", &[], ""),
        Op::SetTableServiceProperties => {
            one("PUT ?restype=service&comp=properties", &[], &[SERVICE_PROPERTIES, END_OF_PROPERTIES].concat())
        }
        Op::GetTableServiceStats => one("GET ?restype=service&comp=stats", &[], ""),
        Op::PreflightTableRequest => one("OPTIONS tab", PREFLIGHT, ""),
        Op::QueryTables => {
            one("GET Tables?$filter=TableName ge 't' and not (TableName eq 'x')&$top=2&NextTableName=", &[], "")
        }
        Op::CreateTable => one("POST Tables", &[JSON, ("prefer", "return-no-content")], r#"{"TableName":"other"}"#),
        Op::DeleteTable => one("DELETE Tables('other')", &[], ""),
        Op::GetTableAcl => one("GET tab?comp=acl", &[], ""),
        Op::SetTableAcl => one("PUT tab?comp=acl", &[], POLICIES),
        Op::QueryEntities => vec![
            example(
                "GET tab()?$filter=PartitionKey eq 'p' and (n gt 0 or not b) and t lt datetime'2099-01-01T00:00:00Z'&$select=n,s&$top=1",
                &[],
                "",
            ),
            example(
                "GET tab()?NextPartitionKey={partition}&NextRowKey={row}&$top=1",
                &[("accept", "application/json;odata=fullmetadata")],
                "",
            ),
            example(&entity("GET"), &[], ""),
        ],
        Op::InsertEntity => {
            one("POST tab", &[JSON, ("prefer", "return-content")], r#"{"PartitionKey":"q","RowKey":"1","a":-0}"#)
        }
        Op::UpdateEntity => one(&entity("PUT"), &[JSON, ANY], PROPERTIES),
        Op::MergeEntity => one(&entity("MERGE"), &[JSON, ("if-match", "{etag}")], PROPERTIES),
        Op::InsertOrReplaceEntity => one(&entity("PUT"), &[JSON], PROPERTIES),
        Op::InsertOrMergeEntity => one(&entity("PATCH"), &[JSON], PROPERTIES),
        Op::DeleteEntity => one("DELETE tab(PartitionKey='q',RowKey='1')", &[ANY], ""),
        Op::EntityGroupTransaction => {
            let part = |line: &str, body: &str| {
                let kind = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary";
                format!(
                    "--c\r\n{kind}\r\n\r\n{line} HTTP/1.1\r\nContent-Type: application/json\r\nIf-Match: *\r\n\r\n{body}\r\n"
                )
            };
            let put = "PUT http://127.0.0.1/devstoreaccount1/tab(PartitionKey='p',RowKey='2')";
            let delete = "DELETE /devstoreaccount1/tab(PartitionKey='p',RowKey='3')";
            let changes = format!("{}{}--c--\r\n", part(put, PROPERTIES), part(delete, ""));
            let body = format!("--x\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{changes}--x--\r\n");
            let get = format!(
                "--x\r\nContent-Type: application/http\r\n\r\nGET /devstoreaccount1/{ENTITY} HTTP/1.1\r\n\r\n\r\n--x--\r\n"
            );
            let kind = [("content-type", "multipart/mixed; boundary=x")];
            vec![example("POST $batch", &kind, body), example("POST $batch", &kind, get)]
        }
    }
}

/// Headers that mean something to one operation or another.
pub const HEADERS: &[&str] = &[
    "accept",
    "content-type",
    "content-md5",
    "content-encoding",
    "content-language",
    "date",
    "expect",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "range",
    "origin",
    "prefer",
    "dataserviceversion",
    "maxdataserviceversion",
    "x-http-method",
    "x-http-method-override",
    "x-ms-access-tier",
    "x-ms-blob-cache-control",
    "x-ms-blob-condition-appendpos",
    "x-ms-blob-condition-maxsize",
    "x-ms-blob-content-disposition",
    "x-ms-blob-content-length",
    "x-ms-blob-content-md5",
    "x-ms-blob-content-type",
    "x-ms-blob-public-access",
    "x-ms-blob-sequence-number",
    "x-ms-blob-type",
    "x-ms-client-request-id",
    "x-ms-content-crc64",
    "x-ms-copy-action",
    "x-ms-copy-source",
    "x-ms-copy-source-authorization",
    "x-ms-copy-source-blob-properties",
    "x-ms-copy-source-tag-option",
    "x-ms-default-encryption-scope",
    "x-ms-delete-snapshots",
    "x-ms-deleted-container-name",
    "x-ms-deleted-container-version",
    "x-ms-encryption-algorithm",
    "x-ms-encryption-key",
    "x-ms-encryption-key-sha256",
    "x-ms-encryption-scope",
    "x-ms-expiry-option",
    "x-ms-expiry-time",
    "x-ms-if-sequence-number-eq",
    "x-ms-if-sequence-number-le",
    "x-ms-if-sequence-number-lt",
    "x-ms-if-tags",
    "x-ms-immutability-policy-mode",
    "x-ms-immutability-policy-until-date",
    "x-ms-lease-action",
    "x-ms-lease-break-period",
    "x-ms-lease-duration",
    "x-ms-lease-id",
    "x-ms-legal-hold",
    "x-ms-meta-",
    "x-ms-meta-a",
    "x-ms-meta-1",
    "x-ms-page-write",
    "x-ms-previous-snapshot-url",
    "x-ms-proposed-lease-id",
    "x-ms-range",
    "x-ms-range-get-content-crc64",
    "x-ms-range-get-content-md5",
    "x-ms-rehydrate-priority",
    "x-ms-rename-source",
    "x-ms-requires-sync",
    "x-ms-seal-blob",
    "x-ms-sequence-number-action",
    "x-ms-source-content-crc64",
    "x-ms-source-content-md5",
    "x-ms-source-if-match",
    "x-ms-source-if-modified-since",
    "x-ms-source-if-none-match",
    "x-ms-source-if-tags",
    "x-ms-source-if-unmodified-since",
    "x-ms-source-range",
    "x-ms-structured-body",
    "x-ms-structured-content-length",
    "x-ms-tags",
    "x-ms-version",
    "x-ms-allow-trailing-dot",
    "x-ms-content-length",
    "x-ms-content-type",
    "x-ms-deleted-share-name",
    "x-ms-deleted-share-version",
    "x-ms-destination-lease-id",
    "x-ms-file-attributes",
    "x-ms-file-change-time",
    "x-ms-file-creation-time",
    "x-ms-file-extended-info",
    "x-ms-file-last-write-time",
    "x-ms-file-permission",
    "x-ms-file-permission-format",
    "x-ms-file-permission-key",
    "x-ms-file-property-semantics",
    "x-ms-file-rename-ignore-readonly",
    "x-ms-file-rename-replace-if-exists",
    "x-ms-file-rename-source",
    "x-ms-file-request-intent",
    "x-ms-handle-id",
    "x-ms-recursive",
    "x-ms-share-quota",
    "x-ms-source-allow-trailing-dot",
    "x-ms-source-lease-id",
    "x-ms-type",
    "x-ms-write",
];

/// The same for parameters.
pub const PARAMETERS: &[&str] = &[
    "comp",
    "restype",
    "timeout",
    "api-version",
    "prefix",
    "delimiter",
    "marker",
    "maxresults",
    "include",
    "showonly",
    "startFrom",
    "where",
    "snapshot",
    "prevsnapshot",
    "sharesnapshot",
    "prevsharesnapshot",
    "versionid",
    "blockid",
    "blocklisttype",
    "copyid",
    "deletetype",
    "resource",
    "action",
    "recursive",
    "numofmessages",
    "peekonly",
    "visibilitytimeout",
    "messagettl",
    "popreceipt",
    "$filter",
    "$select",
    "$top",
    "$format",
    "$skip",
    "NextPartitionKey",
    "NextRowKey",
    "NextTableName",
    "sv",
    "ss",
    "srt",
    "sp",
    "se",
    "si",
    "sr",
    "tn",
    "sig",
    "",
];
