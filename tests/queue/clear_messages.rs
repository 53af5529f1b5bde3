//! Clear Messages.

use crate::stage::{Stage, texts};

#[test]
fn all_go_hidden_or_not_and_the_queue_stays() {
    let stage = Stage::new();
    stage.call("PUT que?comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    for n in 0..50 {
        stage.put(&n.to_string());
    }
    stage.put_with("hidden", "visibilitytimeout=60");
    let taken = stage.take(1, 60).remove(0);
    assert_eq!(stage.call("DELETE que/messages", &[], "").said(), "204");
    assert_eq!((stage.count(), stage.peek(32).len()), (0, 0));
    assert_eq!(stage.delete(&taken).said(), "404 MessageNotFound");
    assert_eq!(stage.update(&taken, 1, None).said(), "404 MessageNotFound");
    stage.put("new");
    stage.server.advance(600);
    assert_eq!((stage.count(), texts(&stage.peek(32))), (1, vec!["new"]));
    assert_eq!(stage.call("GET que?comp=metadata", &[], "").header("x-ms-meta-a"), Some("1"));
    assert_eq!(stage.call("DELETE que/messages", &[], "").said(), "204");
    assert_eq!(stage.call("DELETE que/messages", &[], "").said(), "204");
    assert_eq!(stage.call("DELETE other/messages", &[], "").said(), "404 QueueNotFound");
}
