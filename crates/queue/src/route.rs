//! Which operation a request names. No other place knows.
//!
//! The path and `restype` give the level (service, queue, messages, one message); then `comp` and the verb decide.

use service::RequestError;
use wire::http::{Head, Method};

use crate::error::QueueError;
use crate::op::Op;

/// The path segment of a queue's messages.
pub const MESSAGES: &str = "messages";

impl Op {
    /// The operation that a request names.
    pub fn named_by(head: &Head) -> Result<Op, QueueError> {
        if head.method == Method::OPTIONS {
            return Ok(Op::PreflightQueueRequest);
        }
        let comp = head.query.get("comp").map(str::to_ascii_lowercase);
        let comp = comp.as_deref();
        let level = match head.query.get("restype") {
            Some(kind) if kind.eq_ignore_ascii_case("service") => Level::Service,
            Some(other) => return Err(QueueError::query("restype", other)),
            None => Level::of(head)?,
        };
        match level {
            Level::Service => service(head, comp),
            Level::Queue => queue(head, comp),
            Level::Messages => messages(head, comp),
            Level::Message => message(head, comp),
        }
    }
}

enum Level {
    Service,
    Queue,
    Messages,
    Message,
}

impl Level {
    /// A slash at the end makes no difference.
    fn of(head: &Head) -> Result<Level, QueueError> {
        let path = head.resource.strip_suffix('/').unwrap_or(&head.resource);
        let mut segments = path.split('/').skip(1);
        match (head.first_segment(), segments.next(), segments.next(), segments.next()) {
            (None, None, ..) => Ok(Level::Service),
            (Some(_), None, ..) => Ok(Level::Queue),
            (Some(_), Some(MESSAGES), None, _) => Ok(Level::Messages),
            (Some(_), Some(MESSAGES), Some(id), None) if !id.is_empty() => Ok(Level::Message),
            _ => Err(QueueError::InvalidUri),
        }
    }
}

fn service(head: &Head, comp: Option<&str>) -> Result<Op, QueueError> {
    Ok(match (&head.method, comp) {
        (&Method::GET, Some("list")) => Op::ListQueues,
        (&Method::GET, Some("properties")) => Op::GetQueueServiceProperties,
        (&Method::PUT, Some("properties")) => Op::SetQueueServiceProperties,
        (&Method::GET, Some("stats")) => Op::GetQueueServiceStats,
        (&Method::POST, Some("userdelegationkey")) => Op::GetUserDelegationKey,
        (_, Some("list" | "properties" | "stats" | "userdelegationkey")) => {
            return Err(RequestError::UnsupportedHttpVerb.into());
        }
        (_, Some(other)) => return Err(QueueError::query("comp", other)),
        (_, None) => return Err(RequestError::MissingRequiredQueryParameter { name: "comp" }.into()),
    })
}

fn queue(head: &Head, comp: Option<&str>) -> Result<Op, QueueError> {
    Ok(match (&head.method, comp) {
        (&Method::PUT, None) => Op::CreateQueue,
        (&Method::DELETE, None) => Op::DeleteQueue,
        (&Method::GET | &Method::HEAD, Some("metadata")) => Op::GetQueueMetadata,
        (&Method::PUT, Some("metadata")) => Op::SetQueueMetadata,
        (&Method::GET | &Method::HEAD, Some("acl")) => Op::GetQueueAcl,
        (&Method::PUT, Some("acl")) => Op::SetQueueAcl,
        (_, None | Some("metadata" | "acl")) => return Err(RequestError::UnsupportedHttpVerb.into()),
        (_, Some(other)) => return Err(QueueError::query("comp", other)),
    })
}

fn messages(head: &Head, comp: Option<&str>) -> Result<Op, QueueError> {
    no_comp(comp)?;
    Ok(match head.method {
        Method::GET if only_peeks(head)? => Op::PeekMessages,
        Method::GET => Op::GetMessages,
        Method::POST => Op::PutMessage,
        Method::DELETE => Op::ClearMessages,
        _ => return Err(RequestError::UnsupportedHttpVerb.into()),
    })
}

fn message(head: &Head, comp: Option<&str>) -> Result<Op, QueueError> {
    no_comp(comp)?;
    Ok(match head.method {
        Method::PUT => Op::UpdateMessage,
        Method::DELETE => Op::DeleteMessage,
        _ => return Err(RequestError::UnsupportedHttpVerb.into()),
    })
}

fn no_comp(comp: Option<&str>) -> Result<(), QueueError> {
    comp.map_or(Ok(()), |other| Err(QueueError::query("comp", other)))
}

/// An unknown word must not count as `false`: the request would take a message and hide it from all other clients.
fn only_peeks(head: &Head) -> Result<bool, QueueError> {
    match head.query.get("peekonly") {
        None => Ok(false),
        Some(word) if word.eq_ignore_ascii_case("true") => Ok(true),
        Some(word) if word.eq_ignore_ascii_case("false") => Ok(false),
        Some(other) => Err(QueueError::query("peekonly", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    #[test]
    fn the_request_lines_of_the_reference_name_their_operations() {
        let table = [
            ("GET", "?comp=list", Op::ListQueues),
            ("GET", "?restype=service&comp=properties", Op::GetQueueServiceProperties),
            ("PUT", "?restype=service&comp=properties", Op::SetQueueServiceProperties),
            ("GET", "?restype=service&comp=stats", Op::GetQueueServiceStats),
            ("POST", "?restype=service&comp=userdelegationkey", Op::GetUserDelegationKey),
            ("OPTIONS", "que/messages", Op::PreflightQueueRequest),
            ("PUT", "que", Op::CreateQueue),
            ("PUT", "que/", Op::CreateQueue),
            ("DELETE", "que", Op::DeleteQueue),
            ("GET", "que?comp=metadata", Op::GetQueueMetadata),
            ("HEAD", "que?comp=metadata", Op::GetQueueMetadata),
            ("PUT", "que?comp=metadata", Op::SetQueueMetadata),
            ("GET", "que?comp=acl", Op::GetQueueAcl),
            ("HEAD", "que?comp=ACL", Op::GetQueueAcl),
            ("PUT", "que?comp=acl", Op::SetQueueAcl),
            ("POST", "que/messages?visibilitytimeout=3", Op::PutMessage),
            ("GET", "que/messages?numofmessages=3", Op::GetMessages),
            ("GET", "que/messages?peekonly=false", Op::GetMessages),
            ("GET", "que/messages?peekonly=True", Op::PeekMessages),
            ("DELETE", "que/messages", Op::ClearMessages),
            ("DELETE", "que/messages/", Op::ClearMessages),
            ("PUT", "que/messages/id?popreceipt=x&visibilitytimeout=3", Op::UpdateMessage),
            ("DELETE", "que/messages/id?popreceipt=x", Op::DeleteMessage),
        ];
        for (method, url, op) in table {
            assert_eq!(Op::named_by(&request(method, url, &[])), Ok(op), "{method} {url}");
        }
        for op in Op::ALL {
            assert!(table.iter().any(|row| row.2 == *op), "no request names {}", op.name());
        }
    }

    #[test]
    fn requests_that_name_nothing() {
        let verb = QueueError::from(RequestError::UnsupportedHttpVerb);
        let table = [
            ("GET", "", RequestError::MissingRequiredQueryParameter { name: "comp" }.into()),
            ("GET", "?comp=x", QueueError::query("comp", "x")),
            ("GET", "?restype=container&comp=list", QueueError::query("restype", "container")),
            ("GET", "que", verb.clone()),
            ("POST", "que?comp=metadata", verb.clone()),
            ("GET", "que?comp=lease", QueueError::query("comp", "lease")),
            ("PUT", "que/messages", verb.clone()),
            ("GET", "que/messages/id", verb.clone()),
            ("DELETE", "?comp=list", verb),
            ("GET", "que/messages?peekonly=1", QueueError::query("peekonly", "1")),
            ("GET", "que/messages?comp=list", QueueError::query("comp", "list")),
            ("GET", "que/other", QueueError::InvalidUri),
            ("PUT", "que/messages/id/more", QueueError::InvalidUri),
            ("PUT", "que/messages//", QueueError::InvalidUri),
        ];
        for (method, url, error) in table {
            assert_eq!(Op::named_by(&request(method, url, &[])), Err(error), "{method} {url}");
        }
    }
}
