//! The name of the table.

/// What the table is called unless the options say otherwise.
const DEFAULT: &str = "lockattr_lock";
/// What PostgreSQL takes, and MySQL one more.
const LONGEST: usize = 63;

/// A table's name as it stands in a statement, quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Table {
    quoted: Box<str>,
    plain: Box<str>,
}

impl Table {
    /// The table of this name, which may begin with a schema or a database and a dot.
    pub(in crate::store) fn new(name: &str, quote: char) -> Result<Self, String> {
        let parts: Vec<_> = name.split('.').collect();
        if parts.len() > 2 || !parts.iter().all(|part| is_name(part)) {
            return Err(format!(
                "a table's name is letters, digits and underscores, at most {LONGEST}, and begins with no digit; before \
                 it may stand such a name of its schema and a dot, as in `locks.{DEFAULT}`"
            ));
        }
        let quoted: Vec<_> = parts.iter().map(|part| format!("{quote}{part}{quote}")).collect();
        Ok(Self { quoted: quoted.join(".").into(), plain: name.into() })
    }

    pub(in crate::store) fn default(quote: char) -> Self {
        Self { quoted: format!("{quote}{DEFAULT}{quote}").into(), plain: DEFAULT.into() }
    }

    /// For a statement.
    pub(in crate::store) fn quoted(&self) -> &str {
        &self.quoted
    }

    /// For people.
    pub(in crate::store) fn plain(&self) -> &str {
        &self.plain
    }
}

fn is_name(part: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    part.len() <= LONGEST && part.starts_with(begins) && part.chars().all(|c| begins(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_nothing_else_gets_through() {
        assert_eq!(Table::new("locks.Job_2", '"').unwrap().quoted(), "\"locks\".\"Job_2\"");
        assert_eq!(Table::default('`').quoted(), "`lockattr_lock`");
        let long = "x".repeat(LONGEST + 1);
        for name in ["", ".", "a.", ".a", "a.b.c", "2a", "a b", "a\"b", "a`b", "a;b", "é", &long] {
            assert!(Table::new(name, '"').is_err(), "{name}");
        }
    }
}
