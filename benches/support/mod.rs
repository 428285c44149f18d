//! What the benches share: rounds of each way in turn, medians, ratios.

use std::time::{Duration, Instant};

/// The time of one cycle in each of the ways, their rounds taken in turn.
pub(crate) struct Table {
    names: Vec<&'static str>,
    rounds: Vec<Vec<Duration>>,
}

impl Table {
    pub(crate) fn new(names: &[&'static str]) -> Self {
        Self { names: names.to_vec(), rounds: vec![Vec::new(); names.len()] }
    }

    pub(crate) async fn round(&mut self, way: usize, cycles: u32, mut cycle: impl AsyncFnMut(u32)) {
        let start = Instant::now();
        for id in 0..cycles {
            cycle(id % 16).await;
        }
        self.add(way, start.elapsed() / cycles);
    }

    /// Adds a round that `way` took.
    pub(crate) fn add(&mut self, way: usize, cycle: Duration) {
        self.rounds[way].push(cycle);
    }

    /// Prints medians, between which times half of the rounds lie, and the medians' ratio to the first way's.
    pub(crate) fn print(mut self, title: &str) {
        println!("\n{title}");
        for rounds in &mut self.rounds {
            rounds.sort_unstable();
        }
        let share = |way: usize, quarters: usize| {
            let rounds = &self.rounds[way];
            rounds[(rounds.len() * quarters / 4).min(rounds.len() - 1)]
        };
        let first = share(0, 2).as_secs_f64();
        for (way, name) in self.names.iter().enumerate() {
            let (low, median, high) = (share(way, 1), share(way, 2), share(way, 3));
            let ratio = median.as_secs_f64() / first;
            println!("  {name:<44} {median:>10.2?}   {ratio:>5.2} x   ({low:.2?} to {high:.2?})");
        }
    }
}
