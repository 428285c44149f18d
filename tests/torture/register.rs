//! The resource that the locks protect: for every key one register that checks fencing tokens and one that does not.
//!
//! It runs in the coordinator, which no nemesis disturbs, and judges each write as it arrives: who read before
//! somebody else wrote, and writes after, undoes that write. Where tokens are checked that must never happen.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::Failure;

/// What was done to the registers so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub(crate) writes: u64,
    /// Writes with a token below the newest that the checking register has seen: refused there.
    pub(crate) stale_attempted: u64,
    /// Writes that the checking register let pass although they undo another.
    pub(crate) stale_applied: u64,
    /// Writes that undo another at the register that does not check.
    pub(crate) lost_updates: u64,
    /// The first few of the last two.
    pub(crate) examples: Vec<String>,
}

impl Effects {
    pub(crate) fn add(&mut self, other: Self) {
        self.writes += other.writes;
        self.stale_attempted += other.stale_attempted;
        self.stale_applied += other.stale_applied;
        self.lost_updates += other.lost_updates;
        self.examples.extend(other.examples);
    }
}

/// A client between its read and its write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inside {
    pub(crate) pid: u32,
    pub(crate) blocking: bool,
}

#[derive(Debug, Default)]
struct State {
    keys: HashMap<String, Registers>,
    effects: Effects,
    inside: HashMap<(u32, u64), Inside>,
}

#[derive(Debug, Default)]
struct Registers {
    newest: u64,
    checked: u64,
    unchecked: u64,
}

/// The server's side.
#[derive(Clone, Debug)]
pub(crate) struct Register {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
}

impl Register {
    /// Starts to listen on a port of the loopback interface.
    pub(crate) fn start() -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let register = Self { state: Arc::default(), address: listener.local_addr()? };
        let state = Arc::downgrade(&register.state);
        thread::spawn(move || {
            while let (Ok((stream, _)), Some(state)) = (listener.accept(), state.upgrade()) {
                thread::spawn(move || serve(&stream, &state));
            }
        });
        Ok(register)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn effects(&self) -> Effects {
        lock(&self.state).effects.clone()
    }

    /// Who is between read and write now.
    pub(crate) fn inside(&self) -> Vec<Inside> {
        lock(&self.state).inside.values().copied().collect()
    }

    /// A client is dead: it is not inside any more.
    pub(crate) fn forget(&self, pid: u32) {
        lock(&self.state).inside.retain(|_, inside| inside.pid != pid);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers one client until it goes.
fn serve(stream: &TcpStream, state: &Mutex<State>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut writer = stream;
    for line in BufReader::new(stream).lines() {
        let line = line.ok()?;
        let words: Vec<&str> = line.split(' ').collect();
        let number = |place: usize| words.get(place).and_then(|word| word.parse::<u64>().ok());
        let place = (u32::try_from(number(1)?).ok()?, number(2)?);
        let answer = match words[0] {
            "read" => lock(state).read(place, words[3], number(4)?, words[5] == "blocking"),
            "write" => lock(state).write(place, words[3], number(4)?, (number(5)?, number(6)?)),
            _ => lock(state).leave(place),
        };
        writer.write_all(answer.as_bytes()).ok()?;
    }
    Some(())
}

impl State {
    fn read(&mut self, place: (u32, u64), key: &str, token: u64, blocking: bool) -> String {
        self.inside.insert(place, Inside { pid: place.0, blocking });
        let registers = self.keys.entry(key.to_owned()).or_default();
        registers.newest = registers.newest.max(token);
        format!("{} {}\n", registers.checked, registers.unchecked)
    }

    fn write(
        &mut self,
        place: (u32, u64),
        key: &str,
        token: u64,
        (checked, unchecked): (u64, u64),
    ) -> String {
        let registers = self.keys.entry(key.to_owned()).or_default();
        let effects = &mut self.effects;
        effects.writes += 1;
        let mut example = |what: &str| {
            if effects.examples.len() < 8 {
                effects.examples.push(format!("{what}: process {} with token {token} on {key}", place.0));
            }
        };
        if registers.unchecked != unchecked {
            example("update lost at the register that does not check");
            effects.lost_updates += 1;
        }
        registers.unchecked += 1;
        if token < registers.newest {
            effects.stale_attempted += 1;
            return "refused\n".to_owned();
        }
        registers.newest = token;
        if registers.checked != checked {
            example("update lost at the register that checks");
            effects.stale_applied += 1;
        }
        registers.checked += 1;
        "written\n".to_owned()
    }

    fn leave(&mut self, place: (u32, u64)) -> String {
        self.inside.remove(&place);
        "gone\n".to_owned()
    }
}

/// A client's side. Its requests block: nothing can come between the decision to write and the write.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    stream: Arc<Mutex<BufReader<TcpStream>>>,
    pid: u32,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: Arc::new(Mutex::new(BufReader::new(stream))), pid: std::process::id() })
    }

    /// What both registers have.
    pub(crate) fn read(&self, op: u64, key: &str, token: u64, blocking: bool) -> (u64, u64) {
        let kind = if blocking { "blocking" } else { "async" };
        let answer = self.ask(&format!("read {} {op} {key} {token} {kind}\n", self.pid));
        let mut numbers = answer.split_whitespace().map(|number| number.parse().unwrap_or_default());
        (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
    }

    /// Writes to both registers what was made of `read`.
    pub(crate) fn write(&self, op: u64, key: &str, token: u64, read: (u64, u64)) {
        self.ask(&format!("write {} {op} {key} {token} {} {}\n", self.pid, read.0, read.1));
    }

    pub(crate) fn leave(&self, op: u64) {
        self.ask(&format!("leave {} {op}\n", self.pid));
    }

    fn ask(&self, request: &str) -> String {
        let mut answer = String::new();
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = stream.get_mut().write_all(request.as_bytes());
        match sent.and_then(|()| stream.read_line(&mut answer)) {
            Ok(1..) => answer,
            // The coordinator is gone.
            _ => std::process::exit(3),
        }
    }
}
