//! The admin port: health and figures for those who watch the server, and the test clock where it was asked for. `door.rs` says
//! who may enter.

mod door;

use std::net::SocketAddr;
use std::sync::Arc;

use engine::Engine;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde_json::{Value, json};
use wire::http::{Body, ReplyBody, collect};

use crate::body::{AnswerBody, RequestBody, Rest};
use crate::http1::Answers;
use crate::limits::{ADMIN_BODY_BYTES_MAX, CLOCK_ADVANCE_SECONDS_MAX, Limits};
use crate::listener::Connections;
use crate::metrics::Metrics;
use crate::stream::Traffic;
use crate::sweeper::Sweeper;
use engine::panics::{Panicked, caught};

#[derive(Debug)]
pub(crate) struct Admin {
    pub engine: Arc<dyn Engine>,
    pub connections: Connections,
    pub metrics: Arc<Metrics>,
    pub limits: Limits,
    /// What this port may be called, beside addresses and `localhost`.
    pub names: Vec<String>,
    pub sweeper: Arc<Sweeper>,
    /// Otherwise the time of this server cannot be moved.
    pub has_test_clock: bool,
}

/// An answer and how it is written.
#[derive(Debug)]
enum Said {
    Json(StatusCode, Value),
    Metrics(String),
}

impl Admin {
    async fn say(&self, method: &Method, path: &str, body: &mut dyn Body) -> Said {
        match (method, path) {
            (&Method::GET | &Method::HEAD, "/health/live") => Said::Json(StatusCode::OK, json!({"status": "live"})),
            (&Method::GET | &Method::HEAD, "/health/ready") => self.readiness(),
            (&Method::GET | &Method::HEAD, "/metrics") => {
                let mut figures = self.engine.figures();
                figures.extend(self.sweeper.sweeper.figures());
                Said::Metrics(self.metrics.text(self.connections.open(), &figures))
            }
            (&Method::POST, "/test/clock") if self.has_test_clock => self.advance(body).await,
            _ => nothing_here(),
        }
    }

    /// Whether to send clients here. (Before the server runs nobody answers on this port at all.)
    fn readiness(&self) -> Said {
        let figures = self.engine.figures();
        let is = |wanted: &str| figures.iter().any(|(name, value)| *name == wanted && *value > 0);
        let (status, word) = match () {
            () if self.connections.is_ending() => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
            () if is("folder_gone") => (StatusCode::SERVICE_UNAVAILABLE, "data folder gone"),
            () if is("disk_full") => (StatusCode::SERVICE_UNAVAILABLE, "disk full"),
            () => (StatusCode::OK, "ready"),
        };
        Said::Json(status, json!({"status": word}))
    }

    async fn advance(&self, body: &mut dyn Body) -> Said {
        let Ok(text) = collect(body, ADMIN_BODY_BYTES_MAX).await else {
            return bad("the body is too long or was cut off");
        };
        let Some(seconds) = seconds(&text) else {
            return bad("expected {\"advance_seconds\": N} with a whole number that is not negative");
        };
        match self.engine.advance_clock(seconds).await {
            Ok(offset) => {
                // A test that has moved the time finds done what has become due.
                self.sweeper.catch_up().await;
                Said::Json(StatusCode::OK, json!({"offset_seconds": offset}))
            }
            Err(error) => {
                tracing::error!(%error, "the test clock could not be moved");
                Said::Json(StatusCode::INTERNAL_SERVER_ERROR, json!({"error": "the clock could not be moved"}))
            }
        }
    }
}

fn seconds(text: &[u8]) -> Option<u64> {
    let value: Value = serde_json::from_slice(text).ok()?;
    value.get("advance_seconds")?.as_u64().filter(|seconds| *seconds <= CLOCK_ADVANCE_SECONDS_MAX)
}

fn bad(why: &str) -> Said {
    Said::Json(StatusCode::BAD_REQUEST, json!({"error": why}))
}

fn not_for_us() -> Said {
    let why = "call this port by an address, by localhost, or by a name that --admin-names gives, and not from a page";
    Said::Json(StatusCode::FORBIDDEN, json!({"error": why}))
}

fn nothing_here() -> Said {
    Said::Json(StatusCode::NOT_FOUND, json!({"error": "there is nothing here"}))
}

impl Answers for Admin {
    async fn answer(&self, request: Request<Incoming>, _: SocketAddr, traffic: Arc<Traffic>) -> Response<AnswerBody> {
        let (parts, incoming) = request.into_parts();
        let mut body = RequestBody::new(incoming, &parts.headers, self.limits.body_pause);
        let said = match door::may_enter(&parts, &self.names) {
            true => {
                // There is no sign-in on this port, so no connection can keep a place that another one needs.
                traffic.activity.let_stay();
                caught(self.say(&parts.method, parts.uri.path(), &mut body)).await
            }
            false => Ok(not_for_us()),
        };
        let (status, kind, text) = match said {
            Ok(Said::Json(status, value)) => (status, "application/json", value.to_string()),
            Ok(Said::Metrics(text)) => (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text),
            Err(Panicked) => {
                let text = json!({"error": "internal error"}).to_string();
                (StatusCode::INTERNAL_SERVER_ERROR, "application/json", text)
            }
        };
        let rest = body.drain().await;
        let text = if parts.method == Method::HEAD { ReplyBody::Empty } else { ReplyBody::Bytes(text.into()) };
        if rest == Rest::Unread {
            traffic.linger();
        }
        let mut response = Response::new(AnswerBody::new(text, traffic));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
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
