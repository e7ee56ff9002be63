//! The bbolt file format, read-only: little-endian, any page size from 1 to 64 KiB.
//!
//! Source: bbolt `internal/common/{page,meta,inode}.go`. A tree page may stretch over several pages
//! (`overflow`); a bucket is an entry whose value is a root page id, or the bucket's single page itself.

pub mod meta;
pub mod node;
pub mod page;
pub mod read;

pub use meta::{Meta, Metas};
pub use node::{Branch, Leaf};
pub use page::{Header, Kind};
pub use read::{Bucket, Cursor, Db, ReadFault};

#[cfg(test)]
pub mod build;
