//! Which thread runs next: a choice that follows from the seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use histories::Dice;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

/// The first thread that a run spawns moves the clock. It runs seldom, and whenever all others wait.
const CLOCK: usize = 1;

/// How threads change places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// At every moment any thread.
    Any,
    /// A thread mostly goes on.
    Long,
    /// Some threads come before others; now and then their ranks change.
    Ranks,
}

/// Between two of its turns the clock lets the others make about this many steps.
const STEPS_PER_TICK: u64 = 400;
/// With ranks: about so many steps until they change.
const STEPS_PER_RANK: u64 = 150;

#[derive(Debug)]
pub struct Scheduling {
    dice: Dice,
    /// What threads draw: apart from the choice of threads.
    drawn: Dice,
    style: Style,
    ranks: BTreeMap<usize, u64>,
    begun: bool,
    /// Nobody runs any more: the machine has stopped.
    stopped: Arc<AtomicBool>,
    /// Whether the clock has its turn because all others wait.
    idle: Arc<AtomicBool>,
}

impl Scheduling {
    #[must_use]
    pub fn new(seed: u64, style: Style, stopped: Arc<AtomicBool>, idle: Arc<AtomicBool>) -> Scheduling {
        let drawn = Dice::new(seed ^ 0x5EED);
        Scheduling { dice: Dice::new(seed), drawn, style, ranks: BTreeMap::new(), begun: false, stopped, idle }
    }

    fn choose(&mut self, ready: &[TaskId], current: Option<TaskId>) -> TaskId {
        let stays = current.filter(|current| ready.contains(current));
        match (self.style, stays) {
            (Style::Long, Some(current)) if self.dice.chance(90) => current,
            (Style::Any | Style::Long, _) => *self.dice.pick(ready),
            (Style::Ranks, _) => {
                if self.dice.below(STEPS_PER_RANK) == 0 {
                    self.ranks.clear();
                }
                let dice = &mut self.dice;
                let ranks = &mut self.ranks;
                let rank = |task: &&TaskId| *ranks.entry(usize::from(**task)).or_insert_with(|| dice.roll());
                *ready.iter().max_by_key(rank).expect("somebody is ready")
            }
        }
    }
}

impl Scheduler for Scheduling {
    fn new_execution(&mut self) -> Option<Schedule> {
        if std::mem::replace(&mut self.begun, true) {
            return None;
        }
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, _is_yielding: bool) -> Option<TaskId> {
        if self.stopped.load(Ordering::Acquire) {
            return None;
        }
        let ids: Vec<TaskId> = runnable.iter().map(|task| task.id()).collect();
        let (clock, others): (Vec<TaskId>, Vec<TaskId>) = ids.into_iter().partition(|id| usize::from(*id) == CLOCK);
        self.idle.store(others.is_empty(), Ordering::Release);
        match clock.first() {
            Some(clock) if others.is_empty() || self.dice.below(STEPS_PER_TICK) == 0 => Some(*clock),
            _ => Some(self.choose(&others, current)),
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.drawn.roll()
    }
}
