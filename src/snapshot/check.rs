//! Judges stored snapshots and files, and says it in the words that commands print.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::evidence;
use super::judge::{Judgement, Object, Trailer, judge};
use super::open;
use super::progress::Progress;
use crate::catalog::{Manifest, Name, Node, Note, NoteBody, Shown, State, TailAt, check};
use crate::error::{Code, Error, Result};
use crate::format::check::{Finding, HashKv, Options};
use crate::store::{Form, LocalStore, Store, in_use};

/// The outcome for one subject.
#[derive(Debug)]
pub struct Checked {
    pub subject: String,
    pub findings: Vec<Finding>,
    pub hash_kv: Option<HashKv>,
    /// Whether the trailer was there to be checked.
    pub trailer: bool,
    /// What no check can prove.
    pub not_covered: Vec<String>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

impl Checked {
    pub fn ok(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Whether a file without trailer will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// `snapshot verify`: without a trailer nothing is proven.
    Required,
    /// `db check`: as far as structure can tell.
    Structure,
}

/// Judges a file. `CannotBeProven` for one without trailer where one is needed.
pub fn file(path: &Path, proof: Proof, progress: &dyn Progress, cancel: &CancellationToken) -> Result<Checked> {
    let subject = path.display().to_string();
    let opened = match open::file(path) {
        Ok(opened) => opened,
        // A compressed file that cannot be read as one is damage, not a failure to look.
        Err(error) if error.code() == Code::DataInvalid => return Ok(damaged(subject, &error)),
        Err(error) => return Err(error),
    };
    let judged = judge(&opened.object, &subject, Options::default(), progress, cancel)?;
    if judged.trailer == Trailer::Absent && proof == Proof::Required && judged.ok() {
        return Err(Error::new(Code::CannotBeProven, "verify", subject)
            .because("it has no SHA-256 trailer: its pages are sound, its values cannot be proven")
            .remedy(
                "use `refloat db check` for a plain database; only a file that a snapshot stream made has a trailer",
            ));
    }
    let in_use = opened.form == Form::Plain && in_use(path);
    let note = "another process holds the file, probably a running etcd: it may change while it is read, and then looks damaged";
    Ok(words(subject, judged, in_use.then(|| note.into()).into_iter().collect()))
}

fn damaged(subject: String, error: &Error) -> Checked {
    let message = error.line();
    Checked {
        subject,
        findings: vec![Finding { page: None, check: "frame", message }],
        hash_kv: None,
        trailer: false,
        not_covered: Vec::new(),
        notes: Vec::new(),
    }
}

fn words(subject: String, judged: Judgement, mut notes: Vec<String>) -> Checked {
    let not_covered = match judged.trailer {
        Trailer::Absent => {
            vec![
                "content of keys and values: the file has no SHA-256 trailer that would prove it".into(),
                "that no page is an older copy of itself: pages do not say which transaction wrote them".into(),
            ]
        }
        Trailer::Good | Trailer::Wrong => Vec::new(),
    };
    notes.extend(judged.notes.iter().map(|note| format!("unusual, but as etcd sent it: {note}")));
    if let Some(content) = &judged.content
        && content.keys_without_lease > 0
    {
        notes.push(format!(
            "{} keys are bound to a lease that does not exist: they would never expire",
            content.keys_without_lease
        ));
    }
    let trailer = judged.trailer != Trailer::Absent;
    Checked { subject, findings: judged.findings, hash_kv: judged.hash_kv, trailer, not_covered, notes }
}

/// Judges a snapshot in one store against its bytes and its manifest.
pub fn snapshot(
    store: &LocalStore,
    shown: &Shown,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Checked> {
    let manifest = &shown.manifest;
    let subject = manifest.id.to_string();
    let mut checked = match open::stored(store, manifest) {
        Ok((object, index)) => {
            let on = format!("{subject} in store {}", store.name());
            let judged = judge(&object, &on, Options::default(), progress, cancel)?;
            let against = against_manifest(&judged, manifest, &object);
            let mut checked = words(subject, judged, index.into_iter().collect());
            // One damaged byte breaks both hashes too: what tells where comes first.
            checked.findings.extend(against);
            checked
        }
        Err(error) if matches!(error.code(), Code::DataInvalid | Code::NotFound) => damaged(subject, &error),
        Err(error) => return Err(error),
    };
    if shown.state == State::Disputed {
        checked
            .notes
            .push("disputed: a member has another content at the same revision; see `refloat snapshot show`".into());
    }
    Ok(checked)
}

/// What the manifest promises and the bytes do not keep.
fn against_manifest(judged: &Judgement, manifest: &Manifest, object: &Object) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut differs = |check: &'static str, message: String| findings.push(Finding { page: None, check, message });
    if judged.stored_sha256.is_some_and(|digest| digest != manifest.sha256.stored) {
        differs("stored", "SHA-256 of the stored object is not the one in its manifest".into());
    }
    if judged.db_sha256 != manifest.sha256.db {
        differs("database", "SHA-256 of the database is not the one in its manifest".into());
    }
    if judged.db_len != manifest.size.db {
        differs(
            "database",
            format!("the database has {} bytes, its manifest says {}", judged.db_len, manifest.size.db),
        );
    }
    if let Some(content) = &judged.content {
        let (revision, compact) = (content.revision as i64, content.compact_revision as i64);
        if (revision, compact) != (manifest.revision, manifest.compact_revision) {
            differs("database", format!("revision {revision} (compacted at {compact}) is not the one in its manifest"));
        }
        let tail = evidence::tail_at(object.bytes(), judged.db_len, content.revision, content.compact_revision);
        if let (TailAt::Rows(digest), Some(wanted)) = (tail, manifest.tail)
            && digest != wanted
        {
            differs("database", "the rows of the last revision are not the ones in its manifest".into());
        }
    }
    if let (Some(found), Some(wanted)) = (judged.hash_kv, manifest.hash_kv)
        && found.hash != wanted.hash
    {
        differs("hash-kv", format!("HashKV is {}, its manifest says {}", found.hash, wanted.hash));
    }
    findings
}

/// Records the outcome beside the snapshot: a copy that was found damaged no longer counts as a backup.
pub fn record(store: &LocalStore, manifest: &Manifest, node: &Node, checked: &Checked) -> Result<()> {
    let all = [check::STORED, check::TRAILER, check::TREE, check::ROWS, check::HASH_KV];
    // No look makes an import without a trailer a proven one.
    let done = all.iter().filter(|c| checked.ok() && (checked.trailer || **c != check::TRAILER));
    let body = NoteBody::Verified {
        ok: checked.ok(),
        checks: done.map(|c| (*c).into()).collect(),
        findings: checked.findings.iter().take(20).map(|f| f.message.clone()).collect(),
    };
    let note = Note::new(manifest.id.clone(), jiff::Timestamp::now(), node.clone(), body);
    let name = Name::Note(manifest.lineage, note.id.clone(), note.body.kind(), note.at).to_string();
    let bytes = note.to_bytes().map_err(|e| Error::new(Code::Internal, "encode note", &name).because(e))?;
    store.create(&name, &bytes)
}
