//! Which right every operation needs under a signature of the account, and that it is refused without.

use crate::harness::Table;
use crate::stage::{Stage, VERSION, call_signed};

const ENTITY: &str = "none(PartitionKey='p',RowKey='r')";
const ALL_LETTERS: &str = "rwdlacu";

/// The request, the resource type that the signature must be for, and the letters that it must have: all of those in the
/// first text, and one of those in the second.
type Row = (&'static str, &'static [(&'static str, &'static str)], char, &'static str, &'static str);

/// There is no table `none`: whoever gets past the door is told so.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("GET ?restype=service&comp=properties", &[], 's', "r", ""),
    ("PUT ?restype=service&comp=properties", &[], 's', "w", ""),
    ("GET ?restype=service&comp=stats", &[], 's', "r", ""),
    ("GET Tables", &[], 'c', "l", ""),
    ("POST Tables", &[], 'c', "", "cw"),
    ("DELETE Tables('none')", &[], 'c', "d", ""),
    ("GET none()", &[], 'o', "r", ""),
    ("POST none", &[], 'o', "a", ""),
    (ENTITY_PUT, &[("if-match", "*")], 'o', "u", ""),
    (ENTITY_MERGE, &[("if-match", "*")], 'o', "u", ""),
    (ENTITY_PUT, &[], 'o', "au", ""),
    (ENTITY_MERGE, &[], 'o', "au", ""),
    (ENTITY_DELETE, &[("if-match", "*")], 'o', "d", ""),
];
const ENTITY_PUT: &str = "PUT none(PartitionKey='p',RowKey='r')";
const ENTITY_MERGE: &str = "MERGE none(PartitionKey='p',RowKey='r')";
const ENTITY_DELETE: &str = "DELETE none(PartitionKey='p',RowKey='r')";

pub fn signature(stage: &Stage, services: &str, types: &str, letters: &str) -> String {
    let (version, expiry) = ("2019-02-02", "2099-01-01T00:00:00Z");
    let lines = ["devstoreaccount1", letters, services, types, "", expiry, "", "", version, ""];
    let signed = wire::percent::encode_value(&stage.client.sign(&lines.join("\n"))).into_owned();
    format!("sv={version}&ss={services}&srt={types}&sp={letters}&se={expiry}&sig={signed}")
}

#[test]
fn by_a_signature_of_the_account() {
    let stage = Stage::new();
    let mut table = Table::new("rights by a signature of the account");
    for (line, headers, kind, all, one) in TABLE {
        let headers = [headers, &[VERSION][..]].concat();
        let ask = |services: &str, types: &str, letters: &str| {
            let joint = if line.contains('?') { '&' } else { '?' };
            let line = format!("{line}{joint}{}", signature(&stage, services, types, letters));
            let answer = call_signed(&stage.client, &line, &headers, "");
            answer.header("x-ms-error-code").filter(|code| code.starts_with("Auth")).unwrap_or("allowed").to_owned()
        };
        let enough: Vec<String> = match *one {
            "" => vec![(*all).to_owned()],
            letters => letters.chars().map(|letter| letter.to_string()).collect(),
        };
        let kind = kind.to_string();
        for letters in enough {
            table.row(format!("{line} with {letters}"), ask("t", &kind, &letters), "allowed");
        }
        for missing in all.chars() {
            let rest: String = ALL_LETTERS.chars().filter(|letter| *letter != missing).collect();
            table.row(format!("{line} without {missing}"), ask("t", &kind, &rest), "AuthorizationPermissionMismatch");
        }
        let others: String = "sco".chars().filter(|other| *other != kind.chars().next().expect("one")).collect();
        table.row(format!("{line} of {others}"), ask("t", &others, ALL_LETTERS), "AuthorizationResourceTypeMismatch");
        table.row(format!("{line} of blobs"), ask("bqf", "sco", ALL_LETTERS), "AuthorizationServiceMismatch");
    }
    for line in ["GET none?comp=acl", "PUT none?comp=acl"] {
        let line = format!("{line}&{}", signature(&stage, "t", "sco", ALL_LETTERS));
        table.row(&line[..17], call_signed(&stage.client, &line, &[VERSION], "").said(), "403 AuthorizationFailure");
    }
    assert!(TABLE.iter().any(|row| row.0.ends_with(ENTITY)), "the entity stands in the table");
}
