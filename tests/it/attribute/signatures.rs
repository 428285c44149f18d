//! Signatures: generics, lifetimes, qualifiers and every kind of return type.

use std::fmt::{Debug, Display};
use std::future::Ready;
use std::pin::Pin;

use lockattr::{LockError, distributed_lock};

use crate::support::{held, run};

type Boxed = Box<dyn std::error::Error + Send + Sync>;

#[test]
fn the_everyday_shape() {
    #[distributed_lock(key = "signatures:{id}", expires = 60, wait = 5)]
    async fn transfer(id: u64, amount: &str) -> Result<u64, Boxed> {
        assert!(held("signatures:7"));
        let amount: u64 = amount.parse()?;
        Ok(amount + id)
    }
    assert_eq!(run(transfer(7, "3")).unwrap(), 10);
    assert!(!held("signatures:7"));
    assert!(run(transfer(7, "x")).is_err());
    assert!(!held("signatures:7"));
}

#[test]
fn opaque_types_in_the_result() {
    #[distributed_lock(key = "signatures-closure:{by}")]
    async fn adder(by: u32) -> Result<impl Fn(u32) -> u32, LockError> {
        if by == 0 {
            return Err(LockError::busy("k"));
        }
        Ok(move |x| x + by)
    }
    #[distributed_lock(key = "signatures-tuple:{id}")]
    async fn pair(id: u8) -> Result<(impl Debug, u8), LockError> {
        if id == 9 {
            Err(LockError::busy("k"))?;
        }
        Ok((vec![id], id))
    }
    struct Db {
        name: String,
    }
    impl Db {
        #[distributed_lock(key = "signatures-capture:{self.name}")]
        async fn label<'a, T: Display>(&'a self, t: T) -> Result<impl Display + use<'a, T>, LockError> {
            drop(t);
            Ok(self.name.as_str())
        }
    }
    assert_eq!(run(adder(4)).unwrap()(3), 7);
    assert!(run(adder(0)).is_err());
    assert_eq!(run(pair(1)).unwrap().1, 1);
    assert!(run(pair(9)).is_err());
    assert_eq!(run(Db { name: "x".into() }.label(1)).unwrap().to_string(), "x");
}

#[test]
fn the_declared_type_guides_coercion_and_inference() {
    type Job = Box<dyn FnOnce() -> u32 + Send>;
    #[distributed_lock(key = "signatures-job:{id}")]
    async fn job(id: u32) -> Result<Job, LockError> {
        if id == 0 {
            return Ok(Box::new(|| 0));
        }
        Ok(Box::new(move || id * 2))
    }
    #[distributed_lock(key = "signatures-future:{id}")]
    async fn future(id: u32) -> Result<Pin<Box<dyn Future<Output = u32>>>, LockError> {
        Ok(Box::pin(async move { id }))
    }
    #[distributed_lock(key = "signatures-infer")]
    async fn inferred(text: &str) -> Result<Vec<u8>, Boxed> {
        let first = text.split(',').next().ok_or("none")?.parse()?;
        let mut all: Vec<_> = text.split(',').skip(1).map(str::parse).collect::<Result<_, _>>()?;
        all.push(first);
        Ok(all.into_iter().collect())
    }
    assert_eq!(run(job(0)).unwrap()(), 0);
    assert_eq!(run(job(4)).unwrap()(), 8);
    assert_eq!(run(async { future(3).await.unwrap().await }), 3);
    assert_eq!(run(inferred("1,2")).unwrap(), [2, 1]);
}

#[test]
fn lifetimes_of_the_result() {
    struct View<'a>(&'a [u8]);
    struct Buffer(Vec<u8>);
    impl Buffer {
        #[distributed_lock(key = "signatures-view")]
        async fn view(&self, other: &u32) -> Result<View<'_>, LockError> {
            let _ = other;
            Ok(View(&self.0))
        }
        #[distributed_lock(key = "signatures-first")]
        async fn first(&self) -> Result<Option<&u8>, LockError> {
            Ok(self.0.first())
        }
    }
    #[distributed_lock(key = "signatures-longer")]
    async fn longer<'a>(a: &'a str, b: &'a str) -> Result<&'a str, LockError> {
        Ok(if a.len() > b.len() { a } else { b })
    }
    let buffer = Buffer(vec![1, 2]);
    assert_eq!(run(buffer.view(&1)).unwrap().0.len(), 2);
    assert_eq!(run(buffer.first()).unwrap(), Some(&1));
    assert_eq!(run(longer("ab", "c")).unwrap(), "ab");
}

#[test]
fn generics() {
    #[distributed_lock(key = "signatures-generic:{tag}")]
    async fn total<T, const N: usize>(tag: T, list: [u32; N]) -> Result<u32, LockError>
    where
        T: Display + Copy,
    {
        assert!(held("signatures-generic:9"));
        Ok(list.iter().sum::<u32>() + u32::try_from(N).unwrap())
    }
    #[distributed_lock(key = "signatures-impl:{id}")]
    async fn load(id: impl Display + Into<String>) -> Result<String, LockError> {
        assert!(held("signatures-impl:ann"));
        Ok(id.into())
    }
    #[distributed_lock(key = "signatures-dyn:{id}")]
    async fn shown(id: &dyn Display, f: &mut dyn FnMut()) -> Result<String, LockError> {
        f();
        Ok(id.to_string())
    }
    #[distributed_lock(key = "signatures-higher:{id}")]
    async fn apply<F>(id: u8, text: &str, f: F) -> Result<usize, LockError>
    where
        F: for<'x> Fn(&'x str) -> &'x str,
    {
        Ok(f(text).len() + usize::from(id))
    }
    #[distributed_lock(key = "signatures-cfg")]
    async fn configured<#[cfg(false)] Gone, #[cfg(true)] T: Copy>(t: T) -> Result<T, LockError> {
        Ok(t)
    }
    assert_eq!(run(total(9, [1, 2, 3])).unwrap(), 9);
    assert_eq!(run(load("ann")).unwrap(), "ann");
    assert_eq!(run(shown(&1, &mut || {})).unwrap(), "1");
    assert_eq!(run(apply(1, "  ab ", str::trim)).unwrap(), 3);
    assert_eq!(run(configured(1)).unwrap(), 1);
}

#[test]
fn qualifiers() {
    unsafe fn raw(x: u8) -> u8 {
        x
    }
    #[distributed_lock(key = "signatures-unsafe:{x}")]
    async unsafe fn careful(x: u8) -> Result<u8, LockError> {
        Ok(unsafe { raw(x) })
    }
    #[distributed_lock(key = "signatures-abi:{x}")]
    pub(crate) async extern "Rust" fn with_abi(x: u8) -> Result<u8, LockError> {
        Ok(x)
    }
    assert_eq!(run(unsafe { careful(3) }).unwrap(), 3);
    assert_eq!(run(with_abi(3)).unwrap(), 3);
}

#[test]
fn functions_without_a_result_say_what_a_failure_does() {
    #[distributed_lock(key = "signatures-unit", on_error = panic)]
    async fn unit() {
        assert!(held("signatures-unit"));
    }
    #[distributed_lock(key = "signatures-option", on_error = panic)]
    async fn option(id: u8) -> Option<u8> {
        id.checked_add(1)
    }
    #[distributed_lock(key = "signatures-ready", on_error = panic)]
    async fn ready(id: u8) -> Ready<u8> {
        std::future::ready(id)
    }
    #[distributed_lock(key = "signatures-opaque", on_error = panic)]
    async fn opaque(id: u8) -> impl Display {
        id
    }
    #[distributed_lock(key = "signatures-unit", on_error = panic)]
    async fn outer() {
        unit().await;
    }
    run(unit());
    assert!(!held("signatures-unit"));
    assert_eq!(run(option(255)), None);
    assert_eq!(run(async { ready(2).await.await }), 2);
    assert_eq!(run(opaque(2)).to_string(), "2");
    let panic = std::panic::catch_unwind(|| run(outer())).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("signatures-unit"));
}

#[test]
fn a_function_that_never_returns() {
    #[distributed_lock(key = "signatures-never", on_error = panic)]
    async fn forever() -> ! {
        loop {
            tokio::task::yield_now().await;
        }
    }
    run(async {
        let limit = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(limit, forever()).await.is_err());
        assert!(crate::support::becomes_free("signatures-never").await);
    });
}

#[test]
fn aliases_and_own_errors() {
    type Answer<T> = Result<T, Mine>;
    #[derive(Debug)]
    enum Mine {
        Lock(LockError),
        Full,
    }
    impl From<LockError> for Mine {
        fn from(error: LockError) -> Self {
            Self::Lock(error)
        }
    }
    #[distributed_lock(key = "signatures-alias:{id}")]
    async fn go(id: u8) -> Answer<u8> {
        id.checked_add(1).ok_or(Mine::Full)
    }
    #[distributed_lock(key = "signatures-alias:1")]
    async fn holder() -> Answer<u8> {
        go(1).await
    }
    assert_eq!(run(go(1)).unwrap(), 2);
    assert!(matches!(run(go(255)), Err(Mine::Full)));
    assert!(matches!(run(holder()), Err(Mine::Lock(LockError::WouldDeadlock { .. }))));
}

#[test]
fn a_boxed_error_gives_the_lock_error_back() {
    #[distributed_lock(key = "signatures-boxed")]
    async fn inner() -> Result<u8, Boxed> {
        Ok(1)
    }
    #[distributed_lock(key = "signatures-boxed")]
    async fn outer() -> Result<(), Boxed> {
        let error = inner().await.unwrap_err();
        assert!(error.downcast_ref::<LockError>().is_some());
        Ok(())
    }
    run(outer()).unwrap();
}

#[test]
fn names_in_the_body_do_not_change_the_return_type() {
    type Outcome = Result<(), LockError>;
    #[allow(dead_code)]
    enum Noise {
        Outcome,
        Ok,
        Result,
    }
    #[distributed_lock(key = "signatures-shadow")]
    async fn glob() -> Outcome {
        #[allow(unused_imports, clippy::enum_glob_use)]
        use Noise::*;
        std::result::Result::Ok(())
    }
    #[distributed_lock(key = "signatures-item")]
    async fn item() -> Result<u8, LockError> {
        struct LockError;
        let _ = LockError;
        Ok(3)
    }
    run(glob()).unwrap();
    assert_eq!(run(item()).unwrap(), 3);
}

#[test]
fn self_type_in_the_body() {
    #[derive(Default)]
    struct Config {
        id: u8,
    }
    impl Config {
        const ID: u8 = 4;
        #[distributed_lock(key = "signatures-self:{id}")]
        async fn made(id: u8) -> Result<Self, LockError> {
            let made: Self = Self { id: id + Self::ID };
            Ok(made)
        }
    }
    assert_eq!(run(Config::made(1)).unwrap().id, 5);
}
