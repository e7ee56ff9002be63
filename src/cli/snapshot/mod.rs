//! `refloat snapshot`.

mod document;
mod verify;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::context::{Context, Ending};
use crate::error::{Code, Error, Result};

pub use document::{
    Agreement, ExportDocument, HashKv, Kind, ListDocument, Others, Outcome, PreflightDocument, PreflightStore, Sha256,
    ShowDocument, Size, Snapshot, State, StoreOutcome, StoredName, TakeDocument,
};
pub use verify::{Finding, VerifyAllDocument, VerifyDocument};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take a snapshot, verify the stored bytes, publish it in every store
    Take(TakeArgs),
    /// What there is, newest first
    List(ListArgs),
    /// Everything known about one snapshot
    Show(ShowArgs),
    /// Check stored bytes again: hashes, page tree, rows
    Verify(VerifyArgs),
    /// Write a snapshot as the file that `etcdutl snapshot restore` accepts
    Export(ExportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot take
  refloat snapshot take --tag before-upgrade --store local
  refloat snapshot take --member cp2     another member than the own one
  refloat snapshot take --dry-run        check member and space, take nothing")]
pub struct TakeArgs {
    /// Stream from this member: name, id in hex or client URL
    #[arg(long, value_name = "NAME|ID|URL")]
    pub member: Option<String>,
    /// Remember this word with the snapshot; may be given several times
    #[arg(long = "tag", value_name = "TAG", value_parser = tag)]
    pub tags: Vec<String>,
    /// When another snapshot is under way, fail at once instead of waiting for it
    #[arg(long)]
    pub no_wait: bool,
    /// Check the member and the space of the stores, then stop
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot list
  refloat snapshot list --all-lineages -o json")]
pub struct ListArgs {
    /// Also snapshots of other clusters that share the store
    #[arg(long)]
    pub all_lineages: bool,
    /// Also the names of what refloat did not write
    #[arg(long)]
    pub foreign: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot show latest
  refloat snapshot show 0001-00000000000000004711 -o json")]
pub struct ShowArgs {
    /// Id, any unique beginning or end of it, or `latest`
    #[arg(value_name = "ID")]
    pub id: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot verify latest
  refloat snapshot verify --all
  refloat snapshot verify ./snapshot.db    a file of `etcdctl snapshot save`")]
#[group(id = "what", required = true, multiple = false)]
pub struct VerifyArgs {
    /// Snapshot id, `latest`, or a file with a SHA-256 trailer (a name with `/`, or one that exists)
    #[arg(value_name = "ID|FILE", group = "what")]
    pub subject: Option<String>,
    /// Every snapshot of this cluster
    #[arg(long, group = "what")]
    pub all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat snapshot export latest --to ./snapshot.db    then: etcdutl snapshot restore ./snapshot.db …")]
pub struct ExportArgs {
    /// Id, any unique beginning or end of it, or `latest`
    #[arg(value_name = "ID")]
    pub id: String,
    /// File to create; an existing one is never replaced
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
}

/// What `verify` is about.
#[derive(Debug, PartialEq, Eq)]
pub enum Subject {
    All,
    Id(String),
    File(PathBuf),
}

impl VerifyArgs {
    pub fn subject(&self) -> Subject {
        match &self.subject {
            None => Subject::All,
            // An id has no slash, so a path can always be written as one.
            Some(text) if text.contains('/') || Path::new(text).exists() => Subject::File(text.into()),
            Some(text) => Subject::Id(text.clone()),
        }
    }
}

fn tag(text: &str) -> std::result::Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '=' | '/' | '+');
    if (1..=63).contains(&text.len()) && text.chars().all(allowed) {
        Ok(text.into())
    } else {
        Err("letters, digits and - _ . : = / +, at most 63".into())
    }
}

pub async fn run(command: Command, context: &Context) -> Result<Ending> {
    match command {
        Command::Take(args) => take(args, context).await,
        Command::List(args) => list(args, context).await,
        Command::Show(args) => show(args, context).await,
        Command::Verify(args) => verify(args, context).await,
        Command::Export(args) => export(args, context).await,
    }
}

async fn take(_args: TakeArgs, context: &Context) -> Result<Ending> {
    context.stores()?;
    Err(not_linked("take a snapshot"))
}

async fn list(_args: ListArgs, context: &Context) -> Result<Ending> {
    context.stores()?;
    Err(not_linked("list snapshots"))
}

async fn show(_args: ShowArgs, context: &Context) -> Result<Ending> {
    context.stores()?;
    Err(not_linked("show a snapshot"))
}

async fn verify(args: VerifyArgs, context: &Context) -> Result<Ending> {
    if !matches!(args.subject(), Subject::File(_)) {
        context.stores()?;
    }
    Err(not_linked("verify a snapshot"))
}

async fn export(_args: ExportArgs, context: &Context) -> Result<Ending> {
    context.stores()?;
    Err(not_linked("export a snapshot"))
}

fn not_linked(what: &str) -> Error {
    Error::new(Code::Internal, what, "").because("this build has no snapshot engine")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_a_file_or_an_id() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("latest").display().to_string();
        for (text, expected) in [
            (None, Subject::All),
            (Some("latest"), Subject::Id("latest".into())),
            (Some("./latest"), Subject::File("./latest".into())),
            (Some(file.as_str()), Subject::File(file.clone().into())),
            // Tests run in the package's root.
            (Some("Cargo.toml"), Subject::File("Cargo.toml".into())),
        ] {
            let args = VerifyArgs { subject: text.map(String::from), all: text.is_none() };
            assert_eq!(args.subject(), expected);
        }
    }

    #[test]
    fn tags_are_words() {
        for (text, good) in [("before-upgrade", true), ("a=b", true), ("", false), ("two words", false), ("x\n", false)]
        {
            assert_eq!(tag(text).is_ok(), good, "{text}");
        }
        assert!(tag(&"x".repeat(64)).is_err());
    }
}
