//! What the tests of the services share about sources of copies.

use std::collections::HashMap;
use std::sync::Mutex;

use bytes::Bytes;
use engine::BoxFuture;
use wire::http::{Body, BodyError, HeaderMap, HeaderValue};

use crate::source::{Fetched, Outside, Running, Unreached};

/// What is to be had elsewhere, by URL.
#[derive(Debug, Default)]
pub struct Elsewhere(pub Mutex<HashMap<&'static str, Script>>);

/// How a source elsewhere behaves.
#[derive(Clone, Debug)]
pub struct Script {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub length: u64,
    pub bytes: Vec<Bytes>,
    pub then: Then,
}

/// What comes after the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    End,
    Cut,
    Stall,
}

impl Script {
    pub fn of(bytes: &[u8]) -> Script {
        let bytes = Bytes::copy_from_slice(bytes);
        Script { status: 200, headers: vec![], length: bytes.len() as u64, bytes: vec![bytes], then: Then::End }
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Script {
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl Outside for Elsewhere {
    fn fetch<'a>(&'a self, url: &'a str, headers: HeaderMap) -> BoxFuture<'a, Result<Fetched, Unreached>> {
        Box::pin(async move {
            let script = self.0.lock().expect("no test panics with it").get(url).cloned();
            let unreached =
                || Unreached { is_forbidden: url.contains("forbidden"), message: "It is not there.".into() };
            let mut script = script.ok_or_else(unreached)?;
            let etag = script.headers.iter().find(|(name, _)| *name == "etag").map(|(_, etag)| etag.clone());
            if let (Some(wanted), Some(etag)) = (headers.get("if-match"), etag)
                && wanted.to_str().expect("text") != etag
            {
                script = Script { status: 412, ..Script::of(b"") };
            }
            if let Some(range) = headers.get("range") {
                let (first, last) = range
                    .to_str()
                    .ok()
                    .and_then(|range| range.strip_prefix("bytes=")?.split_once('-'))
                    .expect("a range");
                let whole = script.bytes.concat();
                let number = |text: &str| text.parse::<usize>().expect("a number");
                let part = &whole[number(first)..=number(last).min(whole.len() - 1)];
                script = Script { status: 206, ..Script::of(part) };
            }
            let mut map = HeaderMap::new();
            for (name, value) in &script.headers {
                map.insert(*name, HeaderValue::from_str(value).expect("a value"));
            }
            let status = script.status;
            Ok(Fetched { status, headers: map, body: Box::new(Scripted(script)) })
        })
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) -> Box<dyn Running> {
        Box::new(Task(tokio::spawn(work).abort_handle()))
    }
}

#[derive(Debug)]
struct Task(tokio::task::AbortHandle);

impl Running for Task {}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Scripted(Script);

impl Body for Scripted {
    fn length(&self) -> Option<u64> {
        Some(self.0.length)
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, BodyError>>> {
        Box::pin(async {
            if !self.0.bytes.is_empty() {
                return Some(Ok(self.0.bytes.remove(0)));
            }
            match self.0.then {
                Then::End => None,
                Then::Cut => Some(Err(BodyError::Incomplete)),
                Then::Stall => std::future::pending().await,
            }
        })
    }
}
