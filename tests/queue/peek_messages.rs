//! Peek Messages.

use crate::stage::{Stage, texts};

#[test]
fn nothing_changes() {
    let stage = Stage::new();
    stage.put("a");
    stage.put("b");
    stage.put_with("hidden", "visibilitytimeout=60");
    for _ in 0..3 {
        let seen = stage.peek(32);
        assert_eq!(texts(&seen), ["a", "b"]);
        for message in &seen {
            assert_eq!((message.dequeued, message.receipt.as_str(), message.next_visible.as_str()), (Some(0), "", ""));
        }
    }
    assert_eq!(stage.take(1, 30)[0].dequeued, Some(1));
    assert_eq!(texts(&stage.peek(32)), ["b"]);
    stage.server.advance(60);
    // By the time at which they could be seen again.
    assert_eq!(texts(&stage.peek(32)), ["b", "a", "hidden"]);
    assert_eq!(stage.peek(32)[1].dequeued, Some(1));
}

#[test]
fn ranges_of_the_parameters() {
    let stage = Stage::new();
    for count in [0, 33] {
        let line = format!("GET que/messages?peekonly=true&numofmessages={count}");
        assert_eq!(stage.call(&line, &[], "").said(), "400 OutOfRangeQueryParameterValue");
    }
    assert_eq!(stage.call("GET other/messages?peekonly=true", &[], "").said(), "404 QueueNotFound");
}
