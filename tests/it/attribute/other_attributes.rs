//! Together with other attributes, in both orders.

use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

use async_trait::async_trait;
use lockattr::{LockError, distributed_lock};

use crate::support::{held, locker, run};

#[distributed_lock(key = "other-test", locker = locker())]
#[tokio::test]
async fn above_tokio_test() -> Result<(), LockError> {
    tokio::task::yield_now().await;
    assert!(held("other-test"));
    Ok(())
}

#[test]
fn attributes_and_docs_stay() {
    /// Documented.
    #[distributed_lock(key = "other-docs:{id}")]
    #[deprecated]
    #[must_use]
    #[inline]
    #[allow(clippy::double_must_use, clippy::must_use_candidate)]
    async fn go(id: u8) -> Result<u8, LockError> {
        Ok(id)
    }
    #[allow(deprecated)]
    let call = go(1);
    assert_eq!(run(call).unwrap(), 1);
}

#[test]
fn instrument_in_both_orders() {
    #[tracing::instrument(skip(text), err)]
    #[distributed_lock(key = "other-instrument:{id}")]
    async fn above(mut id: u8, text: &str) -> Result<usize, LockError> {
        assert!(held("other-instrument:1"));
        id += 1;
        Ok(text.len() + usize::from(id))
    }
    #[distributed_lock(key = "other-instrument:{id}")]
    #[tracing::instrument(skip(text), err, ret)]
    async fn below(mut id: u8, text: &str) -> Result<usize, LockError> {
        assert!(held("other-instrument:1"));
        id += 1;
        Ok(text.len() + usize::from(id))
    }
    assert_eq!(run(above(1, "ab")).unwrap(), 4);
    assert_eq!(run(below(1, "ab")).unwrap(), 4);
}

#[test]
fn two_locks_on_one_function() {
    #[distributed_lock(key = "other-outer:{a}")]
    #[distributed_lock(key = "other-inner:{b}", wait = 1)]
    async fn go(a: u8, mut b: u8, (c, _d): (u8, u8)) -> Result<u8, LockError> {
        assert!(held("other-outer:1") && held("other-inner:2"));
        b += c;
        Ok(a + b)
    }
    assert_eq!(run(go(1, 2, (3, 4))).unwrap(), 6);
    assert!(!held("other-outer:1") && !held("other-inner:2"));
}

#[test]
fn through_cfg_attr_by_path_and_by_another_name() {
    use lockattr::distributed_lock as once_at_a_time;
    #[cfg_attr(all(), distributed_lock(key = "other-cfg:{id}"))]
    async fn on(id: u8) -> Result<bool, LockError> {
        let _ = id;
        Ok(held("other-cfg:1"))
    }
    #[cfg_attr(any(), distributed_lock(key = "other-cfg:{id}"))]
    async fn off(id: u8) -> Result<bool, LockError> {
        let _ = id;
        Ok(held("other-cfg:1"))
    }
    #[lockattr::distributed_lock(key = "other-path:{id}")]
    async fn by_path(id: u8) -> Result<bool, LockError> {
        let _ = id;
        Ok(held("other-path:1"))
    }
    #[once_at_a_time(key = "other-alias:{id}")]
    async fn by_alias(id: u8) -> Result<bool, LockError> {
        let _ = id;
        Ok(held("other-alias:1"))
    }
    assert!(run(on(1)).unwrap() && !run(off(1)).unwrap());
    assert!(run(by_path(1)).unwrap() && run(by_alias(1)).unwrap());
}

#[async_trait]
trait Pay: Send + Sync {
    async fn pay(&self, to: &str, n: u64) -> Result<u64, LockError>;
    async fn instrumented_above(&self, id: u8, list: &[u8]) -> Result<usize, LockError>;
    async fn instrumented_below(&self, id: u8, list: &[u8]) -> Result<usize, LockError>;
    async fn all_options(&self, id: u8) -> Result<u64, LockError>;

    #[distributed_lock(key = "other-default:{n}")]
    async fn default(&self, n: u64) -> Result<u64, LockError> {
        assert!(held("other-default:3"));
        Ok(n)
    }
}

struct P {
    id: u8,
}

#[async_trait]
impl Pay for P {
    #[distributed_lock(key = "other-pay:{self.id}:{to}")]
    async fn pay(&self, to: &str, mut n: u64) -> Result<u64, LockError> {
        assert!(held("other-pay:1:bob"));
        tokio::task::yield_now().await;
        if n == 0 {
            return Err(LockError::busy(to));
        }
        n += u64::from(self.id);
        Ok(n)
    }

    #[tracing::instrument(skip(self))]
    #[distributed_lock(key = "other-three:{self.id}:{id}")]
    async fn instrumented_above(&self, id: u8, list: &[u8]) -> Result<usize, LockError> {
        assert!(held("other-three:1:2"));
        Ok(list.len() + usize::from(id))
    }

    #[distributed_lock(key = "other-three:{self.id}:{id}")]
    #[tracing::instrument(skip(self), err)]
    async fn instrumented_below(&self, id: u8, list: &[u8]) -> Result<usize, LockError> {
        assert!(held("other-three:1:2"));
        Ok(list.len() + usize::from(id))
    }

    #[deny(unused_variables)]
    #[distributed_lock(key = "other-options:{id}", expires = self.id, lease = lease, on_busy = value(Ok(u64::from(self.id))))]
    async fn all_options(&self, id: u8) -> Result<u64, LockError> {
        let _ = self.all_options(0).await?;
        Ok(lease.token().get())
    }
}

#[test]
fn under_async_trait() {
    fn send<T: Send>(future: T) -> T {
        future
    }
    let p: Box<dyn Pay> = Box::new(P { id: 1 });
    assert_eq!(run(send(p.pay("bob", 2))).unwrap(), 3);
    assert!(run(p.pay("bob", 0)).is_err());
    assert!(!held("other-pay:1:bob"));
    assert_eq!(run(p.default(3)).unwrap(), 3);
    assert_eq!(run(p.instrumented_above(2, &[1])).unwrap(), 3);
    assert_eq!(run(p.instrumented_below(2, &[1])).unwrap(), 3);
    run(async {
        let guard = locker().lock("other-options:0").acquire().await.unwrap();
        assert_eq!(p.all_options(0).await.unwrap(), 1);
        guard.release().await.unwrap();
        assert!(p.all_options(0).await.unwrap() > 1);
    });
}

#[async_trait(?Send)]
trait Local {
    async fn go(&self, id: Rc<u8>) -> Result<u8, LockError>;
}

struct L;

#[async_trait(?Send)]
impl Local for L {
    #[distributed_lock(key = "other-local:{id}")]
    async fn go(&self, id: Rc<u8>) -> Result<u8, LockError> {
        assert!(held("other-local:4"));
        Ok(*id)
    }
}

#[async_trait]
trait Generic<T: Display + Send + Sync + 'static> {
    async fn owned(self: Arc<Self>, t: T) -> Result<String, LockError>;
    async fn associated<U: Display + Send>(u: U) -> Result<String, LockError>;
}

struct G;

#[async_trait]
impl<T: Display + Send + Sync + 'static> Generic<T> for G {
    #[distributed_lock(key = "other-owned:{t}")]
    async fn owned(self: Arc<Self>, t: T) -> Result<String, LockError> {
        Ok(t.to_string())
    }

    #[distributed_lock(key = "other-associated:{u}")]
    async fn associated<U: Display + Send>(u: U) -> Result<String, LockError> {
        Ok(u.to_string())
    }
}

#[test]
fn under_async_trait_in_its_other_forms() {
    assert_eq!(run(L.go(Rc::new(4))).unwrap(), 4);
    assert_eq!(run(Arc::new(G).owned(5_u8)).unwrap(), "5");
    assert_eq!(run(<G as Generic<u8>>::associated("x")).unwrap(), "x");
}

#[async_recursion::async_recursion]
#[distributed_lock(key = "other-below:{n}")]
async fn below(n: u32, text: &str) -> Result<usize, LockError> {
    assert!(held(&format!("other-below:{n}")));
    if n == 0 {
        return Ok(text.len());
    }
    Ok(1 + below(n - 1, text).await?)
}

#[distributed_lock(key = "other-above:{n}")]
#[async_recursion::async_recursion]
async fn above(n: u32, text: &str) -> Result<usize, LockError> {
    assert!(held(&format!("other-above:{n}")));
    if n == 0 {
        return Ok(text.len());
    }
    Ok(1 + above(n - 1, text).await?)
}

#[trait_variant::make(SendLocalVariant: Send)]
#[allow(dead_code)]
trait LocalVariant {
    async fn go(&self, id: u8) -> Result<u8, LockError>;
}

impl SendLocalVariant for G {
    #[distributed_lock(key = "other-variant:{id}")]
    async fn go(&self, id: u8) -> Result<u8, LockError> {
        tokio::task::yield_now().await;
        Ok(id)
    }
}

trait Native {
    async fn go(&self, id: u8) -> Result<u8, LockError>;
}

impl Native for G {
    #[distributed_lock(key = "other-native:{id}")]
    async fn go(&self, id: u8) -> Result<u8, LockError> {
        Ok(id)
    }
}

#[test]
fn with_other_macros_that_rewrite_functions() {
    async fn spawned<T: SendLocalVariant + Send + Sync + 'static>(t: T) -> u8 {
        tokio::spawn(async move { t.go(3).await.unwrap() }).await.unwrap()
    }
    assert_eq!(run(below(3, "ab")).unwrap(), 5);
    assert_eq!(run(above(3, "ab")).unwrap(), 5);
    assert_eq!(run(spawned(G)), 3);
    assert_eq!(run(Native::go(&G, 3)).unwrap(), 3);
}
