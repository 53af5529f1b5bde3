//! Set Share ACL and Get Share ACL.

use crate::harness::Table;
use crate::stage::Stage;

const URL: &str = "share?restype=share&comp=acl";
const POLICY: &str = "<SignedIdentifier><Id>one</Id><AccessPolicy><Start>2026-01-01</Start>\
    <Expiry>2026-12-31T00:00:00.0000000Z</Expiry><Permission>rcwdl</Permission></AccessPolicy></SignedIdentifier>";

#[test]
fn what_is_set_is_told_and_replaced_whole() {
    let stage = Stage::new();
    let body = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>{POLICY}</SignedIdentifiers>");
    assert_eq!(stage.call(&format!("PUT {URL}"), &[], body).said(), "200");
    let policies = stage.get(URL).ok().xml();
    assert_eq!((policies.name.as_str(), policies.children.len()), ("SignedIdentifiers", 1));
    let policy = &policies.children[0];
    assert_eq!(policy.text_of("Id").as_deref(), Some("one"));
    assert_eq!(policy.text_of("AccessPolicy/Permission").as_deref(), Some("rcwdl"));
    assert!(policy.text_of("AccessPolicy/Expiry").is_some_and(|text| text.starts_with("2026-12-31T00:00:00")));
    assert_eq!(stage.call(&format!("HEAD {URL}"), &[], "").said(), "200");
    stage.call(&format!("PUT {URL}"), &[], "").ok();
    assert_eq!(stage.get(URL).ok().xml().children.len(), 0);
}

/// Five of them, with ids of up to 64 characters; a policy may leave out what the signature says itself.
#[test]
fn as_many_as_there_may_be() {
    let stage = Stage::new();
    let id = |n: usize| format!("{n}{}", "i".repeat(63));
    let one = |n| format!("<SignedIdentifier><Id>{}</Id></SignedIdentifier>", id(n));
    let of =
        |count: usize| format!("<SignedIdentifiers>{}</SignedIdentifiers>", (0..count).map(one).collect::<String>());
    assert_eq!(stage.call(&format!("PUT {URL}"), &[], of(5)).said(), "200");
    let told = stage.get(URL).ok().xml();
    let ids: Vec<String> = told.children.iter().filter_map(|policy| policy.text_of("Id")).collect();
    assert_eq!(ids, (0..5).map(id).collect::<Vec<_>>());
    assert_eq!(stage.call(&format!("PUT {URL}"), &[], of(6)).said(), "400 InvalidXmlDocument");
    assert_eq!(stage.get(URL).ok().xml().children.len(), 5);
}

#[test]
fn bad_documents_change_nothing() {
    let stage = Stage::new();
    stage.call(&format!("PUT {URL}"), &[], format!("<SignedIdentifiers>{POLICY}</SignedIdentifiers>")).ok();
    let before = stage.everything();
    let with = |inside: &str| format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
    let policy = |id: &str, inside: &str| {
        format!("<SignedIdentifier><Id>{id}</Id><AccessPolicy>{inside}</AccessPolicy></SignedIdentifier>")
    };
    #[rustfmt::skip]
    let rows: &[(&str, String, &str)] = &[
        ("not XML",              "hello".into(), "400 InvalidXmlDocument"),
        ("not closed",           "<SignedIdentifiers>".into(), "400 InvalidXmlDocument"),
        ("another document",     "<BlockList/>".into(), "400 InvalidXmlDocument"),
        ("more after the end",   format!("{}<a/>", with("")), "400 InvalidXmlDocument"),
        ("no time",              with(&policy("a", "<Start>soon</Start>")), "400 InvalidXmlNodeValue"),
        ("an id too long",       with(&policy(&"x".repeat(65), "")), "400 InvalidXmlNodeValue"),
        ("an id twice",          with(&format!("{}{}", policy("a", ""), policy("a", ""))), "400 InvalidXmlNodeValue"),
    ];
    let mut table = Table::new("set_share_acl");
    for (what, body, expected) in rows {
        table.row(what, stage.call(&format!("PUT {URL}"), &[], body).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
}
