//! TREE_DISCONNECT: lets a share go and closes what is open in it (MS-SMB2 3.3.5.8).

use super::{Answer, Call};
use crate::status::Result;
use crate::wire::{Empty, Response};

pub(super) async fn run(call: &Call) -> Result<Answer> {
    let tree = call.tree()?;
    call.user()?.remove_tree(tree.id).await?;
    Ok(Answer::new(Response::TreeDisconnect(Empty)))
}
