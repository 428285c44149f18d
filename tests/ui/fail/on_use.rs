use lockattr::distributed_lock;

#[distributed_lock(key = "a")]
use std::fmt;

fn main() {}
