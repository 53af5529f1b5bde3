//! CLOSE: ends an open (MS-SMB2 3.3.5.10).

use super::refusal::status_of;
use super::{Answer, Call, create};
use crate::open::OpenKind;
use crate::status::Result;
use crate::wire::Response;
use crate::wire::close::{self, Attributes, POSTQUERY_ATTRIB};

pub(super) async fn run(call: &Call, request: close::Request) -> Result<Answer> {
    let tree = call.tree()?;
    let open = call.user()?.remove_open(tree.id, request.file_id)?;
    let OpenKind::File(file) = &open.kind else {
        return Ok(Answer::new(Response::Close(close::Response::default())));
    };
    let attributes = match request.flags & POSTQUERY_ATTRIB {
        0 => None,
        // A file that cannot be looked at any more is closed all the same.
        _ => file.door.query().await.ok().map(|info| Attributes {
            times: create::times(&info),
            allocation_size: info.allocation,
            end_of_file: info.length,
            attributes: info.attributes,
        }),
    };
    file.door.close().await.map_err(status_of)?;
    Ok(Answer::new(Response::Close(close::Response { attributes })))
}
