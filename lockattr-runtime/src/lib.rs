//! The runtime of lockattr. Use the `lockattr` crate, which re-exports all of this.
#![forbid(unsafe_code)]

#[cfg(feature = "testing")]
pub mod conformance;
mod env;
mod error;
mod fence;
mod held;
mod keeper;
mod key;
pub mod lease;
mod lock;
mod observe;
mod options;
mod registry;
mod run;
#[cfg(feature = "testing")]
mod sim;
pub mod store;
mod term;
mod time;

pub use error::{LockError, Locked, LossCause, Step};
pub use fence::{FenceGate, StaleToken};
pub use held::Held;
pub use lock::{Blocking, Guard, LockBuilder, Locker, Scope, current, holds, shutdown};
pub use options::{LockOptions, OnLost, Wait};
pub use registry::install;
#[doc(hidden)]
pub use run::private as __private;
#[cfg(feature = "testing")]
pub use run::testing;
#[cfg(feature = "testing")]
pub use sim::SimMachine;
pub use time::Moment;
