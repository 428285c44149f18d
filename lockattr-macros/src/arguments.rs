//! How a function's arguments get into its body.

use std::collections::BTreeSet;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt as _, quote_spanned};
use syn::ext::IdentExt as _;
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

use crate::item::Binding;

/// The statement that moves a name into the body, as the compiler does for the arguments of an `async fn`.
///
/// Both idents are the user's, so that warnings about the argument land on it.
pub(crate) fn rebound(binding: &Binding, used: &BTreeSet<String>) -> TokenStream {
    let span = Span::mixed_site();
    let Binding { ident, mutability, whole, attrs } = binding;
    let config = attrs.iter().filter(|attr| is_one_of(attr, &["cfg", "cfg_attr"]));
    // A `mut` deep in a pattern cannot move without changing how the pattern binds; the name moves in as
    // it is captured.
    if mutability.is_some() && !whole {
        return quote_spanned!(span=> #(#config)* let _ = &#ident;);
    }
    let lints = attrs.iter().filter_map(lints_of_binding);
    // The user did not write this line: clippy would blame them for it.
    let allow = if ident.to_string().starts_with('_') {
        quote_spanned! {span=>
            #[allow(clippy::shadow_same, clippy::used_underscore_binding, clippy::no_effect_underscore_binding)]
        }
    } else {
        quote_spanned!(span=> #[allow(clippy::shadow_same)])
    };
    let mark = used.contains(&ident.unraw().to_string()).then(|| {
        let config = config.clone();
        quote_spanned!(span=> #(#config)* let _ = &#ident;)
    });
    quote_spanned! {span=>
        #(#lints)* #allow let #mutability #ident = #ident;
        #mark
    }
}

/// What of an argument's attributes stays on it: an expectation about its use is met by its binding in the
/// body instead.
pub(crate) fn lints_of_argument(attr: &Attribute) -> Option<Attribute> {
    if is_one_of(attr, &["expect"]) {
        only_lints(attr, |lint| !is_about_use(lint))
    } else {
        Some(attr.clone())
    }
}

fn lints_of_binding(attr: &Attribute) -> Option<Attribute> {
    if is_one_of(attr, &["expect"]) {
        only_lints(attr, |lint| is_about_use(lint) || lint == "non_snake_case")
    } else {
        is_one_of(attr, &["cfg", "cfg_attr", "allow", "warn", "deny", "forbid"]).then(|| attr.clone())
    }
}

fn is_about_use(lint: &str) -> bool {
    matches!(lint, "unused" | "unused_variables" | "unused_mut" | "unused_assignments")
}

/// `#[expect(..)]` with those of its lints that `keep` wants; `None` when there are none.
fn only_lints(attr: &Attribute, keep: impl Fn(&str) -> bool) -> Option<Attribute> {
    let Meta::List(list) = &attr.meta else { return Some(attr.clone()) };
    let parsed = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    let Ok(lints) = parsed else { return Some(attr.clone()) };
    let kept: Punctuated<Meta, Token![,]> = lints
        .into_iter()
        .filter(|lint| match lint {
            Meta::Path(path) => keep(&path.to_token_stream().to_string()),
            _ => true,
        })
        .collect();
    kept.iter().any(|lint| matches!(lint, Meta::Path(_))).then(|| {
        let mut attr = attr.clone();
        if let Meta::List(list) = &mut attr.meta {
            list.tokens = kept.into_token_stream();
        }
        attr
    })
}

fn is_one_of(attr: &Attribute, names: &[&str]) -> bool {
    attr.path().get_ident().is_some_and(|ident| names.iter().any(|name| ident == name))
}

/// The future of a boxed function, with a use after each `let id = id;` of a name that the options read:
/// otherwise an argument that only the key reads is reported as unused.
pub(crate) fn with_uses(future: TokenStream, used: &BTreeSet<String>) -> TokenStream {
    let mut trees: Vec<_> = future.into_iter().collect();
    if let Some(TokenTree::Group(block)) = trees.last_mut() {
        let mut marked = Group::new(block.delimiter(), marked(block.stream(), used));
        marked.set_span(block.span());
        *block = marked;
    }
    trees.into_iter().collect()
}

fn marked(stream: TokenStream, used: &BTreeSet<String>) -> TokenStream {
    let span = Span::mixed_site();
    let mut out = TokenStream::new();
    let mut statement: Vec<TokenTree> = Vec::new();
    for tree in stream {
        let ends = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == ';');
        let braces = matches!(&tree, TokenTree::Group(_));
        statement.push(tree);
        if !ends && !braces {
            continue;
        }
        let is_used = rebinding(&statement).is_some_and(|name| used.contains(&name));
        let ident = if is_used { statement.get(statement.len() - 2).cloned() } else { None };
        out.append_all(statement.drain(..));
        if let Some(ident) = ident {
            out.extend(quote_spanned!(span=> let _ = &#ident;));
        }
    }
    out.extend(statement);
    out
}

/// The name of `let name = name;` or `let mut name = name;`.
fn rebinding(statement: &[TokenTree]) -> Option<String> {
    let words: Vec<_> = statement.iter().map(ToString::to_string).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["let", left, "=", right, ";"] | ["let", "mut", left, "=", right, ";"] if left == right => {
            Some(left.trim_start_matches("r#").to_owned())
        }
        _ => None,
    }
}
