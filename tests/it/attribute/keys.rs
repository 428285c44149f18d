//! Keys: templates, expressions and lists.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use lockattr::{LockError, distributed_lock, key};

use crate::support::{held, run};

#[test]
fn placeholders_of_every_kind() {
    struct Inner {
        name: String,
        pair: (u8, u8),
        r#type: u8,
    }
    struct User {
        id: u64,
    }
    struct Request<'a> {
        user: &'a User,
    }
    struct Tenant {
        inner: Arc<Box<Inner>>,
    }
    impl fmt::Display for Tenant {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("acme")
        }
    }
    impl Tenant {
        #[distributed_lock(
            key = "{{keys}}:{self}:{self.inner.name}:{self.inner.pair.1:03}:{self.inner.type}:{request.user.id}:{0.user.id:x}"
        )]
        async fn go(&self, request: Request<'_>) -> Result<(), LockError> {
            assert!(held("{keys}:acme:n:002:7:40:28"));
            drop(request);
            Ok(())
        }
    }
    let inner = Inner { name: "n".into(), pair: (1, 2), r#type: 7 };
    let tenant = Tenant { inner: Arc::new(Box::new(inner)) };
    run(tenant.go(Request { user: &User { id: 40 } })).unwrap();
}

#[test]
fn values_show_as_display() {
    #[distributed_lock(key = "keys-display:{x}:{b}:{c}")]
    async fn go(x: f64, b: bool, c: char, want: &str) -> Result<(), LockError> {
        let _ = (x, b, c);
        assert!(held(want), "{want}");
        Ok(())
    }
    run(go(1.0, true, 'é', "keys-display:1:true:é")).unwrap();
    run(go(-0.0, false, '-', "keys-display:-0:false:-")).unwrap();
    run(go(f64::NAN, true, '/', "keys-display:NaN:true:%2F")).unwrap();
    run(go(1e21, true, '\n', "keys-display:1000000000000000000000:true:%0A")).unwrap();
}

#[test]
fn literals_of_every_kind() {
    #[distributed_lock(key = r#"keys-raw:"{id}"\d"#)]
    async fn raw(id: u8) -> Result<bool, LockError> {
        Ok(held("keys-raw:\"1\"\\d"))
    }
    #[distributed_lock(key = "keys-escape:\u{e9}:{id}:{id:03}")]
    async fn escaped(id: u8) -> Result<bool, LockError> {
        Ok(held("keys-escape:é:1:001"))
    }
    #[distributed_lock(key = "keys fixed")]
    async fn fixed() -> Result<bool, LockError> {
        Ok(held("keys fixed"))
    }
    assert!(run(raw(1)).unwrap() && run(escaped(1)).unwrap() && run(fixed()).unwrap());
}

#[test]
fn values_cannot_imitate_the_text_between_them() {
    type Nested = Option<(&'static str, &'static str)>;
    #[distributed_lock(key = "keys-colon:{a}:{b}")]
    async fn colon(a: &str, b: &str, nested: Nested) -> Result<(), LockError> {
        if let Some((x, y)) = nested { Box::pin(colon(x, y, None)).await } else { Ok(()) }
    }
    #[distributed_lock(key = "keys-dash-{a}-{b}")]
    async fn dash(a: &str, b: &str, nested: Nested) -> Result<(), LockError> {
        if let Some((x, y)) = nested { Box::pin(dash(x, y, None)).await } else { Ok(()) }
    }
    #[distributed_lock(key = "keys {a} and {b}")]
    async fn words(a: &str, b: &str, nested: Nested) -> Result<(), LockError> {
        if let Some((x, y)) = nested { Box::pin(words(x, y, None)).await } else { Ok(()) }
    }
    run(colon("x:y", "z", Some(("x", "y:z")))).unwrap();
    run(dash("x-y", "z", Some(("x", "y-z")))).unwrap();
    run(words("x and y", "z", Some(("x", "y and z")))).unwrap();
    assert!(run(colon("x", "y", Some(("x", "y")))).unwrap_err().is_busy());
}

#[test]
fn the_macro_gives_the_same_text() {
    struct Holder<'a> {
        name: &'a str,
        pair: (u8, u8),
    }
    let holder = Holder { name: "a-b:c", pair: (1, 2) };
    #[distributed_lock(key = "keys-macro-{0.name}-{holder.pair.1:03}")]
    async fn go(holder: &Holder<'_>, want: &str) -> Result<bool, LockError> {
        let _ = holder;
        Ok(held(want))
    }
    let text = key!("keys-macro-{holder.name}-{holder.pair.1:03}");
    assert_eq!(text, "keys-macro-a%2Db%3Ac-002");
    assert!(run(go(&holder, &text)).unwrap());
    let r#type = 1;
    assert_eq!(key!("t:{type}",), "t:1");
    impl Holder<'_> {
        fn key(&self) -> String {
            key!("{self.name}")
        }
    }
    assert_eq!(holder.key(), "a-b%3Ac");
}

#[test]
fn expressions_are_used_as_they_are_and_borrowed() {
    const NAME: &str = "keys-const";
    struct Order {
        id: String,
    }
    fn made(id: u8) -> String {
        format!("keys-made:{id}")
    }
    #[distributed_lock(key = NAME)]
    async fn constant() -> Result<bool, LockError> {
        Ok(held("keys-const"))
    }
    #[distributed_lock(key = made(id))]
    async fn call(id: u8) -> Result<bool, LockError> {
        Ok(held("keys-made:1"))
    }
    #[distributed_lock(key = format!("keys/{id}-{}", opt.map_or_else(|| "none".to_owned(), |v| v.to_string())))]
    async fn format(id: u8, opt: Option<u8>) -> Result<bool, LockError> {
        Ok(held("keys/1-none") && opt.is_none())
    }
    #[distributed_lock(key = { let next = id + 1; format!("keys-block:{next}") })]
    async fn block(id: u8) -> Result<bool, LockError> {
        Ok(held("keys-block:2"))
    }
    #[distributed_lock(key = concat!("keys", "-", "concat"))]
    async fn concat() -> Result<bool, LockError> {
        Ok(held("keys-concat"))
    }
    #[distributed_lock(key = name)]
    async fn owned(name: String) -> Result<String, LockError> {
        Ok(name)
    }
    #[distributed_lock(key = order.id)]
    async fn field(order: Order) -> Result<Order, LockError> {
        Ok(order)
    }
    #[distributed_lock(key = name)]
    async fn cow(name: Cow<'_, str>) -> Result<String, LockError> {
        Ok(name.into_owned())
    }
    #[distributed_lock(key = if plain { "keys-plain" } else { &shared })]
    async fn arc(plain: bool, shared: Arc<str>) -> Result<Arc<str>, LockError> {
        Ok(shared)
    }
    assert!(run(constant()).unwrap() && run(call(1)).unwrap() && run(format(1, None)).unwrap());
    assert!(run(block(1)).unwrap() && run(concat()).unwrap());
    assert_eq!(run(owned("keys-owned".into())).unwrap(), "keys-owned");
    assert_eq!(run(field(Order { id: "keys-field".into() })).unwrap().id, "keys-field");
    assert_eq!(run(cow("keys-cow".into())).unwrap(), "keys-cow");
    assert_eq!(&*run(arc(false, "keys-arc".into())).unwrap(), "keys-arc");
}

#[test]
fn an_expression_with_a_placeholder_left_in_it_is_refused() {
    const TEMPLATE: &str = "account:{id}";
    #[distributed_lock(key = TEMPLATE)]
    async fn constant(id: u8) -> Result<u8, LockError> {
        Ok(id)
    }
    #[distributed_lock(keys = list)]
    async fn list(list: &[&str], id: u8) -> Result<u8, LockError> {
        Ok(id)
    }
    #[distributed_lock(key = TEMPLATE)]
    async fn no_argument(other: u8) -> Result<u8, LockError> {
        Ok(other)
    }
    assert!(matches!(run(constant(1)), Err(LockError::InvalidKey { .. })));
    assert!(matches!(run(list(&["a", "b:{id.x:03}"], 1)), Err(LockError::InvalidKey { .. })));
    assert_eq!(run(no_argument(1)).unwrap(), 1);
}

#[test]
fn a_key_that_cannot_be_is_refused_before_the_store_is_asked() {
    #[distributed_lock(key = key)]
    async fn go(key: &str) -> Result<(), LockError> {
        Ok(())
    }
    #[distributed_lock(key = "keys-long:{value}")]
    async fn long(value: &str) -> Result<(), LockError> {
        Ok(())
    }
    for key in ["", "a\nb", &"x".repeat(65_537)] {
        assert!(matches!(run(go(key)), Err(LockError::InvalidKey { .. })));
    }
    assert!(matches!(run(long(&"x".repeat(65_536))), Err(LockError::InvalidKey { .. })));
    run(long(&"x".repeat(65_000))).unwrap();
    run(long("")).unwrap();
}

#[test]
fn errors_show_the_template_and_give_the_key_on_request() {
    #[distributed_lock(key = "keys-secret:{token}")]
    async fn go(token: &str, again: bool) -> Result<(), LockError> {
        if again { Box::pin(go(token, false)).await } else { Ok(()) }
    }
    let error = run(go("swordfish", true)).unwrap_err();
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(text.contains("keys-secret:{token}") && !text.contains("swordfish"), "{text}");
    }
    assert_eq!(error.key(), Some("keys-secret:swordfish"));
}

#[test]
fn several_keys_are_one_lock() {
    #[distributed_lock(keys = ["keys-acc:{from}", "keys-acc:{to}"], wait = 5)]
    async fn transfer(from: u32, to: u32) -> Result<(), LockError> {
        assert!(held(&format!("keys-acc:{from}")) && held(&format!("keys-acc:{to}")));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        Ok(())
    }
    run(async {
        let (a, b) = tokio::join!(transfer(1, 2), transfer(2, 1));
        a.and(b).unwrap();
        transfer(3, 3).await.unwrap();
        assert!(!held("keys-acc:1") && !held("keys-acc:2") && !held("keys-acc:3"));
    });
}

#[test]
fn lists_of_every_kind() {
    struct Batch {
        ids: Vec<String>,
    }
    impl Batch {
        #[distributed_lock(keys = self.ids)]
        async fn field(&self) -> Result<bool, LockError> {
            Ok(held("keys-list:a") && held("keys-list:b"))
        }
    }
    #[distributed_lock(keys = [name, "keys-list:{name}", order.1, format!("keys-list:{}", order.0)])]
    async fn mixed(name: String, order: (u8, String)) -> Result<bool, LockError> {
        Ok(held(&name) && held("keys-list:n") && held(&order.1) && held("keys-list:1"))
    }
    #[distributed_lock(keys = ids)]
    async fn slice(ids: &[&str]) -> Result<bool, LockError> {
        Ok(ids.iter().all(|id| held(id)))
    }
    #[distributed_lock(keys = ids)]
    async fn array(ids: [String; 2]) -> Result<[String; 2], LockError> {
        Ok(ids)
    }
    #[distributed_lock(keys = ids)]
    async fn sets(ids: HashSet<String>, more: &BTreeSet<&'static str>) -> Result<usize, LockError> {
        Ok(ids.len() + more.len())
    }
    #[distributed_lock(keys = ids.iter().map(|id| key!("keys-list:{id}")))]
    async fn iterator(ids: Vec<u32>) -> Result<Vec<u32>, LockError> {
        assert!(ids.iter().all(|id| held(&format!("keys-list:{id}"))));
        Ok(ids)
    }
    assert!(run(Batch { ids: vec!["keys-list:b".into(), "keys-list:a".into()] }.field()).unwrap());
    assert!(run(mixed("n".into(), (1, "keys-order".into()))).unwrap());
    assert!(run(slice(&["keys-list:x", "keys-list:y", "keys-list:x"])).unwrap());
    assert_eq!(run(array(["k1".into(), "k2".into()])).unwrap().len(), 2);
    assert_eq!(run(sets(["k1".into()].into(), &["k"].into())).unwrap(), 2);
    assert_eq!(run(iterator(vec![3, 1, 3])).unwrap().len(), 3);
    assert!(matches!(run(slice(&[])), Err(LockError::InvalidKey { .. })));
    let many: Vec<_> = (0..65).collect();
    assert!(run(iterator(many)).is_err());
}

#[test]
fn values_are_shown_once_before_anything_moves() {
    use std::cell::Cell;
    struct Counted<'a>(&'a Cell<u32>);
    impl fmt::Display for Counted<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.set(self.0.get() + 1);
            write!(f, "{}", self.0.get())
        }
    }
    #[distributed_lock(key = "keys-once:{counted}", on_busy = skip)]
    async fn go(counted: Counted<'_>) -> Result<(), LockError> {
        assert!(held("keys-once:1"));
        drop(counted);
        Ok(())
    }
    let count = Cell::new(0);
    run(go(Counted(&count))).unwrap();
    assert_eq!(count.get(), 1);
}

#[test]
fn a_panic_in_display_asks_for_no_lock() {
    struct Bad;
    impl fmt::Display for Bad {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("no text")
        }
    }
    #[distributed_lock(keys = ["keys-bad", "keys-bad:{bad}"])]
    async fn go(bad: Bad) -> Result<(), LockError> {
        drop(bad);
        Ok(())
    }
    std::panic::catch_unwind(|| run(go(Bad))).unwrap_err();
    assert!(!held("keys-bad"));
}
