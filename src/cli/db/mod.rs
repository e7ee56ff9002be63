//! `refloat db`: any etcd database file, read-only, without configuration.

mod document;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::context::{Context, Ending};
use crate::error::{Code, Error, Result};

pub use super::snapshot::VerifyDocument;
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
    /// As if compacted at this revision, -1 for never; default: as the file is
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
    }
}

async fn inspect(args: InspectArgs, _context: &Context) -> Result<Ending> {
    Err(not_linked("inspect database", &args.file))
}

async fn check(args: CheckArgs, _context: &Context) -> Result<Ending> {
    Err(not_linked("check database", &args.file))
}

async fn hashkv(args: HashkvArgs, _context: &Context) -> Result<Ending> {
    Err(not_linked("hash database", &args.file))
}

async fn keys(args: KeysArgs, _context: &Context) -> Result<Ending> {
    Err(not_linked("list keys of database", &args.file))
}

async fn get(args: GetArgs, _context: &Context) -> Result<Ending> {
    Err(not_linked("read from database", &args.file))
}

fn not_linked(what: &str, file: &std::path::Path) -> Error {
    Error::new(Code::Internal, what, file.display().to_string()).because("this build has no database reader")
}
