//! Only a home for the test beside it.
