//! Key templates: `"account:{id}"` to the texts and placeholders in it.
//!
//! Invariant: what comes out can be told apart from what it was rendered with: two placeholders never
//! touch, and no text between two of them starts with the encoder's `%`.

use syn::ext::IdentExt as _;
use syn::parse::Parser as _;

/// A template: a text, then placeholders, each followed by a text.
pub(crate) struct Template {
    /// One more than `placeholders`, which stand between them.
    pub(crate) texts: Vec<String>,
    pub(crate) placeholders: Vec<Placeholder>,
}

/// `{root.field.0:spec}`.
pub(crate) struct Placeholder {
    pub(crate) root: Root,
    pub(crate) fields: Vec<Field>,
    /// What follows the colon.
    pub(crate) spec: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    SelfValue,
    Name(String),
    Position(usize),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Name(String),
    Index(u32),
}

impl Template {
    /// Reads a template, and says everything that is wrong with it; the placeholders that are right are there
    /// all the same.
    pub(crate) fn parse(text: &str) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        if text.is_empty() {
            wrong.push("the key is empty; a lock needs a name, such as \"account:{id}\"".to_owned());
        }
        if let Some(control) = text.chars().find(|c| c.is_control()) {
            wrong.push(format!("the key has a control character ({control:?}); leave it out"));
        }
        let (texts, inside) = split(text, &mut wrong);
        let placeholders: Vec<_> = inside
            .iter()
            .filter_map(|inside| Placeholder::parse(inside).map_err(|message| wrong.push(message)).ok())
            .collect();
        for (i, between) in texts.iter().enumerate().skip(1).take(inside.len().saturating_sub(1)) {
            let (left, right) = (&inside[i - 1], &inside[i]);
            if between.is_empty() {
                wrong.push(format!(
                    "`{{{left}}}` and `{{{right}}}` touch, so two lists of values could give one key; \
                     put a separator between them: `{{{left}}}:{{{right}}}`"
                ));
            } else if between.starts_with('%') {
                wrong.push(format!(
                    "the text between `{{{left}}}` and `{{{right}}}` starts with `%`, which encodes values, so \
                     two lists of values could give one key; start it with another character, such as `:`"
                ));
            }
        }
        (Self { texts, placeholders }, wrong)
    }

    /// The first characters of the texts between two placeholders: what values must not show as it is.
    pub(crate) fn separators(&self) -> String {
        let between = self.texts.iter().skip(1).take(self.placeholders.len().saturating_sub(1));
        let mut separators: Vec<char> = between.filter_map(|text| text.chars().next()).collect();
        separators.sort_unstable();
        separators.dedup();
        separators.into_iter().collect()
    }
}

/// Splits a template at its placeholders, whose insides are given as they are.
fn split(text: &str, wrong: &mut Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut texts, mut inside) = (vec![String::new()], Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        let mut push = |more: &str| texts.last_mut().into_iter().for_each(|text| text.push_str(more));
        push(before);
        if let Some(after) = from.strip_prefix("{{") {
            push("{");
            rest = after;
        } else if let Some(after) = from.strip_prefix("}}") {
            push("}");
            rest = after;
        } else if let Some(after) = from.strip_prefix('}') {
            wrong.push("the key has a `}` without `{`; write `}}` for a brace itself".to_owned());
            rest = after;
        } else {
            let after = &from[1..];
            match after.find(['{', '}']) {
                Some(end) if after[end..].starts_with('}') => {
                    inside.push(after[..end].to_owned());
                    texts.push(String::new());
                    rest = &after[end + 1..];
                }
                end => {
                    let shown = &after[..end.unwrap_or(after.len())];
                    wrong.push(format!(
                        "`{{{shown}` in the key is not closed; write `{{{}}}`, or `{{{{` for a brace itself",
                        shown.trim()
                    ));
                    rest = &after[end.unwrap_or(after.len())..];
                }
            }
        }
    }
    texts.last_mut().into_iter().for_each(|text| text.push_str(rest));
    (texts, inside)
}

impl Placeholder {
    fn parse(inside: &str) -> Result<Self, String> {
        let (path, spec) = inside.split_once(':').unwrap_or((inside, ""));
        let bare = path.trim();
        if bare.is_empty() {
            return Err(format!(
                "`{{{inside}}}` in the key names nothing; write an argument's name, such as `{{id}}`"
            ));
        }
        if bare != path {
            return Err(format!("`{{{inside}}}` in the key has spaces; write `{{{}}}`", inside.trim()));
        }
        if bare.split('.').any(|part| part.starts_with("r#")) {
            return Err(format!(
                "`{{{inside}}}` in the key: write `{{{}}}`, which finds the raw name too",
                inside.replace("r#", "")
            ));
        }
        let mut parts = bare.split('.');
        let root = parts.next().and_then(Root::parse);
        let fields: Option<Vec<_>> = parts.map(Field::parse).collect();
        let (Some(root), Some(fields)) = (root, fields) else {
            return Err(format!(
                "`{bare}` in the key is not a name or a field path; for more than that use an expression: \
                 `key = format!(\"..\", ..)`"
            ));
        };
        check_spec(inside, spec)?;
        Ok(Self { root, fields, spec: spec.to_owned() })
    }
}

impl Root {
    fn parse(text: &str) -> Option<Self> {
        if text == "self" {
            return Some(Self::SelfValue);
        }
        if let Some(position) = number(text) {
            return usize::try_from(position).ok().map(Self::Position);
        }
        is_name(text).then(|| Self::Name(text.to_owned()))
    }
}

impl Field {
    fn parse(text: &str) -> Option<Self> {
        number(text).map(Self::Index).or_else(|| is_name(text).then(|| Self::Name(text.to_owned())))
    }
}

/// A number as Rust writes a tuple's field: decimal, no sign, no leading zero.
fn number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn is_name(text: &str) -> bool {
    let plain = text.chars().all(|c| c == '_' || c.is_alphanumeric())
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && !matches!(text, "_" | "self" | "Self" | "super" | "crate");
    plain && syn::Ident::parse_any.parse_str(text).is_ok_and(|ident| ident == text)
}

/// Checks a format spec as `std::fmt` has them, less what would make the key depend on another argument
/// or on the build.
fn check_spec(inside: &str, spec: &str) -> Result<(), String> {
    if spec.contains('$') || spec.contains(".*") {
        return Err(format!(
            "`{{{inside}}}` in the key takes its width from another argument, which a key cannot; \
             write the number, or use an expression"
        ));
    }
    let mut rest = spec;
    let mut chars = spec.chars();
    let (first, second) = (chars.next(), chars.next());
    if second.is_some_and(|c| "<^>".contains(c)) {
        rest = &spec[first.map_or(0, char::len_utf8) + 1..];
    } else if first.is_some_and(|c| "<^>".contains(c)) {
        rest = &spec[1..];
    }
    rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest = rest.strip_prefix('#').unwrap_or(rest);
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut numbers = vec![&rest[..digits(rest)]];
    rest = &rest[digits(rest)..];
    if let Some(precision) = rest.strip_prefix('.') {
        let end = digits(precision);
        if end == 0 {
            return Err(format!("`{{{inside}}}` in the key has no number after the `.`"));
        }
        numbers.push(&precision[..end]);
        rest = &precision[end..];
    }
    if numbers.iter().any(|number| !number.is_empty() && number.parse::<u16>().is_err()) {
        return Err(format!("`{{{inside}}}` in the key has a width or a precision above 65535"));
    }
    match rest {
        "" | "x" | "X" | "o" | "b" | "e" | "E" => Ok(()),
        "?" | "x?" | "X?" => Err(format!(
            "`{{{inside}}}` in the key uses Debug, whose text may change between builds: two versions of a program \
             would then hold one lock at once; use Display, or an expression whose text you keep stable"
        )),
        "p" => Err(format!("`{{{inside}}}` in the key shows an address, which is another in every process")),
        other => Err(format!("unknown format trait `{other}` in `{{{inside}}}` in the key")),
    }
}

#[cfg(test)]
mod tests;
