//! Conditional requests: `If-Match`, `If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since`, `x-ms-if-tags`.
//!
//! Reads and writes judge the same headers differently. A read takes any mix and may answer "not modified"; a write
//! takes one condition, or one of two pairs of which only the ETag counts, and fails in one way only. Dates have
//! whole seconds on the wire, so they are compared in whole seconds.
//!
//! What a request asks of the tags stands beside all others and must hold, too.
//!
//! `If-None-Match: *` on a write is judged apart, because its place in the order of checks is another one: after the
//! lease. See <https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations>.

use crate::etag::{ETag, ETagMatch};
use crate::tag_expression::TagExpression;
use crate::time::Timestamp;

/// The conditions of one request. The default has none and always holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Conditions {
    pub if_match: Option<ETagMatch>,
    pub if_none_match: Option<ETagMatch>,
    pub if_modified_since: Option<Timestamp>,
    pub if_unmodified_since: Option<Timestamp>,
    pub if_tags: Option<TagExpression>,
}

/// The state of a resource, as far as conditions can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version<'a> {
    pub etag: ETag,
    pub last_modified: Timestamp,
    pub tags: &'a [(String, String)],
}

/// Why the conditions stop a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unmet {
    /// A read finds nothing newer than what the client has (304).
    NotModified,
    /// The resource is not in the state asked for (412).
    PreconditionFailed,
    /// A write names conditions that do not go together, or a list of ETags (400).
    MultipleConditions,
    /// A read asks that the resource it reads does not exist (400).
    Unsatisfiable,
    /// A create asks that nothing is there, and something is (409).
    AlreadyExists,
}

impl Conditions {
    pub fn is_empty(&self) -> bool {
        *self == Conditions::default()
    }

    /// `If-None-Match: *`: the resource must not exist.
    pub fn none_match_any(&self) -> bool {
        self.if_none_match == Some(ETagMatch::Any)
    }

    /// The same conditions without ETags, for containers, which take dates only.
    pub fn dates_only(&self) -> Conditions {
        let Conditions { if_modified_since, if_unmodified_since, .. } = *self;
        Conditions { if_modified_since, if_unmodified_since, ..Conditions::default() }
    }

    /// What is asked of anything but the tags.
    pub fn without_tags(&self) -> Conditions {
        Conditions { if_tags: None, ..self.clone() }
    }

    /// A read of a resource that exists. (A read of a missing one is "not found" whatever the conditions.)
    ///
    /// "Changed" needs only one of its two headers to hold when both are given; a failure of the other two headers
    /// is the stronger answer.
    pub fn check_read(&self, found: &Version<'_>) -> Result<(), Unmet> {
        if self.none_match_any() {
            return Err(Unmet::Unsatisfiable);
        }
        let broken = [self.matched(Some(found)), self.unmodified(Some(found)), self.tagged(Some(found))];
        if broken.contains(&Some(false)) {
            return Err(Unmet::PreconditionFailed);
        }
        match (self.none_matched(Some(found)), self.modified(Some(found))) {
            (Some(false), None | Some(false)) | (None, Some(false)) => Err(Unmet::NotModified),
            (Some(true), _) | (_, Some(true)) | (None, None) => Ok(()),
        }
    }

    /// Whether a write may carry these headers together, whatever is there.
    ///
    /// Two headers ask that the resource is still the same, two that it has changed; a write asks one or the other.
    pub fn check_write_combination(&self) -> Result<(), Unmet> {
        let same = self.if_match.is_some() || self.if_unmodified_since.is_some();
        let changed = self.if_none_match.is_some() || self.if_modified_since.is_some();
        let listed = [&self.if_match, &self.if_none_match].into_iter().flatten().any(ETagMatch::is_list);
        if (same && changed) || listed { Err(Unmet::MultipleConditions) } else { Ok(()) }
    }

    /// A write on what was found, or on nothing. `If-None-Match: *` always holds here: it is judged apart, by
    /// [`Conditions::check_create_only`] or [`Conditions::check_not_exists_on_delete`].
    pub fn check_write(&self, found: Option<&Version<'_>>) -> Result<(), Unmet> {
        self.check_write_combination()?;
        met_or(self.tagged(found).unwrap_or(true), Unmet::PreconditionFailed)?;
        if self.none_match_any() {
            return Ok(());
        }
        // Beside an ETag a date does not count.
        let by_etag = self.matched(found).or(self.none_matched(found));
        let by_date = self.unmodified(found).or(self.modified(found));
        met_or(by_etag.or(by_date).unwrap_or(true), Unmet::PreconditionFailed)
    }

    /// `If-None-Match: *` on an operation that creates, judged after the lease. Whoever named the active lease
    /// knows that the resource exists, and may replace it.
    pub fn check_create_only(&self, exists: bool, holds_active_lease: bool) -> Result<(), Unmet> {
        met_or(!self.none_match_any() || !exists || holds_active_lease, Unmet::AlreadyExists)
    }

    /// `If-None-Match: *` on an operation that deletes.
    pub fn check_not_exists_on_delete(&self, exists: bool) -> Result<(), Unmet> {
        met_or(!self.none_match_any() || !exists, Unmet::PreconditionFailed)
    }
}

/// Each header by itself: `None` when it is absent, else whether it holds. Nothing found matches no ETag, not even
/// `*`, has no tags, and no date speaks against it.
impl Conditions {
    fn matched(&self, found: Option<&Version<'_>>) -> Option<bool> {
        let wanted = self.if_match.as_ref()?;
        Some(found.is_some_and(|version| wanted.matches(&version.etag)))
    }

    fn none_matched(&self, found: Option<&Version<'_>>) -> Option<bool> {
        let unwanted = self.if_none_match.as_ref()?;
        Some(!found.is_some_and(|version| unwanted.matches(&version.etag)))
    }

    fn modified(&self, found: Option<&Version<'_>>) -> Option<bool> {
        let date = self.if_modified_since?;
        Some(found.is_none_or(|version| version.last_modified.whole_seconds() > date))
    }

    fn unmodified(&self, found: Option<&Version<'_>>) -> Option<bool> {
        let date = self.if_unmodified_since?;
        Some(found.is_none_or(|version| version.last_modified.whole_seconds() <= date))
    }

    fn tagged(&self, found: Option<&Version<'_>>) -> Option<bool> {
        let wanted = self.if_tags.as_ref()?;
        Some(wanted.holds(found.map_or(&[], |version| version.tags)))
    }
}

fn met_or(met: bool, unmet: Unmet) -> Result<(), Unmet> {
    if met { Ok(()) } else { Err(unmet) }
}

#[cfg(test)]
mod tests;
