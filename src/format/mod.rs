//! Pure code for file formats: no I/O policy, no async, no unsafe.

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
