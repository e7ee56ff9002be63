//! The integrity check of a database and its offline HashKV, in one pass over the bytes.
//!
//! In: the bytes twice over: at random through [`ReadAt`](crate::format::ReadAt) for metas, branch pages and
//! small buckets, and once in order through [`Checker::feed`] for the leaves of the `key` bucket. Out: a
//! [`Report`] with *all* findings, and the content when the tree could be walked. Serves promise 1.
//!
//! | file | idea |
//! |---|---|
//! | [`finding`] | what can be wrong, and what is merely odd |
//! | [`hints`] | branch pages gathered beforehand, and why they need not be trusted |
//! | `tree` | reachability from the root: every page once, bounds, order |
//! | `small` | buckets that are read at once |
//! | `keys` | the newest row of each user key, by fingerprint |
//! | `leaves` | the leaves of `key`: where they are, what was found on each |
//! | `rows` | one leaf's rows: shape, history, sum |
//! | `freelist` | the list of free pages, where there is one |
//! | [`report`] | what is asked and answered |
//! | `scan` | [`Checker`]: puts it together |
//!
//! **HashKV.** etcd sums (CRC-32C, seeded with the bucket's name) the rows up to revision R, but of those at
//! or below the compact revision C only the newest of each key, and no tombstone. Whether such a row counts
//! depends on later rows, which may lie anywhere in the file. So every leaf is summed as if its rows counted,
//! the newest row of each key is kept by fingerprint, and the few leaves that turn out to hold a superseded
//! row are read once more at the end. Sums of leaves are joined in tree order. Source: etcd
//! `server/storage/mvcc/{hash.go,kvstore.go}`, `index.go` (Keep).

pub mod finding;
mod freelist;
pub mod hints;
pub(in crate::format) mod keys;
mod leaves;
pub mod report;
mod rows;
mod scan;
mod small;
mod tree;

pub use finding::{Finding, Findings};
pub use hints::{Collector, Hints};
pub use report::{Content, HashKv, Options, Report, Visitor};
pub use scan::Checker;

#[cfg(test)]
mod tests;
