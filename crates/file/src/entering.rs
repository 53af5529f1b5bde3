//! How a REST operation enters the table of opens.
//!
//! An operation looks its path up, enters the table for what stands there, and keeps its entry until its commit has ended. The
//! commit looks the path up again: if something else stands there by then, the operation has entered for the wrong file, and
//! begins anew. So what is committed was let in by the table, and what is decided is decided on rows of one state.

use std::sync::Arc;

use concurrency::{RestAccess, Timestamp};
use engine::Rows;
use service::{Operation, ReadOperation};

use crate::Failure;
use crate::error::FileError;
use crate::model::Halt;
use crate::opens::{Entry, FileId, NameKey, Refusal, Span, Turn};
use crate::ops::Call;
use crate::tree::{self, Spot, Target};

/// How often an operation begins anew because what stands at its path has changed.
const ATTEMPTS_MAX: usize = 100;

/// What an operation has entered the table for: a name in a directory, and what stood there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entered {
    pub directory: u64,
    pub id: Option<u64>,
}

impl Entered {
    fn of(spot: &Spot) -> Entered {
        Entered { directory: spot.directory(), id: spot.id() }
    }

    /// Whether the operation is still about what it has entered for.
    pub fn check(self, spot: &Spot) -> Result<(), FileError> {
        if self == Entered::of(spot) { Ok(()) } else { Err(FileError::Moved) }
    }
}

/// What stands at a path, looked up by itself.
#[derive(Clone, Debug)]
struct Look(Target);

impl ReadOperation for Look {
    type Outcome = Spot;
    type Refusal = FileError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<Spot, Halt> {
        tree::find(rows, account, &self.0)
    }
}

/// What an operation is to the table.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    pub access: RestAccess,
    /// The bytes that it reads or writes, if it is about some of them.
    pub span: Option<Span>,
    /// It changes what openers look at before they enter the table, so it takes its turn with them.
    pub takes_turn: bool,
}

impl Admission {
    pub fn of(access: RestAccess) -> Admission {
        Admission { access, span: None, takes_turn: false }
    }

    pub fn at(self, span: Span) -> Admission {
        Admission { span: Some(span), ..self }
    }

    pub fn in_turn(self) -> Admission {
        Admission { takes_turn: true, ..self }
    }
}

/// Commits an operation on what stands at a path, if the table lets it in. `make` makes the operation for what was entered for.
pub async fn commit<O>(
    call: Call<'_>,
    target: &Target,
    admission: Admission,
    make: impl Fn(Entered) -> O,
) -> Result<O::Outcome, Failure>
where
    O: Operation<Refusal = FileError>,
{
    let look = Arc::new(Look(target.clone()));
    for _ in 0..ATTEMPTS_MAX {
        let spot = call.read(&look).await?;
        let _turn = turn(call, &spot, admission).await?;
        let _entry = enter(call, &spot, admission).await?;
        match call.commit(&Arc::new(make(Entered::of(&spot)))).await {
            Err(Failure::Refused(FileError::Moved)) => {}
            result => return result,
        }
    }
    Err(FileError::Moved.into())
}

/// Runs an operation that changes nothing on what stands at a path, if the table lets it in.
pub async fn read<O>(
    call: Call<'_>,
    target: &Target,
    admission: Admission,
    make: impl Fn(Entered) -> O,
) -> Result<O::Outcome, Failure>
where
    O: ReadOperation<Refusal = FileError>,
{
    let look = Arc::new(Look(target.clone()));
    for _ in 0..ATTEMPTS_MAX {
        let spot = call.read(&look).await?;
        let _entry = enter(call, &spot, admission).await?;
        match call.read(&Arc::new(make(Entered::of(&spot)))).await {
            Err(Failure::Refused(FileError::Moved)) => {}
            result => return result,
        }
    }
    Err(FileError::Moved.into())
}

async fn turn(call: Call<'_>, spot: &Spot, admission: Admission) -> Result<Option<Turn>, FileError> {
    if !admission.takes_turn {
        return Ok(None);
    }
    Ok(Some(call.opens.turn(name_key(spot)).await?))
}

async fn enter(call: Call<'_>, spot: &Spot, admission: Admission) -> Result<Option<Entry>, FileError> {
    let Some(id) = spot.id() else { return Ok(None) };
    let file = FileId { share: spot.share.generation, id };
    Ok(Some(call.opens.enter(file, admission.access, admission.span).await?))
}

/// The name that openers of this spot take their turn at.
pub fn name_key(spot: &Spot) -> NameKey {
    NameKey { directory: spot.directory(), name: spot.name.clone() }
}

impl From<Refusal> for FileError {
    fn from(refusal: Refusal) -> FileError {
        match refusal {
            Refusal::SharingViolation => FileError::SharingViolation,
            Refusal::FileLockConflict => FileError::FileLockConflict,
            Refusal::DeletePending => FileError::SmbDeletePending,
            Refusal::TooMany => FileError::Moved,
        }
    }
}
