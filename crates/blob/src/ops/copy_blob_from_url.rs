//! Copy Blob From URL: Copy Blob that is done when it answers, for block blobs.

use wire::http::{Body, Reply};

use super::Call;
use super::copy_blob::{self, CopyKind};
use crate::{Failure, request};

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    request::no_body(body)?;
    copy_blob::parse(&call, CopyKind::CopyInRequest)?.run(call).await
}
