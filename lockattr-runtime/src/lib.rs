//! The runtime of lockattr. Use the `lockattr` crate, which re-exports all of this.
#![forbid(unsafe_code)]

mod env;
mod error;
mod held;
mod keeper;
mod key;
pub mod lease;
mod lock;
mod options;
mod registry;
mod run;
pub mod store;
mod time;

pub use error::{LockError, Locked, LossCause, Step};
pub use held::Held;
pub use lock::{Guard, Locker};
pub use options::{LockOptions, OnLost, Wait};
pub use registry::install;
#[doc(hidden)]
pub use run::private as __private;
#[cfg(feature = "testing")]
pub use time::Moment;
