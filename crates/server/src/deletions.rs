//! Background tasks that delete files which SMB has marked for deletion and whose connections are gone.

use std::time::Duration;

use engine::panics::{Panicked, caught};
use file::door::Door;

use crate::limits::{DELETION_PAUSE, DELETION_PAUSE_MAX, DELETIONS_AT_ONCE_MAX, DELETIONS_LOOK};

/// Begins to delete what is abandoned. Several at once: one may have to wait for those who are at work on its name.
pub(crate) fn spawn(door: &Door) {
    for _ in 0..DELETIONS_AT_ONCE_MAX {
        tokio::spawn(run(door.clone()));
    }
}

async fn run(door: Door) {
    let mut pause = DELETION_PAUSE;
    loop {
        if delete_next(&door).await {
            pause = DELETION_PAUSE;
        } else {
            tokio::time::sleep(pause).await;
            pause = longer(pause);
        }
    }
}

/// Whether it was done.
async fn delete_next(door: &Door) -> bool {
    match caught(door.delete_abandoned()).await {
        Ok(Ok(())) => true,
        Ok(Err(failed)) => {
            let (share, path, error, is_tried_again) = (failed.share, failed.path, failed.error, failed.is_tried_again);
            tracing::error!(share, path, ?error, is_tried_again, "a file that SMB has deleted is still there");
            false
        }
        Err(Panicked) => false,
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(DELETION_PAUSE_MAX)
}

/// Waits until nothing is abandoned any more. The caller has a limit of time.
pub(crate) async fn ended(door: &Door) {
    while door.has_abandoned() {
        tokio::time::sleep(DELETIONS_LOOK).await;
    }
}
