//! LOGOFF: ends the session (MS-SMB2 3.3.5.6). Durable opens can be had again. The answer is still signed or encrypted by it.

use super::{Answer, Call};
use crate::lost::Ending;
use crate::status::Result;
use crate::wire::{Empty, Response};

pub(super) async fn run(call: &Call) -> Result<Answer> {
    let user = call.user()?;
    call.conversation.end_session(user, Ending::Lost).await;
    Ok(Answer::new(Response::Logoff(Empty)))
}
