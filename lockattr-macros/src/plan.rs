//! Second stage: the arguments and the item, judged.
//!
//! Invariant: a `Plan` is right as far as tokens can tell; expanding it cannot fail.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::Expr;

use crate::args::{Args, Given, Value};
use crate::diag::Errors;
use crate::item::{Form, Item};
use crate::names::{self, Names};
use crate::value::{self, Time};

mod keys;
mod settings;
pub(crate) use keys::{Key, Rendered, free};

/// What is to be generated.
pub(crate) struct Plan {
    pub(crate) item: Item,
    /// The path of the facade.
    pub(crate) krate: TokenStream,
    pub(crate) keys: Vec<Key>,
    /// Calls that set the options which were given, in one order whatever the order of the arguments.
    pub(crate) settings: Vec<Setting>,
    pub(crate) on_busy: OnBusy,
    pub(crate) panics: bool,
    pub(crate) detached: bool,
    pub(crate) lease: Option<Ident>,
    pub(crate) locker: Option<Expr>,
    /// The arguments of the function that the options read.
    pub(crate) used: BTreeSet<String>,
}

/// A call of the runtime's function `name`.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) time: Option<Time>,
}

pub(crate) enum OnBusy {
    Error,
    Skip,
    Value(Expr),
}

impl Plan {
    /// Judges everything; what is wrong goes into `errors`, and the plan is of no use then.
    pub(crate) fn new(args: Args, item: Item, errors: &mut Errors) -> Self {
        let names = Names::of(&item);
        let keys = keys::keys(&args, &names, errors);
        let settings = settings::settings(&args, &keys, errors);
        let on_busy = on_busy(args.on_busy, errors);
        let panics = one_of(args.on_error, ["return", "panic"], errors) == Some("panic");
        let detached = one_of(args.release, ["awaited", "detached"], errors) == Some("detached");
        let lease = lease(args.lease, &names, errors);
        let locker = expr(args.locker, errors);
        let krate = krate(args.krate, errors);
        let used = used(&names, &keys, &settings, &on_busy, locker.as_ref());
        let plan = Self { item, krate, keys, settings, on_busy, panics, detached, lease, locker, used };
        plan.check_output(errors);
        plan
    }

    /// Reports a return type that cannot hold an error whatever it is called.
    fn check_output(&self, errors: &mut Errors) {
        let syn::ReturnType::Type(_, ty) = &self.item.sig.output else { return };
        if !matches!(self.item.form, Form::Async) {
            return;
        }
        if matches!(**ty, syn::Type::Never(_)) && (!self.panics || !matches!(self.on_busy, OnBusy::Error)) {
            errors.on(
                ty,
                "this function never returns, so it cannot return a lock error; say `on_error = panic`, and leave \
                 `on_busy` out",
            );
        }
        if matches!(**ty, syn::Type::ImplTrait(_)) && !self.panics {
            errors.on(ty, "a locked function must return a `Result`; return `Result<impl .., E>` where `E: From<LockError>`, or say `on_error = panic`");
        }
    }

    /// Whether the function is declared never to return.
    pub(crate) fn never_returns(&self) -> bool {
        matches!(&self.item.sig.output, syn::ReturnType::Type(_, ty) if matches!(**ty, syn::Type::Never(_)))
    }
}

/// The expression of an argument that must have one.
fn expr(given: Option<Given>, errors: &mut Errors) -> Option<Expr> {
    let Given { name, value } = given?;
    match value {
        Value::Expr(expr) => Some(expr),
        Value::Flag => {
            errors.on(&name, format!("`{name}` needs a value: `{name} = ..`"));
            None
        }
        Value::Wrong => None,
    }
}

fn one_of(given: Option<Given>, words: [&'static str; 2], errors: &mut Errors) -> Option<&'static str> {
    let name = given.as_ref()?.name.to_string();
    let expr = expr(given, errors)?;
    let word = value::word(&expr);
    let found = words.into_iter().find(|known| word.as_deref() == Some(known));
    if found.is_none() {
        errors.on(&expr, format!("`{name}` is `{}` or `{}`", words[0], words[1]));
    }
    found
}

fn on_busy(given: Option<Given>, errors: &mut Errors) -> OnBusy {
    let Some(expr) = expr(given, errors) else { return OnBusy::Error };
    match (value::word(&expr).as_deref(), value::peeled(&expr)) {
        (Some("error"), _) => OnBusy::Error,
        (Some("skip"), _) => OnBusy::Skip,
        (_, Expr::Call(call))
            if value::word(&call.func).as_deref() == Some("value") && call.args.len() == 1 =>
        {
            OnBusy::Value(call.args[0].clone())
        }
        _ => {
            errors.on(&expr, "`on_busy` is `error`, `skip` or `value(..)` with the value to return");
            OnBusy::Error
        }
    }
}

fn lease(given: Option<Given>, names: &Names<'_>, errors: &mut Errors) -> Option<Ident> {
    let expr = expr(given, errors)?;
    let ident = match value::peeled(&expr) {
        Expr::Path(path) => {
            path.path.get_ident().filter(|ident| *ident != "self" && *ident != "Self").cloned()
        }
        _ => None,
    };
    match ident {
        Some(ident) if names.get(&ident.to_string()).is_some() => {
            errors
                .on(&ident, format!("`{ident}` is an argument of the function; give the lease another name"));
            None
        }
        Some(ident) => Some(ident),
        None => {
            errors.on(&expr, "`lease` takes a name for the body to use: `lease = lease`");
            None
        }
    }
}

fn krate(given: Option<Given>, errors: &mut Errors) -> TokenStream {
    let Some(expr) = expr(given, errors) else { return quote!(::lockattr) };
    if let Expr::Path(path) = value::peeled(&expr)
        && path.qself.is_none()
    {
        return path.to_token_stream();
    }
    errors.on(&expr, "`crate` takes the path of lockattr: `crate = my_facade::lockattr`");
    quote!(::lockattr)
}

fn used(
    names: &Names<'_>,
    keys: &[Key],
    settings: &[Setting],
    on_busy: &OnBusy,
    locker: Option<&Expr>,
) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for key in keys {
        match key {
            Key::Template { names, .. } => used.extend(names.iter().cloned()),
            Key::Expr { expr, .. } | Key::Each { expr, .. } => names::in_tokens(names, expr, &mut used),
        }
    }
    for setting in settings {
        if let Some(Time::Given(expr)) = &setting.time {
            names::in_tokens(names, expr, &mut used);
        }
    }
    if let OnBusy::Value(expr) = on_busy {
        names::in_tokens(names, expr, &mut used);
    }
    if let Some(expr) = locker {
        names::in_tokens(names, expr, &mut used);
    }
    used
}
