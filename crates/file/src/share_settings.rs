//! The settings of a share that Create Share and Set Share Properties take.

use engine::Tick;
use wire::http::Head;

use crate::error::FileError;
use crate::model::{AccessTier, Protocol, Provisioned, RootSquash, Share};
use crate::request::{flag, number, text};

/// The largest share, in GiB: that of a large one on the service.
pub const QUOTA_GIB_MAX: u64 = 102_400;
/// The quota of a share whose creator names none.
pub const QUOTA_GIB_DEFAULT: u64 = 5_120;

const QUOTA: &str = "x-ms-share-quota";
const ACCESS_TIER: &str = "x-ms-access-tier";
const ROOT_SQUASH: &str = "x-ms-root-squash";
const ENABLED_PROTOCOLS: &str = "x-ms-enabled-protocols";

/// What a request sets of a share. What it leaves out stays as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShareSettings {
    pub quota_gib: Option<u64>,
    pub tier: Option<AccessTier>,
    pub root_squash: Option<RootSquash>,
    pub provisioned: Provisioned,
}

impl ShareSettings {
    pub fn parse(head: &Head) -> Result<ShareSettings, FileError> {
        Ok(ShareSettings {
            quota_gib: quota(head)?,
            tier: word(head, ACCESS_TIER, &AccessTier::ALL, AccessTier::name)?,
            root_squash: word(head, ROOT_SQUASH, &RootSquash::ALL, RootSquash::name)?,
            provisioned: Provisioned {
                iops: number(head, "x-ms-share-provisioned-iops")?,
                bandwidth_mibps: number(head, "x-ms-share-provisioned-bandwidth-mibps")?,
                bursting: flag(head, "x-ms-share-paid-bursting-enabled")?,
                bursting_max_iops: number(head, "x-ms-share-paid-bursting-max-iops")?,
                bursting_max_bandwidth_mibps: number(head, "x-ms-share-paid-bursting-max-bandwidth-mibps")?,
                snapshot_virtual_directory_access: flag(head, "x-ms-enable-snapshot-virtual-directory-access")?,
                smb_directory_lease: flag(head, "x-ms-enable-smb-directory-lease")?,
            },
        })
    }

    /// Only a share that is mounted over NFS has a root user to squash.
    pub fn check(&self, protocol: Protocol) -> Result<(), FileError> {
        match (self.root_squash, protocol) {
            (Some(squash), Protocol::Smb) => Err(FileError::header(ROOT_SQUASH, squash.name())),
            (Some(_), Protocol::Nfs) | (None, _) => Ok(()),
        }
    }

    /// Sets what the request names.
    pub fn set(&self, share: &mut Share, tick: Tick) {
        share.quota_gib = self.quota_gib.unwrap_or(share.quota_gib);
        if let Some(tier) = self.tier.filter(|tier| *tier != share.tier) {
            (share.tier, share.tier_changed) = (tier, Some(tick.now));
        }
        share.root_squash = self.root_squash.or(share.root_squash);
        share.provisioned = self.provisioned.over(share.provisioned);
    }
}

impl Provisioned {
    /// These settings, and for those that are left out the ones of `before`.
    pub fn over(self, before: Provisioned) -> Provisioned {
        Provisioned {
            iops: self.iops.or(before.iops),
            bandwidth_mibps: self.bandwidth_mibps.or(before.bandwidth_mibps),
            bursting: self.bursting.or(before.bursting),
            bursting_max_iops: self.bursting_max_iops.or(before.bursting_max_iops),
            bursting_max_bandwidth_mibps: self.bursting_max_bandwidth_mibps.or(before.bursting_max_bandwidth_mibps),
            snapshot_virtual_directory_access: self
                .snapshot_virtual_directory_access
                .or(before.snapshot_virtual_directory_access),
            smb_directory_lease: self.smb_directory_lease.or(before.smb_directory_lease),
        }
    }
}

/// The protocol that a share is to be mounted by.
pub fn protocol(head: &Head) -> Result<Protocol, FileError> {
    Ok(word(head, ENABLED_PROTOCOLS, &[Protocol::Smb, Protocol::Nfs], Protocol::name)?.unwrap_or_default())
}

fn quota(head: &Head) -> Result<Option<u64>, FileError> {
    match number(head, QUOTA)? {
        Some(gib) if !(1..=QUOTA_GIB_MAX).contains(&gib) => Err(FileError::header(QUOTA, gib.to_string())),
        gib => Ok(gib),
    }
}

/// A header that is one of some words, in any case.
fn word<T: Copy>(
    head: &Head,
    name: &'static str,
    all: &[T],
    word_of: impl Fn(T) -> &'static str,
) -> Result<Option<T>, FileError> {
    let Some(value) = text(head, name)? else { return Ok(None) };
    let found = all.iter().copied().find(|one| word_of(*one).eq_ignore_ascii_case(value));
    found.map(Some).ok_or_else(|| FileError::header(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    fn parse(name: &str, value: &str) -> Result<ShareSettings, FileError> {
        ShareSettings::parse(&request("PUT", "share?restype=share", &[(name, value)]))
    }

    #[test]
    fn the_quota_has_its_limits() {
        for (value, gib) in [("1", 1), ("5120", 5_120), ("102400", 102_400)] {
            assert_eq!(parse(QUOTA, value).map(|settings| settings.quota_gib), Ok(Some(gib)));
        }
        for value in ["0", "102401", "-1", "1.5", "x", "99999999999999999999"] {
            assert_eq!(parse(QUOTA, value), Err(FileError::header(QUOTA, value)));
        }
    }

    #[test]
    fn words_have_no_case() {
        assert_eq!(parse(ACCESS_TIER, "hot").map(|settings| settings.tier), Ok(Some(AccessTier::Hot)));
        let squash = parse(ROOT_SQUASH, "AllSquash").unwrap();
        assert_eq!(squash.root_squash, Some(RootSquash::AllSquash));
        assert_eq!(squash.check(Protocol::Nfs), Ok(()));
        assert_eq!(squash.check(Protocol::Smb), Err(FileError::header(ROOT_SQUASH, "AllSquash")));
        for (name, value) in [
            (ACCESS_TIER, "Archive"),
            (ROOT_SQUASH, "squash"),
            ("x-ms-share-provisioned-iops", "many"),
            ("x-ms-share-paid-bursting-enabled", "yes"),
            ("x-ms-enable-smb-directory-lease", "1"),
        ] {
            assert!(matches!(parse(name, value), Err(FileError::Request(_))), "{name}");
        }
        let of = |value| protocol(&request("PUT", "share?restype=share", &[(ENABLED_PROTOCOLS, value)]));
        assert_eq!((of("SMB"), of("nfs")), (Ok(Protocol::Smb), Ok(Protocol::Nfs)));
        assert_eq!(of("SMB,NFS"), Err(FileError::header(ENABLED_PROTOCOLS, "SMB,NFS")));
    }
}
