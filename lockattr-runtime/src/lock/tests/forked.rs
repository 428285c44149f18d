//! A locker in a forked child.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{SECOND, is_taken, store};
use crate::env::Environment;
use crate::lease::Owner;
use crate::store::Boxed;
use crate::{Locker, Moment, SimMachine};

/// An environment whose threads stay behind in a parent process once it is a fork.
#[derive(Debug)]
struct Forking(SimMachine, AtomicBool);

impl Environment for Forking {
    fn now(&self) -> Moment {
        self.0.now()
    }
    fn start(&self) -> std::io::Result<()> {
        Ok(())
    }
    fn spawn(&self, work: Boxed<'static, ()>) {
        assert!(!self.is_forked(), "there is no thread that could run it");
        tokio::spawn(work);
    }
    fn sleep_until(&self, at: Moment) -> Boxed<'static, ()> {
        if self.is_forked() {
            return Box::pin(std::future::pending());
        }
        let left = self.now().until(at);
        Box::pin(tokio::time::sleep(left))
    }
    fn random(&self) -> u64 {
        0
    }
    fn owner(&self) -> Owner {
        Owner::random()
    }
    fn is_forked(&self) -> bool {
        self.1.load(Ordering::SeqCst)
    }

    fn may_block(&self) -> Result<(), &'static str> {
        self.0.may_block()
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_in_a_forked_child_ends_at_once_and_leaves_the_parents_locks() {
    let env = Arc::new(Forking(SimMachine::new(1), AtomicBool::new(false)));
    let locker = Locker::on(Arc::new(store()), env.clone());
    let guard = locker.lock("k").acquire().await.expect("it is free");
    env.1.store(true, Ordering::SeqCst);
    let ended = tokio::time::timeout(60 * SECOND, locker.shutdown(SECOND)).await;
    assert!(ended.expect("nothing here would end it later").is_empty());
    drop(guard);
    assert!(is_taken(&locker, "k").await);
}
