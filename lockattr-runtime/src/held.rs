//! stub
use crate::lease::FencingToken;
/// A handle on a held lock.
#[derive(Clone, Debug)]
pub struct Held {
    token: FencingToken,
}
impl Held {
    pub(crate) fn new(token: FencingToken) -> Self {
        Self { token }
    }
    /// The token.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.token
    }
}
