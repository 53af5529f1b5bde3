//! The names of snapshots, `@GMT-2026.01.02-03.04.05`, as they are in paths and in the answer of SRV_ENUMERATE_SNAPSHOTS. Times are in
//! UTC.

use ::wire::dates;
use concurrency::Timestamp;

const FORM: &str = "@GMT-0000.00.00-00.00.00";

/// The token of a snapshot.
#[must_use]
pub fn of(time: Timestamp) -> String {
    let iso = dates::iso_seconds(time);
    let (date, clock) = (&iso.as_str()[..10], &iso.as_str()[11..19]);
    format!("@GMT-{}-{}", date.replace('-', "."), clock.replace(':', "."))
}

/// The time that a token names. `None` for a name that is no token.
#[must_use]
pub fn parse(name: &str) -> Option<Timestamp> {
    let is_form = name.len() == FORM.len()
        && name
            .bytes()
            .zip(FORM.bytes())
            .all(|(byte, form)| if form == b'0' { byte.is_ascii_digit() } else { byte == form });
    if !is_form {
        return None;
    }
    let (date, clock) = (name[5..15].replace('.', "-"), name[16..].replace('.', ":"));
    dates::parse_iso(&format!("{date}T{clock}Z"))
}

/// A path without the first token in it, and the time that this names.
#[must_use]
pub fn split(path: &str) -> (String, Option<Timestamp>) {
    let mut time = None;
    let mut names = Vec::new();
    for name in path.split('\\') {
        match parse(name).filter(|_| time.is_none()) {
            Some(found) => time = Some(found),
            None => names.push(name),
        }
    }
    (names.join("\\"), time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        let time = dates::parse_iso("2026-11-18T09:05:07Z").unwrap();
        assert_eq!(of(time), "@GMT-2026.11.18-09.05.07");
        assert_eq!(parse("@GMT-2026.11.18-09.05.07"), Some(time));
        for name in [
            "",
            "@GMT-",
            "@GMT-2026.11.18-09.05.7",
            "@GMT-2026.11.18-09.05.077",
            "@gmt-2026.11.18-09.05.07",
            "@GMT-2026-11-18-09.05.07",
            "@GMT-2026.13.18-09.05.07",
            "@GMT-2026.11.18-24.05.07",
            "@GMT-2026.11.18-09.05.0\u{e9}",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn the_first_token_of_a_path_counts() {
        let (one, two) = ("@GMT-2026.11.18-09.05.07", "@GMT-2026.11.18-09.05.08");
        let time = parse(one);
        for (path, without) in [
            (one.to_owned(), ""),
            (format!("{one}\\dir\\file"), "dir\\file"),
            (format!("dir\\{one}\\file"), "dir\\file"),
            (format!("dir\\{one}"), "dir"),
        ] {
            assert_eq!(split(&path), (without.to_owned(), time), "{path}");
        }
        assert_eq!(split(&format!("{one}\\{two}")), (two.to_owned(), time));
        assert_eq!(split("dir\\file"), ("dir\\file".to_owned(), None));
    }
}
