//! The keys of the plan: templates with their names resolved, and expressions.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Expr, ExprMacro, Index, LitStr};

use crate::args::{Args, Value};
use crate::diag::Errors;
use crate::key::{Field, Root, Template};
use crate::names::Names;
use crate::value;

/// One key, or an expression that gives several.
pub(crate) enum Key {
    Template {
        /// The literal as it was written.
        literal: LitStr,
        rendered: Rendered,
        /// The arguments that its placeholders read.
        names: Vec<String>,
    },
    Expr {
        expr: Expr,
        source: String,
    },
    Each {
        expr: Expr,
        source: String,
        /// Whether it names a place, which must be borrowed.
        is_place: bool,
    },
}

/// A template's texts, and what stands between them.
pub(crate) struct Rendered {
    pub(crate) separators: String,
    pub(crate) texts: Vec<String>,
    /// The format spec and the expression of each value.
    pub(crate) values: Vec<(String, TokenStream)>,
}

pub(crate) fn keys(args: &Args, names: &Names<'_>, errors: &mut Errors) -> Vec<Key> {
    match (&args.key, &args.keys) {
        (Some(_), Some(keys)) => {
            errors.on(&keys.name, "give `key` or `keys`, not both");
            Vec::new()
        }
        (Some(key), None) => match &key.value {
            Value::Expr(expr) => one(expr, names, errors).into_iter().collect(),
            Value::Flag => {
                errors.on(&key.name, "`key` needs a value: `key = \"account:{id}\"`");
                Vec::new()
            }
            Value::Wrong => Vec::new(),
        },
        (None, Some(keys)) => match &keys.value {
            Value::Expr(expr) => several(expr, names, errors),
            Value::Flag => {
                errors
                    .on(&keys.name, "`keys` needs a value: `keys = [\"account:{from}\", \"account:{to}\"]`");
                Vec::new()
            }
            Value::Wrong => Vec::new(),
        },
        (None, None) => {
            errors.at(Span::call_site(), "`#[distributed_lock]` needs a key: `key = \"account:{id}\"`");
            Vec::new()
        }
    }
}

fn several(expr: &Expr, names: &Names<'_>, errors: &mut Errors) -> Vec<Key> {
    match value::peeled(expr) {
        Expr::Array(list) if list.elems.is_empty() => {
            errors.on(list, "the list of keys is empty; give at least one");
            Vec::new()
        }
        Expr::Array(list) => list.elems.iter().filter_map(|expr| one(expr, names, errors)).collect(),
        Expr::Lit(literal) => {
            errors.on(
                literal,
                "`keys` takes a list: `keys = [\"account:{from}\", \"account:{to}\"]`; for one key say `key`",
            );
            Vec::new()
        }
        place => {
            let is_place = is_place(place);
            vec![Key::Each { expr: expr.clone(), source: source(expr), is_place }]
        }
    }
}

fn is_place(expr: &Expr) -> bool {
    match value::peeled(expr) {
        Expr::Path(_) | Expr::Index(_) => true,
        Expr::Field(field) => is_place(&field.base),
        Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Deref(_)),
        _ => false,
    }
}

fn one(expr: &Expr, names: &Names<'_>, errors: &mut Errors) -> Option<Key> {
    match value::peeled(expr) {
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(literal), .. }) => template(literal, names, errors),
        Expr::Lit(literal) => {
            errors.on(
                literal,
                format!(
                    "`{}` is not a lock key; a key is text: `\"job:{}\"`",
                    literal.to_token_stream(),
                    literal.to_token_stream().to_string().trim_matches(['"', '\'', 'b'])
                ),
            );
            None
        }
        Expr::Macro(concat) if has_braces(concat) => {
            errors.on(
                concat,
                "`concat!` is no template, so its braces would stay as they are: one lock for all calls; \
                 write the template as one literal, or use `format!`",
            );
            None
        }
        _ => Some(Key::Expr { expr: expr.clone(), source: source(expr) }),
    }
}

/// Whether this is `concat!` with a brace in one of its literals.
fn has_braces(concat: &ExprMacro) -> bool {
    let is_concat = concat.mac.path.segments.last().is_some_and(|last| last.ident == "concat");
    is_concat && concat.mac.tokens.clone().into_iter().any(|tree| tree.to_string().contains(['{', '}']))
}

fn source(expr: &Expr) -> String {
    expr.to_token_stream().to_string()
}

fn template(literal: &LitStr, names: &Names<'_>, errors: &mut Errors) -> Option<Key> {
    let mut used = Vec::new();
    let rendered = rendered(literal, errors, |root, errors| {
        let (name, ident) = names.resolve(root, literal, errors)?;
        used.push(name);
        Some(ident)
    })?;
    Some(Key::Template { literal: literal.clone(), rendered, names: used })
}

/// The template with each placeholder's root replaced by what `resolve` finds.
fn rendered(
    literal: &LitStr,
    errors: &mut Errors,
    mut resolve: impl FnMut(&Root, &mut Errors) -> Option<Ident>,
) -> Option<Rendered> {
    let (template, wrong) = Template::parse(&literal.value());
    for message in &wrong {
        errors.on(literal, message);
    }
    let mut values = Vec::new();
    for placeholder in &template.placeholders {
        let fields = placeholder.fields.iter().map(|field| member(field, literal.span()));
        let root = resolve(&placeholder.root, errors);
        values.push(root.map(|root| (placeholder.spec.clone(), quote!(#root #(.#fields)*))));
    }
    let values = values.into_iter().collect::<Option<_>>()?;
    wrong.is_empty().then(|| Rendered { separators: template.separators(), texts: template.texts, values })
}

fn member(field: &Field, span: Span) -> TokenStream {
    match field {
        Field::Index(index) => Index { index: *index, span }.to_token_stream(),
        Field::Name(name) => crate::names::ident(name, span).to_token_stream(),
    }
}

/// The template of `key!`, whose names are whatever is in scope.
pub(crate) fn free(literal: &LitStr, errors: &mut Errors) -> Option<Rendered> {
    rendered(literal, errors, |root, errors| match root {
        Root::SelfValue => Some(Ident::new("self", literal.span())),
        Root::Name(name) => Some(crate::names::ident(name, literal.span())),
        Root::Position(position) => {
            errors
                .on(literal, format!("`{{{position}}}` in the key has no arguments to count; write a name"));
            None
        }
    })
}
