//! `key!`: the text that the attribute makes of the same template, for other code.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::parse::{ParseStream, Parser as _};
use syn::{Expr, Path, Token};

use crate::diag::Errors;
use crate::expand::value;
use crate::plan::{Rendered, free};
use crate::value::text;

/// Reads the path of the runtime, a semicolon and a template.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let rendered = match read.parse2(input) {
        Ok((private, expr)) => template(&expr, &mut errors).map(|rendered| (private, rendered)),
        Err(error) => {
            errors.push(error);
            None
        }
    };
    match (errors.into_tokens(), rendered) {
        (None, Some((private, Rendered { separators, texts, values }))) => {
            let private = private.to_token_stream();
            let values = values.iter().map(|given| value(&private, given));
            quote_spanned! {Span::mixed_site()=>
                #private::rendered(#separators, &[#(#texts),*], &[#(#values),*])
            }
        }
        // Still a value of the right type, so that nothing else is reported.
        (errors, _) => quote!({ #errors ::std::string::String::new() }),
    }
}

fn read(input: ParseStream<'_>) -> syn::Result<(Path, Expr)> {
    let private = input.parse()?;
    input.parse::<Token![;]>()?;
    let template = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    Ok((private, template))
}

fn template(expr: &Expr, errors: &mut Errors) -> Option<Rendered> {
    let literal = text(expr);
    if literal.is_none() {
        errors.on(expr, "`key!` takes a template: `key!(\"account:{id}\")`");
    }
    free(literal?, errors)
}
