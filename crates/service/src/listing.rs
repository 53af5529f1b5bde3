//! The query parameters that all listings share: `maxresults` and `include`.

use wire::http::Head;

use crate::RequestError;

/// `maxresults`: the most results of a page. It is capped at `most`, which is also the default.
pub fn max_results(head: &Head, most: usize) -> Result<usize, RequestError> {
    const NAME: &str = "maxresults";
    let Some(text) = head.query.get(NAME) else { return Ok(most) };
    let value: i64 = text.parse().map_err(|_| RequestError::query(NAME, text))?;
    match usize::try_from(value) {
        Ok(count) if count > 0 => Ok(count.min(most)),
        _ => Err(RequestError::OutOfRangeQueryParameterValue {
            name: NAME,
            value: text.to_owned(),
            least: 1,
            most: most as u64,
        }),
    }
}

/// `include`: the words of its comma-separated lists. Every word must be in `known`.
pub fn include(head: &Head, known: &[&str]) -> Result<Vec<String>, RequestError> {
    const NAME: &str = "include";
    let mut words = Vec::new();
    for (_, list) in head.query.pairs().iter().filter(|(name, _)| name.eq_ignore_ascii_case(NAME)) {
        for word in list.split(',').map(|word| word.trim().to_ascii_lowercase()).filter(|word| !word.is_empty()) {
            if !known.contains(&word.as_str()) {
                return Err(RequestError::query(NAME, list));
            }
            words.push(word);
        }
    }
    Ok(words)
}
