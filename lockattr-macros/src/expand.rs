//! Last stage: the plan to tokens. It cannot fail.
//!
//! The order of what is generated: keys, locker and options from borrowed arguments, each in its own
//! statement; then the lock; then the body, pinned in place and polled through the guard; then the
//! release; then the return. So nothing borrowed lives over an await, the body is gone before the
//! release, and `?` and `return` in the body leave it and nothing else.
//!
//! Invariant: generated names have macro hygiene, paths are absolute, nothing is called as a method, and no
//! item is generated; the user's tokens keep their spans.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{FnArg, ReturnType, Signature};

use crate::arguments::{self, lints_of_argument};
use crate::item::{Form, Item, braced};
use crate::output;
use crate::plan::{Key, OnBusy, Plan, Rendered, Setting};
use crate::value::Time;

/// The locked function.
pub(crate) fn expand(plan: &Plan) -> TokenStream {
    let Item { attrs, vis, sig, body, .. } = &plan.item;
    let output = declared_output(plan);
    let block = match &plan.item.form {
        Form::Async => locked(plan, &output, &async_body(plan, &output)),
        Form::Boxed { pin, future, .. } => {
            let future = arguments::with_uses(future.clone(), &plan.used);
            let span = Span::mixed_site();
            let block = braced(locked(plan, &output, &future), body);
            quote_spanned!(span=> #pin(async move #block))
        }
    };
    let block = braced(block, body);
    let sig = signature(sig, &plan.item.form);
    quote!(#(#attrs)* #vis #sig #block)
}

/// The return type, with `_` where it cannot be written in an expression.
fn declared_output(plan: &Plan) -> TokenStream {
    match (&plan.item.form, &plan.item.sig.output) {
        (Form::Boxed { output, .. }, _) => output.clone(),
        (Form::Async, ReturnType::Type(_, ty)) => output::without_impl(ty.to_token_stream()),
        (Form::Async, ReturnType::Default) => {
            let span = plan.item.sig.ident.span();
            quote_spanned!(span=> ())
        }
    }
}

/// The signature, less what moves into the body.
fn signature(sig: &Signature, form: &Form) -> Signature {
    let mut sig = sig.clone();
    if matches!(form, Form::Async) {
        for argument in &mut sig.inputs {
            if let FnArg::Typed(argument) = argument {
                if let syn::Pat::Ident(ident) = &mut *argument.pat
                    && ident.by_ref.is_none()
                {
                    ident.mutability = None;
                }
                argument.attrs = argument.attrs.iter().filter_map(lints_of_argument).collect();
            }
        }
    }
    sig
}

/// The statements from the keys to the return; `body` is the future to run under the lock.
fn locked(plan: &Plan, output: &TokenStream, body: &TokenStream) -> TokenStream {
    let span = Span::mixed_site();
    let private = private(plan);
    let never = plan.never_returns();
    let failed = (!never).then(|| {
        let failed = if plan.panics {
            quote_spanned!(span=> panicked::<_>)
        } else {
            quote_spanned!(span=> failed::<#output>)
        };
        quote_spanned!(span=> let __lockattr_failed = #private::#failed;)
    });
    let keys = plan.keys.iter().map(|key| self::key(plan, key));
    let locker = locker(plan);
    let settings = plan.settings.iter().map(|setting| self::setting(plan, setting));
    let name = plan.item.sig.ident.to_string();
    let busy = busy(plan, output);
    let lease = plan
        .lease
        .as_ref()
        .map(|lease| quote_spanned!(span=> let #lease = #private::held(&__lockattr_guard);));
    let release = if plan.detached {
        quote_spanned!(span=> #private::detach(__lockattr_guard);)
    } else {
        quote_spanned!(span=> #private::release(__lockattr_guard).await;)
    };
    // A locked function may return a future, which clippy takes for a forgotten await.
    let allow = plan.panics.then(|| quote_spanned!(span=> #[allow(clippy::async_yields_async)]));
    let fail = if never {
        // Not a `return`: it would be unreachable.
        quote_spanned!(span=> #private::panicked(__lockattr_error))
    } else {
        quote_spanned!(span=> return __lockattr_failed(__lockattr_error))
    };
    let end = if never {
        quote_spanned!(span=> #private::finished(__lockattr_out))
    } else {
        quote_spanned! {span=>
            match __lockattr_out {
                ::core::result::Result::Ok(__lockattr_out) => return __lockattr_out,
                ::core::result::Result::Err(__lockattr_error) => #fail,
            }
        }
    };
    quote_spanned! {span=>
        #failed
        let mut __lockattr_keys = #private::Keys::new();
        #(#keys)*
        let __lockattr_locker = #locker;
        let mut __lockattr_options = #private::Options::new();
        #(#settings)*
        let mut __lockattr_guard = match #private::enter(
            &#private::Site { function: ::core::concat!(::core::module_path!(), "::", #name) },
            __lockattr_locker,
            __lockattr_keys,
            __lockattr_options,
        )
        .await
        {
            ::core::result::Result::Ok(__lockattr_guard) => __lockattr_guard,
            #busy
            ::core::result::Result::Err(__lockattr_error) => #fail,
        };
        #allow
        let __lockattr_out = {
            #lease
            let __lockattr_body = ::core::pin::pin!(#body);
            let __lockattr_out = #private::body(&mut __lockattr_guard, __lockattr_body).await;
            __lockattr_out
        };
        #release
        #end
    }
}

fn busy(plan: &Plan, output: &TokenStream) -> TokenStream {
    let span = Span::mixed_site();
    let private = private(plan);
    let value = match &plan.on_busy {
        OnBusy::Error => return TokenStream::new(),
        OnBusy::Skip => quote_spanned!(span=> #private::skipped::<#output>()),
        OnBusy::Value(value) => value.to_token_stream(),
    };
    quote_spanned! {span=>
        ::core::result::Result::Err(__lockattr_error) if #private::is_busy(&__lockattr_error) => return #value,
    }
}

/// The user's body as a future, with the arguments inside it: they are dropped with it, in native order.
fn async_body(plan: &Plan, output: &TokenStream) -> TokenStream {
    let span = Span::mixed_site();
    let own = plan.item.receiver.as_ref().map(|own| quote_spanned!(span=> let _ = &#own;));
    let rebound = plan.item.bindings.iter().map(|binding| arguments::rebound(binding, &plan.used));
    // The first type the block sees is the declared one: coercions, inference and the blame in errors are
    // then as without the attribute.
    let declared = (!plan.never_returns()).then(|| {
        quote_spanned! {span=>
            if let ::core::option::Option::Some(__lockattr_out) = ::core::option::Option::None::<#output> {
                return __lockattr_out;
            }
        }
    });
    let body = output::quiet_braces(&plan.item.body);
    quote_spanned! {span=>
        async move {
            #own
            #(#rebound)*
            #declared
            #body
        }
    }
}

fn key(plan: &Plan, key: &Key) -> TokenStream {
    let private = private(plan);
    let names = plan.item.bindings.iter().map(|binding| binding.ident.to_string());
    match key {
        Key::Template { literal, rendered, .. } => {
            let template = literal.value();
            let Rendered { separators, texts, values } = rendered;
            let values = values.iter().map(|given| value(&private, given));
            quote_spanned! {Span::mixed_site()=>
                #private::template(&mut __lockattr_keys, #template, #separators, &[#(#texts),*], &[#(#values),*]);
            }
        }
        Key::Expr { expr, source } => {
            let borrowed = borrowed(expr);
            let span = Span::mixed_site();
            let function = quote_spanned!(at(expr)=> #private::expression);
            quote_spanned!(span=> #function(&mut __lockattr_keys, #source, #borrowed, &[#(#names),*]);)
        }
        Key::Each { expr, source, is_place } => {
            let (function, list) = if *is_place {
                (quote_spanned!(at(expr)=> #private::each_of), borrowed(expr))
            } else {
                (quote_spanned!(at(expr)=> #private::each), expr.to_token_stream())
            };
            quote_spanned! {Span::mixed_site()=>
                #function(&mut __lockattr_keys, #source, #list, &[#(#names),*]);
            }
        }
    }
}

/// The formatted value of a placeholder.
pub(crate) fn value(private: &TokenStream, (spec, expr): &(String, TokenStream)) -> TokenStream {
    let span = Span::mixed_site();
    let format = if spec.is_empty() { "{}".to_owned() } else { format!("{{:{spec}}}") };
    if spec.ends_with(['x', 'X', 'o', 'b', 'e', 'E']) {
        return quote_spanned!(span=> ::core::format_args!(#format, #expr));
    }
    // Through a function of ours, whose bound says what to do about a value that cannot be shown.
    let shown = quote_spanned!(at(expr)=> #private::shown(&#expr));
    quote_spanned!(span=> ::core::format_args!(#format, #shown))
}

fn locker(plan: &Plan) -> TokenStream {
    let private = private(plan);
    match &plan.locker {
        None => quote_spanned!(Span::mixed_site()=> #private::installed()),
        Some(expr) => {
            let borrowed = borrowed(expr);
            quote_spanned!(at(expr)=> #private::locker(#borrowed))
        }
    }
}

fn setting(plan: &Plan, Setting { name, time }: &Setting) -> TokenStream {
    let span = Span::mixed_site();
    let private = private(plan);
    let function = syn::Ident::new(name, span);
    match time {
        None => quote_spanned!(span=> #private::#function(&mut __lockattr_options);),
        Some(Time::Known(duration)) => {
            let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            quote_spanned! {span=>
                #private::#function(&mut __lockattr_options, &::core::time::Duration::from_millis(#millis));
            }
        }
        Some(Time::Given(expr)) => {
            let borrowed = borrowed(expr);
            quote_spanned!(span=> #private::#function(&mut __lockattr_options, #borrowed);)
        }
    }
}

/// `&expr`, where errors about the type point at the expression.
fn borrowed(expr: &syn::Expr) -> TokenStream {
    let and = quote_spanned!(at(expr)=> &);
    if matches!(
        crate::value::peeled(expr),
        syn::Expr::Range(_)
            | syn::Expr::Binary(_)
            | syn::Expr::Cast(_)
            | syn::Expr::Assign(_)
            | syn::Expr::Closure(_)
    ) {
        let inner = quote_spanned!(at(expr)=> (#expr));
        return quote!(#and #inner);
    }
    quote!(#and #expr)
}

/// Macro hygiene, shown at `tokens`.
fn at(tokens: &impl ToTokens) -> Span {
    Span::mixed_site().located_at(tokens.span())
}

fn private(plan: &Plan) -> TokenStream {
    let krate = &plan.krate;
    quote_spanned!(Span::mixed_site()=> #krate::__private)
}
