//! A few inputs that each decoder takes, to begin with.

/// What mutation starts from. There is always something.
#[must_use]
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let texts: &[&str] = match target {
        "request" | "sas" => &[
            "PUT cont/blob?comp=block&blockid=MDAx&timeout=30\nx-ms-blob-type: BlockBlob\nrange: bytes=0-511\nif-match: \"0x1\"\nx-ms-lease-id: 01010101-0101-0101-0101-010101010101\nx-ms-meta-a: 1\nx-ms-tags: a=b&c=d\nx-ms-if-tags: \"a\"='b'",
            "GET cont?restype=container&comp=list&prefix=a&delimiter=/&marker=x&maxresults=5&include=snapshots,metadata",
            "GET cont/blob?snapshot=2026-01-01T00:00:00.0000000Z\nx-ms-range: bytes=5-\nif-modified-since: Mon, 01 Jan 2024 00:00:00 GMT",
            "POST que/messages?visibilitytimeout=3&messagettl=-1",
            "PUT que/messages/01010101-0101-0101-0101-010101010101?popreceipt=AgAAAA==&visibilitytimeout=0",
            "MERGE tab(PartitionKey='p''q',RowKey='r')\nif-match: *",
            "GET tab()?$filter=PartitionKey%20eq%20'p'&$select=a,b&$top=5&NextPartitionKey=x",
            "GET cont/blob?sv=2021-08-06&st=2026-01-01&se=2027-01-01T00:00:00Z&sr=b&sp=racwd&sip=1.1.1.1-2.2.2.2&spr=https,http&sig=QUJD&si=policy",
            "GET ?sv=2019-02-02&ss=bqt&srt=sco&sp=rwdlacup&se=2030-01-01&sig=x%3D\nauthorization: SharedKey devstoreaccount1:QUJD\nx-ms-date: Mon, 01 Jan 2024 00:00:00 GMT",
            "GET t?sv=2019-02-02&tn=t&spk=a&epk=b&srk=c&erk=d&sp=raud&se=2030-01-01&sig=x",
            "PUT share/Dir/file?comp=range\nx-ms-write: update\nx-ms-range: bytes=510-520\nx-ms-file-last-write-time: preserve\nx-ms-lease-id: 01010101-0101-0101-0101-010101010101",
            "PUT share/dir/file\nx-ms-type: file\nx-ms-content-length: 4398046511104\nx-ms-file-attributes: ReadOnly|Hidden\nx-ms-file-creation-time: 2026-01-01T00:00:00.1234567Z\nx-ms-file-permission: O:SYG:SYD:(A;;FA;;;SY)\nx-ms-file-permission-key: 1*2",
            "PUT share/to?restype=directory&comp=rename\nx-ms-file-rename-source: http://127.0.0.1/devstoreaccount1/share/from\nx-ms-file-rename-replace-if-exists: true\nx-ms-source-allow-trailing-dot: true",
            "GET share/dir?restype=directory&comp=list&prefix=a&marker=x&maxresults=5&include=Timestamps,ETag,Attributes,PermissionKey\nx-ms-allow-trailing-dot: true",
            "GET share/dir/f?sv=2026-04-06&sr=f&sp=rcwd&se=2030-01-01&rscc=a&rsct=b&sig=x\nx-ms-file-request-intent: backup",
            "GET share?restype=share&skoid=0&sktid=0&skt=2026-01-01&ske=2026-01-02&sks=f&skv=2025-07-05&skdutid=0&sduoid=0&sv=2025-07-05&sr=s&sp=rl&se=2030-01-01&sig=x",
            "GET c/b?skoid=0&sktid=0&skt=2026-01-01&ske=2026-01-02&sks=b&skv=2020-02-10&sv=2020-02-10&sr=d&sdd=2&sp=r&se=2030-01-01&sig=x",
        ],
        "xml" => &[
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read><Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>a</AllowedHeaders></CorsRule></Cors></StorageServiceProperties>",
            "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start>2026-01-01</Start><Expiry>2027-01-01T00:00Z</Expiry><Permission>rw</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
            "<QueueMessage><MessageText>a&amp;b<![CDATA[<x>]]></MessageText></QueueMessage>",
            "<KeyInfo><Start>2026-01-01T00:00:00Z</Start><Expiry>2026-01-02T00:00:00Z</Expiry></KeyInfo>",
            "<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * from BlobStorage</Expression><InputSerialization><Format><Type>delimited</Type><DelimitedTextConfiguration><ColumnSeparator>,</ColumnSeparator><FieldQuote>\"</FieldQuote><RecordSeparator>\n</RecordSeparator><EscapeChar></EscapeChar><HasHeaders>true</HasHeaders></DelimitedTextConfiguration></Format></InputSerialization></QueryRequest>",
        ],
        "block_list" => &[
            "<?xml version=\"1.0\"?><BlockList><Latest>MDAx</Latest><Committed>MDAy</Committed><Uncommitted>MDAz</Uncommitted></BlockList>",
        ],
        "tags" => &[
            "<Tags><TagSet><Tag><Key>colour</Key><Value>red</Value></Tag><Tag><Key>a</Key><Value></Value></Tag></TagSet></Tags>",
            "colour=red&a=b%20c&d=",
        ],
        "json_entity" => &[
            "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":1,\"b\":-2.5e10,\"c\":true,\"d\":null,\"e\":\"x\\u00e9\",\"f@odata.type\":\"Edm.Int64\",\"f\":\"9223372036854775807\",\"g@odata.type\":\"Edm.Binary\",\"g\":\"QUJD\",\"h@odata.type\":\"Edm.DateTime\",\"h\":\"2026-01-01T00:00:00Z\",\"i@odata.type\":\"Edm.Guid\",\"i\":\"01010101-0101-0101-0101-010101010101\"}",
        ],
        "file_path" => &[
            "a/b/C.txt",
            "dir.../file1.../",
            "a/../b",
            "CON/lpt9/clock$",
            "ǅ\u{FB01}ſ\u{212A}İı/ẞß/σς",
            "\u{10428}\u{FFFE}\u{202E}",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/d/d/d/d",
        ],
        "security_descriptor" => &[
            "O:SYG:BAD:PAI(A;OICI;FA;;;SY)(D;ID;0x1200a9;;;S-1-5-21-1-2-3-1001)(OA;;CR;01010101-0101-0101-0101-010101010101;;WD)S:AI(AU;SAFA;FA;;;WD)",
            "O:S-1-5-32-544G:DUD:(A;;0x1301bf;;;AU)(XA;;FX;;;WD;(@User.a == \"b\"))",
            "1234567890*1234567890",
            "AQAEgBQAAAAgAAAAAAAAACwAAAABAQAAAAAABRIAAAABAQAAAAAABRIAAAACABwAAQAAAAADFAD/AR8AAQEAAAAAAAUSAAAA",
        ],
        "filter" => &[
            "PartitionKey eq 'p' and (RowKey ge 'a' and RowKey lt 'b') or not (a ne 1)",
            "a eq 1L and b gt 2.5 and c eq true and d eq datetime'2026-01-01T00:00:00Z' and e eq guid'01010101-0101-0101-0101-010101010101' and f eq X'00ff' and g eq binary'00'",
        ],
        "multipart" => &[
            "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\nPUT http://h/acct/tab(PartitionKey='p',RowKey='1') HTTP/1.1\r\nIf-Match: *\r\n\r\n{\"v\":3}\r\n--c--\r\n--b--\r\n",
            "multipart/mixed; boundary=\"batch_1\"; charset=utf-8",
        ],
        "ranges" => &[
            "bytes=0-511",
            "bytes=-5",
            "bytes=5-",
            "Mon, 01 Jan 2024 00:00:00 GMT",
            "2026-01-01T00:00:00.1234567Z",
            "{01010101-0101-0101-0101-010101010101}",
        ],
        "query_sql" => &[
            "SELECT _1, a.b[2].c AS x, COUNT(*), SUM(CAST(_2 AS INT)) FROM BlobStorage[*].p AS s WHERE (_1 LIKE 'a%!%' ESCAPE '!' AND NOT _2 BETWEEN 1 AND 2) OR _3 IN ('x', 'y') OR _4 IS NULL LIMIT 5",
            "SELECT * FROM BlobStorage WHERE TRIM(LOWER(a)) = SUBSTRING('abc', 1, 2) OR CHAR_LENGTH(b) > -1.5e3 * (2 + 3) % 4",
        ],
        "query_data" => &["a,b\n1,\"x\"\"y\"\r\n,\n", "{\"a\":1,\"b\":[1,{\"c\":null}]}\n{\"_1\":\"a\"}\n"],
        "smb_names" => &["dir\\file.txt::$DATA", "*.t?t", "<\"a>>", "A*b*c"],
        _ => &[""],
    };
    let mut corpus: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    match target {
        "blob_rows" => corpus.extend(blob::fuzzing::row_samples()),
        "file_rows" => corpus.extend(file::fuzzing::row_samples()),
        "security_descriptor" => corpus.extend(file::fuzzing::descriptor_samples()),
        "queue_rows" => corpus.extend(queue::fuzzing::row_samples()),
        "table_rows" => corpus.extend(table::fuzzing::row_samples()),
        "smb_packet" => corpus.extend(smb::fuzzing::packet_samples()),
        "smb_contexts" => corpus.extend(smb::fuzzing::context_samples()),
        "smb_info" => corpus.extend(smb::fuzzing::info_samples()),
        "smb_transform" => corpus.extend(smb::fuzzing::transform_samples()),
        "smb_ntlm" => corpus.extend(smb::fuzzing::ntlm_samples()),
        "smb_spnego" => corpus.extend(smb::fuzzing::spnego_samples()),
        "smb_rpc" => corpus.extend(smb::fuzzing::rpc_samples()),
        "log_batch" => corpus.extend(engine_embedded::fuzzing::log_batch_samples()),
        _ => {}
    }
    corpus
}
