//! Append Block From URL: bytes from elsewhere at the end of an append blob.

use std::sync::Arc;

use content::upload::{Received, Wanted};
use wire::http::{Body, Reply};

use super::Call;
use super::append_block::{self, AppendBlock};
use crate::error::BlobError;
use crate::source::Source;
use crate::{Failure, request};

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    request::no_body(body)?;
    let (op, _) = append_block::parse(call.head)?;
    let source = Source::parse_with_key(call.head)?;
    let asked = call.encryption()?;
    let op = Arc::new(AppendBlock { encryption: asked.encryption.clone(), ..op });
    call.read(&op).await?;
    let opened = source.open(call.sources(), append_block::body_bytes_max(call.head)).await?;
    if opened.length == 0 {
        return Err(BlobError::InvalidSourceBlobType.into());
    }
    let expected = Received::nothing(opened.length);
    let op = Arc::new(AppendBlock { body: expected, ..Arc::unwrap_or_clone(op) });
    call.read(&op).await?;
    let wanted = Wanted::of_block(call.head, &source.sums);
    let body = opened.receive(call.engine, wanted, &source.sums, asked.key.as_ref()).await?;
    AppendBlock { body, ..Arc::unwrap_or_clone(op) }.store(call, &source.sums).await
}
