//! The store under test, with a book beside it that knows what it granted, to whom, and until when.
//!
//! Invariant: the book believes the store's answers only as far as the contract allows them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lockattr::lease::{Acquired, AcquiredMany, FencingToken, Forced, Lease, Owner, Released, Renewed};
use lockattr::store::{MemoryStore, Store, StoreError};

use super::clock::StoreClock;
use super::weather::Flaw;
use super::witness::{Fault, Witness};

pub(super) struct Ledger {
    store: MemoryStore,
    clock: StoreClock,
    witness: Arc<Witness>,
    book: Mutex<Book>,
    flaw: Option<Flaw>,
}

#[derive(Default)]
struct Book {
    pages: BTreeMap<Arc<str>, Page>,
    calls: u64,
}

/// What the book has of one key.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// Which request of the program it was granted for.
    pub(super) op: u64,
    owner: Owner,
    pub(super) token: u64,
    pub(super) granted: Duration,
    /// The store may not give it to another before this, by the book's clock.
    pub(super) until: Duration,
    pub(super) end: Option<End>,
    /// When it becomes free for others.
    pub(super) free_at: Duration,
    /// When the last lease of another request was over.
    others_free_at: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Released,
    Forced,
}

impl Ledger {
    pub(super) fn new(clock: StoreClock, witness: Arc<Witness>, flaw: Option<Flaw>) -> Self {
        Self { store: clock.store(), clock, witness, book: Mutex::default(), flaw }
    }

    pub(super) fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// How many requests the store has had.
    pub(super) fn calls(&self) -> u64 {
        self.book().calls
    }

    pub(super) fn page(&self, key: &str) -> Option<Page> {
        self.book().pages.get(key).cloned()
    }

    /// The keys that are held now, and for which request.
    pub(super) fn held(&self) -> Vec<(Arc<str>, u64)> {
        let now = self.clock.book();
        let book = self.book();
        let live = book.pages.iter().filter(|(_, page)| page.end.is_none() && now < page.until);
        live.map(|(key, page)| (Arc::clone(key), page.op)).collect()
    }

    /// Whether another request had `key` at some time since then.
    pub(super) fn was_held_by_another(&self, key: &str, op: u64, since: Duration) -> bool {
        self.page(key).is_some_and(|page| {
            let over = if page.op == op { page.others_free_at } else { page.free_at };
            over >= since && over > Duration::ZERO
        })
    }

    /// Whether the lease with this token is its holder's still.
    pub(super) fn is_live(&self, key: &str, token: u64) -> Result<(), String> {
        let now = self.clock.book();
        match self.page(key) {
            Some(page) if page.token != token => Err(format!("{key} was granted again, to {}", page.op)),
            Some(Page { end: Some(end), .. }) => Err(format!("{key} was ended: {end:?}")),
            Some(page) if now >= page.until => Err(format!("{key} ran out at {:?}", page.until)),
            Some(_) => Ok(()),
            None => Err(format!("{key} was never granted")),
        }
    }

    pub(super) fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        if self.flaw == Some(Flaw::StealsLive)
            && self.page(&lease.key).is_some_and(|p| p.owner != lease.owner)
        {
            self.free_whatever(&lease.key);
        }
        let mut asked = lease.clone();
        if self.flaw == Some(Flaw::ForgetsOwner) {
            asked.owner = Owner::random();
        }
        let mut answer = if self.lies() {
            Ok(Acquired::Taken {
                remaining: lease.ttl,
                holder: Some(Arc::clone(&lease.holder)),
                queued: false,
            })
        } else {
            now(self.store.acquire(&asked))
        };
        if self.flaw == Some(Flaw::CountsFromOne)
            && let Ok(Acquired::Granted { token, .. }) = &mut answer
        {
            *token = FencingToken::new(self.calls() % 7);
        }
        if let Ok(Acquired::Granted { token, remaining }) = answer {
            self.granted(lease, token, remaining);
        }
        self.called(|| format!("acquire {} for {}: {answer:?}", lease.key, op_of(lease)));
        answer
    }

    pub(super) fn acquire_many(&self, leases: &[Lease]) -> Result<AcquiredMany, StoreError> {
        let answer = now(self.store.acquire_many(leases));
        match &answer {
            Ok(AcquiredMany::Granted { tokens, remaining }) => {
                for (lease, token) in leases.iter().zip(tokens) {
                    self.granted(lease, *token, *remaining);
                }
            }
            // It has given back what an earlier attempt of the same owner held.
            Ok(AcquiredMany::Taken { .. } | AcquiredMany::Spent { .. }) => {
                for lease in leases {
                    self.ended(lease, None);
                }
            }
            _ => {}
        }
        self.called(|| format!("acquire {} keys for {}: {answer:?}", leases.len(), op_of(&leases[0])));
        answer
    }

    pub(super) fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        let mut answer = now(self.store.renew(lease));
        if self.flaw == Some(Flaw::RenewsForeign) {
            answer = Ok(Renewed::Renewed { remaining: lease.ttl });
        } else if self.lies() {
            answer = Ok(Renewed::Lost);
        }
        let now = self.clock.book();
        match answer {
            Ok(Renewed::Renewed { remaining }) => {
                self.extend(lease, now + remaining);
            }
            Ok(Renewed::Lost) => self.witness.store_said_lost(op_of(lease)),
            _ => {}
        }
        self.called(|| format!("renew {} for {}: {answer:?}", lease.key, op_of(lease)));
        answer
    }

    pub(super) fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        if let Some(page) = self.page(&lease.key)
            && page.owner == lease.owner
            && page.end.is_none()
        {
            self.witness.releasing(page.op, &lease.key, page.token);
        }
        if self.flaw == Some(Flaw::FreesForeign) {
            self.free_whatever(&lease.key);
        }
        let kept = keep.filter(|_| self.flaw != Some(Flaw::ForgetsKeep));
        let answer = now(self.store.release(lease, kept));
        match answer {
            Ok(Released::Released) => self.ended(lease, keep),
            Ok(_) => self.witness.store_said_lost(op_of(lease)),
            Err(_) => {}
        }
        self.called(|| format!("release {} for {}, keep {keep:?}: {answer:?}", lease.key, op_of(lease)));
        answer
    }

    pub(super) fn release_many(
        &self,
        leases: &[Lease],
        keep: Option<Duration>,
    ) -> Result<Vec<Released>, StoreError> {
        leases.iter().map(|lease| self.release(lease, keep)).collect()
    }

    pub(super) fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        let answer = now(self.store.force_release(key, token));
        if matches!(answer, Ok(Forced::Released)) {
            let now = self.clock.book();
            if let Some(page) = self.book().pages.get_mut(key) {
                page.end = Some(End::Forced);
                page.until = now;
                page.free_at = now;
                self.witness.forced(page.op);
            }
        }
        self.called(|| format!("force {key} {token}: {answer:?}"));
        answer
    }

    /// Every record is gone.
    pub(super) fn forget_all(&self) {
        self.store.forget_all();
        self.witness.note(|| "the store forgets everything".to_owned());
    }

    fn lies(&self) -> bool {
        self.flaw == Some(Flaw::Lies) && self.calls().is_multiple_of(3)
    }

    /// What the store does to itself when its flaw says so.
    fn free_whatever(&self, key: &str) {
        if let Ok(Some(record)) = now(self.store.inspect(key)) {
            let _ = now(self.store.force_release(key, record.token));
        }
    }

    fn granted(&self, lease: &Lease, token: FencingToken, remaining: Duration) {
        let now = self.clock.book();
        let op = op_of(lease);
        let before = self.book().pages.get(&lease.key).cloned();
        if let Some(page) = &before {
            // After a step back of the store's clock it may live on for longer than the book has it.
            if page.owner == lease.owner
                && page.end.is_none()
                && (now < page.until || self.clock.was_set_back())
            {
                if page.token != token.get() {
                    self.witness
                        .fault(Fault::TokenOrder, || format!("{op} got another token for its own lease"));
                }
                self.extend(lease, now + remaining);
                return;
            }
            if now < page.free_at {
                let fault = if page.end == Some(End::Released) { Fault::MinHold } else { Fault::TwoGrants };
                let (key, left) = (&lease.key, page.free_at.saturating_sub(now));
                self.witness
                    .fault(fault, || format!("{key} went to {op}, {} had it for {left:?} more", page.op));
            }
            self.witness.check_min_hold(page.op, &lease.key, page.token, now.saturating_sub(page.granted));
            if token.get() <= page.token {
                self.witness.fault(Fault::TokenOrder, || format!("{op} got {token} after {}", page.token));
            }
        }
        let free_since = before.as_ref().map_or(Duration::ZERO, |page| page.free_at);
        let others_free_at = before.as_ref().map_or(Duration::ZERO, |page| {
            if page.op == op { page.others_free_at } else { page.free_at.min(now) }
        });
        let page = Page {
            op,
            owner: lease.owner,
            token: token.get(),
            granted: now,
            until: now + remaining,
            end: None,
            free_at: now + remaining + lease.lock_delay,
            others_free_at,
        };
        self.book().pages.insert(Arc::clone(&lease.key), page);
        self.witness.taken(&lease.key, free_since, now);
    }

    fn extend(&self, lease: &Lease, until: Duration) {
        if let Some(page) = self.book().pages.get_mut(&lease.key)
            && page.owner == lease.owner
            && page.end.is_none()
        {
            page.until = page.until.max(until);
            page.free_at = page.until + lease.lock_delay;
        }
    }

    fn ended(&self, lease: &Lease, keep: Option<Duration>) {
        let now = self.clock.book();
        if let Some(page) = self.book().pages.get_mut(&lease.key)
            && page.owner == lease.owner
            && page.end.is_none()
        {
            page.end = Some(End::Released);
            let kept = keep.map_or(now, |keep| page.granted + keep);
            page.free_at = if now < page.until { kept.max(now) } else { page.free_at.min(now) };
            page.until = page.until.min(now);
        }
    }

    fn called(&self, text: impl FnOnce() -> String) {
        self.book().calls += 1;
        self.witness.note(text);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which request of the program a lease is for: the actors write it into the label.
pub(super) fn op_of(lease: &Lease) -> u64 {
    lease.holder.label.parse().unwrap_or_default()
}

/// The memory store answers at once.
fn now<T>(asked: impl Future<Output = T>) -> T {
    match pin!(asked).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the memory store answers at once"),
    }
}
