//! Many clients at once: where there can be one winner there is one; where the last writer wins, it wins whole.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use crate::harness::{Answer, Client};
use crate::stage::{Stage, body, messages};

const CLIENTS: usize = 16;
const ROUNDS: usize = 20;

/// All send at the same time, each its own request.
fn at_once(clients: &mut [Client], ask: impl Fn(&Client, usize) -> Answer + Sync) -> Vec<Answer> {
    let barrier = Barrier::new(clients.len());
    thread::scope(|scope| {
        let (barrier, ask) = (&barrier, &ask);
        let mut asking = Vec::new();
        for (number, client) in clients.iter_mut().enumerate() {
            asking.push(scope.spawn(move || {
                barrier.wait();
                ask(client, number)
            }));
        }
        asking.into_iter().map(|asked| asked.join().expect("an answer")).collect()
    })
}

fn clients(stage: &Stage) -> Vec<Client> {
    (0..CLIENTS).map(|_| stage.server.client()).collect()
}

fn said(answers: &[Answer]) -> Vec<String> {
    let mut said: Vec<String> = answers.iter().map(Answer::said).collect();
    said.sort();
    said
}

/// Sixteen have the same receipt. One of them uses it; for all others it is stale.
#[test]
fn one_receipt_one_winner() {
    let stage = Stage::new();
    let mut clients = clients(&stage);
    for round in 0..ROUNDS {
        stage.put("0");
        let taken = stage.take(1, 60).remove(0);
        let updated = at_once(&mut clients, |client, number| {
            client.call(&format!("PUT {}&visibilitytimeout=60", taken.url()), &[], body(&number.to_string()))
        });
        let mut expected = vec!["404 MessageNotFound"; CLIENTS];
        expected[0] = "204";
        expected.sort_unstable();
        assert_eq!(said(&updated), expected, "round {round}");
        let winner = updated.iter().position(Answer::is_success).expect("one winner");
        let receipt = updated[winner].header("x-ms-popreceipt").expect("a receipt");
        let last = crate::stage::Message { receipt: receipt.to_owned(), ..taken };
        // It is the winner's text that is there, and the winner's receipt that is good, once.
        stage.server.advance(61);
        let seen = stage.peek(1).remove(0);
        assert_eq!(seen.text.as_deref(), Some(winner.to_string().as_str()));
        let deleted = at_once(&mut clients, |client, _| client.call(&format!("DELETE {}", last.url()), &[], ""));
        assert_eq!(said(&deleted), expected, "round {round}");
    }
    assert_eq!(stage.count(), 0);
}

/// A message is given to one of those who wait for it, also when it comes back.
#[test]
fn each_message_goes_to_one() {
    let stage = Stage::new();
    let mut clients = clients(&stage);
    for round in 0..ROUNDS {
        // As many messages as half of the clients: each is given out once, and the others get nothing.
        let ids: BTreeSet<String> = (0..CLIENTS / 2).map(|n| stage.put(&n.to_string()).id).collect();
        for dequeued in 1..=2 {
            let line = "GET que/messages?visibilitytimeout=30";
            let answers = at_once(&mut clients, |client, _| client.call(line, &[], ""));
            let taken: Vec<_> = answers.into_iter().flat_map(messages).collect();
            assert_eq!(taken.len(), ids.len(), "round {round}");
            assert_eq!(taken.iter().map(|message| message.id.clone()).collect::<BTreeSet<_>>(), ids);
            assert!(taken.iter().all(|message| message.dequeued == Some(dequeued)), "round {round}: {taken:?}");
            // None was deleted: all come back, each to one.
            stage.server.advance(31);
        }
        stage.call("DELETE que/messages", &[], "").ok();
    }
}

/// Metadata, policies and settings have no conditions: all writers succeed, and what is there then is one of them, whole.
#[test]
fn the_last_writer_wins_whole() {
    let stage = Stage::new();
    let mut clients = clients(&stage);
    for round in 0..ROUNDS {
        let value = |number: usize| format!("r{round}n{number}");
        let set = at_once(&mut clients, |client, number| {
            let value = value(number);
            let headers: Vec<(String, String)> =
                (0..=number).map(|at| (format!("x-ms-meta-k{at}"), value.clone())).collect();
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            client.call("PUT que?comp=metadata", &headers, "")
        });
        assert_eq!(said(&set), vec!["204"; CLIENTS], "round {round}");
        let told = stage.call("GET que?comp=metadata", &[], "").ok();
        let pairs: Vec<&str> =
            told.headers.iter().filter(|(name, _)| name.starts_with("x-ms-meta-")).map(|(_, v)| v.as_str()).collect();
        let winner = pairs.len() - 1;
        assert!(pairs.iter().all(|got| *got == value(winner)), "round {round}: {pairs:?}");

        let set = at_once(&mut clients, |client, number| {
            let policies: String = (0..number % 5 + 1)
                .map(|at| {
                    let id = value(number);
                    format!("<SignedIdentifier><Id>{id}-{at}</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier>")
                })
                .collect();
            client.call("PUT que?comp=acl", &[], format!("<SignedIdentifiers>{policies}</SignedIdentifiers>"))
        });
        assert_eq!(said(&set), vec!["204"; CLIENTS], "round {round}");
        let told = stage.call("GET que?comp=acl", &[], "").ok().xml();
        let ids: Vec<String> = told.children.iter().map(|policy| policy.text_of("Id").expect("an id")).collect();
        let whole = (0..CLIENTS)
            .any(|number| ids == (0..number % 5 + 1).map(|at| format!("{}-{at}", value(number))).collect::<Vec<_>>());
        assert!(whole, "round {round}: {ids:?}");

        let set = at_once(&mut clients, |client, number| {
            let days = number + 1;
            let retention = format!("<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy>");
            let metrics = |name: &str| {
                format!(
                    "<{name}><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>{retention}</{name}>"
                )
            };
            let both = metrics("HourMetrics") + &metrics("MinuteMetrics");
            let document = format!("<StorageServiceProperties>{both}</StorageServiceProperties>");
            client.call("PUT ?restype=service&comp=properties", &[], document)
        });
        assert_eq!(said(&set), vec!["202"; CLIENTS], "round {round}");
        let told = stage.call("GET ?restype=service&comp=properties", &[], "").ok().xml();
        let days = |name: &str| told.text_of(&format!("{name}/RetentionPolicy/Days")).expect("days");
        assert_eq!(days("HourMetrics"), days("MinuteMetrics"), "round {round}");
    }
}
