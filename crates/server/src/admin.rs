//! The admin port: health for those who watch the server, and the test clock where it was asked for.

use std::net::SocketAddr;
use std::sync::Arc;

use engine::Engine;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde_json::{Value, json};
use wire::http::{Body, ReplyBody, collect};

use crate::body::{AnswerBody, RequestBody, Rest};
use crate::limits::{ADMIN_BODY_BYTES_MAX, CLOCK_ADVANCE_SECONDS_MAX, Limits};
use crate::listener::{Answers, Connections};
use crate::panics::caught;
use crate::stream::Traffic;
use crate::sweeper::Sweeper;

#[derive(Debug)]
pub(crate) struct Admin {
    pub engine: Arc<dyn Engine>,
    pub connections: Connections,
    pub limits: Limits,
    /// `None`: this server's time is nobody's to move.
    pub test_clock: Option<TestClock>,
}

#[derive(Debug)]
pub(crate) struct TestClock {
    pub sweeper: Arc<Sweeper>,
}

type Said = (StatusCode, Value);

impl Admin {
    async fn say(&self, method: &Method, path: &str, body: &mut dyn Body) -> Said {
        match (method, path) {
            (&Method::GET | &Method::HEAD, "/health/live") => (StatusCode::OK, json!({"status": "live"})),
            (&Method::GET | &Method::HEAD, "/health/ready") => self.readiness(),
            (&Method::POST, "/test/clock") => match &self.test_clock {
                Some(clock) => self.advance(clock, body).await,
                None => nothing_here(),
            },
            _ => nothing_here(),
        }
    }

    fn readiness(&self) -> Said {
        if self.connections.is_ending() {
            return (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "stopping"}));
        }
        (StatusCode::OK, json!({"status": "ready"}))
    }

    async fn advance(&self, clock: &TestClock, body: &mut dyn Body) -> Said {
        let Ok(text) = collect(body, ADMIN_BODY_BYTES_MAX).await else {
            return bad("the body is too long or was cut off");
        };
        let Some(seconds) = seconds(&text) else {
            return bad("expected {\"advance_seconds\": N} with a whole number that is not negative");
        };
        match self.engine.advance_clock(seconds).await {
            Ok(offset) => {
                // A test that has moved the time finds done what has become due.
                clock.sweeper.catch_up().await;
                (StatusCode::OK, json!({"offset_seconds": offset}))
            }
            Err(error) => {
                tracing::error!(%error, "the test clock could not be moved");
                (StatusCode::INTERNAL_SERVER_ERROR, json!({"error": "the clock could not be moved"}))
            }
        }
    }
}

fn seconds(text: &[u8]) -> Option<u64> {
    let value: Value = serde_json::from_slice(text).ok()?;
    value.get("advance_seconds")?.as_u64().filter(|seconds| *seconds <= CLOCK_ADVANCE_SECONDS_MAX)
}

fn bad(why: &str) -> Said {
    (StatusCode::BAD_REQUEST, json!({"error": why}))
}

fn nothing_here() -> Said {
    (StatusCode::NOT_FOUND, json!({"error": "there is nothing here"}))
}

impl Answers for Admin {
    async fn answer(&self, request: Request<Incoming>, _: SocketAddr, traffic: Arc<Traffic>) -> Response<AnswerBody> {
        let (parts, incoming) = request.into_parts();
        let mut body = RequestBody::new(incoming, &parts.headers, self.limits.body_pause);
        let said = caught(self.say(&parts.method, parts.uri.path(), &mut body)).await;
        let (status, text) = said.unwrap_or((StatusCode::INTERNAL_SERVER_ERROR, json!({"error": "internal error"})));
        let rest = body.drain().await;
        let text =
            if parts.method == Method::HEAD { ReplyBody::Empty } else { ReplyBody::Bytes(text.to_string().into()) };
        if rest == Rest::Unread {
            traffic.linger();
        }
        let mut response = Response::new(AnswerBody::new(text, Some(traffic)));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if rest == Rest::Unread {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn only_whole_seconds_forward() {
        assert_eq!(seconds(b"{\"advance_seconds\": 60}"), Some(60));
        assert_eq!(seconds(b"{\"advance_seconds\": 0}"), Some(0));
        for text in [
            "",
            "{",
            "{}",
            "60",
            "[60]",
            "{\"advance_seconds\": -1}",
            "{\"advance_seconds\": 1.5}",
            "{\"advance_seconds\": \"60\"}",
            "{\"advance_seconds\": 99999999999}",
        ] {
            assert_eq!(seconds(text.as_bytes()), None, "{text}");
        }
    }
}
