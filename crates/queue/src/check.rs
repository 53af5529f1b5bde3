//! What `lazurite check` verifies in queues: that marks, messages and texts agree.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use engine::due::Due;
use engine::{Engine, EngineError, Key, KeyReader, Rows, Unread, Visit, read};
use service::codec;
use service::space;
use service::unrefused;

use crate::model::{Marks, Message, Queue, messages_of, texts_of};
use crate::shelf::{DueWork, place_of};

/// Reports each problem to `problem`, in one sentence. A message without its text is no problem: the sweeper removes
/// the text of an expired message, and a later request removes the rest.
pub async fn check(engine: &dyn Engine, problem: &mut (dyn FnMut(String) + Send)) -> Result<(), EngineError> {
    unrefused(read(engine, |rows, _| Ok(examine(rows)?)).await)?.into_iter().for_each(problem);
    Ok(())
}

fn examine(rows: &dyn Rows) -> Result<Vec<String>, Unread> {
    let mut problems = Vec::new();
    let all = Generations::find(rows, &mut problems)?;
    for generation in &all.with_rows {
        match (all.queues.get(generation), all.purged.contains(generation)) {
            (Some(name), _) => {
                let marks = all.marks.get(generation).cloned().unwrap_or_default();
                for text in queue(rows, *generation, &marks)? {
                    problems.push(format!("{name}: {text}"));
                }
            }
            (None, true) => {}
            (None, false) => problems.push(format!(
                "queues: generation {generation:x} belongs to no queue, and nothing is going to remove its rows"
            )),
        }
    }
    Ok(problems)
}

/// The generations that any row belongs to.
#[derive(Default)]
struct Generations {
    /// The generations of existing queues, each with a description of its queue.
    queues: HashMap<u64, String>,
    purged: BTreeSet<u64>,
    marks: BTreeMap<u64, Marks>,
    with_rows: BTreeSet<u64>,
}

impl Generations {
    fn find(rows: &dyn Rows, problems: &mut Vec<String>) -> Result<Generations, Unread> {
        let mut all = Generations::default();
        each(rows, space::QUEUE, problems, |key, row| {
            let mut reader = KeyReader::new(key);
            let (account, name) = (reader.number().unwrap_or_default(), reader.text().unwrap_or_default());
            let generation = codec::decode::<Queue>(row)?.generation;
            all.queues.insert(generation, format!("queue {name} of account {account}"));
            Ok(())
        })?;
        each(rows, space::DUE, problems, |key, _| {
            if let Some(DueWork::Purge { generation }) = Due::from_key(key).and_then(|due| DueWork::of(&due)) {
                all.purged.insert(generation);
            }
            Ok(())
        })?;
        each(rows, space::QUEUE_MARKS, problems, |key, row| {
            let generation =
                KeyReader::new(key).number().ok_or_else(|| codec::corrupt("the key of a queue's marks"))?;
            all.marks.insert(generation, codec::decode(row)?);
            Ok(())
        })?;
        // Earlier versions of the server could leave a row of empty marks. It does no harm.
        all.with_rows.extend(all.marks.iter().filter(|(_, marks)| **marks != Marks::default()).map(|(of, _)| *of));
        for (space, of) in [(space::MESSAGE, messages_of as fn(u64) -> Key), (space::MESSAGE_TEXT, texts_of)] {
            let first = Key::new(space);
            let end = first.after_all();
            rows.scan(&first, &end, 1, &mut |key, _| match KeyReader::new(key).number() {
                Some(generation) => {
                    all.with_rows.insert(generation);
                    Visit::SkipTo(of(generation).after_all())
                }
                None => Visit::Next,
            })?;
        }
        Ok(all)
    }
}

/// What is wrong with the rows of one queue.
fn queue(rows: &dyn Rows, generation: u64, marks: &Marks) -> Result<Vec<String>, Unread> {
    let (mut standing, mut problems) = (BTreeSet::new(), Vec::new());
    each_of(rows, &messages_of(generation), &mut problems, |key, row| {
        let message = codec::decode::<Message>(row)?;
        standing.insert((message.expires, place_of(key)?.number));
        Ok(())
    })?;
    let (mut texts, mut orphans) = (0, 0);
    each_of(rows, &texts_of(generation), &mut problems, |key, _| {
        let place = place_of(key)?;
        texts += 1;
        if !standing.remove(&(place.at, place.number)) {
            orphans += 1;
        }
        Ok(())
    })?;
    if texts != marks.count {
        problems.push(format!("it counts {} messages and has {texts}", marks.count));
    }
    if orphans > 0 {
        problems.push(format!("{orphans} texts have no message"));
    }
    // Only the sweeper removes a text before its message.
    let was_swept = marks.swept > concurrency::Timestamp::default();
    if !standing.is_empty() && !was_swept {
        problems.push(format!("{} messages have no text", standing.len()));
    }
    Ok(problems)
}

fn each(
    rows: &dyn Rows,
    space: u8,
    problems: &mut Vec<String>,
    visit: impl FnMut(&[u8], &[u8]) -> Result<(), Unread>,
) -> Result<(), Unread> {
    each_of(rows, &Key::new(space), problems, visit)
}

/// Visits the rows below `all`. One that cannot be read is a problem, and the next is looked at.
fn each_of(
    rows: &dyn Rows,
    all: &Key,
    problems: &mut Vec<String>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Unread>,
) -> Result<(), Unread> {
    rows.scan(all, &all.after_all(), 1_000, &mut |key, row| {
        if visit(key, row).is_err() {
            problems.push(format!("a row cannot be read: {:?}", Key::from_bytes(key)));
        }
        Visit::Next
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use engine::{Changes, Commit};

    async fn remove(bench: &Bench, space: u8) {
        engine::commit::<(), crate::QueueError, _>(&*bench.engine, Key::new(space::QUEUE), move |rows, _| {
            let mut changes = Changes::none();
            let all = Key::new(space);
            engine::collector::delete_some(rows, &all, &all.after_all(), 1, &mut changes, |_, _, _| {})?;
            Ok(Commit { changes, outcome: () })
        })
        .await
        .unwrap();
    }

    async fn problems(bench: &Bench) -> Vec<String> {
        let mut problems = Vec::new();
        check(&*bench.engine, &mut |problem| problems.push(problem)).await.unwrap();
        problems
    }

    async fn used() -> Bench {
        let bench = Bench::with_queue().await;
        for text in ["a", "b", "c"] {
            bench.put(text).await;
        }
        bench.take(1, 30).await;
        bench
    }

    #[tokio::test]
    async fn what_queues_do_is_no_problem() {
        let bench = used().await;
        assert_eq!(problems(&bench).await, [""; 0]);
        // The remains of messages that expired at another position than the one they were put at.
        bench.put_with("short", "messagettl=5").await;
        bench.take(32, 10).await;
        bench.advance(20).await;
        bench.sweep().await;
        assert_eq!(problems(&bench).await, [""; 0]);
        bench.call("DELETE", "que/messages", &[], b"").await.unwrap();
        assert_eq!(problems(&bench).await, [""; 0]);
        bench.sweep().await;
        assert_eq!(problems(&bench).await, [""; 0]);
    }

    #[tokio::test]
    async fn what_does_not_fit_is_told() {
        for (space, expected) in [
            (space::MESSAGE, &["1 texts have no message"][..]),
            (space::MESSAGE_TEXT, &["it counts 3 messages and has 2", "1 messages have no text"]),
            (space::QUEUE_MARKS, &["it counts 0 messages and has 3"]),
        ] {
            let bench = used().await;
            remove(&bench, space).await;
            let expected: Vec<_> = expected.iter().map(|text| format!("queue que of account 1: {text}")).collect();
            assert_eq!(problems(&bench).await, expected);
        }
        let bench = used().await;
        remove(&bench, space::QUEUE).await;
        let found = problems(&bench).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("belongs to no queue"), "{found:?}");
    }

    /// A row that cannot be read is named, and the others are looked at all the same.
    #[tokio::test]
    async fn a_row_that_cannot_be_read_is_named() {
        for space in [space::QUEUE, space::QUEUE_MARKS, space::MESSAGE] {
            let bench = used().await;
            bench.call("PUT", "zzz", &[], b"").await.unwrap();
            bench
                .call("POST", "zzz/messages", &[], b"<QueueMessage><MessageText>x</MessageText></QueueMessage>")
                .await
                .unwrap();
            let first = Key::new(space);
            engine::commit::<(), crate::QueueError, _>(&*bench.engine, first.clone(), move |rows, _| {
                let mut changes = Changes::none();
                rows.scan(&first, &first.after_all(), 1, &mut |key, _| {
                    changes.put(Key::from_bytes(key), b"damaged".to_vec());
                    Visit::Stop
                })?;
                Ok(Commit { changes, outcome: () })
            })
            .await
            .unwrap();
            let found = problems(&bench).await;
            assert!(found[0].contains("cannot be read"), "{found:?}");
            assert!(!found.iter().any(|problem| problem.contains("zzz")), "{found:?}");
            // Something else that is wrong, behind it.
            remove_last(&bench, space::MESSAGE_TEXT).await;
            let found = problems(&bench).await;
            assert!(found[0].contains("cannot be read"), "{found:?}");
            assert!(found.iter().any(|problem| problem.contains("zzz")), "{found:?}");
        }
    }

    async fn remove_last(bench: &Bench, space: u8) {
        engine::commit::<(), crate::QueueError, _>(&*bench.engine, Key::new(space::QUEUE), move |rows, _| {
            let (all, mut changes, mut last) = (Key::new(space), Changes::none(), None);
            rows.scan(&all, &all.after_all(), 10, &mut |key, _| {
                last = Some(Key::from_bytes(key));
                Visit::Next
            })?;
            last.into_iter().for_each(|key| _ = changes.delete(key));
            Ok(Commit { changes, outcome: () })
        })
        .await
        .unwrap();
    }
}
