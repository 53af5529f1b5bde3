//! Durable opens in CREATE: asked for, granted, claimed again (MS-SMB2 3.3.5.9.6, 3.3.5.9.7, 3.3.5.9.10, 3.3.5.9.12). Persistent ones are
//! not offered.

use std::sync::Arc;
use std::time::Instant;

use concurrency::caching::{Caching, OplockLevel};
use file::door::{CreateAction, OpenFile};
use file::opens::GrantedCaching;

use super::create::{self, Told};
use super::{Answer, Call};
use crate::breaks::{Owner, level, level_of};
use crate::durable::{Claim, DURABLE_TIMEOUT, Durable, Found, LeaseKey, timeout};
use crate::lost::Lost;
use crate::open::{FileOpen, Open, OpenKind};
use crate::status::{Result, Status};
use crate::wire::create::{Request, oplock_level};
use crate::wire::create_context::{DurableV2, RequestContexts, ResponseContext};
use crate::wire::{FileId, Response};

/// What the contexts of a CREATE say of durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    None,
    V1,
    V2(DurableV2),
    Again(Again),
}

/// An open that is claimed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Again {
    id: FileId,
    /// Of version 2.
    create_guid: Option<u128>,
}

impl Wish {
    /// Contexts of version 2 mean nothing before 3.0.
    ///
    /// # Errors
    /// INVALID_PARAMETER for contexts that contradict each other.
    pub fn new(contexts: &RequestContexts, knows_v2: bool) -> Result<Wish> {
        let v2 = contexts.durable_v2.filter(|_| knows_v2);
        let again_v2 = contexts.reconnect_v2.filter(|_| knows_v2);
        Ok(match (contexts.durable, contexts.reconnect, v2, again_v2) {
            (false, None, None, None) => Wish::None,
            (true, None, None, None) => Wish::V1,
            (false, None, Some(v2), None) => Wish::V2(v2),
            // Who claims an open asks for no new one.
            (_, Some(id), None, None) => Wish::Again(Again { id, create_guid: None }),
            (false, None, None, Some(again)) => {
                Wish::Again(Again { id: again.file_id, create_guid: Some(again.create_guid) })
            }
            _ => return Err(Status::INVALID_PARAMETER),
        })
    }

    /// What an open is granted. Only one whose client would be asked before anybody else may have the file can be kept for it.
    pub fn granted(self, call: &Call, file: &OpenFile) -> Result<Option<Durable>> {
        let lease = match file.caching() {
            GrantedCaching::Oplock(OplockLevel::Batch) => None,
            GrantedCaching::Lease { key, state, v2, .. } if state.contains(Caching::HANDLE) => {
                Some(LeaseKey { key, is_v2: v2.is_some() })
            }
            GrantedCaching::None | GrantedCaching::Oplock(_) | GrantedCaching::Lease { .. } => return Ok(None),
        };
        let (timeout, create_guid) = match self {
            Wish::V1 => (DURABLE_TIMEOUT, None),
            Wish::V2(asked) => (timeout(asked.timeout_ms), Some(asked.create_guid)),
            Wish::None | Wish::Again(_) => return Ok(None),
        };
        let account = call.user()?.session.user.clone();
        Ok(Some(Durable { account, client_guid: call.client()?, create_guid, lease, timeout }))
    }
}

/// The context that tells a client that its open is durable.
pub(super) fn answer(durable: &Durable) -> ResponseContext {
    match durable.create_guid {
        None => ResponseContext::Durable,
        Some(_) => ResponseContext::DurableV2 {
            timeout_ms: u32::try_from(durable.timeout.as_millis()).unwrap_or(u32::MAX),
            flags: 0,
        },
    }
}

/// Gives an open back to its client, on another connection or in another session. It has its locks, and its oplock or lease.
pub(super) async fn reconnect(
    call: &Call,
    (share, volume): (&file::door::Tree, u64),
    tree_id: u32,
    request: &Request,
    again: Again,
) -> Result<Answer> {
    let user = call.user()?;
    user.may_open()?;
    let claim = Claim {
        id: again.id.persistent,
        account: &user.session.user,
        client_guid: call.client()?,
        create_guid: again.create_guid,
        lease: request.contexts.lease.map(|lease| LeaseKey { key: lease.key, is_v2: lease.v2.is_some() }),
    };
    let look = |lost: &Lost| {
        let file = &lost.file.door;
        Found { is_here: file.is_in(share), has_name: file.is_at(&request.name) }
    };
    let server = &call.conversation.server;
    let claimed = server.disconnected().claim(&claim, look, Instant::now());
    let (Lost { file, .. }, _) = claimed?;
    file.used();
    let owner = Arc::new(Owner::new(&call.conversation, &user.session, &call.breaks));
    let info = match file.door.reconnect(create::client(call)?, Arc::clone(&owner) as _).await {
        Ok(info) => info,
        Err(refused) => {
            tracing::debug!(%refused, "a durable SMB open cannot be given back");
            file.door.close_at_once();
            return Err(Status::OBJECT_NAME_NOT_FOUND);
        }
    };
    file.owned_by(&owner);
    let (granted, kept) = (file.door.caching(), Arc::clone(&file));
    let make = |id| Open::new(id, tree_id, OpenKind::File(kept));
    let open = user.add_open(tree_id, again.id.persistent, make).await?;
    owner.opened(open.id);
    let told =
        Told { action: CreateAction::Opened, info: &info, volume, is_in_snapshot: false, granted, durable: None };
    let created = create::response(open.id, &told, &request.contexts);
    Ok(Answer { opened: Some(owner), ..Answer::new(Response::Create(Box::new(created))) })
}

/// Answers a CREATE that is sent again with the open that the first one made. An oplock is told as it is asked for, as Windows does it; a
/// lease as it is now.
pub(super) fn replay(file: &FileOpen, request: &Request) -> Result<Answer> {
    let mut created = file.first_answer().ok_or(Status::DUPLICATE_OBJECTID)?;
    let asked = request.contexts.lease.filter(|_| request.oplock == oplock_level::LEASE).map(|lease| lease.key);
    match (file.door.caching(), asked) {
        (granted @ GrantedCaching::Lease { key, .. }, Some(asked)) if key == asked => {
            created.contexts.retain(|context| !matches!(context, ResponseContext::Lease(_)));
            created.contexts.extend(create::lease_of(granted).map(ResponseContext::Lease));
        }
        (GrantedCaching::Lease { .. }, _) | (_, Some(_)) => return Err(Status::ACCESS_DENIED),
        (granted, None) => {
            let held = if let GrantedCaching::Oplock(held) = granted { held } else { OplockLevel::None };
            let told = level_of(request.oplock);
            let told = if held.caching().contains(told.caching()) { told } else { held };
            created.oplock = level(told);
            if told != OplockLevel::Batch {
                created.contexts.retain(|context| !matches!(context, ResponseContext::DurableV2 { .. }));
            }
        }
    }
    Ok(Answer::new(Response::Create(Box::new(created))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::create_context::ReconnectV2;

    #[test]
    fn contexts_of_one_version_stand_alone() {
        let id = FileId { persistent: 1, volatile: 2 };
        let asked = DurableV2 { timeout_ms: 0, flags: 0, create_guid: 7 };
        let again = ReconnectV2 { file_id: id, create_guid: 7, flags: 0 };
        let contexts = |bits: u8| RequestContexts {
            durable: bits & 1 != 0,
            reconnect: (bits & 2 != 0).then_some(id),
            durable_v2: (bits & 4 != 0).then_some(asked),
            reconnect_v2: (bits & 8 != 0).then_some(again),
            ..RequestContexts::default()
        };
        let claimed = |create_guid| Wish::Again(Again { id, create_guid });
        for bits in 0..16 {
            let (old, new) = (Wish::new(&contexts(bits), false), Wish::new(&contexts(bits), true));
            let v1 = match bits & 3 {
                0 => Wish::None,
                1 => Wish::V1,
                _ => claimed(None),
            };
            assert_eq!(old, Ok(v1), "{bits:04b}: 2.1 knows version 1 alone");
            let expected = match bits {
                0b0100 => Ok(Wish::V2(asked)),
                0b1000 => Ok(claimed(Some(7))),
                bits if bits & 0b1100 == 0 => Ok(v1),
                _ => Err(Status::INVALID_PARAMETER),
            };
            assert_eq!(new, expected, "{bits:04b}");
        }
    }
}
