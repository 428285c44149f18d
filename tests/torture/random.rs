//! Chance from a seed (splitmix64; S. Vigna, <https://prng.di.unimi.it/splitmix64.c>), so that a run's choices can
//! be had again. What the machine makes of them is not in the seed.

use std::ops::Range;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or_default()
    }

    /// True so many times of a hundred.
    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.next() % 100 < share
    }

    /// A duration between these numbers of microseconds.
    pub(crate) fn micros(&mut self, range: Range<u64>) -> Duration {
        Duration::from_micros(range.start + self.next() % (range.end - range.start).max(1))
    }

    /// A duration between these shares, in per cent, of `whole`.
    pub(crate) fn share(&mut self, whole: Duration, percent: Range<u64>) -> Duration {
        let micros = u64::try_from(whole.as_micros()).unwrap_or(u64::MAX) / 100;
        self.micros(percent.start * micros..percent.end * micros)
    }
}
