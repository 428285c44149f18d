//! The options of the plan: durations within their bounds, flags and words, as calls of the runtime.

use std::time::Duration;

use syn::{Expr, LitBool};

use super::{Key, Setting};
use crate::args::{Args, Given, Value};
use crate::diag::Errors;
use crate::value::{self, Time};

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_hours(24);
const LONGEST_WINDOW: Duration = Duration::from_hours(366 * 24);

pub(super) fn settings(args: &Args, keys: &[Key], errors: &mut Errors) -> Vec<Setting> {
    let mut settings = Vec::new();
    let bounds = |name: &str, known: Duration| match name {
        "expires" if known.is_zero() => Some("`expires` must be more than zero"),
        "expires" if known < SHORTEST => {
            Some("`expires` must be at least 100 ms: a shorter lease ends before its renewal arrives")
        }
        "expires" if known > LONGEST => {
            Some("`expires` must be at most 24 h; a lock that is renewed is kept for as long as it is held")
        }
        "max_hold" if known.is_zero() => Some("`max_hold` must be more than zero; leave it out for no limit"),
        "once_per" if known.is_zero() => {
            Some("`once_per` must be more than zero; leave it out for no windows")
        }
        "once_per" if known > LONGEST_WINDOW => Some("`once_per` must be at most 366 days"),
        _ => None,
    };
    let given = [
        ("expires", &args.expires),
        ("wait", &args.wait),
        ("min_hold", &args.min_hold),
        ("max_hold", &args.max_hold),
        ("once_per", &args.once_per),
    ];
    let mut known = Vec::new();
    for (name, given) in given {
        let Some(given) = given else { continue };
        let Value::Expr(expr) = &given.value else {
            if matches!(given.value, Value::Flag) {
                errors.on(&given.name, format!("`{name}` needs a value: `{name} = 60`"));
            }
            continue;
        };
        if name == "wait" && value::text(expr).is_some_and(|text| text.value() == "forever") {
            settings.push(Setting { name: "wait_forever", time: None });
            continue;
        }
        match value::time(name, expr) {
            Ok(time) => {
                if let Time::Known(duration) = &time {
                    known.push((name, *duration));
                    if let Some(message) = bounds(name, *duration) {
                        errors.on(expr, message);
                    }
                }
                settings.push(Setting { name, time: Some(time) });
            }
            Err(message) => errors.on(expr, message),
        }
    }
    contradiction(&known, args, errors);
    if let (Some(given), 2..) = (&args.once_per, keys.len()) {
        errors.on(&given.name, "`once_per` is for one key; give `key`, or leave it out");
    }
    if flag(args.renew.as_ref(), errors) == Some(false) {
        settings.push(Setting { name: "no_renewal", time: None });
    }
    if flag(args.reentrant.as_ref(), errors) == Some(true) {
        settings.push(Setting { name: "reentrant", time: None });
    }
    settings.extend(on_lost(args, errors));
    settings
}

/// Reports a minimum hold above the maximum.
fn contradiction(known: &[(&str, Duration)], args: &Args, errors: &mut Errors) {
    let get = |name| known.iter().find(|(known, _)| *known == name).map(|(_, duration)| *duration);
    if let (Some(min), Some(max), Some(given)) = (get("min_hold"), get("max_hold"), &args.min_hold)
        && min > max
    {
        errors.on(&given.name, "`min_hold` is more than `max_hold`");
    }
}

/// `name`, `name = true` or `name = false`; `None` when it is not given, or is wrong.
fn flag(given: Option<&Given>, errors: &mut Errors) -> Option<bool> {
    let Given { name, value } = given?;
    match value {
        Value::Flag => Some(true),
        Value::Expr(expr) => {
            if let Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(LitBool { value, .. }), .. }) =
                value::peeled(expr)
            {
                return Some(*value);
            }
            errors.on(expr, format!("`{name}` is `true` or `false`; alone it means `true`"));
            None
        }
        Value::Wrong => None,
    }
}

fn on_lost(args: &Args, errors: &mut Errors) -> Option<Setting> {
    let given = args.on_lost.as_ref()?;
    let word = match &given.value {
        Value::Expr(expr) => value::word(expr),
        Value::Flag => None,
        Value::Wrong => return None,
    };
    match word.as_deref() {
        Some("cancel") => None,
        Some("continue") => Some(Setting { name: "continue_on_loss", time: None }),
        _ => {
            let message = "`on_lost` is `cancel` or `continue`";
            match &given.value {
                Value::Expr(expr) => errors.on(expr, message),
                _ => errors.on(&given.name, message),
            }
            None
        }
    }
}
