fn main() {
    let _: String = lockattr::key!("a:{0}");
    let _: String = lockattr::key!(5);
    let _: String = lockattr::key!("a:{missing}");
}
