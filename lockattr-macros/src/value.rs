//! What the values of arguments mean: durations, words and flags.

use std::time::Duration;

use syn::{Expr, ExprLit, Lit, UnOp};

/// A duration that is known now, or an expression that gives one.
pub(crate) enum Time {
    Known(Duration),
    Given(Box<Expr>),
}

/// Takes off the groups of `macro_rules` and parentheses.
pub(crate) fn peeled(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => peeled(&group.expr),
        Expr::Paren(paren) if paren.attrs.is_empty() => peeled(&paren.expr),
        other => other,
    }
}

/// The text of a string literal.
pub(crate) fn text(expr: &Expr) -> Option<&syn::LitStr> {
    match peeled(expr) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
        _ => None,
    }
}

/// A word such as `skip` or `return`: what people write without quotes.
pub(crate) fn word(expr: &Expr) -> Option<String> {
    match peeled(expr) {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Return(word) if word.expr.is_none() => Some("return".to_owned()),
        Expr::Continue(word) if word.label.is_none() => Some("continue".to_owned()),
        _ => None,
    }
}

/// Reads the duration of the argument `name`; anything but a literal is an expression.
pub(crate) fn time(name: &str, expr: &Expr) -> Result<Time, String> {
    match peeled(expr) {
        Expr::Lit(literal) => known(name, &literal.lit).map(Time::Known),
        Expr::Unary(negative)
            if matches!(negative.op, UnOp::Neg(_)) && matches!(peeled(&negative.expr), Expr::Lit(_)) =>
        {
            Err(format!("`{name}` is negative; give zero or more seconds"))
        }
        _ => Ok(Time::Given(Box::new(expr.clone()))),
    }
}

fn known(name: &str, literal: &Lit) -> Result<Duration, String> {
    match literal {
        Lit::Int(integer) => {
            if !matches!(
                integer.suffix(),
                "" | "u8"
                    | "u16"
                    | "u32"
                    | "u64"
                    | "u128"
                    | "usize"
                    | "i8"
                    | "i16"
                    | "i32"
                    | "i64"
                    | "i128"
                    | "isize"
            ) {
                return Err(format!(
                    "`{integer}` is not a number of seconds; a unit goes into quotes: `{name} = \"{integer}\"`"
                ));
            }
            seconds(integer.base10_digits()).ok_or_else(|| format!("`{name} = {integer}` is too large"))
        }
        Lit::Str(text) => with_unit(name, &text.value()),
        Lit::Float(float) => Err(format!(
            "`{name}` takes whole seconds, or text with a unit: `{name} = \"{}\"`",
            milliseconds(float.base10_digits()).unwrap_or_else(|| "500ms".to_owned())
        )),
        _ => Err(format!(
            "`{name}` takes seconds such as `{name} = 60`, text with a unit such as `\"500ms\"`, or an expression"
        )),
    }
}

fn seconds(digits: &str) -> Option<Duration> {
    let seconds: u64 = digits.parse().ok()?;
    // Bounded by what has room as milliseconds, far above any lock's life.
    seconds.checked_mul(1000).map(Duration::from_millis)
}

fn milliseconds(seconds: &str) -> Option<String> {
    let seconds: f64 = seconds.parse().ok()?;
    let text = format!("{:.0}ms", seconds * 1000.0);
    (0.001..1e6).contains(&seconds).then_some(text)
}

fn with_unit(name: &str, text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => {
            return Err(format!(
                "`{text}` is not a duration; write a whole number and one of ms, s, m, h, d: `{name} = \"500ms\"`"
            ));
        }
    };
    if number.is_empty() {
        return Err(format!(
            "`{text}` is not a duration; write the number too: `{name} = \"5{}\"`",
            unit.trim()
        ));
    }
    let duration = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    duration.map(Duration::from_millis).ok_or_else(|| format!("`{name} = \"{text}\"` is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> Result<Option<u128>, String> {
        let expr = syn::parse_str(source).unwrap();
        time("wait", &expr).map(|time| match time {
            Time::Known(duration) => Some(duration.as_millis()),
            Time::Given(_) => None,
        })
    }

    #[test]
    fn literals_are_known() {
        for (source, millis) in [
            ("60", 60_000),
            ("1_000u64", 1_000_000),
            ("0x10", 16_000),
            ("(30)", 30_000),
            ("\"500ms\"", 500),
            ("\"0s\"", 0),
            ("\"5 m\"", 300_000),
            ("\"24h\"", 86_400_000),
            ("\"1d\"", 86_400_000),
        ] {
            assert_eq!(read(source), Ok(Some(millis)), "{source}");
        }
    }

    #[test]
    fn expressions_are_left_to_the_call() {
        for source in ["TTL", "ttl() * 2", "self.cfg.ttl", "-x", "10 + 5"] {
            assert_eq!(read(source), Ok(None), "{source}");
        }
    }

    #[test]
    fn wrong_literals_say_what_is_allowed() {
        for (source, says) in [
            ("1.5", "\"1500ms\""),
            ("99999999999999999999", "too large"),
            ("18446744073709551615", "too large"),
            ("\"99999999999999999999d\"", "too large"),
            ("-1", "negative"),
            ("\"5\"", "not a duration"),
            ("\"ms\"", "write the number"),
            ("\"five\"", "not a duration"),
            ("true", "takes seconds"),
            ("5ms", "goes into quotes"),
        ] {
            let message = read(source).unwrap_err();
            assert!(message.contains(says), "{source}: {message}");
        }
    }
}
