//! Arguments and their patterns: bound as in a plain function, moved in, dropped inside the lock.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockattr::{LockError, distributed_lock};

use crate::support::{becomes_free, held, run};

#[test]
fn the_body_changes_a_mut_argument_and_the_key_shows_the_callers_value() {
    #[distributed_lock(key = "arguments-mut:{n}")]
    async fn go(mut n: u32, mut list: Vec<u32>) -> Result<u32, LockError> {
        n += 1;
        list.push(n);
        assert!(held("arguments-mut:1"));
        Ok(list.iter().sum())
    }
    assert_eq!(run(go(1, vec![1])).unwrap(), 3);
    assert!(!held("arguments-mut:1"));
}

#[test]
fn names_in_patterns_work_in_key_and_body() {
    struct Pair {
        a: u8,
        b: u8,
    }
    #[distributed_lock(key = "arguments-pattern:{a}:{x}:{n}:{first}:{r}")]
    #[allow(clippy::toplevel_ref_arg)]
    async fn go(
        Pair { mut a, b: renamed }: Pair,
        (mut c, d): (u8, u8),
        &x: &u64,
        &(y, _): &(u8, u8),
        ref r: String,
        n @ _: u8,
        [first, .., last]: [u8; 3],
        (Ok(either) | Err(either)): Result<u8, u8>,
        Ok(sure): Result<u8, Infallible>,
    ) -> Result<u64, LockError> {
        assert!(held("arguments-pattern:1:10:9:5:r"));
        a += 1;
        c += 1;
        Ok(u64::from(a + renamed + c + d + y + n + first + last + either + sure) + x + r.len() as u64)
    }
    let sum = run(go(Pair { a: 1, b: 1 }, (1, 1), &10, &(1, 1), "r".into(), 9, [5, 0, 1], Err(1), Ok(1)));
    assert_eq!(sum.unwrap(), 2 + 1 + 2 + 1 + 10 + 1 + 1 + 9 + 5 + 1 + 1 + 1);
}

#[test]
fn mut_beside_a_name_bound_by_reference() {
    #[distributed_lock(key = "arguments-modes")]
    async fn go((mut a, b): (u8, &mut u8)) -> Result<u8, LockError> {
        a += 1;
        *b += a;
        Ok(a)
    }
    #[allow(clippy::toplevel_ref_arg, reason = "that such arguments work is what is tested")]
    #[distributed_lock(key = "arguments-ref-mut:{list_len}")]
    async fn ref_mut(
        ref mut list: Vec<u8>,
        (ref mut more, list_len): (Vec<u8>, u8),
    ) -> Result<usize, LockError> {
        list.push(list_len);
        more.append(list);
        Ok(more.len())
    }
    let mut b = 1;
    assert_eq!(run(go((1, &mut b))).unwrap(), 2);
    assert_eq!(b, 3);
    assert_eq!(run(ref_mut(vec![1], (vec![2], 3))).unwrap(), 3);
}

#[test]
fn nothing_is_asked_of_arguments_that_are_not_in_the_key() {
    struct Opaque;
    #[distributed_lock(key = "arguments-opaque:{id}")]
    async fn go(id: u8, _: Opaque, _spare: Opaque) -> Result<u8, LockError> {
        Ok(id)
    }
    assert_eq!(run(go(1, Opaque, Opaque)).unwrap(), 1);
}

#[test]
fn an_argument_that_only_the_key_reads_is_used() {
    #[deny(unused_variables)]
    #[distributed_lock(key = "arguments-key:{tenant}")]
    async fn template(tenant: &str) -> Result<(), LockError> {
        Ok(())
    }
    #[deny(unused_variables)]
    #[distributed_lock(key = format!("arguments-key:{tenant}"), expires = seconds)]
    async fn expression(tenant: &str, seconds: u64) -> Result<(), LockError> {
        Ok(())
    }
    run(template("t")).unwrap();
    run(expression("t", 9)).unwrap();
}

#[test]
fn arguments_are_dropped_inside_the_lock_in_the_order_of_a_plain_function() {
    static INSIDE: AtomicU32 = AtomicU32::new(0);
    static OUTSIDE: AtomicU32 = AtomicU32::new(0);
    struct Permit;
    impl Drop for Permit {
        fn drop(&mut self) {
            if held("arguments-drop") { &INSIDE } else { &OUTSIDE }.fetch_add(1, Ordering::SeqCst);
        }
    }
    #[distributed_lock(key = "arguments-drop")]
    async fn unused(_permit: Permit) -> Result<(), LockError> {
        Ok(())
    }
    #[distributed_lock(key = "arguments-drop")]
    async fn partly(pair: (Permit, Permit)) -> Result<(), LockError> {
        let _ = &pair.0;
        Ok(())
    }
    #[distributed_lock(key = "arguments-drop")]
    async fn fails(_permit: Permit) -> Result<(), LockError> {
        Err(LockError::busy("k"))?;
        Ok(())
    }
    #[distributed_lock(key = "arguments-drop")]
    async fn never_ends(_permit: Permit) -> Result<(), LockError> {
        std::future::pending().await
    }
    run(async {
        unused(Permit).await.unwrap();
        partly((Permit, Permit)).await.unwrap();
        fails(Permit).await.unwrap_err();
        tokio::time::timeout(Duration::from_millis(20), never_ends(Permit)).await.unwrap_err();
        assert!(becomes_free("arguments-drop").await);
    });
    assert_eq!((INSIDE.load(Ordering::SeqCst), OUTSIDE.load(Ordering::SeqCst)), (5, 0));
}

#[test]
fn the_order_of_drops_is_that_of_a_plain_function() {
    struct Noted<'a>(char, &'a RefCell<String>);
    impl Drop for Noted<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().push(self.0);
        }
    }
    async fn plain(_a: Noted<'_>, b: Noted<'_>, (c, _d): (Noted<'_>, Noted<'_>)) -> Result<(), LockError> {
        let _local = Noted('l', b.1);
        drop(c);
        Ok(())
    }
    #[distributed_lock(key = "arguments-order")]
    async fn locked(_a: Noted<'_>, b: Noted<'_>, (c, _d): (Noted<'_>, Noted<'_>)) -> Result<(), LockError> {
        let _local = Noted('l', b.1);
        drop(c);
        Ok(())
    }
    let (as_plain, as_locked) = (RefCell::default(), RefCell::default());
    let noted = |c, log| Noted(c, log);
    run(plain(noted('a', &as_plain), noted('b', &as_plain), (noted('c', &as_plain), noted('d', &as_plain))))
        .unwrap();
    run(locked(
        noted('a', &as_locked),
        noted('b', &as_locked),
        (noted('c', &as_locked), noted('d', &as_locked)),
    ))
    .unwrap();
    assert_eq!(as_plain, as_locked);
}

#[test]
fn cfg_on_an_argument_counts() {
    #[distributed_lock(key = "arguments-cfg:{id}")]
    async fn go(id: u8, #[cfg(false)] gone: Missing, #[cfg(true)] here: u8) -> Result<u8, LockError> {
        Ok(id + here)
    }
    assert_eq!(run(go(1, 2)).unwrap(), 3);
}

#[test]
fn lint_levels_of_an_argument_hold_for_it() {
    #[deny(unfulfilled_lint_expectations)]
    #[distributed_lock(key = "arguments-lint:{id}")]
    async fn go(
        id: u8,
        #[allow(unused_variables)] allowed: u8,
        #[expect(unused_variables)] expected: u8,
        #[expect(unused_mut)] mut changed: u8,
        #[expect(non_snake_case)] userId: u8,
    ) -> Result<u8, LockError> {
        Ok(id + changed + userId)
    }
    assert_eq!(run(go(1, 2, 3, 4, 5)).unwrap(), 10);
}

#[test]
fn neither_sync_nor_send_is_asked_of_arguments() {
    #[distributed_lock(key = "arguments-cell:{id}")]
    async fn cell(id: u8, cell: Cell<u8>) -> Result<u8, LockError> {
        cell.set(cell.get() + id);
        Ok(cell.get())
    }
    #[distributed_lock(key = "arguments-rc:{id}")]
    async fn rc(id: Rc<str>) -> Result<usize, LockError> {
        tokio::task::yield_now().await;
        Ok(id.len())
    }
    fn send<T: Send>(future: T) -> T {
        future
    }
    assert_eq!(run(send(cell(1, Cell::new(2)))).unwrap(), 3);
    assert_eq!(run(rc(Rc::from("abc"))).unwrap(), 3);
}

#[test]
fn an_argument_may_be_set_to_borrow_from_another() {
    #[distributed_lock(key = "arguments-borrow:{b}")]
    async fn go<'a>(mut a: &'a i32, b: i32) -> Result<i32, LockError> {
        if *a == 0 {
            a = &b;
        }
        tokio::task::yield_now().await;
        Ok(*a)
    }
    assert_eq!(run(go(&0, 5)).unwrap(), 5);
    assert_eq!(run(go(&1, 5)).unwrap(), 1);
}

#[test]
fn a_macro_in_a_pattern_still_binds_for_the_body() {
    macro_rules! two {
        ($a:ident, $b:ident) => {
            ($a, $b)
        };
    }
    #[distributed_lock(key = "arguments-macro")]
    async fn go(two!(a, b): (u8, u8)) -> Result<u8, LockError> {
        Ok(a + b)
    }
    assert_eq!(run(go((1, 2))).unwrap(), 3);
}

#[test]
fn raw_and_foreign_names() {
    #[distributed_lock(key = "arguments-raw:{type}:{größe}:{0}")]
    async fn r#match(r#type: u8, größe: u8) -> Result<u8, LockError> {
        assert!(held("arguments-raw:1:2:1"));
        Ok(r#type + größe)
    }
    assert_eq!(run(r#match(1, 2)).unwrap(), 3);
}

#[test]
fn thirteen_arguments_of_every_kind() {
    #[allow(clippy::too_many_arguments)]
    #[distributed_lock(key = "arguments-many:{a}:{m}")]
    async fn go(
        a: u8,
        b: String,
        c: &str,
        d: Vec<u8>,
        e: Option<u8>,
        f: (u8, u8),
        g: [u8; 2],
        h: Box<u8>,
        i: &mut u8,
        j: char,
        k: bool,
        l: impl Fn(u8) -> u8,
        m: i64,
    ) -> Result<usize, LockError> {
        *i += a;
        let sum = f.0 + g[1] + *h + l(1) + u8::from(k) + u8::from(e.is_some());
        Ok(b.len() + c.len() + d.len() + usize::from(sum) + j.len_utf8() + usize::try_from(m).unwrap())
    }
    let mut i = 1;
    let sum =
        run(go(1, "b".into(), "c", vec![1], None, (1, 1), [1, 1], Box::new(1), &mut i, 'j', true, |x| x, 1));
    assert_eq!(sum.unwrap(), 10);
    assert_eq!(i, 2);
}
