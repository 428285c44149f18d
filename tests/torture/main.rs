//! Tries to break the locks: real processes that are killed, stopped and cut off, over real stores, and a checker
//! that judges what they believed and what they did.
//!
//! ```text
//! cargo test --test torture                                              # every row, shortly
//! cargo test --test torture -- --store sqlite --nemesis pause --seconds 25 --seed 7
//! ```
//!
//! It fails when a promise is broken, and as well when a run that has to break one shows nothing. A failed run
//! leaves its histories and says where. Choices follow from the seed; what the machine makes of them does not.
//!
//! A store is added in `ground` (what has to be started for it) and `rows`.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "it needs what only Linux has: a boot clock that processes share, and a signal when a parent dies"
);

mod belief;
mod broken;
mod checker;
mod client;
mod cut;
mod disturb;
mod ground;
mod history;
mod mischief;
mod monitor;
mod nemesis;
mod options;
mod process;
mod proxy;
mod random;
mod register;
mod rows;
mod run;
#[path = "../servers/mod.rs"]
mod servers;
mod stores;
mod table;
mod ways;

use std::process::ExitCode;

use options::Options;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ended = match arguments.as_slice() {
        [role, part] if role == "client" => client::run(part).map(|()| true),
        arguments => Options::parse(arguments).and_then(|options| options.run()),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::from(2)
        }
    }
}
