use lockattr::distributed_lock;

unsafe extern "C" {
    #[distributed_lock(key = "a")]
    fn go() -> u8;
}

fn main() {}
