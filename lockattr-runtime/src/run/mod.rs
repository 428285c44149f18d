//! What the attribute calls.
#[doc(hidden)]
pub mod private {}
