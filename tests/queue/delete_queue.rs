//! Delete Queue.

use crate::stage::{Stage, body};

#[test]
fn everything_of_it_is_gone_at_once_and_the_name_is_free() {
    let stage = Stage::new();
    for n in 0..20 {
        stage.put(&n.to_string());
    }
    let taken = stage.take(1, 60).remove(0);
    assert_eq!(stage.call("DELETE que", &[], "").said(), "204");
    for line in [
        "DELETE que",
        "GET que?comp=metadata",
        "HEAD que?comp=metadata",
        "PUT que?comp=metadata",
        "GET que?comp=acl",
        "PUT que?comp=acl",
        "GET que/messages",
        "GET que/messages?peekonly=true",
        "DELETE que/messages",
    ] {
        assert_eq!(stage.call(line, &[], "").said(), "404 QueueNotFound", "{line}");
    }
    assert_eq!(stage.call("POST que/messages", &[], body("x")).said(), "404 QueueNotFound");
    assert_eq!(stage.delete(&taken).said(), "404 QueueNotFound");
    assert_eq!(stage.update(&taken, 1, None).said(), "404 QueueNotFound");
    // The service itself keeps a name back for half a minute (409 QueueBeingDeleted); here it is free at once.
    assert_eq!(stage.call("PUT que", &[], "").said(), "201");
    assert_eq!((stage.count(), stage.peek(32).len()), (0, 0));
    assert_eq!(stage.delete(&taken).said(), "404 MessageNotFound");
    stage.put("new");
    stage.server.advance(3_600);
    assert_eq!(stage.peek(32).len(), 1);
}
