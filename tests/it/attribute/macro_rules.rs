//! Functions that come out of `macro_rules`, with every kind of fragment.

use lockattr::{LockError, distributed_lock};

use crate::support::{held, run};

macro_rules! from_fragments {
    ($(#[$meta:meta])* $vis:vis $name:ident, $lt:lifetime, $arg:ident : $ty:ty => $ret:ty, $key:literal, $expires:expr, $wait:literal, $body:block) => {
        $(#[$meta])*
        #[distributed_lock(key = $key, expires = $expires, wait = $wait)]
        $vis async fn $name<$lt>($arg: &$lt $ty) -> Result<$ret, LockError> $body
    };
}
from_fragments!(/// With docs.
    pub(crate) fragments, 'a, id: u64 => u64, "macro-fragments:{id}", 10 + 5, "50ms", { assert!(held("macro-fragments:4")); Ok(*id) });
from_fragments!(one_expression, 'a, s: str => usize, "macro-one:{s}", 9, 1, { Ok(s.len()) });

macro_rules! key_from_caller {
    ($name:ident, $key:literal) => {
        #[distributed_lock(key = $key)]
        async fn $name(id: u8) -> Result<u8, LockError> {
            Ok(id)
        }
    };
}
key_from_caller!(named_inside, "macro-key:{id}");

macro_rules! argument_from_caller {
    ($name:ident, $id:ident, $pattern:pat, $ty:ty) => {
        #[distributed_lock(key = "macro-argument:{id}")]
        async fn $name($id: u8, $pattern: $ty) -> Result<u8, LockError> {
            Ok($id)
        }
    };
}
argument_from_caller!(named_outside, id, (_, _), (u8, u8));

macro_rules! attribute_from_caller {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        async fn $name(id: u8, other: u8) -> Result<u8, LockError> {
            Ok(id + other)
        }
    };
}
attribute_from_caller!(
    #[distributed_lock(key = "macro-attribute:{id}:{other}")]
    attribute
);

macro_rules! whole_item {
    ($item:item) => {
        #[distributed_lock(key = "macro-item:{id}")]
        $item
    };
}
whole_item! {
    /// With docs.
    pub(crate) async fn item(mut id: u8) -> Result<u8, LockError> { id += 1; Ok(id) }
}

macro_rules! token_trees {
    ($($tokens:tt)*) => {
        #[distributed_lock(key = "macro-tokens:{id}")]
        $($tokens)*
    };
}
token_trees! { async fn tokens<T: Into<u8> + std::fmt::Display>(id: T) -> Result<u8, LockError> { Ok(id.into()) } }

macro_rules! methods {
    ($ty:ident, $this:ident, $field:ident : $field_ty:ty) => {
        impl $ty {
            #[distributed_lock(key = "macro-method:{self.id}")]
            async fn made(&self) -> Result<$field_ty, LockError> {
                Ok(self.$field)
            }
            #[distributed_lock(key = "macro-method:{self.id}")]
            async fn given(&$this) -> Result<$field_ty, LockError> {
                Ok($this.$field)
            }
        }
    };
}
struct Made {
    id: u8,
}
methods!(Made, self, id: u8);

macro_rules! options {
    ($locker:expr, $name:ident, $lease:ident, $path:path, $busy:expr) => {
        #[distributed_lock(key = $name, locker = $locker, lease = $lease, on_busy = value($busy), crate = $path)]
        async fn options($name: String) -> Result<u64, LockError> {
            Ok($lease.token().get())
        }
    };
}
options!(crate::support::locker(), text, lease, ::lockattr, Ok(0));

#[test]
fn every_fragment() {
    assert_eq!(run(fragments(&4)).unwrap(), 4);
    assert_eq!(run(one_expression("ab")).unwrap(), 2);
    assert_eq!(run(named_inside(1)).unwrap(), 1);
    assert_eq!(run(named_outside(2, (1, 1))).unwrap(), 2);
    assert_eq!(run(attribute(2, 3)).unwrap(), 5);
    assert_eq!(run(item(1)).unwrap(), 2);
    assert_eq!(run(tokens(2_u8)).unwrap(), 2);
    assert_eq!(run(Made { id: 3 }.made()).unwrap(), 3);
    assert_eq!(run(Made { id: 3 }.given()).unwrap(), 3);
    assert!(run(options("macro-options".into())).unwrap() > 0);
}

#[test]
fn bodies_that_never_return_and_bodies_in_macros() {
    macro_rules! unfinished {
        ($name:ident, $body:expr) => {
            #[distributed_lock(key = "macro-unfinished", wait = 5)]
            #[deny(unreachable_code)]
            async fn $name() -> Result<u8, LockError> {
                $body
            }
        };
    }
    unfinished!(panics, panic!("as written"));
    unfinished!(todos, todo!());
    unfinished!(ends, Ok(1));
    assert_eq!(run(ends()).unwrap(), 1);
    let panic = std::panic::catch_unwind(|| run(panics())).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as written"));
    std::panic::catch_unwind(|| run(todos())).unwrap_err();
}
