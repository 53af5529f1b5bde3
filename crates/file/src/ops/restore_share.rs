//! Restore Share: a deleted share comes back with everything in it, under its name.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, codec, reply};
use wire::http::{Head, Reply, StatusCode};
use wire::names::ShareName;

use super::Call;
use crate::error::FileError;
use crate::model::{DeletedShare, Halt, Share, deleted_share_due, deleted_share_key, find_share, refuse, share_key};
use crate::reply::share::set_written;
use crate::{Failure, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestoreShare {
    pub share: ShareName,
    /// As List Shares tells it.
    pub version: u64,
}

const NAME: &str = "x-ms-deleted-share-name";
const VERSION: &str = "x-ms-deleted-share-version";

/// The name is in the URL and in a header; a share does not come back under another.
fn parse(head: &Head) -> Result<RestoreShare, FileError> {
    let share = request::share(head)?;
    request::no_conditions(head)?;
    request::only_base(head)?;
    let (name, version) = (request::required(head, NAME)?, request::required(head, VERSION)?);
    if name != share.as_str() {
        return Err(FileError::header(NAME, name));
    }
    let version = parse_version(version).ok_or_else(|| FileError::header(VERSION, version))?;
    Ok(RestoreShare { share, version })
}

/// The version of a deleted share, as List Shares tells it.
pub fn version_text(version: u64) -> String {
    format!("{version:016X}")
}

fn parse_version(text: &str) -> Option<u64> {
    let is_version = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| is_version)
}

/// What is to come back must be there, then its name must be free.
fn decide(deleted: Option<DeletedShare>, taken: Option<&Share>, now: Timestamp) -> Result<DeletedShare, FileError> {
    let deleted = deleted.filter(|deleted| deleted.mark.is_kept(now)).ok_or(FileError::ShareNotFound)?;
    if taken.is_some() { Err(FileError::ShareAlreadyExists) } else { Ok(deleted) }
}

impl Operation for RestoreShare {
    type Outcome = Share;
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        share_key(account, &self.share)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<Share, Halt> {
        let source = deleted_share_key(account, &self.share, self.version);
        // Both are asked for before either is missed.
        let (found, taken) = (rows.get(&source), find_share(rows, account, &self.share));
        let (found, taken) = (found?.map(|row| codec::decode(&row)).transpose()?, taken?);
        let DeletedShare { share, mark } = decide(found, taken.as_ref(), tick.now).map_err(refuse)?;
        changes.delete(deleted_share_due(&source, mark));
        changes.delete(source);
        changes.put(share_key(account, &self.share), codec::encode(&share));
        Ok(share)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let share = call.commit(&Arc::new(parse(call.head)?)).await?;
    let mut answer = reply::reply(StatusCode::CREATED);
    set_written(&mut answer.headers, &share);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, NOW, between, header, refusal, share, tick};
    use service::{Deletion, RequestError};
    use wire::http::Reply;

    const DAY: u64 = 24 * 3600;
    const SHARE: &str = "share?restype=share";
    const URL: &str = "share?restype=share&comp=undelete";

    #[test]
    fn each_refusal_and_two_at_once() {
        let mark = Deletion::new(1, tick());
        let deleted = || Some(DeletedShare { share: share(), mark });
        assert_eq!(decide(deleted(), None, NOW), Ok(deleted().unwrap()));
        assert_eq!(decide(None, None, NOW), Err(FileError::ShareNotFound));
        assert_eq!(decide(None, Some(&share()), NOW), Err(FileError::ShareNotFound));
        assert_eq!(decide(deleted(), Some(&share()), NOW), Err(FileError::ShareAlreadyExists));
        let end = NOW.plus_seconds(DAY);
        assert_eq!(decide(deleted(), None, Timestamp(end.0 - 1)), Ok(deleted().unwrap()));
        assert_eq!(decide(deleted(), Some(&share()), end), Err(FileError::ShareNotFound));
    }

    async fn bench() -> Bench {
        let mut bench = Bench::with_share().await;
        bench.settings.share_soft_delete_days = Some(7);
        bench
    }

    /// Deletes the share and says its version.
    async fn delete(bench: &Bench) -> String {
        bench.call("DELETE", SHARE, &[], b"").await.unwrap();
        let listed = bench.text("GET", "?comp=list&include=deleted").await;
        between(&listed, "<Version>", "</Version>").last().unwrap().to_string()
    }

    async fn restore(bench: &Bench, version: &str) -> Result<Reply, Failure> {
        bench.call("PUT", URL, &[(NAME, "share"), (VERSION, version)], b"").await
    }

    #[tokio::test]
    async fn it_comes_back_as_it_was_but_for_its_lease() {
        let bench = bench().await;
        let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        let held = bench.call("PUT", "share?restype=share&comp=lease", &lease, b"").await.unwrap();
        let id = header(&held, "x-ms-lease-id").unwrap();
        let before = bench.call("GET", SHARE, &[], b"").await.unwrap();
        let rows = bench.rows();
        bench.call("DELETE", SHARE, &[("x-ms-lease-id", id)], b"").await.unwrap();
        let listed = bench.text("GET", "?comp=list&include=deleted").await;
        let version = between(&listed, "<Version>", "</Version>")[0];
        bench.advance(6 * DAY).await;
        bench.sweep().await;
        let restored = restore(&bench, version).await.unwrap();
        assert_eq!((restored.status.as_u16(), header(&restored, "etag")), (201, header(&before, "etag")));
        assert_eq!(header(&restored, "x-ms-share-quota"), Some("5120"));
        bench.advance(2 * DAY).await;
        bench.sweep().await;
        assert_eq!(bench.rows(), rows);
        let told = bench.call("GET", SHARE, &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-lease-state"), Some("available"));
        assert_eq!(refusal(restore(&bench, version).await), FileError::ShareNotFound);
        bench.call("DELETE", SHARE, &[], b"").await.unwrap();
        bench.advance(7 * DAY).await;
        bench.sweep().await;
        assert_eq!(bench.rows(), 0);
    }

    #[tokio::test]
    async fn a_name_that_is_taken_again_is_not_taken_back() {
        let bench = bench().await;
        let version = delete(&bench).await;
        bench.call("PUT", SHARE, &[("x-ms-meta-second", "1")], b"").await.unwrap();
        assert_eq!(refusal(restore(&bench, &version).await), FileError::ShareAlreadyExists);
        let second = delete(&bench).await;
        assert_ne!(version, second);
        restore(&bench, &version).await.unwrap();
        assert_eq!(header(&bench.call("GET", SHARE, &[], b"").await.unwrap(), "x-ms-meta-second"), None);
        bench.call("DELETE", SHARE, &[], b"").await.unwrap();
        bench.advance(7 * DAY).await;
        // Nobody has swept yet.
        assert_eq!(refusal(restore(&bench, &second).await), FileError::ShareNotFound);
        assert!(!bench.text("GET", "?comp=list&include=deleted").await.contains("<Name>"));
        bench.sweep().await;
        assert_eq!(bench.rows(), 0);
    }

    #[tokio::test]
    async fn the_service_properties_decide_once_they_are_set() {
        let bench = bench().await;
        let set = async |inner: &str| {
            let document = format!("<StorageServiceProperties>{inner}</StorageServiceProperties>");
            bench.call("PUT", "?restype=service&comp=properties", &[], document.as_bytes()).await.unwrap();
        };
        // They do not say anything about deleted shares: the first value stays.
        set("<Cors/>").await;
        let version = delete(&bench).await;
        restore(&bench, &version).await.unwrap();
        let policy = |inner: &str| format!("<ShareDeleteRetentionPolicy>{inner}</ShareDeleteRetentionPolicy>");
        set(&policy("<Enabled>true</Enabled><Days>1</Days>")).await;
        let version = delete(&bench).await;
        bench.advance(DAY).await;
        assert_eq!(refusal(restore(&bench, &version).await), FileError::ShareNotFound);
        bench.sweep().await;
        set(&policy("<Enabled>false</Enabled>")).await;
        bench.call("PUT", SHARE, &[], b"").await.unwrap();
        bench.call("DELETE", SHARE, &[], b"").await.unwrap();
        assert!(!bench.text("GET", "?comp=list&include=deleted").await.contains("<Name>"));
    }

    #[tokio::test]
    async fn each_refusal_of_the_request() {
        let bench = bench().await;
        for version in ["1", "00000000000000000", "+000000000000001", "000000000000000G"] {
            assert_eq!(refusal(restore(&bench, version).await), FileError::header(VERSION, version));
        }
        let version = delete(&bench).await;
        let ask = async |headers: &[(&str, &str)]| refusal(bench.call("PUT", URL, headers, b"").await);
        assert_eq!(ask(&[(NAME, "other"), (VERSION, &version)]).await, FileError::header(NAME, "other"));
        assert_eq!(ask(&[]).await, RequestError::MissingRequiredHeader { name: NAME }.into());
        assert_eq!(ask(&[(NAME, "share")]).await, RequestError::MissingRequiredHeader { name: VERSION }.into());
    }
}
