//! The headers that answers about shares have in common.

use concurrency::Timestamp;
use service::reply::{date, flag, set_lease, set_metadata, set_version};
use wire::http::{HeaderMap, HeaderName, HeaderValue};

use crate::model::{Protocol, Provisioned, RootSquash, Share};

static ACCESS_TIER: HeaderName = HeaderName::from_static("x-ms-access-tier");
static ACCESS_TIER_CHANGE_TIME: HeaderName = HeaderName::from_static("x-ms-access-tier-change-time");
static ENABLED_PROTOCOLS: HeaderName = HeaderName::from_static("x-ms-enabled-protocols");
static PROVISIONED_BANDWIDTH: HeaderName = HeaderName::from_static("x-ms-share-provisioned-bandwidth-mibps");
static PROVISIONED_IOPS: HeaderName = HeaderName::from_static("x-ms-share-provisioned-iops");
static QUOTA: HeaderName = HeaderName::from_static("x-ms-share-quota");
static ROOT_SQUASH: HeaderName = HeaderName::from_static("x-ms-root-squash");
static BURSTING: HeaderName = HeaderName::from_static("x-ms-share-paid-bursting-enabled");
static BURSTING_MAX_IOPS: HeaderName = HeaderName::from_static("x-ms-share-paid-bursting-max-iops");
static BURSTING_MAX_BANDWIDTH: HeaderName = HeaderName::from_static("x-ms-share-paid-bursting-max-bandwidth-mibps");
static SNAPSHOT_DIRECTORY: HeaderName = HeaderName::from_static("x-ms-enable-snapshot-virtual-directory-access");
static SMB_DIRECTORY_LEASE: HeaderName = HeaderName::from_static("x-ms-enable-smb-directory-lease");

/// What the answers to a share that was created, changed or restored tell.
pub fn set_written(headers: &mut HeaderMap, share: &Share) {
    set_version(headers, share.stamp);
    headers.insert(&QUOTA, HeaderValue::from(share.quota_gib));
    set_numbers(
        headers,
        &[(&PROVISIONED_IOPS, share.provisioned.iops), (&PROVISIONED_BANDWIDTH, share.provisioned.bandwidth_mibps)],
    );
}

/// Everything that Get Share Properties tells.
pub fn set_share(headers: &mut HeaderMap, share: &Share, now: Timestamp) {
    set_written(headers, share);
    set_metadata(headers, &share.metadata);
    set_lease(headers, &share.lease, now);
    headers.insert(&ACCESS_TIER, HeaderValue::from_static(share.tier.name()));
    if let Some(at) = share.tier_changed {
        headers.insert(&ACCESS_TIER_CHANGE_TIME, date(at));
    }
    headers.insert(&ENABLED_PROTOCOLS, HeaderValue::from_static(share.protocol.name()));
    if let Some(squash) = root_squash(share) {
        headers.insert(&ROOT_SQUASH, HeaderValue::from_static(squash.name()));
    }
    let Provisioned {
        iops: _,
        bandwidth_mibps: _,
        bursting,
        bursting_max_iops,
        bursting_max_bandwidth_mibps,
        snapshot_virtual_directory_access,
        smb_directory_lease,
    } = share.provisioned;
    set_numbers(
        headers,
        &[(&BURSTING_MAX_IOPS, bursting_max_iops), (&BURSTING_MAX_BANDWIDTH, bursting_max_bandwidth_mibps)],
    );
    for (name, is_set) in [
        (&BURSTING, bursting),
        (&SNAPSHOT_DIRECTORY, snapshot_virtual_directory_access),
        (&SMB_DIRECTORY_LEASE, smb_directory_lease),
    ] {
        if let Some(is_set) = is_set {
            headers.insert(name, flag(is_set));
        }
    }
}

/// What becomes of the root user of a share that is mounted over NFS. Others have none.
pub fn root_squash(share: &Share) -> Option<RootSquash> {
    match share.protocol {
        Protocol::Smb => None,
        Protocol::Nfs => Some(share.root_squash.unwrap_or(RootSquash::NoRootSquash)),
    }
}

fn set_numbers(headers: &mut HeaderMap, numbers: &[(&HeaderName, Option<u64>)]) {
    for (name, number) in numbers {
        if let Some(number) = number {
            headers.insert(*name, HeaderValue::from(*number));
        }
    }
}
