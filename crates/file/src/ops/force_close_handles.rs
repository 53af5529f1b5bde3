//! Force Close Handles: closes handles that SMB clients have, one or all. It also works on what SMB is about to delete; what only
//! those handles kept from being deleted is deleted then.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::{Operation, reply};
use wire::http::{Head, HeaderName, HeaderValue, Reply, StatusCode};
use wire::names::ShareName;

use super::Call;
use super::list_handles::{HandleScope, marker};
use crate::Failure;
use crate::change::remove;
use crate::error::FileError;
use crate::model::{Halt, share_key};
use crate::opens::{FileId, HandleId, Which};
use crate::request::required;

/// Handles that one request closes. If there are more, the answer has a marker to go on with.
const CLOSED_AT_ONCE_MAX: usize = 1_000;
const HANDLE_ID: &str = "x-ms-handle-id";
const ALL: &str = "*";

static MARKER: HeaderName = HeaderName::from_static("x-ms-marker");
static CLOSED: HeaderName = HeaderName::from_static("x-ms-number-of-handles-closed");
static FAILED: HeaderName = HeaderName::from_static("x-ms-number-of-handles-failed");

fn parse(head: &Head) -> Result<(HandleScope, Which), FileError> {
    let scope = HandleScope::parse(head)?;
    let which = match required(head, HANDLE_ID)? {
        ALL => Which::All { after: marker(head)?, most: CLOSED_AT_ONCE_MAX },
        id => Which::One(HandleId(id.parse().map_err(|_| FileError::header(HANDLE_ID, id))?)),
    };
    Ok((scope, which))
}

/// Removes a file or directory whose last handle is closed and that is to be deleted, wherever it is by now.
struct RemoveClosed {
    share: ShareName,
    file: FileId,
}

impl Operation for RemoveClosed {
    type Outcome = ();
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        share_key(account, &self.share)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
        remove::closed(rows, account, &self.share, self.file, tick, changes)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (scope, which) = parse(call.head)?;
    let share = scope.target.share.clone();
    let scope = call.read(&Arc::new(scope)).await?;
    let outcome = call.opens.force_close(scope, which);
    for removal in &outcome.removals {
        call.commit(&Arc::new(RemoveClosed { share: share.clone(), file: removal.file() })).await?;
    }
    let mut answer = reply::reply(StatusCode::OK);
    answer.headers.insert(&CLOSED, HeaderValue::from(outcome.closed));
    answer.headers.insert(&FAILED, HeaderValue::from(0));
    if let Some(next) = outcome.next {
        answer.headers.insert(&MARKER, HeaderValue::from(next.0));
    }
    Ok(answer)
}
