//! What older versions of the protocol allow and show.

use crate::harness::Table;
use crate::stage::{Stage, body};

#[test]
fn limits_by_version() {
    let stage = Stage::new();
    let mut table = Table::new("limits by version");
    let (old_text, new_text) = ("x".repeat(8 * 1024), "x".repeat(64 * 1024));
    for (version, line, text, expected) in [
        // How long a message lives.
        ("2017-04-17", "POST que/messages?messagettl=604800", "x", "201"),
        ("2017-04-17", "POST que/messages?messagettl=604801", "x", "400 OutOfRangeQueryParameterValue"),
        ("2017-04-17", "POST que/messages?messagettl=-1", "x", "400 InvalidQueryParameterValue"),
        ("2017-07-29", "POST que/messages?messagettl=604801", "x", "201"),
        ("2017-07-29", "POST que/messages?messagettl=-1", "x", "201"),
        // For how long one that is given out is hidden.
        ("2009-09-19", "GET que/messages?visibilitytimeout=7200", "", "200"),
        ("2009-09-19", "GET que/messages?visibilitytimeout=7201", "", "400 OutOfRangeQueryParameterValue"),
        ("2011-08-18", "GET que/messages?visibilitytimeout=7201", "", "200"),
        // How long its text may be.
        ("2009-09-19", "POST que/messages", &old_text, "201"),
        ("2009-09-19", "POST que/messages", &format!("{old_text}x"), "413 RequestBodyTooLarge"),
        ("2011-08-18", "POST que/messages", &new_text, "201"),
        ("2011-08-18", "POST que/messages", &format!("{new_text}x"), "413 RequestBodyTooLarge"),
    ] {
        let document = if text.is_empty() { String::new() } else { body(text) };
        let answer = stage.client.try_call(line, &[("x-ms-version", version)], document).expect("an answer");
        // A header with the code came with 2017-07-29; the body has always had it.
        let code = (!answer.is_success()).then(|| answer.xml().text_of("Code").expect("a code"));
        let said = code.map_or(answer.status.to_string(), |code| format!("{} {code}", answer.status));
        table.row(format!("{version} {line} with {}", text.len()), said, expected);
    }
}

#[test]
fn what_a_put_shows() {
    let stage = Stage::new();
    for (version, shown) in [("2016-05-30", false), ("2016-05-31", true), ("2026-10-06", true)] {
        let put = stage.call("POST que/messages", &[("x-ms-version", version)], body("x")).ok();
        assert_eq!((put.status, !put.body.is_empty()), (201, shown), "{version}");
    }
}
