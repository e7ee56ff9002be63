//! `refloat snapshot take`.

use clap::Args;
use jiff::Timestamp;

use super::document::{Outcome, PreflightDocument, PreflightStore, Snapshot, StoreOutcome, TakeDocument};
use crate::catalog::Shown;
use crate::catalog::shown::Copy;
use crate::cli::context::{Context, Ending};
use crate::cli::failure::ErrorDocument;
use crate::cli::output::SCHEMA;
use crate::cli::remote;
use crate::engine::event::Outcome as Made;
use crate::engine::job::{JobId, Task};
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
  refloat snapshot take --no-wait        queue it, and look later: refloat jobs list
  refloat snapshot take --dry-run        check member and space, take nothing

While the daemon runs it takes the snapshot, as a job like its own; Ctrl-C cancels it.")]
pub struct TakeArgs {
    /// Stream from this member: name, id in hex or client URL
    #[arg(long, value_name = "NAME|ID|URL")]
    pub member: Option<String>,
    /// Remember this word with the snapshot; may be given several times
    #[arg(long = "tag", value_name = "TAG", value_parser = super::tag)]
    pub tags: Vec<String>,
    /// Queue it in the daemon and return at once. Without a daemon: fail at once when another snapshot is under way
    #[arg(long)]
    pub no_wait: bool,
    /// Check the member and the space of the stores, then stop
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) async fn take(args: TakeArgs, context: &Context) -> Result<Ending> {
    let names = context.store_names()?;
    // A dry run only looks, which needs no daemon.
    let daemon = if args.dry_run { None } else { remote::daemon(context).await? };
    let Some(client) = daemon else { return take_here(args, names, context).await };
    let task = Task::Snapshot { member: args.member, tags: args.tags, stores: names };
    if args.no_wait {
        remote::queue(&client, &task, context).await?;
        return Ok(Ending::Good);
    }
    let job = remote::run(&client, &task, context).await?;
    let failure = remote::failure(&job);
    match &job.result {
        Some(Made::Snapshot(made)) => {
            let held = made.stores.iter().filter(|s| s.failure.is_none());
            let copies: Vec<Copy> = held.map(|s| Copy { store: s.name.clone(), ..Copy::default() }).collect();
            let stores = made.stores.iter().map(|store| StoreOutcome {
                name: store.name.clone(),
                outcome: if store.failure.is_none() { Outcome::Stored } else { Outcome::Failed },
                error: store.failure.clone(),
            });
            print(Some(job.id), Shown::fold(made.manifest.clone(), &copies), stores.collect(), context)?;
        }
        Some(Made::Found { snapshot }) => {
            let text = format!("job {}: snapshot {snapshot} was published before the daemon ended\n", job.id);
            context.output.raw(text.as_bytes())?;
        }
        _ => {}
    }
    failure.map_or(Ok(Ending::Good), Err)
}

fn print(job: Option<JobId>, shown: Shown, stores: Vec<StoreOutcome>, context: &Context) -> Result<()> {
    let snapshot = Snapshot { shown, now: Timestamp::now() };
    context.output.document(&TakeDocument { schema: SCHEMA, job: job.map(|id| id.to_string()), snapshot, stores })
}

/// Without a daemon: the same code, under the same lock.
async fn take_here(args: TakeArgs, names: Vec<String>, context: &Context) -> Result<Ending> {
    let settings = context.settings()?;
    // Read while this may still be root, whose files they usually are.
    let access = preflight::access(&settings.etcd)?;
    context.become_owner()?;
    let request = TakeRequest {
        member: args.member,
        tags: args.tags,
        no_wait: args.no_wait,
        stores: names,
        dry_run: args.dry_run,
        // Somebody waits for it.
        rate: None,
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
    print(None, taken.snapshot, stores.collect(), context)?;
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
