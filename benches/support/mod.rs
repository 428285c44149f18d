//! What the benches share: rounds of each way in turn, medians, ratios.

use std::time::{Duration, Instant};

/// The median time of one cycle for each of the ways, their rounds taken in turn.
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

    pub(crate) fn print(mut self, title: &str) {
        println!("\n{title}");
        let medians: Vec<Duration> = self
            .rounds
            .iter_mut()
            .map(|rounds| {
                rounds.sort_unstable();
                rounds[rounds.len() / 2]
            })
            .collect();
        for (name, median) in self.names.iter().zip(&medians) {
            let ratio = median.as_secs_f64() / medians[0].as_secs_f64();
            println!("  {name:<28} {median:>10.2?}   {ratio:>5.2} x");
        }
    }
}
