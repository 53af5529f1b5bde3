//! Put Block From URL: a block whose bytes come from elsewhere.
//!
//! Bytes that are a content of their own in this server are referred to; others are read and written.

use std::sync::Arc;

use content::upload::Wanted;
use wire::http::{Body, Reply};

use super::Call;
use super::put_block::{self, PutBlock};
use crate::error::BlobError;
use crate::source::Source;
use crate::{Failure, request};

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    request::no_body(body)?;
    let (op, _) = put_block::parse(call.head)?;
    let source = Source::parse_with_key(call.head)?;
    let asked = call.encryption()?;
    let op = Arc::new(PutBlock { encryption: asked.encryption.clone(), ..op });
    call.read(&op).await?;
    let opened = source.open(call.sources(), put_block::body_bytes_max(call.head)).await?;
    if opened.length == 0 {
        return Err(BlobError::InvalidSourceBlobType.into());
    }
    let wanted = Wanted::of_block(call.head, &source.sums);
    let body = opened.receive(call.engine, wanted, &source.sums, asked.key.as_ref()).await?;
    PutBlock { body, ..Arc::unwrap_or_clone(op) }.store(call, &source.sums).await
}
