//! Fencing tokens.
//!
//! Invariant: a token has one text.

use std::fmt;
use std::str::FromStr;

/// A number that grows with every grant of a key: over release, expiry, restart and loss of data.
///
/// Give it to the resource you protect and let that refuse a smaller one than it has seen
/// (M. Kleppmann, "How to do distributed locking", 2016): it is the only protection that survives a
/// paused process. Tokens of different stores must not be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The HTTP header that carries a token to a service which checks it, as its decimal digits.
    ///
    /// ```
    /// use lockattr_runtime::lease::FencingToken;
    ///
    /// let token = FencingToken::new(1_700_000_000_000_000);
    /// // The client:
    /// let header = format!("{}: {token}", FencingToken::HEADER);
    /// assert_eq!(header, "X-Fencing-Token: 1700000000000000");
    /// // The service:
    /// let (_, value) = header.split_once(": ").unwrap();
    /// assert_eq!(value.parse(), Ok(token));
    /// ```
    pub const HEADER: &str = "X-Fencing-Token";

    /// The token with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, for the wire. It is below 2^53 until the year 2255, so doubles carry it exactly.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

impl FromStr for FencingToken {
    type Err = InvalidToken;

    /// Reads what `Display` writes: decimal digits without a sign, a space or a leading zero.
    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let number: u64 = text.parse().map_err(|_| InvalidToken(()))?;
        // Two texts of one number would be two tokens to whoever compares texts.
        let has_other_text = text.starts_with('+') || (text.starts_with('0') && text != "0");
        if has_other_text { Err(InvalidToken(())) } else { Ok(Self(number)) }
    }
}

/// A text is not a fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not a fencing token: one is a whole number in decimal digits; send what its `Display` writes"
)]
pub struct InvalidToken(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_one_text() {
        for number in [0, 1, 1_700_000_000_000_000, u64::MAX] {
            let token = FencingToken::new(number);
            assert_eq!(token.to_string().parse(), Ok(token));
        }
        for wrong in ["", " 1", "1 ", "+1", "-1", "01", "1.0", "0x1", "18446744073709551616", "token"] {
            assert!(wrong.parse::<FencingToken>().is_err(), "{wrong:?}");
        }
    }
}
