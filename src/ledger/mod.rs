//! refloat's own record of what it did: an append-only file of `(kind, schema, bytes)` with a checksum a record.
//!
//! In: entries from the one writer of a process role (law 2). Out: all of them again at the next start, up to the last
//! one that was acknowledged. It knows no domain type; what an entry means is said by whoever wrote it.
