//! Force Close Handles: closes handles that SMB clients have, one or all. It also works on what SMB is about to delete; what only
//! those handles kept from being deleted is deleted then.

use std::sync::Arc;

use service::reply;
use wire::http::{Head, HeaderName, HeaderValue, Reply, StatusCode};

use super::Call;
use super::list_handles::{HandleScope, marker};
use crate::Failure;
use crate::door::{Due, Remover};
use crate::error::FileError;
use crate::opens::{HandleId, Which};
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

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (scope, which) = parse(call.head)?;
    let share = scope.target.share.clone();
    let scope = call.read(&Arc::new(scope)).await?;
    let outcome = scope.map(|scope| call.opens.force_close(scope, which)).unwrap_or_default();
    let Call { opens, events, abandoned, .. } = call;
    let hold = call.ownership.and_then(|ownership| ownership.hold(call.account, &share)).map(Arc::new);
    let remover = Remover { engine: call.engine, opens, events, abandoned, hold: hold.as_ref() };
    // The handles are closed, whatever becomes of the files. All of them are due before the first is waited for: what this request
    // does not delete is deleted in the background.
    let due: Vec<Due> = outcome.removals.into_iter().map(|file| remover.due(call.account, &share, file)).collect();
    let mut failed = 0;
    for file in due {
        failed += usize::from(remover.remove(file).await.is_err());
    }
    let mut answer = reply::reply(StatusCode::OK);
    answer.headers.insert(&CLOSED, HeaderValue::from(outcome.closed - failed));
    answer.headers.insert(&FAILED, HeaderValue::from(failed));
    if let Some(next) = outcome.next {
        answer.headers.insert(&MARKER, HeaderValue::from(next.0));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, header};
    use concurrency::share_mode::Access;
    use service::RequestError;

    async fn close(bench: &Bench, path: &str, id: &str, is_recursive: bool) -> (String, Option<String>) {
        let headers = [("x-ms-handle-id", id), ("x-ms-recursive", if is_recursive { "true" } else { "false" })];
        let answer = bench.call("PUT", &format!("share/{path}?comp=forceclosehandles"), &headers, b"").await.unwrap();
        assert_eq!(header(&answer, "x-ms-number-of-handles-failed"), Some("0"));
        let marker = header(&answer, "x-ms-marker").map(str::to_owned);
        (header(&answer, "x-ms-number-of-handles-closed").unwrap().to_owned(), marker)
    }

    #[tokio::test]
    async fn one_all_and_all_below() {
        let bench = Bench::with_share().await;
        bench.mkdir("dir").await;
        bench.create("dir/file", 0).await;
        bench.create("other", 0).await;
        assert_eq!(close(&bench, "dir/file", "*", false).await, ("0".into(), None));
        let mut handles = Vec::new();
        for path in ["dir/file", "dir/file", "dir", "other"] {
            handles.push(bench.open(path, Access::READ, Access::ALL).await);
        }
        let first = handles[0].id().0.to_string();
        assert_eq!(close(&bench, "other", &first, false).await.0, "0", "it is not a handle of that file");
        assert_eq!(close(&bench, "dir/file", &first, false).await.0, "1");
        assert_eq!(close(&bench, "dir/file", &first, false).await.0, "0");
        assert_eq!(close(&bench, "dir", "*", false).await.0, "1");
        assert_eq!(close(&bench, "", "*", true).await.0, "2");
        assert!(bench.opens.is_empty());
        assert!(handles.iter().all(|handle| handle.set_delete_pending(true).is_err()));
    }

    #[tokio::test]
    async fn many_are_closed_in_steps() {
        let bench = Bench::with_share().await;
        bench.create("file", 0).await;
        let mut handles = Vec::new();
        for _ in 0..CLOSED_AT_ONCE_MAX + 1 {
            handles.push(bench.open("file", Access::READ, Access::ALL).await);
        }
        let (closed, marker) = close(&bench, "file", "*", false).await;
        assert_eq!((closed.as_str(), marker.is_some()), ("1000", true));
        let headers = [("x-ms-handle-id", "*")];
        let url = format!("share/file?comp=forceclosehandles&marker={}", marker.unwrap());
        let answer = bench.call("PUT", &url, &headers, b"").await.unwrap();
        assert_eq!(header(&answer, "x-ms-number-of-handles-closed"), Some("1"));
        assert_eq!(header(&answer, "x-ms-marker"), None);
    }

    #[tokio::test]
    async fn a_directory_that_is_to_be_deleted_stays_if_something_is_in_it() {
        let bench = Bench::with_share().await;
        bench.mkdir("dir").await;
        let handle = bench.open("dir", Access::DELETE, Access::ALL).await;
        handle.set_delete_pending(true).unwrap();
        // Nothing new comes into it.
        bench.create("other", 0).await;
        let headers = [("x-ms-type", "file"), ("x-ms-content-length", "0")];
        assert_eq!(bench.refused("PUT", "share/dir/file", &headers).await, FileError::SmbDeletePending);
        let moved = crate::testing::refusal(bench.rename("other", "dir/file", &[]).await);
        assert_eq!(moved, FileError::SmbDeletePending);
        bench.call("DELETE", "share/other", &[], b"").await.unwrap();
        handle.set_delete_pending(false).unwrap();
        bench.create("dir/file", 0).await;
        handle.set_delete_pending(true).unwrap();
        assert_eq!(close(&bench, "dir", "*", false).await.0, "1");
        assert_eq!(bench.names("").await, ["dir"]);
        bench.call("DELETE", "share/dir/file", &[], b"").await.unwrap();
        let handle = bench.open("dir", Access::DELETE, Access::ALL).await;
        handle.set_delete_pending(true).unwrap();
        assert_eq!(close(&bench, "dir", "*", false).await.0, "1");
        assert!(bench.names("").await.is_empty());
    }

    #[tokio::test]
    async fn refusals_and_two_at_once() {
        let bench = Bench::with_share().await;
        let url = "share/no?comp=forceclosehandles";
        let missing = RequestError::MissingRequiredHeader { name: HANDLE_ID };
        assert_eq!(bench.refused("PUT", url, &[]).await, missing.into());
        for id in ["x", "-1", "18446744073709551616"] {
            assert_eq!(bench.refused("PUT", url, &[(HANDLE_ID, id)]).await, FileError::header(HANDLE_ID, id));
        }
        assert_eq!(bench.refused("PUT", url, &[(HANDLE_ID, "7")]).await, FileError::ResourceNotFound);
    }
}
