//! Two different lists of formatted values never give one key, whatever the texts between them.

use std::collections::BTreeSet;
use std::fmt;
use std::iter::once;
use std::ops::RangeInclusive;

use lockattr::__private::rendered;
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

/// Pieces that could confuse: separators, what encodes, what is encoded, and what it becomes.
const PIECES: &[&str] = &["a", ":", "%", "3", "A", "-", "é", "%3A", "%25", "%2D", "%C3%A9"];

/// What the attribute derives from a template: the first characters of the texts between placeholders.
fn separators(texts: &[String]) -> String {
    let between = &texts[1..texts.len() - 1];
    between.iter().filter_map(|text| text.chars().next()).collect()
}

fn render(texts: &[String], values: &[String]) -> String {
    let texts_: Vec<_> = texts.iter().map(String::as_str).collect();
    let separators = separators(texts);
    // One call for each length: `format_args!` gives nothing that could be collected.
    match values {
        [a] => rendered(&separators, &texts_, &[format_args!("{a}")]),
        [a, b] => rendered(&separators, &texts_, &[format_args!("{a}"), format_args!("{b}")]),
        [a, b, c] => {
            rendered(&separators, &texts_, &[format_args!("{a}"), format_args!("{b}"), format_args!("{c}")])
        }
        _ => unreachable!("one to three values"),
    }
}

fn text(pieces: RangeInclusive<usize>) -> impl Strategy<Value = String> {
    vec(select(PIECES), pieces).prop_map(String::from_iter)
}

/// A template with two or three placeholders, and a text that was made with it, or could have been.
fn cases() -> impl Strategy<Value = (Vec<String>, String)> {
    let between = text(1..=2).prop_filter("not after the encoder's sign", |text| !text.starts_with('%'));
    let texts = (text(0..=1), vec(between, 1..=2), text(0..=1));
    let texts =
        texts.prop_map(|(first, between, last)| once(first).chain(between).chain(once(last)).collect());
    texts.prop_flat_map(|texts: Vec<String>| {
        let piece = prop_oneof![text(1..=1), select(texts.clone())];
        (Just(texts), vec(piece, 0..=6)).prop_map(|(texts, middle)| {
            let whole = format!("{}{}{}", texts[0], middle.concat(), texts[texts.len() - 1]);
            (texts, whole)
        })
    })
}

/// Every list of values that gives `whole` with `texts` when nothing is encoded.
fn readings(texts: &[String], whole: &str) -> Vec<Vec<String>> {
    let Some(rest) = whole.strip_prefix(texts[0].as_str()) else { return Vec::new() };
    let texts = &texts[1..];
    if let [last] = texts {
        return rest.strip_suffix(last.as_str()).map(|value| vec![value.to_owned()]).into_iter().collect();
    }
    let ends = rest.match_indices(texts[0].as_str()).map(|(end, _)| end);
    ends.flat_map(|end| {
        let (value, rest) = rest.split_at(end);
        let others = readings(texts, rest);
        others.into_iter().map(move |others| once(value.to_owned()).chain(others).collect())
    })
    .collect()
}

fn decoded(value: &str) -> String {
    value.replace("%3A", ":").replace("%2D", "-").replace("%C3%A9", "é").replace("%25", "%")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn different_values_give_different_keys((texts, whole) in cases()) {
        // All that look alike in plain text, and what they would be the encoded form of.
        let plain = readings(&texts, &whole);
        let raw = plain.iter().map(|values| values.iter().map(|value| decoded(value)).collect());
        let lists: BTreeSet<Vec<String>> = raw.chain(plain.iter().cloned()).collect();
        let keys: BTreeSet<String> = lists.iter().map(|values| render(&texts, values)).collect();
        prop_assert_eq!(keys.len(), lists.len(), "{:?} around {:?}", lists, texts);
    }
}

#[test]
fn every_short_pair_of_values_has_a_key_of_its_own() {
    let alphabet = ['a', ':', '%', '3', 'A', '-'];
    let mut short = vec![String::new()];
    for c in alphabet {
        short.push(c.to_string());
        short.extend(alphabet.iter().map(|d| format!("{c}{d}")));
        short.extend(alphabet.iter().map(|d| format!("{c}3{d}")));
    }
    short.sort();
    short.dedup();
    for between in [":", "-", "a", "3", "A:", "-:", "a%3A"] {
        let texts = [String::new(), between.to_owned(), String::new()];
        let mut keys = std::collections::HashSet::new();
        for a in &short {
            for b in &short {
                let key = render(&texts, &[a.clone(), b.clone()]);
                assert!(keys.insert(key.clone()), "{a:?} and {b:?} around {between:?} give {key:?} again");
            }
        }
    }
}

#[test]
fn ordinary_values_stay_as_they_are() {
    struct Shown(&'static str);
    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.chars().try_for_each(|c| write!(f, "{c}"))
        }
    }
    for text in
        ["7", "-7", "1.5", "ann@example.org", "größe", "a_b.c", "8f14e45f-ceea-467f-a5f4-4f3f1b2c3d4e"]
    {
        assert_eq!(rendered("", &["user:", ""], &[format_args!("{}", Shown(text))]), format!("user:{text}"));
    }
}
