//! The integration tests: one binary, so that they link once.

#[cfg(feature = "testing")]
mod stores;
