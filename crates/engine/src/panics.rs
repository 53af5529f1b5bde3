//! A panic is a bug of ours, not the end of the connection it happened on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// The future panicked. What it said is in the log, through the panic hook.
#[derive(Debug, PartialEq, Eq)]
pub struct Panicked;

/// Runs the future to its end or to its panic.
///
/// What the future shared with others must be sound after a panic; engines and services keep that by design (a
/// decision that panics commits nothing).
pub async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_value() {
        assert_eq!(caught(async { 7 }).await, Ok(7));
        let panics = async {
            tokio::task::yield_now().await;
            panic!("this test panics on purpose")
        };
        assert_eq!(caught(panics).await, Err::<(), _>(Panicked));
    }
}
