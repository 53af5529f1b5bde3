//! Is there an order of the calls in which every answer is right?
//!
//! The calls are walked in the order in which they began and ended. What is kept is every way to have got here: the state of the
//! object, and which of the calls under way have happened already. When a call ends it must have happened: each way is led
//! on through calls under way until it has, and ways in which it cannot have got its answer are dropped. If none is left, that
//! answer is wrong.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::{self, Debug};
use std::hash::Hash;

use crate::history::{Call, Span};

/// With more ways than this a history is given up rather than the machine.
pub const CONFIGURATIONS_MAX: usize = 200_000;
/// How many calls before the wrong answer are shown, besides those under way.
const CALLS_SHOWN: usize = 30;

/// An object as it would be if one thing happened after another.
pub trait Model: Clone + Eq + Hash + Debug {
    type Call: Debug;
    type Answer: Debug;

    /// Every state in which the object can be when `call` has just got this answer; none if it cannot have got it.
    fn answered(&self, call: &Self::Call, answer: &Self::Answer, span: Span) -> Vec<Self>;

    /// Every state in which it can be when `call` has happened and nobody saw the answer. That it may not have happened is known
    /// without saying so.
    fn unanswered(&self, call: &Self::Call, span: Span) -> Vec<Self>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// There is such an order.
    Fine,
    /// There is none; the text shows the answer that is wrong and what came before it.
    Wrong(String),
    /// There were too many ways to try them all.
    NotJudged(String),
}

impl Verdict {
    /// Panics unless the history is fine.
    #[track_caller]
    pub fn expect_fine(&self, what: &str) {
        if let Verdict::Wrong(why) | Verdict::NotJudged(why) = self {
            panic!("{what}: {why}");
        }
    }
}

/// A power cut after which the newest calls may be gone although they were answered, as relaxed durability allows: the object is
/// as it was at some moment between two orders, and that moment is not before the order `kept`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forgetting {
    pub since: u64,
    pub until: u64,
    pub kept: u64,
}

/// Looks for an order of the calls. `slack` is by how much the clocks of clients and servers may differ.
pub fn check<M: Model>(first: M, calls: &[Call<M::Call, M::Answer>], slack: u64) -> Verdict {
    check_forgetting(first, calls, slack, &[])
}

/// The same where some calls may have been forgotten; one after another, in order.
pub fn check_forgetting<M: Model>(
    first: M,
    calls: &[Call<M::Call, M::Answer>],
    slack: u64,
    forgotten: &[Forgetting],
) -> Verdict {
    let mut marks: Vec<(u64, usize, bool)> = Vec::with_capacity(calls.len() * 2);
    for (number, call) in calls.iter().enumerate() {
        marks.push((call.begin.order, number, false));
        marks.extend(call.end.map(|end| (end.order, number, true)));
    }
    marks.sort_unstable();
    let mut walk = Walk { calls, slack, under_way: BTreeSet::new() };
    let mut ways = vec![Way { state: first, happened: BTreeSet::new() }];
    let mut forgotten = forgotten.iter().peekable();
    let mut past = Past::default();
    for (order, number, is_end) in marks {
        while let Some(forgetting) = forgotten.next_if(|forgetting| forgetting.until < order) {
            ways = std::mem::take(&mut past).back_to(ways, *forgetting);
        }
        past.order = forgotten.peek().filter(|forgetting| forgetting.since <= order).map(|_| order);
        ways.iter().for_each(|way| past.note(&way.state));
        if !is_end {
            walk.under_way.insert(number);
            continue;
        }
        let Some(next) = walk.end(&ways, number, &mut past) else {
            return Verdict::NotJudged(format!("too many ways at {}", walk.show(number, &ways)));
        };
        if next.is_empty() {
            return Verdict::Wrong(walk.show(number, &ways));
        }
        walk.under_way.remove(&number);
        ways = next;
    }
    Verdict::Fine
}

/// The states that an object may have been in, each with the last order at which it may have been.
struct Past<M> {
    had: HashMap<M, u64>,
    /// `None`: nobody will go back to here.
    order: Option<u64>,
}

impl<M> Default for Past<M> {
    fn default() -> Past<M> {
        Past { had: HashMap::new(), order: None }
    }
}

impl<M: Model> Past<M> {
    fn note(&mut self, state: &M) {
        if let Some(order) = self.order {
            self.had.insert(state.clone(), order);
        }
    }

    /// The ways after the newest calls may have been forgotten. None is under way then.
    fn back_to(self, ways: Vec<Way<M>>, forgetting: Forgetting) -> Vec<Way<M>> {
        let kept = self.had.into_iter().filter(|(_, last)| *last >= forgetting.kept).map(|(state, _)| state);
        let mut states: Vec<M> = kept.collect();
        for way in ways {
            if !states.contains(&way.state) {
                states.push(way.state);
            }
        }
        states.into_iter().map(|state| Way { state, happened: BTreeSet::new() }).collect()
    }
}

/// One way to have got here.
#[derive(Clone, Debug)]
struct Way<M> {
    state: M,
    /// Of the calls under way.
    happened: BTreeSet<usize>,
}

struct Walk<'a, C, A> {
    calls: &'a [Call<C, A>],
    slack: u64,
    under_way: BTreeSet<usize>,
}

impl<C: Debug, A: Debug> Walk<'_, C, A> {
    /// Every way in which the call has happened when it ends; `None` if there are too many.
    fn end<M: Model<Call = C, Answer = A>>(
        &self,
        ways: &[Way<M>],
        number: usize,
        past: &mut Past<M>,
    ) -> Option<Vec<Way<M>>> {
        let must_have_happened = self.calls[number].answer.is_some();
        let (mut tried, mut ended) = (Ways::default(), Ways::default());
        let mut open: VecDeque<Way<M>> = ways.iter().cloned().collect();
        while let Some(way) = open.pop_front() {
            if way.happened.contains(&number) {
                ended.add(self.without(way, number), self.calls);
                continue;
            }
            for next in self.under_way.iter().filter(|next| !way.happened.contains(next)) {
                for state in self.states_after(&way.state, *next) {
                    past.note(&state);
                    let mut happened = way.happened.clone();
                    happened.insert(*next);
                    let led_on = Way { state, happened };
                    if tried.add(led_on.clone(), self.calls) {
                        open.push_back(led_on);
                    }
                }
            }
            if !must_have_happened {
                ended.add(way, self.calls);
            }
            if tried.count > CONFIGURATIONS_MAX {
                return None;
            }
        }
        Some(ended.into_ways())
    }

    fn without<M>(&self, mut way: Way<M>, number: usize) -> Way<M> {
        way.happened.remove(&number);
        way
    }

    fn states_after<M: Model<Call = C, Answer = A>>(&self, state: &M, number: usize) -> Vec<M> {
        let call = &self.calls[number];
        match &call.answer {
            Some(answer) => state.answered(&call.call, answer, call.span(self.slack)),
            None => state.unanswered(&call.call, call.span(self.slack)),
        }
    }

    fn show<M: Model<Call = C, Answer = A>>(&self, number: usize, ways: &[Way<M>]) -> String {
        let mut said = format!("call {number} cannot have had its answer:\n");
        let end = self.calls[number].end.map_or(u64::MAX, |end| end.order);
        let before: Vec<usize> = (0..self.calls.len()).filter(|call| self.calls[*call].begin.order <= end).collect();
        let is_recent = |call: &&usize| self.under_way.contains(*call) || before.len() - **call <= CALLS_SHOWN;
        for shown in before.iter().filter(is_recent) {
            said += &format!("{} {shown}: {}\n", if *shown == number { ">" } else { " " }, Line(&self.calls[*shown]));
        }
        for way in ways.iter().take(5) {
            said += &format!("  before it the object could be {:?}\n", way.state);
        }
        said
    }
}

/// Ways, each worth trying. Of two with the same state the one in which fewer calls without an answer have happened can do all
/// that the other can; only it is kept.
struct Ways<M> {
    by_state: HashMap<(M, Vec<usize>), Vec<BTreeSet<usize>>>,
    /// How many were ever added.
    count: usize,
}

impl<M> Default for Ways<M> {
    fn default() -> Ways<M> {
        Ways { by_state: HashMap::new(), count: 0 }
    }
}

impl<M: Model> Ways<M> {
    /// False: there is one as good already.
    fn add(&mut self, way: Way<M>, calls: &[Call<M::Call, M::Answer>]) -> bool {
        let is_open = |number: &usize| calls[*number].answer.is_none();
        let (open, known): (BTreeSet<usize>, Vec<usize>) = split(way.happened, is_open);
        let kept = self.by_state.entry((way.state, known)).or_default();
        if kept.iter().any(|less| less.is_subset(&open)) {
            return false;
        }
        kept.retain(|more| !open.is_subset(more));
        kept.push(open);
        self.count += 1;
        true
    }

    fn into_ways(self) -> Vec<Way<M>> {
        let mut ways = Vec::new();
        for ((state, known), kept) in self.by_state {
            for open in kept {
                ways.push(Way { state: state.clone(), happened: known.iter().copied().chain(open).collect() });
            }
        }
        ways
    }
}

fn split(numbers: BTreeSet<usize>, is_open: impl Fn(&usize) -> bool) -> (BTreeSet<usize>, Vec<usize>) {
    let (open, known): (BTreeSet<usize>, BTreeSet<usize>) = numbers.into_iter().partition(is_open);
    (open, known.into_iter().collect())
}

struct Line<'a, C, A>(&'a Call<C, A>);

impl<C: Debug, A: Debug> fmt::Display for Line<'_, C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.0;
        write!(f, "client {} [{}@{}..", call.client, call.begin.order, call.begin.time)?;
        match call.end {
            Some(end) => write!(f, "{}@{}]", end.order, end.time)?,
            None => write!(f, "]")?,
        }
        write!(f, " {:?}", call.call)?;
        match &call.answer {
            Some(answer) => write!(f, " -> {answer:?}"),
            None => write!(f, " -> ?"),
        }
    }
}
