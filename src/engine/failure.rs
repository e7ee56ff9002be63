//! An error as it is kept in the ledger and sent over the socket: the same parts as [`Error`], as data.

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The word of a [`Code`]. One that a later version wrote is kept as it is.
    pub code: String,
    pub what: String,
    pub on: String,
    /// Outermost cause first.
    pub why: Vec<String>,
    pub remedy: Option<String>,
}

impl Failure {
    /// `Internal` for a word that this version does not know.
    pub fn code(&self) -> Code {
        Code::ALL.iter().copied().find(|code| code.word() == self.code).unwrap_or(Code::Internal)
    }

    /// The attempt and its causes in one line.
    pub fn line(&self) -> String {
        let attempt = if self.on.is_empty() { self.what.clone() } else { format!("{} {}", self.what, self.on) };
        std::iter::once(attempt).chain(self.why.iter().cloned()).collect::<Vec<_>>().join(": ")
    }

    /// The error again, for whoever branches on its code or prints it.
    pub fn to_error(&self) -> Error {
        let mut cause: Option<Cause> = None;
        for line in self.why.iter().rev() {
            cause = Some(Cause { line: line.clone(), source: cause.map(Box::new) });
        }
        let mut error = Error::new(self.code(), &self.what, &self.on);
        if let Some(cause) = cause {
            error = error.because(cause);
        }
        match &self.remedy {
            Some(remedy) => error.remedy(remedy),
            None => error,
        }
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Failure {
            code: error.code().word().into(),
            what: error.what().into(),
            on: error.on().into(),
            why: error.why(),
            remedy: error.get_remedy().map(String::from),
        }
    }
}

/// One line of a chain whose types are gone.
#[derive(Debug, thiserror::Error)]
#[error("{line}")]
struct Cause {
    line: String,
    source: Option<Box<Cause>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_survives_the_way_there_and_back() {
        let error = Error::io("write frame", "/s/x", std::io::Error::from_raw_os_error(28))
            .remedy("free some space")
            .during("take snapshot", "member cp1");
        let failure = Failure::from(&error);
        let text = serde_json::to_string(&failure).unwrap();
        let again: Failure = serde_json::from_str(&text).unwrap();
        assert_eq!(again, failure);
        let back = again.to_error();
        assert_eq!((back.code(), back.line(), back.get_remedy()), (error.code(), error.line(), error.get_remedy()));
        assert_eq!(failure.line(), error.line());
    }

    #[test]
    fn a_word_of_a_later_version_is_kept() {
        let failure =
            Failure { code: "not-yet-known".into(), what: "a".into(), on: "".into(), why: vec![], remedy: None };
        assert_eq!((failure.code(), failure.line().as_str()), (Code::Internal, "a"));
        assert_eq!(serde_json::to_value(&failure).unwrap()["code"], "not-yet-known");
    }
}
