//! From placeholders and expressions to keys.
//!
//! Invariant: a value of a template is always encoded, an expression never; nothing borrowed is kept.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fmt::{self, Write as _};
use std::rc::Rc;
use std::sync::Arc;

use crate::error::{LockError, Locked};
use crate::key;

/// The keys of one call, rendered so far.
#[derive(Debug, Default)]
pub struct Keys {
    list: Vec<Locked>,
    wrong: Option<LockError>,
}

impl Keys {
    /// No keys yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: Vec::new(), wrong: None }
    }

    pub(super) fn checked(self) -> Result<Vec<Locked>, LockError> {
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self.list),
        }
    }

    /// Adds a key that an expression gave. One that still has a placeholder for one of `arguments` was
    /// meant as a template: it would be one lock for all calls.
    fn push(&mut self, source: &'static str, key: &str, arguments: &[&str]) {
        let locked = Locked::new(source, key);
        if arguments.iter().any(|name| has_placeholder(key, name)) {
            let reason = "has an argument's placeholder in it, which only a literal template fills in; \
                          write the template in the attribute, or use format!";
            self.wrong.get_or_insert(LockError::InvalidKey { locked: locked.clone(), reason });
        }
        self.list.push(locked);
    }

    fn refuse_none_since(&mut self, before: usize, source: &'static str) {
        if self.list.len() == before {
            let locked = Locked::new(source, "");
            let reason = "list is empty; lock at least one key, or skip the call";
            self.wrong.get_or_insert(LockError::InvalidKey { locked, reason });
        }
    }
}

/// Whether `{name}`, `{name.field}` or `{name:spec}` is in `key`.
fn has_placeholder(key: &str, name: &str) -> bool {
    key.split('{').skip(1).any(|after| {
        after.strip_prefix(name).is_some_and(|rest| rest.starts_with(['}', '.', ':']) && rest.contains('}'))
    })
}

/// Adds the key that a template gives; `texts` has one more entry than `values`, which stand between them.
pub fn template(
    keys: &mut Keys,
    template: &'static str,
    separators: &str,
    texts: &[&str],
    values: &[fmt::Arguments<'_>],
) {
    keys.list.push(Locked::new(template, rendered(separators, texts, values)));
}

/// The text of a template: `texts` as they are, with `values` between them, encoded.
#[must_use]
pub fn rendered(separators: &str, texts: &[&str], values: &[fmt::Arguments<'_>]) -> String {
    let mut key = String::with_capacity(texts.iter().map(|text| text.len() + 8).sum());
    for (i, text) in texts.iter().enumerate() {
        key.push_str(text);
        if let Some(value) = values.get(i) {
            // A `Display` that fails leaves what it has written, as `format!` would before it panics.
            let _ = Encoded { key: &mut key, separators }.write_fmt(*value);
        }
    }
    key
}

struct Encoded<'a> {
    key: &'a mut String,
    separators: &'a str,
}

impl fmt::Write for Encoded<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        key::push_value(self.key, text, self.separators);
        Ok(())
    }
}

/// A placeholder's value, as `Display` shows it.
pub fn shown<V: LockValue>(value: &V) -> &dyn fmt::Display {
    value.shown()
}

/// What may stand in a placeholder.
#[diagnostic::on_unimplemented(
    message = "`{Self}` doesn't implement `std::fmt::Display`, so a key cannot show it",
    label = "this placeholder's value has no text of its own",
    note = "name a field that has one, or use an expression: `key = format!(\"..\", ..)`",
    note = "for an `Option` say there what a missing value means"
)]
pub trait LockValue {
    /// The value as `Display` shows it.
    fn shown(&self) -> &dyn fmt::Display;
}

#[diagnostic::do_not_recommend]
impl<T: fmt::Display> LockValue for T {
    fn shown(&self) -> &dyn fmt::Display {
        self
    }
}

/// Adds the key that an expression gives; `source` is its text.
pub fn expression<K: LockKey + ?Sized>(keys: &mut Keys, source: &'static str, key: &K, arguments: &[&str]) {
    keys.push(source, key.lock_key(), arguments);
}

/// Adds every key of a list; `source` is the text of the expression that gave the list.
pub fn each<K: KeyList>(keys: &mut Keys, source: &'static str, list: K, arguments: &[&str]) {
    let before = keys.list.len();
    list.each_key(&mut |key| keys.push(source, key, arguments));
    keys.refuse_none_since(before, source);
}

/// Adds every key of a list that stays where it is, such as an argument or a field.
pub fn each_of<K: KeyPlace + ?Sized>(keys: &mut Keys, source: &'static str, list: &K, arguments: &[&str]) {
    let before = keys.list.len();
    list.each_key(&mut |key| keys.push(source, key, arguments));
    keys.refuse_none_since(before, source);
}

/// What an expression may give as a key: everything that shows as text without a format.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a lock key",
    label = "a key is text (`AsRef<str>`)",
    note = "write a template such as `\"account:{{id}}\"`, or an expression such as `format!(..)` or `id.to_string()`"
)]
pub trait LockKey {
    /// The key.
    fn lock_key(&self) -> &str;
}

impl<T: AsRef<str> + ?Sized> LockKey for T {
    fn lock_key(&self) -> &str {
        self.as_ref()
    }
}

/// What an expression may give as a list of keys.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of lock keys",
    label = "a list of keys iterates over text (`AsRef<str>`)",
    note = "write a list such as `[\"account:{{from}}\", \"account:{{to}}\"]`, or an expression such as `ids.iter().map(|id| format!(\"account:{{id}}\"))`"
)]
pub trait KeyList {
    /// Shows each key to `see`.
    fn each_key(self, see: &mut dyn FnMut(&str));
}

impl<I: IntoIterator<Item: AsRef<str>>> KeyList for I {
    fn each_key(self, see: &mut dyn FnMut(&str)) {
        for key in self {
            see(key.as_ref());
        }
    }
}

/// What an expression that names a place may give as a list of keys: it is borrowed, so the body still has it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of lock keys",
    label = "a list of keys is a slice, an array, a `Vec` or a set of text (`AsRef<str>`)",
    note = "give any other as an iterator: `keys = ids.iter().map(|id| format!(\"account:{{id}}\"))`"
)]
pub trait KeyPlace {
    /// Shows each key to `see`.
    fn each_key(&self, see: &mut dyn FnMut(&str));
}

macro_rules! places {
    ($([$($generics:tt)*] $list:ty;)*) => {$(
        impl<K: AsRef<str>, $($generics)*> KeyPlace for $list {
            fn each_key(&self, see: &mut dyn FnMut(&str)) {
                for key in self {
                    see(key.as_ref());
                }
            }
        }
    )*};
}
places! {
    [] [K];
    [const N: usize] [K; N];
    [] Vec<K>;
    [] VecDeque<K>;
    [] BTreeSet<K>;
    [S] HashSet<K, S>;
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<P: KeyPlace + ?Sized> KeyPlace for $pointer {
            fn each_key(&self, see: &mut dyn FnMut(&str)) {
                (**self).each_key(see);
            }
        }
    )*};
}
pointers!(&P, &mut P, Box<P>, Rc<P>, Arc<P>);
