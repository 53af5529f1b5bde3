//! Conditional requests: `If-Match`, `If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since`, `x-ms-if-tags`.
//!
//! Reads and writes treat the same headers differently. A read takes any mix and may answer "not modified". A write
//! takes one condition, or one of two pairs of which only the ETag counts, and has one refusal. Dates are compared in
//! whole seconds, because headers carry whole seconds.
//!
//! The condition on tags (`x-ms-if-tags`) must hold in addition to all others.
//!
//! `If-None-Match: *` on a write is checked separately, because it comes later in the order of checks: after the lease.
//! See
//! <https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations>.

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

/// The state of a resource that conditions are checked against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version<'a> {
    pub etag: ETag,
    pub last_modified: Timestamp,
    pub tags: &'a [(String, String)],
}

/// Why a condition refuses a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unmet {
    /// A read: the resource has not changed since the client read it (304).
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

    /// The same conditions without the one on tags.
    pub fn without_tags(&self) -> Conditions {
        Conditions { if_tags: None, ..self.clone() }
    }

    /// Checks a read of a resource that exists. (A read of a missing one is "not found" whatever the conditions.)
    ///
    /// If both `If-None-Match` and `If-Modified-Since` are given, one of them is enough. A failure of the other two
    /// headers wins over "not modified".
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

    /// Whether a write may have these headers together, whatever is stored.
    ///
    /// Two headers demand that the resource is unchanged, two that it has changed; a write may have one kind only.
    pub fn check_write_combination(&self) -> Result<(), Unmet> {
        let same = self.if_match.is_some() || self.if_unmodified_since.is_some();
        let changed = self.if_none_match.is_some() || self.if_modified_since.is_some();
        let listed = [&self.if_match, &self.if_none_match].into_iter().flatten().any(ETagMatch::is_list);
        if (same && changed) || listed { Err(Unmet::MultipleConditions) } else { Ok(()) }
    }

    /// Checks a write, on what was found or on nothing. `If-None-Match: *` always holds here;
    /// [`Conditions::check_create_only`] and [`Conditions::check_not_exists_on_delete`] check it.
    pub fn check_write(&self, found: Option<&Version<'_>>) -> Result<(), Unmet> {
        self.check_write_combination()?;
        met_or(self.tagged(found).unwrap_or(true), Unmet::PreconditionFailed)?;
        if self.none_match_any() {
            return Ok(());
        }
        // A date does not count beside an ETag.
        let by_etag = self.matched(found).or(self.none_matched(found));
        let by_date = self.unmodified(found).or(self.modified(found));
        met_or(by_etag.or(by_date).unwrap_or(true), Unmet::PreconditionFailed)
    }

    /// `If-None-Match: *` on an operation that creates, checked after the lease. A client that names the active lease
    /// knows that the resource exists, and may replace it.
    pub fn check_create_only(&self, exists: bool, holds_active_lease: bool) -> Result<(), Unmet> {
        met_or(!self.none_match_any() || !exists || holds_active_lease, Unmet::AlreadyExists)
    }

    /// `If-None-Match: *` on an operation that deletes.
    pub fn check_not_exists_on_delete(&self, exists: bool) -> Result<(), Unmet> {
        met_or(!self.none_match_any() || !exists, Unmet::PreconditionFailed)
    }
}

/// Each header by itself: `None` when it is absent, else whether it holds. A resource that does not exist matches no
/// ETag, not even `*`, and has no tags; conditions on dates hold for it.
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
