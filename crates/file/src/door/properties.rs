//! Properties of an open file or directory: times, attributes, permission, deletion.

use bytes::Bytes;
use concurrency::caching::Contention;
use engine::{Changes, Rows, Stop, Tick};

use super::decide::{ATTEMPTS_MAX, Stopped, ended, refuse};
use super::{BasicInfo, OpenFile, Refused, TimeChange, access, attributes, security_parts};
use crate::announcement::Effect;
use crate::change::properties::{PermissionSetting, SmbSettings, TimeSetting};
use crate::change::set::{self, FileSettings};
use crate::change::{permission, remove};
use crate::model::{Attributes, Node, refuse as halt};
use crate::opens::HandleRefusal;
use crate::opens::events::Aspects;
use crate::security::{Descriptor, Permission};
use crate::tree::Spot;

impl OpenFile {
    /// FileBasicInformation. Needs FILE_WRITE_ATTRIBUTES.
    pub async fn set_basic(&self, info: BasicInfo) -> Result<(), Refused> {
        self.need(access::FILE_WRITE_ATTRIBUTES)?;
        self.handle()?;
        let is_other_kind = !self.is_directory() && info.attributes & attributes::DIRECTORY != 0
            || self.is_directory() && info.attributes & attributes::TEMPORARY != 0;
        if is_other_kind {
            return Err(Refused::InvalidParameter);
        }
        let is_change_time_frozen = frozen(info.changed, self.state().is_change_time_frozen);
        let at = |time: TimeChange| matches!(time, TimeChange::At(_));
        let sets_times = at(info.created) || at(info.accessed) || at(info.written) || at(info.changed);
        if sets_times || info.attributes != 0 {
            let change = move |spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
                let node = spot.existing().map_err(|error| ended(halt(error)))?;
                let changed = match info.changed {
                    TimeChange::At(time) => Some(time),
                    TimeChange::Keep | TimeChange::Freeze | TimeChange::Thaw => {
                        is_change_time_frozen.then_some(node.changed)
                    }
                };
                let settings = SmbSettings {
                    attributes: (info.attributes != 0).then(|| Attributes::from_bits(info.attributes)),
                    created: setting(info.created),
                    written: setting(info.written),
                    accessed: setting(info.accessed),
                    changed,
                    ..SmbSettings::default()
                };
                set_properties(spot, settings, rows, tick, changes)
            };
            self.change(Effect::changed(aspects(info)), change).await?;
        } else {
            self.location()?;
        }
        let mut state = self.state();
        state.is_write_time_frozen = frozen(info.written, state.is_write_time_frozen);
        state.is_change_time_frozen = is_change_time_frozen;
        Ok(())
    }

    /// FileDispositionInformation: the file is deleted when its last handle closes, or no longer. Needs DELETE.
    pub async fn set_delete_pending(&self, pending: bool) -> Result<(), Refused> {
        self.need(access::DELETE)?;
        let handle = self.handle()?;
        let mut _judgement = None;
        if pending && !self.is_directory() {
            self.break_handles().await?;
        }
        if pending {
            self.check_deletion().await?;
            if self.is_directory() {
                // Something may have come into it since, or be on its way.
                _judgement = Some(handle.judge_deletion().await?);
                self.check_deletion().await?;
            }
        }
        handle.set_delete_pending(pending)?;
        self.tell_watchers_of_deletion();
        Ok(())
    }

    /// Other clients let go of handles that they only keep for later.
    async fn break_handles(&self) -> Result<(), Refused> {
        for _ in 0..ATTEMPTS_MAX {
            match self.handle()?.contend(Contention::Rename) {
                Err(HandleRefusal::Breaking(wait)) => self.breaks_ended(wait).await,
                done => return Ok(done?),
            }
        }
        Err(Refused::TryAgain)
    }

    /// Whether the file or directory, as it is now, may be deleted.
    async fn check_deletion(&self) -> Result<(), Refused> {
        let judged = self.look(|spot, rows, _| {
            let node = spot.existing().map_err(|error| ended(halt(error)))?;
            if spot.is_root() || node.is_read_only() {
                return Err(refuse(Refused::CannotDelete));
            }
            if node.is_directory() && remove::has_entries(rows, spot, node).map_err(ended)? {
                return Err(refuse(Refused::DirectoryNotEmpty));
            }
            Ok(())
        });
        judged.await.map(drop)
    }

    /// The security descriptor in its self-relative form, with the parts that are asked for ([`super::security_parts`]). Needs
    /// READ_CONTROL, and ACCESS_SYSTEM_SECURITY for the SACL.
    pub async fn security(&self, parts: u32) -> Result<Bytes, Refused> {
        self.need(access::READ_CONTROL)?;
        if parts & security_parts::SACL != 0 {
            self.need(access::ACCESS_SYSTEM_SECURITY)?;
        }
        let look = self.look(|spot, rows, _| {
            let node = spot.existing().map_err(|error| ended(halt(error)))?;
            permission::find(spot.share, node.permission, rows).map_err(ended)
        });
        let (permission, _) = look.await?;
        let shown = chosen(parts, permission.descriptor().clone(), Descriptor::default());
        let bytes = shown.encode().map_err(|_| Refused::InvalidSecurityDescriptor)?;
        Ok(bytes.into())
    }

    /// Sets some parts of the security descriptor. Needs WRITE_OWNER for owner and group, WRITE_DAC for the DACL and
    /// ACCESS_SYSTEM_SECURITY for the SACL.
    pub async fn set_security(&self, parts: u32, descriptor: &[u8]) -> Result<(), Refused> {
        for (part, right) in [
            (security_parts::OWNER | security_parts::GROUP, access::WRITE_OWNER),
            (security_parts::DACL, access::WRITE_DAC),
            (security_parts::SACL, access::ACCESS_SYSTEM_SECURITY),
        ] {
            if parts & part != 0 {
                self.need(right)?;
            }
        }
        let given = Descriptor::decode(descriptor).map_err(|_| Refused::InvalidSecurityDescriptor)?;
        let is_change_time_frozen = self.state().is_change_time_frozen;
        let change = move |spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            let node = spot.existing().map_err(|error| ended(halt(error)))?;
            let stored = permission::find(spot.share, node.permission, rows).map_err(ended)?;
            let whole = chosen(parts, given.clone(), stored.descriptor().clone());
            let whole = Permission::new(whole).map_err(|_| refuse(Refused::InvalidSecurityDescriptor))?;
            let permission = PermissionSetting::Given(Box::new(whole));
            let changed = is_change_time_frozen.then_some(node.changed);
            set_properties(spot, SmbSettings { permission, changed, ..SmbSettings::default() }, rows, tick, changes)
        };
        self.change(Effect::changed(Aspects::SECURITY), change).await
    }
}

/// Sets what REST sets, too, of a file or directory.
fn set_properties(
    spot: &Spot,
    settings: SmbSettings,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<(), Stopped> {
    let lease = set::lease_for_handle(spot, tick.now);
    let set = if spot.node.as_ref().is_some_and(Node::is_directory) {
        set::directory_properties(spot, &settings, rows, tick, changes)
    } else {
        let settings = FileSettings { smb: settings, ..FileSettings::default() };
        set::file_properties(spot, &settings, lease, rows, tick, changes)
    };
    match set {
        Ok(_) => Ok(()),
        Err(Stop::Refused(error)) => Err(ended(halt(error))),
        Err(Stop::Unread(unread)) => Err(unread.into()),
    }
}

/// A descriptor with these parts of one and all other parts of another.
fn chosen(parts: u32, of: Descriptor, other: Descriptor) -> Descriptor {
    let has = |part: u32| parts & part != 0;
    Descriptor {
        owner: if has(security_parts::OWNER) { of.owner } else { other.owner },
        group: if has(security_parts::GROUP) { of.group } else { other.group },
        dacl: if has(security_parts::DACL) { of.dacl } else { other.dacl },
        sacl: if has(security_parts::SACL) { of.sacl } else { other.sacl },
    }
}

fn setting(time: TimeChange) -> TimeSetting {
    match time {
        TimeChange::At(time) => TimeSetting::At(time),
        TimeChange::Keep | TimeChange::Freeze | TimeChange::Thaw => TimeSetting::Preserve,
    }
}

/// Whether changes through the handle leave a time alone from now on: also one that the client has set.
fn frozen(time: TimeChange, before: bool) -> bool {
    match time {
        TimeChange::Keep => before,
        TimeChange::Freeze | TimeChange::At(_) => true,
        TimeChange::Thaw => false,
    }
}

fn aspects(info: BasicInfo) -> Aspects {
    let at = |time: TimeChange, aspect: Aspects| if matches!(time, TimeChange::At(_)) { aspect } else { Aspects(0) };
    let attributes = if info.attributes == 0 { Aspects(0) } else { Aspects::ATTRIBUTES };
    attributes
        .and(at(info.written, Aspects::LAST_WRITE))
        .and(at(info.created, Aspects::CREATION))
        .and(at(info.accessed, Aspects::LAST_ACCESS))
}
