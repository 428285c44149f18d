//! The names that keys and options may use: the function's arguments and `self`.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt as _;
use syn::{FnArg, LitStr, Pat};

use crate::diag::{Errors, nearest};
use crate::item::{Form, Item};
use crate::key::Root;

/// What placeholders can name.
pub(crate) struct Names<'a> {
    item: &'a Item,
}

impl<'a> Names<'a> {
    pub(crate) fn of(item: &'a Item) -> Self {
        Self { item }
    }

    /// The argument called `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Ident> {
        self.item.binding(name.trim_start_matches("r#")).map(|binding| &binding.ident)
    }

    fn all(&self) -> impl Iterator<Item = String> {
        self.item.bindings.iter().map(|binding| binding.ident.unraw().to_string())
    }

    /// The name and the token for a placeholder's root. The token resolves like the argument, also when one
    /// of them comes out of a `macro_rules`, and shows in errors as the literal.
    pub(crate) fn resolve(
        &self,
        root: &Root,
        literal: &LitStr,
        errors: &mut Errors,
    ) -> Option<(String, Ident)> {
        let found = match root {
            Root::SelfValue => self.own().ok_or_else(|| {
                "the key uses `self`, and the function has no `self`; name an argument".to_owned()
            }),
            Root::Name(name) => self.get(name).ok_or_else(|| self.unknown(name)),
            Root::Position(position) => self.at(*position),
        };
        match found {
            Ok(ident) => {
                let mut token = ident.clone();
                token.set_span(literal.span().resolved_at(ident.span()));
                Some((ident.unraw().to_string(), token))
            }
            Err(message) => {
                errors.on(literal, message);
                None
            }
        }
    }

    fn own(&self) -> Option<&'a Ident> {
        self.item.receiver.as_ref()
    }

    fn unknown(&self, name: &str) -> String {
        let all: Vec<_> = self.all().collect();
        let advice = if let Some(near) = nearest(name, all.iter().map(String::as_str)) {
            format!("did you mean `{near}`?")
        } else if name == "this" && self.own().is_some() {
            "did you mean `self`?".to_owned()
        } else if all.is_empty() {
            "the function has none; use an expression".to_owned()
        } else {
            format!("write {}, or use an expression", one_of(&all))
        };
        let boxed = match self.item.form {
            Form::Async => "",
            Form::Boxed { .. } => {
                " (under `#[async_trait]` an argument that is taken apart has no name here)"
            }
        };
        format!("`{name}` in the key is not an argument; {advice}{boxed}")
    }

    fn at(&self, position: usize) -> Result<&'a Ident, String> {
        let mut arguments = self.item.sig.inputs.iter().filter_map(|argument| match argument {
            FnArg::Typed(typed) => Some(typed),
            FnArg::Receiver(_) => None,
        });
        let count = arguments.clone().count();
        match arguments.nth(position).map(|argument| &*argument.pat) {
            Some(Pat::Ident(pattern)) => Ok(&pattern.ident),
            Some(pattern) => Err(format!(
                "`{{{position}}}` in the key is a pattern: `{}`; write one of its names",
                pattern.to_token_stream()
            )),
            None => Err(format!(
                "`{{{position}}}` in the key: the function has {count} arguments, counted from 0 and without `self`"
            )),
        }
    }
}

/// Adds the arguments that `tokens` read, also in the text of `format!`.
pub(crate) fn in_tokens(names: &Names<'_>, tokens: &impl ToTokens, used: &mut BTreeSet<String>) {
    see(names, tokens.to_token_stream(), used);
}

fn see(names: &Names<'_>, tokens: TokenStream, used: &mut BTreeSet<String>) {
    for tree in tokens {
        match tree {
            TokenTree::Group(group) => see(names, group.stream(), used),
            TokenTree::Ident(ident) => {
                used.extend(names.get(&ident.to_string()).map(|found| found.unraw().to_string()));
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                used.extend(names.all().filter(|name| text.contains(&format!("{{{name}"))));
            }
            TokenTree::Punct(_) => {}
        }
    }
}

/// "`a`", "`a` or `b`", "`a`, `b` or `c`".
fn one_of(names: &[String]) -> String {
    let mut names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} or {last}", names.join(", ")) }
}

/// An identifier for `name`, raw where the plain word would be a keyword.
pub(crate) fn ident(name: &str, span: Span) -> Ident {
    // `gen` is a keyword in some editions only, and the raw form means the same in all.
    if name != "gen" && syn::parse_str::<Ident>(name).is_ok() {
        Ident::new(name, span)
    } else {
        Ident::new_raw(name, span)
    }
}
