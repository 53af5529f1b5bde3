//! What the checker lets pass, and what it does not.

use histories::{
    Condition, Container, ContainerAnswer, ContainerCall, Dice, Group, GroupAnswer, GroupCall, GroupWrite, History,
    Lease, LeaseAnswer, LeaseCall, Message, MessageAnswer, MessageCall, Model, Register, RegisterAnswer, RegisterCall,
    Verdict, check,
};

/// Who, what, when it began, and answer and end if there was one.
type Line<M> = (u64, <M as Model>::Call, u64, Option<(<M as Model>::Answer, u64)>);

/// A history from lines. Order is time here.
fn history<M: Model>(lines: Vec<Line<M>>) -> History<M::Call, M::Answer> {
    enum Mark<A> {
        Begin,
        End(A),
    }
    let history = History::default();
    let mut marks = Vec::new();
    let mut calls = Vec::new();
    for (number, (client, call, begin, end)) in lines.into_iter().enumerate() {
        calls.push(Some((client, call)));
        marks.push((begin, number, Mark::Begin));
        marks.extend(end.map(|(answer, end)| (end, number, Mark::End(answer))));
    }
    marks.sort_by_key(|(time, _, _)| *time);
    let mut tickets: Vec<_> = calls.iter().map(|_| None).collect();
    for (time, number, mark) in marks {
        match mark {
            Mark::Begin => {
                let (client, call) = calls[number].take().expect("begins once");
                tickets[number] = Some(history.begin(client, call, time));
            }
            Mark::End(answer) => history.end(tickets[number].as_ref().expect("begun"), answer, time),
        }
    }
    history
}

fn judge<M: Model + Default>(lines: Vec<Line<M>>) -> bool {
    match check(M::default(), &history::<M>(lines).into_calls(), 0) {
        Verdict::Fine => true,
        Verdict::Wrong(_) => false,
        Verdict::NotJudged(why) => panic!("{why}"),
    }
}

fn put(value: u64) -> RegisterCall {
    RegisterCall::Put(value, Condition::None)
}

fn put_if(value: u64, etag: &str) -> RegisterCall {
    RegisterCall::Put(value, Condition::Is(etag.into()))
}

fn stored(etag: &str) -> RegisterAnswer {
    RegisterAnswer::Stored(etag.into())
}

fn found(value: u64, etag: &str) -> RegisterAnswer {
    RegisterAnswer::Found(value, etag.into())
}

#[test]
fn calls_at_once_may_have_happened_in_any_order() {
    let race = |first: u64, second: u64| {
        judge::<Register>(vec![
            (1, put(1), 0, Some((stored("a"), 10))),
            (2, put(2), 1, Some((stored("b"), 9))),
            (3, RegisterCall::Get, 11, Some((if first == 1 { found(1, "a") } else { found(2, "b") }, 12))),
            (3, RegisterCall::Get, 13, Some((if second == 1 { found(1, "a") } else { found(2, "b") }, 14))),
        ])
    };
    assert!(race(1, 1) && race(2, 2));
    assert!(!race(1, 2) && !race(2, 1), "what was read last does not change by itself");
}

#[test]
fn a_lost_write_and_a_stale_read_are_wrong() {
    assert!(!judge::<Register>(vec![
        (1, put(1), 0, Some((stored("a"), 1))),
        (1, RegisterCall::Get, 2, Some((RegisterAnswer::Missing, 3))),
    ]));
    assert!(!judge::<Register>(vec![
        (1, put(1), 0, Some((stored("a"), 1))),
        (1, put(2), 2, Some((stored("b"), 3))),
        (2, RegisterCall::Get, 4, Some((found(1, "a"), 5))),
    ]));
}

#[test]
fn one_winner_for_an_etag() {
    let two = |second: RegisterAnswer| {
        judge::<Register>(vec![
            (1, put(1), 0, Some((stored("a"), 1))),
            (1, put_if(2, "a"), 2, Some((stored("b"), 9))),
            (2, put_if(3, "a"), 3, Some((second, 8))),
        ])
    };
    assert!(two(RegisterAnswer::Refused));
    assert!(!two(stored("c")));
}

#[test]
fn what_was_not_answered_may_have_happened_later_or_never() {
    let after = |seen: Vec<(u64, &str)>| {
        let mut lines = vec![(1, put(1), 0, Some((stored("a"), 1))), (2, put(2), 2, None)];
        for (place, (value, etag)) in (0..).zip(seen) {
            lines.push((3, RegisterCall::Get, 10 + place * 2, Some((found(value, etag), 11 + place * 2))));
        }
        judge::<Register>(lines)
    };
    assert!(after(vec![(1, "a"), (1, "a")]), "never");
    assert!(after(vec![(1, "a"), (2, "b"), (2, "b")]), "late");
    assert!(!after(vec![(1, "a"), (2, "b"), (1, "a")]), "it does not go away again");
    assert!(!after(vec![(2, "b"), (2, "c")]), "and it has one ETag");
}

#[test]
fn what_is_settled_happens_no_more() {
    let judged = |is_settled: bool| {
        let history = History::default();
        let end = |call, answer, time| {
            let ticket = history.begin(1, call, time);
            history.end(&ticket, answer, time + 1);
        };
        end(put(1), stored("a"), 0);
        let _lost = history.begin(2, put(2), 2);
        if is_settled {
            history.settle(4);
        }
        end(RegisterCall::Get, found(1, "a"), 10);
        end(RegisterCall::Get, found(2, "b"), 20);
        check(Register::default(), &history.into_calls(), 0)
    };
    assert_eq!(judged(false), Verdict::Fine);
    assert!(matches!(judged(true), Verdict::Wrong(_)));
}

/// A hundred calls that nobody answered do not make the search endless.
#[test]
fn many_calls_without_an_answer_are_judged_all_the_same() {
    let mut lines = Vec::new();
    for number in 0..100_u64 {
        lines.push((number, put(1_000 + number), number * 10, None));
        let etag = format!("e{number}");
        lines.push((1, put(number), number * 10 + 1, Some((stored(&etag), number * 10 + 2))));
        lines.push((2, RegisterCall::Get, number * 10 + 3, Some((found(number, &etag), number * 10 + 4))));
    }
    assert!(judge::<Register>(lines));
}

fn acquire(id: u64) -> LeaseCall {
    LeaseCall::Acquire { id, duration: Some(15) }
}

#[test]
fn a_lease_has_one_holder_for_as_long_as_it_was_granted() {
    use LeaseAnswer::{Done, Refused};
    let second = |begin: u64, answer: LeaseAnswer| {
        judge::<Lease>(vec![(1, acquire(1), 0, Some((Done, 2))), (2, acquire(2), begin, Some((answer, begin + 1)))])
    };
    assert!(!second(5, Done) && second(5, Refused), "it is held");
    assert!(!second(13, Done), "up to its end");
    assert!(second(14, Done) && second(14, Refused), "its end may be here");
    assert!(second(30, Done) && !second(30, Refused), "it is over");
}

#[test]
fn a_lease_keeps_writes_out_until_it_is_given_back() {
    use LeaseAnswer::{Done, Refused};
    let write = |id, answer, time| (3, LeaseCall::Write(id), time, Some((answer, time + 1)));
    let with = |rest: Vec<Line<Lease>>| {
        judge::<Lease>(std::iter::once((1, acquire(1), 0, Some((Done, 1)))).chain(rest).collect())
    };
    assert!(with(vec![write(None, Refused, 2), write(Some(1), Done, 4), write(Some(2), Refused, 6)]));
    assert!(!with(vec![write(None, Done, 2)]));
    let release = |time| (1, LeaseCall::Release(1), time, Some((Done, time + 1)));
    assert!(with(vec![release(2), write(None, Done, 4), write(Some(1), Refused, 6)]));
    let renew = |answer, time| (1, LeaseCall::Renew(1), time, Some((answer, time + 1)));
    assert!(with(vec![renew(Done, 30), write(None, Refused, 32)]), "what ran out can be renewed");
    assert!(!with(vec![write(None, Done, 30), renew(Done, 32)]), "until somebody writes");
    let broken = (2, LeaseCall::Break, 2, Some((Done, 3)));
    assert!(with(vec![broken, renew(Refused, 4), write(None, Done, 6)]));
}

fn take(answer: MessageAnswer, begin: u64) -> Line<Message> {
    (1, MessageCall::Take { hidden_for: 10 }, begin, Some((answer, begin + 1)))
}

fn taken(receipt: &str, taken: u64) -> MessageAnswer {
    MessageAnswer::Taken { receipt: receipt.into(), taken }
}

fn with_message(rest: Vec<Line<Message>>) -> Vec<Line<Message>> {
    let put = (1, MessageCall::Put { hidden_for: 0 }, 0, Some((MessageAnswer::Receipt("p".into()), 1)));
    std::iter::once(put).chain(rest).collect()
}

#[test]
fn a_message_is_taken_by_one_at_a_time() {
    assert!(judge::<Message>(with_message(vec![take(taken("r", 1), 2), take(MessageAnswer::NotSeen, 4)])));
    assert!(!judge::<Message>(with_message(vec![take(taken("r", 1), 2), take(taken("s", 2), 4)])));
    assert!(judge::<Message>(with_message(vec![take(taken("r", 1), 2), take(taken("s", 2), 14)])));
    assert!(!judge::<Message>(with_message(vec![take(taken("r", 1), 2), take(taken("s", 3), 14)])), "counted once");
}

#[test]
fn a_message_is_neither_lost_nor_brought_back() {
    assert!(!judge::<Message>(with_message(vec![take(MessageAnswer::NotSeen, 2)])), "lost");
    assert!(!judge::<Message>(with_message(vec![take(taken("r", 1), 2), take(MessageAnswer::NotSeen, 20)])), "lost");
    let delete = |receipt: &str, answer, begin| {
        (1, MessageCall::Delete { receipt: receipt.into() }, begin, Some((answer, begin + 1)))
    };
    let gone = [take(taken("r", 1), 2), delete("r", MessageAnswer::Deleted, 4)];
    let then = |line| judge::<Message>(with_message(gone.iter().cloned().chain([line]).collect()));
    assert!(then(take(MessageAnswer::NotSeen, 20)));
    assert!(!then(take(taken("s", 2), 20)), "brought back");
    assert!(then(delete("r", MessageAnswer::Missing, 20)));
    let other = vec![take(taken("r", 1), 2), take(taken("s", 2), 14), delete("r", MessageAnswer::Deleted, 16)];
    assert!(!judge::<Message>(with_message(other)), "deleted with a receipt that another take had ended");
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all() {
    let write = GroupCall::Transaction(vec![GroupWrite::Insert(1, 10), GroupWrite::Insert(2, 10)]);
    let seen = |entities: Vec<(u64, u64)>| {
        judge::<Group>(vec![
            (1, write.clone(), 0, Some((GroupAnswer::Committed, 10))),
            (2, GroupCall::Query, 1, Some((GroupAnswer::Entities(entities), 2))),
        ])
    };
    assert!(seen(vec![]) && seen(vec![(1, 10), (2, 10)]));
    assert!(!seen(vec![(1, 10)]));
    let again = |refused| {
        let first = (1, write.clone(), 0, Some((GroupAnswer::Committed, 1)));
        let second = GroupCall::Transaction(vec![GroupWrite::Upsert(3, 1), GroupWrite::Insert(1, 11)]);
        judge::<Group>(vec![
            first,
            (1, second, 2, Some((refused, 3))),
            (1, GroupCall::Get(3), 4, Some((GroupAnswer::Entity(None), 5))),
        ])
    };
    assert!(again(GroupAnswer::Refused(1)));
    assert!(!again(GroupAnswer::Refused(0)) && !again(GroupAnswer::Committed));
}

#[test]
fn what_was_in_a_container_goes_with_it() {
    use ContainerAnswer::{Blob, Blobs, Done, NoBlob, NoContainer};
    let lines = |last: (ContainerCall, ContainerAnswer)| {
        let calls = [
            (ContainerCall::Create, Done),
            (ContainerCall::PutBlob(1, 7), Done),
            (ContainerCall::Delete, Done),
            (ContainerCall::GetBlob(1), NoContainer),
            (ContainerCall::Create, Done),
            last,
        ];
        let line = |(time, (call, answer)): (u64, _)| (1, call, time * 2, Some((answer, time * 2 + 1)));
        (0..).zip(calls).map(line).collect()
    };
    assert!(judge::<Container>(lines((ContainerCall::List, Blobs(vec![])))));
    assert!(judge::<Container>(lines((ContainerCall::GetBlob(1), NoBlob))));
    assert!(!judge::<Container>(lines((ContainerCall::GetBlob(1), Blob(7)))));
}

/// Histories of a server that does one thing after another are fine, whatever gets lost; with one answer turned they are not.
#[test]
fn random_histories_of_a_true_register_pass_and_forged_ones_do_not() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let (calls, last_get) = true_history(&mut dice);
        assert_eq!(check(Register::default(), &calls, 0), Verdict::Fine, "seed {seed}");
        let Some(last_get) = last_get else { continue };
        let mut forged = calls;
        forged[last_get].answer = Some(found(999_999, "never"));
        assert!(matches!(check(Register::default(), &forged, 0), Verdict::Wrong(_)), "seed {seed}");
    }
}

type RegisterCalls = Vec<histories::Call<RegisterCall, RegisterAnswer>>;

/// Six clients; each call happens at some moment between its begin and its end. One in twenty loses its answer.
fn true_history(dice: &mut Dice) -> (RegisterCalls, Option<usize>) {
    struct Flight {
        ticket: histories::Ticket,
        call: RegisterCall,
        answer: Option<RegisterAnswer>,
    }
    let history = History::default();
    let mut state: Option<(u64, String)> = None;
    // The last ETag that anybody was told of.
    let mut told = "none".to_owned();
    let mut flights: Vec<Option<Flight>> = (0..6).map(|_| None).collect();
    for step in 0..400_u64 {
        let client = dice.below(6);
        let slot = &mut flights[client as usize];
        match slot.take() {
            None => {
                let condition = if dice.chance(50) { Condition::None } else { Condition::Is(told.clone()) };
                let call = match dice.below(4) {
                    0 => RegisterCall::Delete(condition),
                    1 => RegisterCall::Get,
                    _ => RegisterCall::Put(step, condition),
                };
                let ticket = history.begin(client, call.clone(), step);
                *slot = Some(Flight { ticket, call, answer: None });
            }
            Some(mut flight) if flight.answer.is_none() => {
                flight.answer = Some(happen(&mut state, &flight.call, step));
                *slot = Some(flight);
            }
            Some(flight) if dice.chance(95) => {
                let answer = flight.answer.expect("it happened");
                if let RegisterAnswer::Stored(etag) | RegisterAnswer::Found(_, etag) = &answer {
                    told.clone_from(etag);
                }
                history.end(&flight.ticket, answer, step);
            }
            Some(_) => {}
        }
    }
    let calls = history.into_calls();
    let is_get = |call: &histories::Call<_, _>| call.call == RegisterCall::Get && call.answer.is_some();
    let last = calls.iter().rposition(is_get);
    (calls, last)
}

fn happen(state: &mut Option<(u64, String)>, call: &RegisterCall, step: u64) -> RegisterAnswer {
    let holds = |condition: &Condition| match condition {
        Condition::None => true,
        Condition::Absent => state.is_none(),
        Condition::Is(etag) => state.as_ref().is_some_and(|(_, known)| known == etag),
    };
    match call {
        RegisterCall::Get => state.clone().map_or(RegisterAnswer::Missing, |(value, etag)| found(value, &etag)),
        RegisterCall::Delete(_) if state.is_none() => RegisterAnswer::Missing,
        RegisterCall::Delete(condition) | RegisterCall::Put(_, condition) if !holds(condition) => {
            RegisterAnswer::Refused
        }
        RegisterCall::Delete(_) => {
            *state = None;
            RegisterAnswer::Deleted
        }
        RegisterCall::Put(value, _) => {
            *state = Some((*value, format!("e{step}")));
            stored(&format!("e{step}"))
        }
    }
}

/// Two answered writes, a power cut after them, and what is read then.
#[test]
fn a_power_cut_may_take_the_newest_calls_but_none_before_what_is_left() {
    let left = |read: RegisterAnswer, kept: Option<u64>| {
        let history = History::default();
        let end = |call, answer, time| {
            let ticket = history.begin(1, call, time);
            history.end(&ticket, answer, time + 1);
        };
        end(put(1), stored("a"), 0);
        end(put(2), stored("b"), 2);
        history.settle(4);
        end(RegisterCall::Get, read.clone(), 10);
        end(RegisterCall::Get, read, 12);
        let forgotten = kept.map(|kept| histories::Forgetting { since: 1, until: 5, kept });
        let forgotten: Vec<_> = forgotten.into_iter().collect();
        histories::check_forgetting(Register::default(), &history.into_calls(), 0, &forgotten) == Verdict::Fine
    };
    assert!(left(found(2, "b"), None) && !left(found(1, "a"), None), "a durable write stays");
    assert!(left(found(2, "b"), Some(0)) && left(found(1, "a"), Some(0)) && left(RegisterAnswer::Missing, Some(0)));
    assert!(left(found(1, "a"), Some(3)), "it was so when the second write began");
    assert!(!left(RegisterAnswer::Missing, Some(3)), "the first write had been answered then");
    assert!(!left(found(1, "a"), Some(5)) && left(found(2, "b"), Some(5)));
}

/// What was never sent cannot explain what was read; what was sent to a server that died can, until it is settled.
#[test]
fn a_call_that_was_taken_back_never_happened() {
    let read_back = |treat: fn(&History<RegisterCall, RegisterAnswer>, histories::Ticket)| {
        let history = History::default();
        let lost = history.begin(1, put(7), 0);
        treat(&history, lost);
        let read = history.begin(2, RegisterCall::Get, 10);
        history.end(&read, found(7, "a"), 20);
        check(Register::default(), &history.into_calls(), 0)
    };
    assert!(matches!(read_back(|history, ticket| history.take_back(ticket)), Verdict::Wrong(_)));
    assert_eq!(read_back(|_, _| ()), Verdict::Fine);
    assert_eq!(read_back(|history, _| history.settle_those(5, |client| client == 1)), Verdict::Fine);
}

/// A settled call may have happened before, and not later.
#[test]
fn calls_are_settled_by_client() {
    let overwritten_late = |settled: u64| {
        let history = History::default();
        let _lost = history.begin(1, put(7), 0);
        history.settle_those(5, |client| client == settled);
        for (time, call, answer) in [(10, put(8), stored("a")), (30, RegisterCall::Get, found(7, "b"))] {
            let ticket = history.begin(2, call, time);
            history.end(&ticket, answer, time + 5);
        }
        check(Register::default(), &history.into_calls(), 0)
    };
    assert!(matches!(overwritten_late(1), Verdict::Wrong(_)));
    assert_eq!(overwritten_late(3), Verdict::Fine);
}
