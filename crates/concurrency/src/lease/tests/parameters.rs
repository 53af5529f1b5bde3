//! Ids, durations and periods: what is parsed, what is refused, and how an id is written.

use super::*;
use crate::lease::DurationKind;

const ID: LeaseId =
    LeaseId([0x1f, 0x81, 0x2d, 0x37, 0x1a, 0x4b, 0x4c, 0x3d, 0x9e, 0x8f, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45]);

#[test]
fn an_id_is_read_in_each_of_its_forms_and_in_any_case() {
    let forms = [
        "1f812d37-1a4b-4c3d-9e8f-abcdef012345",
        "1F812D37-1A4B-4C3D-9E8F-ABCDEF012345",
        "1f812D37-1A4b-4c3D-9E8f-aBcDeF012345",
        "1f812d371a4b4c3d9e8fabcdef012345",
        "1F812D371A4B4C3D9E8FABCDEF012345",
        "{1f812d37-1a4b-4c3d-9e8f-abcdef012345}",
        "(1F812D37-1A4B-4C3D-9E8F-ABCDEF012345)",
    ];
    for form in forms {
        assert_eq!(LeaseId::parse(form), Some(ID), "{form}");
    }
}

#[test]
fn an_id_is_written_in_lower_case_with_hyphens() {
    assert_eq!(ID.to_string(), "1f812d37-1a4b-4c3d-9e8f-abcdef012345");
    assert_eq!(LeaseId([0; 16]).to_string(), "00000000-0000-0000-0000-000000000000");
    assert_eq!(LeaseId::parse(&ID.to_string()), Some(ID));
}

#[test]
fn what_is_no_id() {
    let wrong = [
        "",
        "{}",
        "1f812d37",
        "1f812d37-1a4b-4c3d-9e8f-abcdef01234",
        "1f812d37-1a4b-4c3d-9e8f-abcdef0123456",
        "1f812d37-1a4b-4c3d-9e8f-abcdef01234g",
        "1f812d371a4b4c3d9e8fabcdef01234g",
        "1f812d371-a4b-4c3d-9e8f-abcdef012345",
        "1f812d37-1a4b-4c3d-9e8f-abcdef012345-",
        "-1f812d371a4b4c3d9e8fabcdef01234",
        "{1f812d371a4b4c3d9e8fabcdef012345}",
        "{1f812d37-1a4b-4c3d-9e8f-abcdef012345)",
        "(1f812d37-1a4b-4c3d-9e8f-abcdef012345}",
        "{1f812d37-1a4b-4c3d-9e8f-abcdef012345",
        "{{1f812d37-1a4b-4c3d-9e8f-abcdef012345}}",
        " 1f812d37-1a4b-4c3d-9e8f-abcdef012345",
        "1f812d37-1a4b-4c3d-9e8f-abcdef0123é",
        "éééééééééééééééé",
    ];
    for text in wrong {
        assert_eq!(LeaseId::parse(text), None, "{text}");
    }
}

#[test]
fn a_lease_is_infinite_or_takes_15_to_60_seconds() {
    assert_eq!(LeaseDuration::from_header_value(-1), Some(LeaseDuration::Infinite));
    for value in 15..=60u8 {
        assert_eq!(LeaseDuration::from_header_value(value.into()), Some(LeaseDuration::Seconds(value)));
    }
    for value in [i64::MIN, -256, -2, 0, 1, 14, 61, 255, 256 + 15, i64::MAX] {
        assert_eq!(LeaseDuration::from_header_value(value), None, "{value}");
    }
}

#[test]
fn a_break_period_is_0_to_60_seconds() {
    for value in 0..=60u8 {
        let period = BreakPeriod::from_header_value(value.into()).expect("within the limits");
        assert_eq!(period.seconds(), value);
    }
    for value in [i64::MIN, -1, 61, 255, 256, i64::MAX] {
        assert_eq!(BreakPeriod::from_header_value(value), None, "{value}");
    }
}

#[test]
fn a_client_is_told_whether_a_duration_ends() {
    assert_eq!(LeaseDuration::Infinite.kind(), DurationKind::Infinite);
    assert_eq!(LeaseDuration::Seconds(15).kind(), DurationKind::Fixed);
}
