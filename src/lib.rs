#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use lockattr_runtime::{
    Guard, Held, LockBuilder, LockError, LockOptions, Locked, Locker, LossCause, OnLost, Step, Wait, install,
    lease, shutdown, store,
};

#[doc = include_str!("distributed_lock.md")]
pub use lockattr_macros::distributed_lock;
pub use lockattr_runtime::Moment;
#[cfg(feature = "testing")]
pub use lockattr_runtime::{SimMachine, conformance, testing};

/// Gives the text that [`distributed_lock`](macro@distributed_lock) makes of the same template, for code that
/// shares its keys: an admin tool, or a call of the API.
///
/// Names are whatever is in scope. Values are encoded as in the attribute, so a key is the same text in both.
///
/// ```
/// let id = 7;
/// assert_eq!(lockattr::key!("account:{id}"), "account:7");
///
/// let path = "a/b:c";
/// assert_eq!(lockattr::key!("file:{path}"), "file:a%2Fb%3Ac");
/// ```
#[macro_export]
macro_rules! key {
    ($($template:tt)*) => {
        $crate::__key!($crate::__private; $($template)*)
    };
}

#[doc(hidden)]
pub use lockattr_macros::key as __key;
#[doc(hidden)]
pub use lockattr_runtime::__private;
