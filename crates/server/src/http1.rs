//! HTTP/1 on a connection: hyper reads requests and writes answers, [`Answers`] says what they are.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::body::AnswerBody;
use crate::limits::CONNECTION_BUFFER_BYTES;
use crate::listener::{Connection, Protocol};
use crate::socket::Socket;
use crate::stream::{TimedStream, Traffic};

/// Answers requests, one after another on each connection.
pub(crate) trait Answers: Send + Sync + 'static {
    /// `traffic` must hear of the end of the answer: put it into the answer's body.
    fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        traffic: Arc<Traffic>,
    ) -> impl Future<Output = Response<AnswerBody>> + Send;
}

/// HTTP/1 with these answers.
#[derive(Debug)]
pub(crate) struct Http1<A>(pub A);

impl<A: Answers> Protocol for Http1<A> {
    async fn converse(&self, socket: &mut Socket, connection: &Connection) {
        let traffic = Arc::new(Traffic::new(Arc::clone(&connection.activity)));
        let unfinished_heads = Arc::clone(&connection.unfinished_heads);
        let stream = TimedStream::new(socket, Arc::clone(&traffic), unfinished_heads, connection.limits);
        let io = TokioIo::new(stream);
        let service = service_fn(|request| {
            traffic.begin();
            let traffic = &traffic;
            // Boxed: hyper keeps room for it as long as the connection lasts, and most connections are silent most of the
            // time. The answer is begun inside: what is made outside is moved in, and takes its room twice.
            Box::pin(async move {
                let mut response = self.0.answer(request, connection.peer, Arc::clone(traffic)).await;
                if traffic.answered.is_any() {
                    traffic.earlier_answers_flushed().await;
                }
                // This task may hear of the end only after it has answered.
                if connection.is_ending() {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, std::convert::Infallible>(response)
            })
        });
        let mut builder = http1::Builder::new();
        // Time-outs are the stream's; see there.
        builder.header_read_timeout(None).max_buf_size(CONNECTION_BUFFER_BYTES);
        let mut conversation = std::pin::pin!(builder.serve_connection(io, service));
        let outcome = tokio::select! {
            outcome = conversation.as_mut() => outcome,
            () = connection.ending() => {
                // hyper still waits for the first request of a connection that never had one; the listener does not.
                conversation.as_mut().graceful_shutdown();
                conversation.await
            }
        };
        if let Err(error) = outcome {
            tracing::debug!(peer = %connection.peer, %error, "a connection ended early");
        }
    }
}
