//! What the stores on SQL servers have in common: the name of the table, the connections, and records as rows.
//!
//! The statements are each store's own: the dialects differ where it matters. They go out as text in one
//! message, and leave nothing on the connection: no prepared statement, no setting, no open transaction. So a
//! proxy that gives each transaction another connection of the server cannot mix them up.
//!
//! Invariant: no user's text stands in a statement but in hexadecimal digits.

mod connections;
mod parameters;
mod rows;
mod table;

pub(super) use self::connections::{Connections, Failed, Server, Turn};
pub(super) use self::parameters::parameters;
pub(super) use self::rows::{Row, hexadecimal, micros};
pub(super) use self::table::Table;
