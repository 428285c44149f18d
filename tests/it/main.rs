//! The integration tests: one binary, so that they link once.

mod examples;
mod features;
mod layers;
#[cfg(unix)]
mod processes;
#[cfg(feature = "testing")]
mod stores;
