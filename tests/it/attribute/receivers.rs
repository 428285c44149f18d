//! Methods: every kind of `self`.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use lockattr::{LockError, distributed_lock};

use crate::support::{held, run};

struct S {
    id: u8,
}

#[allow(clippy::needless_arbitrary_self_type)]
impl S {
    #[distributed_lock(key = "receivers:{self.id}")]
    async fn by_ref(&self, other: &u8) -> Result<u8, LockError> {
        assert!(held("receivers:1"));
        Ok(self.id + other)
    }

    #[distributed_lock(key = "receivers:{self.id}")]
    async fn by_mut(&mut self) -> Result<&mut u8, LockError> {
        self.id += 1;
        Ok(&mut self.id)
    }

    #[distributed_lock(key = "receivers:{self.id}")]
    async fn mut_value(mut self) -> Result<u8, LockError> {
        self.id += 1;
        Ok(self.id)
    }

    #[distributed_lock(key = "receivers:{self.id}")]
    async fn arc(self: Arc<Self>) -> Result<usize, LockError> {
        Ok(Arc::strong_count(&self))
    }

    #[distributed_lock(key = "receivers:{self.id}")]
    async fn boxed(self: Box<Self>) -> Result<u8, LockError> {
        Ok(self.id)
    }

    #[distributed_lock(key = "receivers:{self.id}")]
    async fn rc(self: Rc<Self>) -> Result<u8, LockError> {
        Ok(self.id)
    }

    #[distributed_lock(key = "receivers:{self.id}")]
    async fn ref_arc(self: &Arc<Self>) -> Result<Arc<Self>, LockError> {
        Ok(Arc::clone(self))
    }

    #[distributed_lock(key = "receivers:{self.id}")]
    async fn pinned(self: Pin<&mut Self>) -> Result<u8, LockError> {
        Ok(self.get_mut().id)
    }

    #[distributed_lock(key = "receivers:{self.id}")]
    async fn long_ref(self: &Self) -> Result<u8, LockError> {
        Ok(self.id)
    }

    #[distributed_lock(key = "receivers:{self.id}")]
    async fn long_value(self: Self) -> Result<u8, LockError> {
        Ok(self.id)
    }

    #[distributed_lock(key = "receivers:{self.id}")]
    async fn self_in_macros_and_items(&self) -> Result<String, LockError> {
        fn other(s: &S) -> u8 {
            s.id
        }
        macro_rules! id {
            ($s:ident) => {
                $s.id
            };
        }
        let Self { id } = self;
        let closure = || self.id;
        Ok(format!("{} {} {} {} {}", self.id, id!(self), other(self), id, closure()))
    }

    #[distributed_lock(key = "receivers:{id}")]
    async fn made(id: u8) -> Result<Self, LockError> {
        Ok(Self { id })
    }
}

#[test]
fn every_receiver() {
    let mut s = S { id: 1 };
    assert_eq!(run(s.by_ref(&1)).unwrap(), 2);
    *run(s.by_mut()).unwrap() += 1;
    assert_eq!(s.id, 3);
    assert_eq!(run(s.mut_value()).unwrap(), 4);
    let arc = Arc::new(S { id: 1 });
    assert_eq!(run(Arc::clone(&arc).arc()).unwrap(), 2);
    assert_eq!(Arc::strong_count(&arc), 1);
    assert_eq!(run(arc.ref_arc()).unwrap().id, 1);
    assert_eq!(run(Box::new(S { id: 2 }).boxed()).unwrap(), 2);
    assert_eq!(run(Rc::new(S { id: 2 }).rc()).unwrap(), 2);
    assert_eq!(run(Pin::new(&mut S { id: 2 }).pinned()).unwrap(), 2);
    assert_eq!(run(S { id: 2 }.long_ref()).unwrap(), 2);
    assert_eq!(run(S { id: 2 }.long_value()).unwrap(), 2);
    assert_eq!(run(S { id: 2 }.self_in_macros_and_items()).unwrap(), "2 2 2 2 2");
    assert_eq!(run(S::made(2)).unwrap().id, 2);
}

#[test]
fn a_value_self_is_dropped_inside_the_lock() {
    struct Tx(u8);
    impl Drop for Tx {
        fn drop(&mut self) {
            assert!(held("receivers-tx:1"), "dropped outside the lock");
        }
    }
    impl Tx {
        #[distributed_lock(key = "receivers-tx:{self.0}")]
        async fn ignored(self) -> Result<(), LockError> {
            Ok(())
        }
        #[distributed_lock(key = "receivers-tx:{self.0}")]
        async fn consumed(self) -> Result<u8, LockError> {
            let tx = self;
            Ok(tx.0)
        }
    }
    run(Tx(1).ignored()).unwrap();
    assert_eq!(run(Tx(1).consumed()).unwrap(), 1);
    assert!(!held("receivers-tx:1"));
}
