//! The scripts: constant texts, that get what varies by KEYS and ARGV alone.
//!
//! Invariant: every key that a script touches is one of its KEYS, and each line has at most one command.

use std::sync::LazyLock;

use redis::Script as Text;

/// A script, and what it is called by.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: &'static str,
    pub(super) hash: String,
}

impl Script {
    fn new(text: &'static str) -> Self {
        Self { text, hash: Text::new(text).get_hash().to_owned() }
    }

    /// The Redis command in a line of the text, counted from one.
    pub(super) fn command(&self, line: usize) -> Option<&'static str> {
        let line = self.text.lines().nth(line.checked_sub(1)?)?;
        let (_, call) = line.split_once("call('")?;
        call.split('\'').next()
    }
}

macro_rules! scripts {
    ($($name:ident: $($file:literal)+;)+) => {
        $(pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(concat!($(include_str!($file)),+)));)+

        #[cfg(test)]
        fn all() -> Vec<&'static Script> {
            vec![$(&$name),+]
        }
    };
}

scripts! {
    ACQUIRE: "lua/now.lua" "lua/free.lua" "lua/acquire.lua";
    RENEW: "lua/now.lua" "lua/renew.lua";
    RELEASE: "lua/now.lua" "lua/free.lua" "lua/release.lua";
    FORCE: "lua/now.lua" "lua/free.lua" "lua/force.lua";
    LOOK: "lua/now.lua" "lua/look.lua";
    COLLECT: "lua/now.lua" "lua/collect.lua";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_command_and_it_is_found() {
        for script in all() {
            for (index, line) in script.text.lines().enumerate() {
                assert!(line.matches("call('").count() <= 1, "{line}");
                assert_eq!(script.command(index + 1).is_some(), line.contains("call('"), "{line}");
            }
            assert_eq!(script.command(0), None);
        }
        let time = RENEW.text.lines().position(|line| line.contains("TIME")).map(|index| index + 1);
        assert_eq!(time.and_then(|line| RENEW.command(line)), Some("TIME"));
    }
}
