//! `refloat defrag`.

use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use super::confirm::confirm;
use super::context::{Context, Ending};
use super::output::{Document, SCHEMA, size};
use super::remote;
use crate::engine::event::Outcome;
use crate::engine::job::Task;
use crate::error::{Exit, Result};
use crate::maintain::defrag::{Defragmented, Request, defragment, dry_run};
use crate::maintain::plan::{Plan, Step};
use crate::snapshot::preflight;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat defrag --dry-run    what would be done, or why nothing; exit code 2 if something would
  refloat defrag              the same, then asks
  refloat defrag --yes        without asking
  refloat defrag --anyway     also where it frees less than [maintain] wants

Each node does its own member, one node after the other, the leader last and only after it has handed over. It is refused
(exit code 75) while a member is not well, where the copy does not fit beside the database, and where it frees too little.
A snapshot and a defragmentation never run together. The member answers nothing meanwhile: some seconds a gigabyte.")]
pub struct DefragArgs {
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Also where it frees little
    #[arg(long)]
    pub anyway: bool,
    /// Queue it in the daemon and return at once. Without a daemon: fail at once when a snapshot is under way
    #[arg(long, conflicts_with = "dry_run")]
    pub no_wait: bool,
}

#[derive(Debug, Serialize)]
struct PlanDocument {
    schema: u32,
    plan: Plan,
}

impl Document for PlanDocument {
    fn table(&self) -> String {
        let Plan { member, db_size, db_in_use, gain, steps, refused, notes } = &self.plan;
        let mut text =
            format!("member {member}: {} with {} in use, {} to gain\n", size(*db_size), size(*db_in_use), size(*gain));
        for step in steps {
            let _ = match step {
                Step::MoveLeader { name, .. } => writeln!(text, "  hand the leadership over to {name}"),
                Step::Defragment { deadline } => writeln!(text, "  defragment, within {deadline} s"),
            };
        }
        for reason in refused {
            let _ = writeln!(text, "  nothing is done: {reason}");
        }
        for note in notes {
            let _ = writeln!(text, "  mind: {note}");
        }
        text
    }
}

#[derive(Debug, Serialize)]
struct DoneDocument {
    schema: u32,
    job: Option<String>,
    #[serde(flatten)]
    done: Defragmented,
}

impl Document for DoneDocument {
    fn table(&self) -> String {
        let Defragmented { member, before, after, took, leader_moved_to } = &self.done;
        let mut text = format!("member {member}: {} before, {} now, in {took:.1} s\n", size(*before), size(*after));
        if let Some(name) = leader_moved_to {
            let _ = writeln!(text, "{name} leads now");
        }
        text
    }
}

pub async fn run(args: DefragArgs, context: &Context) -> Result<Ending> {
    let settings = context.settings()?;
    if args.dry_run {
        let request = Request { anyway: args.anyway, ..Request::default() };
        let (plan, warnings) = dry_run(settings, &request).await?;
        warnings.iter().for_each(|warning| context.progress.warn(warning));
        let changes = plan.refused.is_empty();
        context.output.document(&PlanDocument { schema: SCHEMA, plan })?;
        return Ok(if changes { Ending::Bad(Exit::Changes) } else { Ending::Good });
    }
    if !confirm("Defragment the own member? It answers nothing meanwhile.", args.yes, "defragment", "the own member")? {
        return Ok(Ending::Good);
    }
    let task = Task::Defrag { anyway: args.anyway };
    match remote::daemon(context).await? {
        Some(client) if args.no_wait => remote::queue(&client, &task, context).await?,
        Some(client) => {
            let job = remote::run(&client, &task, context).await?;
            if let Some(error) = remote::failure(&job) {
                return Err(error);
            }
            if let Some(Outcome::Defrag(done)) = job.result {
                context.output.document(&DoneDocument { schema: SCHEMA, job: Some(job.id.to_string()), done })?;
            }
        }
        None => {
            // Read while this may still be root, whose files they usually are.
            let access = Some(preflight::access(&settings.etcd)?);
            context.become_owner()?;
            let request = Request { anyway: args.anyway, access, no_wait: args.no_wait };
            let done = defragment(settings, &request, &*context.progress, &context.cancel).await?;
            context.output.document(&DoneDocument { schema: SCHEMA, job: None, done })?;
        }
    }
    Ok(Ending::Good)
}
