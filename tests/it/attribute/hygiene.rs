//! Names of the user's and names of ours never meet.
#![allow(dead_code, unused_macros, non_camel_case_types, non_upper_case_globals)]

use lockattr::{LockError, distributed_lock};

use crate::support::{held, run};

#[test]
fn arguments_and_locals_named_like_internals() {
    #[allow(clippy::too_many_arguments)]
    #[distributed_lock(key = "{key}:{guard}:{__lockattr_out}:{__lockattr_keys}")]
    async fn go(
        key: u8,
        guard: u8,
        out: u8,
        body: u8,
        locker: u8,
        __lockattr_out: u8,
        __lockattr_keys: u8,
        __lockattr_guard: u8,
    ) -> Result<u8, LockError> {
        assert!(held("1:2:6:7"));
        let __lockattr_failed = 100;
        let options = 0;
        Ok(key
            + guard
            + out
            + body
            + locker
            + __lockattr_out
            + __lockattr_keys
            + __lockattr_guard
            + __lockattr_failed
            + options)
    }
    assert_eq!(run(go(1, 2, 3, 4, 5, 6, 7, 8)).unwrap(), 136);
}

mod items_named_like_internals {
    pub(super) const error: u8 = 1;
    pub(super) const guard: u8 = 1;
    pub(super) const key: u8 = 1;
    pub(super) const out: u8 = 1;
    pub(super) static body: u8 = 1;

    #[lockattr::distributed_lock(key = "hygiene-items:{id}")]
    pub(super) async fn go(id: u8) -> Result<u8, lockattr::LockError> {
        Ok(id)
    }
}

mod shadowed_prelude {
    use super::distributed_lock;
    type Result<T> = std::result::Result<T, super::LockError>;
    struct Ok;
    struct Err;
    struct Some;
    struct None;
    struct Option;
    struct String;
    struct Vec;
    struct Box;
    struct Duration;
    trait From {}
    trait Future {}
    trait Drop {}
    trait Default {}
    macro_rules! format_args {
        () => {};
    }

    #[distributed_lock(key = "hygiene-prelude:{id}", expires = "2s", wait = 1)]
    pub(super) async fn one(id: u8) -> Result<u8> {
        std::result::Result::Ok(id)
    }

    #[distributed_lock(keys = ["hygiene-prelude:{id}", "hygiene-prelude:b"], on_busy = skip)]
    pub(super) async fn many(id: u8) -> Result<()> {
        let _ = id;
        std::result::Result::Ok(())
    }
}

#[no_implicit_prelude]
mod no_prelude {
    #[::lockattr::distributed_lock(key = "hygiene-bare:{id}", expires = "2s", wait = 1, lease = lease)]
    pub(super) async fn one(id: ::core::primitive::u8) -> ::core::result::Result<u64, ::lockattr::LockError> {
        let _ = id;
        ::core::result::Result::Ok(lease.token().get())
    }

    #[::lockattr::distributed_lock(keys = ids, on_busy = skip, locker = locker, release = detached)]
    pub(super) async fn many(
        ids: &[&str],
        locker: &::lockattr::Locker,
    ) -> ::core::result::Result<(), ::lockattr::LockError> {
        ::core::result::Result::Ok(())
    }

    use ::core::primitive::u64;
}

mod module_named_like_the_crate {
    mod lockattr {}
    mod core {}
    mod std {}

    #[::lockattr::distributed_lock(key = "hygiene-module:{id}")]
    pub(super) async fn go(id: u8) -> Result<u8, ::lockattr::LockError> {
        Ok(id)
    }
}

mod reached_through_another {
    pub(super) mod facade {
        pub(crate) mod deps {
            pub(crate) use lockattr as locks;
        }
    }
    use facade::deps::locks::{LockError, distributed_lock};

    #[distributed_lock(key = "hygiene-crate:{id}", crate = crate::attribute::hygiene::reached_through_another::facade::deps::locks)]
    pub(super) async fn go(id: u8) -> Result<u8, LockError> {
        Ok(id)
    }
}

#[test]
fn modules_of_every_kind() {
    assert_eq!(run(items_named_like_internals::go(1)).unwrap(), 1);
    assert_eq!(run(shadowed_prelude::one(1)).unwrap(), 1);
    run(shadowed_prelude::many(1)).unwrap();
    assert!(run(no_prelude::one(1)).unwrap() > 0);
    run(no_prelude::many(&["hygiene-many"], crate::support::locker())).unwrap();
    assert_eq!(run(module_named_like_the_crate::go(1)).unwrap(), 1);
    assert_eq!(run(reached_through_another::go(1)).unwrap(), 1);
}

#[test]
fn methods_of_the_users_traits_are_not_called() {
    trait Loud {
        fn await_(&self) {}
        fn as_mut(&self) -> ! {
            panic!("called by the expansion")
        }
        fn poll(&self) -> ! {
            panic!("called by the expansion")
        }
        fn to_string(&self) -> ! {
            panic!("called by the expansion")
        }
    }
    impl<T> Loud for T {}
    #[distributed_lock(key = "hygiene-traits:{id}")]
    async fn go(id: u8) -> Result<u8, LockError> {
        Ok(id)
    }
    assert_eq!(run(go(1)).unwrap(), 1);
}
