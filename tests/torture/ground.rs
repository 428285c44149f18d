//! What a store needs to be there: nothing, a file, or a server of its own with a proxy before it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use crate::Failure;
use crate::history::{Event, History, now};
use crate::nemesis::Nemesis;
use crate::proxy::{Proxy, Weather};
use crate::random::Random;
use crate::rows::{Kind, Row};
use crate::servers::clock::{Clock, Clocked};
use crate::servers::postgres::Postgres;
use crate::servers::redis::Redis;
use crate::servers::{Program, Server};

/// A store's place. What was started for it ends with this.
pub(crate) struct Ground {
    /// What clients open.
    pub(crate) store: String,
    /// What the monitor opens; the same, unless there is a proxy on the way.
    pub(crate) direct: String,
    site: Option<Site>,
}

/// A server, and what can be done to it.
struct Site {
    server: Server,
    proxy: Proxy,
    clock: Option<Clock>,
}

impl Ground {
    pub(crate) fn start(row: Row, directory: &Path) -> Result<Self, Failure> {
        let file = format!("sqlite:{}", directory.join("locks.db").display());
        let store = match row.kind {
            Kind::Redis => {
                return Self::of(Box::new(redis(row.nemesis)), row.nemesis, directory);
            }
            Kind::Postgres => {
                return Self::of(Box::new(Postgres::default().migrating()), row.nemesis, directory);
            }
            Kind::Memory => "memory:".to_owned(),
            Kind::Sqlite => file,
            Kind::Broken(_) if row.nemesis.is_of_processes() => format!("{}:{file}", row.store()),
            Kind::Broken(_) => format!("{}:memory:", row.store()),
        };
        Ok(Self { direct: store.clone(), store, site: None })
    }

    fn of(program: Box<dyn Program>, nemesis: Nemesis, directory: &Path) -> Result<Self, Failure> {
        // Of its own: what the server writes there may belong to another user.
        let place = directory.join("server");
        std::fs::create_dir(&place)?;
        std::fs::set_permissions(directory, Permissions::from_mode(0o755))?;
        let (server, clock) = if nemesis.is_of_the_clock() {
            let (program, clock) = Clocked::new(program, directory)?;
            (Server::start_in(program, &place)?, Some(clock))
        } else {
            (Server::start_in(program, &place)?, None)
        };
        let proxy = Proxy::start(server.place.address())?;
        let direct = server.url();
        // Only where it is what disturbs: it takes time of its own.
        let store = if nemesis.is_of_the_proxy() { server.url_at(proxy.address) } else { direct.clone() };
        Ok(Self { store, direct, site: Some(Site { server, proxy, clock }) })
    }

    /// Disturbs the server or the way to it once. All is then as it was, but for a clock.
    pub(crate) fn disturb(
        &mut self,
        nemesis: Nemesis,
        random: &mut Random,
        ttl: Duration,
        history: &History,
    ) -> Result<(), Failure> {
        let site = self.site.as_mut().ok_or_else(|| format!("{} needs a server", nemesis.name()))?;
        let pause = match nemesis {
            // Two steps within what a holder has to renew would be one of their sum.
            Nemesis::ClockForwardDelay => random.share(ttl, 220..260),
            _ => random.share(ttl, 20..60),
        };
        std::thread::sleep(pause);
        let from = now();
        site.disturb(nemesis, random, ttl)?;
        history.write(&Event::Disturbed { how: nemesis.name().to_owned(), from, to: now() });
        Ok(())
    }
}

impl Site {
    fn disturb(&mut self, nemesis: Nemesis, random: &mut Random, ttl: Duration) -> Result<(), Failure> {
        match nemesis {
            Nemesis::ServerPause => {
                self.server.pause()?;
                std::thread::sleep(random.share(ttl, 20..200));
                self.server.resume()
            }
            Nemesis::ServerRestart | Nemesis::ServerForgets => {
                self.server.kill()?;
                std::thread::sleep(random.share(ttl, 0..20));
                self.server.start_again()
            }
            // As many again as it has room for: each of the others stays with one chance in three.
            Nemesis::ServerEvicts => Redis::fill(self.server.place.address(), 60),
            Nemesis::ClockBack if random.percent(50) => self.clock()?.back(random.share(ttl, 50..300)),
            Nemesis::ClockBack => self.clock()?.back(Duration::from_secs(3600)),
            Nemesis::ClockForward => self.clock()?.forward(random.share(ttl, 80..300)),
            Nemesis::ClockForwardDelay => self.clock()?.forward(ttl.mul_f64(0.8)),
            _ => {
                self.proxy.set(weather(nemesis, random, ttl));
                std::thread::sleep(random.share(ttl, 10..50));
                self.proxy.set(Weather::Fine);
                Ok(())
            }
        }
    }

    fn clock(&mut self) -> Result<&mut Clock, Failure> {
        self.clock.as_mut().ok_or_else(|| "the server's clock cannot be set".into())
    }
}

fn weather(nemesis: Nemesis, random: &mut Random, ttl: Duration) -> Weather {
    let slow = random.share(ttl, 10..60);
    match (nemesis, random.percent(50)) {
        (Nemesis::ReplyLost, _) => Weather::LoseAnswers,
        (Nemesis::Delay, true) => Weather::DelayRequests(slow),
        (Nemesis::Delay, false) => Weather::DelayAnswers(slow),
        (Nemesis::Reset, true) => Weather::ResetAfterRequest,
        (Nemesis::Reset, false) => Weather::ResetBeforeRequest,
        (Nemesis::HalfOpen, _) => Weather::CloseServerSide,
        (Nemesis::Late, _) => Weather::DeliverLate(random.share(ttl, 5..150)),
        _ => Weather::Swallow,
    }
}

fn redis(nemesis: Nemesis) -> Redis {
    match nemesis {
        Nemesis::ServerRestart => Redis::durable(),
        Nemesis::ServerEvicts => Redis::evicting(),
        _ => Redis::default(),
    }
}
