//! Finds the newest file that can be read, mends its end, and says what was done to it.

use std::fmt;

use jiff::Timestamp;

use super::frame::{self, BadFile, Record};
use super::log::{FILE_MAX, Ledger};
use super::scan::{self, Rest, Scan, Unreadable};
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::fs::{self, Attempt, Dir, Holder, Kind, Lock, sweep_staged};

const FOLDER: &str = "ledger";
const LOCK: &str = "ledger.lock";
const SUFFIX: &str = ".log";
/// Digits of a file's number.
const DIGITS: usize = 8;
pub const NUMBER_MAX: u32 = 99_999_999;

/// What opening gives.
#[derive(Debug)]
pub struct Opened {
    pub ledger: Ledger,
    /// All that is in the newest readable file, in order.
    pub records: Vec<Record>,
    /// `None` if everything was as it should be.
    pub repaired: Option<Repaired>,
}

/// What had to be done before the ledger could be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// At least one.
    pub repairs: Vec<Repair>,
}

impl Repaired {
    /// Whether entries may be gone that were acknowledged once, so that a person should look.
    pub fn lost(&self) -> bool {
        self.repairs.iter().any(|repair| repair.lost)
    }
}

/// One file that was not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Name in the folder `ledger`.
    pub file: String,
    /// Bytes before it that are good.
    pub offset: u64,
    /// Bytes from there on that were cut off or put aside.
    pub cut: u64,
    /// Where they are now, in the same folder; `None` for zeros, and where the disk was too full to keep them.
    pub kept: Option<String>,
    /// Whether acknowledged entries were among them.
    pub lost: bool,
    /// As a clause: "its end was torn".
    pub why: String,
}

impl fmt::Display for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Repair { file, offset, cut, kept, why, .. }) in self.repairs.iter().enumerate() {
            let gap = if i == 0 { "" } else { "; " };
            write!(f, "{gap}{FOLDER}/{file}: {why}: {cut} bytes from byte {offset} on were cut off")?;
            match kept {
                Some(kept) => write!(f, " and kept as {FOLDER}/{kept}")?,
                None => f.write_str(" and not kept")?,
            }
        }
        Ok(())
    }
}

impl Ledger {
    /// Takes the lock `ledger.lock` in the state directory, and opens or makes the ledger beneath it.
    ///
    /// The newest file with a whole first batch counts; newer ones are put aside. What follows its last whole frame is
    /// kept in a file of its own and cut off, be it a torn end or damage before the end. All of this is told in
    /// `repaired`. `LockHeld` while another process has it; `DataInvalid` for a file of a newer refloat, which nothing
    /// is done to; `TooLittleSpace` where a full disk keeps the first file or a damaged part from being written.
    pub fn open(state: &Dir, holder: &Holder) -> Result<Opened> {
        const WHAT: &str = "open ledger in";
        let shown = || state.path().display().to_string();
        let lock = match Lock::try_acquire(state, LOCK, holder)? {
            Attempt::Acquired(lock) => lock,
            held => held.into_lock(WHAT, &shown())?,
        };
        let opened = state.create_dirs(FOLDER).and_then(|dir| open(dir, lock));
        opened.map_err(|e| {
            let e = e.during(WHAT, shown());
            if fs::is_out_of_space(&e) { e.with_code(Code::TooLittleSpace) } else { e }
        })
    }
}

/// What the ledger beneath `state` holds, for whoever only looks: nothing is locked, mended or made, so a writer may be
/// at work, and what it is writing may be missing. Nothing where there is no ledger.
pub fn read(state: &Dir) -> Result<Vec<Record>> {
    let dir = match state.open_dir(FOLDER) {
        Err(e) if e.code() == Code::NotFound => return Ok(Vec::new()),
        dir => dir?,
    };
    let mut first = None;
    for number in numbers(&dir)? {
        match dir.read(&name(number), FILE_MAX) {
            // Rotated away in between.
            Err(e) if e.code() == Code::NotFound => {}
            Err(e) => first = first.or(Some(e)),
            Ok(bytes) => match scan::scan(&bytes) {
                Ok(found) => return Ok(found.records),
                Err(e) => {
                    first = first.or(Some(Error::new(Code::DataInvalid, "read ledger file", name(number)).because(e)))
                }
            },
        }
    }
    first.map_or(Ok(Vec::new()), Err)
}

fn open(dir: Dir, lock: Lock) -> Result<Opened> {
    for refused in sweep_staged(&dir)?.refused {
        tracing::warn!("{}", refused.line());
    }
    let mut repairs = Vec::new();
    let numbers = numbers(&dir)?;
    let highest = numbers.first().copied().unwrap_or(0);
    for number in numbers {
        let bytes = match dir.read(&name(number), FILE_MAX) {
            Ok(bytes) => bytes,
            Err(e) if e.code() == Code::DataInvalid || fs::is_lost(&e) => {
                repairs.push(put_aside(&dir, number, e.line())?);
                continue;
            }
            Err(e) => return Err(e),
        };
        match scan::scan(&bytes) {
            Ok(found) => {
                repairs.extend(mend(&dir, number, &bytes, &found)?);
                let ledger = Ledger::at(dir, number, found.end as u64, found.next, lock)?;
                let repaired = (!repairs.is_empty()).then_some(Repaired { repairs });
                return Ok(Opened { ledger, records: found.records, repaired });
            }
            Err(Unreadable::File(e @ BadFile::Newer(_))) => {
                return Err(Error::new(
                    Code::DataInvalid,
                    "read ledger file",
                    dir.path().join(name(number)).display().to_string(),
                )
                .because(e)
                .remedy("install that version again, or move the folder away: refloat then begins anew"));
            }
            Err(e) => repairs.push(put_aside(&dir, number, e.to_string())?),
        }
    }
    // The first of all, or of none that could be read. An empty batch makes it whole.
    let number = highest.checked_add(1).filter(|n| *n <= NUMBER_MAX).unwrap_or(1);
    let empty = frame::encode(1, 0, Timestamp::UNIX_EPOCH, &[])
        .map_err(|e| Error::new(Code::Internal, "begin ledger in", dir.path().display().to_string()).because(e))?;
    begin(&dir, number, &empty)?;
    let ledger = Ledger::at(dir, number, (frame::FILE_HEAD + empty.len()) as u64, 1, lock)?;
    Ok(Opened { ledger, records: Vec::new(), repaired: (!repairs.is_empty()).then_some(Repaired { repairs }) })
}

/// Takes away what stands behind the last whole frame.
fn mend(dir: &Dir, number: u32, bytes: &[u8], found: &Scan) -> Result<Option<Repair>> {
    let file = name(number);
    let (good, bad) = bytes.split_at(found.end);
    let lost = found.rest == Rest::Lost;
    let (why, kept) = match found.rest {
        Rest::Nothing => return Ok(None),
        Rest::Zeros => ("it ended in zeros", None),
        Rest::Torn => ("its end was torn", keep(dir, aside(&file, "torn")?, bad, lost)?),
        Rest::Lost => (
            "it is damaged before its end and entries that were acknowledged are gone",
            keep(dir, aside(&file, "damaged")?, bad, lost)?,
        ),
    };
    crash::point!("ledger::kept");
    let writable = dir.open_writable(&file)?;
    writable.set_len(good.len() as u64)?;
    writable.sync()?;
    crash::point!("ledger::cut");
    let (offset, cut) = (good.len() as u64, bad.len() as u64);
    Ok(Some(Repair { file, offset, cut, kept, lost, why: why.into() }))
}

/// Keeps bytes under a name that is never read. A torn end was never acknowledged: where the disk is full it may go,
/// so that the daemon starts. Anything else `must` be kept.
fn keep(dir: &Dir, name: String, bytes: &[u8], must: bool) -> Result<Option<String>> {
    match dir.create(&name, bytes) {
        Ok(()) => Ok(Some(name)),
        Err(e) if fs::is_out_of_space(&e) && !must => Ok(None),
        Err(e) => Err(e),
    }
}

/// Gives a file another name that is never read, unique so that it replaces nothing.
fn put_aside(dir: &Dir, number: u32, why: String) -> Result<Repair> {
    let file = name(number);
    let cut = dir.stat(file.as_ref())?.map_or(0, |stat| stat.size);
    let kept = aside(&file, "damaged")?;
    dir.rename_file(&file, &kept)?;
    crash::point!("ledger::aside");
    Ok(Repair { file, offset: 0, cut, kept: Some(kept), lost: true, why })
}

fn aside(file: &str, what: &str) -> Result<String> {
    Ok(format!("{file}.{what}-{:08x}", u32::from_ne_bytes(fs::random()?)))
}

/// Makes a file with its first batch, durably: it has its name when all of that is on the disk.
pub fn begin(dir: &Dir, number: u32, frame: &[u8]) -> Result<()> {
    dir.create(&name(number), &[&frame::file_head(), frame].concat())
}

/// Removes files above `number`: begun, but never used, because something failed on the way.
pub fn remove_beyond(dir: &Dir, number: u32) -> Result<()> {
    for above in numbers(dir)?.into_iter().filter(|n| *n > number) {
        dir.remove_file(&name(above))?;
    }
    // Also where nothing was found: a removal may have failed to become durable.
    dir.sync()
}

/// Removes files below `number`.
pub fn remove_before(dir: &Dir, number: u32) -> Result<()> {
    for below in numbers(dir)?.into_iter().filter(|n| *n < number) {
        dir.remove_file(&name(below))?;
        crash::point!("ledger::removed");
    }
    Ok(())
}

pub fn name(number: u32) -> String {
    format!("{number:0DIGITS$}{SUFFIX}")
}

/// Newest first.
fn numbers(dir: &Dir) -> Result<Vec<u32>> {
    let entries = dir.entries()?.into_iter().filter(|entry| entry.kind == Kind::File);
    let mut numbers: Vec<u32> = entries.filter_map(|entry| number(entry.name.to_str()?)).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    Ok(numbers)
}

fn number(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(SUFFIX)?;
    let plain = digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}
