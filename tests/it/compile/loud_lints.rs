//! Lints on the user's own code, each on the line that names it.
#![deny(clippy::all, clippy::pedantic, warnings)]
use lockattr::{LockError, distributed_lock};

/// No section about errors.
#[distributed_lock(key = "a:{x}")]
pub async fn documented(x: u8) -> Result<u8, LockError> { // missing_errors_doc
    Ok(x.clone()) // clone_on_copy
}

#[distributed_lock(key = "a")]
async fn unused() -> Result<u8, LockError> { // dead_code
    let mut n = 1; // unused_mut
    Ok(n)
}

fn main() {}
