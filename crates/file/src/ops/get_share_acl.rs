//! Get Share ACL: the stored access policies of a share.

use std::sync::Arc;

use service::{StoredPolicy, reply};
use wire::http::{Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use super::get_share_properties::ReadShare;
use crate::Failure;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (share, _) = call.read(&Arc::new(ReadShare::parse_base(call.head)?)).await?;
    let mut xml = XmlWriter::document();
    StoredPolicy::document(&share.policies).write(&mut xml);
    let mut answer = reply::xml(StatusCode::OK, xml);
    reply::set_version(&mut answer.headers, share.stamp);
    Ok(answer)
}
