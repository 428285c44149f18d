//! The crate under another name, in a crate without a prelude.
#![no_implicit_prelude]
mod block_on;

#[::locks::distributed_lock(key = "renamed:{id}", expires = "2s", wait = 1, crate = ::locks)]
async fn go(id: ::core::primitive::u8) -> ::core::result::Result<::core::primitive::u8, ::locks::LockError> {
    ::core::result::Result::Ok(id)
}

#[::locks::distributed_lock(keys = ids, on_busy = skip, crate = ::locks, release = detached)]
async fn skips(ids: &[&::core::primitive::str]) -> ::core::result::Result<(), ::locks::LockError> {
    ::core::result::Result::Ok(())
}

fn main() {
    ::locks::install(::locks::Locker::new(::locks::store::MemoryStore::new()));
    let id = 1;
    ::std::assert_eq!(block_on::block_on(go(id)).unwrap(), 1);
    block_on::block_on(skips(&["a", "b"])).unwrap();
    ::std::assert_eq!(::locks::key!("renamed:{id}"), "renamed:1");
}
