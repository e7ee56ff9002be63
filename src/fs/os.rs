//! System errors as refloat's errors: which code, which remedy.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::FileTypeExt;

use nix::errno::Errno;

use crate::error::{Code, Error, Result};

/// `Io` unless the cause has a code of its own.
pub fn error(what: &str, on: impl Into<String>, errno: Errno) -> Error {
    let code = match errno {
        Errno::ENOENT => Code::NotFound,
        Errno::EEXIST => Code::AlreadyExists,
        _ => Code::Io,
    };
    explain(Error::new(code, what, on).because(io::Error::from(errno)), errno)
}

/// The same for a call that makes a name or a file: refused is `CannotCreate`.
pub fn create_error(what: &str, on: impl Into<String>, errno: Errno) -> Error {
    let err = error(what, on, errno);
    if refused(errno) { err.with_code(Code::CannotCreate) } else { err }
}

/// The same for `std` calls.
pub fn io_error(what: &str, on: impl Into<String>, cause: io::Error) -> Error {
    match cause.raw_os_error() {
        Some(raw) => error(what, on, Errno::from_raw(raw)),
        None => Error::io(what, on, cause),
    }
}

fn explain(err: Error, errno: Errno) -> Error {
    match errno {
        Errno::ELOOP => err.remedy("remove the symbolic link: none is followed below a directory that refloat uses"),
        Errno::EXDEV => {
            err.remedy("unmount or move what is there: refloat does not leave the directory's own file system")
        }
        Errno::ENOSPC | Errno::EDQUOT => err.remedy("free some space on that file system"),
        Errno::ENOSYS => err.remedy("use a kernel of version 5.6 or newer: refloat needs openat2"),
        _ => err,
    }
}

fn refused(errno: Errno) -> bool {
    matches!(errno, Errno::EACCES | Errno::EPERM | Errno::EROFS)
}

/// Whether the innermost cause is a full file system or an exhausted quota.
pub fn is_out_of_space(err: &Error) -> bool {
    errno_of(err).is_some_and(|e| matches!(e, Errno::ENOSPC | Errno::EDQUOT))
}

/// Whether the innermost cause is refused access or a file system mounted read-only.
pub fn is_refused(err: &Error) -> bool {
    errno_of(err).is_some_and(refused)
}

/// Whether the innermost cause is that a name leads to another file system or through a link.
pub fn is_elsewhere(err: &Error) -> bool {
    errno_of(err).is_some_and(|e| matches!(e, Errno::EXDEV | Errno::ELOOP))
}

/// Whether the innermost cause is that the disk does not give back what was written to it.
pub fn is_lost(err: &Error) -> bool {
    errno_of(err).is_some_and(|e| matches!(e, Errno::EIO | Errno::EUCLEAN | Errno::EBADMSG))
}

fn errno_of(err: &Error) -> Option<Errno> {
    let mut next = std::error::Error::source(err);
    let mut found = None;
    while let Some(cause) = next {
        if let Some(raw) = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            found = Some(Errno::from_raw(raw));
        }
        next = cause.source();
    }
    found
}

/// Whether the innermost cause is a file where a directory should be.
pub fn is_not_a_directory(err: &Error) -> bool {
    errno_of(err) == Some(Errno::ENOTDIR)
}

/// Refuses everything but a regular file (`DataInvalid`), by name of what it is instead. The file may have been
/// opened with `O_NONBLOCK`, so that a FIFO without a writer gets here too.
pub fn check_regular(file: &File, on: &str) -> Result<Metadata> {
    let meta = file.metadata().map_err(|e| io_error("look at file", on, e))?;
    if meta.is_file() {
        return Ok(meta);
    }
    Err(Error::new(Code::DataInvalid, "open file", on)
        .because(format!("it is a {}, not a regular file", kind_word(&meta.file_type())))
        .remedy("name a regular file, or move this out of the way"))
}

/// A name that is to be changed stands for something that refloat never makes.
pub fn irregular(what: &str, on: impl Into<String>) -> Error {
    Error::new(Code::CannotCreate, what, on)
        .because("it is a link, a directory or a device, not a regular file")
        .remedy("move it out of the way")
}

/// A file that refloat wrote has one name; another one is somebody else's.
pub fn linked(what: &str, on: impl Into<String>, links: u64) -> Error {
    Error::new(Code::CannotCreate, what, on)
        .because(format!("it has {links} names (hard links): refloat gives a file one"))
        .remedy("look who made the other one; remove this name by hand if it may go")
}

fn kind_word(kind: &std::fs::FileType) -> &'static str {
    if kind.is_dir() {
        "directory"
    } else if kind.is_fifo() {
        "FIFO"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_symlink() {
        "symbolic link"
    } else {
        "device"
    }
}

/// The name under which this process reaches an open file again.
pub fn proc_path(fd: &impl std::os::fd::AsRawFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
