//! How often each byte occurs in states of our own models, from which the static code comes.
//!
//! `cargo test -p plimsoll --test static_code` counts again, and prints this table should it differ.

/// In ten thousandths of a per cent, for bytes that occur at all.
pub const STATIC_COUNTS: [u64; 256] = [1; 256];
