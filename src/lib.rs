#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use lockattr_runtime::{
    Blocking, FenceGate, Guard, Held, LockBuilder, LockError, LockOptions, Locked, Locker, LossCause, OnLost,
    Scope, StaleToken, Step, Wait, current, holds, install, lease, shutdown, store,
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

/// Panics unless the body that is running, or one around it, holds the lock on this key: for code that must
/// only be called under it.
///
/// It takes one template, and makes of it the key that [`distributed_lock`](macro@distributed_lock) makes of the
/// same template; names are whatever is in scope. Like `assert!` it is checked in release builds too. Which code
/// is the body, [`current`] says; [`holds`] asks without a panic.
///
/// ```
/// use lockattr::{LockError, Locker, assert_locked, distributed_lock, store::MemoryStore};
///
/// async fn post(account: u64, cents: i64) {
///     assert_locked!("account:{account}");
/// }
///
/// #[distributed_lock(keys = ["account:{from}", "account:{to}"])]
/// async fn transfer(from: u64, to: u64, cents: i64) -> Result<(), LockError> {
///     post(from, -cents).await;
///     post(to, cents).await;
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// lockattr::install(Locker::new(MemoryStore::new()));
/// transfer(1, 2, 100).await.unwrap();
/// # }
/// ```
///
/// # Panics
///
/// When the key is not held, or was and is lost. The text says by their templates what is held.
#[macro_export]
macro_rules! assert_locked {
    ($($template:tt)*) => {
        $crate::__assert_locked!($crate::__private; $($template)*)
    };
}

#[doc(hidden)]
pub use lockattr_macros::assert_locked as __assert_locked;
#[doc(hidden)]
pub use lockattr_macros::key as __key;
#[doc(hidden)]
pub use lockattr_runtime::__private;
