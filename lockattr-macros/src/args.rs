//! First stage: the attribute's tokens to its arguments, with their spans.
//!
//! Invariant: every known argument that was written is in its slot, right or wrong, so that nothing which
//! was given is later called missing.

use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Expr, Token, token};

use crate::diag::{Errors, nearest};

/// An argument as it was written.
pub(crate) struct Given {
    pub(crate) name: Ident,
    pub(crate) value: Value,
}

pub(crate) enum Value {
    /// `renew`: the name alone.
    Flag,
    /// `key = expr`.
    Expr(Expr),
    /// It has been reported.
    Wrong,
}

macro_rules! arguments {
    ($($field:ident = $name:literal),* $(,)?) => {
        /// The arguments that were given.
        #[derive(Default)]
        pub(crate) struct Args { $(pub(crate) $field: Option<Given>,)* }

        const NAMES: &[&str] = &[$($name),*];

        impl Args {
            fn slot(&mut self, name: &str) -> Option<&mut Option<Given>> {
                match name {
                    $($name => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

arguments! {
    key = "key",
    keys = "keys",
    expires = "expires",
    wait = "wait",
    renew = "renew",
    on_busy = "on_busy",
    on_lost = "on_lost",
    on_error = "on_error",
    release = "release",
    min_hold = "min_hold",
    max_hold = "max_hold",
    once_per = "once_per",
    reentrant = "reentrant",
    lease = "lease",
    locker = "locker",
    krate = "crate",
}

/// What other libraries call an argument of ours.
const ELSEWHERE: &[(&str, &str)] = &[
    ("timeout", "expires"),
    ("ttl", "expires"),
    ("lease_time", "expires"),
    ("duration", "expires"),
    ("name", "key"),
    ("id", "key"),
    ("store", "locker"),
    ("client", "locker"),
    ("pool", "locker"),
    ("on_locked", "on_busy"),
    ("on_failure", "on_error"),
    ("skip", "on_busy"),
    ("retry", "wait"),
    ("blocking", "wait"),
    ("wait_timeout", "wait"),
    ("auto_renew", "renew"),
    ("extend", "renew"),
    ("at_least", "min_hold"),
    ("at_most", "max_hold"),
    ("every", "once_per"),
    ("window", "once_per"),
    ("guard", "lease"),
    ("recursive", "reentrant"),
];

impl Args {
    /// Reads `name`, `name = expr` and commas; after a mistake it goes on behind the next comma.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let parser = |input: ParseStream<'_>| {
            while !input.is_empty() {
                if let Err(error) = args.argument(input, errors) {
                    errors.push(error);
                    skip_to_comma(input)?;
                }
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            Ok(())
        };
        if let Err(error) = parser.parse2(tokens) {
            errors.push(error);
        }
        args
    }

    fn argument(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        if !input.peek(Ident::peek_any) {
            return Err(input.error("expected an argument, such as `key = \"account:{id}\"`"));
        }
        let name = input.call(Ident::parse_any)?;
        let value = value(&name, input, errors);
        let text = name.unraw().to_string();
        match self.slot(&text) {
            None => errors.on(&name, unknown(&text)),
            Some(slot) if slot.is_some() => {
                errors.on(&name, format!("`{text}` is given twice; leave one out"));
            }
            Some(slot) => *slot = Some(Given { name, value }),
        }
        Ok(())
    }
}

fn value(name: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> Value {
    if input.is_empty() || input.peek(Token![,]) {
        return Value::Flag;
    }
    let value = if input.peek(Token![=]) && !input.peek(Token![==]) {
        input.parse::<Token![=]>().and_then(|_| input.parse())
    } else if input.peek(token::Paren) {
        Err(syn::Error::new_spanned(name, format!("`{name}` needs a value: `{name} = ..`")))
    } else {
        Err(input.error(format!("expected `,` or `= ..` after `{name}`")))
    };
    match value {
        Ok(_) if !input.is_empty() && !input.peek(Token![,]) => {
            errors.push(input.error(format!("expected `,` after the value of `{name}`")));
        }
        Ok(expr) => return Value::Expr(expr),
        Err(error) => errors.push(error),
    }
    // What is left of a broken value says nothing more; the stream ends or the next comma follows.
    let _ = skip_to_comma(input);
    Value::Wrong
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

fn unknown(name: &str) -> String {
    let elsewhere = ELSEWHERE.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
    match elsewhere.or_else(|| nearest(name, NAMES.iter().copied())) {
        Some(ours) => format!("unknown option `{name}`; did you mean `{ours}`?"),
        None => format!("unknown option `{name}`; there are {}", NAMES.join(", ")),
    }
}
