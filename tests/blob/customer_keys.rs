//! Customer-provided keys: what is written with a key is read with that key and with no other.

use ring::digest::{SHA256, digest};
use wire::base64;

use crate::harness::Table;
use crate::stage::{APPEND_BLOB, BLOCK_BLOB, PAGE_BLOB, Stage, block_list};

/// The headers of a key, beside others.
fn keyed<'a>(key: &'a [String; 2], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let own = [
        ("x-ms-encryption-key", key[0].as_str()),
        ("x-ms-encryption-key-sha256", key[1].as_str()),
        ("x-ms-encryption-algorithm", "AES256"),
    ];
    [&own[..], more].concat()
}

fn key(byte: u8) -> [String; 2] {
    let secret = [byte; 32];
    [base64::encode(&secret), base64::encode(digest(&SHA256, &secret).as_ref())]
}

#[test]
fn every_kind_of_blob() {
    let stage = Stage::new();
    let (mine, yours) = (key(1), key(2));
    let content: Vec<u8> = (0..1_048_576_u32).map(|n| (n / 1_000) as u8).collect();
    stage.call("PUT cont/block", &keyed(&mine, &[BLOCK_BLOB, ("x-ms-meta-a", "secret")]), &content).ok();
    stage.call("PUT cont/listed?comp=block&blockid=AAAA", &keyed(&mine, &[]), &content[..700_000]).ok();
    stage.call("PUT cont/listed?comp=block&blockid=AAAB", &keyed(&mine, &[]), &content[700_000..]).ok();
    let list = block_list(&[("Latest", "AAAA"), ("Latest", "AAAB")]);
    stage.call("PUT cont/listed?comp=blocklist", &keyed(&mine, &[]), list).ok();
    stage.call("PUT cont/append", &keyed(&mine, &[APPEND_BLOB]), "").ok();
    for part in content.chunks(300_000) {
        stage.call("PUT cont/append?comp=appendblock", &keyed(&mine, &[]), part).ok();
    }
    let pages = [PAGE_BLOB, ("x-ms-blob-content-length", "1048576")];
    stage.call("PUT cont/pages", &keyed(&mine, &pages), "").ok();
    let update = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-1048575")];
    stage.call("PUT cont/pages?comp=page", &keyed(&mine, &update), &content).ok();

    let mut table = Table::new("customer_keys");
    for blob in ["block", "listed", "append", "pages"] {
        let line = format!("GET cont/{blob}");
        let got = stage.call(&line, &keyed(&mine, &[]), "").ok();
        assert!(got.body == content, "{blob}");
        table.row(format!("{blob}: key"), got.header("x-ms-encryption-key-sha256").unwrap_or_default(), &mine[1]);
        let part = stage.call(&line, &keyed(&mine, &[("range", "bytes=65530-131080")]), "").ok();
        assert!(part.body == content[65_530..131_081], "{blob}");
        let none = stage.call(&line, &[], "").said();
        table.row(format!("{blob}: no key"), none, "409 BlobUsesCustomerSpecifiedEncryption");
        let other = stage.call(&line, &keyed(&yours, &[]), "").said();
        table.row(format!("{blob}: another"), other, "409 BlobCustomerSpecifiedEncryptionMismatch");
        let head = stage.head(&format!("cont/{blob}")).said();
        table.row(format!("{blob}: head"), head, "409 BlobUsesCustomerSpecifiedEncryption");
    }
    let told = stage.call("HEAD cont/block", &keyed(&mine, &[]), "").ok();
    table.row("metadata", told.header("x-ms-meta-a").unwrap_or_default(), "secret");
    let listed = stage.get("cont?restype=container&comp=list&include=metadata").ok();
    assert!(!String::from_utf8_lossy(&listed.body).contains("secret"));
    let sha256 = listed.xml().all("Blobs")[1].text_of("Properties/CustomerProvidedKeySha256");
    table.row("listed", sha256.unwrap_or_default(), &mine[1]);
}

/// The same key as that of a copy's source.
fn of_source(key: &[String; 2]) -> [(&str, &str); 3] {
    [
        ("x-ms-source-encryption-key", key[0].as_str()),
        ("x-ms-source-encryption-key-sha256", key[1].as_str()),
        ("x-ms-source-encryption-algorithm", "AES256"),
    ]
}

/// Whether the source is in the same server or another.
fn rekey(stage: &Stage, home: &Stage) {
    let (old, new) = (key(1), key(2));
    let content: Vec<u8> = (0..204_800_u32).map(|n| (n / 1_000) as u8).collect();
    home.call("PUT cont/source", &keyed(&old, &[BLOCK_BLOB, ("x-ms-meta-a", "1")]), &content).ok();
    let url = home.readable("cont/source");
    stage.call("PUT cont/append", &keyed(&new, &[APPEND_BLOB]), "").ok();
    let pages = [PAGE_BLOB, ("x-ms-blob-content-length", "204800")];
    stage.call("PUT cont/pages", &keyed(&new, &pages), "").ok();
    let update =
        [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-204799"), ("x-ms-source-range", "bytes=0-204799")];
    let mut table = Table::new("customer_keys: of the source");
    for (line, more) in [
        ("PUT cont/made", &[BLOCK_BLOB][..]),
        ("PUT cont/listed?comp=block&blockid=AAAA", &[]),
        ("PUT cont/append?comp=appendblock", &[]),
        ("PUT cont/pages?comp=page", &update),
    ] {
        let take = |keys: &[(&str, &str)]| stage.take(line, &url, &keyed(&new, &[more, keys].concat()));
        let without = take(&[]);
        table.row(format!("{line}: none"), without.said(), "409 CannotVerifyCopySource");
        let code = without.header("x-ms-copy-source-error-code").unwrap_or_default().to_owned();
        table.row(format!("{line}: none"), code, "BlobUsesCustomerSpecifiedEncryption");
        table.row(format!("{line}: another"), take(&of_source(&new)).said(), "409 CannotVerifyCopySource");
        table.row(format!("{line}: half"), take(&of_source(&old)[..2]).said(), "400 MissingRequiredHeader");
        let made = take(&of_source(&old)).ok();
        table.row(line, made.header("x-ms-encryption-key-sha256").unwrap_or_default(), &new[1]);
    }
    stage.call("PUT cont/listed?comp=blocklist", &keyed(&new, &[]), block_list(&[("Latest", "AAAA")])).ok();
    home.call("DELETE cont/source", &[], "").ok();
    for blob in ["made", "listed", "append", "pages"] {
        let got = stage.call(&format!("GET cont/{blob}"), &keyed(&new, &[]), "").ok();
        assert!(got.body == content, "{blob}");
        let old = stage.call(&format!("GET cont/{blob}"), &keyed(&old, &[]), "").said();
        table.row(format!("{blob}: the old key"), old, "409 BlobCustomerSpecifiedEncryptionMismatch");
    }
    let told = stage.call("HEAD cont/made", &keyed(&new, &[]), "").ok();
    table.row("metadata", told.header("x-ms-meta-a").unwrap_or_default(), "1");
}

#[test]
fn from_one_key_to_another() {
    let stage = Stage::new();
    rekey(&stage, &stage);
}

#[test]
fn from_one_key_to_another_between_servers() {
    rekey(&Stage::new(), &Stage::new());
}

#[test]
fn copies_take_no_keys() {
    let stage = Stage::new();
    let mine = key(1);
    stage.call("PUT cont/source", &keyed(&mine, &[BLOCK_BLOB]), "x").ok();
    stage.put("cont/plain", "x");
    let (sealed, plain) = (stage.readable("cont/source"), stage.readable("cont/plain"));
    let mut table = Table::new("customer_keys: copies");
    for how in [&[][..], &[("x-ms-requires-sync", "true")]] {
        let own = stage.take("PUT cont/blob", &plain, &keyed(&mine, how));
        table.row(format!("own key {how:?}"), own.said(), "400 UnsupportedHeader");
        let source = stage.take("PUT cont/blob", &sealed, &[how, &of_source(&mine)].concat());
        table.row(format!("source's key {how:?}"), source.said(), "400 UnsupportedHeader");
        table.row(format!("sealed {how:?}"), stage.take("PUT cont/blob", &sealed, how).status.to_string(), "409");
    }
    table.row("nothing was made", stage.get("cont/blob").said(), "404 BlobNotFound");
}

#[test]
fn bad_keys_change_nothing() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    let before = stage.everything();
    let (mine, yours) = (key(1), key(2));
    let put = |headers: &[(&str, &str)]| stage.call("PUT cont/blob", &[headers, &[BLOCK_BLOB]].concat(), "new").said();
    let all = keyed(&mine, &[]);
    let mut table = Table::new("customer_keys");
    table.row("no sum", put(&all[..1]), "400 MissingRequiredHeader");
    table.row("no algorithm", put(&all[..2]), "400 MissingRequiredHeader");
    table.row("no key", put(&all[1..]), "400 MissingRequiredHeader");
    table.row("another sum", put(&[all[0], (all[1].0, &yours[1]), all[2]]), "400 InvalidHeaderValue");
    table.row("a short key", put(&[(all[0].0, "AAAA"), all[1], all[2]]), "400 InvalidHeaderValue");
    table.row("another cipher", put(&[all[0], all[1], (all[2].0, "DES")]), "400 InvalidHeaderValue");
    table.row("no such scope", put(&[("x-ms-encryption-scope", "none")]), "400 InvalidHeaderValue");
    let metadata = stage.call("PUT cont/blob?comp=metadata", &all, "").said();
    table.row("not encrypted", metadata, "409 BlobDoesNotUseCustomerSpecifiedEncryption");
    assert_eq!(stage.everything(), before);
}
