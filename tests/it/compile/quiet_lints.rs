//! Every shape of expansion under every group of lints, and the restriction lints that generated code trips.
#![deny(clippy::all, clippy::pedantic, clippy::nursery)]
#![deny(
    clippy::absolute_paths, clippy::allow_attributes, clippy::allow_attributes_without_reason,
    clippy::alloc_instead_of_core, clippy::as_conversions, clippy::default_numeric_fallback,
    clippy::else_if_without_else, clippy::exhaustive_enums, clippy::expect_used,
    clippy::indexing_slicing, clippy::integer_division_remainder_used, clippy::let_underscore_must_use,
    clippy::let_underscore_untyped, clippy::let_with_type_underscore, clippy::mem_forget, clippy::panic,
    clippy::pattern_type_mismatch, clippy::question_mark_used, clippy::redundant_type_annotations,
    clippy::ref_patterns, clippy::rest_pat_in_fully_bound_structs, clippy::same_name_method,
    clippy::semicolon_inside_block, clippy::semicolon_outside_block, clippy::shadow_reuse, clippy::shadow_same,
    clippy::shadow_unrelated, clippy::std_instead_of_alloc, clippy::str_to_string, clippy::string_add,
    clippy::unreachable, clippy::unwrap_used, clippy::wildcard_enum_match_arm
)]
#![deny(
    let_underscore_drop, missing_docs, missing_debug_implementations, single_use_lifetimes, trivial_casts,
    trivial_numeric_casts, tail_expr_drop_order, unit_bindings, unreachable_pub, unused_crate_dependencies,
    unused_lifetimes, unused_qualifications, unused_results, variant_size_differences
)]
#![allow(
    clippy::needless_pass_by_value, clippy::missing_errors_doc, clippy::missing_panics_doc,
    clippy::unused_async, clippy::future_not_send, clippy::default_numeric_fallback,
    reason = "they fire on the plain functions too"
)]
use std::fmt::Display;
use std::future::{Ready, pending, ready};
use std::time::Duration;

use lockattr::{LockError, distributed_lock};

/// A value.
#[derive(Debug)]
pub struct Thing {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
}

impl Thing {
    /// Two placeholders, durations, a pattern and an unused argument.
    #[distributed_lock(key = "l:{self.id}:{name}", expires = "2s", wait = 1)]
    pub async fn method(&mut self, name: &str, mut n: usize, _spare: u8, (x, _): (usize, u8)) -> Result<usize, LockError> {
        n += name.len() + x;
        if n == 1 {
            return Ok(1);
        }
        Ok(n)
    }

    /// Several keys, and `self` by value.
    #[distributed_lock(keys = ["l:{a}", "l:{b}", self.name])]
    pub async fn several<T: Display + Send + Sync>(self, a: T, b: &T) -> Result<(), LockError> { Ok(()) }

    /// No output at all.
    #[distributed_lock(key = "c", on_error = panic)]
    pub async fn unit() {}

    /// A statement and no output.
    #[distributed_lock(key = "c", on_error = panic, on_lost = continue)]
    pub async fn statement(id: u8) {
        drop(id.to_string());
    }

    /// Skips.
    #[distributed_lock(key = "d", on_busy = skip)]
    pub async fn skips(list: Vec<u8>) -> Result<Option<usize>, LockError> {
        Ok(Some(list.len()))
    }

    /// Gives a value.
    #[distributed_lock(key = "d", on_busy = value(Ok(list.len())), release = detached)]
    pub async fn value(list: Vec<u8>) -> Result<usize, LockError> {
        Ok(list.capacity())
    }

    /// Never returns.
    #[distributed_lock(key = "e", on_error = panic)]
    pub async fn never() -> ! {
        loop {
            pending::<()>().await;
        }
    }

    /// Every option from an expression, and the lease.
    #[distributed_lock(
        key = format!("f:{}", self.id), expires = self.id, wait = Duration::ZERO, locker = locker,
        min_hold = 1_u8, max_hold = "1h", lease = lease
    )]
    pub async fn expressions(&self, locker: &lockattr::Locker) -> Result<&str, LockError> {
        if lease.is_held() { Ok(&self.name) } else { Ok("") }
    }

    /// A future as the output.
    #[distributed_lock(key = "yb")]
    pub async fn future(id: u8) -> Result<Ready<u8>, LockError> {
        Ok(ready(id))
    }

    /// A bare future as the output.
    #[distributed_lock(key = "yc", on_error = panic)]
    pub async fn bare_future(id: u8) -> Ready<u8> {
        ready(id)
    }

    /// An iterating expression.
    #[distributed_lock(keys = ids.iter().map(|id| lockattr::key!("id:{id}")))]
    pub async fn iterates(ids: &[u8]) -> Result<usize, LockError> {
        Ok(ids.len())
    }
}

fn main() {}
