//! Random decisions on an engine, held against a model of the seam. For the tests of engines.
//!
//! `conformance` asks for what somebody thought of; this asks for the rest. From a seed come decisions and reads that get, scan (with
//! skips and stops, over thousands of rows, in their own partition and in others), put, delete whole ranges, store, copy and drop contents,
//! and refuse. First one after another, beside the memory engine: every answer is the same. Then many clients at once: there is an
//! order in which a map of rows, one thing after another, gives the answers that were given.
//!
//! `LAZURITE_MODEL_SEED=N` runs one seed alone, `LAZURITE_MODEL_SEEDS=N` so many instead of the few of the ordinary tests.

mod plan;
mod state;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use engine::memory::MemoryEngine;
use engine::{Content, Engine, EngineError, NotCommitted, Staged, Stop};
use histories::{Dice, History, Verdict};

use plan::{Outcome, Plan, Seen};

pub use plan::Reach;
use state::Asked;

/// How many seeds the ordinary tests take.
const SEEDS_DEFAULT: u64 = 2;
const STEPS_ALONE: u64 = 150;
const CLIENTS: u64 = 6;
const STEPS_AT_ONCE: u64 = 40;

/// A test of each kind against engines made by `$make`: a vector of engines on the same rows, or `None` where what they need is
/// not installed.
#[macro_export]
macro_rules! model_tests {
    ($make:expr) => {
        $crate::model_tests!($make, $crate::Reach::Anywhere);
    };
    ($make:expr, $reach:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn one_after_another_every_answer_is_that_of_memory() {
            for seed in $crate::seeds() {
                let Some(engines) = $make else { return };
                $crate::alone(engines, seed).await;
            }
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn at_once_the_answers_are_those_of_some_order() {
            for seed in $crate::seeds() {
                let Some(engines) = $make else { return };
                $crate::at_once(engines, seed, $reach).await;
            }
        }
    };
}

/// The seeds to run.
#[must_use]
pub fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("LAZURITE_MODEL_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("LAZURITE_MODEL_SEEDS").unwrap_or(SEEDS_DEFAULT)).collect(),
    }
}

/// One thing after another, on each engine in turn: every answer is that of the memory engine, and so are all rows at the end.
pub async fn alone(engines: Vec<Arc<dyn Engine>>, seed: u64) {
    let memory = MemoryEngine::default();
    let mut dice = Dice::new(seed);
    let plans = plan::first(seed)
        .into_iter()
        .chain((0..STEPS_ALONE).map(|step| Plan::random(&mut dice, step + 100, Reach::Anywhere)));
    let plans: Vec<Plan> = plans.chain([Plan::look_at_everything()]).collect();
    for (step, plan) in plans.into_iter().enumerate() {
        let engine = &*engines[step % engines.len()];
        let expected = ask(&memory, &Arc::new(stage(&memory, plan.clone()).await)).await;
        let answer = ask(engine, &Arc::new(stage(engine, plan.clone()).await)).await;
        assert_eq!(answer, expected, "seed {seed}, step {step}: {plan:?}");
        if step % 20 == 0 {
            sweep(engine).await;
            sweep(&memory).await;
        }
    }
    leave_nothing(&engines, seed).await;
}

/// Many clients at once, spread over the engines: the answers are those of some order of the decisions.
pub async fn at_once(engines: Vec<Arc<dyn Engine>>, seed: u64, reach: Reach) {
    let history = Arc::new(History::default());
    for plan in plan::first(seed) {
        noted(&engines[0], &history, 0, plan).await;
    }
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (engine, history) = (Arc::clone(&engines[client as usize % engines.len()]), Arc::clone(&history));
            tokio::spawn(async move {
                let mut dice = Dice::new(seed.wrapping_mul(1_000).wrapping_add(client));
                for step in 0..STEPS_AT_ONCE {
                    let plan = Plan::random(&mut dice, (client + 1) * 10_000 + step, reach);
                    noted(&engine, &history, client, plan).await;
                    if dice.chance(5) {
                        sweep(&*engine).await;
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    noted(&engines[0], &history, 0, Plan::look_at_everything()).await;
    let history = Arc::into_inner(history).expect("all clients have ended").into_calls();
    let judged = tokio::task::spawn_blocking(move || histories::check(state::Rows::default(), &history, 0)).await;
    match judged.expect("the checker ends") {
        Verdict::Fine => leave_nothing(&engines, seed).await,
        Verdict::Wrong(why) | Verdict::NotJudged(why) => panic!("seed {seed} (LAZURITE_MODEL_SEED={seed}): {why}"),
    }
}

type Notes = History<Arc<Asked>, Outcome>;

async fn noted(engine: &Arc<dyn Engine>, history: &Notes, client: u64, plan: Plan) {
    let asked = Arc::new(stage(&**engine, plan).await);
    let ticket = history.begin(client, Arc::clone(&asked), 0);
    match ask(&**engine, &asked).await {
        Ok(answer) => history.end(&ticket, answer, 0),
        // It may have been done: an engine that gives up waiting does not know.
        Err(EngineError::Busy | EngineError::Unavailable(_)) => {}
        Err(error) => panic!("{:?}: {error}", asked.plan),
    }
}

/// The contents of a plan are there before it is asked for.
async fn stage(engine: &dyn Engine, plan: Plan) -> Asked {
    let mut contents = Vec::new();
    for label in plan.labels() {
        let bytes = plan::bytes_of(label);
        let mut writer = engine.writer(Some(bytes.len() as u64));
        for piece in bytes.chunks(50_000) {
            writer.write(Bytes::copy_from_slice(piece)).await.expect("a piece");
        }
        contents.push((label, writer.finish().await.expect("a staged content")));
    }
    Asked { plan, contents }
}

/// What the engine answers. Every content that it hands out is read to its end, and must be what its row says.
async fn ask(engine: &dyn Engine, asked: &Arc<Asked>) -> Result<Outcome, EngineError> {
    let run = Arc::clone(asked);
    let (outcome, contents) = if asked.plan.writes() {
        let decision = move |rows: &dyn engine::Rows, _| {
            let Seen { outcome, contents, changes } = run.run(rows)?;
            match outcome {
                Outcome::Refused(_) => Err(Stop::Refused((outcome, contents))),
                Outcome::Done(_) => Ok(engine::Commit { changes, outcome: (outcome, contents) }),
            }
        };
        match engine::commit(engine, asked.plan.partitions(), decision).await {
            Ok(answer) | Err(NotCommitted::Refused(answer)) => answer,
            Err(NotCommitted::Failed(error)) => return Err(error),
        }
    } else {
        let read = engine::read::<_, Infallible, _>(engine, move |rows, _| {
            let seen = run.run(rows)?;
            Ok((seen.outcome, seen.contents))
        });
        read.await.map_err(failure)?
    };
    for (label, content) in &contents {
        assert!(read_all(content).await? == plan::bytes_of(*label), "the content of {label} is not what was stored");
    }
    Ok(outcome)
}

async fn read_all(content: &Content) -> Result<Vec<u8>, EngineError> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < content.length() {
        let more = content.read(bytes.len() as u64, 1 << 20).await?;
        assert!(!more.is_empty(), "a content ends before its length");
        bytes.extend_from_slice(&more);
    }
    Ok(bytes)
}

fn failure(error: NotCommitted<Infallible>) -> EngineError {
    match error {
        NotCommitted::Failed(error) => error,
        NotCommitted::Refused(never) => match never {},
    }
}

async fn sweep(engine: &dyn Engine) {
    match engine::collector::sweep(engine, &[]).await {
        Ok(_) | Err(EngineError::Busy) => {}
        Err(error) => panic!("the sweep: {error}"),
    }
}

/// When all rows are deleted and everything due is done, no content is left.
async fn leave_nothing(engines: &[Arc<dyn Engine>], seed: u64) {
    let engine = &*engines[0];
    for plan in Plan::delete_everything() {
        ask(engine, &Arc::new(Asked { plan, contents: Vec::new() })).await.expect("deleted");
    }
    while engine::collector::sweep(engine, &[]).await.expect("swept") > 0 {}
    let left = engine.figures().into_iter().find(|(name, _)| *name == "contents").map_or(0, |(_, count)| count);
    assert_eq!(left, 0, "seed {seed}: contents that nobody refers to");
    engine.close().await.expect("closed");
}

/// The staged contents of a plan, by label.
type Contents = Vec<(u64, Staged)>;
