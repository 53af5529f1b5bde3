//! Set Blob Expiry: only accounts with a hierarchical namespace have it, and there are none here. All others are told so.

use wire::http::{Head, Reply};

use super::Call;
use crate::error::BlobError;
use crate::{Failure, request};

fn parse(head: &Head) -> Result<(), BlobError> {
    const OPTION: &str = "x-ms-expiry-option";
    request::blob(head)?;
    request::only_base(head)?;
    match request::required(head, OPTION)? {
        "RelativeToCreation" | "RelativeToNow" | "Absolute" | "NeverExpire" => Ok(()),
        other => Err(BlobError::header(OPTION, other)),
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    parse(call.head)?;
    Err(BlobError::BlobOperationNotSupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, refusal};

    #[tokio::test]
    async fn what_is_wrong_with_the_request_comes_first() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        let url = "cont/blob?comp=expiry";
        let ask = async |option: &str| refusal(bench.call("PUT", url, &[("x-ms-expiry-option", option)], b"").await);
        assert_eq!(ask("NeverExpire").await, BlobError::BlobOperationNotSupported);
        assert_eq!(ask("Soon").await, BlobError::header("x-ms-expiry-option", "Soon"));
        assert_eq!(bench.get("cont/blob").await, b"x");
    }
}
