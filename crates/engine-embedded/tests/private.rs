//! The data folder belongs to its owner alone, and its loss is noticed.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{get, open, pattern, put};
use engine::{Engine, EngineError};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("there").permissions().mode() & 0o777
}

/// All files and folders that others may open, if they may open those above.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if mode(folder) & 0o077 != 0 {
        found.push(folder.display().to_string());
    }
    for entry in std::fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry").path()) {
        // The tree makes its own files; its folder is closed.
        if entry.is_dir() && !entry.ends_with("rows") {
            found.extend(open_to_others(&entry));
        } else if mode(&entry) & 0o077 != 0 {
            found.push(entry.display().to_string());
        }
    }
    found
}

#[tokio::test]
async fn only_the_owner_can_read_the_data() {
    let above = tempfile::tempdir().expect("a folder");
    let folder = above.path().join("data");
    let engine = open(&folder);
    put(&*engine, "small", &pattern("small", 1, 100)).await.expect("put");
    put(&*engine, "large", &pattern("large", 1, 100_000)).await.expect("put");
    assert_eq!(open_to_others(&folder), Vec::<String>::new());
}

#[tokio::test]
async fn a_folder_that_others_could_read_is_closed() {
    let above = tempfile::tempdir().expect("a folder");
    let folder = above.path().join("data");
    let engine = open(&folder);
    put(&*engine, "small", &pattern("small", 1, 100)).await.expect("put");
    drop(engine);
    let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("set");
    for name in ["", "rows", "segments"] {
        set(&folder.join(name), 0o755);
    }
    for entry in std::fs::read_dir(folder.join("segments")).expect("listed") {
        set(&entry.expect("an entry").path(), 0o644);
    }
    for name in ["FORMAT", "STATE", "LOCK"] {
        set(&folder.join(name), 0o644);
    }
    assert!(!open_to_others(&folder).is_empty());
    let engine = open(&folder);
    assert_eq!(open_to_others(&folder), Vec::<String>::new());
    assert_eq!(get(&*engine, "small").await, Ok(Some(pattern("small", 1, 100))));
}

#[tokio::test]
async fn nothing_is_acknowledged_once_the_folder_is_gone() {
    let above = tempfile::tempdir().expect("a folder");
    let (folder, elsewhere) = (above.path().join("data"), above.path().join("elsewhere"));
    let engine = open(&folder);
    put(&*engine, "before", &pattern("before", 1, 100)).await.expect("put");
    std::fs::rename(&folder, &elsewhere).expect("moved");
    // The engine looks by itself; how soon is not promised.
    let refused = loop {
        match put(&*engine, "after", &pattern("after", 1, 100)).await {
            Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            Err(error) => break error,
        }
    };
    assert!(matches!(&refused, EngineError::Unavailable(why) if why.contains("removed or moved")), "{refused:?}");
    assert!(engine.figures().contains(&("folder_gone", 1)));
    assert_eq!(get(&*engine, "before").await, Ok(Some(pattern("before", 1, 100))), "reads go on");
    std::fs::rename(&elsewhere, &folder).expect("moved back");
    while put(&*engine, "again", &pattern("again", 1, 100)).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // Files may be made in it meanwhile.
    while std::fs::remove_dir_all(&folder).is_err() {}
    while put(&*engine, "lost", &pattern("lost", 1, 100)).await.is_ok() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
