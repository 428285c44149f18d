//! From what a caller asks to the leases of one request: checked, sorted, each key once.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::Locker;
use super::queue::KeySet;
use crate::error::{LockError, Locked};
use crate::key;
use crate::lease::{Holder, Lease, Owner};
use crate::options::LockOptions;
use crate::store::Feature;
use crate::term::Terms;

/// Most keys of one request.
const MOST_KEYS: usize = 64;
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_hours(24);
/// Shortest window of `once_per`: some stores count in milliseconds.
const SHORTEST_WINDOW: Duration = Duration::from_millis(1);
const LONGEST_WINDOW: Duration = Duration::from_hours(366 * 24);

/// A checked request.
pub(crate) struct Plan {
    pub(crate) names: Vec<Locked>,
    pub(crate) keys: KeySet,
    pub(crate) terms: Terms,
    /// Where it was asked for.
    pub(crate) place: &'static Location<'static>,
    lock_delay: Duration,
    once_per: Option<Duration>,
    holder: Arc<Holder>,
}

impl Plan {
    pub(crate) fn new(
        locker: &Locker,
        mut names: Vec<Locked>,
        options: &LockOptions,
        place: &'static Location<'static>,
    ) -> Result<Self, LockError> {
        let Some(first) = names.first().cloned() else {
            return Err(LockError::InvalidKey {
                locked: Locked::plain(""),
                reason: "is missing: the list is empty",
            });
        };
        for name in &names {
            key::check(name.key())
                .map_err(|reason| LockError::InvalidKey { locked: name.clone(), reason })?;
        }
        let mut keyed: Vec<(Arc<str>, Locked)> =
            names.drain(..).map(|name| (locker.store_key(name.key()), name)).collect();
        keyed.sort_by(|one, other| one.0.as_bytes().cmp(other.0.as_bytes()));
        keyed.dedup_by(|later, earlier| later.0 == earlier.0);
        if keyed.len() > MOST_KEYS {
            let reason = format!("{} keys were asked for, and {MOST_KEYS} is the most at once", keyed.len());
            return Err(LockError::InvalidOptions { locked: first, reason });
        }
        let ttl = ttl(locker, &first, options)?;
        if let Some(window) = options.once_per {
            check_window(locker, &first, window, keyed.len())?;
        }
        let label = options.label.clone().unwrap_or_else(|| first.template().to_owned());
        let (keys, names): (Vec<_>, Vec<_>) = keyed.into_iter().unzip();
        let host = &locker.shared.host;
        Ok(Self {
            names,
            keys: keys.into(),
            terms: Terms { ttl, renews: options.renew, max_hold: options.max_hold },
            place,
            lock_delay: locker.lock_delay,
            once_per: options.once_per,
            holder: Arc::new(Holder::new(host.host.clone(), host.pid, label)),
        })
    }

    /// The line in which this process waits for it. Who waits for a window has one of its own, so that it keeps
    /// nobody back who asks for none; no key has a control character.
    pub(crate) fn line(&self) -> KeySet {
        match self.once_per {
            Some(_) => self.keys.iter().map(|key| Arc::from(format!("{key}\0"))).collect(),
            None => Arc::clone(&self.keys),
        }
    }

    /// The leases for one owner.
    pub(crate) fn leases(&self, owner: Owner) -> Arc<[Lease]> {
        self.keys
            .iter()
            .map(|key| {
                let mut lease = Lease::new(Arc::clone(key), owner, self.terms.ttl);
                lease.lock_delay = self.lock_delay;
                lease.once_per = self.once_per;
                lease.holder = Arc::clone(&self.holder);
                lease
            })
            .collect()
    }
}

fn ttl(locker: &Locker, name: &Locked, options: &LockOptions) -> Result<Duration, LockError> {
    let invalid = |reason: String| LockError::InvalidOptions { locked: name.clone(), reason };
    let asked = options.expires;
    if asked < SHORTEST || asked > LONGEST {
        return Err(invalid(format!("`expires` is {asked:?}, and must be 100 ms to 24 h")));
    }
    let range = locker.shared.store.ttl_range();
    if asked < range.min {
        let (store, least) = (locker.shared.store.name(), range.min);
        return Err(invalid(format!(
            "`expires` is {asked:?}, and the {store} store needs {least:?} or more"
        )));
    }
    let ttl = asked.min(range.max);
    if let Some(min_hold) = options.min_hold {
        if min_hold > LONGEST {
            return Err(invalid(format!("`min_hold` is {min_hold:?}, and must be at most 24 h")));
        }
        if !options.renew && min_hold > ttl && !locker.shared.store.supports(Feature::Keep) {
            return Err(invalid(
                "`min_hold` is longer than `expires`, which this store cannot do without renewal".into(),
            ));
        }
    }
    if options.max_hold.is_some_and(|most| most.is_zero()) {
        return Err(invalid("`max_hold` is zero, and must be more".to_owned()));
    }
    if let (Some(least), Some(most)) = (options.min_hold, options.max_hold)
        && least > most
    {
        return Err(invalid(format!(
            "`min_hold` is {least:?}, and must not be longer than `max_hold`, {most:?}"
        )));
    }
    Ok(ttl)
}

fn check_window(locker: &Locker, name: &Locked, window: Duration, keys: usize) -> Result<(), LockError> {
    let invalid = |reason: String| LockError::InvalidOptions { locked: name.clone(), reason };
    if window < SHORTEST_WINDOW || window > LONGEST_WINDOW {
        return Err(invalid(format!("`once_per` is {window:?}, and must be 1 ms to 366 days")));
    }
    if keys > 1 {
        // Those that are given back because another was taken would have used up their windows.
        return Err(invalid(format!("`once_per` is for one key, and {keys} were given")));
    }
    if !locker.shared.store.supports(Feature::OncePer) {
        return Err(LockError::Unsupported {
            locked: name.clone(),
            feature: "`once_per`",
            store: locker.shared.store.name(),
        });
    }
    Ok(())
}
