//! `refloat store`.

mod document;

use clap::{Args, Subcommand};

use super::context::{Context, Ending};
use crate::error::{Code, Error, Result};

pub use document::{CheckDocument, CheckResult, InitDocument, ListDocument, State, StoreRow};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the directory of a configured store a store, also one that holds other things
    Init(InitArgs),
    /// The configured stores with their state and space
    List(ListArgs),
    /// Look whether each store can be read, written and trusted
    Check(CheckArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat store init local    writes the marker; nothing else in the directory is touched")]
pub struct InitArgs {
    /// Name from the configuration
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat store list -o json")]
pub struct ListArgs {}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat store check
  refloat store check --store local")]
pub struct CheckArgs {}

pub async fn run(command: Command, context: &Context) -> Result<Ending> {
    match command {
        Command::Init(args) => init(args, context).await,
        Command::List(args) => list(args, context).await,
        Command::Check(args) => check(args, context).await,
    }
}

async fn init(args: InitArgs, context: &Context) -> Result<Ending> {
    context.store_named(&args.name)?;
    Err(not_linked("make a store"))
}

async fn list(_args: ListArgs, context: &Context) -> Result<Ending> {
    context.stores()?;
    Err(not_linked("list stores"))
}

async fn check(_args: CheckArgs, context: &Context) -> Result<Ending> {
    context.stores()?;
    Err(not_linked("check stores"))
}

fn not_linked(what: &str) -> Error {
    Error::new(Code::Internal, what, "").because("this build has no stores")
}
