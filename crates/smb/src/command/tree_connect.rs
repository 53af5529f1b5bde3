//! TREE_CONNECT: a share of the account that is logged on, or IPC$ (MS-SMB2 3.3.5.7).

use super::refusal::status_of;
use super::{Answer, Call};
use crate::status::Result;
use crate::user::TreeKind;
use crate::wire::Response;
use crate::wire::create::access;
use crate::wire::tree_connect::{self, Response as Connected, SHARE_ENCRYPT_DATA, SHARE_NO_CACHING, ShareType};

pub(super) async fn run(call: &Call, request: &tree_connect::Request) -> Result<Answer> {
    let user = call.user()?;
    let name = request.share()?;
    let (kind, share_type) = match name.eq_ignore_ascii_case("IPC$") {
        true => (TreeKind::Ipc, ShareType::Pipe),
        false => (connect(call, name).await?, ShareType::Disk),
    };
    let tree = user.add_tree(kind)?;
    // No oplock is granted, so there is nothing to cache with.
    let caching = if share_type == ShareType::Disk { SHARE_NO_CACHING } else { 0 };
    let encryption = if user.session.encrypt { SHARE_ENCRYPT_DATA } else { 0 };
    let connected =
        Connected { share_type, flags: caching | encryption, capabilities: 0, maximal_access: access::FILE_ALL_ACCESS };
    let answer = Answer::new(Response::TreeConnect(connected));
    Ok(Answer { tree_id: Some(tree.id), ..answer })
}

/// Shares are looked up by the account: two accounts may have shares of one name.
async fn connect(call: &Call, name: &str) -> Result<TreeKind> {
    let account = call.account().await?;
    let tree = call.conversation.server.door.connect(account, name).await.map_err(status_of)?;
    let volume = tree.space().await.map_err(status_of)?.volume;
    Ok(TreeKind::Share { tree, volume })
}
