//! The rows of a store's table against what the store says of itself.

use super::bench::block_on;
use crate::store::{Feature, Store};

const FEATURES: [(&str, Feature); 8] = [
    ("shared", Feature::Shared),
    ("permits", Feature::Permits),
    ("atomic_many", Feature::AtomicMany),
    ("keep", Feature::Keep),
    ("once_per", Feature::OncePer),
    ("token_blocks", Feature::TokenBlocks),
    ("token_floor", Feature::TokenFloor),
    ("watch", Feature::Watch),
];

/// Panics where a row and the store differ.
#[doc(hidden)]
pub fn check<S: Store, W: Future<Output = S>>(open: impl Fn(String) -> W, rows: &[(&str, bool)]) {
    let store = block_on(open("the_table_is_what_the_store_says".to_owned()));
    for (name, feature) in FEATURES {
        let row = rows.iter().find(|(row, _)| *row == name);
        assert_eq!(row, Some(&(name, store.supports(feature))), "the row and `supports` of `{name}` differ");
    }
    assert!(
        !store.supports(Feature::Shared) && !store.supports(Feature::Permits),
        "the suite has no cases for shared and counted modes yet: add them with the first store that has these"
    );
    assert_eq!(store.watch().is_some(), store.supports(Feature::Watch), "`watch` and `supports` differ");
}
