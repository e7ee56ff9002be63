//! What differs between two key spaces, each at one revision.
//!
//! In: the rows of both, in any order, twice. Out: [`Differences`]: counts, sums by prefix, and the single keys where
//! they are wanted. Never a value: values may be secrets, and are only compared by a fingerprint.
//!
//! A database file has its rows in the order of revisions and its pages in none, and a key may have been written many
//! times. So the first look ([`Table`]) keeps for each key and side the newest row's revision and a fingerprint of
//! its state, 44 bytes however long keys and values are. The second look ([`Second`]) meets the rows again and
//! takes those that the table calls different. Two key spaces that are the same need no second look, and one that has
//! nothing to tell is not read again.
//!
//! | file | idea |
//! |---|---|
//! | [`table`] | the state of each key on both sides, by fingerprint |
//! | [`found`] | the differing rows, put together to counts, prefixes and keys |
//! | [`prefix`] | which prefix a key is counted under |

pub mod found;
pub mod prefix;
pub mod table;

pub use found::{Change, Changed, Differences, PrefixSum, Second, State, Totals};
pub use table::{First, Kind, Side, Table};
