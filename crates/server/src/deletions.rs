//! Background tasks that delete files which SMB has marked for deletion and whose connections are gone.

use std::time::Instant;

use engine::panics::{Panicked, caught};
use file::door::{Door, NotDeleted};

use crate::limits::{DELETION_RESTS_LOOK, DELETIONS_AT_ONCE_MAX, DELETIONS_LOOK};

/// Begins to delete what is abandoned. Several at once: one may have to wait for those who are at work on its name. A file that
/// cannot be deleted now rests, each time for longer, and holds up no other.
pub(crate) fn spawn(door: &Door) {
    for _ in 0..DELETIONS_AT_ONCE_MAX {
        tokio::spawn(run(door.clone()));
    }
    tokio::spawn(wake(door.clone()));
}

async fn run(door: Door) {
    loop {
        match caught(door.delete_abandoned()).await {
            Ok(Ok(())) | Err(Panicked) => {}
            Ok(Err(failed)) => tell(&failed),
        }
    }
}

/// Ends the rests of those that could not be deleted.
async fn wake(door: Door) {
    loop {
        tokio::time::sleep(DELETION_RESTS_LOOK).await;
        door.wake_abandoned(Instant::now());
    }
}

/// The first failure of a file is told, and then each time that there are twice as many: it may go on for days.
fn tell(failed: &NotDeleted) {
    let NotDeleted { account, share, path, error, attempts, tried_again_after } = failed;
    if attempts.is_power_of_two() || tried_again_after.is_none() {
        tracing::error!(
            account,
            share,
            path,
            ?error,
            attempts,
            ?tried_again_after,
            "a file that SMB has deleted is still there"
        );
    }
}

/// Waits until nothing is being deleted any more, with one more attempt for what rests. What fails again is left: a file that the
/// engine refuses to delete does not hold up the end. The caller has a limit of time.
pub(crate) async fn ended(door: &Door) {
    door.wake_all_abandoned();
    while door.is_deleting() {
        tokio::time::sleep(DELETIONS_LOOK).await;
    }
}
