//! First stage: the item under the attribute, to signature, names and an unread body.
//!
//! Invariant: the body is a group of tokens; nothing looks at what it means, so half-typed code passes.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Attribute, FnArg, Pat, PatIdent, ReturnType, Signature, Token, Visibility};

use crate::diag::Errors;

/// A function with a body.
pub(crate) struct Item {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
    pub(crate) form: Form,
    /// The `self` of a method.
    pub(crate) receiver: Option<Ident>,
    pub(crate) bindings: Vec<Binding>,
}

/// How the function is asynchronous.
pub(crate) enum Form {
    /// `async fn`.
    Async,
    /// `fn .. -> Pin<Box<dyn Future<Output = T> + ..>>` whose body is `Box::pin(future)`: what
    /// `#[async_trait]` and `#[async_recursion]` leave.
    Boxed {
        /// `Box::pin`.
        pin: TokenStream,
        /// What is in the parentheses.
        future: TokenStream,
        /// `T`.
        output: TokenStream,
    },
}

/// A name that an argument binds.
pub(crate) struct Binding {
    pub(crate) ident: Ident,
    /// The `mut` in front of it.
    pub(crate) mutability: Option<Token![mut]>,
    /// Whether the argument's pattern is this name and nothing around it.
    pub(crate) whole: bool,
    /// The attributes of its argument.
    pub(crate) attrs: Vec<Attribute>,
}

impl Item {
    /// Reads the item; `None` when it is none that can be locked, which has been reported then.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Option<Self> {
        match Self::parser.parse2(peeled(tokens)) {
            Ok(item) => Some(item),
            Err(error) => {
                errors.push(error);
                None
            }
        }
    }

    fn parser(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis: Visibility = input.parse()?;
        if !starts_function(input) {
            return Err(input.error("`#[distributed_lock]` goes on an `async fn`"));
        }
        let sig: Signature = input.parse()?;
        if let Ok(semicolon) = input.parse::<Token![;]>() {
            return Err(syn::Error::new_spanned(
                semicolon,
                "`#[distributed_lock]` needs a body to lock; put it on the function in the `impl`",
            ));
        }
        let body = body(input.parse()?)?;
        let (inner, body) = hoisted(body)?;
        attrs.extend(inner);
        let form = form(&sig, &body)?;
        let receiver = sig.receiver().map(|receiver| Ident::new("self", receiver.self_token.span));
        let bindings = bindings(&sig);
        Ok(Self { attrs, vis, sig, body, form, receiver, bindings })
    }

    /// The binding that a placeholder or a word in an expression calls `name`.
    pub(crate) fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.iter().find(|binding| binding.ident.unraw() == name)
    }
}

/// Takes off the invisible group that `$item:item` puts around everything.
fn peeled(tokens: TokenStream) -> TokenStream {
    let mut trees = tokens.clone().into_iter();
    match (trees.next(), trees.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::None => {
            peeled(group.stream())
        }
        _ => tokens,
    }
}

fn starts_function(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    loop {
        if ahead.peek(Token![fn]) {
            return true;
        }
        let qualifier = ahead.parse::<Token![const]>().is_ok()
            || ahead.parse::<Token![async]>().is_ok()
            || ahead.parse::<Token![unsafe]>().is_ok()
            || ahead.parse::<syn::Abi>().is_ok();
        if !qualifier {
            return false;
        }
    }
}

fn body(tree: TokenTree) -> syn::Result<Group> {
    match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Ok(group),
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let mut trees = group.stream().into_iter();
            match (trees.next(), trees.next()) {
                (Some(tree), None) => body(tree),
                _ => Err(syn::Error::new_spanned(group, "expected a function's body")),
            }
        }
        other => Err(syn::Error::new_spanned(other, "expected a function's body")),
    }
}

/// Takes `#![..]` from the start of the body: it goes on the function.
fn hoisted(body: Group) -> syn::Result<(Vec<Attribute>, Group)> {
    let parser = |input: ParseStream<'_>| {
        let mut attrs = Vec::new();
        while input.peek(Token![#]) && input.peek2(Token![!]) && input.peek3(syn::token::Bracket) {
            attrs.extend(input.call(Attribute::parse_inner)?);
        }
        for attr in &mut attrs {
            attr.style = syn::AttrStyle::Outer;
        }
        Ok((attrs, input.parse::<TokenStream>()?))
    };
    let (attrs, rest) = parser.parse2(body.stream())?;
    if attrs.is_empty() {
        return Ok((attrs, body));
    }
    let without = braced(rest, &body);
    Ok((attrs, without))
}

/// Braces that lints and other macros take for those of `body`.
pub(crate) fn braced(stream: TokenStream, body: &Group) -> Group {
    let mut braces = Group::new(Delimiter::Brace, stream);
    braces.set_span(body.span());
    braces
}

fn form(sig: &Signature, body: &Group) -> syn::Result<Form> {
    if sig.asyncness.is_some() {
        return Ok(Form::Async);
    }
    let Some(output) = boxed_output(&sig.output) else {
        return Err(syn::Error::new_spanned(
            sig.fn_token,
            "`#[distributed_lock]` needs an `async fn`; if an attribute such as `#[tokio::main]` or `#[tokio::test]` \
             has made this one plain, put `#[distributed_lock]` above it",
        ));
    };
    let Some((pin, future)) = boxed_body(body) else {
        return Err(syn::Error::new_spanned(
            sig.fn_token,
            "`#[distributed_lock]` cannot lock a boxed future with code around it; make the body one `Box::pin(..)`, \
             or write an `async fn`",
        ));
    };
    Ok(Form::Boxed { pin, future, output })
}

/// `T` of `Pin<Box<dyn Future<Output = T> + ..>>`.
fn boxed_output(output: &ReturnType) -> Option<TokenStream> {
    let ReturnType::Type(_, pin) = output else { return None };
    let syn::Type::TraitObject(object) = argument(argument(pin, "Pin")?, "Box")? else { return None };
    object.bounds.iter().find_map(|bound| {
        let syn::TypeParamBound::Trait(bound) = bound else { return None };
        let last = bound.path.segments.last().filter(|last| last.ident == "Future")?;
        let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
        arguments.args.iter().find_map(|argument| match argument {
            syn::GenericArgument::AssocType(assoc) if assoc.ident == "Output" => {
                Some(assoc.ty.to_token_stream())
            }
            _ => None,
        })
    })
}

/// `T` of `name<T>`.
fn argument<'a>(ty: &'a syn::Type, name: &str) -> Option<&'a syn::Type> {
    match ty {
        syn::Type::Group(group) => argument(&group.elem, name),
        syn::Type::Paren(paren) => argument(&paren.elem, name),
        syn::Type::Path(path) => {
            let last = path.path.segments.last().filter(|last| last.ident == name)?;
            let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            arguments.args.iter().find_map(|argument| match argument {
                syn::GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
        }
        _ => None,
    }
}

/// `Box::pin` and what is in its parentheses, when the body is nothing else.
fn boxed_body(body: &Group) -> Option<(TokenStream, TokenStream)> {
    let mut trees: Vec<_> = body.stream().into_iter().collect();
    let TokenTree::Group(future) = trees.pop()? else { return None };
    if future.delimiter() != Delimiter::Parenthesis {
        return None;
    }
    let pin: TokenStream = trees.into_iter().collect();
    let path: syn::Path = syn::parse2(pin.clone()).ok()?;
    let mut last = path.segments.iter().rev();
    let is_pin = last.next()?.ident == "pin" && last.next()?.ident == "Box";
    is_pin.then(|| (quote!(#pin), future.stream()))
}

fn bindings(sig: &Signature) -> Vec<Binding> {
    let mut bindings = Vec::new();
    for argument in &sig.inputs {
        if let FnArg::Typed(argument) = argument {
            let mut bind = |ident: &PatIdent, whole| {
                bindings.push(Binding {
                    ident: ident.ident.clone(),
                    // In `ref mut` it belongs to the reference.
                    mutability: ident.mutability.filter(|_| ident.by_ref.is_none()),
                    whole,
                    attrs: argument.attrs.clone(),
                });
            };
            match &*argument.pat {
                Pat::Ident(ident) => {
                    bind(ident, true);
                    if let Some((_, inner)) = &ident.subpat {
                        each_name(inner, &mut |ident| bind(ident, false));
                    }
                }
                pattern => each_name(pattern, &mut |ident| bind(ident, false)),
            }
        }
    }
    bindings
}

/// Shows every name that `pattern` binds; a macro's names cannot be known.
fn each_name(pattern: &Pat, see: &mut dyn FnMut(&PatIdent)) {
    match pattern {
        Pat::Ident(ident) => {
            see(ident);
            if let Some((_, inner)) = &ident.subpat {
                each_name(inner, see);
            }
        }
        // Every alternative binds the same names.
        Pat::Or(or) => or.cases.iter().take(1).for_each(|case| each_name(case, see)),
        Pat::Paren(paren) => each_name(&paren.pat, see),
        Pat::Reference(reference) => each_name(&reference.pat, see),
        Pat::Slice(slice) => slice.elems.iter().for_each(|element| each_name(element, see)),
        Pat::Struct(pattern) => pattern.fields.iter().for_each(|field| each_name(&field.pat, see)),
        Pat::Tuple(tuple) => tuple.elems.iter().for_each(|element| each_name(element, see)),
        Pat::TupleStruct(tuple) => tuple.elems.iter().for_each(|element| each_name(element, see)),
        Pat::Type(typed) => each_name(&typed.pat, see),
        _ => {}
    }
}
