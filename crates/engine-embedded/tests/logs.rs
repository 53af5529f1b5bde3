//! What keeps failing in the background is in the log, and does not fill it.

mod common;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{cramped_options, key, pattern};
use engine::{Changes, Commit, Engine};
use engine_embedded::faults::{FaultyDisk, Point};
use engine_embedded::{EmbeddedEngine, Options};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Counts the lines by what they say.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<BTreeMap<String, u32>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if matches!(field.name(), "message" | "what") {
            self.0 += &format!("{value:?} ");
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        *self.0.lock().expect("no panic").entry(text.0).or_default() += 1;
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_failing_is_said_once_in_a_while() {
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone()).expect("the only test of this file");
    let (fails, failures) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (failing, counted) = (Arc::clone(&fails), Arc::clone(&failures));
    let disk = FaultyDisk::new(move |point, _| {
        if matches!(point, Point::Tree | Point::StateWrite | Point::Create) && failing.load(Ordering::Acquire) {
            counted.fetch_add(1, Ordering::AcqRel);
            return Err(std::io::Error::other("not now"));
        }
        Ok(())
    });
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { disk: Arc::new(disk), ..cramped_options() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let began = Instant::now();
    fails.store(true, Ordering::Release);
    for number in 0..20 {
        let (key, row) = (key(&format!("{number}")), pattern("row", number, 6_000));
        let done = engine::commit::<_, std::convert::Infallible, _>(&*engine, key.clone(), move |_, _| {
            let mut changes = Changes::none();
            changes.put(key.clone(), row.clone());
            Ok(Commit { changes, outcome: () })
        });
        done.await.expect("committed");
    }
    // The threads that fail try again by themselves; how soon is not promised.
    while failures.load(Ordering::Acquire) < 20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    fails.store(false, Ordering::Release);
    let minutes = began.elapsed().as_secs() / 60;
    let lines = lines.0.lock().expect("no panic").clone();
    assert!(lines.keys().any(|line| line.contains("tried again")), "{lines:?}");
    assert!(lines.values().all(|count| u64::from(*count) <= 1 + minutes), "{lines:?}");
    engine.close().await.expect("closed");
}
