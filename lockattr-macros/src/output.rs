//! What must be done to the return type and the body before they can stand elsewhere.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::quote_spanned;

use crate::item::braced;

/// A type with `_` in the place of each `impl Trait`, which no expression can name.
pub(crate) fn without_impl(ty: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut trees = ty.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), without_impl(group.stream()));
                inner.set_span(group.span());
                out.extend([TokenTree::Group(inner)]);
            }
            TokenTree::Ident(word) if word == "impl" => {
                let span = Span::mixed_site().located_at(word.span());
                out.extend(quote_spanned!(span=> _));
                skip_bounds(&mut trees);
            }
            other => out.extend([other]),
        }
    }
    out
}

/// Skips to the end of the bounds of an `impl`: a comma or a `>` that is not theirs.
fn skip_bounds(trees: &mut std::iter::Peekable<proc_macro2::token_stream::IntoIter>) {
    let mut depth = 0_usize;
    let mut arrow = false;
    while let Some(tree) = trees.peek() {
        if let TokenTree::Punct(punct) = tree {
            match punct.as_char() {
                '<' => depth += 1,
                '>' if arrow => {}
                '>' | ',' | ';' if depth == 0 => return,
                '>' => depth -= 1,
                _ => {}
            }
            arrow = punct.as_char() == '-';
        } else {
            arrow = false;
        }
        trees.next();
    }
}

/// The body as a block inside another one.
///
/// The compiler's `unused_braces` takes a nested block of one expression on one line for a mistake of the
/// user's. A statement in it stops that, and is added only where there is none: the group itself keeps the
/// spans of its two braces.
pub(crate) fn quiet_braces(body: &Group) -> Group {
    let has_statement = body.stream().into_iter().any(|tree| match tree {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Ident(ident) => ident == "let",
        _ => false,
    });
    if has_statement && body.delimiter() == Delimiter::Brace {
        return body.clone();
    }
    let mut stream = quote_spanned!(Span::mixed_site()=> const _: () = (););
    stream.extend(body.stream());
    braced(stream, body)
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn impl_types_become_holes() {
        for (ty, expected) in [
            (quote!(Result<impl Fn(u8) -> u8, E>), quote!(Result<_, E>)),
            (
                quote!(Result<(impl Iterator<Item = impl Display> + use<'a, T>, u8), E>),
                quote!(Result<(_, u8), E>),
            ),
            (
                quote!(Result<Box<dyn Iterator<Item = impl Copy>>, E>),
                quote!(Result<Box<dyn Iterator<Item = _>>, E>),
            ),
            (quote!(Result<[impl Copy; 3], E>), quote!(Result<[_; 3], E>)),
            (quote!(Result<impl for<'x> Fn(&'x str) -> &'x str>), quote!(Result<_>)),
            (quote!(Result<u8, E>), quote!(Result<u8, E>)),
        ] {
            assert_eq!(without_impl(ty).to_string(), expected.to_string());
        }
    }
}
