//! Get Queue ACL: the stored access policies of a queue.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::Rows;
use service::{ReadOperation, StoredPolicy};
use wire::http::{Reply, StatusCode};
use wire::names::QueueName;
use wire::xml::XmlWriter;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, existing_queue};
use crate::{Failure, reply, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetQueueAcl {
    pub queue: QueueName,
}

impl ReadOperation for GetQueueAcl {
    type Outcome = Vec<StoredPolicy>;
    type Refusal = QueueError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<Vec<StoredPolicy>, Halt> {
        Ok(existing_queue(rows, account, &self.queue)?.policies)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let policies = call.read(&Arc::new(GetQueueAcl { queue: request::queue(call.head)? })).await?;
    let mut xml = XmlWriter::document();
    StoredPolicy::document(&policies).write(&mut xml);
    Ok(reply::xml(StatusCode::OK, xml))
}
