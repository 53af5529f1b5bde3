//! How many round trips the operations of shares and of the service take on an engine that must fetch its rows. The budget may be
//! lowered and is never exceeded.

use std::collections::HashSet;
use std::sync::Arc;

use auth::Settings;
use engine::loads::{Budget, NodeState, Tally};
use engine::memory::MemoryEngine;

use crate::Op;
use crate::testing::{Bench, between, header, request, text};

const BROWSER: &[(&str, &str)] = &[("origin", "http://site"), ("access-control-request-method", "GET")];
const PROPERTIES: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
     <AllowedMethods>GET</AllowedMethods><AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
     <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
const PERMISSION: &str = "{\"permission\":\"O:BAG:SYD:(A;;FA;;;BU)\"}";
const ACQUIRE: &[(&str, &str)] = &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
const BREAK: &[(&str, &str)] = &[("x-ms-lease-action", "break")];

type Ask = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

/// The requests, in this order on an empty account, each with its round trips. `KEY`, `VERSION` and `TIME` stand for what was told before.
const BUDGET: &[(Ask, Budget)] = &[
    (("PUT", "share?restype=share", &[], ""), (2, 2)),
    (("GET", "share?restype=share", &[], ""), (1, 1)),
    (("PUT", "share?restype=share&comp=properties", &[("x-ms-share-quota", "7")], ""), (2, 2)),
    (("PUT", "share?restype=share&comp=metadata", &[], ""), (2, 2)),
    (("GET", "share?restype=share&comp=metadata", &[], ""), (1, 1)),
    (("PUT", "share?restype=share&comp=acl", &[], "<SignedIdentifiers/>"), (2, 2)),
    (("GET", "share?restype=share&comp=acl", &[], ""), (1, 1)),
    // The first one that leads from the share to its usage.
    (("GET", "share?restype=share&comp=stats", &[], ""), (2, 2)),
    (("GET", "share?restype=share&comp=stats", &[], ""), (2, 1)),
    (("PUT", "share?restype=share&comp=snapshot", &[], ""), (2, 2)),
    (("GET", "share?restype=share&sharesnapshot=TIME", &[], ""), (2, 1)),
    (("GET", "share?restype=share&comp=metadata&sharesnapshot=TIME", &[], ""), (2, 1)),
    (("GET", "?comp=list&include=snapshots", &[], ""), (2, 2)),
    (("DELETE", "share?restype=share&sharesnapshot=TIME", &[], ""), (4, 4)),
    (("PUT", "share?restype=share&comp=lease", ACQUIRE, ""), (2, 2)),
    (("PUT", "share?restype=share&comp=lease", BREAK, ""), (2, 2)),
    (("PUT", "share?restype=share&comp=filepermission", &[], PERMISSION), (3, 2)),
    (("GET", "share?restype=share&comp=filepermission", &[("x-ms-file-permission-key", "KEY")], ""), (2, 1)),
    (("GET", "?comp=list", &[], ""), (1, 1)),
    (("GET", "?comp=list&include=deleted,metadata", &[], ""), (1, 1)),
    (("DELETE", "share?restype=share", &[], ""), (3, 3)),
    (("GET", "?comp=list&include=deleted", &[], ""), (1, 1)),
    (
        (
            "PUT",
            "share?restype=share&comp=undelete",
            &[("x-ms-deleted-share-name", "share"), ("x-ms-deleted-share-version", "VERSION")],
            "",
        ),
        (2, 2),
    ),
    (("PUT", "?restype=service&comp=properties", &[], PROPERTIES), (2, 2)),
    (("GET", "?restype=service&comp=properties", &[], ""), (1, 1)),
    (("OPTIONS", "share", BROWSER, ""), (1, 1)),
];

/// Operations that look at no rows.
const WITHOUT_ROWS: &[Op] = &[Op::GetUserDelegationKey];

async fn every_operation_keeps_its_budget(state: NodeState) {
    budget_is_kept(state, |bench| bench).await;
    budget_is_kept(state, Bench::among_others).await;
}

/// Where one node of many serves SMB, the mark of a share is asked for together with its row.
async fn budget_is_kept(state: NodeState, placed: fn(Bench) -> Bench) {
    let engine = Arc::new(MemoryEngine::default());
    let mut tally = Tally::new(engine.clone(), state);
    let settings = Settings { share_soft_delete_days: Some(7), ..Settings::default() };
    let bench = Bench { settings, ..placed(Bench::over(tally.engine.clone(), engine)) };
    let (mut key, mut version, mut time) = (String::new(), String::new(), String::new());
    for ((method, url, headers, body), budget) in BUDGET {
        let given = headers.iter().map(|(name, value)| match *value {
            "KEY" => (*name, key.as_str()),
            "VERSION" => (*name, version.as_str()),
            value => (*name, value),
        });
        let given: Vec<(&str, &str)> = given.collect();
        let url = &url.replace("TIME", &time);
        tally.begin();
        let answer = bench.call(method, url, &given, body.as_bytes()).await;
        tally.end(&format!("{method} {url}"), *budget);
        let answer = answer.unwrap_or_else(|failure| panic!("{method} {url}: {failure:?}"));
        if let Some(told) = header(&answer, "x-ms-file-permission-key") {
            key = told.to_owned();
        }
        if let Some(told) = header(&answer, "x-ms-snapshot") {
            time = told.to_owned();
        }
        if let Some(told) = between(&text(answer).await, "<Version>", "</Version>").first() {
            version = (*told).to_owned();
        }
    }
    tally.assert();
}

#[tokio::test]
async fn every_operation_keeps_its_budget_on_a_node_that_has_just_started() {
    every_operation_keeps_its_budget(NodeState::JustStarted).await;
}

#[tokio::test]
async fn every_operation_keeps_its_budget_on_a_node_that_knows_its_way() {
    every_operation_keeps_its_budget(NodeState::KnowsItsWay).await;
}

/// Those of directories and files have theirs elsewhere.
#[test]
fn every_operation_has_a_budget() {
    let named =
        BUDGET.iter().map(|((method, url, headers, _), _)| Op::named_by(&request(method, url, headers)).unwrap());
    let budgeted: HashSet<Op> = named.chain(WITHOUT_ROWS.iter().copied()).collect();
    let ours = Op::ALL.iter().take_while(|op| **op != Op::CreateDirectory);
    let missing: Vec<&Op> = ours.filter(|op| !budgeted.contains(op)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
