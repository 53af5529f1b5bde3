use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use engine::{Commit, Staged};

use super::*;
use crate::probe::Probe;
use crate::recovery::read_batch;
use crate::{EmbeddedEngine, Options};

/// Holds the flusher, so that no further log is made, until it is dropped.
struct Held(Arc<AtomicBool>);

impl Held {
    fn probe(&self) -> Probe {
        let holds = Arc::clone(&self.0);
        Probe::new(move |moment| {
            while moment == Moment::Flusher && holds.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A content in as many segments as it has bytes.
fn scattered(bytes: u32) -> Staged {
    let place = |number: u32| ExtentPlace { segment: 1_000 + u64::from(number), offset: 0, length: 1, sums: vec![0] };
    let places: Vec<ExtentPlace> = (0..bytes).map(place).collect();
    let rows = Manifest::rows_for(u64::from(bytes), &places).iter().map(Manifest::encode).collect();
    Staged::new(ContentId(7), u64::from(bytes), Part::Placed { rows: Arc::new(rows), hold: Arc::new(()) })
}

async fn change(engine: &EmbeddedEngine, fill: impl Fn(&mut Changes) + Send + 'static) {
    let done = engine::commit::<_, Infallible, _>(engine, Key::new(0x70), move |_, _| {
        let mut changes = Changes::none();
        fill(&mut changes);
        Ok(Commit { changes, outcome: () })
    });
    done.await.expect("committed");
}

/// The rows of live bytes come on top of what was decided. However many they are, what comes after them leaves them whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_with_many_rows_of_live_bytes_is_not_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let flusher = Held(Arc::new(AtomicBool::new(true)));
    let options = Options { probe: flusher.probe(), ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let _until_the_end = flusher;
    let content = scattered(6_000);
    change(&engine, |changes| changes.rows.push((Key::new(0x70), Some(vec![1; 780_000].into())))).await;
    change(&engine, move |changes| changes.contents.push(content.clone())).await;
    change(&engine, |changes| changes.rows.push((Key::new(0x71), Some("after".into())))).await;
    let log = engine.inner.segments.all().remove(0);
    let mut at = PAGE;
    for number in 1..=3 {
        let batch = read_batch(&log, at).expect("read").unwrap_or_else(|| panic!("batch {number} is damaged"));
        assert_eq!(batch.header.number, number);
        at = batch.header.end();
    }
    assert!(at > 1 << 20, "the log has outgrown its length");
}
