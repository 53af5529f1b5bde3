//! Names of tables: letters and digits, compared without case, shown as they were written at creation.

use wire::names::NameError;

const LENGTH_MIN: usize = 3;
const LENGTH_MAX: usize = 63;
/// `Tables` is the set of all tables in a URL, so no table can have that name.
const RESERVED: &str = "tables";

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableName(Box<str>);

impl TableName {
    pub fn parse(name: &str) -> Result<TableName, NameError> {
        if !(LENGTH_MIN..=LENGTH_MAX).contains(&name.chars().count()) {
            return Err(NameError::Length);
        }
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && !name.eq_ignore_ascii_case(RESERVED);
        is_name.then(|| TableName(name.into())).ok_or(NameError::Characters)
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name in the form in which names are compared.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    pub fn is(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["abc", "A1b", "Z99", &"x".repeat(63)] {
            assert_eq!(TableName::parse(name).map(|name| name.as_str().to_owned()), Ok(name.to_owned()));
        }
        for name in ["", "ab", &"x".repeat(64)] {
            assert_eq!(TableName::parse(name), Err(NameError::Length), "{name}");
        }
        for name in ["1ab", "a-b", "a_b", "a b", "äbc", "$batch", "Tables"] {
            assert_eq!(TableName::parse(name), Err(NameError::Characters), "{name}");
        }
        let name = TableName::parse("MyTable").unwrap();
        assert!(name.is("mytable") && name.folded() == "mytable");
    }
}
