//! The attribute of lockattr.
