//! The conformance suite: one list of cases that every store passes in full.
//!
//! A store is put through it by one [`conformance!`](crate::conformance!) in a test:
//!
//! ```
//! use lockattr_runtime::store::MemoryStore;
//!
//! /// The records of one storage, shared by all handles on it.
//! fn storage(name: String) -> MemoryStore {
//!     use std::collections::HashMap;
//!     use std::sync::{LazyLock, Mutex};
//!     static STORAGES: LazyLock<Mutex<HashMap<String, MemoryStore>>> = LazyLock::new(Mutex::default);
//!     STORAGES.lock().unwrap().entry(name).or_default().clone()
//! }
//!
//! lockattr_runtime::conformance! {
//!     name: memory,
//!     open: |storage_name| async move { storage(storage_name) },
//!     supports: {
//!         shared: "not written",
//!         permits: "not written",
//!         atomic_many: yes,
//!         keep: yes,
//!         once_per: yes,
//!         token_blocks: yes,
//!         token_floor: yes,
//!         watch: yes,
//!         any_executor: yes,
//!         processes: "its records are in one process",
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! * `name` becomes the module of the tests: `memory::exclusion::a_free_key_is_granted`.
//! * `open` makes a handle of a storage's name: letters, digits and underscores, at most 60 of them. Handles
//!   of one name, in any process, see the same records, those of different names do not (a file, a table, a
//!   database, a prefix). It is called in the async context of a tokio runtime, several times a case, and
//!   panics when the server is not there: a missing server is a failure, not a reason to skip.
//! * `supports` has a row for everything that a store may lack: `yes`, or why not. The cases that need
//!   it are then reported as ignored, with the reason. One case compares the rows with
//!   [`Store::supports`](crate::store::Store::supports), so that no store passes by claiming less. Two rows
//!   are not features: `any_executor` says that the store's futures run without a tokio runtime and a
//!   handle outlives the runtime it was made on, `processes` that other processes reach the storage.
//!
//! The suite uses new keys in every run, and leaves records behind in the storages. It must not run twice
//! at once on the same storages. What a case is about stands in its name.
//!
//! Invariant: the functions of the themes are private, and reached only through the list below, so that one
//! that is missing there is dead code, and none can be left out for a store.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a case fails by panicking")]

mod bench;
mod cancel;
mod child;
mod contention;
mod duplicates;
mod exclusion;
mod expiry;
mod fencing;
mod keys;
mod locker;
mod many;
mod minimum_hold;
mod operators;
mod release;
mod renewal;
mod retention;
mod runtimes;
mod table;
mod watching;
mod windows;

pub use bench::Bench;
#[doc(hidden)]
pub use bench::run;
#[doc(hidden)]
pub use table::check as check_table;

macro_rules! suite {
    (
        ($d:tt)
        rows: $($row:ident)*;
        $($theme:ident { $($case:ident $(needs $need:ident)?;)* })*
    ) => {
        /// The cases, by theme. [`conformance!`](crate::conformance!) calls them.
        #[doc(hidden)]
        pub mod cases {
            $(pub mod $theme {
                use crate::conformance::{Bench, $theme};
                use crate::store::Store;

                $(pub async fn $case<S: Store>(bench: &Bench<S>) {
                    $theme::$case(bench).await;
                })*
            })*
        }

        /// Puts a store through the suite; the documentation of the module of the same name says how.
        #[macro_export]
        macro_rules! conformance {
            (
                name: $d name:ident,
                open: $d open:expr,
                supports: { $($row: $d $row:tt),* $d (,)? } $d (,)?
            ) => {
                mod $d name {
                    #[allow(unused_imports)]
                    use super::*;

                    fn open(
                        storage: ::std::string::String,
                    ) -> impl ::std::future::Future<Output = impl $crate::store::Store> + Send {
                        ($d open)(storage)
                    }

                    mod table {
                        #[test]
                        fn the_table_is_what_the_store_says() {
                            $crate::conformance::check_table(
                                super::open,
                                &[$((stringify!($row), $crate::__conformance_row!($d $row))),*],
                            );
                        }
                    }

                    $(mod $theme {
                        $($crate::__conformance_case! {
                            [$($d $need)?]
                            fn $case() {
                                $crate::conformance::run(
                                    super::open,
                                    stringify!($case),
                                    concat!(module_path!(), "::", stringify!($case)),
                                    $crate::conformance::cases::$theme::$case,
                                );
                            }
                        })*
                    })*
                }
            };
        }
    };
}

/// One test: always run, or ignored with the reason that stands in the store's row.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_case {
    ([] $($test:tt)*) => {
        #[test]
        $($test)*
    };
    ([yes] $($test:tt)*) => {
        #[test]
        $($test)*
    };
    ([$why:literal] $($test:tt)*) => {
        #[test]
        #[ignore = $why]
        $($test)*
    };
}

/// Whether a row says yes.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_row {
    (yes) => {
        true
    };
    ($why:literal) => {
        false
    };
}

suite! {
    ($)
    rows: shared permits atomic_many keep once_per token_blocks token_floor watch any_executor processes;

    exclusion {
        a_free_key_is_granted;
        a_held_key_is_refused_and_names_its_holder;
        a_live_lease_is_not_taken_over_by_an_equal_request;
        another_handle_sees_the_lease;
        different_keys_do_not_exclude_each_other;
        of_many_first_requests_one_is_granted;
        a_mode_that_is_not_supported_is_refused;
    }
    keys {
        keys_are_their_exact_bytes;
        a_key_of_383_bytes_is_kept_whole;
        list_takes_a_prefix_literally;
        list_pages_in_the_order_of_bytes;
    }
    expiry {
        an_expired_lease_is_taken_over_but_not_before_its_time;
        an_expired_attempt_is_spent;
        an_expired_holder_does_not_disturb_its_successor;
        a_lock_delay_keeps_an_expired_lease_out;
        a_lock_delay_does_not_hold_back_a_released_key;
        what_remains_is_at_most_the_ttl_and_shrinks;
    }
    fencing {
        tokens_grow_over_release_expiry_and_force;
        tokens_grow_after_the_record_was_collected;
        a_token_is_an_exact_double;
        a_block_of_tokens_is_the_holders_alone needs token_blocks;
        a_grant_honours_the_token_floor needs token_floor;
        a_renewal_honours_the_token_floor needs token_floor;
    }
    renewal {
        a_renewal_keeps_the_lease_beyond_its_first_ttl;
        a_renewal_keeps_the_token;
        a_renewal_never_shortens;
        another_owner_renews_nothing;
        an_unknown_key_is_not_created;
        a_released_lease_is_not_revived;
        an_expired_lease_is_not_revived;
    }
    release {
        a_released_key_is_free_at_once;
        a_second_release_does_no_harm;
        another_owner_releases_nothing;
        an_unknown_key_is_not_released_nor_created;
        an_expired_lease_is_released_without_a_lock_delay;
    }
    minimum_hold {
        a_kept_key_is_taken_until_its_time_and_then_free needs keep;
        a_kept_key_has_no_owner needs keep;
        a_kept_key_needs_no_lock_delay needs keep;
        keep_counts_from_the_grant needs keep;
        a_second_release_changes_no_keep needs keep;
        a_kept_key_can_be_forced needs keep;
        a_lost_lease_is_not_kept needs keep;
    }
    windows {
        a_window_has_one_grant_even_after_release needs once_per;
        a_crash_uses_up_its_window needs once_per;
        the_next_window_has_another_grant needs once_per;
        a_request_without_a_window_does_not_care needs once_per;
        collect_does_not_forget_a_window needs once_per;
    }
    duplicates {
        a_live_owner_gets_its_token_again_and_no_more_time;
        a_released_attempt_does_not_come_back;
        a_lost_answer_is_found_again;
        a_late_acquire_of_a_finished_attempt_is_refused;
        a_late_renewal_revives_nothing;
        a_late_release_frees_nobody_elses_lease;
        a_shorter_renewal_that_lands_late_shortens_nothing;
    }
    many {
        all_are_granted_with_their_tokens;
        one_that_is_taken_leaves_none_held;
        one_that_is_spent_leaves_none_held;
        a_repeat_gives_the_same_tokens;
        all_are_released_and_once_more_without_harm;
        a_refusal_is_never_seen_by_others needs atomic_many;
        opposite_orders_never_share needs atomic_many;
    }
    operators {
        inspect_shows_what_a_key_is;
        list_shows_what_is_not_free;
        force_needs_the_observed_token;
        a_forced_attempt_is_over_for_good;
        force_of_an_unknown_key_creates_nothing;
        audit_and_bounds_answer;
    }
    retention {
        collect_spares_what_is_in_use;
        collect_spares_what_is_kept needs keep;
        collect_removes_ten_thousand_keys_in_bounded_steps;
    }
    watching {
        a_release_is_hinted needs watch;
    }
    cancel {
        an_acquire_dropped_anywhere_leaves_nothing_held;
        an_acquire_of_many_dropped_anywhere_leaves_nothing_held;
        a_release_dropped_anywhere_can_be_repeated;
    }
    runtimes {
        a_handle_outlives_the_runtime_it_was_made_on needs any_executor;
        verbs_run_under_any_executor needs any_executor;
        threads_with_runtimes_of_their_own_share_a_handle;
    }
    locker {
        a_guard_excludes_and_its_token_grows;
        a_dropped_guard_frees_its_key;
        an_acquire_dropped_at_every_await_leaves_nothing_held;
        a_waiter_dropped_anywhere_does_not_stand_in_the_way;
        a_guard_is_renewed_beyond_its_ttl;
        a_forced_guard_is_lost;
        a_lost_answer_is_asked_for_again;
        an_outcome_that_stays_unknown_is_undone;
        a_store_out_of_reach_is_never_busy;
        lockers_of_many_tasks_never_overlap;
    }
    contention {
        eight_tasks_never_overlap;
        four_processes_never_overlap_and_survive_kills needs processes;
    }
}
