//! What a store needs to be there: nothing, a file, or a server of its own with a proxy before it.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::Failure;
use crate::history::{Event, History, now};
use crate::nemesis::Nemesis;
use crate::proxy::{Proxy, Weather};
use crate::random::Random;
use crate::redis::Redis;
use crate::rows::{Kind, Row};

/// A store's place. What was started for it ends with this.
pub(crate) struct Server {
    /// What clients open.
    pub(crate) store: String,
    /// What the monitor opens; the same, unless there is a proxy on the way.
    pub(crate) direct: String,
    redis: Option<(Redis, Proxy)>,
}

impl Server {
    pub(crate) fn start(row: Row, directory: &Path) -> Result<Self, Failure> {
        let file = format!("sqlite:{}", directory.join("locks.db").display());
        let store = match row.kind {
            Kind::Redis => return Self::redis(row, directory),
            Kind::Memory => "memory:".to_owned(),
            Kind::Sqlite => file,
            Kind::Broken(_) if row.nemesis.is_of_processes() => format!("{}:{file}", row.store()),
            Kind::Broken(_) => format!("{}:memory:", row.store()),
        };
        Ok(Self { direct: store.clone(), store, redis: None })
    }

    fn redis(row: Row, directory: &Path) -> Result<Self, Failure> {
        let redis = Redis::start(directory, row.nemesis == Nemesis::ServerRestart)?;
        let proxy = Proxy::start(redis.address)?;
        let direct = format!("redis://{}", redis.address);
        // Only where it is what disturbs: it takes time of its own.
        let store =
            if row.nemesis.is_of_the_proxy() { format!("redis://{}", proxy.address) } else { direct.clone() };
        Ok(Self { store, direct, redis: Some((redis, proxy)) })
    }

    /// Disturbs the server or the way to it once, and leaves both as they were.
    pub(crate) fn disturb(
        &mut self,
        nemesis: Nemesis,
        random: &mut Random,
        ttl: Duration,
        history: &History,
    ) -> Result<(), Failure> {
        let Some((redis, proxy)) = &mut self.redis else {
            return Err(format!("{} needs a server", nemesis.name()).into());
        };
        std::thread::sleep(random.share(ttl, 20..60));
        let from = now();
        match nemesis {
            Nemesis::ServerPause => {
                redis.signal(Signal::STOP)?;
                std::thread::sleep(random.share(ttl, 20..200));
                redis.signal(Signal::CONT)?;
            }
            Nemesis::ServerRestart | Nemesis::ServerForgets => {
                redis.kill();
                std::thread::sleep(random.share(ttl, 0..20));
                redis.start_again()?;
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
