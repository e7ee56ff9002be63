//! Reads an object from its first to its last byte and says whether it is a sound etcd database (promise 1).
//!
//! Four threads hand pieces on: one reads and hashes the stored bytes, one decodes frames, one hashes the
//! database, one checks pages and rows. The same code judges a fresh capture, a stored snapshot and any file.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use crate::catalog::Digest;
use crate::error::{Code, Error, Result};
use crate::format::check::{Checker, Content, Finding, HashKv, Hints, Options, Visitor};
use crate::format::{Head, ReadAt};
use crate::store::codec::Framed;

/// Bytes of the SHA-256 that etcd appends.
pub const TRAILER: u64 = 32;
/// Pieces of a plain file.
const PIECE: u64 = 1 << 20;
/// Pieces under way between two threads.
const QUEUE: usize = 4;

/// Bytes to be judged.
#[derive(Clone)]
pub enum Object {
    Plain(Arc<dyn ReadAt>),
    Framed(Arc<Framed>),
}

impl Object {
    /// Random access to the plain bytes.
    pub fn bytes(&self) -> &dyn ReadAt {
        match self {
            Object::Plain(plain) => &**plain,
            Object::Framed(framed) => &**framed,
        }
    }
}

/// Whether the file proves its own bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trailer {
    Good,
    Wrong,
    /// A database file that no snapshot stream made.
    Absent,
}

/// All that was found out.
#[derive(Debug)]
pub struct Judgement {
    /// Empty: sound.
    pub findings: Vec<Finding>,
    pub notes: Vec<Finding>,
    pub content: Option<Content>,
    pub hash_kv: Option<HashKv>,
    pub trailer: Trailer,
    /// Bytes of the database, without trailer.
    pub db_len: u64,
    /// SHA-256 of the database, without trailer.
    pub db_sha256: Digest,
    /// Of the object as stored; for a plain file that of all its bytes is not computed.
    pub stored_sha256: Option<Digest>,
}

impl Judgement {
    pub fn ok(&self) -> bool {
        self.findings.is_empty()
    }
}

/// A decoded piece, or the frame that could not be decoded.
type Piece = std::result::Result<Arc<Vec<u8>>, Finding>;

/// Where the database ends and whether a trailer follows: pages are multiples of 512 bytes, the trailer is 32.
/// (etcd's own tools use the same rule.)
pub fn split(len: u64) -> (u64, bool, Option<String>) {
    match len % 512 {
        0 => (len, false, None),
        TRAILER => (len - TRAILER, true, None),
        rest => {
            let message =
                format!("{len} bytes are neither whole pages nor whole pages and a trailer of 32: cut or padded");
            (len - rest, false, Some(message))
        }
    }
}

/// Judges an object. `Err` only when it cannot be read or the caller gave up; damage is in the findings.
pub fn judge(
    object: &Object,
    on: &str,
    options: Options,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Judgement> {
    judge_showing(object, on, options, None, progress, cancel)
}

/// The same, and shows each row of the key space to somebody.
pub fn judge_showing(
    object: &Object,
    on: &str,
    options: Options,
    mut visitor: Option<&mut dyn Visitor>,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Judgement> {
    let hints = match object {
        Object::Plain(_) => None,
        Object::Framed(framed) => framed.hints().and_then(Hints::decode),
    };
    let hinted = Options { hints: hints.unwrap_or_default(), ..options.clone() };
    // Hints that do not fit the pages void the result; the same look without them needs nobody's word.
    match once(object, on, hinted, again(&mut visitor), progress, cancel)? {
        Some(judgement) => Ok(judgement),
        None => once(object, on, options, again(&mut visitor), progress, cancel)?
            .ok_or_else(|| Error::new(Code::Internal, "verify", on).because("misled without any hint")),
    }
}

fn again<'a>(visitor: &'a mut Option<&mut dyn Visitor>) -> Option<&'a mut dyn Visitor> {
    match visitor {
        Some(visitor) => Some(&mut **visitor),
        None => None,
    }
}

/// `None` when the hints did not fit.
fn once(
    object: &Object,
    on: &str,
    options: Options,
    visitor: Option<&mut dyn Visitor>,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Option<Judgement>> {
    let bytes = object.bytes();
    let (db_len, has_trailer, length_fault) = split(bytes.len());
    let database = Head::new(bytes, db_len);
    let (scan_in, scan_out) = sync_channel::<Piece>(QUEUE);
    let (hash_in, hash_out) = sync_channel::<Arc<Vec<u8>>>(QUEUE);

    let (read, hashed, scanned) = thread::scope(|scope| {
        let read = scope.spawn(|| produce(object, on, cancel, scan_in, hash_in));
        let hash = scope.spawn(move || hash_database(hash_out, db_len));
        let scanned = scan(Checker::showing(&database, options, visitor), db_len, scan_out, progress);
        (join(read), join(hash), scanned)
    });
    let stored_sha256 = read??;
    let (db_sha256, trailer_bytes) = hashed?;
    let (checker, damaged) = scanned;

    let trailer = match (has_trailer, trailer_bytes[..] == db_sha256[..]) {
        (false, _) => Trailer::Absent,
        (true, true) => Trailer::Good,
        (true, false) => Trailer::Wrong,
    };
    let report = checker.finish(&database, trailer == Trailer::Good);
    // A frame that cannot be decoded holds pages that cannot be compared; that is damage, not a wrong hint.
    if report.misled && damaged.is_empty() {
        return Ok(None);
    }
    let mut findings: Vec<Finding> = damaged;
    if let Some(message) = length_fault {
        findings.push(Finding { page: None, check: "length", message });
    }
    if trailer == Trailer::Wrong && findings.is_empty() {
        let message = "SHA-256 of the database is not the one in its trailer".to_string();
        findings.push(Finding { page: None, check: "trailer", message });
    }
    findings.extend(report.findings);
    let hash_kv = report.hash_kv.filter(|_| findings.is_empty());
    Ok(Some(Judgement {
        findings,
        notes: report.notes,
        content: report.content,
        hash_kv,
        trailer,
        db_len,
        db_sha256: Digest(db_sha256),
        stored_sha256,
    }))
}

fn join<T>(handle: thread::ScopedJoinHandle<'_, T>) -> Result<T> {
    handle.join().map_err(|_| Error::new(Code::Internal, "verify", "").because("a worker thread panicked"))
}

fn scan<'v>(
    mut checker: Checker<'v>,
    db_len: u64,
    pieces: Receiver<Piece>,
    progress: &dyn Progress,
) -> (Checker<'v>, Vec<Finding>) {
    let (mut damaged, mut done) = (Vec::new(), 0);
    for piece in pieces {
        match piece {
            // After a damaged frame positions are lost; what follows is still decoded, to name all damage.
            Ok(bytes) if damaged.is_empty() => {
                let left = db_len.saturating_sub(done).min(bytes.len() as u64);
                checker.feed(&bytes[..left as usize]);
                done += bytes.len() as u64;
                progress.bytes(done.min(db_len), Some(db_len), "B");
            }
            Ok(_) => {}
            Err(finding) => damaged.push(finding),
        }
    }
    (checker, damaged)
}

/// SHA-256 of the first `db_len` bytes, and up to 32 bytes behind them.
fn hash_database(pieces: Receiver<Arc<Vec<u8>>>, db_len: u64) -> ([u8; 32], Vec<u8>) {
    let (mut hasher, mut left, mut trailer) = (Sha256::new(), db_len, Vec::new());
    for piece in pieces {
        let n = left.min(piece.len() as u64);
        let (database, behind) = piece.split_at(n as usize);
        hasher.update(database);
        left -= n;
        trailer.extend(behind.iter().take(TRAILER as usize - trailer.len().min(TRAILER as usize)));
    }
    (hasher.finalize().into(), trailer)
}

/// Reads everything once and sends it to both consumers; for frames, also the hash of the stored bytes.
fn produce(
    object: &Object,
    on: &str,
    cancel: &CancellationToken,
    scan: SyncSender<Piece>,
    hash: SyncSender<Arc<Vec<u8>>>,
) -> Result<Option<Digest>> {
    match object {
        Object::Plain(plain) => plain_pieces(&**plain, on, cancel, &scan, &hash).map(|()| None),
        Object::Framed(framed) => frames(framed, on, cancel, scan, hash).map(Some),
    }
}

fn canceled(cancel: &CancellationToken, on: &str) -> Result<()> {
    if cancel.is_cancelled() { Err(Error::new(Code::Canceled, "verify", on)) } else { Ok(()) }
}

fn plain_pieces(
    plain: &dyn ReadAt,
    on: &str,
    cancel: &CancellationToken,
    scan: &SyncSender<Piece>,
    hash: &SyncSender<Arc<Vec<u8>>>,
) -> Result<()> {
    let mut offset = 0;
    while offset < plain.len() {
        canceled(cancel, on)?;
        let mut piece = vec![0; PIECE.min(plain.len() - offset) as usize];
        plain.read_at(offset, &mut piece).map_err(|e| Error::io("read", format!("{on} at byte {offset}"), e))?;
        offset += piece.len() as u64;
        let piece = Arc::new(piece);
        // A consumer is gone only when its thread panicked, which `join` reports.
        if hash.send(piece.clone()).is_err() || scan.send(Ok(piece)).is_err() {
            break;
        }
    }
    Ok(())
}

fn frames(
    framed: &Framed,
    on: &str,
    cancel: &CancellationToken,
    scan: SyncSender<Piece>,
    hash: SyncSender<Arc<Vec<u8>>>,
) -> Result<Digest> {
    let (raw_in, raw_out) = sync_channel::<(usize, Vec<u8>)>(QUEUE);
    thread::scope(|scope| {
        scope.spawn(move || {
            for (i, raw) in raw_out {
                let mut plain = Vec::new();
                let piece = match framed.decode(i, &raw, &mut plain) {
                    Ok(()) => Ok(Arc::new(plain)),
                    Err(fault) => Err(Finding { page: None, check: "frame", message: fault.to_string() }),
                };
                if let Ok(bytes) = &piece
                    && hash.send(bytes.clone()).is_err()
                {
                    break;
                }
                if scan.send(piece).is_err() {
                    break;
                }
            }
        });
        let (mut hasher, mut position) = (Sha256::new(), 0);
        let between = |hasher: &mut Sha256, from: u64, to: u64| -> Result<()> {
            let mut offset = from;
            while offset < to {
                let mut piece = vec![0; PIECE.min(to - offset) as usize];
                framed
                    .source()
                    .read_at(offset, &mut piece)
                    .map_err(|e| Error::io("read", format!("{on} at byte {offset}"), e))?;
                offset += piece.len() as u64;
                hasher.update(&piece);
            }
            Ok(())
        };
        for i in 0..framed.frame_count() {
            canceled(cancel, on)?;
            let range = framed.frame_range(i);
            between(&mut hasher, position, range.start)?;
            let mut raw = vec![0; (range.end - range.start) as usize];
            framed
                .source()
                .read_at(range.start, &mut raw)
                .map_err(|e| Error::io("read", format!("{on} at byte {}", range.start), e))?;
            hasher.update(&raw);
            position = range.end;
            if raw_in.send((i, raw)).is_err() {
                break;
            }
        }
        between(&mut hasher, position, framed.stored_len())?;
        drop(raw_in);
        Ok(Digest(hasher.finalize().into()))
    })
}
