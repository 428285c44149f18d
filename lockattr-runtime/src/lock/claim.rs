//! A record that may be ours: given back when it is dropped. It exists before the first request is sent,
//! so that a future dropped at any await leaves nothing held.

use std::sync::Arc;

use super::shared::{Shared, over_at};
use super::undo::{Pending, Return};
use crate::error::Locked;
use crate::lease::Lease;
use crate::time::Moment;

pub(crate) struct Claim {
    shared: Arc<Shared>,
    leases: Arc<[Lease]>,
    locked: Locked,
    /// When a record that an unanswered attempt may have made is over; `None` when none can be there.
    doubt: Option<Moment>,
    /// The same, from before the attempt that is on its way.
    earlier: Option<Moment>,
    _pending: Pending,
}

impl Claim {
    pub(crate) fn new(shared: &Arc<Shared>, leases: Arc<[Lease]>, locked: Locked) -> Self {
        Self {
            shared: Arc::clone(shared),
            leases,
            locked,
            doubt: None,
            earlier: None,
            _pending: Pending::new(shared),
        }
    }

    pub(crate) fn leases(&self) -> &Arc<[Lease]> {
        &self.leases
    }

    /// An attempt is about to be sent at `sent`.
    pub(crate) fn sending(&mut self, sent: Moment) {
        let lease = &self.leases[0];
        self.earlier = self.doubt;
        self.doubt = Some(over_at(sent, lease.ttl, lease.lock_delay));
    }

    /// The attempt was answered: it holds nothing. An earlier one without an answer still might.
    pub(crate) fn holds_nothing(&mut self) {
        self.doubt = self.earlier;
    }

    /// The leases are ours and somebody else looks after them now.
    pub(crate) fn settle(mut self) -> Arc<[Lease]> {
        self.doubt = None;
        Arc::clone(&self.leases)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(over_at) = self.doubt {
            Return {
                leases: Arc::clone(&self.leases),
                locked: self.locked.clone(),
                keep: None,
                over_at,
                in_doubt: true,
            }
            .start(&self.shared);
        }
    }
}
