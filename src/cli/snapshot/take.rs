//! `refloat snapshot take`.

use clap::Args;
use jiff::Timestamp;

use super::document::{Outcome, PreflightDocument, PreflightStore, Snapshot, StoreOutcome, TakeDocument};
use crate::cli::context::{Context, Ending};
use crate::cli::failure::ErrorDocument;
use crate::cli::output::SCHEMA;
use crate::error::{Error, Exit, Result};
use crate::snapshot::outcome::{self, TakeRequest};
use crate::snapshot::preflight;
use crate::snapshot::take::take as take_snapshot;

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
    #[arg(long = "tag", value_name = "TAG", value_parser = super::tag)]
    pub tags: Vec<String>,
    /// When another snapshot is under way, fail at once instead of waiting for it
    #[arg(long)]
    pub no_wait: bool,
    /// Check the member and the space of the stores, then stop
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) async fn take(args: TakeArgs, context: &Context) -> Result<Ending> {
    let settings = context.settings()?;
    // Read while this may still be root, whose files they usually are.
    let access = preflight::access(&settings.etcd)?;
    context.become_owner()?;
    let request = TakeRequest {
        member: args.member,
        tags: args.tags,
        no_wait: args.no_wait,
        stores: context.store_names()?,
        dry_run: args.dry_run,
        access: Some(access),
    };
    let made = take_snapshot(settings, &request, context.progress.clone(), &context.cancel).await?;
    let taken = match made {
        outcome::Outcome::Taken(taken) => *taken,
        outcome::Outcome::Preflight(found) => return looked(found, context),
    };
    let failure = taken.failure();
    let stores = taken.stores.into_iter().map(|store| StoreOutcome {
        name: store.name,
        outcome: if store.result.is_ok() { Outcome::Stored } else { Outcome::Failed },
        error: store.result.as_ref().err().map(ErrorDocument::from),
    });
    let snapshot = Snapshot { shown: taken.snapshot, now: Timestamp::now() };
    context.output.document(&TakeDocument { schema: SCHEMA, job: None, snapshot, stores: stores.collect() })?;
    failure.map_or(Ok(Ending::Good), Err)
}

fn looked(found: outcome::Preflight, context: &Context) -> Result<Ending> {
    let mut first: Option<Exit> = None;
    let stores = found.stores.into_iter().map(|(name, room)| {
        first = first.or(room.as_ref().err().map(Error::exit));
        let error = room.as_ref().err().map(ErrorDocument::from);
        let needed = room.map(|(_, needed)| needed).ok();
        PreflightStore { name, ok: error.is_none(), needed, error }
    });
    let document = PreflightDocument {
        schema: SCHEMA,
        member: found.member,
        url: found.url,
        chosen_as: found.reason.into(),
        etcd_version: found.etcd_version,
        db: found.db_size,
        stores: stores.collect(),
    };
    context.output.document(&document)?;
    Ok(first.map_or(Ending::Good, Ending::Bad))
}
