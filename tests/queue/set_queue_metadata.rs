//! Set Queue Metadata and Get Queue Metadata.

use crate::stage::Stage;

#[test]
fn all_of_it_is_replaced() {
    let stage = Stage::new();
    assert_eq!(stage.call("PUT que?comp=metadata", &[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")], "").said(), "204");
    assert_eq!(stage.call("PUT que?comp=metadata", &[("x-ms-meta-b", "3")], "").said(), "204");
    for verb in ["GET", "HEAD"] {
        let told = stage.call(&format!("{verb} que?comp=metadata"), &[], "").ok();
        assert_eq!((told.header("x-ms-meta-a"), told.header("x-ms-meta-b")), (None, Some("3")));
        assert_eq!(told.header("x-ms-approximate-messages-count"), Some("0"));
        // Queues have neither versions nor conditions.
        assert_eq!((told.header("etag"), told.header("last-modified")), (None, None));
    }
    assert_eq!(stage.call("PUT que?comp=metadata", &[], "").said(), "204");
    assert_eq!(stage.call("GET que?comp=metadata", &[], "").header("x-ms-meta-b"), None);
}

#[test]
fn names_keep_their_case_and_bad_ones_are_refused() {
    let stage = Stage::new();
    stage.call("PUT que?comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    for (name, error) in [("x-ms-meta-", "400 EmptyMetadataKey"), ("x-ms-meta-a-b", "400 InvalidMetadata")] {
        assert_eq!(stage.call("PUT que?comp=metadata", &[(name, "1")], "").said(), error, "{name}");
    }
    let long = "v".repeat(9_000);
    let refused = stage.call("PUT que?comp=metadata", &[("x-ms-meta-a", &long)], "");
    assert_eq!(refused.said(), "400 MetadataTooLarge");
    assert_eq!(stage.call("GET que?comp=metadata", &[], "").header("x-ms-meta-a"), Some("1"));
}

/// All messages that have not expired count, whether they can be seen or not.
#[test]
fn the_count_is_exact() {
    let stage = Stage::new();
    stage.put("a");
    stage.put_with("hidden", "visibilitytimeout=1000");
    stage.put_with("short", "messagettl=10");
    assert_eq!(stage.count(), 3);
    let taken = stage.take(1, 100).remove(0);
    assert_eq!(stage.count(), 3);
    stage.delete(&taken).ok();
    assert_eq!(stage.count(), 2);
    stage.server.advance(10);
    assert_eq!(stage.count(), 1);
}
