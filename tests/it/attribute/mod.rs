//! The attribute on every shape of function, argument, key and option that people write.

// The shapes are the point here. Nothing is allowed that an expansion could cause.
#![allow(
    clippy::cast_possible_truncation,
    clippy::drop_non_drop,
    clippy::elidable_lifetime_names,
    clippy::items_after_statements,
    clippy::large_types_passed_by_value,
    clippy::many_single_char_names,
    clippy::needless_lifetimes,
    clippy::non_minimal_cfg,
    clippy::redundant_allocation,
    clippy::redundant_pattern,
    clippy::too_many_arguments,
    clippy::unused_async
)]

mod arguments;
mod busy;
mod flow;
mod hygiene;
mod keys;
mod macro_rules;
mod options;
mod other_attributes;
mod receivers;
mod scope;
mod send;
mod signatures;
