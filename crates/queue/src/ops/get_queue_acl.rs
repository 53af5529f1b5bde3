//! Get Queue ACL: the stored policies of a queue.

use engine::read;
use service::StoredPolicy;
use wire::http::{Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use crate::error::QueueError;
use crate::model::{find_queue, refuse};
use crate::{Failure, reply, request};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let name = request::queue(call.head)?;
    let queue = read(call.engine, |rows, _| {
        let found = find_queue(rows, call.account, &name)?;
        found.ok_or(refuse(QueueError::QueueNotFound))
    })
    .await?;
    let mut xml = XmlWriter::document();
    StoredPolicy::document(&queue.policies).write(&mut xml);
    Ok(reply::xml(StatusCode::OK, xml))
}
