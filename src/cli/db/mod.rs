//! `refloat db`: any etcd database file, read-only, without configuration.

mod diff;
mod document;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::context::{Context, Ending, aside};
use super::list::List;
use super::output::SCHEMA;
use crate::error::{Code, Error, Result};
use crate::format::Head;
use crate::format::bbolt::Db;
use crate::format::check::Options;
use crate::format::keyspace::{self, KeyspaceFault};
use crate::snapshot::check::{self, Proof};
use crate::snapshot::judge::{judge, split};
use crate::snapshot::open;

pub use super::snapshot::VerifyDocument;
pub use diff::{DiffArgs, DiffHead};
pub use document::{Bytes, GetDocument, HashKvDocument, InspectDocument, KeyRow, KeysHead, MemberRow};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// What the file is: pages, revisions, members, versions
    Inspect(InspectArgs),
    /// Check pages and rows; exit code 65 with every finding
    Check(CheckArgs),
    /// HashKV, as a live member would compute it
    Hashkv(HashkvArgs),
    /// Keys at the newest revision
    Keys(KeysArgs),
    /// The value of one key, as its bytes
    Get(GetArgs),
    /// What differs between two files or snapshots, by prefix
    Diff(DiffArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat db inspect /var/lib/etcd/member/snap/db")]
pub struct InspectArgs {
    /// Database file, with or without trailer, plain or zstd
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat db check ./snapshot.db -o json")]
pub struct CheckArgs {
    /// Database file, with or without trailer, plain or zstd
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat db hashkv ./snapshot.db
  refloat db hashkv ./snapshot.db --revision 4711 --compact-revision 4000")]
pub struct HashkvArgs {
    /// Database file, with or without trailer, plain or zstd
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Up to this revision; default: the newest in the file
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    pub revision: Option<i64>,
    /// As if compacted at this revision, 0 or -1 for never; default: as the file is
    #[arg(long, value_name = "REVISION", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..))]
    pub compact_revision: Option<i64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat db keys ./snapshot.db
  refloat db keys ./snapshot.db --prefix /registry/secrets/ -o jsonl")]
pub struct KeysArgs {
    /// Database file, with or without trailer, plain or zstd
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only keys that begin with this
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat db get ./snapshot.db /registry/namespaces/default
  refloat db get ./snapshot.db /registry/namespaces/default --revision 4711")]
pub struct GetArgs {
    /// Database file, with or without trailer, plain or zstd
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The whole key
    #[arg(value_name = "KEY")]
    pub key: OsString,
    /// As it was at this revision; default: the newest in the file
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    pub revision: Option<i64>,
}

pub async fn run(command: Command, context: &Context) -> Result<Ending> {
    match command {
        Command::Inspect(args) => inspect(args, context).await,
        Command::Check(args) => check(args, context).await,
        Command::Hashkv(args) => hashkv(args, context).await,
        Command::Keys(args) => keys(args, context).await,
        Command::Get(args) => get(args, context).await,
        Command::Diff(args) => diff::run(args, context).await,
    }
}

async fn inspect(args: InspectArgs, context: &Context) -> Result<Ending> {
    let (progress, cancel) = (context.progress.clone(), context.cancel.clone());
    let document = aside(move || {
        let path = args.file.display().to_string();
        let opened = open::file(&args.file)?;
        let judged = judge(&opened.object, &path, Options::default(), &*progress, &cancel)?;
        let Some(content) = judged.content else {
            let first = judged.findings.first().map(|f| f.message.clone()).unwrap_or_default();
            return Err(Error::new(Code::DataInvalid, "inspect database", path)
                .because(first)
                .remedy("see `refloat db check`"));
        };
        Ok(InspectDocument::new(path, &opened.form, judged.trailer, judged.db_len, judged.findings.len(), content))
    });
    context.output.document(&document.await?)?;
    Ok(Ending::Good)
}

async fn check(args: CheckArgs, context: &Context) -> Result<Ending> {
    let (progress, cancel) = (context.progress.clone(), context.cancel.clone());
    let checked = aside(move || check::file(&args.file, Proof::Structure, &*progress, &cancel)).await?;
    let document = VerifyDocument::from(checked);
    context.output.document(&document)?;
    Ok(document.exit().map_or(Ending::Good, Ending::Bad))
}

async fn hashkv(args: HashkvArgs, context: &Context) -> Result<Ending> {
    let (progress, cancel) = (context.progress.clone(), context.cancel.clone());
    let document = aside(move || {
        let path = args.file.display().to_string();
        let opened = open::file(&args.file)?;
        let number = |n: i64| n.max(0).unsigned_abs();
        let (revision, compact_revision) = (args.revision.map(number), args.compact_revision.map(number));
        let options = Options { revision, compact_revision, ..Options::default() };
        let judged = judge(&opened.object, &path, options, &*progress, &cancel)?;
        let on = || Error::new(Code::DataInvalid, "hash database", &path);
        if let Some(finding) = judged.findings.first() {
            return Err(on().because(finding.message.clone()).remedy("see `refloat db check`"));
        }
        let (Some(hash), Some(content)) = (judged.hash_kv, judged.content) else {
            return Err(on().because("no key space could be read"));
        };
        let compact = content.meta.compact_revision();
        let reach = |what: &str, wanted: u64, low: u64, high: u64| {
            let why = format!("{what} {wanted} lies outside of what the file can tell: {low} to {high}");
            Err(Error::new(Code::RevisionNotReachable, "hash database", &path).because(why))
        };
        if !(compact..=content.revision).contains(&hash.revision) {
            return reach("revision", hash.revision, compact, content.revision);
        }
        if !(compact..=hash.revision).contains(&hash.compact_revision) {
            return reach("compact revision", hash.compact_revision, compact, hash.revision);
        }
        Ok(HashKvDocument {
            schema: SCHEMA,
            hash: hash.hash,
            revision: hash.revision,
            compact_revision: hash.compact_revision,
        })
    });
    context.output.document(&document.await?)?;
    Ok(Ending::Good)
}

async fn keys(args: KeysArgs, context: &Context) -> Result<Ending> {
    let path = args.file.display().to_string();
    let (revision, keys) = aside(move || {
        let prefix = args.prefix.unwrap_or_default();
        with_db(&args.file, |db| keyspace::keys(db, prefix.as_bytes(), None))
    })
    .await?
    .map_err(|fault| not_readable("list keys of database", &path, fault))?;
    let mut list = List::begin(&context.output, &KeysHead { schema: SCHEMA, revision }, "keys")?;
    for key in keys {
        list.row(&KeyRow::from(key))?;
    }
    list.end()?;
    Ok(Ending::Good)
}

async fn get(args: GetArgs, context: &Context) -> Result<Ending> {
    let path = args.file.display().to_string();
    let shown = args.key.display().to_string();
    let found = aside(move || {
        let at = args.revision.map(|r| r.max(0).unsigned_abs());
        with_db(&args.file, |db| keyspace::get(db, args.key.as_bytes(), at))
    })
    .await?
    .map_err(|fault| not_readable("read from database", &path, fault))?;
    let Some((key, value)) = found else {
        return Err(Error::new(Code::NotFound, "read key", shown)
            .because(format!("{path} has no such key at that revision"))
            .remedy("see `refloat db keys --prefix`"));
    };
    let document = GetDocument::new(KeyRow::from(key), value);
    context.output.bytes_or(&document.value.0, &document)?;
    Ok(Ending::Good)
}

/// Opens a file's database, whatever form it has, and reads from it.
fn with_db<T>(
    path: &Path,
    read: impl FnOnce(&Db<'_>) -> std::result::Result<T, KeyspaceFault>,
) -> Result<std::result::Result<T, KeyspaceFault>> {
    let opened = open::file(path)?;
    let bytes = opened.object.bytes();
    let database = Head::new(bytes, split(bytes.len()).0);
    Ok(Db::open(&database).map_err(KeyspaceFault::from).and_then(|db| read(&db)))
}

fn not_readable(what: &str, path: &str, fault: KeyspaceFault) -> Error {
    let code = match fault {
        KeyspaceFault::OutOfReach { .. } => Code::RevisionNotReachable,
        _ => Code::DataInvalid,
    };
    let error = Error::new(code, what, path).because(fault);
    if code == Code::DataInvalid { error.remedy("see `refloat db check`") } else { error }
}
