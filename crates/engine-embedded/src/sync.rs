//! Locks, threads, time and randomness: the one place from which this crate takes them.
//!
//! By default they are std's and tokio's. With the feature `simulation` the same names come from `shuttle`: every thread is
//! a task of a scheduler whose choices follow from a seed, every lock and atomic is a point where it may switch, and no
//! tokio runtime is needed. Randomness then comes from the same seed, and time is virtual ([`time`]): it stands still
//! until the simulation moves it. The locks inside `lsm-tree` stay std's: no switch happens while one is held.

#[cfg(not(feature = "simulation"))]
pub use real::*;
#[cfg(feature = "simulation")]
pub use simulated::*;

#[cfg(not(feature = "simulation"))]
mod real {
    use engine::EngineError;

    pub use std::hash::RandomState;
    pub use std::sync::atomic::{AtomicBool, AtomicU64};
    pub use std::sync::{Condvar, Mutex, MutexGuard, RwLock};
    pub use std::thread::{JoinHandle, sleep};
    pub use std::time::Instant;

    /// Work that blocks, under way on a thread made for such work.
    pub type Blocking<T> = tokio::task::JoinHandle<T>;

    pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
        tokio::task::spawn_blocking(work)
    }

    pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(name.into()).spawn(work)
    }

    /// Waits for an answer, on a thread that may block. `None`: the sender is gone.
    pub fn wait_for<T>(answer: tokio::sync::oneshot::Receiver<T>) -> Option<T> {
        answer.blocking_recv().ok()
    }

    pub fn clock(offset_seconds: u64) -> engine::Clock {
        engine::Clock::new(offset_seconds)
    }

    /// Runs what may wait for the disk: on a thread made for such work, so that the tasks of the runtime go on meanwhile. Without a
    /// runtime there are none.
    pub async fn beside_the_runtime<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Ok(work());
        }
        blocking(work).await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => EngineError::Closed,
        })
    }

    /// Runs `work`; if it panics, what it said.
    pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|panic| {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no reason given".into())
        })
    }

    /// Fresh randomness from the system.
    pub fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
        getrandom::fill(bytes).map_err(|error| std::io::Error::other(format!("no randomness: {error}")))
    }
}

#[cfg(feature = "simulation")]
mod simulated {
    use std::sync::Arc;
    use std::time::Duration;

    use engine::EngineError;
    use shuttle::rand::RngCore;
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU64};
    pub use shuttle::sync::{Mutex, MutexGuard, RwLock};
    pub use shuttle::thread::JoinHandle;

    /// Hashes the same way in every run of a seed.
    pub type RandomState = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

    /// Work that blocks, under way as a task of its own.
    pub type Blocking<T> = shuttle::future::JoinHandle<T>;

    pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
        shuttle::future::spawn(async move { work() })
    }

    pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
        shuttle::thread::Builder::new().name(name.into()).spawn(work)
    }

    /// Waits for an answer. `None`: the sender is gone.
    pub fn wait_for<T>(answer: tokio::sync::oneshot::Receiver<T>) -> Option<T> {
        shuttle::future::block_on(answer).ok()
    }

    pub fn clock(offset_seconds: u64) -> engine::Clock {
        engine::Clock::driven(time::WALL_AT_START, offset_seconds, time::now)
    }

    /// Runs what may wait for the disk.
    pub async fn beside_the_runtime<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        blocking(work).await.map_err(|_| EngineError::Closed)
    }

    /// Runs `work`. A panic ends the simulation, which shows it; one that the scheduler uses to end a task must pass.
    pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
        Ok(work())
    }

    /// Randomness that follows from the seed.
    pub fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
        shuttle::rand::thread_rng().fill_bytes(bytes);
        Ok(())
    }

    /// A moment of virtual time.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub struct Instant(Duration);

    impl Instant {
        pub fn now() -> Instant {
            Instant(time::now())
        }

        pub fn elapsed(&self) -> Duration {
            time::now().saturating_sub(self.0)
        }
    }

    /// A condition variable whose time-outs follow virtual time. Waiters may wake without a reason, as std's may.
    #[derive(Debug, Default)]
    pub struct Condvar(Arc<shuttle::sync::Condvar>);

    impl Condvar {
        pub fn new() -> Condvar {
            Condvar::default()
        }

        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> std::sync::LockResult<MutexGuard<'a, T>> {
            self.0.wait(guard)
        }

        /// The second value: whether the time-out has passed.
        pub fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            timeout: Duration,
        ) -> std::sync::LockResult<(MutexGuard<'a, T>, bool)> {
            let alarm = time::Alarm::set(timeout, &self.0);
            let guard = self.0.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
            Ok((guard, alarm.has_rung()))
        }

        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    pub fn sleep(duration: Duration) {
        let (asleep, wake) = (Mutex::new(()), Condvar::new());
        let end = time::now() + duration;
        while time::now() < end {
            let guard = asleep.lock().expect("nothing panics under this lock");
            let left = end.saturating_sub(time::now());
            drop(wake.wait_timeout(guard, left));
        }
    }

    /// Virtual time. It begins at zero with each run of a seed and moves only when [`advance_to_next`](time::advance_to_next)
    /// or [`advance`](time::advance) is called, so a simulation keeps a task that calls one of them again and again.
    pub mod time {
        use std::sync::Arc;
        use std::time::Duration;

        use engine::Timestamp;

        /// What the wall clock shows at time zero: the first day of 2026.
        pub const WALL_AT_START: Timestamp =
            Timestamp(Timestamp::UNIX_EPOCH.0 + 1_767_225_600 * Timestamp::TICKS_PER_SECOND);

        type Waiters = Arc<shuttle::sync::Condvar>;

        #[derive(Default)]
        struct State {
            now: Duration,
            next_alarm: u64,
            alarms: Vec<(u64, Duration, Waiters)>,
        }

        // A std lock: nothing switches while it is held.
        shuttle::lazy_static! {
            static ref STATE: std::sync::Mutex<State> = std::sync::Mutex::default();
        }

        fn with<T>(change: impl FnOnce(&mut State) -> T) -> T {
            change(&mut STATE.lock().expect("nothing panics under this lock"))
        }

        /// Time since the simulation began.
        pub fn now() -> Duration {
            with(|state| state.now)
        }

        /// Moves time forward and wakes the tasks whose time has come.
        pub fn advance(by: Duration) {
            let due = with(|state| {
                state.now += by;
                let due = state.alarms.iter().filter(|(_, at, _)| *at <= state.now);
                due.map(|(_, _, waiters)| Arc::clone(waiters)).collect::<Vec<Waiters>>()
            });
            // An alarm stays set until its waiter has seen it: one that was about to wait is woken the next time.
            due.iter().for_each(|waiters| waiters.notify_all());
        }

        /// Moves time to the next moment that a task waits for. `false`: no task waits for time.
        pub fn advance_to_next() -> bool {
            let next = with(|state| {
                let next = state.alarms.iter().map(|(_, at, _)| *at).min();
                next.map(|at| at.saturating_sub(state.now))
            });
            if let Some(by) = next {
                advance(by);
            }
            next.is_some()
        }

        /// Wakes a condition variable's waiters when its time has come; taken back when dropped.
        pub(super) struct Alarm {
            number: u64,
            at: Duration,
        }

        impl Alarm {
            pub(super) fn set(after: Duration, waiters: &Waiters) -> Alarm {
                with(|state| {
                    let (number, at) = (state.next_alarm, state.now + after);
                    state.next_alarm += 1;
                    state.alarms.push((number, at, Arc::clone(waiters)));
                    Alarm { number, at }
                })
            }

            pub(super) fn has_rung(&self) -> bool {
                now() >= self.at
            }
        }

        impl Drop for Alarm {
            fn drop(&mut self) {
                with(|state| state.alarms.retain(|(number, _, _)| *number != self.number));
            }
        }
    }
}
