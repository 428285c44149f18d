//! The coordinator's part in a run: starts clients, disturbs them, and sees them end.

use std::fs;
use std::time::{Duration, Instant};

use lockattr::LockError;
use lockattr::lease::RecordState;
use rustix::process::Signal;

use crate::Failure;
use crate::client::{self, Part};
use crate::ground::Ground;
use crate::history::{Event, History, now};
use crate::nemesis::Nemesis;
use crate::process::Process;
use crate::random::Random;
use crate::register::Register;
use crate::stores;

/// How long clients may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// The clients of a run.
pub(crate) struct Field<'a> {
    pub(crate) part: Part,
    pub(crate) register: &'a Register,
    pub(crate) history: &'a History,
    pub(crate) ground: &'a mut Ground,
    pub(crate) random: Random,
    clients: Vec<Process>,
    stopped: Vec<(u32, u64)>,
    started: u64,
}

impl<'a> Field<'a> {
    pub(crate) fn new(
        part: Part,
        register: &'a Register,
        history: &'a History,
        ground: &'a mut Ground,
        random: Random,
    ) -> Self {
        Self { part, register, history, ground, random, clients: Vec::new(), stopped: Vec::new(), started: 0 }
    }

    pub(crate) fn start(&mut self) -> Result<(), Failure> {
        let part = Part { name: self.started.to_string(), seed: self.random.next(), ..self.part.clone() };
        self.started += 1;
        self.clients.push(client::start(&part)?);
        Ok(())
    }

    /// Disturbs until the run's time is over.
    pub(crate) fn disturb(&mut self) -> Result<(), Failure> {
        while now() < self.part.until {
            match self.part.nemesis {
                Nemesis::Kill => self.kill()?,
                Nemesis::Pause => self.pause()?,
                Nemesis::FileDelete => self.delete()?,
                Nemesis::Force => self.force()?,
                nemesis if nemesis.is_of_servers() => {
                    self.ground.disturb(nemesis, &mut self.random, self.part.ttl, self.history)?;
                }
                _ => self.sleep(Duration::from_millis(50))?,
            }
        }
        while !self.stopped.is_empty() {
            self.sleep(Duration::from_millis(5))?;
        }
        Ok(())
    }

    /// Sleeps, and has those go on whose time has come.
    fn sleep(&mut self, time: Duration) -> Result<(), Failure> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let over = now() >= self.part.until;
            if let Some(place) = self.stopped.iter().position(|(_, at)| over || *at <= now()) {
                let (pid, _) = self.stopped.swap_remove(place);
                self.history.write(&Event::Continued { pid, at: now() });
                if let Some(client) = self.clients.iter().find(|client| client.id() == pid) {
                    client.signal(Signal::CONT)?;
                }
            }
            std::thread::sleep(Duration::from_millis(2).min(end.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// A client that is between its read and its write, or any.
    fn victim(&mut self, blocking: bool) -> Option<usize> {
        let mut inside = self.register.inside();
        inside.retain(|inside| !blocking || inside.blocking);
        let pid = inside.get(self.random.below(inside.len())).map(|inside| inside.pid);
        let index = pid.and_then(|pid| self.clients.iter().position(|client| client.id() == pid));
        index.filter(|index| !self.is_stopped(*index))
    }

    fn is_stopped(&self, index: usize) -> bool {
        self.stopped.iter().any(|(pid, _)| *pid == self.clients[index].id())
    }

    fn kill(&mut self) -> Result<(), Failure> {
        let pause = self.random.share(self.part.ttl, 15..60);
        self.sleep(pause)?;
        let index = if self.random.percent(80) { self.victim(false) } else { None };
        let index = index.unwrap_or_else(|| self.random.below(self.clients.len()));
        let client = self.clients.swap_remove(index);
        let (pid, from) = (client.id(), now());
        client.kill();
        self.history.write(&Event::Killed { pid, from, to: now() });
        self.register.forget(pid);
        self.start()
    }

    fn pause(&mut self) -> Result<(), Failure> {
        self.sleep(Duration::from_millis(20))?;
        if self.stopped.len() >= 2 {
            return Ok(());
        }
        let index = match self.random.below(10) {
            0..6 => self.victim(true),
            6..9 => self.victim(false),
            _ => Some(self.random.below(self.clients.len())).filter(|index| !self.is_stopped(*index)),
        };
        let Some(index) = index else { return Ok(()) };
        let client = &self.clients[index];
        let pid = client.id();
        let time = self.random.share(self.part.ttl, 20..300);
        let from = now();
        client.signal(Signal::STOP)?;
        self.history.write(&Event::Stopped { pid, from, to: now() });
        self.stopped.push((pid, now() + u64::try_from(time.as_nanos())?));
        Ok(())
    }

    fn delete(&mut self) -> Result<(), Failure> {
        let pause = self.random.share(self.part.ttl, 40..100);
        self.sleep(pause)?;
        let from = now();
        let Some(path) = self.part.store.strip_prefix("sqlite:") else { return Ok(()) };
        for end in ["", "-wal", "-shm"] {
            // What is not there is deleted.
            let _ = fs::remove_file(format!("{path}{end}"));
        }
        self.history.write(&Event::Disturbed { how: "file deleted".to_owned(), from, to: now() });
        Ok(())
    }

    /// Ends what is held, as an operator who takes its holder for dead.
    fn force(&mut self) -> Result<(), Failure> {
        let pause = self.random.share(self.part.ttl, 10..30);
        self.sleep(pause)?;
        let from = now();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let direct = self.ground.direct.clone();
        runtime.block_on(async {
            let operators = stores::lockers(&direct, 1, Duration::ZERO).await?;
            for record in operators[0].list("k", None, 100).await? {
                if let RecordState::Held { .. } = record.state {
                    operators[0].force_release(record.key.as_ref(), record.token).await?;
                }
            }
            Ok::<_, LockError>(())
        })?;
        self.history.write(&Event::Disturbed { how: "forced".to_owned(), from, to: now() });
        Ok(())
    }

    /// Waits for the clients; those that do not end are killed and reported.
    pub(crate) fn end(&mut self) -> Result<Vec<String>, Failure> {
        let started = Instant::now();
        let mut wrong = Vec::new();
        while let Some(mut client) = self.clients.pop() {
            let status = loop {
                match client.ended()? {
                    None if started.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
                    status => break status,
                }
            };
            match status {
                Some(status) if status.success() => {}
                Some(status) => wrong.push(format!("process {} ended with {status}", client.id())),
                None => wrong.push(format!("process {} did not end", client.id())),
            }
        }
        Ok(wrong)
    }
}
