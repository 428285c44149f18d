use lockattr::assert_locked;

struct Opaque;

async fn post(account: u64, opaque: Opaque, key: &str) {
    assert_locked!(key);
    assert_locked!();
    assert_locked!("account:{nobody}");
    assert_locked!("account:{opaque}");
    assert_locked!("account:{account:?}");
    assert_locked!("account:{account}", "and more");
}

fn main() {}
