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
        ("startswith(text,'a')", 501),
        ("1 eq 1", 400),
    ] {
        let answer = stage.get(&format!("tab()?$filter={}", wire::percent::encode_value(filter)));
        let got = match answer.status {
            200 => answer.json()["value"].as_array().map_or(0, Vec::len),
            status => usize::from(status),
        };
        table.row(filter, got, count);
    }
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
