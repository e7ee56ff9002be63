//! What is to be done, as a value: shown in a dry run, then done in this order.

use std::path::PathBuf;

use serde::Serialize;

use crate::host::user::Owner;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// One level; its parent is there or made before.
    MakeDir {
        path: PathBuf,
        mode: u32,
        owner: Option<Owner>,
    },
    /// `before`: what it holds now.
    Write {
        path: PathBuf,
        before: Option<String>,
        after: String,
    },
    /// systemd reads its files again.
    Reload,
    Enable {
        units: Vec<String>,
    },
    /// Starts it, or starts it anew with what was written.
    Restart {
        unit: String,
    },
}

impl Action {
    /// Whether it is systemd that does it.
    pub fn is_of_systemd(&self) -> bool {
        !matches!(self, Action::MakeDir { .. } | Action::Write { .. })
    }

    /// What a person types to do the same.
    pub fn command(&self) -> Option<String> {
        match self {
            Action::MakeDir { .. } | Action::Write { .. } => None,
            Action::Reload => Some("systemctl daemon-reload".into()),
            Action::Enable { units } => Some(format!("systemctl enable {}", units.join(" "))),
            Action::Restart { unit } => Some(format!("systemctl restart {unit}")),
        }
    }
}

/// A key that is not written, since another file sets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// `etcd.endpoints`.
    pub key: String,
    /// File and line.
    pub set_in: String,
}

/// Everything that setup would change, and what it says beside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    pub actions: Vec<Action>,
    pub kept: Vec<Kept>,
    pub warnings: Vec<String>,
}

impl Plan {
    pub fn changes(&self) -> bool {
        !self.actions.is_empty()
    }
}
