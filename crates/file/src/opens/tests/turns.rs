//! Turns: one at a time for each name, in order, and nothing is left of those that gave up.

use super::*;

fn name(directory: u64, folded: &str) -> NameKey {
    NameKey { directory, folded: folded.into() }
}

fn turn(opens: &Opens, directory: u64, folded: &str) -> Step<Result<Turn, Refusal>> {
    let (opens, name) = (opens.clone(), name(directory, folded));
    Step::of(async move { opens.turn(name).await })
}

fn both(opens: &Opens, one: NameKey, other: NameKey) -> Step<Result<Turn, Refusal>> {
    let opens = opens.clone();
    Step::of(async move { opens.turn_at_both(one, other).await })
}

#[test]
fn a_name_has_one_turn_at_a_time_in_the_order_of_asking() {
    let opens = opens();
    let held = turn(&opens, 1, "A").poll().unwrap();
    let mut waiting: Vec<_> = (0..5).map(|_| turn(&opens, 1, "A")).collect();
    assert!(waiting.iter_mut().all(|one| one.poll().is_none()));
    assert!(turn(&opens, 1, "B").poll().is_some() && turn(&opens, 2, "A").poll().is_some());
    drop(held);
    for place in 0..5 {
        assert!(waiting.iter_mut().skip(place + 1).all(|one| one.poll().is_none()));
        drop(waiting[place].poll().expect("its turn"));
    }
    drop(waiting);
    assert!(opens.is_empty());
}

#[test]
fn one_that_gives_up_is_passed_over_even_if_it_was_its_turn() {
    let opens = opens();
    let held = turn(&opens, 1, "A").poll().unwrap();
    let [mut first, mut second, mut third] = [(); 3].map(|()| turn(&opens, 1, "A"));
    assert!(first.poll().is_none() && second.poll().is_none() && third.poll().is_none());
    drop(second);
    drop(held);
    drop(first);
    drop(third.poll().expect("the first did not take its turn"));
    assert!(opens.is_empty());
}

#[test]
fn both_names_of_a_rename_are_taken_in_order() {
    let opens = opens();
    let (a, b) = (name(1, "A"), name(1, "B"));
    let held = both(&opens, b.clone(), a.clone()).poll().unwrap();
    assert!(turn(&opens, 1, "A").poll().is_none() && turn(&opens, 1, "B").poll().is_none());
    let mut back = both(&opens, a.clone(), b.clone());
    assert!(back.poll().is_none());
    drop(held);
    drop(back.poll().expect("both are free"));

    let last = turn(&opens, 1, "B").poll().unwrap();
    let mut half = both(&opens, b, a.clone());
    assert!(half.poll().is_none());
    assert!(turn(&opens, 1, "A").poll().is_none(), "the first name is held while the second is waited for");
    drop(half);
    assert!(turn(&opens, 1, "A").poll().is_some());
    assert!(both(&opens, a.clone(), a).poll().is_some(), "a rename to the same name is one turn");
    drop(last);
    assert!(opens.is_empty());
}

#[test]
fn a_name_has_a_limited_queue() {
    let opens = opens();
    let mut queue: Vec<_> = (0..TURNS_PER_NAME_MAX).map(|_| turn(&opens, 1, "A")).collect();
    let held: Vec<_> = queue.iter_mut().filter_map(Step::poll).collect();
    assert_eq!(held.len(), 1);
    assert!(matches!(turn(&opens, 1, "A").poll(), Some(Err(Refusal::TooMany))));
    drop((queue, held));
    assert!(opens.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opposite_renames_and_single_turns_never_hang_and_never_overlap() {
    let opens = opens();
    let held: Arc<[Mutex<bool>; 4]> = Arc::default();
    let tasks: Vec<_> = (0..16_usize)
        .map(|number| {
            let (opens, held) = (opens.clone(), Arc::clone(&held));
            tokio::spawn(async move {
                for round in 0..500 {
                    let (one, other) = ((number + round) % 4, (number * 3 + round / 3) % 4);
                    let keys = [one, other].map(|at| name(at as u64, "A"));
                    let [first, second] = keys;
                    let turn = opens.turn_at_both(first, second).await.unwrap();
                    let marked: HashSet<usize> = [one, other].into();
                    marked.iter().for_each(|at| assert!(!std::mem::replace(&mut *held[*at].lock().unwrap(), true)));
                    tokio::task::yield_now().await;
                    marked.iter().for_each(|at| *held[*at].lock().unwrap() = false);
                    drop(turn);
                }
            })
        })
        .collect();
    for task in tasks {
        let limit = std::time::Duration::from_secs(60);
        tokio::time::timeout(limit, task).await.expect("no two wait for each other").unwrap();
    }
    assert!(opens.is_empty());
}
