//! The engine under a seeded scheduler: every lock, atomic and hand-over is a point where threads may change places.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{assert_clean, delete, get, pattern, put, sweep};
use engine::Engine;
use engine_embedded::{Durability, EmbeddedEngine, Options, virtual_time};
use shuttle::future::block_on;
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner, thread};

/// Runs `test` under many seeds, while time moves by itself.
fn explore(seeds: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(20_000_000);
    Runner::new(RandomScheduler::new_from_seed(1, seeds), config).run(move || {
        let done = Arc::new(AtomicBool::new(false));
        let clock = {
            let done = Arc::clone(&done);
            thread::spawn(move || {
                while !done.load(Ordering::Acquire) {
                    virtual_time::advance_to_next();
                    thread::yield_now();
                }
            })
        };
        test();
        done.store(true, Ordering::Release);
        clock.join().expect("the clock ends");
    });
}

fn cramped(durability: Durability) -> Options {
    Options {
        durability,
        memtable_bytes: 8 << 10,
        log_bytes: 64 << 10,
        segment_bytes: 1 << 20,
        row_cache_bytes: 4 << 10,
        content_cache_bytes: 4 << 10,
        ..Options::default()
    }
}

#[test]
fn what_was_acknowledged_is_there_in_every_order_of_events() {
    for durability in [Durability::Full, Durability::Relaxed] {
        explore(15, move || {
            let folder = tempfile::tempdir().expect("a folder");
            let engine = EmbeddedEngine::open(folder.path(), cramped(durability)).expect("opened");
            let clients = (0..3).map(|client| {
                let engine = Arc::clone(&engine);
                thread::spawn(move || {
                    for round in 0..6 {
                        let name = format!("{client}-{round}");
                        let length = if round == 3 { 70_000 } else { 3_000 };
                        block_on(put(&*engine, &name, &pattern(&name, round, length))).expect("put");
                        assert!(block_on(get(&*engine, &name)).expect("read").is_some());
                        if round % 2 == 0 {
                            block_on(delete(&*engine, &name)).expect("deleted");
                        }
                    }
                })
            });
            let clients: Vec<_> = clients.collect();
            clients.into_iter().for_each(|client| client.join().expect("a client ends"));
            block_on(sweep(&*engine));
            block_on(engine.close()).expect("closed");
            drop(engine);
            assert_clean(folder.path());
            let engine = EmbeddedEngine::open(folder.path(), cramped(durability)).expect("opened again");
            for (client, round) in (0..3).flat_map(|client| (0..6).map(move |round| (client, round))) {
                let name = format!("{client}-{round}");
                let length = if round == 3 { 70_000 } else { 3_000 };
                let expected = (round % 2 == 1).then(|| pattern(&name, round, length));
                assert!(block_on(get(&*engine, &name)).expect("read") == expected, "{name}");
            }
            block_on(engine.close()).expect("closed");
        });
    }
}

/// The hand-over itself: many small batches, and a committer that also wakes up to sync.
#[test]
fn no_batch_is_lost_between_decider_and_committer() {
    explore(300, || {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options { collects: false, ..cramped(Durability::Relaxed) };
        let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
        let clients = (0..2).map(|client| {
            let engine = Arc::clone(&engine);
            thread::spawn(move || {
                for round in 0..8 {
                    let name = format!("{client}-{round}");
                    block_on(put(&*engine, &name, &pattern(&name, round, 20))).expect("an answer");
                }
            })
        });
        let clients: Vec<_> = clients.collect();
        clients.into_iter().for_each(|client| client.join().expect("a client ends"));
        block_on(engine.close()).expect("closed");
    });
}
