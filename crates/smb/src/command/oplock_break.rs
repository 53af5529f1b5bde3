//! OPLOCK_BREAK: a client has given up what it was told to give up (MS-SMB2 3.3.5.22).

use concurrency::caching::{AcknowledgementRefusal, Caching};
use file::opens::LeaseName;

use super::{Answer, Call};
use crate::breaks::{level, level_of};
use crate::status::{Result, Status};
use crate::wire::Response;
use crate::wire::create::oplock_level;
use crate::wire::oplock_break::{self, LeaseAck, OplockBreak, Request};

pub(super) async fn run(call: &Call, request: Request) -> Result<Answer> {
    let body = match request {
        Request::Oplock(oplock) => oplock_break::Response::Oplock(acknowledge_oplock(call, oplock)?),
        Request::Lease(lease) => oplock_break::Response::Lease(acknowledge_lease(call, lease).await?),
    };
    Ok(Answer::new(Response::OplockBreak(body)))
}

fn acknowledge_oplock(call: &Call, OplockBreak { level: kept, file_id }: OplockBreak) -> Result<OplockBreak> {
    let open = call.open(file_id)?;
    let file = &open.file()?.door;
    if kept == oplock_level::LEASE {
        return Err(Status::INVALID_PARAMETER);
    }
    if !matches!(kept, oplock_level::NONE | oplock_level::II) {
        return Err(Status::INVALID_OPLOCK_PROTOCOL);
    }
    let kept = file.acknowledge_oplock(level_of(kept)).map_err(|refusal| match refusal {
        AcknowledgementRefusal::NotFound | AcknowledgementRefusal::NotBreaking | AcknowledgementRefusal::TooMuch => {
            Status::INVALID_OPLOCK_PROTOCOL
        }
    })?;
    Ok(OplockBreak { level: level(kept), file_id })
}

async fn acknowledge_lease(call: &Call, LeaseAck { key, state }: LeaseAck) -> Result<LeaseAck> {
    let name = LeaseName { account: call.account().await?, client: call.client()?, key };
    let kept = Caching::from_bits(state);
    if kept.bits() != state {
        return Err(Status::REQUEST_NOT_ACCEPTED);
    }
    call.conversation.server.door.acknowledge_lease(name, kept).map_err(|refusal| match refusal {
        AcknowledgementRefusal::NotFound => Status::OBJECT_NAME_NOT_FOUND,
        AcknowledgementRefusal::NotBreaking => Status::UNSUCCESSFUL,
        AcknowledgementRefusal::TooMuch => Status::REQUEST_NOT_ACCEPTED,
    })?;
    Ok(LeaseAck { key, state })
}
