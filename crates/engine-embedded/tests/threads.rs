//! A thread that panics ends the engine in sight, and a restart recovers everything that was acknowledged.

mod common;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{assert_clean, crash_copy, get, open, pattern, put};
use engine::{Changes, Commit, Engine, EngineError, Key, Visit};
use engine_embedded::probe::{Moment, Probe};
use engine_embedded::{EmbeddedEngine, OnFatal, Options};

/// Against a test that would hang for ever.
const PATIENCE: Duration = Duration::from_secs(300);
/// More rows than a decision looks at in its turn.
const MANY: u64 = 1_200;

/// Looks at so many rows that it is run outside.
async fn look_at_many(engine: &dyn Engine) -> Result<u64, EngineError> {
    let looked = engine::commit::<_, std::convert::Infallible, _>(engine, Key::new(0x71), |rows, tick| {
        let (from, mut count) = (Key::new(0x71), 0);
        rows.scan(&from, &from.after_all(), 10_000, &mut |_, _| {
            count += 1;
            Visit::Next
        })?;
        assert!(tick.entropy != 0, "a decision has randomness");
        Ok(Commit { changes: Changes::none(), outcome: count })
    });
    looked.await.map_err(common::failure)
}

async fn put_many(engine: &dyn Engine) {
    let done = engine::commit::<_, std::convert::Infallible, _>(engine, Key::new(0x71), |_, _| {
        let mut changes = Changes::none();
        for number in 0..MANY {
            changes.put(Key::new(0x71).number(number), "row");
        }
        Ok(Commit { changes, outcome: () })
    });
    done.await.expect("committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_any_thread_ends_the_engine_in_sight() {
    let threads =
        [Moment::Decider, Moment::Committer, Moment::Outside, Moment::Flusher, Moment::Compactor, Moment::Collector];
    for thread in threads {
        let folder = tempfile::tempdir().expect("a folder");
        let armed = Arc::new(AtomicBool::new(false));
        let died = Arc::new(Mutex::new(None::<String>));
        let options = {
            let (armed, died) = (Arc::clone(&armed), Arc::clone(&died));
            Options {
                probe: Probe::new(move |moment| {
                    assert!(moment != thread || !armed.load(Ordering::Acquire), "an injected panic");
                    Ok(())
                }),
                on_fatal: OnFatal(Arc::new(move |why| *died.lock().expect("no panic") = Some(why.into()))),
                ..Options::default()
            }
        };
        let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
        put_many(&*engine).await;
        for round in 0..10 {
            let name = format!("{round}");
            put(&*engine, &name, &pattern(&name, round, 3_000)).await.expect("put");
        }
        armed.store(true, Ordering::Release);
        let waiting = tokio::time::timeout(PATIENCE, async {
            while died.lock().expect("no panic").is_none() {
                // Every call is answered, with success or with an error.
                let _ = look_at_many(&*engine).await;
                let _ = put(&*engine, "late", &pattern("late", 1, 100)).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        waiting.await.unwrap_or_else(|_| panic!("{thread:?} died unseen"));
        let why = died.lock().expect("no panic").clone().expect("a reason");
        assert!(why.contains("panicked") && why.contains("an injected panic"), "{why}");
        assert_eq!(put(&*engine, "later", &pattern("later", 1, 100)).await, Err(EngineError::Closed), "{thread:?}");
        let after = tempfile::tempdir().expect("a folder");
        crash_copy(folder.path(), after.path());
        let closing = tokio::task::spawn_blocking(move || drop(engine.close()));
        tokio::time::timeout(PATIENCE, closing).await.expect("close ends").expect("no panic");
        for left in [folder.path(), after.path()] {
            let engine = open(left);
            assert_eq!(look_at_many(&*engine).await, Ok(MANY));
            for round in 0..10 {
                let name = format!("{round}");
                assert_eq!(get(&*engine, &name).await, Ok(Some(pattern(&name, round, 3_000))), "{thread:?}");
            }
            drop(engine);
            assert_clean(left);
        }
    }
}

#[tokio::test]
async fn without_randomness_decisions_fail_and_nothing_else_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let dry = Arc::new(AtomicBool::new(false));
    let options = {
        let dry = Arc::clone(&dry);
        let probe = Probe::new(move |moment| match moment {
            Moment::Entropy if dry.load(Ordering::Acquire) => Err(io::Error::other("no entropy")),
            _ => Ok(()),
        });
        Options { probe, ..Options::default() }
    };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    put_many(&*engine).await;
    assert_eq!(look_at_many(&*engine).await, Ok(MANY));
    dry.store(true, Ordering::Release);
    assert!(matches!(look_at_many(&*engine).await, Err(EngineError::Unavailable(_))), "it is run outside");
    // The decider draws for many decisions at once: after those it notices.
    while put(&*engine, "one", &pattern("one", 1, 100)).await.is_ok() {}
    assert!(matches!(put(&*engine, "one", &pattern("one", 1, 100)).await, Err(EngineError::Unavailable(_))));
    assert_eq!(get(&*engine, "one").await, Ok(Some(pattern("one", 1, 100))));
    dry.store(false, Ordering::Release);
    put(&*engine, "two", &pattern("two", 1, 100)).await.expect("it works again");
    assert_eq!(look_at_many(&*engine).await, Ok(MANY));
}
