#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use lockattr_runtime::{
    Guard, Held, LockError, LockOptions, Locked, Locker, LossCause, OnLost, Step, Wait, install, lease, store,
};

#[doc(hidden)]
pub use lockattr_runtime::__private;
