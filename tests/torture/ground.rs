//! What a store needs to be there: nothing, a file, or a server of its own with a proxy before it.

use std::path::Path;
use std::time::Duration;

use crate::Failure;
use crate::history::{Event, History, now};
use crate::nemesis::Nemesis;
use crate::proxy::{Proxy, Weather};
use crate::random::Random;
use crate::rows::{Kind, Row};
use crate::servers::redis::Redis;
use crate::servers::{self, Program};

/// A store's place. What was started for it ends with this.
pub(crate) struct Ground {
    /// What clients open.
    pub(crate) store: String,
    /// What the monitor opens; the same, unless there is a proxy on the way.
    pub(crate) direct: String,
    server: Option<(servers::Server, Proxy)>,
}

impl Ground {
    pub(crate) fn start(row: Row, directory: &Path) -> Result<Self, Failure> {
        let file = format!("sqlite:{}", directory.join("locks.db").display());
        let store = match row.kind {
            Kind::Redis if row.nemesis == Nemesis::ServerRestart => {
                return Self::of(Redis::durable(), row, directory);
            }
            Kind::Redis => return Self::of(Redis::default(), row, directory),
            Kind::Memory => "memory:".to_owned(),
            Kind::Sqlite => file,
            Kind::Broken(_) if row.nemesis.is_of_processes() => format!("{}:{file}", row.store()),
            Kind::Broken(_) => format!("{}:memory:", row.store()),
        };
        Ok(Self { direct: store.clone(), store, server: None })
    }

    fn of(program: impl Program + 'static, row: Row, directory: &Path) -> Result<Self, Failure> {
        let server = servers::Server::start_in(program, directory)?;
        let proxy = Proxy::start(server.place.address())?;
        let direct = server.url();
        // Only where it is what disturbs: it takes time of its own.
        let store = if row.nemesis.is_of_the_proxy() { server.url_at(proxy.address) } else { direct.clone() };
        Ok(Self { store, direct, server: Some((server, proxy)) })
    }

    /// Disturbs the server or the way to it once, and leaves both as they were.
    pub(crate) fn disturb(
        &mut self,
        nemesis: Nemesis,
        random: &mut Random,
        ttl: Duration,
        history: &History,
    ) -> Result<(), Failure> {
        let Some((server, proxy)) = &mut self.server else {
            return Err(format!("{} needs a server", nemesis.name()).into());
        };
        std::thread::sleep(random.share(ttl, 20..60));
        let from = now();
        match nemesis {
            Nemesis::ServerPause => {
                server.pause()?;
                std::thread::sleep(random.share(ttl, 20..200));
                server.resume()?;
            }
            Nemesis::ServerRestart | Nemesis::ServerForgets => {
                server.kill()?;
                std::thread::sleep(random.share(ttl, 0..20));
                server.start_again()?;
            }
            _ => {
                let slow = random.share(ttl, 10..60);
                proxy.set(match (nemesis, random.percent(50)) {
                    (Nemesis::ReplyLost, _) => Weather::LoseAnswers,
                    (Nemesis::Delay, true) => Weather::DelayRequests(slow),
                    (Nemesis::Delay, false) => Weather::DelayAnswers(slow),
                    (Nemesis::Reset, true) => Weather::ResetAfterRequest,
                    (Nemesis::Reset, false) => Weather::ResetBeforeRequest,
                    (Nemesis::HalfOpen, _) => Weather::CloseServerSide,
                    _ => Weather::Swallow,
                });
                std::thread::sleep(random.share(ttl, 10..50));
                proxy.set(Weather::Fine);
            }
        }
        history.write(&Event::Disturbed { how: nemesis.name().to_owned(), from, to: now() });
        Ok(())
    }
}
