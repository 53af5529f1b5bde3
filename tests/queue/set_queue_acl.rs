//! Set Queue ACL and Get Queue ACL.

use crate::stage::Stage;

const POLICY: &str = "<SignedIdentifier><Id>one</Id><AccessPolicy><Start>2026-01-01</Start>\
    <Expiry>2026-12-31T00:00:00.0000000Z</Expiry><Permission>raup</Permission></AccessPolicy></SignedIdentifier>";

#[test]
fn what_is_set_is_told_and_replaced_whole() {
    let stage = Stage::new();
    let body = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>{POLICY}</SignedIdentifiers>");
    assert_eq!(stage.call("PUT que?comp=acl", &[], body).said(), "204");
    let policies = stage.call("GET que?comp=acl", &[], "").ok().xml();
    assert_eq!(policies.children.len(), 1);
    assert_eq!(policies.children[0].text_of("AccessPolicy/Permission").as_deref(), Some("raup"));
    assert_eq!(stage.call("HEAD que?comp=acl", &[], "").said(), "200");
    stage.call("PUT que?comp=acl", &[], "").ok();
    assert_eq!(stage.call("GET que?comp=acl", &[], "").ok().xml().children.len(), 0);
}

/// Five of them, with ids of up to 64 characters; a policy may leave out what the signature says itself.
#[test]
fn as_many_as_there_may_be() {
    let stage = Stage::new();
    let id = |n: usize| format!("{n}{}", "i".repeat(63));
    let of = |count: usize| {
        let one = |n| format!("<SignedIdentifier><Id>{}</Id></SignedIdentifier>", id(n));
        format!("<SignedIdentifiers>{}</SignedIdentifiers>", (0..count).map(one).collect::<String>())
    };
    assert_eq!(stage.call("PUT que?comp=acl", &[], of(5)).said(), "204");
    let told = stage.call("GET que?comp=acl", &[], "").ok().xml();
    let ids: Vec<String> = told.children.iter().filter_map(|policy| policy.text_of("Id")).collect();
    assert_eq!(ids, (0..5).map(id).collect::<Vec<_>>());
    assert_eq!(stage.call("PUT que?comp=acl", &[], of(6)).said(), "400 InvalidXmlDocument");
    let long = of(1).replace(&id(0), &format!("{}i", id(0)));
    assert_eq!(stage.call("PUT que?comp=acl", &[], long).said(), "400 InvalidXmlNodeValue");
    assert_eq!(stage.call("GET que?comp=acl", &[], "").ok().xml().children.len(), 5);
    assert_eq!(stage.call("PUT other?comp=acl", &[], of(1)).said(), "404 QueueNotFound");
    // Two faults: what is wrong with the document comes first.
    assert_eq!(stage.call("PUT other?comp=acl", &[], of(6)).said(), "400 InvalidXmlDocument");
}

#[test]
fn bad_documents_change_nothing() {
    let stage = Stage::new();
    let whole = format!("<SignedIdentifiers>{POLICY}</SignedIdentifiers>");
    stage.call("PUT que?comp=acl", &[], &whole).ok();
    let six = format!(
        "<SignedIdentifiers>{}</SignedIdentifiers>",
        "<SignedIdentifier><Id>a</Id></SignedIdentifier>".repeat(6)
    );
    for body in ["<a/>", "text", six.as_str()] {
        assert_eq!(stage.call("PUT que?comp=acl", &[], body).said(), "400 InvalidXmlDocument", "{body}");
    }
    assert_eq!(stage.call("GET que?comp=acl", &[], "").ok().xml().children.len(), 1);
}
