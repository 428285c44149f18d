//! The future itself: `Send`, `Sync`, small, and no deeper than the plain one.

use lockattr::{LockError, distributed_lock};

use crate::support::run;

fn send<T: Send>(future: T) -> T {
    future
}

fn sync<T: Sync>(future: T) -> T {
    future
}

#[test]
fn it_is_send_and_static_where_the_plain_one_is() {
    #[distributed_lock(key = "send:{id}:{name}", wait = 1)]
    async fn owned(id: usize, name: String) -> Result<usize, LockError> {
        tokio::task::yield_now().await;
        Ok(name.len() + id)
    }
    #[distributed_lock(key = "send-borrowed:{id}", wait = 1)]
    async fn borrowed(
        id: &str,
        list: &mut Vec<u8>,
        f: &(dyn Fn(u8) -> u8 + Send + Sync),
    ) -> Result<usize, LockError> {
        tokio::task::yield_now().await;
        list.push(f(1));
        Ok(id.len() + list.len())
    }
    run(async {
        assert_eq!(tokio::spawn(owned(1, "ab".into())).await.unwrap().unwrap(), 3);
        assert_eq!(sync(owned(1, "ab".into())).await.unwrap(), 3);
        let mut list = vec![];
        assert_eq!(send(borrowed("x", &mut list, &|x| x)).await.unwrap(), 2);
        let task = tokio::spawn(async move {
            let (id, mut list) = (String::from("q"), vec![]);
            borrowed(&id, &mut list, &|x| x).await
        });
        assert_eq!(task.await.unwrap().unwrap(), 2);
    });
}

#[test]
fn an_output_that_is_not_send_needs_a_detached_release() {
    #[distributed_lock(key = "send-output:{id}", release = detached)]
    async fn go(id: u8) -> Result<u8, Box<dyn std::error::Error>> {
        tokio::task::yield_now().await;
        Ok(id)
    }
    assert_eq!(run(send(go(1))).unwrap(), 1);
}

#[test]
fn it_is_at_most_one_point_six_times_the_plain_one() {
    async fn plain(a: [u8; 4096], id: u8) -> Result<u8, LockError> {
        let big = [1_u8; 8192];
        tokio::task::yield_now().await;
        Ok(a[0] + big[7] + id)
    }
    #[distributed_lock(key = "send-size:{id}")]
    async fn locked(a: [u8; 4096], id: u8) -> Result<u8, LockError> {
        let big = [1_u8; 8192];
        tokio::task::yield_now().await;
        Ok(a[0] + big[7] + id)
    }
    let (plain, locked) = (plain([0; 4096], 1), locked([0; 4096], 1));
    let (small, large) = (size_of_val(&plain), size_of_val(&locked));
    assert!(large * 10 <= small * 16, "{large} against {small}");
    assert_eq!(run(Box::pin(plain)).unwrap(), run(Box::pin(locked)).unwrap());
}

#[test]
fn a_chain_of_calls_stays_within_the_limits() {
    macro_rules! chain {
        ($($name:ident $next:ident)*) => {$(
            #[distributed_lock(key = "send-chain:{id}:{0}", wait = 1)]
            async fn $name(id: String) -> Result<String, LockError> {
                let longer = $next(format!("{id}x")).await?;
                Ok(longer)
            }
        )*};
    }
    async fn end(id: String) -> Result<String, LockError> {
        Ok(id)
    }
    chain!(a b b c c d d e e f f g g h h end);
    run(async { assert_eq!(tokio::spawn(a(String::new())).await.unwrap().unwrap().len(), 8) });
}
