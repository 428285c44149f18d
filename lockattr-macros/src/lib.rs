//! The attribute of lockattr. Use the `lockattr` crate, which re-exports it.

mod args;
mod arguments;
mod diag;
mod expand;
mod item;
mod key;
mod key_macro;
mod names;
mod output;
mod plan;
mod value;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as TokenStream2;

use crate::args::Args;
use crate::diag::Errors;
use crate::item::Item;
use crate::plan::Plan;

/// Runs an `async fn` under a distributed lock. The `lockattr` crate documents the arguments.
#[proc_macro_attribute]
pub fn distributed_lock(arguments: TokenStream, item: TokenStream) -> TokenStream {
    attribute(arguments.into(), item.into()).into()
}

/// See `lockattr::key!`, which passes its own path in front.
#[doc(hidden)]
#[proc_macro]
pub fn key(input: TokenStream) -> TokenStream {
    key_macro::key(input.into()).into()
}

/// See `lockattr::assert_locked!`, which passes its own path in front.
#[doc(hidden)]
#[proc_macro]
pub fn assert_locked(input: TokenStream) -> TokenStream {
    key_macro::assert_locked(input.into()).into()
}

/// The three stages. After a mistake the item is still there, so that nothing else is reported about it.
fn attribute(arguments: TokenStream2, item: TokenStream2) -> TokenStream2 {
    let mut errors = Errors::default();
    let args = Args::parse(arguments, &mut errors);
    let plan = Item::parse(item.clone(), &mut errors).map(|item| Plan::new(args, item, &mut errors));
    match (errors.into_tokens(), plan) {
        (None, Some(plan)) => expand::expand(&plan),
        (errors, _) => errors.into_iter().chain([item]).collect(),
    }
}

#[cfg(test)]
mod tests;
