//! The one error type of refloat, and the rules for it.
//!
//! Rules:
//! 1. An error says what was attempted (`what`, a bare verb phrase: "open store"), on what (`on`: a path,
//!    a member, an id), why (the chain of causes, innermost last) and what to do (`remedy`).
//! 2. `what` never repeats its cause; the cause is kept as source alone.
//! 3. Callers branch on [`Code`], never on text. A code is stable once released: scripts match on it.
//! 4. Whoever adds knowledge adds context with [`Error::during`]; whoever handles an error logs it.
//! 5. Pure code (`format`) has small error enums of its own; they become causes here.
//!
//! The exit code and the retry class belong to the code, so that no command has a table of its own.

use std::error::Error as StdError;
use std::fmt;

/// Exit codes of the process (design §15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Health: something is bad.
    Bad = 1,
    /// A dry run shows changes.
    Changes = 2,
    /// Health: something could not be judged.
    Unknown = 3,
    Usage = 64,
    /// Data invalid or disputed.
    Data = 65,
    /// Not found or not reachable: id, key, revision.
    NotFound = 66,
    /// Member gone, hung, learner, expired certificate.
    Unavailable = 69,
    Internal = 70,
    /// Store missing, foreign, vanished, not writable; too little space.
    CannotCreate = 73,
    /// Full during a write; stream cut, stalled or lying; some stores failed.
    Io = 74,
    /// Lock held, store changed since the plan, listing in doubt.
    Temporary = 75,
    /// Password or client certificate refused.
    Permission = 77,
    Config = 78,
    Canceled = 130,
}

/// Whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The same call will fail again until somebody changes something.
    Never,
    /// The cause may pass by itself.
    Later,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $exit:ident, $retry:ident;)*) => {
        /// What kind of failure this is: a stable kebab-case word, with its exit code and retry class.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$name,)*];
            pub fn word(self) -> &'static str { match self { $(Code::$name => $word,)* } }
            pub fn exit(self) -> Exit { match self { $(Code::$name => Exit::$exit,)* } }
            pub fn retry(self) -> Retry { match self { $(Code::$name => Retry::$retry,)* } }
        }
    };
}

codes! {
    /// The command line is not valid.
    Usage = "usage", Usage, Never;
    /// A destructive verb without `--yes` and without a terminal to ask on.
    NotConfirmed = "not-confirmed", Usage, Never;
    /// A configuration or credential file is missing, unreadable, unsafe or wrong.
    Config = "config", Config, Never;
    /// Data does not pass its checks.
    DataInvalid = "data-invalid", Data, Never;
    /// A file without trailer where one is needed: nothing proves its value bytes.
    CannotBeProven = "cannot-be-proven", Data, Never;
    /// Sound bytes that disagree with another member.
    Disputed = "disputed", Data, Never;
    /// No such id, file, key, bucket or store.
    NotFound = "not-found", NotFound, Never;
    /// An abbreviation that fits several ids.
    Ambiguous = "ambiguous", Usage, Never;
    /// A revision below the compact revision or above the newest.
    RevisionNotReachable = "revision-not-reachable", NotFound, Never;
    /// Nobody listens, the host is gone, the name does not resolve.
    MemberGone = "member-gone", Unavailable, Later;
    /// The connection stands, but nothing answers within the deadline.
    MemberHung = "member-hung", Unavailable, Later;
    /// The member is a learner: it may lag without anybody knowing.
    MemberLearner = "member-learner", Unavailable, Later;
    /// The member has no leader or no quorum.
    NoQuorum = "no-quorum", Unavailable, Later;
    /// TLS failed: unknown authority, wrong name, expired, plain text on a TLS port or the reverse.
    TlsFailed = "tls-failed", Unavailable, Never;
    /// The member answered with an error that fits nothing else.
    MemberFailed = "member-failed", Unavailable, Later;
    /// A member or apiserver that health found to be bad.
    Unhealthy = "unhealthy", Unavailable, Later;
    /// An apiserver does not answer, or answers with an error that fits nothing else.
    ApiserverFailed = "apiserver-failed", Unavailable, Later;
    /// systemd did not do what was asked of a unit, or cannot be asked.
    UnitFailed = "unit-failed", Unavailable, Later;
    /// User, password or client certificate refused.
    Permission = "permission", Permission, Never;
    /// The directory of a store is not there: usually a disk that is not mounted.
    StoreMissing = "store-missing", CannotCreate, Never;
    /// The directory holds other things and no marker.
    StoreForeign = "store-foreign", CannotCreate, Never;
    /// The marker vanished or changed since it was last seen.
    StoreVanished = "store-vanished", CannotCreate, Never;
    /// The store cannot be written.
    StoreNotWritable = "store-not-writable", CannotCreate, Never;
    /// The store's file system or mount answers nothing within the deadline.
    StoreHung = "store-hung", Io, Later;
    /// The same for the state directory.
    StateHung = "state-hung", Io, Later;
    /// Too little space before the first byte.
    TooLittleSpace = "too-little-space", CannotCreate, Later;
    /// The target exists and would have to be replaced.
    AlreadyExists = "already-exists", CannotCreate, Never;
    /// A file or directory cannot be made.
    CannotCreate = "cannot-create", CannotCreate, Never;
    /// Reading or writing failed half-way, also a disk that filled up.
    Io = "io", Io, Later;
    /// The snapshot stream ended early.
    StreamCut = "stream-cut", Io, Later;
    /// The snapshot stream brought no bytes, or too few, for too long.
    StreamStalled = "stream-stalled", Io, Later;
    /// The snapshot stream does not match its own trailer, or has none.
    StreamLies = "stream-lies", Io, Later;
    /// Some stores have the snapshot, others failed.
    SomeStoresFailed = "some-stores-failed", Io, Later;
    /// The rules of maintenance say no for now.
    NotNow = "not-now", Temporary, Later;
    /// Another process holds the lock.
    LockHeld = "lock-held", Temporary, Later;
    /// A list that cannot be right: nothing may be concluded from it.
    ListingInDoubt = "listing-in-doubt", Temporary, Later;
    /// The store is not what it was when the plan was made.
    PlanChanged = "plan-changed", Temporary, Later;
    /// Nothing may be removed now: a freeze, or a clock in doubt.
    Held = "held", Temporary, Later;
    /// Some of what was to be removed was not, because it is not what refloat wrote.
    Refused = "refused", CannotCreate, Never;
    /// The work took longer than its size allows.
    DeadlineExceeded = "deadline-exceeded", Io, Later;
    /// The daemon ended while the work ran.
    Interrupted = "interrupted", Temporary, Later;
    /// Stopped on request.
    Canceled = "canceled", Canceled, Later;
    /// A fault of refloat itself.
    Internal = "internal", Internal, Never;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

type Cause = Box<dyn StdError + Send + Sync + 'static>;

/// What was attempted, on what, why it failed and what to do next.
#[derive(Debug)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    code: Code,
    what: String,
    on: String,
    remedy: Option<String>,
    cause: Option<Cause>,
}

impl Error {
    /// `what` is a bare verb phrase ("open store"), `on` names the thing.
    pub fn new(code: Code, what: impl Into<String>, on: impl Into<String>) -> Self {
        Error { inner: Box::new(Inner { code, what: what.into(), on: on.into(), remedy: None, cause: None }) }
    }

    /// The reason, as an error or as a plain sentence without a full stop.
    pub fn because(mut self, cause: impl Into<Cause>) -> Self {
        self.inner.cause = Some(cause.into());
        self
    }

    /// What the reader can do about it, as an imperative.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.inner.remedy = Some(remedy.into());
        self
    }

    /// Wraps this error into a larger attempt; the code stays, and so does the remedy.
    pub fn during(mut self, what: impl Into<String>, on: impl Into<String>) -> Self {
        let remedy = self.inner.remedy.take();
        let outer = Error::new(self.inner.code, what, on).because(self);
        match remedy {
            Some(r) => outer.remedy(r),
            None => outer,
        }
    }

    /// An I/O error: a full disk, a missing file and refused access get codes of their own only where the
    /// caller knows better; here they are told apart by their cause. An error of ours that came through a reader
    /// keeps its code and remedy.
    pub fn io(what: impl Into<String>, on: impl Into<String>, cause: std::io::Error) -> Self {
        match cause.downcast::<Error>() {
            Ok(ours) => ours.during(what, on),
            Err(cause) => Error::new(Code::Io, what, on).because(cause),
        }
    }

    pub fn code(&self) -> Code {
        self.inner.code
    }

    pub fn with_code(mut self, code: Code) -> Self {
        self.inner.code = code;
        self
    }

    pub fn exit(&self) -> Exit {
        self.inner.code.exit()
    }

    pub fn what(&self) -> &str {
        &self.inner.what
    }

    pub fn on(&self) -> &str {
        &self.inner.on
    }

    pub fn get_remedy(&self) -> Option<&str> {
        self.inner.remedy.as_deref()
    }

    /// The chain of causes, outermost first, one line each.
    pub fn why(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut next: Option<&(dyn StdError + 'static)> = self.source();
        while let Some(cause) = next {
            let line = cause.to_string().replace(['\n', '\r'], " ");
            // Wrappers of libraries often print their source as their own text.
            if !line.is_empty() && lines.last().is_none_or(|last| !last.contains(&line)) {
                lines.push(line);
            }
            next = cause.source();
        }
        lines
    }
}

impl Error {
    /// The attempt and its causes in one line, for a warning or a reason within something larger.
    pub fn line(&self) -> String {
        std::iter::once(self.to_string()).chain(self.why()).collect::<Vec<_>>().join(": ")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { what, on, .. } = &*self.inner;
        if on.is_empty() { f.write_str(what) } else { write!(f, "{what} {on}") }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.cause.as_deref().map(|c| c as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_kebab_case() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            let word = code.word();
            assert!(seen.insert(word), "{word} twice");
            assert!(word.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{word}");
        }
    }

    #[test]
    fn context_keeps_code_and_remedy_and_lists_causes() {
        let inner = Error::io("write frame", "/s/x", std::io::Error::from_raw_os_error(28)).remedy("free some space");
        let outer = inner.during("take snapshot", "member cp1");
        assert_eq!(outer.code(), Code::Io);
        assert_eq!(outer.get_remedy(), Some("free some space"));
        assert_eq!(outer.to_string(), "take snapshot member cp1");
        assert_eq!(outer.why(), ["write frame /s/x", "No space left on device (os error 28)"]);
        assert_eq!(outer.line(), "take snapshot member cp1: write frame /s/x: No space left on device (os error 28)");
        assert_eq!(Error::new(Code::Internal, "act", "").line(), "act");
    }
}
