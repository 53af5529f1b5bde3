//! Signatures of every kind that the account's key makes, and requests that come with one.

use crate::harness::{ACCOUNT, Answer, Client, Headers};
use crate::stage::percent;

pub const END: &str = "2099-01-01T00:00:00Z";
pub const VERSION: &str = "2026-10-06";

/// For a share, or for one file of it: `share` or `share/dir/file`, as it is, not encoded.
pub fn for_path(client: &Client, path: &str, letters: &str) -> String {
    for_path_until(client, path, letters, END)
}

pub fn for_path_until(client: &Client, path: &str, letters: &str, end: &str) -> String {
    let kind = if path.contains('/') { 'f' } else { 's' };
    let fields = format!("{letters}\n\n{end}\n/file/{ACCOUNT}/{path}\n\n\n\n{VERSION}\n\n\n\n\n");
    format!("sv={VERSION}&sr={kind}&sp={letters}&se={end}&sig={}", percent(&client.sign(&fields)))
}

/// The same with the five headers of the answer, in the order `rscc rscd rsce rscl rsct`.
pub fn with_headers(client: &Client, path: &str, values: [&str; 5]) -> String {
    let kind = if path.contains('/') { 'f' } else { 's' };
    let fields = format!("r\n\n{END}\n/file/{ACCOUNT}/{path}\n\n\n\n{VERSION}\n{}", values.join("\n"));
    let names = ["rscc", "rscd", "rsce", "rscl", "rsct"];
    let more: String = names.iter().zip(values).map(|(name, value)| format!("&{name}={}", percent(value))).collect();
    format!("sv={VERSION}&sr={kind}&sp=r&se={END}{more}&sig={}", percent(&client.sign(&fields)))
}

/// One that leaves everything to a stored policy of the share.
pub fn by_policy(client: &Client, path: &str, policy: &str) -> String {
    let kind = if path.contains('/') { 'f' } else { 's' };
    let fields = format!("\n\n\n/file/{ACCOUNT}/{path}\n{policy}\n\n\n{VERSION}\n\n\n\n\n");
    format!("sv={VERSION}&sr={kind}&si={policy}&sig={}", percent(&client.sign(&fields)))
}

/// For the account's files.
pub fn for_account(client: &Client, letters: &str, types: &str) -> String {
    for_services(client, "f", letters, types)
}

/// For any of the account's services.
pub fn for_services(client: &Client, services: &str, letters: &str, types: &str) -> String {
    let fields = format!("{ACCOUNT}\n{letters}\n{services}\n{types}\n\n{END}\n\n\n{VERSION}\n\n");
    format!("sv={VERSION}&ss={services}&srt={types}&sp={letters}&se={END}&sig={}", percent(&client.sign(&fields)))
}

/// Sends a request with nothing but a signature in its URL.
pub fn ask(client: &Client, line: &str, signature: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let glue = if line.contains('?') { '&' } else { '?' };
    let line = format!("{line}{glue}{signature}");
    let length = body.len().to_string();
    let head = client.unsigned_head(&line, &[headers, &[("content-length", length.as_str())]].concat());
    client.call_odd(&line, &head, body)
}
