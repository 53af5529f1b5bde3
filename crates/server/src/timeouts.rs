//! How long a request may take until its answer begins.
//!
//! A client may say how long it will wait (`timeout`, in seconds); what the operation may take at most is the service's
//! to say. The time that an answer takes to go out does not count: the stream sees to that.

use std::time::Duration;

use wire::http::{ErrorReply, Head};

use crate::services::Op;

/// What has no body to speak of; from the REST reference, as are the others.
pub(crate) const USUAL: Duration = Duration::from_secs(30);
pub(crate) const READ: Duration = Duration::from_secs(2 * 60);
/// For each begun MiB of an upload.
const UPLOAD_PER_MIB: Duration = Duration::from_secs(10 * 60);
/// The same for files.
const FILE_UPLOAD_PER_MIB: Duration = Duration::from_secs(2 * 60);

const MIB: u64 = 1024 * 1024;

/// How long an upload of so many bytes may take.
pub(crate) fn upload(length: u64) -> Duration {
    UPLOAD_PER_MIB.saturating_mul(begun_mib(length))
}

/// The same for an upload into a file.
pub(crate) fn file_upload(length: u64) -> Duration {
    FILE_UPLOAD_PER_MIB.saturating_mul(begun_mib(length))
}

fn begun_mib(length: u64) -> u32 {
    u32::try_from(length.div_ceil(MIB).max(1)).unwrap_or(u32::MAX)
}

/// What the client asked for, within what the operation may take. `length` is that of the body.
pub(crate) fn of(head: &Head, op: Op, length: Option<u64>) -> Result<Duration, ErrorReply> {
    let most = op.time_limit(length.unwrap_or(0));
    let Some(text) = head.query.get("timeout") else { return Ok(most) };
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad(text));
    }
    // More digits than fit say more than any limit; and a time-out of 0 counts as none.
    let seconds = text.parse().unwrap_or(u64::MAX);
    Ok(if seconds == 0 { most } else { Duration::from_secs(seconds).min(most) })
}

fn bad(text: &str) -> ErrorReply {
    let message = "Value for one of the query parameters specified in the request URI is invalid.";
    ErrorReply::new(400, "InvalidQueryParameterValue", message)
        .detail("QueryParameterName", "timeout")
        .detail("QueryParameterValue", text)
        .detail("Reason", "It is not a number of seconds.")
}

#[cfg(test)]
mod tests {
    use blob::Op as Blob;
    use file::Op as File;

    use super::*;

    fn seconds(op: Blob, length: Option<u64>, query: &str) -> Result<u64, &'static str> {
        seconds_of(Op::Blob(op), length, query)
    }

    fn seconds_of(op: Op, length: Option<u64>, query: &str) -> Result<u64, &'static str> {
        let head = Head {
            method: http::Method::PUT,
            account: String::new(),
            secondary: false,
            resource: String::new(),
            raw_path: String::new(),
            query: crate::target::query(&format!("/?{query}").parse().unwrap()).unwrap(),
            headers: http::HeaderMap::new(),
            endpoint: String::new(),
            version: String::new(),
            request_id: String::new(),
            https: false,
        };
        of(&head, op, length).map(|patience| patience.as_secs()).map_err(|refused| refused.code)
    }

    #[test]
    fn what_is_asked_for_within_what_is_allowed() {
        for (query, expected) in [
            ("", Ok(30)),
            ("timeout=", Ok(30)),
            ("timeout=0", Ok(30)),
            ("timeout=7", Ok(7)),
            ("TimeOut=7", Ok(7)),
            ("timeout=31", Ok(30)),
            ("timeout=99999999999999999999999", Ok(30)),
            ("timeout=-1", Err("InvalidQueryParameterValue")),
            ("timeout=1.5", Err("InvalidQueryParameterValue")),
            ("timeout=soon", Err("InvalidQueryParameterValue")),
            ("timeout=%2B7", Err("InvalidQueryParameterValue")),
        ] {
            assert_eq!(seconds(Blob::ListBlobs, None, query), expected, "{query}");
        }
    }

    #[test]
    fn an_upload_has_time_by_its_length() {
        assert_eq!(seconds(Blob::PutBlob, Some(0), ""), Ok(600));
        assert_eq!(seconds(Blob::PutBlob, Some(MIB), ""), Ok(600));
        assert_eq!(seconds(Blob::PutBlock, Some(MIB + 1), ""), Ok(1200));
        assert_eq!(seconds(Blob::PutBlob, Some(MIB), "timeout=5"), Ok(5));
        assert!(seconds(Blob::PutBlob, Some(u64::MAX), "").is_ok());
        let file = |op, length| seconds_of(Op::File(op), Some(length), "");
        assert_eq!((file(File::PutRange, 4 * MIB), file(File::CreateFile, 0)), (Ok(480), Ok(120)));
        assert_eq!((file(File::GetFile, 0), file(File::ListRanges, 0)), (Ok(120), Ok(30)));
    }
}
