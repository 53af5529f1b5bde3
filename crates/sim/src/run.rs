//! One seed: several lives of a machine, each ended by a crash, and the verdict over all of them.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::Engine;
use engine_embedded::{Durability, EmbeddedEngine, OnFatal, OpenError, Options, check_on, virtual_time};
use histories::{Dice, Forgetting, Verdict, check_forgetting};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::clients::{Client, Notes, Record, World};
use crate::disk::{Contents, Ending, Plan, SimDisk};
use crate::models::{Judged, Object};
use crate::schedule::{Scheduling, Style};
use crate::story::Story;

const FOLDER: &str = "/data";
/// What the deepest call of the services and the tree needs.
const STACK_BYTES: usize = 2 << 20;
/// More than any life takes: a life that comes here makes no progress.
const STEPS_MAX: usize = 20_000_000;
/// When nothing was answered for so long (of virtual time), something hangs.
const SILENCE_MAX_SECS: u64 = 3_600;

/// What a seed decides once for all its lives.
#[derive(Clone, Debug)]
struct Profile {
    durability: Durability,
    lives: u64,
    clients: usize,
    calls: u64,
    dropping: u64,
    style: Style,
    faults: Faults,
}

/// What goes wrong besides crashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Faults {
    None,
    FailingSyncs,
    /// Some data segments fail again and again; contents are large, and clients go away.
    BadFiles,
    FailingWrites,
    FullDisk,
}

impl Profile {
    fn of(dice: &mut Dice) -> Profile {
        let mut profile = Profile::by_chance(dice);
        if profile.faults == Faults::BadFiles {
            (profile.clients, profile.dropping) = (5, 40);
        }
        profile
    }

    fn by_chance(dice: &mut Dice) -> Profile {
        Profile {
            durability: if dice.chance(30) { Durability::Relaxed } else { Durability::Full },
            lives: 2 + dice.below(3),
            clients: 2 + usize::try_from(dice.below(4)).unwrap_or(0),
            calls: 6 + dice.below(16),
            dropping: *dice.pick(&[0, 0, 5, 20]),
            style: *dice.pick(&[Style::Any, Style::Long, Style::Ranks]),
            faults: *dice.pick(&[
                Faults::None,
                Faults::None,
                Faults::None,
                Faults::FailingSyncs,
                Faults::BadFiles,
                Faults::FailingWrites,
                Faults::FullDisk,
            ]),
        }
    }

    /// What the disk does in one life.
    fn plan(&self, dice: &mut Dice) -> Plan {
        let mut plan = Plan::default();
        match dice.below(10) {
            0 => {}
            1 => plan.stops_in_tree_work = Some(1 + dice.below(8)),
            // While it opens, or soon after.
            2..4 => plan.stops_at = Some(1 + dice.below(40)),
            _ => plan.stops_at = Some(30 + dice.below(40 * self.clients as u64 * self.calls / 8)),
        }
        match self.faults {
            Faults::None => {}
            Faults::FailingSyncs => plan.failing_syncs = 40,
            Faults::BadFiles => plan.bad_files = 40,
            Faults::FailingWrites => plan.failing_writes = 10,
            Faults::FullDisk => {
                let from = dice.below(200);
                plan.full = from..from + dice.below(200);
            }
        }
        plan
    }
}

/// How a seed went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    pub lives: u64,
    /// Objects whose calls were held against a model...
    pub objects: u64,
    /// ...and those of them whose calls could have happened in too many ways to try them all.
    pub unjudged: u64,
    /// Of everything that was told, so that two runs can be compared.
    pub digest: (u64, u64),
}

/// Runs a seed. An error says what is wrong.
pub fn run(seed: u64, prints: bool) -> Result<Summary, String> {
    let story = Arc::new(Story::new(prints));
    let mut machine = Machine::new(seed, &story);
    story.tell(format_args!("seed {seed}: {:?}", machine.profile));
    for _ in 0..machine.profile.lives {
        machine.live(false)?;
    }
    machine.live(true)?;
    (machine.summary.unjudged, machine.summary.objects) = machine.crashes.judge(&machine.notes)?;
    Ok(Summary { digest: story.digest(), ..machine.summary })
}

/// The machine, from one life to the next.
struct Machine {
    profile: Profile,
    dice: Dice,
    notes: Arc<Notes>,
    crashes: Crashes,
    contents: Contents,
    clock: Duration,
    /// Whether a life has opened the folder: from then on it must never be taken for a new one.
    has_been_founded: bool,
    summary: Summary,
}

impl Machine {
    fn new(seed: u64, story: &Arc<Story>) -> Machine {
        let mut dice = Dice::new(Dice::new(seed).roll());
        Machine {
            profile: Profile::of(&mut dice),
            notes: Arc::new(Notes::new(Arc::clone(story))),
            crashes: Crashes::default(),
            contents: Contents::default(),
            clock: Duration::ZERO,
            has_been_founded: false,
            summary: Summary::default(),
            dice,
        }
    }

    /// One life by chance. The last is calm: it only reads back.
    fn live(&mut self, is_last: bool) -> Result<(), String> {
        let damaged = if self.has_been_founded && !is_last && self.dice.chance(15) { self.damaged() } else { None };
        let plan = if is_last || damaged.is_some() { Plan::default() } else { self.profile.plan(&mut self.dice) };
        let clients = if is_last { 0 } else { self.profile.clients };
        let ending = if self.dice.chance(50) { Ending::PowerCut } else { Ending::Kill };
        self.live_so(plan, damaged, clients, ending)
    }

    fn live_so(&mut self, plan: Plan, damaged: Option<Contents>, clients: usize, ending: Ending) -> Result<(), String> {
        let is_calm = plan.is_calm();
        let contents = damaged.as_ref().unwrap_or(&self.contents).clone();
        let life = self.play(&contents, plan, clients, is_calm)?;
        self.summary.lives += 1;
        if let Some(refusal) = &life.refused {
            let is_expected = damaged.is_some() || (!is_calm && matches!(refusal, OpenError::Io { .. }));
            if !is_expected {
                return Err(format!("the folder was refused: {refusal}"));
            }
        }
        if damaged.is_some() && life.refused.is_some() {
            // Nothing may have been touched; whoever repairs the damage has everything.
            return life.contents.has_all_of(&contents).map_err(|what| format!("refused, and yet {what}"));
        }
        self.has_been_founded |= life.opened;
        self.notes.story.tell(format_args!("the life ends: {ending:?}"));
        self.notes.settle(self.clock.as_secs());
        let forgets = ending == Ending::PowerCut && self.profile.durability == Durability::Relaxed;
        self.crashes.note(&life, self.notes.story.order(), forgets);
        self.contents = life.contents.after(ending, &mut self.dice);
        self.check()
    }

    /// The contents with a file lost or a byte turned, where the engine can notice.
    fn damaged(&mut self) -> Option<Contents> {
        let mut contents = self.contents.clone();
        let folder = Path::new(FOLDER);
        let done = match self.dice.below(6) {
            0 => contents.lose(&folder.join("FORMAT")),
            1 => contents.damage(&folder.join("STATE"), self.dice.below(52)),
            _ => {
                let files = contents.files();
                let segments: Vec<_> = files.iter().filter(|(path, _)| path.ends_with_segment()).collect();
                !segments.is_empty() && {
                    let path = &self.dice.pick(&segments).0;
                    self.notes.story.tell(format_args!("the header of {} is damaged", path.display()));
                    contents.damage(path, self.dice.below(44))
                }
            }
        };
        self.notes.story.tell(format_args!("the disk is damaged: {done}"));
        done.then_some(contents)
    }

    fn play(&mut self, contents: &Contents, plan: Plan, clients: usize, is_calm: bool) -> Result<LifeEnd, String> {
        let seed = self.dice.roll();
        let story = Arc::clone(&self.notes.story);
        story.tell(format_args!("a life begins: {plan:?}"));
        let began = story.order();
        let notes = Arc::clone(&self.notes);
        notes.is_calm.store(is_calm, Ordering::Release);
        let stage = Stage::new(contents, plan, seed, &story, self.clock);
        let (closes, profile) = (self.dice.chance(20), self.profile.clone());
        let on_stage = Arc::clone(&stage);
        let main = move || life(&on_stage, &notes, &profile, clients, seed, closes);
        stage.run(seed, self.profile.style, main)?;
        self.clock = Duration::from_secs(stage.now.load(Ordering::Acquire) + 1);
        let wrong = std::mem::take(&mut *self.notes.wrong.lock().expect("nothing panics under this lock"));
        if let Some(first) = wrong.first() {
            return Err(first.clone());
        }
        let mut result = stage.result.lock().expect("nothing panics under this lock");
        Ok(LifeEnd { contents: stage.disk.contents(), refused: result.refused.take(), opened: result.opened, began })
    }

    /// `lazurite check` on what the crash has left.
    fn check(&mut self) -> Result<(), String> {
        if !self.has_been_founded {
            return Ok(());
        }
        let seed = self.dice.roll();
        // What it writes is nobody's business: it works on a copy.
        let story = Arc::new(Story::default());
        let stage = Stage::new(&self.contents, Plan::default(), seed, &story, self.clock);
        let on_stage = Arc::clone(&stage);
        stage.run(seed, Style::Long, move || {
            on_stage.start_clock();
            let report = check_on(Arc::new(on_stage.disk.clone()), Path::new(FOLDER), &blob::REFERRED, &mut |_| {});
            let mut result = on_stage.result.lock().expect("nothing panics under this lock");
            result.report = match report {
                Ok(report) if report.is_clean() => Some(Ok(())),
                Ok(report) => Some(Err(format!("check is not clean: {report}"))),
                Err(error) => Some(Err(format!("check refuses: {error}"))),
            };
            drop(result);
            on_stage.stop();
        })?;
        let report = stage.result.lock().expect("nothing panics under this lock").report.take();
        report.unwrap_or(Err("check did not end".into()))
    }
}

trait EndsWithSegment {
    fn ends_with_segment(&self) -> bool;
}

impl EndsWithSegment for std::path::PathBuf {
    fn ends_with_segment(&self) -> bool {
        self.extension().is_some_and(|extension| extension == "seg")
    }
}

/// What is left of a life.
struct LifeEnd {
    contents: Contents,
    refused: Option<OpenError>,
    opened: bool,
    /// As an order of the story.
    began: u64,
}

/// Where a life takes place: the disk, the clock, and the switch that ends it.
struct Stage {
    disk: SimDisk,
    stopped: Arc<AtomicBool>,
    idle: Arc<AtomicBool>,
    story: Arc<Story>,
    dice: Mutex<Dice>,
    begin: Duration,
    /// What the clock shows, in seconds, also when the life is over.
    now: AtomicU64,
    /// When the last answer came, in seconds.
    last_answer: AtomicU64,
    result: Mutex<StageResult>,
}

#[derive(Default)]
struct StageResult {
    opened: bool,
    refused: Option<OpenError>,
    report: Option<Result<(), String>>,
}

impl Stage {
    fn new(contents: &Contents, plan: Plan, seed: u64, story: &Arc<Story>, begin: Duration) -> Arc<Stage> {
        let stopped = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&stopped);
        let pause = move |is_off: bool| {
            if is_off {
                switch.store(true, Ordering::Release);
            }
            shuttle::thread::yield_now();
        };
        Arc::new(Stage {
            disk: SimDisk::new(contents, plan, seed, Arc::clone(story), pause),
            stopped,
            idle: Arc::default(),
            story: Arc::clone(story),
            dice: Mutex::new(Dice::new(seed ^ 0xC10C)),
            begin,
            now: AtomicU64::new(begin.as_secs()),
            last_answer: AtomicU64::new(begin.as_secs()),
            result: Mutex::default(),
        })
    }

    /// Runs a life to its end, whatever that is.
    fn run(&self, seed: u64, style: Style, main: impl Fn() + Send + Sync + 'static) -> Result<(), String> {
        let mut config = Config::new();
        config.stack_size = STACK_BYTES;
        config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
        config.failure_persistence = FailurePersistence::None;
        config.silence_warnings = true;
        let scheduling = Scheduling::new(seed, style, Arc::clone(&self.stopped), Arc::clone(&self.idle));
        let ran = std::panic::catch_unwind(AssertUnwindSafe(|| Runner::new(scheduling, config).run(main)));
        ran.map(|_| ()).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            format!("panicked: {}", text.unwrap_or("without a text"))
        })
    }

    /// Must be the first thread that a life spawns.
    fn start_clock(self: &Arc<Stage>) {
        virtual_time::advance(self.begin);
        let stage = Arc::clone(self);
        shuttle::thread::spawn(move || {
            loop {
                shuttle::thread::yield_now();
                stage.tick();
            }
        });
    }

    /// Time moves, in whole seconds.
    fn tick(&self) {
        let by = {
            let mut dice = self.dice.lock().expect("nothing panics under this lock");
            let is_idle = self.idle.load(Ordering::Acquire);
            if !is_idle && dice.chance(15) { 3 + dice.below(15) } else { 1 }
        };
        let now = virtual_time::now().as_secs() + by;
        let silence = now - self.last_answer.load(Ordering::Acquire);
        assert!(silence < SILENCE_MAX_SECS, "nothing has been answered for {silence} s");
        self.story.tell(format_args!("it becomes {now} s"));
        self.now.store(now, Ordering::Release);
        virtual_time::advance(Duration::from_secs(by));
    }

    fn answered(&self) {
        self.last_answer.store(virtual_time::now().as_secs(), Ordering::Release);
    }

    /// The machine stops here. Does not return.
    fn stop(&self) {
        self.disk.switch_off();
        self.stopped.store(true, Ordering::Release);
        loop {
            shuttle::thread::yield_now();
        }
    }
}

fn options(stage: &Arc<Stage>, profile: &Profile) -> Options {
    let fatal = Arc::clone(stage);
    Options {
        durability: profile.durability,
        row_cache_bytes: 64 << 10,
        content_cache_bytes: 16 << 10,
        block_cache_bytes: 64 << 10,
        memtable_bytes: 24 << 10,
        log_bytes: 128 << 10,
        segment_bytes: 512 << 10,
        reserve_bytes: 1 << 20,
        disk: Arc::new(stage.disk.clone()),
        on_fatal: OnFatal(Arc::new(move |why| {
            fatal.story.tell(format_args!("the engine gives up: {why}"));
            fatal.stop();
        })),
        ..Options::default()
    }
}

/// What a life consists of.
fn life(stage: &Arc<Stage>, notes: &Arc<Notes>, profile: &Profile, clients: usize, seed: u64, closes: bool) {
    stage.start_clock();
    let engine = match EmbeddedEngine::open(Path::new(FOLDER), options(stage, profile)) {
        Ok(engine) => engine,
        Err(error) => {
            stage.story.tell(format_args!("refused: {error}"));
            stage.result.lock().expect("nothing panics under this lock").refused = Some(error);
            return stage.stop();
        }
    };
    stage.story.tell(format_args!("the engine is open"));
    let world = Arc::new(World::new(Arc::clone(&engine), Arc::clone(notes)));
    if world.prepare() {
        stage.result.lock().expect("nothing panics under this lock").opened = true;
        stage.answered();
        world.read_back();
        stage.answered();
        let threads: Vec<_> = (1..=clients).map(|number| client(stage, &world, profile, number, seed)).collect();
        for thread in threads {
            thread.join().expect("a client does not panic");
        }
    }
    if closes {
        let closed = shuttle::future::block_on(engine.close());
        stage.story.tell(format_args!("closed: {closed:?}"));
    }
    stage.stop();
}

fn client(
    stage: &Arc<Stage>,
    world: &Arc<World>,
    profile: &Profile,
    number: usize,
    seed: u64,
) -> shuttle::thread::JoinHandle<()> {
    let (stage, world) = (Arc::clone(stage), Arc::clone(world));
    let (calls, dropping, large) = (profile.calls, profile.dropping, profile.faults == Faults::BadFiles);
    shuttle::thread::spawn(move || {
        let dice = Dice::new(seed.wrapping_add(number as u64));
        let mut client = Client { number, random: dice, world: &world, dropping, large };
        client.begin();
        for _ in 0..calls {
            client.call();
            stage.answered();
        }
    })
}

/// The crashes after which the newest calls may be gone, and what is needed to tell how many.
#[derive(Default)]
struct Crashes {
    /// Lives that were opened: when they began, and when they ended if the power was cut then or before the next was opened.
    lives: Vec<(u64, Option<u64>)>,
}

impl Crashes {
    fn note(&mut self, life: &LifeEnd, ended: u64, forgets: bool) {
        if life.opened {
            self.lives.push((life.began, None));
        }
        if let Some((_, end)) = self.lives.last_mut().filter(|_| forgets) {
            *end = Some(ended);
        }
    }

    /// Holds what the clients saw against the models. Returns for how many objects that was too much, and how many there are.
    fn judge(&self, notes: &Notes) -> Result<(u64, u64), String> {
        let mut unjudged = 0;
        for (number, record) in notes.containers.iter().enumerate() {
            unjudged += self.judge_one(notes, record, &format!("container {number}"))?;
        }
        unjudged += self.judge_one(notes, &notes.queue, "queue")?;
        unjudged += self.judge_one(notes, &notes.partition, "table")?;
        unjudged += self.judge_one(notes, &notes.share, "share")?;
        Ok((unjudged, notes.containers.len() as u64 + 3))
    }

    fn judge_one<O: Object>(&self, notes: &Notes, record: &Record<O>, name: &str) -> Result<u64, String> {
        let mut forgotten = Vec::new();
        for (index, (began, ended)) in self.lives.iter().enumerate() {
            let Some(ended) = ended else { continue };
            let next = self.lives.get(index + 1).map_or(u64::MAX, |(began, _)| *began);
            let (since, until) = (record.order_from(*began), record.order_from(*ended) - 1);
            forgotten.push(Forgetting { since, until, kept: record.order_from(newest_kept(notes, *began, next)) });
        }
        match check_forgetting(Judged::<O>::default(), &record.history.calls(), 0, &forgotten) {
            Verdict::Fine => Ok(0),
            Verdict::Wrong(why) => Err(format!("{name}: {why}")),
            Verdict::NotJudged(_) => Ok(1),
        }
    }
}

/// When the newest call of a life began of which something is seen in the next.
fn newest_kept(notes: &Notes, began: u64, next: u64) -> u64 {
    let (written, seen) = notes.values(next);
    let written: HashMap<u64, u64> = written.into_iter().filter(|(_, at)| (began..next).contains(at)).collect();
    seen.iter().filter_map(|value| written.get(value).copied()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_run_every_time() {
        for seed in 1..=6 {
            assert_eq!(run(seed, false), run(seed, false), "seed {seed}");
        }
        assert_ne!(run(1, false), run(2, false));
    }

    /// The process dies while it founds the folder; the next one gets as far as the tree, and the power is cut.
    #[test]
    fn a_folder_that_was_being_founded_opens_again_whatever_happened() {
        for stop in 1..40 {
            for seed in 0..4 {
                let mut machine = Machine::new(seed, &Arc::default());
                let founding = Plan { stops_at: Some(stop), ..Plan::default() };
                let in_the_tree = Plan { stops_in_tree_work: Some(1), ..Plan::default() };
                let lives =
                    [(founding, Ending::Kill), (in_the_tree, Ending::PowerCut), (Plan::default(), Ending::Kill)];
                for (plan, ending) in lives {
                    let lived = machine.live_so(plan, None, 0, ending);
                    assert_eq!(lived, Ok(()), "killed at operation {stop}, seed {seed}");
                }
            }
        }
    }
}
