//! SQLite files: what is refused, and what happens to them under a running store.
