//! What happened to one object, as its clients saw it.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard};

/// A place in the order of what the clients did, and the time at which it was, on one clock that never goes back. The unit
/// of time is the caller's, the same in the whole history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    pub order: u64,
    pub time: u64,
}

/// One call: when it began, when its answer was there, and which.
#[derive(Clone, Debug)]
pub struct Call<C, A> {
    pub client: u64,
    pub call: C,
    pub begin: Moment,
    /// After this it can no longer happen. `None`: it can still.
    pub end: Option<Moment>,
    /// `None`: nobody knows whether it happened.
    pub answer: Option<A>,
}

/// The times between which a call happened, if it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub begin: u64,
    /// `u64::MAX`: it may still happen.
    pub end: u64,
}

impl<C, A> Call<C, A> {
    /// Widened on both sides by what the clocks of clients and servers may differ.
    #[must_use]
    pub fn span(&self, slack: u64) -> Span {
        let end = self.end.map_or(u64::MAX, |end| end.time.saturating_add(slack));
        Span { begin: self.begin.time.saturating_sub(slack), end }
    }
}

/// Stands for a call that has begun.
#[derive(Debug)]
#[must_use]
pub struct Ticket(usize);

/// The calls to one object, in the order in which they began. Many clients may write to it at once.
#[derive(Debug)]
pub struct History<C, A>(Mutex<Notes<C, A>>);

#[derive(Debug)]
struct Notes<C, A> {
    /// By the number in their tickets; `None`: the call was never made.
    calls: Vec<Option<Call<C, A>>>,
    order: u64,
}

impl<C, A> Default for History<C, A> {
    fn default() -> History<C, A> {
        History(Mutex::new(Notes { calls: Vec::new(), order: 0 }))
    }
}

impl<C, A> History<C, A> {
    /// A client is about to ask.
    pub fn begin(&self, client: u64, call: C, time: u64) -> Ticket {
        let mut notes = self.notes();
        let begin = notes.next(time);
        notes.calls.push(Some(Call { client, call, begin, end: None, answer: None }));
        Ticket(notes.calls.len() - 1)
    }

    /// It has its answer. A ticket that never comes here stands for a call without an answer.
    pub fn end(&self, ticket: &Ticket, answer: A, time: u64) {
        let mut notes = self.notes();
        let end = notes.next(time);
        let call = notes.calls[ticket.0].as_mut().expect("a call that was taken back does not end");
        assert!(call.end.is_none(), "a call ends once");
        (call.end, call.answer) = (Some(end), Some(answer));
    }

    /// The call was never made: no server was there to take it.
    pub fn take_back(&self, ticket: Ticket) {
        self.notes().calls[ticket.0] = None;
    }

    /// What was not answered until now has happened or never will: the server that was asked is dead.
    pub fn settle(&self, time: u64) {
        self.settle_those(time, |_| true);
    }

    /// The same for the calls of some clients: those whose server is dead.
    pub fn settle_those(&self, time: u64, is_settled: impl Fn(u64) -> bool) {
        let mut notes = self.notes();
        let now = notes.next(time);
        let open = notes.calls.iter_mut().flatten().filter(|call| call.end.is_none());
        open.filter(|call| is_settled(call.client)).for_each(|call| call.end = Some(now));
    }

    /// All of it, once nobody writes any more.
    #[must_use]
    pub fn into_calls(self) -> Vec<Call<C, A>> {
        self.0.into_inner().expect("nothing panics under this lock").calls.into_iter().flatten().collect()
    }

    /// All of it so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call<C, A>>
    where
        C: Clone,
        A: Clone,
    {
        self.notes().calls.iter().flatten().cloned().collect()
    }

    fn notes(&self) -> MutexGuard<'_, Notes<C, A>> {
        self.0.lock().expect("nothing panics under this lock")
    }
}

impl<C, A> Notes<C, A> {
    fn next(&mut self, time: u64) -> Moment {
        self.order += 1;
        Moment { order: self.order, time }
    }
}
