//! The body of a batch: parts of parts, and the requests in them.
#![no_main]

use wire::multipart;

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    for part in multipart::parts(body, "b", 100).unwrap_or_default() {
        for inner in multipart::parts(part.content, "c", 100).unwrap_or_default() {
            let _ = multipart::request(inner.content);
        }
        let _ = multipart::request(part.content);
    }
});
