//! Put Blob From URL: a new block blob whose bytes come from elsewhere.

use wire::http::{Body, Reply};

use super::Call;
use super::copy_blob::{self, CopyKind};
use crate::error::BlobError;
use crate::{Failure, request};

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    const TYPE: &str = "x-ms-blob-type";
    request::no_body(body)?;
    match request::required(call.head, TYPE)? {
        "BlockBlob" => copy_blob::parse(&call, CopyKind::BlockBlob)?.run(call).await,
        other => Err(BlobError::header(TYPE, other).into()),
    }
}
