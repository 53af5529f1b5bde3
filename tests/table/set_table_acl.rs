//! Signatures: what they allow, how far they reach, and the stored policies that they lean on.

use crate::harness::Table;
use crate::stage::{ANY, JSON, Stage, VERSION, call_signed, change_set, parts, signature};

fn policy(id: &str, permission: &str) -> String {
    format!(
        "<SignedIdentifiers><SignedIdentifier><Id>{id}</Id><AccessPolicy><Start>2020-01-01T00:00:00Z</Start>\
         <Expiry>2099-01-01T00:00:00Z</Expiry><Permission>{permission}</Permission></AccessPolicy></SignedIdentifier>\
         </SignedIdentifiers>"
    )
}

#[test]
fn stored_policies() {
    let stage = Stage::new();
    stage.insert("p", "r", "");
    let client = stage.server.client();
    let xml = [("content-type", "application/xml")];
    let signed = signature(&client, &[("si", "readers")]);
    let get = || call_signed(&client, &format!("GET tab()?{signed}"), &[VERSION], "").said();
    assert_eq!(get(), "403 AuthenticationFailed");
    assert_eq!(stage.call("PUT tab?comp=acl", &xml, policy("readers", "r")).said(), "204");
    let told = stage.get("tab?comp=acl").ok();
    assert!(String::from_utf8_lossy(&told.body).contains("<Id>readers</Id>"), "{told:?}");
    assert_eq!(get(), "200");
    stage.call("PUT tab?comp=acl", &xml, policy("readers", "a")).ok();
    assert_eq!(get(), "403 AuthorizationPermissionMismatch");
    stage.call("PUT tab?comp=acl", &xml, "").ok();
    assert_eq!(get(), "403 AuthenticationFailed");
    assert_eq!(stage.call("PUT missing?comp=acl", &xml, "").said(), "404 TableNotFound");
    let refused = stage.get("missing?comp=acl");
    assert_eq!(
        (refused.said().as_str(), refused.header("content-type")),
        ("404 TableNotFound", Some("application/xml"))
    );
}

/// Five of them; a policy may leave out what the signature says itself.
#[test]
fn as_many_policies_as_there_may_be() {
    let stage = Stage::new();
    let xml = [("content-type", "application/xml")];
    let of = |count: usize| {
        let one = |n| format!("<SignedIdentifier><Id>{n}</Id></SignedIdentifier>");
        format!("<SignedIdentifiers>{}</SignedIdentifiers>", (0..count).map(one).collect::<String>())
    };
    assert_eq!(stage.call("PUT tab?comp=acl", &xml, of(5)).said(), "204");
    for bad in [of(6), of(1).replace("<Id>0</Id>", ""), of(2).replace('1', "0"), "text".into()] {
        assert_eq!(stage.call("PUT tab?comp=acl", &xml, &bad).status, 400, "{bad}");
        // Two faults: what is wrong with the document comes first.
        assert_eq!(stage.call("PUT missing?comp=acl", &xml, &bad).status, 400, "{bad}");
    }
    let told = stage.get("tab?comp=acl").ok();
    assert_eq!(String::from_utf8_lossy(&told.body).matches("<Id>").count(), 5, "nothing was changed");
}

#[test]
fn what_permissions_allow() {
    let stage = Stage::new();
    let client = stage.server.client();
    let entity = "tab(PartitionKey='p',RowKey='r')";
    let whole = r#"{"PartitionKey":"p","RowKey":"new"}"#;
    let mut table = Table::new("what permissions allow");
    for (permissions, expected) in [
        ("r", "200 403 403 403 403 403 403"),
        ("a", "403 201 403 403 403 403 403"),
        ("u", "403 403 204 204 403 403 403"),
        ("d", "403 403 403 403 403 403 204"),
        ("au", "403 201 204 204 204 204 403"),
        ("raud", "200 201 204 204 204 204 204"),
    ] {
        let _ = stage.call("DELETE tab(PartitionKey='p',RowKey='new')", &[ANY], "");
        stage.call(&format!("PUT {entity}"), &[], "{}").ok();
        let signed = signature(&client, &[("sp", permissions)]);
        let ask = |verb: &str, target: &str, if_match: bool, body: &str| {
            let headers: &[(&str, &str)] = if if_match { &[VERSION, JSON, ANY] } else { &[VERSION, JSON] };
            call_signed(&client, &format!("{verb} {target}?{signed}"), headers, body).status.to_string()
        };
        let got = [
            ask("GET", "tab()", false, ""),
            ask("POST", "tab", false, whole),
            ask("PUT", entity, true, "{}"),
            ask("MERGE", entity, true, "{}"),
            ask("PUT", entity, false, "{}"),
            ask("MERGE", entity, false, "{}"),
            ask("DELETE", entity, true, ""),
        ];
        table.row(permissions, got.join(" "), expected);
    }
    let signed = signature(&client, &[("sp", "raud")]);
    for (line, expected) in [
        ("GET Tables", "403 AuthenticationFailed"),
        ("POST Tables", "403 AuthenticationFailed"),
        ("DELETE Tables('tab')", "403 AuthenticationFailed"),
        ("GET other()", "403 AuthenticationFailed"),
        ("GET tab", "200"),
    ] {
        let answer = call_signed(&client, &format!("{line}?{signed}"), &[VERSION], "");
        table.row(line, answer.said(), expected);
    }
    let acl = call_signed(&client, &format!("GET tab?comp=acl&{signed}"), &[VERSION], "");
    table.row("GET tab?comp=acl", acl.said(), "403 AuthorizationFailure");
}

#[test]
fn ranges_of_keys() {
    let stage = Stage::new();
    for partition in ["a", "b", "c", "d"] {
        for row in ["1", "2", "3"] {
            stage.insert(partition, row, "");
        }
    }
    let client = stage.server.client();
    let range = [("sp", "raud"), ("spk", "b"), ("srk", "2"), ("epk", "c"), ("erk", "2")];
    let signed = signature(&client, &range);
    let ask = |line: &str, body: &str| {
        let joint = if line.contains('?') { '&' } else { '?' };
        call_signed(&client, &format!("{line}{joint}{signed}"), &[VERSION, JSON, ANY], body)
    };
    let keys = |line: &str| {
        let page = ask(line, "").ok().json();
        let key = |it: &serde_json::Value| {
            format!("{}{}", it["PartitionKey"].as_str().unwrap(), it["RowKey"].as_str().unwrap())
        };
        page["value"].as_array().expect("a list").iter().map(key).collect::<Vec<_>>()
    };
    assert_eq!(keys("GET tab()"), ["b2", "b3", "c1", "c2"]);
    assert_eq!(keys("GET tab()?$filter=RowKey%20eq%20'2'"), ["b2", "c2"]);
    assert_eq!(keys("GET tab()?$filter=PartitionKey%20eq%20'a'"), [""; 0]);
    let mut table = Table::new("ranges of keys");
    for (key, inside) in [("a3", false), ("b1", false), ("b2", true), ("c2", true), ("c3", false), ("d1", false)] {
        let (partition, row) = key.split_at(1);
        let entity = format!("tab(PartitionKey='{partition}',RowKey='{row}')");
        let new = format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"}}");
        let refused = "403 AuthorizationFailure";
        let expected = |success: &'static str| if inside { success } else { refused };
        table.row(format!("GET {key}"), ask(&format!("GET {entity}"), "").said(), expected("200"));
        table.row(format!("POST {key}"), ask("POST tab", &new).said(), expected("409 EntityAlreadyExists"));
        for (verb, body) in [("PUT", "{}"), ("MERGE", "{}"), ("DELETE", "")] {
            table.row(format!("{verb} {key}"), ask(&format!("{verb} {entity}"), body).said(), expected("204"));
        }
    }
    let batch = |partition: &str| {
        let line = format!("PUT tab(PartitionKey='{partition}',RowKey='3')");
        let body = change_set(&[(&line, &[], "{}")]);
        let headers = [VERSION, ("content-type", "multipart/mixed; boundary=batch_x")];
        let answer = call_signed(&client, &format!("POST $batch?{signed}"), &headers, &body);
        parts(&answer)[0].said()
    };
    table.row("in a transaction, inside", batch("b"), "204");
    table.row("in a transaction, outside", batch("c"), "403 AuthorizationFailure");
}
