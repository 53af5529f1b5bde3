//! Put Page, and Put Blob and Set Blob Properties as far as they are about page blobs.

use std::thread;

use wire::base64;
use wire::checksum::{Crc64, Md5};

use crate::harness::{Answer, Headers, Table};
use crate::stage::{A, APPEND_BLOB, PAGE_BLOB, Stage};

const URL: &str = "PUT cont/blob?comp=page";
const UPDATE: (&str, &str) = ("x-ms-page-write", "update");
const CLEAR: (&str, &str) = ("x-ms-page-write", "clear");

/// Fills pages with one byte.
fn write(stage: &Stage, first: u64, pages: u64, with: u8) -> Answer {
    let range = format!("bytes={}-{}", first * 512, (first + pages) * 512 - 1);
    stage.call(URL, &[UPDATE, ("x-ms-range", &range)], vec![with; (pages * 512) as usize]).ok()
}

fn clear(stage: &Stage, first: u64, pages: u64) -> Answer {
    let range = format!("bytes={}-{}", first * 512, (first + pages) * 512 - 1);
    stage.call(URL, &[CLEAR, ("range", &range)], "").ok()
}

/// The first byte of every page, each of which must be filled with it.
#[track_caller]
fn pages(content: &[u8]) -> Vec<u8> {
    let page = |page: &[u8]| {
        assert!(page.iter().all(|byte| *byte == page[0]));
        page[0]
    };
    content.chunks(512).map(page).collect()
}

#[test]
fn pages_are_written_over_and_cleared() {
    let stage = Stage::new();
    stage.put_pages("cont/blob", 8 * 512);
    write(&stage, 1, 4, 1);
    write(&stage, 3, 4, 2);
    let answer = clear(&stage, 2, 2);
    assert_eq!(answer.header("x-ms-content-crc64"), None);
    write(&stage, 0, 1, 3);
    let told = stage.get("cont/blob").ok();
    assert_eq!(pages(&told.body), [3, 1, 0, 0, 2, 2, 2, 0]);
    let mut table = Table::new("put_page");
    table.row("type", told.header("x-ms-blob-type").unwrap_or_default(), "PageBlob");
    table.row("number", told.header("x-ms-blob-sequence-number").unwrap_or_default(), "0");
    table.row("no tier", told.header("x-ms-access-tier").is_none(), true);
    let part = stage.call("GET cont/blob", &[("range", "bytes=1000-1050")], "").ok();
    assert_eq!(part.body, [vec![1; 24], vec![0; 27]].concat());
    let listed = stage.get("cont?restype=container&comp=list").xml();
    let blob = &listed.all("Blobs")[0];
    table.row("listed", blob.text_of("Properties/BlobType").unwrap_or_default(), "PageBlob");
    table.row("listed number", blob.text_of("Properties/x-ms-blob-sequence-number").unwrap_or_default(), "0");
    table.row("listed length", blob.text_of("Properties/Content-Length").unwrap_or_default(), "4096");
}

/// The largest write, off every border, and the same with other sums.
#[test]
fn a_large_write() {
    let stage = Stage::new();
    stage.put_pages("cont/blob", 16 << 20);
    let content: Vec<u8> = (0..4_u32 << 20).map(|n| (n / 512 % 251) as u8).collect();
    let (start, end) = (3 * 512 + (1 << 20), 3 * 512 + (5 << 20) - 1);
    let md5 = base64::encode(&Md5::of(&content));
    let range = format!("bytes={start}-{end}");
    let answer = stage.call(URL, &[UPDATE, ("range", &range), ("content-md5", &md5)], &content).ok();
    let crc64 = base64::encode_crc64(Crc64::of(&content));
    assert_eq!((answer.header("content-md5"), answer.header("x-ms-content-crc64")), (Some(&*md5), Some(&*crc64)));
    let answer = stage.call(URL, &[UPDATE, ("range", &range)], &content).ok();
    assert_eq!(answer.header("x-ms-content-crc64"), Some(&*crc64));
    let whole = stage.get("cont/blob").ok().body;
    assert_eq!(whole.len(), 16 << 20);
    assert!(whole[start..=end] == content && whole[..start].iter().chain(&whole[end + 1..]).all(|byte| *byte == 0));
}

#[test]
fn snapshots_keep_their_pages() {
    let stage = Stage::new();
    stage.put_pages("cont/blob", 4 * 512);
    let snapshot = || {
        let made = stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
        format!("cont/blob?snapshot={}", made.header("x-ms-snapshot").expect("an id"))
    };
    write(&stage, 0, 2, 1);
    let first = snapshot();
    write(&stage, 1, 2, 2);
    let second = snapshot();
    clear(&stage, 0, 4);
    stage.call("PUT cont/blob?comp=properties", &[("x-ms-blob-content-length", "512")], "").ok();
    stage.call("PUT cont/blob?comp=properties", &[("x-ms-blob-content-length", "2048")], "").ok();
    let of = |target: &str| pages(&stage.get(target).ok().body);
    assert_eq!((of(&first), of(&second), of("cont/blob")), (vec![1, 1, 0, 0], vec![1, 2, 2, 0], vec![0; 4]));
    stage.call(&format!("DELETE {second}"), &[], "").ok();
    stage.put_elsewhere();
    write(&stage, 3, 1, 3);
    assert_eq!((of(&first), of("cont/blob")), (vec![1, 1, 0, 0], vec![0, 0, 0, 3]));
    stage.put_pages("cont/blob", 512);
    assert_eq!(of(&first), [1, 1, 0, 0]);
}

#[test]
fn refusals_change_nothing() {
    let stage = Stage::new();
    stage.put_pages("cont/blob", 1_024);
    stage
        .call(
            "PUT cont/blob?comp=properties",
            &[("x-ms-sequence-number-action", "update"), ("x-ms-blob-sequence-number", "7")],
            "",
        )
        .ok();
    write(&stage, 0, 2, 1);
    stage.put("cont/block", "old");
    stage.put_append("cont/append", "old");
    stage.put_pages("cont/leased", 512);
    stage.acquire("cont/leased", A, "-1");
    let before = stage.everything();
    let page = "x".repeat(512);
    let page = page.as_str();
    let (le, lt, eq) = ("x-ms-if-sequence-number-le", "x-ms-if-sequence-number-lt", "x-ms-if-sequence-number-eq");
    let (first, beyond) = (("range", "bytes=0-511"), ("range", "bytes=1024-1535"));
    let (length, number, action) =
        ("x-ms-blob-content-length", "x-ms-blob-sequence-number", "x-ms-sequence-number-action");
    let properties = "PUT cont/blob?comp=properties";
    let unmet = "412 SequenceNumberConditionNotMet";
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str, &str)] = &[
        ("neither update nor clear", URL, &[first], page, "400 MissingRequiredHeader"),
        ("something else",      URL, &[first, ("x-ms-page-write", "erase")], page, "400 InvalidHeaderValue"),
        ("no range",            URL, &[UPDATE], page, "400 MissingRequiredHeader"),
        ("no such range",       URL, &[UPDATE, ("x-ms-range", "pages=1")], page, "400 InvalidHeaderValue"),
        ("start off the border", URL, &[UPDATE, ("range", "bytes=1-512")], page, "416 InvalidPageRange"),
        ("end off the border",  URL, &[UPDATE, ("range", "bytes=0-512")], page, "416 InvalidPageRange"),
        ("no end",              URL, &[UPDATE, ("range", "bytes=0-")], page, "416 InvalidPageRange"),
        ("more than the body",  URL, &[UPDATE, ("range", "bytes=0-1023")], page, "416 InvalidPageRange"),
        ("beyond the end",      URL, &[UPDATE, beyond], page, "416 InvalidPageRange"),
        ("clear beyond the end", URL, &[CLEAR, ("range", "bytes=512-1535")], "", "416 InvalidPageRange"),
        ("clear with a body",   URL, &[CLEAR, first], page, "400 InvalidHeaderValue"),
        ("wrong MD5",           URL, &[UPDATE, first, ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")], page, "400 Md5Mismatch"),
        ("wrong CRC64",         URL, &[UPDATE, first, ("x-ms-content-crc64", "AQAAAAAAAAA=")], page, "400 Crc64Mismatch"),
        ("number too high",     URL, &[UPDATE, first, (le, "6")], page, unmet),
        ("number not below",    URL, &[UPDATE, first, (lt, "7")], page, unmet),
        ("number not equal",    URL, &[CLEAR, first, (eq, "8")], "", unmet),
        ("one of three",        URL, &[UPDATE, first, (le, "7"), (lt, "8"), (eq, "6")], page, unmet),
        ("no number",           URL, &[UPDATE, first, (le, "x")], page, "400 InvalidHeaderValue"),
        ("number, beyond",      URL, &[UPDATE, beyond, (le, "6")], page, unmet),
        ("number, wrong MD5",   URL, &[UPDATE, first, (le, "6"), ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")], page, unmet),
        ("stale, number",       URL, &[UPDATE, first, (le, "6"), ("if-match", "\"0x1\"")], page, "412 ConditionNotMet"),
        ("id of no lease",      URL, &[UPDATE, first, ("x-ms-lease-id", A)], page, "412 LeaseNotPresentWithBlobOperation"),
        ("no lease id, beyond", "PUT cont/leased?comp=page", &[UPDATE, beyond], page, "412 LeaseIdMissing"),
        ("no container",        "PUT none/blob?comp=page",   &[UPDATE, first], page, "404 ContainerNotFound"),
        ("no blob",             "PUT cont/none?comp=page",   &[UPDATE, first], page, "404 BlobNotFound"),
        ("a block blob",        "PUT cont/block?comp=page",  &[UPDATE, first], page, "409 InvalidBlobType"),
        ("an append blob",      "PUT cont/append?comp=page", &[CLEAR, first], "", "409 InvalidBlobType"),
        ("Put Block",           "PUT cont/leased?comp=block&blockid=AAAA", &[], "x", "409 InvalidBlobType"),
        ("Put Block List",      "PUT cont/leased?comp=blocklist", &[], "<BlockList/>", "409 InvalidBlobType"),
        ("Get Block List",      "GET cont/blob?comp=blocklist", &[], "", "409 InvalidBlobType"),
        ("Append Block",        "PUT cont/blob?comp=appendblock", &[], "x", "409 InvalidBlobType"),
        ("Append Blob Seal",    "PUT cont/blob?comp=seal", &[], "", "409 InvalidBlobType"),
        ("made without a length", "PUT cont/blob", &[PAGE_BLOB], "", "400 MissingRequiredHeader"),
        ("made with half a page", "PUT cont/blob", &[PAGE_BLOB, (length, "256")], "", "400 InvalidHeaderValue"),
        ("made with a body",    "PUT cont/blob", &[PAGE_BLOB, (length, "512")], "x", "400 InvalidHeaderValue"),
        ("made too large",      "PUT cont/blob", &[PAGE_BLOB, (length, "8796093022720")], "", "400 InvalidHeaderValue"),
        ("made with a bad number", "PUT cont/blob", &[PAGE_BLOB, (length, "512"), (number, "x")], "", "400 InvalidHeaderValue"),
        ("made with a tier",    "PUT cont/blob", &[PAGE_BLOB, (length, "512"), ("x-ms-access-tier", "Cool")], "", "400 AccessTierNotSupportedForBlobType"),
        ("half a page",         properties, &[(length, "256")], "", "400 InvalidHeaderValue"),
        ("no number to update", properties, &[(action, "update")], "", "400 MissingRequiredHeader"),
        ("a number to increment", properties, &[(action, "increment"), (number, "1")], "", "400 InvalidHeaderValue"),
        ("an unknown action",   properties, &[(action, "halve"), (number, "1")], "", "400 InvalidHeaderValue"),
        ("a block blob's length", "PUT cont/block?comp=properties", &[(length, "512")], "", "400 InvalidHeaderValue"),
        ("an append blob's number", "PUT cont/append?comp=properties", &[(action, "increment")], "", "400 InvalidHeaderValue"),
    ];
    let mut table = Table::new("put_page refusals");
    for (what, line, headers, body, expected) in rows {
        table.row(what, stage.call(line, headers, body).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    let client = &stage.client;
    let over = client.head(URL, &[UPDATE, ("range", "bytes=0-4194815")], Some((4 << 20) + 512));
    table.row("over the limit", client.call_odd(URL, &over, b"").said(), "413 RequestBodyTooLarge");
    client.hang_up(&client.head(URL, &[UPDATE, first], Some(512)), b"not all");
    assert_eq!(stage.everything(), before);
    let met = [UPDATE, first, (le, "7"), (lt, "8"), (eq, "7")];
    table.row("the number that was asked for", stage.call(URL, &met, page).said(), "201");
}

#[test]
fn length_and_number() {
    let stage = Stage::new();
    stage
        .call(
            "PUT cont/blob",
            &[PAGE_BLOB, ("x-ms-blob-content-length", "1024"), ("x-ms-blob-sequence-number", "5")],
            "",
        )
        .ok();
    write(&stage, 0, 2, 1);
    let set = |headers: Headers<'_>| stage.call("PUT cont/blob?comp=properties", headers, "");
    let (action, number) = ("x-ms-sequence-number-action", "x-ms-blob-sequence-number");
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("max, lower",    &[(action, "max"), (number, "4")], "5"),
        ("max, higher",   &[(action, "max"), (number, "8")], "8"),
        ("update, lower", &[(action, "update"), (number, "2")], "2"),
        ("increment",     &[(action, "increment")], "3"),
        ("resize",        &[("x-ms-blob-content-length", "512")], "3"),
        ("headers",       &[("x-ms-blob-content-type", "a/b")], "3"),
        ("to the last",   &[(action, "update"), (number, "9223372036854775807")], "9223372036854775807"),
    ];
    let mut table = Table::new("set_blob_properties of a page blob");
    for (what, headers, expected) in rows {
        let answer = set(headers).ok();
        table.row(what, answer.header(number).unwrap_or_default(), expected);
        table.row(format!("{what}: told"), stage.head("cont/blob").header(number).unwrap_or_default(), expected);
    }
    table.row("beyond the last", set(&[(action, "increment")]).said(), "409 SequenceNumberIncrementTooLarge");
    // A header that was set before stays when only the length is set.
    set(&[("x-ms-blob-content-length", "1536")]).ok();
    let told = stage.get("cont/blob").ok();
    table.row("content type", told.header("content-type").unwrap_or_default(), "a/b");
    assert_eq!(pages(&told.body), [1, 0, 0]);
}

/// Eight at once on pages that overlap: what is read is always one write or another, page by page.
#[test]
fn overlapping_writes_come_one_after_another() {
    let stage = Stage::new();
    stage.put_pages("cont/blob", 16 * 512);
    thread::scope(|scope| {
        for writer in 1..=8_u8 {
            let client = stage.server.client();
            scope.spawn(move || {
                for round in 0..25 {
                    let first = (u64::from(writer) + round) % 9;
                    let range = format!("bytes={}-{}", first * 512, (first + 8) * 512 - 1);
                    client.call(URL, &[UPDATE, ("range", &range)], vec![writer; 8 * 512]).ok();
                    pages(&client.call("GET cont/blob", &[], "").ok().body);
                }
            });
        }
    });
    assert_eq!(pages(&stage.get("cont/blob").ok().body).len(), 16);
}

/// A blob of one type replaces a blob of another.
#[test]
fn one_type_replaces_another() {
    let stage = Stage::new();
    stage.put_pages("cont/blob", 512);
    write(&stage, 0, 1, 1);
    stage.call("PUT cont/blob", &[APPEND_BLOB], "").ok();
    assert_eq!(stage.get("cont/blob").body, b"");
    stage.put_pages("cont/blob", 512);
    assert_eq!(stage.get("cont/blob").body, [0; 512]);
}
