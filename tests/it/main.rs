//! Behaviour of the whole, through the public interface. One binary, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attribute;
mod compile;
mod examples;
mod features;
#[cfg(unix)]
mod forked;
mod key_encoding;
mod layers;
#[cfg(unix)]
mod processes;
#[cfg(unix)]
#[path = "../servers/mod.rs"]
mod servers;
#[cfg(feature = "testing")]
mod simulation;
#[cfg(feature = "testing")]
mod stores;
mod support;
