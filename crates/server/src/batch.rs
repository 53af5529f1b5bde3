//! Blob Batch: up to 256 deletes or tier changes in one request.
//!
//! The parts are requests of their own: each is authorised by itself, runs like any other and gets an answer of its own,
//! so a batch is not atomic, and what one part is refused says nothing about the others. What is wrong with the batch as a
//! whole is answered in the place of all parts by a single one without an id; that is how clients tell the two apart.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use blob::Op;
use bytes::Bytes;
use http::{HeaderValue, Uri, Version, header};
use wire::http::{Body, ErrorReply, FixedBody, Head, Reply, ReplyBody, StatusCode};
use wire::multipart::{self, Malformed, Writer};

use crate::access_log::Line;
use crate::debug_log;
use crate::limits::HEAD_BYTES_MAX;
use crate::pipeline::{Entered, Pipeline, Progress, Stop, settled, wall_clock};
use crate::request_id::RequestId;
use crate::respond::{self, Envelope};
use crate::services::blob::container;
use crate::target;
use crate::timeouts;
use engine::panics::caught;

/// From the REST reference, as is the next.
const PARTS_MAX: usize = 256;
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A part, ready to be walked.
struct Part {
    /// What the client calls it.
    id: String,
    request_id: RequestId,
    head: Head,
    path_style: bool,
    uri: Uri,
    body: Bytes,
}

impl Pipeline {
    pub(crate) async fn batch(&self, outer: &Entered, peer: SocketAddr, body: &mut dyn Body) -> Result<Reply, Stop> {
        let patience = timeouts::of(&outer.head, outer.op, body.length())?;
        match body.length() {
            None => return Err(length_required().into()),
            Some(length) if length > BODY_BYTES_MAX as u64 => return Err(too_large().into()),
            Some(_) => {}
        }
        let running = async {
            let body = wire::http::collect(body, BODY_BYTES_MAX).await.map_err(Stop::Body)?;
            let mut answer = Writer::new(format!("batchresponse_{}", outer.head.request_id));
            match boundary(&outer.head).and_then(|boundary| self.parts(&outer.head, &body, &boundary)) {
                Ok(parts) => {
                    let answers = all(parts.iter().map(|part| self.part(outer, part, peer))).await;
                    for (part, text) in parts.iter().zip(answers) {
                        write(&mut answer, Some(&part.id), &text);
                    }
                }
                Err(fault) => {
                    let id = self.house.request_ids.next();
                    let envelope = self.envelope(&outer.head, None);
                    let reply = respond::refusal(&fault, &envelope, &id, wall_clock());
                    write(&mut answer, None, &written(reply, Some(&fault), &envelope, &id));
                }
            }
            Ok::<_, Stop>(answer)
        };
        let answer = tokio::time::timeout(patience, running).await.map_err(|_| Stop::TimedOut)??;
        let mut reply = Reply::new(StatusCode::ACCEPTED);
        reply.set("content-type", answer.content_type());
        // There is nothing after the last delimiter: the C++ client takes anything there for a broken answer.
        reply.body = ReplyBody::Bytes(answer.finish_bare().into());
        Ok(reply)
    }

    /// Takes the batch apart and sees that it is one: parts that may be there, all of one kind.
    fn parts(&self, outer: &Head, body: &[u8], boundary: &str) -> Result<Vec<Part>, ErrorReply> {
        let found = multipart::parts(body, boundary, PARTS_MAX).map_err(|Malformed| invalid())?;
        if found.len() > PARTS_MAX {
            let message = "The batch operation exceeds maximum number of allowed subrequests.";
            return Err(ErrorReply::new(400, "ExceedsMaxBatchRequestCount", message));
        }
        let mut parts = Vec::with_capacity(found.len());
        let mut kind = None;
        for (at, part) in found.iter().enumerate() {
            let request = multipart::request(part.content).map_err(|Malformed| invalid())?;
            let id = part.headers.text("content-id");
            let id = id.map_or_else(|| at.to_string(), str::to_owned);
            let part = self.inner(outer, request, id)?;
            let op = Op::named_by(&part.head).map_err(|error| error.to_reply())?;
            if !matches!(op, Op::DeleteBlob | Op::SetBlobTier) {
                return Err(invalid());
            }
            if *kind.get_or_insert(op) != op {
                let message = "All batch subrequests should be the same api.";
                return Err(ErrorReply::new(400, "AllBatchSubRequestsShouldBeSameApi", message));
            }
            // A batch on a container is for that container.
            if outer.first_segment().is_some_and(|name| name != container(&part.head)) {
                return Err(invalid());
            }
            parts.push(part);
        }
        if parts.is_empty() { Err(invalid()) } else { Ok(parts) }
    }

    fn inner(&self, outer: &Head, request: multipart::InnerRequest<'_>, id: String) -> Result<Part, ErrorReply> {
        let uri: Uri = request.target.parse().map_err(|_| invalid())?;
        let mut headers = request.headers.to_map();
        let head_bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>();
        if head_bytes + request.target.len() > HEAD_BYTES_MAX {
            return Err(invalid());
        }
        let (resource, path_style) = target::inside(&uri, &outer.account)?;
        let request_id = self.house.request_ids.next();
        // A part has no version of its own. A token is only taken with one; it signs nothing, so the outer one can stand in.
        let is_token = |value: &HeaderValue| value.as_bytes().starts_with(b"Bearer ");
        if let (true, Ok(version)) =
            (headers.get(header::AUTHORIZATION).is_some_and(is_token), HeaderValue::from_str(&outer.version))
        {
            headers.entry("x-ms-version").or_insert(version);
        }
        let head = Head {
            method: request.method,
            account: outer.account.clone(),
            secondary: outer.secondary,
            resource,
            raw_path: uri.path().to_owned(),
            query: target::query(&uri)?,
            headers,
            endpoint: outer.endpoint.clone(),
            version: outer.version.clone(),
            request_id: request_id.as_str().to_owned(),
            https: outer.https,
        };
        Ok(Part { id, request_id, head, path_style, uri, body: Bytes::copy_from_slice(request.body) })
    }

    /// Walks a part and writes its answer.
    async fn part(&self, outer: &Entered, part: &Part, peer: SocketAddr) -> Vec<u8> {
        let began = Instant::now();
        let id = &part.request_id;
        let envelope = self.envelope(&outer.head, Some(&part.head));
        let asked_for = debug_log::request_inside(&part.head.method, &part.uri, &part.head.headers);
        let mut progress = Progress::new(self.service, envelope.version.clone());
        let walk = async {
            let entered = self.enter(part.head.clone(), part.path_style, peer, &mut progress).await?;
            self.run(&entered, &mut FixedBody::new(part.body.clone())).await
        };
        let (reply, error) = match settled(caught(walk).await, id) {
            Ok(reply) => (reply, None),
            Err(error) => (respond::refusal(&error, &envelope, id, wall_clock()), Some(error)),
        };
        if progress.failed_sign_in {
            self.slow_down(peer).await;
        }
        let (status, took) = (reply.status.as_u16(), began.elapsed());
        let code = error.as_ref().map(|error| error.code);
        self.house.metrics.answered(progress.asked, status, code, took, part.body.len() as u64);
        self.record(&Line {
            at: wall_clock(),
            peer: peer.ip(),
            method: &part.head.method,
            uri: &part.uri,
            http: Version::HTTP_11,
            status,
            bytes: reply.body.length(),
            operation: progress.asked.operation().unwrap_or("-"),
            took,
            request_id: id.as_str(),
        });
        if let Some(asked_for) = asked_for {
            let (operation, answer) = (progress.asked.operation(), (reply.status, &reply.headers));
            debug_log::write(&asked_for, id, peer, operation, progress.caller.as_deref(), error.as_ref(), answer);
        }
        written(reply, error.as_ref(), &envelope, id)
    }

    fn envelope(&self, outer: &Head, inner: Option<&Head>) -> Envelope {
        let client_request_id = inner.and_then(|head| Envelope::echoed(head.headers.get("x-ms-client-request-id")));
        // It was a header, or a constant of ours.
        let version = HeaderValue::from_str(&outer.version).unwrap_or(HeaderValue::from_static(crate::version::NEWEST));
        Envelope { service: self.service, op: None, is_head: false, version, client_request_id }
    }
}

/// An answer as it stands in its part.
fn written(reply: Reply, error: Option<&ErrorReply>, envelope: &Envelope, id: &RequestId) -> Vec<u8> {
    let status = reply.status;
    let reason = error.and_then(|error| error.message.lines().next());
    let reason = reason.or(status.canonical_reason()).unwrap_or_default();
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    let mut headers = reply.headers;
    respond::identify(&mut headers, envelope, id);
    let body = match reply.body {
        ReplyBody::Bytes(bytes) => bytes,
        // Neither a delete nor a tier change has more to say.
        ReplyBody::Empty | ReplyBody::Stream { .. } | ReplyBody::Open(_) => Bytes::new(),
    };
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    for (name, value) in &headers {
        for bytes in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            text.extend_from_slice(bytes);
        }
    }
    text.extend_from_slice(b"\r\n");
    // The delimiter of the next part follows the empty line, or the line after the body.
    if !body.is_empty() {
        text.extend_from_slice(&body);
        text.extend_from_slice(b"\r\n");
    }
    text
}

fn write(answer: &mut Writer, id: Option<&str>, text: &[u8]) {
    let mut headers = vec![("Content-Type", "application/http")];
    headers.extend(id.map(|id| ("Content-ID", id)));
    answer.part(&headers).extend_from_slice(text);
}

fn boundary(head: &Head) -> Result<String, ErrorReply> {
    let given = head.header("content-type").unwrap_or_default();
    multipart::boundary(given).map(str::to_owned).ok_or_else(|| {
        let message = "The value for one of the HTTP headers is not in the correct format.";
        ErrorReply::new(400, "InvalidHeaderValue", message)
            .detail("HeaderName", "Content-Type")
            .detail("HeaderValue", given)
    })
}

fn invalid() -> ErrorReply {
    ErrorReply::new(400, "InvalidInput", "One of the request inputs is not valid.")
}

fn length_required() -> ErrorReply {
    ErrorReply::new(411, "MissingContentLengthHeader", "The Content-Length header was not specified.")
}

fn too_large() -> ErrorReply {
    ErrorReply::new(
        413,
        "RequestBodyTooLarge",
        "The request body is too large and exceeds the maximum permissible limit.",
    )
    .detail("MaxLimit", BODY_BYTES_MAX.to_string())
}

/// Runs all of them at once, so that their commits share their syncs. The results come in the order of the futures.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, output) in running.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(done) = future.as_mut().poll(cx) {
                *output = Some(done);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
