//! Pauses between attempts: full jitter, so that waiters that start together do not stay together
//! (M. Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015).

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(25);
const LONGEST: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(1);

/// The pause after the attempt number `attempt` (from 0): evenly drawn up to 25 ms, 50 ms, … 1 s.
pub(crate) fn full_jitter(attempt: u32, random: u64) -> Duration {
    let most = FIRST.saturating_mul(1 << attempt.min(10)).min(LONGEST);
    drawn(most, random).max(SHORTEST)
}

/// A duration evenly drawn from zero to `most`.
pub(crate) fn drawn(most: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(random % nanos.saturating_add(1).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second_and_never_beyond() {
        for attempt in 0..40 {
            let most = Duration::from_millis(25 << attempt.min(6)).min(LONGEST);
            for random in [0, 1, 7, u64::MAX / 3, u64::MAX] {
                let pause = full_jitter(attempt, random);
                assert!(pause >= SHORTEST && pause <= most, "{attempt} {random} {pause:?}");
            }
        }
    }
}
