//! What a locked function returns when its lock could not be taken or kept.
//!
//! Invariant: the declared return type alone decides; aliases work as what they stand for.

use crate::error::LockError;

/// A return type that can hold a lock error.
#[diagnostic::on_unimplemented(
    message = "a locked function must return a `Result`, and this one returns `{Self}`",
    label = "this cannot hold a `LockError`",
    note = "return `Result<_, E>` where `E: From<LockError>`",
    note = "or say `on_error = panic` in the attribute"
)]
pub trait LockOutput {
    /// Holds the error.
    fn from_lock_error(error: LockError) -> Self;
}

impl<T, E: From<LockError>> LockOutput for Result<T, E> {
    fn from_lock_error(error: LockError) -> Self {
        Err(E::from(error))
    }
}

/// A return type with a value for "the lock was taken, so the body was left out".
#[diagnostic::on_unimplemented(
    message = "`on_busy = skip` has no value of type `{Self}` to return",
    label = "skipping returns `()`, `None`, or one of them in `Ok`",
    note = "return `Result<Option<_>, E>`, or give the value with `on_busy = value(..)`"
)]
pub trait SkipOutput {
    /// The empty value.
    fn skipped() -> Self;
}

impl SkipOutput for () {
    fn skipped() -> Self {}
}

impl<T> SkipOutput for Option<T> {
    fn skipped() -> Self {
        None
    }
}

impl<T: SkipOutput, E> SkipOutput for Result<T, E> {
    fn skipped() -> Self {
        Ok(T::skipped())
    }
}

/// The error as the function's output.
#[must_use]
pub fn failed<T: LockOutput>(error: LockError) -> T {
    T::from_lock_error(error)
}

/// For `on_error = panic`.
///
/// # Panics
///
/// Always, with the error's text.
#[must_use]
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "it stands in for `failed`, which keeps the error")]
pub fn panicked<T>(error: LockError) -> T {
    panic!("{error}")
}

/// The empty value as the function's output.
#[must_use]
pub fn skipped<T: SkipOutput>() -> T {
    T::skipped()
}

/// The output of a body that never returns: what is left is that its lock was lost.
///
/// # Panics
///
/// When the lock was lost.
#[must_use]
#[track_caller]
pub fn finished<T>(output: Result<T, LockError>) -> T {
    output.unwrap_or_else(|error| panic!("{error}"))
}
