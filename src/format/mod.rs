//! Pure code for file formats: no I/O policy, no async, no unsafe, nothing that input can make panic.
//!
//! In: bytes through [`ReadAt`] or slices. Out: parsed views, findings, hashes. A format fact names its source.
//!
//! | module | what it reads |
//! |---|---|
//! | [`bbolt`] | pages, metas, nodes; a read-only database with cursors |
//! | [`mvcc`] | rows of etcd's `key` bucket |
//! | [`buckets`] | etcd's other buckets: meta, lease, members, alarm, cluster |
//! | [`check`] | the integrity check and the offline HashKV, in one pass over the file |
//! | [`keyspace`] | the keys as they stood at a revision |
//! | [`diff`] | what differs between two key spaces |
//! | [`kubernetes`] | just enough of a stored object to show kind, name and UID |
//! | [`x509`] | whose a certificate is, until when, what for |
//! | [`proto`], [`crc`] | protobuf wire format, CRC-32C of concatenated parts |

pub mod bbolt;
pub mod buckets;
pub mod check;
pub mod crc;
pub mod diff;
pub mod keyspace;
pub mod kubernetes;
pub mod mvcc;
pub mod proto;
pub mod x509;

/// Random access to bytes of a known length: a plain file, a compressed object, a slice.
pub trait ReadAt: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` from `offset`; reading past the end is an `UnexpectedEof`.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()>;
}

impl ReadAt for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).ok();
        let found = start.and_then(|s| self.get(s..s.checked_add(buf.len())?));
        match found {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl ReadAt for Vec<u8> {
    fn len(&self) -> u64 {
        ReadAt::len(&self.as_slice())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        ReadAt::read_at(&self.as_slice(), offset, buf)
    }
}

/// The first `len` bytes of something longer: a database without the trailer behind it.
pub struct Head<'a> {
    inner: &'a dyn ReadAt,
    len: u64,
}

impl<'a> Head<'a> {
    /// `len` is cut to what `inner` has.
    pub fn new(inner: &'a dyn ReadAt, len: u64) -> Self {
        Head { inner, len: len.min(inner.len()) }
    }
}

impl ReadAt for Head<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        match offset.checked_add(buf.len() as u64) {
            Some(end) if end <= self.len => self.inner.read_at(offset, buf),
            _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
