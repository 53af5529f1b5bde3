//! The order in which signed headers are put together.
//!
//! It is the order of a dictionary, not of bytes: hyphens and apostrophes count only when nothing else differs, and
//! punctuation comes before digits, digits before letters.

use std::cmp::Ordering;

/// Compares two header names in lower case.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    first_pass(left).cmp(first_pass(right)).then_with(|| second_pass(left, right))
}

/// Everything but hyphens and apostrophes, by weight.
fn first_pass(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().filter(|byte| !is_ignorable(*byte)).map(weight)
}

/// Where the names first differ, one has a hyphen and the other does not: that one comes later.
fn second_pass(left: &str, right: &str) -> Ordering {
    let differing = left.bytes().zip(right.bytes()).find(|(left, right)| left != right);
    match differing {
        Some((left, right)) => (is_ignorable(left), left).cmp(&(is_ignorable(right), right)),
        None => left.len().cmp(&right.len()),
    }
}

fn is_ignorable(byte: u8) -> bool {
    matches!(byte, b'-' | b'\'')
}

/// Punctuation has the weight of its place in this row; digits and letters follow in their own order.
fn weight(byte: u8) -> u8 {
    const PUNCTUATION: &[u8] = b"!#$%&*.^_`|~+";
    PUNCTUATION.iter().position(|known| *known == byte).map_or(byte.to_ascii_lowercase(), |place| place as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_that_clients_agree_on() {
        let expected = [
            "x-ms-meta-a",
            "x-ms-meta-a_b",
            "x-ms-meta-a1",
            "x-ms-meta-ab",
            "x-ms-meta-a-b",
            "x-ms-meta-a-c",
            "x-ms-metab",
            "x-ms-meta-b",
        ];
        let mut names = expected;
        names.reverse();
        names.sort_by(|left, right| compare(left, right));
        assert_eq!(names, expected);
    }

    #[test]
    fn it_is_an_order() {
        let names = ["a", "a-", "-a", "a'", "ab", "a-b", "-ab", "ab-", "a1", "a_", "a+", "b", "-", ""];
        for left in names {
            for right in names {
                assert_eq!(compare(left, right), compare(right, left).reverse(), "{left:?} {right:?}");
                assert_eq!(compare(left, right) == Ordering::Equal, left == right);
                for third in names {
                    if compare(left, right).is_le() && compare(right, third).is_le() {
                        assert!(compare(left, third).is_le(), "{left:?} {right:?} {third:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn punctuation_before_digits_before_letters() {
        let row = "!#$%&*.^_`|~+09az";
        let weights: Vec<u8> = row.bytes().map(weight).collect();
        assert!(weights.is_sorted());
    }
}
