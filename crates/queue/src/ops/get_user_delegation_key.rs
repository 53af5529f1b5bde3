//! Get User Delegation Key: a key for somebody who came with a token, to sign with for a few days.

use auth::Service;
use service::user_delegation_key;
use wire::http::{Body, Reply};

use super::Call;
use crate::Failure;

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    user_delegation_key(Service::Queue, call.asker, call.head, body).await
}
