//! Create Share: a new share under a name that is free, with an empty root directory.

use std::sync::Arc;

use bytes::Bytes;
use concurrency::Lease;
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, Pairs, codec, reply};
use wire::http::{Head, Reply, StatusCode};
use wire::names::ShareName;

use super::Call;
use crate::error::FileError;
use crate::model::{Halt, Node, Protocol, Share, find_share, permission_key, refuse, root_key, share_key};
use crate::reply::share::set_written;
use crate::security::{Permission, root_directory};
use crate::share_settings::{self, QUOTA_GIB_DEFAULT, ShareSettings};
use crate::{Failure, request};

/// The epoch of a new share. 0 stands for no snapshot.
const FIRST_EPOCH: u64 = 1;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateShare {
    pub share: ShareName,
    pub metadata: Pairs,
    pub protocol: Protocol,
    pub settings: ShareSettings,
}

impl CreateShare {
    /// A share with the settings that one has if its creator names none.
    #[must_use]
    pub fn named(share: ShareName) -> CreateShare {
        CreateShare { share, metadata: Vec::new(), protocol: Protocol::default(), settings: ShareSettings::default() }
    }
}

fn parse(head: &Head) -> Result<CreateShare, FileError> {
    let share = request::share(head)?;
    request::no_conditions(head)?;
    request::only_base(head)?;
    let (protocol, settings) = (share_settings::protocol(head)?, ShareSettings::parse(head)?);
    settings.check(protocol)?;
    Ok(CreateShare { share, metadata: request::metadata(head)?, protocol, settings })
}

impl Operation for CreateShare {
    type Outcome = Share;
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        share_key(account, &self.share)
    }

    /// A name is free as soon as its share is deleted: the files of that one belong to another generation.
    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<Share, Halt> {
        if find_share(rows, account, &self.share)?.is_some() {
            return Err(refuse(FileError::ShareAlreadyExists));
        }
        let share = self.share(tick);
        changes.put(share_key(account, &self.share), codec::encode(&share));
        let permission = Permission::new(root_directory()).map_err(|error| refuse(error.into()))?;
        let row = permission_key(share.generation, permission.key());
        changes.put(row, Bytes::copy_from_slice(permission.as_bytes()));
        let root = Node::root(share.generation, share.epoch, share.protocol, permission.key(), tick);
        changes.put(root_key(share.generation), codec::encode(&root));
        Ok(share)
    }
}

impl CreateShare {
    fn share(&self, tick: Tick) -> Share {
        let ShareSettings { quota_gib, tier, root_squash, provisioned } = self.settings;
        Share {
            generation: tick.id(0),
            stamp: tick.stamp,
            lease: Lease::Available,
            metadata: self.metadata.clone(),
            policies: Vec::new(),
            quota_gib: quota_gib.unwrap_or(QUOTA_GIB_DEFAULT),
            tier: tier.unwrap_or_default(),
            tier_changed: None,
            protocol: self.protocol,
            root_squash,
            provisioned,
            epoch: FIRST_EPOCH,
            newest_snapshot: 0,
            snapshots: 0,
            last_snapshot: 0,
        }
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
    use crate::FileError;
    use crate::testing::{Bench, header, refusal};
    use service::RequestError;

    const URL: &str = "share?restype=share";

    #[tokio::test]
    async fn a_name_is_taken_once() {
        let bench = Bench::new();
        let made = bench.call("PUT", URL, &[("x-ms-meta-a", "b")], b"").await.unwrap();
        assert_eq!((made.status.as_u16(), header(&made, "x-ms-share-quota")), (201, Some("5120")));
        assert!(made.headers.contains_key("etag") && made.headers.contains_key("last-modified"));
        assert_eq!(refusal(bench.call("PUT", URL, &[], b"").await), FileError::ShareAlreadyExists);
        assert_eq!(bench.call("PUT", "other?restype=share", &[], b"").await.unwrap().status, 201);
    }

    /// The share, its root directory, and the root's permission.
    #[tokio::test]
    async fn it_has_a_root_directory() {
        let bench = Bench::with_share().await;
        assert_eq!(bench.rows(), 3);
    }

    #[tokio::test]
    async fn provisioned_values_are_answered() {
        let bench = Bench::new();
        let headers = [
            ("x-ms-share-quota", "100"),
            ("x-ms-share-provisioned-iops", "3000"),
            ("x-ms-share-provisioned-bandwidth-mibps", "125"),
        ];
        let made = bench.call("PUT", URL, &headers, b"").await.unwrap();
        for (name, value) in headers {
            assert_eq!(header(&made, name), Some(value));
        }
    }

    #[tokio::test]
    async fn faults_in_the_request_come_before_what_is_there() {
        let bench = Bench::with_share().await;
        for (url, error) in [
            ("s", RequestError::NameLength),
            ("a--b", RequestError::InvalidResourceName),
            ("Share", RequestError::InvalidResourceName),
            ("$root", RequestError::InvalidResourceName),
        ] {
            assert_eq!(
                refusal(bench.call("PUT", &format!("{url}?restype=share"), &[], b"").await),
                error.into(),
                "{url}"
            );
        }
        for (name, value) in
            [("x-ms-share-quota", "0"), ("x-ms-access-tier", "Cold"), ("x-ms-root-squash", "AllSquash")]
        {
            assert_eq!(refusal(bench.call("PUT", URL, &[(name, value)], b"").await), FileError::header(name, value));
        }
        let refused = bench.call("PUT", URL, &[("if-none-match", "*")], b"").await;
        assert_eq!(refusal(refused), FileError::ConditionHeadersNotSupported);
        let refused = bench.call("PUT", URL, &[("x-ms-meta-1", "x")], b"").await;
        assert_eq!(refusal(refused), wire::metadata::MetadataError::InvalidMetadata.into());
        let snapshot = "2026-11-15T18:00:00.0000000Z";
        let refused = bench.call("PUT", &format!("{URL}&sharesnapshot={snapshot}"), &[], b"").await;
        assert_eq!(refusal(refused), FileError::query("sharesnapshot", snapshot));
    }
}
