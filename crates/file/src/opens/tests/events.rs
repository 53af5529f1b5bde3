//! Change events: who is told what, and what a slow watcher loses.

use super::super::events::{
    Above, Action, Aspects, EVENT_BYTES_PER_WATCHER_MAX, EVENTS_PER_WATCHER_MAX, Event, Events, Notice, Watcher,
};
use super::{Step, now};

/// Root 1, in it `sub` 2, in it `deep` 3.
fn event(directory: u64, name: &str, aspects: Aspects) -> Event {
    let above = [(2, "deep"), (1, "sub")].map(|(directory, child)| Above { directory, child: child.to_owned() });
    let above = above.into_iter().filter(|above| above.directory < directory).collect();
    Event { directory, above, action: Action::Added { name: name.to_owned() }, aspects }
}

fn told(watcher: &mut Watcher) -> Vec<Action> {
    match now(watcher.next()) {
        Notice::Events(events) => events.iter().map(|event| event.action.clone()).collect(),
        Notice::Overflow | Notice::DeletePending => panic!("too many"),
    }
}

fn is_silent(watcher: &mut Watcher) -> bool {
    let mut next = std::pin::pin!(watcher.next());
    next.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending()
}

#[test]
fn a_watcher_is_told_of_its_directory_or_of_everything_below() {
    let events = Events::default();
    let watch = |directory, is_recursive| events.watch(directory, is_recursive, Aspects::FILE_NAME).unwrap();
    let (mut flat, mut tree, mut inner) = (watch(1, false), watch(1, true), watch(3, false));
    for (directory, name) in [(1, "a"), (2, "b"), (3, "c")] {
        events.publish(event(directory, name, Aspects::FILE_NAME));
    }
    let added =
        |names: &[&str]| -> Vec<_> { names.iter().map(|name| Action::Added { name: (*name).to_owned() }).collect() };
    assert_eq!(told(&mut flat), added(&["a"]));
    assert_eq!(told(&mut tree), added(&["a", "b", "c"]));
    assert_eq!(told(&mut inner), added(&["c"]));
    assert!(is_silent(&mut flat) && is_silent(&mut tree) && is_silent(&mut inner));
}

#[test]
fn a_filter_keeps_out_what_was_not_asked_for() {
    let events = Events::default();
    let mut sizes = events.watch(1, true, Aspects::SIZE.and(Aspects::LAST_WRITE)).unwrap();
    events.publish(event(1, "a", Aspects::FILE_NAME));
    assert!(is_silent(&mut sizes));
    events.publish(event(1, "b", Aspects::SIZE.and(Aspects::ATTRIBUTES)));
    assert_eq!(told(&mut sizes).len(), 1);
}

#[test]
fn names_lead_down_from_the_watched_directory() {
    let event = event(3, "c", Aspects::FILE_NAME);
    assert_eq!(event.path_from(3), Some(vec![]));
    assert_eq!(event.path_from(2), Some(vec!["deep"]));
    assert_eq!(event.path_from(1), Some(vec!["sub", "deep"]));
    assert_eq!(event.path_from(4), None);
}

#[test]
fn a_watcher_that_is_too_slow_is_told_once_and_goes_on() {
    let events = Events::default();
    let mut watcher = events.watch(1, false, Aspects::FILE_NAME).unwrap();
    let publish = |count: usize| (0..count).for_each(|_| events.publish(event(1, "a", Aspects::FILE_NAME)));
    publish(EVENTS_PER_WATCHER_MAX);
    assert_eq!(told(&mut watcher).len(), EVENTS_PER_WATCHER_MAX);
    publish(EVENTS_PER_WATCHER_MAX + 10);
    assert_eq!(now(watcher.next()), Notice::Overflow);
    assert!(is_silent(&mut watcher));
    publish(2);
    assert_eq!(told(&mut watcher).len(), 2);
}

/// Few events of a deep directory take as much room as many others.
#[test]
fn large_events_are_limited_by_their_size() {
    let events = Events::default();
    let mut watcher = events.watch(1, true, Aspects::FILE_NAME).unwrap();
    let deep = Event {
        directory: 300,
        above: (1..255).rev().map(|directory| Above { directory, child: "12345678".to_owned() }).collect(),
        action: Action::Renamed { from: "a".repeat(255), to: "b".repeat(255) },
        aspects: Aspects::FILE_NAME,
    };
    let room = EVENT_BYTES_PER_WATCHER_MAX / (254 * (size_of::<Above>() + 8) + 510 + size_of::<Event>());
    for round in 0..3 {
        (0..room).for_each(|_| events.publish(deep.clone()));
        assert_eq!(told(&mut watcher).len(), room, "{round}");
        (0..=room).for_each(|_| events.publish(deep.clone()));
        assert_eq!(now(watcher.next()), Notice::Overflow, "{round}");
    }
}

#[test]
fn a_dropped_watcher_is_gone_and_a_dropped_wait_loses_nothing() {
    let events = Events::default();
    assert!(!events.has_watchers());
    let (mut one, other) =
        (events.watch(1, false, Aspects::FILE_NAME).unwrap(), events.watch(1, true, Aspects::FILE_NAME).unwrap());
    assert!(is_silent(&mut one));
    drop(other);
    assert!(events.has_watchers());
    events.publish(event(1, "a", Aspects::FILE_NAME));
    assert_eq!(told(&mut one).len(), 1);
    drop(one);
    assert!(!events.has_watchers());
    events.publish(event(1, "a", Aspects::FILE_NAME));
}

#[tokio::test]
async fn a_watcher_that_waits_is_woken() {
    let events = Events::default();
    let mut watcher = events.watch(1, false, Aspects::FILE_NAME).unwrap();
    let waiting = tokio::spawn(async move { watcher.next().await });
    tokio::task::yield_now().await;
    let publisher = Step::of(async move { events.publish(event(1, "a", Aspects::FILE_NAME)) });
    publisher.0.await;
    assert!(matches!(waiting.await.unwrap(), Notice::Events(all) if all.len() == 1));
}
