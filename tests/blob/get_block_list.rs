//! Get Block List.

use crate::harness::{Answer, Table};
use crate::stage::{Stage, block_list};

fn blocks(answer: &Answer, kind: &str) -> Option<String> {
    let list = answer.xml();
    let found = list.find(kind)?;
    let shown = |block: &crate::harness::Element| {
        format!("{}:{}", block.text_of("Name").unwrap_or_default(), block.text_of("Size").unwrap_or_default())
    };
    Some(found.children.iter().map(shown).collect::<Vec<_>>().join(" "))
}

#[test]
fn what_each_type_shows() {
    let stage = Stage::new();
    stage.put_block("cont/blob", "BBBB", "bb");
    stage.put_block("cont/blob", "AAAA", "a");
    let committed = block_list(&[("Latest", "BBBB"), ("Latest", "AAAA"), ("Latest", "BBBB")]);
    let put = stage.call("PUT cont/blob?comp=blocklist", &[], committed).ok();
    stage.put_block("cont/blob", "DDDD", "d");
    stage.put_block("cont/blob", "CCCC", "c");
    stage.put_block("cont/blob", "DDDD", "dddd");
    stage.put_block("cont/fresh", "AAAA", "a");
    stage.put("cont/whole", "x");
    let (old, new) = (Some("BBBB:2 AAAA:1 BBBB:2"), Some("CCCC:1 DDDD:4"));
    #[rustfmt::skip]
    let rows: &[(&str, Option<&str>, Option<&str>)] = &[
        // target                                              committed  uncommitted
        ("cont/blob?comp=blocklist",                            old,       None),
        ("cont/blob?comp=blocklist&blocklisttype=committed",    old,       None),
        ("cont/blob?comp=blocklist&blocklisttype=uncommitted",  None,      new),
        ("cont/blob?comp=blocklist&blocklisttype=all",          old,       new),
        ("cont/blob?comp=blocklist&blocklisttype=All",          old,       new),
        ("cont/fresh?comp=blocklist&blocklisttype=uncommitted", None,      Some("AAAA:1")),
        ("cont/fresh?comp=blocklist&blocklisttype=all",         Some(""),  Some("AAAA:1")),
        ("cont/whole?comp=blocklist&blocklisttype=all",         Some(""),  Some("")),
    ];
    let mut table = Table::new("get_block_list");
    for (target, committed, uncommitted) in rows {
        let answer = stage.get(target);
        table.row(format!("{target}: answer"), answer.said(), "200");
        table.row(
            format!("{target}: committed"),
            format!("{:?}", blocks(&answer, "CommittedBlocks").as_deref()),
            format!("{committed:?}"),
        );
        table.row(
            format!("{target}: uncommitted"),
            format!("{:?}", blocks(&answer, "UncommittedBlocks").as_deref()),
            format!("{uncommitted:?}"),
        );
    }
    let told = stage.get("cont/blob?comp=blocklist");
    assert_eq!((told.etag(), told.header("x-ms-blob-content-length")), (put.etag(), Some("5")));
    let fresh = stage.get("cont/fresh?comp=blocklist&blocklisttype=all");
    assert_eq!((fresh.header("etag"), fresh.header("last-modified")), (None, None));
    assert_eq!(fresh.header("x-ms-blob-content-length"), Some("0"));
}

#[test]
fn refusals() {
    let stage = Stage::new();
    stage.put("cont/blob", "x");
    #[rustfmt::skip]
    let rows: &[(&str, &str)] = &[
        ("cont/none?comp=blocklist",                                       "404 BlobNotFound"),
        ("none/blob?comp=blocklist",                                       "404 ContainerNotFound"),
        ("cont/blob?comp=blocklist&blocklisttype=some",                    "400 InvalidQueryParameterValue"),
        ("cont/blob?comp=blocklist&snapshot=2026-01-01T00:00:00.0000000Z", "404 BlobNotFound"),
        ("cont/blob?comp=blocklist&snapshot=now",                          "400 InvalidQueryParameterValue"),
    ];
    let mut table = Table::new("get_block_list refusals");
    for (target, expected) in rows {
        table.row(target, stage.get(target).said(), expected);
    }
}
