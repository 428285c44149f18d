//! No tokens make the attribute panic, and whatever the arguments are, the function survives them.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};

/// Arguments that are right, to be broken.
const ARGUMENTS: &[&str] = &[
    r#"key = "account:{id}:{0.name:03}", expires = "500ms", wait = "forever", renew"#,
    r#"keys = ["a:{id}", id.name, format!("{id}")], on_busy = value(Ok(id)), on_lost = continue"#,
    "keys = ids.iter().map(|id| id + 1), on_busy = skip, on_error = panic, release = detached",
    "key = { let a = 1; a }, lease = lease, locker = self.locks, crate = a::b, renew = false",
    r#"key = concat!("a", "b"), min_hold = 1, max_hold = ttl() * 2, on_error = return"#,
];

/// Functions that are right, to be broken.
const ITEMS: &[&str] = &[
    "pub(crate) async fn go(id: u8, mut n: Vec<u8>, _: u8) -> Result<u8, E> { n.push(id); Ok(id) }",
    "#[a] async unsafe fn go<'a, T: A + 'a>(&'a mut self, (a, mut b): (T, u8), #[cfg(x)] c: u8) -> Result<impl A + use<'a>, E> where T: B { #![allow(x)] Ok(c) }",
    "async extern \"C\" fn go(self: Box<Self>, P { id, x: [y, ..], .. }: P, n @ _: u8) -> ! { loop {} }",
    "fn go<'a>(&'a self, id: u8) -> ::std::pin::Pin<Box<dyn Future<Output = Result<u8, E>> + Send + 'a>> where Self: 'a { Box::pin(async move { let s = self; let id = id; let mut n = n; { Ok(id) } }) }",
    "async fn go() {}",
    "impl A { async fn go(&self); }",
];

/// What may stand anywhere.
const WORDS: &[&str] = &[
    "key",
    "keys",
    "expires",
    "wait",
    "renew",
    "on_busy",
    "crate",
    "lease",
    "value",
    "skip",
    "id",
    "self",
    "Self",
    "_",
    "r#type",
    "=",
    "==",
    ",",
    ";",
    ":",
    "::",
    "->",
    ".",
    "..",
    "&",
    "*",
    "!",
    "#",
    "<",
    ">",
    "-",
    "|",
    "?",
    "'a",
    "5",
    "0x1F",
    "1.5",
    "1_0u64",
    "5ms",
    "99999999999999999999",
    "true",
    "'c'",
    "b\"x\"",
    "\"\"",
    "\"a:{id}\"",
    "\"{\"",
    "\"}}{a}{b}%{c:?}\"",
    "\"{0.1.x:é^+#08.3e}\"",
    "\"{ r#x!s }\"",
    "r#\"{self.gen}\"#",
    "\"18446744073709551615d\"",
    "fn",
    "async",
    "unsafe",
    "impl",
    "dyn",
    "mut",
    "ref",
    "move",
    "let",
    "return",
    "continue",
    "where",
    "for",
    "use",
    "pub",
    "struct",
    "Box :: pin",
    "Pin<Box<dyn Future<Output = ()>>>",
    "{ }",
    "( )",
    "[ ]",
    "{ let id = id ; }",
    "Box::pin(x)",
    "#[a]",
    "#![a]",
];

fn tokens(source: &str) -> TokenStream {
    source.parse().unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// One change to a list of tokens, at some depth.
#[derive(Clone, Debug)]
enum Change {
    Remove(Index),
    Repeat(Index),
    Insert(Index, &'static str),
    /// Into a group, as `macro_rules` makes them when the delimiter is none.
    Wrap(Index, Index, Delimiter),
    Inside(Index, Box<Change>),
}

fn changes() -> impl Strategy<Value = Change> {
    let delimiter = select(&[Delimiter::None, Delimiter::None, Delimiter::Brace, Delimiter::Parenthesis][..]);
    let change = prop_oneof![
        any::<Index>().prop_map(Change::Remove),
        any::<Index>().prop_map(Change::Repeat),
        (any::<Index>(), select(WORDS)).prop_map(|(at, word)| Change::Insert(at, word)),
        (any::<Index>(), any::<Index>(), delimiter)
            .prop_map(|(from, to, delimiter)| Change::Wrap(from, to, delimiter)),
    ];
    change.prop_recursive(3, 8, 1, |inner| {
        (any::<Index>(), inner).prop_map(|(at, change)| Change::Inside(at, Box::new(change)))
    })
}

fn changed(stream: TokenStream, change: &Change) -> TokenStream {
    let mut trees: Vec<TokenTree> = stream.into_iter().collect();
    let length = trees.len();
    if length == 0 {
        return trees.into_iter().collect();
    }
    match change {
        Change::Remove(at) => {
            trees.remove(at.index(length));
        }
        Change::Repeat(at) => {
            let tree = trees[at.index(length)].clone();
            trees.insert(at.index(length), tree);
        }
        Change::Insert(at, word) => {
            trees.splice(at.index(length)..at.index(length), tokens(word));
        }
        Change::Wrap(from, to, delimiter) => {
            let (a, b) = (from.index(length), to.index(length));
            let inside: TokenStream = trees[a.min(b)..=a.max(b)].iter().cloned().collect();
            trees.splice(a.min(b)..=a.max(b), [TokenTree::Group(Group::new(*delimiter, inside))]);
        }
        Change::Inside(at, inner) => {
            let groups = trees.iter_mut().filter_map(|tree| match tree {
                TokenTree::Group(group) => Some(group),
                _ => None,
            });
            let mut groups: Vec<_> = groups.collect();
            let count = groups.len();
            if count > 0 {
                let group = &mut *groups[at.index(count)];
                *group = Group::new(group.delimiter(), changed(group.stream(), inner));
            }
        }
    }
    trees.into_iter().collect()
}

fn broken(sources: &'static [&'static str]) -> impl Strategy<Value = TokenStream> {
    let wrong = (select(sources), vec(changes(), 0..6));
    let wrong = wrong.prop_map(|(source, changes)| changes.iter().fold(tokens(source), changed));
    let noise = vec(select(WORDS), 0..12).prop_map(|words| tokens(&words.join(" ")));
    prop_oneof![4 => wrong, 1 => noise]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_attribute_never_panics(arguments in broken(ARGUMENTS), item in broken(ITEMS)) {
        super::attribute(arguments, item);
    }

    #[test]
    fn the_function_survives_every_argument(arguments in broken(ARGUMENTS), item in select(ITEMS)) {
        let output = super::attribute(arguments, tokens(item));
        let file = syn::parse2::<syn::File>(output.clone());
        let file = file.unwrap_or_else(|error| panic!("{error} in {output}"));
        let kept = file.items.iter().any(|item| matches!(item, syn::Item::Fn(_) | syn::Item::Impl(_)))
            || output.to_string().contains("fn go");
        assert!(kept, "{output}");
    }

    #[test]
    fn the_macro_for_keys_never_panics(template in broken(ARGUMENTS), is_literal in any::<bool>(), literal in Just("\"a:{id}\"")) {
        let path = tokens("lockattr::__private;");
        let template = if is_literal { tokens(literal) } else { template };
        crate::key_macro::key(path.into_iter().chain(template).collect());
    }

    #[test]
    fn no_template_panics(template in "[a-c{}:.0-9%é\\[\\]?$*#<>^ \n]{0,24}") {
        crate::key::Template::parse(&template);
    }
}

#[test]
fn the_same_input_gives_the_same_output() {
    for arguments in ARGUMENTS {
        for item in ITEMS {
            let once = super::attribute(tokens(arguments), tokens(item)).to_string();
            assert_eq!(once, super::attribute(tokens(arguments), tokens(item)).to_string());
        }
    }
}
