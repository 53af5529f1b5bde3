//! The published rules as literal tables: what a read answers to each mix of headers, which headers a write takes
//! together, what dates mean at their edge, and what holds when the resource does not exist.

use super::{Conditions, Unmet, Version};
use crate::etag::{ETag, ETagMatch};
use crate::tag_expression::TagExpression;
use crate::time::Timestamp;

const SECOND: u64 = Timestamp::TICKS_PER_SECOND;
const CURRENT: &str = "\"0x8DE2474AC0FE0F3\"";
const STALE: &str = "\"0x8DE2474AC0FE0F2\"";

/// Modified a third of a second after a whole one, as real stamps are.
fn found() -> Version<'static> {
    Version {
        etag: ETag::new(Timestamp(0x8DE_2474_AC0F_E0F3)),
        last_modified: modified_at().plus_ticks(SECOND / 3),
        tags: &[],
    }
}

fn modified_at() -> Timestamp {
    Timestamp::from_unix_seconds(1_763_000_000)
}

fn earlier() -> Timestamp {
    Timestamp::from_unix_seconds(1_762_999_999)
}

fn etag(text: &str) -> Option<ETagMatch> {
    Some(ETagMatch::parse(text).expect("an ETag of the test"))
}

fn if_match(text: &str) -> Conditions {
    Conditions { if_match: etag(text), ..Conditions::default() }
}

fn if_none_match(text: &str) -> Conditions {
    Conditions { if_none_match: etag(text), ..Conditions::default() }
}

fn if_modified_since(date: Timestamp) -> Conditions {
    Conditions { if_modified_since: Some(date), ..Conditions::default() }
}

fn if_unmodified_since(date: Timestamp) -> Conditions {
    Conditions { if_unmodified_since: Some(date), ..Conditions::default() }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Header {
    Holds,
    Fails,
    Absent,
}
use Header::{Absent, Fails, Holds};

const ANY: &[Header] = &[Holds, Fails, Absent];
const OK: &[Header] = &[Holds];
const FAIL: &[Header] = &[Fails];
const NONE: &[Header] = &[Absent];
const OK_OR_NONE: &[Header] = &[Holds, Absent];

/// Conditions of which each header holds for `found()`, fails, or is absent.
fn headers(matched: Header, unmodified: Header, none_matched: Header, modified: Header) -> Conditions {
    fn pick<T>(header: Header, holds: T, fails: T) -> Option<T> {
        match header {
            Holds => Some(holds),
            Fails => Some(fails),
            Absent => None,
        }
    }
    Conditions {
        if_match: pick(matched, CURRENT, STALE).and_then(etag),
        if_unmodified_since: pick(unmodified, modified_at(), earlier()),
        if_none_match: pick(none_matched, STALE, CURRENT).and_then(etag),
        if_modified_since: pick(modified, earlier(), modified_at()),
        if_tags: None,
    }
}

mod reads {
    use super::*;

    const PASS: Result<(), Unmet> = Ok(());
    const S304: Result<(), Unmet> = Err(Unmet::NotModified);
    const S412: Result<(), Unmet> = Err(Unmet::PreconditionFailed);

    type Row = ([&'static [Header]; 4], Result<(), Unmet>);

    #[rustfmt::skip]
    const PUBLISHED: &[Row] = &[
        // If-Match    If-Unmod    If-None-Match  If-Mod   answer
        ([OK,          OK,         OK,            OK  ],   PASS),
        ([FAIL,        ANY,        ANY,           ANY ],   S412),
        ([ANY,         FAIL,       ANY,           ANY ],   S412),
        ([OK,          OK,         FAIL,          OK  ],   PASS),
        ([OK,          OK,         OK,            FAIL],   PASS),
        ([OK,          OK,         FAIL,          FAIL],   S304),
        ([OK_OR_NONE,  OK_OR_NONE, FAIL,          NONE],   S304),
        ([OK_OR_NONE,  OK_OR_NONE, NONE,          FAIL],   S304),
    ];

    /// The same formula for the mixes the table leaves out: an absent header neither helps nor harms.
    #[rustfmt::skip]
    const THE_REST: &[Row] = &[
        // If-Match    If-Unmod    If-None-Match  If-Mod   answer
        ([OK_OR_NONE,  OK_OR_NONE, NONE,          NONE],   PASS),
        ([OK_OR_NONE,  OK_OR_NONE, OK,            NONE],   PASS),
        ([OK_OR_NONE,  OK_OR_NONE, NONE,          OK  ],   PASS),
        ([OK_OR_NONE,  OK_OR_NONE, OK,            OK  ],   PASS),
        ([OK_OR_NONE,  OK_OR_NONE, OK,            FAIL],   PASS),
        ([OK_OR_NONE,  OK_OR_NONE, FAIL,          OK  ],   PASS),
        ([OK_OR_NONE,  OK_OR_NONE, FAIL,          FAIL],   S304),
    ];

    fn every_mix() -> impl Iterator<Item = [Header; 4]> {
        (0..81).map(|mix| [27, 9, 3, 1].map(|place| ANY[mix / place % 3]))
    }

    fn names(row: &Row, mix: [Header; 4]) -> bool {
        row.0.iter().zip(mix).all(|(cell, header)| cell.contains(&header))
    }

    #[test]
    fn every_mix_of_headers_has_its_answer() {
        for mix in every_mix() {
            let [a, b, c, d] = mix;
            let answers: Vec<_> =
                PUBLISHED.iter().chain(THE_REST).filter(|row| names(row, mix)).map(|row| row.1).collect();
            assert!(!answers.is_empty(), "no row for {mix:?}");
            for answer in answers {
                assert_eq!(headers(a, b, c, d).check_read(&found()), answer, "{mix:?}");
            }
        }
    }

    #[rustfmt::skip]
    #[test]
    fn lists_and_wildcards() {
        let both = format!("{STALE}, {CURRENT}");
        let weak = format!("W/{CURRENT}");
        let bare = CURRENT.trim_matches('"');
        let table = [
            (if_match("*"),             PASS),
            (if_match(bare),            PASS),
            (if_match(&both),           PASS),
            (if_match("0x1, 0x2"),      S412),
            (if_match(&weak),           S412),
            (if_none_match(bare),       S304),
            (if_none_match(&both),      S304),
            (if_none_match("0x1, 0x2"), PASS),
            (if_none_match(&weak),      PASS),
            (if_none_match("*"),        Err(Unmet::Unsatisfiable)),
        ];
        for (conditions, answer) in table {
            assert_eq!(conditions.check_read(&found()), answer, "{conditions:?}");
        }
    }

    #[test]
    fn what_can_never_hold_is_said_before_anything_else() {
        for mix in every_mix() {
            let [a, b, _, d] = mix;
            let conditions = Conditions { if_none_match: etag("*"), ..headers(a, b, Absent, d) };
            assert_eq!(conditions.check_read(&found()), Err(Unmet::Unsatisfiable), "{conditions:?}");
        }
    }
}

mod dates {
    use super::*;

    /// The resource was modified at second 0 of this scale, and a third. (date, is it modified since?)
    #[rustfmt::skip]
    const TABLE: &[(i64, bool)] = &[
        (-2, true),
        (-1, true),
        ( 0, false),
        ( 1, false),
        ( 2, false),
    ];

    #[test]
    fn are_compared_in_whole_seconds() {
        for &(second, modified) in TABLE {
            let date = Timestamp::from_unix_seconds(1_763_000_000 + second);
            // A fraction of the date, which no header can carry, changes nothing.
            for date in [date, date.plus_ticks(1), date.plus_ticks(SECOND - 1)] {
                let (since, not_since) = (if_modified_since(date), if_unmodified_since(date));
                assert_eq!(since.check_read(&found()).is_ok(), modified, "read, {second}");
                assert_eq!(since.check_write(Some(&found())).is_ok(), modified, "write, {second}");
                assert_eq!(not_since.check_read(&found()).is_ok(), !modified, "read, {second}");
                assert_eq!(not_since.check_write(Some(&found())).is_ok(), !modified, "write, {second}");
            }
        }
    }
}

mod writes {
    use super::*;

    const TAKEN: Result<(), Unmet> = Ok(());
    const S400: Result<(), Unmet> = Err(Unmet::MultipleConditions);
    const S412: Result<(), Unmet> = Err(Unmet::PreconditionFailed);

    #[rustfmt::skip]
    #[test]
    fn take_one_condition_or_one_of_two_pairs() {
        // Every present header holds, so nothing but the combination can be refused.
        let table = [
            // If-Match  If-Unmod  If-None-Match  If-Mod
            (Absent,     Absent,   Absent,        Absent, TAKEN),
            (Holds,      Absent,   Absent,        Absent, TAKEN),
            (Absent,     Holds,    Absent,        Absent, TAKEN),
            (Absent,     Absent,   Holds,         Absent, TAKEN),
            (Absent,     Absent,   Absent,        Holds,  TAKEN),
            (Holds,      Holds,    Absent,        Absent, TAKEN),
            (Absent,     Absent,   Holds,         Holds,  TAKEN),
            (Holds,      Absent,   Holds,         Absent, S400),
            (Holds,      Absent,   Absent,        Holds,  S400),
            (Absent,     Holds,    Holds,         Absent, S400),
            (Absent,     Holds,    Absent,        Holds,  S400),
            (Holds,      Holds,    Holds,         Absent, S400),
            (Holds,      Holds,    Absent,        Holds,  S400),
            (Holds,      Absent,   Holds,         Holds,  S400),
            (Absent,     Holds,    Holds,         Holds,  S400),
            (Holds,      Holds,    Holds,         Holds,  S400),
        ];
        for (a, b, c, d, answer) in table {
            let conditions = headers(a, b, c, d);
            assert_eq!(conditions.check_write_combination(), answer, "{conditions:?}");
            assert_eq!(conditions.check_write(Some(&found())), answer, "{conditions:?}");
        }
    }

    #[test]
    fn take_no_list_of_etags() {
        let both = format!("{STALE}, {CURRENT}");
        for conditions in [if_match(&both), if_none_match(&both)] {
            assert_eq!(conditions.check_write_combination(), S400);
            assert_eq!(conditions.check_write(Some(&found())), S400);
            assert_eq!(conditions.check_write(None), S400);
        }
    }

    #[rustfmt::skip]
    #[test]
    fn fail_in_one_way_and_a_date_beside_an_etag_does_not_count() {
        let table = [
            // If-Match  If-Unmod  If-None-Match  If-Mod
            (Fails,      Absent,   Absent,        Absent, S412),
            (Absent,     Fails,    Absent,        Absent, S412),
            (Absent,     Absent,   Fails,         Absent, S412),
            (Absent,     Absent,   Absent,        Fails,  S412),
            (Holds,      Fails,    Absent,        Absent, TAKEN),
            (Fails,      Holds,    Absent,        Absent, S412),
            (Fails,      Fails,    Absent,        Absent, S412),
            (Absent,     Absent,   Holds,         Fails,  TAKEN),
            (Absent,     Absent,   Fails,         Holds,  S412),
            (Absent,     Absent,   Fails,         Fails,  S412),
            (Fails,      Absent,   Fails,         Absent, S400),
        ];
        for (a, b, c, d, answer) in table {
            let conditions = headers(a, b, c, d);
            assert_eq!(conditions.check_write(Some(&found())), answer, "{conditions:?}");
        }
    }
}

mod wildcards_and_missing_resources {
    use super::*;

    const PROCEEDS: Result<(), Unmet> = Ok(());
    const S412: Result<(), Unmet> = Err(Unmet::PreconditionFailed);

    #[rustfmt::skip]
    #[test]
    fn a_write_where_nothing_is() {
        let table = [
            (Conditions::default(),                PROCEEDS),
            (if_none_match("*"),                   PROCEEDS),
            (if_none_match(CURRENT),               PROCEEDS),
            (if_match(CURRENT),                    S412),
            (if_match("*"),                        S412),
            (if_modified_since(modified_at()),     PROCEEDS),
            (if_modified_since(earlier()),         PROCEEDS),
            (if_unmodified_since(modified_at()),   PROCEEDS),
            (if_unmodified_since(earlier()),       PROCEEDS),
        ];
        for (conditions, answer) in table {
            assert_eq!(conditions.check_write(None), answer, "{conditions:?}");
            assert_eq!(conditions.check_create_only(false, false), Ok(()), "{conditions:?}");
            assert_eq!(conditions.check_not_exists_on_delete(false), Ok(()), "{conditions:?}");
        }
    }

    #[test]
    fn a_write_on_what_exists() {
        let conditions = if_none_match("*");
        let dated = Conditions { if_modified_since: Some(modified_at()), ..conditions.clone() };
        assert_eq!(if_match("*").check_write(Some(&found())), PROCEEDS);
        assert_eq!(conditions.check_write(Some(&found())), PROCEEDS, "judged later, after the lease");
        assert_eq!(dated.check_write(Some(&found())), PROCEEDS, "the date does not count");
    }

    #[rustfmt::skip]
    #[test]
    fn create_only() {
        let exists = Err(Unmet::AlreadyExists);
        let table = [
            // If-None-Match         exists  names the active lease
            (if_none_match("*"),     true,   false, exists),
            (if_none_match("*"),     true,   true,  PROCEEDS),
            (if_none_match("*"),     false,  false, PROCEEDS),
            (if_none_match("*"),     false,  true,  PROCEEDS),
            (if_none_match(STALE),   true,   false, PROCEEDS),
            (if_none_match(CURRENT), true,   false, PROCEEDS),
            (if_match("*"),          true,   false, PROCEEDS),
            (Conditions::default(),  true,   false, PROCEEDS),
        ];
        for (conditions, exists, holds, answer) in table {
            assert_eq!(conditions.check_create_only(exists, holds), answer, "{conditions:?} {exists} {holds}");
        }
    }

    #[rustfmt::skip]
    #[test]
    fn delete_of_what_must_not_exist() {
        let table = [
            (if_none_match("*"),     true,  S412),
            (if_none_match("*"),     false, PROCEEDS),
            (if_none_match(CURRENT), true,  PROCEEDS),
            (Conditions::default(),  true,  PROCEEDS),
        ];
        for (conditions, exists, answer) in table {
            assert_eq!(conditions.check_not_exists_on_delete(exists), answer, "{conditions:?} {exists}");
        }
    }

    #[test]
    fn the_wildcard_is_recognized() {
        assert!(if_none_match("*").none_match_any());
        assert!(!if_none_match("\"*\"").none_match_any());
        assert!(!if_none_match(CURRENT).none_match_any());
        assert!(!if_match("*").none_match_any());
    }
}

#[test]
fn only_no_header_at_all_is_empty() {
    assert!(Conditions::default().is_empty());
    let single =
        [if_match("*"), if_none_match("*"), if_modified_since(earlier()), if_unmodified_since(Timestamp::default())];
    for conditions in single {
        assert!(!conditions.is_empty(), "{conditions:?}");
    }
}

#[test]
fn containers_see_the_dates_and_nothing_else() {
    let all = headers(Fails, Holds, Fails, Holds);
    assert_eq!(all.dates_only(), headers(Absent, Holds, Absent, Holds));
    assert!(if_match(STALE).dates_only().is_empty());
}

/// The condition on tags must hold in addition to the other headers, and has one refusal.
#[test]
fn tags_must_hold_beside_everything_else() {
    let tags = [("colour".to_owned(), "red".to_owned())];
    let found = Version { tags: &tags, ..found() };
    let asking = |text, conditions| Conditions { if_tags: TagExpression::parse(text), ..conditions };
    let (red, blue) = ("colour='red'", "colour='blue'");
    for conditions in [Conditions::default(), if_match(CURRENT), if_none_match(STALE), if_modified_since(earlier())] {
        assert_eq!(asking(red, conditions.clone()).check_read(&found), Ok(()));
        assert_eq!(asking(red, conditions.clone()).check_write(Some(&found)), Ok(()));
        assert_eq!(asking(blue, conditions.clone()).check_read(&found), Err(Unmet::PreconditionFailed));
        assert_eq!(asking(blue, conditions).check_write(Some(&found)), Err(Unmet::PreconditionFailed));
    }
    // A tag that fails is the stronger answer on a read, and does not heal another header.
    assert_eq!(asking(blue, if_none_match(CURRENT)).check_read(&found), Err(Unmet::PreconditionFailed));
    assert_eq!(asking(red, if_none_match(CURRENT)).check_read(&found), Err(Unmet::NotModified));
    assert_eq!(asking(red, if_match(STALE)).check_write(Some(&found)), Err(Unmet::PreconditionFailed));
    // A blob that does not exist has no tags.
    assert_eq!(asking(red, Conditions::default()).check_write(None), Err(Unmet::PreconditionFailed));
    assert_eq!(asking(blue, if_none_match("*")).check_write(None), Err(Unmet::PreconditionFailed));
    assert!(asking(red, Conditions::default()).dates_only().is_empty());
}
