//! Get Container ACL: the public access and the stored policies of a container.

use wire::http::{HeaderValue, Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use super::get_container_properties::ReadContainer;
use crate::model::StoredPolicy;
use crate::{Failure, reply};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (container, _) = ReadContainer::parse(call.head)?.run(call).await?;
    let mut answer = reply::xml(StatusCode::OK, document(&container.policies));
    reply::set_version(&mut answer.headers, container.stamp);
    if let Some(level) = reply::public_access(container.public) {
        answer.headers.insert(&reply::BLOB_PUBLIC_ACCESS, HeaderValue::from_static(level));
    }
    Ok(answer)
}

fn document(policies: &[StoredPolicy]) -> XmlWriter {
    let mut xml = XmlWriter::document();
    StoredPolicy::document(policies).write(&mut xml);
    xml
}
