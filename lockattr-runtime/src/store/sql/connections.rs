//! A few connections of the store's own, whose I/O is on the keeper.
//!
//! Invariant: a request whose caller went away still ends, and no request waits for ever: what takes too long
//! loses its connection.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, Database, Executor};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::keeper::Keeper;
use crate::lease::Owner;
use crate::store::StoreError;

/// How many connections a store makes at most.
const MOST: usize = 4;
/// Acquisitions and whatever else can wait leave one of them to renewals and releases.
const SHARED: usize = MOST - 1;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Above the core's own five seconds: the core has gone on by then.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

type Options<DB> = <<DB as Database>::Connection as sqlx::Connection>::Options;

/// What a dialect knows about its server.
pub(in crate::store) trait Server: Database + Sized {
    /// As errors call it.
    const PRODUCT: &'static str;
    /// What a new connection is told first.
    const GREETING: Option<&'static str>;

    /// Why no connection could be made.
    fn of_connecting(error: &sqlx::Error) -> String;

    /// Whether the connection should not be used again after this answer.
    fn ends(error: &dyn sqlx::error::DatabaseError) -> bool;
}

/// How a request failed.
#[derive(Debug)]
pub(in crate::store) enum Failed {
    /// It was not sent.
    Before(String),
    /// The server, or the connection to it, said so.
    Said(sqlx::Error),
    /// No answer came.
    Silent,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Turn {
    /// A lease that is held depends on it.
    First,
    /// It can wait for its turn.
    InLine,
    /// The same, and it may give this owner a lease.
    Acquire(Owner),
    /// It ends what this owner has, so it goes when none of the owner's acquisitions is on its way any more: on
    /// another connection it could overtake one that nobody waits for, whose lease would stay.
    Release(Owner),
}

pub(in crate::store) struct Connections<DB: Server> {
    options: Options<DB>,
    idle: Mutex<Vec<DB::Connection>>,
    all: Semaphore,
    shared: Semaphore,
    acquiring: Mutex<Vec<Owner>>,
    acquired: Notify,
    pid: u32,
}

/// An acquisition that is on its way.
struct Acquiring<DB: Server> {
    connections: Arc<Connections<DB>>,
    owner: Owner,
}

impl<DB: Server> Drop for Acquiring<DB> {
    fn drop(&mut self) {
        let mut acquiring = self.connections.acquiring.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = acquiring.iter().position(|owner| *owner == self.owner) {
            acquiring.swap_remove(at);
        }
        drop(acquiring);
        self.connections.acquired.notify_waiters();
    }
}

impl<DB: Server> Connections<DB>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    /// Nothing is connected yet.
    pub(in crate::store) fn new(options: Options<DB>) -> Self {
        Self {
            options,
            idle: Mutex::default(),
            all: Semaphore::new(MOST),
            shared: Semaphore::new(SHARED),
            acquiring: Mutex::default(),
            acquired: Notify::new(),
            pid: std::process::id(),
        }
    }

    /// Sends the statements as one message, and returns all rows of all of them.
    pub(in crate::store) async fn ask(
        self: &Arc<Self>,
        turn: Turn,
        text: String,
    ) -> Result<Vec<DB::Row>, Failed> {
        if self.pid != std::process::id() {
            return Err(Failed::Before(
                "this process was forked after the store was opened; open it again in the child".to_owned(),
            ));
        }
        let keeper = Keeper::get().map_err(|error| Failed::Before(error.to_string()))?;
        let this = Arc::clone(self);
        let acquiring = match turn {
            Turn::Acquire(owner) => {
                self.acquiring.lock().unwrap_or_else(PoisonError::into_inner).push(owner);
                Some(Acquiring { connections: Arc::clone(self), owner })
            }
            _ => None,
        };
        let answer = async move {
            let answer = this.answer(turn, text).await;
            drop(acquiring);
            answer
        };
        match keeper.run(answer).await {
            Ok(answer) => answer,
            Err(_) => Err(Failed::Silent),
        }
    }

    async fn answer(&self, turn: Turn, text: String) -> Result<Vec<DB::Row>, Failed> {
        let _in_line = match turn {
            Turn::First => None,
            Turn::Release(owner) => {
                self.until_acquired(owner).await;
                None
            }
            Turn::InLine | Turn::Acquire(_) => Some(permit(&self.shared).await?),
        };
        let _permit = permit(&self.all).await?;
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.connect().await.map_err(Failed::Before)?,
        };
        let rows = (&mut connection).fetch_all(sqlx::raw_sql(AssertSqlSafe(text)));
        match timeout(ANSWER_TIMEOUT, rows).await {
            Ok(Ok(rows)) => {
                self.idle().push(connection);
                Ok(rows)
            }
            Ok(Err(error)) => {
                match error.as_database_error() {
                    Some(said) if !DB::ends(said) => self.idle().push(connection),
                    // Whatever ended this one has most likely ended the others.
                    _ => self.idle().clear(),
                }
                Err(Failed::Said(error))
            }
            Err(_) => {
                self.idle().clear();
                Err(Failed::Silent)
            }
        }
    }

    async fn connect(&self) -> Result<DB::Connection, String> {
        let connecting = async {
            let mut connection = DB::Connection::connect_with(&self.options).await?;
            if let Some(greeting) = DB::GREETING {
                (&mut connection).execute(greeting).await?;
            }
            Ok(connection)
        };
        match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(DB::of_connecting(&error)),
            Err(_) => Err(format!(
                "the {} server does not answer a new connection within five seconds",
                DB::PRODUCT
            )),
        }
    }

    async fn until_acquired(&self, owner: Owner) {
        loop {
            let mut acquired = std::pin::pin!(self.acquired.notified());
            acquired.as_mut().enable();
            if !self.acquiring.lock().unwrap_or_else(PoisonError::into_inner).contains(&owner) {
                return;
            }
            acquired.await;
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<DB::Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn permit(semaphore: &Semaphore) -> Result<SemaphorePermit<'_>, Failed> {
    match timeout(ANSWER_TIMEOUT, semaphore.acquire()).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) => Err(Failed::Before("the store is closed".to_owned())),
        Err(_) => Err(Failed::Before(
            "earlier requests of this process still wait for the database: something holds it up, or it is asked \
             too much"
                .to_owned(),
        )),
    }
}

impl Failed {
    /// What the server calls it.
    pub(in crate::store) fn code(&self) -> Option<Cow<'_, str>> {
        let Self::Said(error) = self else { return None };
        error.as_database_error()?.code()
    }

    /// For what neither dialect knows better.
    pub(in crate::store) fn silent<DB: Server>() -> StoreError {
        StoreError::unknown(format!("the {} server did not answer within ten seconds", DB::PRODUCT))
    }
}

impl<DB: Server> fmt::Debug for Connections<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The driver's options hold the password.
        f.debug_struct("Connections").field("server", &DB::PRODUCT).finish_non_exhaustive()
    }
}

impl<DB: Server> Drop for Connections<DB> {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            // The connections are the parent's: closing them here would say goodbye in its name.
            std::mem::take(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner))
                .into_iter()
                .for_each(std::mem::forget);
        }
    }
}
