#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use lockattr_runtime::{
    Guard, Held, LockBuilder, LockError, LockOptions, Locked, Locker, LossCause, OnLost, Step, Wait, install,
    lease, shutdown, store,
};

#[doc(hidden)]
pub use lockattr_runtime::__private;
