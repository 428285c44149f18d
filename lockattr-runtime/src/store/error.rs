//! How a store fails.

use std::error::Error;
use std::fmt;

/// A store could not do what it was asked.
///
/// There are two ways to fail, and the difference matters: after [`StoreError::refused`] the store certainly
/// did nothing; after [`StoreError::unknown`] it may have done it. Neither ever means "held by another".
#[derive(Debug)]
pub struct StoreError {
    unknown: bool,
    source: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    /// The store certainly did nothing.
    pub fn refused(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { unknown: false, source: source.into() }
    }

    /// The store may have done it: a time-out, a broken connection, a lost answer.
    pub fn unknown(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { unknown: true, source: source.into() }
    }

    /// Whether the store may have done what it was asked.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.unknown
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.unknown {
            "the store did not answer, and may have done it"
        } else {
            "the store refused, and did nothing"
        })
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.source.as_ref())
    }
}
