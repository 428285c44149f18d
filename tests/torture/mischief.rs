//! A fork of a process that holds a guard, as programs do that start others without `exec`.
#![allow(unsafe_code, reason = "nothing safe forks")]

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use lockattr::{Guard, LockError};

use crate::ways::Tools;

const PATIENCE: Duration = Duration::from_secs(5);

/// What the child found, as its exit code.
const FINE: i32 = 0;
const STILL_HELD: i32 = 10;
const NOT_REFUSED: i32 = 11;

/// Forks; the child drops its copy of `guard` and tries to lock `key`. Returns the parent's guard.
pub(crate) fn fork(tools: &Tools, guard: Guard, key: &str) -> Guard {
    // SAFETY: the child runs on with one thread, takes no lock that another thread may have had, and ends with
    // `_exit`, so that nothing of the parent's is flushed or torn down twice. glibc keeps its allocator usable.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = if guard.is_held() {
            STILL_HELD
        } else {
            drop(guard);
            let mut acquire = pin!(tools.locker.lock(key).acquire());
            match acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Err(LockError::Forked { .. })) => FINE,
                _ => NOT_REFUSED,
            }
        };
        // SAFETY: it does not return.
        unsafe { libc::_exit(code) }
    }
    match wait(child) {
        Some(FINE) => {}
        Some(STILL_HELD) => tools.recorder.wrong("a forked child believes in its parent's lock"),
        Some(NOT_REFUSED) => tools.recorder.wrong("a forked child was not refused a lock"),
        Some(code) => tools.recorder.wrong(format!("a forked child ended with {code}")),
        None => tools.recorder.wrong("a forked child hung"),
    }
    guard
}

/// The exit code of the child, or of its signal; `None` when it does not end and was killed.
fn wait(child: libc::pid_t) -> Option<i32> {
    let started = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the status is ours, and no other code waits for this child.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return Some(if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                1000 + libc::WTERMSIG(status)
            });
        }
        if started.elapsed() > PATIENCE {
            // SAFETY: the child has not been waited for, so its number is not another's.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, &raw mut status, 0);
            }
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
