//! Queries: every type there and back, filters, projections, pages; and one state per page while others write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::harness::Table;
use crate::stage::{Stage, transact};

const EVERYTHING: &str = r#"{"PartitionKey":"it's","RowKey":"ä 😀","text":"a\"b\\c\n","int":-2147483648,"long@odata.type":"Edm.Int64","long":"9223372036854775807","whole":5.0,"tiny":5e-324,"nan@odata.type":"Edm.Double","nan":"NaN","inf@odata.type":"Edm.Double","inf":"-Infinity","yes":true,"when@odata.type":"Edm.DateTime","when":"2008-07-10T10:20:30.1234567Z","id@odata.type":"Edm.Guid","id":"c9da6455-213d-42c9-9a79-3e9149a57833","bytes@odata.type":"Edm.Binary","bytes":"AAEC/w=="}"#;

#[test]
fn every_type_there_and_back() {
    let stage = Stage::new();
    stage.call("POST tab", &[], EVERYTHING).ok();
    let found = stage.get("tab(PartitionKey='it%27%27s',RowKey='%C3%A4%20%F0%9F%98%80')").ok();
    let shown = String::from_utf8(found.body).expect("text");
    let custom = EVERYTHING.split_once("\"text\"").expect("the first of them").1;
    assert!(shown.ends_with(custom), "{shown}");
    let again = stage.call("PUT tab(PartitionKey='it%27%27s',RowKey='%C3%A4%20%F0%9F%98%80')", &[], &shown).ok();
    assert_eq!(again.status, 204, "what was shown can be written as it is");
}

#[test]
fn filters_by_type() {
    let stage = Stage::new();
    stage.call("POST tab", &[], EVERYTHING).ok();
    stage.insert("z", "z", "");
    let mut table = Table::new("filters by type");
    for (filter, count) in [
        ("PartitionKey eq 'it''s'", 1),
        ("text eq 'a\"b\\c\n'", 1),
        ("int lt -5", 1),
        ("long eq 9223372036854775807L", 1),
        ("long eq 5", 0),
        ("whole eq 5.0", 1),
        ("whole eq 5", 1),
        ("nan eq nan", 400),
        ("inf lt 0.0", 1),
        ("yes", 1),
        ("yes eq true and not (int gt 0)", 1),
        ("when eq datetime'2008-07-10T10:20:30.1234567Z'", 1),
        ("when gt datetime'2008-07-10T10:20:30.1234567Z'", 0),
        ("id eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", 1),
        ("bytes eq X'000102ff'", 1),
        ("bytes gt binary'00'", 1),
        ("text ne 'x'", 1),
        ("not (text eq 'x')", 2),
        ("missing ne 1", 0),
        ("int eq '5'", 0),
        ("Timestamp gt datetime'2020-01-01T00:00:00Z'", 2),
        ("RowKey ge 'ä' and RowKey lt 'å'", 1),
        ("RowKey gt 'y' or PartitionKey lt 'j'", 2),
        ("", 2),
        ("5 gt int", 1),
        ("'x' ne text", 1),
        ("yes eq false", 0),
        ("not yes", 1),
        ("missing", 0),
        ("text", 0),
        // `and` binds closer than `or`, `not` closer than both.
        ("yes or int eq 1 and text eq 'x'", 1),
        ("(yes or int eq 1) and text eq 'x'", 0),
        ("not yes and text eq 'x'", 0),
        ("not (yes and text eq 'x')", 2),
        ("id gt guid'c9da6455-213d-42c9-9a79-3e9149a57832'", 1),
        ("bytes lt X'000102fe'", 0),
        ("when ge datetime'2008-07-10T12:20:30.1234567+02:00'", 1),
        ("startswith(text,'a')", 501),
        ("int add 1 eq 2", 501),
        ("1 eq 1", 400),
        ("int EQ 1", 400),
        ("int eq", 400),
        ("(int eq 1", 400),
        ("int eq 1)", 400),
        ("int eq 'x", 400),
        ("int eq long", 400),
        ("id eq guid'x'", 400),
        ("when eq datetime'x'", 400),
        ("bytes eq X'0'", 400),
        ("int eq 99999999999", 0),
    ] {
        let answer = stage.get(&format!("tab()?$filter={}", wire::percent::encode_value(filter)));
        let got = match answer.status {
            200 => answer.json()["value"].as_array().map_or(0, Vec::len),
            status => usize::from(status),
        };
        table.row(filter, got, count);
    }
}

/// The service documents fifteen comparisons and takes more.
#[test]
fn long_filters() {
    let stage = Stage::new();
    for n in 0..40 {
        stage.insert("p", &format!("{n:02}"), &format!(",\"n\":{n}"));
    }
    let of = |count: usize| (0..count).map(|n| format!("n eq {n}")).collect::<Vec<_>>().join(" or ");
    for count in [1, 15, 16, 30] {
        let page = stage.get(&format!("tab()?$filter={}", wire::percent::encode_value(&of(count)))).ok().json();
        assert_eq!(page["value"].as_array().map(Vec::len), Some(count));
    }
}

#[test]
fn projections() {
    let stage = Stage::new();
    stage.insert("p", "r", ",\"a\":1,\"b\":2");
    let shown = |select: &str, level: &str| {
        let target = format!("GET tab()?$select={select}");
        let page = stage.call(&target, &[("accept", &format!("application/json;odata={level}"))], "").ok();
        let text = String::from_utf8(page.body).expect("text");
        let list = text.split_once("\"value\":[").expect("a list").1;
        list.strip_suffix("]}").expect("its end").to_owned()
    };
    assert_eq!(shown("b", "nometadata"), r#"{"b":2}"#);
    assert_eq!(shown("b,a", "nometadata"), r#"{"a":1,"b":2}"#);
    assert_eq!(shown("RowKey,a", "nometadata"), r#"{"RowKey":"r","a":1}"#);
    // Who asks for what is not there is told so.
    assert_eq!(shown("a,none", "nometadata"), r#"{"a":1,"none":null}"#);
    let minimal = shown("a", "minimalmetadata");
    assert!(minimal.starts_with(r#"{"odata.etag":"W/\"datetime'"#) && minimal.ends_with(r#"","a":1}"#), "{minimal}");
    assert_eq!(shown("*", "nometadata"), shown("", "nometadata"));
    assert!(shown("*,a", "nometadata").contains("\"Timestamp\""));
    assert_eq!(stage.get("tab()?$select=a%20b").said(), "400 InvalidInput");
}

/// Texts sort by their UTF-16 units, so what is beyond U+FFFF comes before U+E000.
#[test]
fn the_order_of_keys() {
    let stage = Stage::new();
    let keys = ["", "A", "a", "aa", "b", "ä", "\u{d7ff}", "\u{10000}", "😀", "\u{e000}", "\u{fffd}"];
    for key in keys.iter().rev() {
        stage.insert(key, "r", "");
        stage.insert("p", key, "");
    }
    let listed = |target: &str, name: &str| -> Vec<String> {
        let page = stage.get(target).ok().json();
        let of = |it: &serde_json::Value| it[name].as_str().expect("a text").to_owned();
        page["value"].as_array().expect("a list").iter().map(of).collect()
    };
    assert_eq!(listed("tab()?$filter=PartitionKey%20eq%20'p'", "RowKey"), keys);
    assert_eq!(listed("tab()?$filter=RowKey%20eq%20'r'", "PartitionKey"), keys);
    let beyond = wire::percent::encode_value("PartitionKey ge '\u{10000}' and RowKey eq 'r'").into_owned();
    assert_eq!(listed(&format!("tab()?$filter={beyond}"), "PartitionKey"), keys[7..]);
}

#[test]
fn pages_of_many_partitions() {
    let stage = Stage::new();
    for partition in 0..12 {
        let lines: Vec<String> =
            (0..100).map(|row| format!("PUT tab(PartitionKey='{partition:02}',RowKey='{row:03}')")).collect();
        let operations: Vec<_> = lines.iter().map(|line| (line.as_str(), &[][..], "{\"v\":1}")).collect();
        assert_eq!(stage.transact(&operations).len(), 100);
    }
    let mut seen = Vec::new();
    let mut next = String::new();
    let mut pages = 0;
    loop {
        let page = stage.get(&format!("tab()?$select=PartitionKey,RowKey{next}")).ok();
        pages += 1;
        for entity in page.json()["value"].as_array().expect("a list") {
            seen.push(format!("{}{}", entity["PartitionKey"], entity["RowKey"]));
        }
        let token = |name: &str| page.header(name).map(|token| wire::percent::encode_value(token).into_owned());
        let Some(partition) = token("x-ms-continuation-nextpartitionkey") else { break };
        let row = token("x-ms-continuation-nextrowkey").expect("both");
        next = format!("&NextPartitionKey={partition}&NextRowKey={row}");
    }
    assert_eq!((pages, seen.len()), (2, 1_200));
    assert!(seen.is_sorted());
}

/// A transaction rewrites a hundred entities again and again; no page ever shows two of its states.
#[test]
fn a_page_is_one_state() {
    let stage = Stage::new();
    let lines: Vec<String> = (0..100).map(|row| format!("PUT tab(PartitionKey='p',RowKey='{row:03}')")).collect();
    let write = |client: &_, round: usize| {
        let body = format!("{{\"round\":{round}}}");
        let operations: Vec<_> = lines.iter().map(|line| (line.as_str(), &[][..], body.as_str())).collect();
        let parts = transact(client, &operations).expect("an answer");
        assert!(parts.len() == 100 && parts.iter().all(|part| part.status == 204));
    };
    write(&stage.client, 0);
    let stop = AtomicBool::new(false);
    let (writer, readers) = (stage.server.client(), [stage.server.client(), stage.server.client()]);
    let seen: usize = thread::scope(|scope| {
        let reading = readers.map(|reader| {
            let stop = &stop;
            scope.spawn(move || {
                let mut states = std::collections::BTreeSet::new();
                while !stop.load(Ordering::Relaxed) {
                    let page =
                        crate::stage::call(&reader, "GET tab()?$filter=PartitionKey%20eq%20'p'", &[], "").ok().json();
                    let rounds = page["value"]
                        .as_array()
                        .expect("a list")
                        .iter()
                        .map(|it| it["round"].as_u64().expect("a number"));
                    let rounds: Vec<u64> = rounds.collect();
                    assert_eq!(rounds.len(), 100);
                    assert!(rounds.iter().all(|round| *round == rounds[0]), "two states in one page: {rounds:?}");
                    states.insert(rounds[0]);
                }
                states.len()
            })
        });
        for round in 1..60 {
            write(&writer, round);
        }
        stop.store(true, Ordering::Relaxed);
        reading.into_iter().map(|reader| reader.join().expect("no reader fails")).sum()
    });
    assert!(seen > 4, "the readers saw only {seen} states");
}
