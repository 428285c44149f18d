//! `key!` and `assert_locked!`: the text that the attribute makes of the same template, for other code.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::parse::{ParseStream, Parser as _};
use syn::{Expr, LitStr, Path, Token};

use crate::diag::Errors;
use crate::expand::value;
use crate::plan::{Rendered, free};
use crate::value::text;

/// The text.
pub(crate) fn key(input: TokenStream) -> TokenStream {
    // After a mistake it is still a value of the right type, so that nothing else is reported.
    match template("key", input) {
        Ok(Template { rendered, .. }) => rendered,
        Err(errors) => quote!({ #errors ::std::string::String::new() }),
    }
}

/// The check that the running body holds it.
pub(crate) fn assert_locked(input: TokenStream) -> TokenStream {
    match template("assert_locked", input) {
        Ok(Template { private, literal, rendered }) => {
            // Shown where the user's template is, which is what the panic then names.
            let function = quote_spanned!(literal.span()=> assert_locked);
            quote!(#private::#function(#literal, &#rendered))
        }
        Err(errors) => quote!({ #errors }),
    }
}

struct Template {
    private: Path,
    literal: LitStr,
    /// A call that gives the text.
    rendered: TokenStream,
}

/// Reads the path of the runtime, a semicolon and a template.
fn template(name: &str, input: TokenStream) -> Result<Template, TokenStream> {
    let mut errors = Errors::default();
    let found = match (|input: ParseStream<'_>| read(name, input)).parse2(input) {
        Ok((private, expr)) => resolved(name, &expr, &mut errors).map(|found| (private, found)),
        Err(error) => {
            errors.push(error);
            None
        }
    };
    match (errors.into_tokens(), found) {
        (None, Some((private, (literal, Rendered { separators, texts, values })))) => {
            let path = private.to_token_stream();
            let values = values.iter().map(|given| value(&path, given));
            let rendered = quote_spanned! {Span::mixed_site()=>
                #path::rendered(#separators, &[#(#texts),*], &[#(#values),*])
            };
            Ok(Template { private, literal, rendered })
        }
        (errors, _) => Err(errors.unwrap_or_default()),
    }
}

fn read(name: &str, input: ParseStream<'_>) -> syn::Result<(Path, Expr)> {
    let private = input.parse()?;
    input.parse::<Token![;]>()?;
    let says = format!("`{name}!` takes one template: `{name}!(\"account:{{id}}\")`");
    if input.is_empty() {
        return Err(input.error(says));
    }
    let template = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    if !input.is_empty() {
        return Err(input.error(says));
    }
    Ok((private, template))
}

fn resolved(name: &str, expr: &Expr, errors: &mut Errors) -> Option<(LitStr, Rendered)> {
    let literal = text(expr);
    if literal.is_none() {
        errors.on(expr, format!("`{name}!` takes one template: `{name}!(\"account:{{id}}\")`"));
    }
    let literal = literal?;
    Some((literal.clone(), free(literal, errors)?))
}
