//! The operations, one file each, by the name the REST reference gives them.

mod clear_messages;
mod create_queue;
mod delete_message;
mod delete_queue;
mod get_messages;
mod get_queue_acl;
mod get_queue_metadata;
pub mod get_queue_service_properties;
mod get_queue_service_stats;
mod get_user_delegation_key;
mod list_queues;
mod peek_messages;
mod preflight_queue_request;
mod put_message;
mod set_queue_acl;
mod set_queue_metadata;
mod set_queue_service_properties;
mod update_message;

pub use clear_messages::ClearMessages;
pub use create_queue::{CreateQueue, QueueCreated};
pub use delete_message::DeleteMessage;
pub use delete_queue::DeleteQueue;
pub use get_messages::GetMessages;
pub use get_queue_acl::GetQueueAcl;
pub use get_queue_metadata::{GetQueueMetadata, QueueMetadata};
pub use list_queues::{ListQueues, ListedQueue, QueuesPage};
pub use peek_messages::PeekMessages;
pub use put_message::PutMessage;
pub use set_queue_acl::SetQueueAcl;
pub use set_queue_metadata::SetQueueMetadata;
pub use update_message::UpdateMessage;

use service::Call;
use wire::http::{Body, Reply};

use crate::{Failure, Op};

pub async fn run(op: Op, call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    match op {
        Op::ListQueues => list_queues::run(call).await,
        Op::GetQueueServiceProperties => get_queue_service_properties::run(call).await,
        Op::SetQueueServiceProperties => set_queue_service_properties::run(call, body).await,
        Op::GetQueueServiceStats => get_queue_service_stats::run(call).await,
        Op::GetUserDelegationKey => get_user_delegation_key::run(call, body).await,
        Op::PreflightQueueRequest => preflight_queue_request::run(call).await,
        Op::CreateQueue => create_queue::run(call).await,
        Op::DeleteQueue => delete_queue::run(call).await,
        Op::GetQueueMetadata => get_queue_metadata::run(call).await,
        Op::SetQueueMetadata => set_queue_metadata::run(call).await,
        Op::GetQueueAcl => get_queue_acl::run(call).await,
        Op::SetQueueAcl => set_queue_acl::run(call, body).await,
        Op::PutMessage => put_message::run(call, body).await,
        Op::GetMessages => get_messages::run(call).await,
        Op::PeekMessages => peek_messages::run(call).await,
        Op::ClearMessages => clear_messages::run(call).await,
        Op::UpdateMessage => update_message::run(call, body).await,
        Op::DeleteMessage => delete_message::run(call).await,
    }
}
