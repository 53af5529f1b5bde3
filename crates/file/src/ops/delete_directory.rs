//! Delete Directory: an empty one.

use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::announcement::Effect;
use crate::change::remove;
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::opens::events::Aspects;
use crate::tree::{Spot, Target};
use crate::{Failure, request};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DeleteDirectory;

fn parse(head: &Head) -> Result<Target, FileError> {
    let target = request::directory(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    Ok(target)
}

impl NodeChange for DeleteDirectory {
    type Outcome = ();

    /// Whatever is open below it is in it: a directory that is not empty is refused for that.
    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Delete).in_turn()
    }

    fn effect(&self) -> Effect {
        Effect::Removed(Aspects::DIRECTORY_NAME)
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
        remove::directory(spot, rows, tick, changes)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let target = parse(call.head)?;
    match entering::commit(call, &target, DeleteDirectory).await {
        Ok(()) => Ok(Reply::new(StatusCode::ACCEPTED)),
        Err(Failure::Refused(FileError::SharingViolation)) => Err(FileError::CannotDeleteFileOrDirectory.into()),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    const URL: &str = "share/dir?restype=directory";

    #[tokio::test]
    async fn an_empty_directory_goes_and_leaves_nothing() {
        let bench = Bench::with_share().await;
        bench.mkdir("other").await;
        let before = bench.figures();
        bench.mkdir("dir").await;
        bench.mkdir("dir/sub").await;
        assert_eq!(bench.refused("DELETE", URL, &[]).await, FileError::DirectoryNotEmpty);
        bench.call("DELETE", "share/DIR/Sub/?restype=directory", &[], b"").await.unwrap();
        assert_eq!(bench.call("DELETE", URL, &[], b"").await.unwrap().status, 202);
        assert_eq!(bench.refused("DELETE", URL, &[]).await, FileError::ResourceNotFound);
        bench.sweep().await;
        assert_eq!(bench.figures(), before);
    }
}
