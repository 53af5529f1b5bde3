//! Abort Copy Blob: end a copy that is under way. What is left is an empty blob.

use concurrency::{LeaseId, Timestamp};
use engine::{Changes, Commit, commit};
use service::RequestError;
use wire::http::{Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::background_copy;
use crate::error::BlobError;
use crate::model::{self, Blob, blob_key, refuse};
use crate::{Failure, reply, request};

struct AbortCopyBlob {
    container: ContainerName,
    name: BlobName,
    lease: Option<LeaseId>,
    id: String,
}

fn parse(head: &Head) -> Result<AbortCopyBlob, BlobError> {
    const ACTION: &str = "x-ms-copy-action";
    const ID: &str = "copyid";
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    let action = request::required(head, ACTION)?;
    if !action.eq_ignore_ascii_case("abort") {
        return Err(BlobError::header(ACTION, action));
    }
    let id = head.query.get(ID).ok_or(BlobError::Request(RequestError::MissingRequiredQueryParameter { name: ID }))?;
    // Any GUID may be asked for; something else never was an id.
    let id = LeaseId::parse(id).ok_or_else(|| BlobError::query(ID, id))?.to_string();
    Ok(AbortCopyBlob { container, name, lease: request::lease_id(head)?, id })
}

impl AbortCopyBlob {
    /// Whether this copy may be ended.
    fn judge(&self, found: Option<&Blob>, now: Timestamp) -> Result<(), BlobError> {
        let blob = found.ok_or(BlobError::BlobNotFound)?;
        let state = blob.committed.as_ref().ok_or(BlobError::BlobNotFound)?;
        blob.lease.check_write(self.lease, now).map_err(BlobError::lease_on_blob)?;
        match &state.copy {
            Some(copy) if copy.is_pending(now) && copy.id == self.id => Ok(()),
            Some(copy) if copy.is_pending(now) => Err(BlobError::CopyIdMismatch),
            Some(_) | None => Err(BlobError::NoPendingCopyOperation),
        }
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let account = call.account;
    let partition = model::blob_partition(account, &op.container, &op.name);
    let job = commit(call.engine, partition, move |rows, tick| {
        let generation = model::generation(rows, account, &op.container)?;
        let key = blob_key(generation, &op.name);
        let found = model::find_blob(rows, &key)?;
        op.judge(found.as_ref(), tick.now).map_err(refuse)?;
        let mut blob = found.ok_or(refuse(BlobError::BlobNotFound))?;
        let mut changes = Changes::none();
        let state = blob.committed.take().ok_or(refuse(BlobError::BlobNotFound))?;
        let job = background_copy::abort(rows, key, (blob, state), tick, &mut changes)?;
        Ok(Commit { changes, outcome: job })
    })
    .await?;
    if let Some(job) = job {
        call.service.copier.abandon(job);
    }
    Ok(reply::reply(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Committed;
    use crate::testing::{HELD, MINE, NOW, YOURS, committed, request, tick};
    use concurrency::Lease;
    use content::copy_state::CopyState;

    #[test]
    fn each_refusal_and_two_at_once() {
        let copy = CopyState::pending("http://elsewhere/x", 10, tick());
        let ask = |lease, id: &str| AbortCopyBlob {
            container: ContainerName::parse("cont").unwrap(),
            name: BlobName::parse("blob").unwrap(),
            lease,
            id: id.to_owned(),
        };
        let blob = |lease, copy| {
            let state = Committed { copy, ..committed() };
            Blob { uid: 3, lease, committed: Some(state), ..Blob::default() }
        };
        let pending = || Some(Box::new(copy.clone()));
        let done = Some(Box::new(CopyState::success("http://elsewhere/x", 10, tick())));
        let (id, other) = (copy.id.as_str(), "01010101-0101-0101-0101-010101010101");
        let judge = |op: AbortCopyBlob, found: Option<Blob>| op.judge(found.as_ref(), NOW).err();
        assert_eq!(judge(ask(None, id), Some(blob(Lease::Available, pending()))), None);
        assert_eq!(judge(ask(Some(MINE), id), Some(blob(HELD, pending()))), None);
        assert_eq!(judge(ask(None, id), None), Some(BlobError::BlobNotFound));
        assert_eq!(judge(ask(None, id), Some(blob(HELD, pending()))), Some(BlobError::LeaseIdMissing));
        let yours = judge(ask(Some(YOURS), other), Some(blob(HELD, pending())));
        assert_eq!(yours, Some(BlobError::LeaseIdMismatchWithBlobOperation));
        assert_eq!(judge(ask(None, other), Some(blob(Lease::Available, pending()))), Some(BlobError::CopyIdMismatch));
        for copy in [done, None] {
            let refused = judge(ask(None, id), Some(blob(Lease::Available, copy.clone())));
            assert_eq!(refused, Some(BlobError::NoPendingCopyOperation));
            assert_eq!(judge(ask(None, id), Some(blob(HELD, copy))), Some(BlobError::LeaseIdMissing));
        }
    }

    #[test]
    fn what_a_request_must_say() {
        let ask = |url: &str, headers: &[(&str, &str)]| parse(&request("PUT", url, headers)).err();
        let abort = [("x-ms-copy-action", "abort")];
        let id = "01010101-0101-0101-0101-010101010101";
        assert_eq!(ask(&format!("cont/blob?comp=copy&copyid={id}"), &abort), None);
        let missing = BlobError::Request(RequestError::MissingRequiredHeader { name: "x-ms-copy-action" });
        assert_eq!(ask(&format!("cont/blob?comp=copy&copyid={id}"), &[]), Some(missing));
        let other = ask("cont/blob?comp=copy", &[("x-ms-copy-action", "stop")]);
        assert_eq!(other, Some(BlobError::header("x-ms-copy-action", "stop")));
        let missing = BlobError::Request(RequestError::MissingRequiredQueryParameter { name: "copyid" });
        assert_eq!(ask("cont/blob?comp=copy", &abort), Some(missing));
        assert_eq!(ask("cont/blob?comp=copy&copyid=x", &abort), Some(BlobError::query("copyid", "x")));
    }
}
