//! Wrong uses do not compile, and the compiler says on which tokens and why.

#[test]
fn wrong_uses() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}
