//! From a good request to one that nobody would send.

use crate::examples::{Example, HEADERS, PARAMETERS};
use crate::expressions::{ODATA, SQL, TAGS};
use crate::random::Random;

/// The most that is changed in one request.
const CHANGES_MAX: usize = 4;
/// How far a body is made to grow.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// How often something is repeated in it at most.
const REPEATS_MAX: usize = 3_000;
/// Longer targets and headers are refused before anybody looks at them.
const VALUE_BYTES_MAX: usize = 4_000;
/// Expressions come close to what a head may have. They are ASCII, so they can be cut anywhere.
const EXPRESSION_BYTES_MAX: usize = 12_000;

/// Words that mean something to one parser or another.
const WORDS: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "-0",
    "00",
    "+5",
    "1e9",
    "4294967296",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999",
    "true",
    "false",
    "null",
    "NaN",
    "*",
    "**",
    "\"",
    "\"\"",
    "'",
    "''",
    "''''",
    "W/\"\"",
    "\"0x8D\"",
    ",",
    ",,",
    ";",
    "a,b",
    "%",
    "%00",
    "\t",
    " ",
    "x",
    "ä",
    "語",
    "😀",
    "\u{feff}",
    "..",
    "../..",
    "/",
    "//",
    "\\",
    "?",
    "#",
    "&",
    "=",
    "<",
    ">",
    "&lt;",
    "]]>",
    "bytes=0-",
    "bytes=-1",
    "bytes=5-2",
    "bytes=0-18446744073709551615",
    "bytes=0-0,2-3",
    "bytes=512-1023",
    "Sun, 15 Nov 2026 18:00:00 GMT",
    "Sunday, 15-Nov-26 18:00:00 GMT",
    "Sun, 99 Foo 0000 99:99:99 GMT",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.9999999Z",
    "2026-11-15T18:00:00.0000000Z",
    "2009-09-19",
    "2015-02-21",
    "2099-01-01",
    "1!0!",
    "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa",
    "{aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa}",
    "AAAA",
    "AAAAAAAAAAA=",
    "1B2M2Y8AsgTpgAmY7PhCfg==",
    "BlockBlob",
    "PageBlob",
    "AppendBlob",
    "Archive",
    "P80",
    "acquire",
    "break",
    "renew",
    "change",
    "release",
    "update",
    "clear",
    "increment",
    "include",
    "only",
    "permanent",
    "all",
    "uncommitted",
    "container",
    "blob",
    "XSM/1.0; properties=crc64",
    "multipart/mixed; boundary=",
    "multipart/mixed; boundary=x",
    "application/json;odata=fullmetadata",
    "application/atom+xml",
    "return-no-content",
    "MERGE",
    "http://127.0.0.1:1/",
    "http://[::1]/a/b/c",
    "file:///etc/passwd",
    "https://a.blob.core.windows.net/c/b?sv=1&sig=x",
    "PartitionKey eq 'a' and RowKey eq 'b'",
    "not (a eq 1L or b gt datetime'2020-01-01')",
    "a=b",
    "\"a\"='b' AND \"c\">='d'",
    "@container = 'cont' AND a = 'b'",
    "a eq guid'x'",
    "X'00'",
    "1 eq 1",
    "SELECT * from BlobStorage",
    "_1",
    "LIKE '%%%a%%%' ESCAPE 'b'",
    "4398046511104",
    "bytes=4398046511103-4398046511103",
    "ReadOnly|Hidden|System|Directory",
    "None",
    "preserve",
    "inherit",
    "1459396823544571282*13609941760923454748",
    "O:SYG:SYD:(A;;FA;;;SY)",
    "O:S-1-5-21-4294967295-4294967295-4294967295-4294967296G:BAD:PAI(A;OICIIOID;0xffffffff;;;WD)",
    "D:(XA;;FX;;;WD;(@User.a == 1))",
    "Timestamps,ETag,Attributes,PermissionKey",
    "dir...",
    "CON",
    "\u{FFFE}",
    "ǅİẞ",
];

/// What makes a parser go deep, or long.
const NESTS: &[(&str, &str)] = &[
    ("(", ")"),
    ("not ", ""),
    ("not (", ")"),
    ("[", "]"),
    ("{\"a\":", "}"),
    ("<a>", "</a>"),
    ("1+", "1"),
    ("-", "1"),
    ("a AND ", "b"),
    ("a or ", "b"),
    ("a BETWEEN ", " AND 1"),
    ("<!DOCTYPE a [<!ENTITY a \"&a;\">]>", ""),
    ("&amp;", ""),
    ("%25", ""),
    ("''", ""),
    ("\"", ""),
    ("--x\r\n", ""),
    ("\r\n", ""),
    ("a,", ""),
    ("<Latest>AAAA</Latest>", ""),
    ("\u{0}", ""),
    ("CASE WHEN 1 THEN ", " END"),
    ("CAST(", " AS INT)"),
    ("(A;;FA;;;SY)", ""),
    ("dir/", ""),
    ("..", ""),
];

const VERBS: &[&str] = &["GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "MERGE", "OPTIONS", "TRACE", "FOO"];
const NAMES: &[&str] = &[
    "cont",
    "cont/block",
    "cont/page",
    "cont/append",
    "que",
    "que/messages",
    "tab",
    "Tables",
    "$root",
    "$web",
    "$logs",
    "$batch",
    "share",
    "share/dir",
    "share/DIR/file",
    "share/from",
    "a--b",
    "CONT",
    "x",
    "none",
];

/// The request with some things changed.
pub fn mutated(example: &Example, random: &mut Random) -> Example {
    let mut request = example.clone();
    if random.one_in(2) && change_expression(&mut request, random) {
        return request;
    }
    for _ in 0..1 + random.below(CHANGES_MAX) {
        match random.below(10) {
            0 => change_path(&mut request, random),
            1 => (*random.of(VERBS)).clone_into(&mut request.verb),
            2..=4 => change_pairs(&mut request.query, PARAMETERS, random),
            5..=7 => change_pairs(&mut request.headers, HEADERS, random),
            _ => change_body(&mut request.body, random),
        }
    }
    request
}

/// Puts another expression where the request has one. Says whether it does.
fn change_expression(request: &mut Example, random: &mut Random) -> bool {
    let named = |(name, _): &&mut (String, String)| {
        ["$filter", "where", "x-ms-if-tags", "x-ms-source-if-tags"].contains(&name.as_str())
    };
    if let Some((name, value)) = request.query.iter_mut().chain(&mut request.headers).find(named) {
        let language = if name == "$filter" { ODATA } else { TAGS };
        *value = language.expression(random);
        value.truncate(EXPRESSION_BYTES_MAX);
        return true;
    }
    let body = String::from_utf8_lossy(&request.body).into_owned();
    let Some((before, rest)) = body.split_once("<Expression>") else { return false };
    let Some((_, after)) = rest.split_once("</Expression>") else { return false };
    let clause = if random.one_in(3) { " WHERE size > 1 LIMIT 5" } else { "" };
    let sql = match clause {
        "" => format!("SELECT name FROM BlobStorage WHERE {}", SQL.expression(random)),
        clause => format!("SELECT {} FROM BlobStorage{clause}", SQL.expression(random)),
    };
    let sql = sql.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    request.body = format!("{before}<Expression>{sql}</Expression>{after}").into_bytes();
    request.body.truncate(BODY_BYTES_MAX);
    true
}

/// Drops, doubles, empties, swaps, adds or changes one of them.
fn change_pairs(pairs: &mut Vec<(String, String)>, known: &[&str], random: &mut Random) {
    let add = |pairs: &mut Vec<(String, String)>, random: &mut Random| {
        let name = (*random.of(known)).to_owned();
        pairs.push((name, value(random)));
    };
    if pairs.is_empty() {
        return add(pairs, random);
    }
    let at = random.below(pairs.len());
    match random.below(9) {
        0 => drop(pairs.remove(at)),
        1 => pairs.push(pairs[at].clone()),
        2 => pairs[at].1.clear(),
        3 => {
            let other = pairs[random.below(pairs.len())].1.clone();
            pairs[at].1 = other;
        }
        4 => add(pairs, random),
        5 | 6 => {
            let mut text = pairs[at].1.clone().into_bytes();
            if random.one_in(2) {
                change_bytes(&mut text, random);
            } else {
                let place = between_words(&text, random);
                text.splice(place..place, nests(random).into_bytes());
            }
            text.truncate(VALUE_BYTES_MAX);
            pairs[at].1 = String::from_utf8_lossy(&text).into_owned();
        }
        _ => pairs[at].1 = value(random),
    }
}

fn value(random: &mut Random) -> String {
    let mut text = match random.below(6) {
        0 => nested(random),
        1 => [*random.of(WORDS), *random.of(WORDS)].concat(),
        2 => random.of(WORDS).repeat(1 + random.size(300)),
        _ => (*random.of(WORDS)).to_owned(),
    };
    while text.len() > VALUE_BYTES_MAX {
        text.pop();
    }
    text
}

fn nested(random: &mut Random) -> String {
    let (open, close) = *random.of(NESTS);
    let depth = random.size(REPEATS_MAX);
    format!("{}{}{}", open.repeat(depth), random.of(WORDS), close.repeat(random.below(2) * depth))
}

fn change_path(request: &mut Example, random: &mut Random) {
    let path = &mut request.path;
    match random.below(6) {
        0 => (*random.of(NAMES)).clone_into(path),
        1 => *path = format!("{path}/{}", value(random)),
        2 => *path = value(random),
        3 => *path = path.replace('/', "//"),
        4 => *path = path.repeat(1 + random.size(200)),
        _ => {
            let mut bytes = path.clone().into_bytes();
            change_bytes(&mut bytes, random);
            *path = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    while path.len() > VALUE_BYTES_MAX {
        path.pop();
    }
}

/// Several of them, one behind the other: what takes a step back after one may have forgotten it after the next.
fn nests(random: &mut Random) -> String {
    (0..1 + random.below(3)).map(|_| nested(random)).collect()
}

/// Where a parser expects something new, if there is such a place.
fn between_words(text: &[u8], random: &mut Random) -> usize {
    let places: Vec<usize> = (0..text.len()).filter(|at| b" (>,=".contains(&text[*at])).map(|at| at + 1).collect();
    if places.is_empty() { random.below(text.len() + 1) } else { *random.of(&places) }
}

fn change_body(body: &mut Vec<u8>, random: &mut Random) {
    match random.below(7) {
        0 => body.clear(),
        1 => body.truncate(random.below(body.len() + 1)),
        2 => *body = nested(random).into_bytes(),
        3 => {
            let word = random.of(WORDS).as_bytes();
            let at = random.below(body.len() + 1);
            body.splice(at..at, word.iter().copied());
        }
        4 | 5 => {
            let at = between_words(body, random);
            body.splice(at..at, nests(random).into_bytes());
        }
        _ => change_bytes(body, random),
    }
    body.truncate(BODY_BYTES_MAX);
}

fn change_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(4) {
            0 if at < bytes.len() => bytes[at] = random.next() as u8,
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => {
                let end = at + random.below(bytes.len() - at + 1);
                let piece = bytes[at..end].repeat(1 + random.size(20));
                bytes.splice(at..at, piece);
            }
            _ => bytes.insert(at, random.next() as u8),
        }
    }
}
