//! Behaviour of the whole, through the public interface. One binary, so that it is linked once.

mod attribute;
#[cfg(feature = "testing")]
mod stores;
mod support;
