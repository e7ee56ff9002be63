//! `refloat status`.

use std::io::IsTerminal;

use clap::Args;

use super::args::Format;
use super::context::{Context, Ending};
use super::jobs::job_table;
use super::output::{Document, fields, printable, size, table};
use super::remote;
use crate::error::{Exit, Result};
use crate::status::{Status, ago};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat status               what would be lost now, what runs, what waits and why, what comes next
  refloat status --watch       the same, kept up to date until Ctrl-C
  refloat status -o json

Exit code 0 while the daemon runs, 69 when it does not; then this is what it knew when it ended.")]
pub struct StatusArgs {
    /// Show it again on each change
    #[arg(long)]
    pub watch: bool,
}

pub async fn run(args: StatusArgs, context: &Context) -> Result<Ending> {
    if args.watch {
        return watch(context).await;
    }
    let (status, runs) = remote::status(context).await?;
    context.output.document(&status)?;
    Ok(if runs { Ending::Good } else { Ending::Bad(Exit::Unavailable) })
}

async fn watch(context: &Context) -> Result<Ending> {
    let client = remote::needed(context, "watch the status").await?;
    let mut follow = client.follow("/v1/status/follow").await?;
    let redraw = context.output.format() == Format::Table && std::io::stdout().is_terminal();
    loop {
        let next = tokio::select! {
            next = follow.next::<Status>() => next?,
            () = context.cancel.cancelled() => return Ok(Ending::Good),
        };
        let Some(status) = next else { return Ok(Ending::Bad(Exit::Unavailable)) };
        if redraw {
            // Home, and clear what is below: no flicker.
            context.output.raw(format!("\x1b[H\x1b[J{}", status.table()).as_bytes())?;
        } else if context.output.format() == Format::Table {
            context.output.raw(format!("{}\n", status.table()).as_bytes())?;
        } else {
            let line = serde_json::to_string(&status).unwrap_or_default();
            context.output.raw(format!("{line}\n").as_bytes())?;
        }
    }
}

impl Document for Status {
    fn table(&self) -> String {
        let mut text = format!("{}\n\n", printable(&self.summary));
        text.push_str(&facts(self));
        for trouble in &self.troubles {
            text.push_str(&format!(
                "\nTROUBLE  {} since {:.0}: {}\n",
                printable(&trouble.about),
                trouble.since,
                printable(&trouble.error.line())
            ));
            if let Some(remedy) = &trouble.error.remedy {
                text.push_str(&format!("         try: {}\n", printable(remedy)));
            }
        }
        text.push('\n');
        text.push_str(&stores(self));
        if !self.units.is_empty() {
            let rows = self.units.iter().map(|unit| {
                vec![
                    unit.name.clone(),
                    format!("{} ({})", unit.active, unit.sub),
                    unit.main_pid.to_string(),
                    unit.restarts.to_string(),
                    unit.since.map(|at| format!("{at:.0}")).unwrap_or_default(),
                ]
            });
            text.push('\n');
            text.push_str(&table(&["UNIT", "STATE", "PID", "RESTARTS", "SINCE"], &["PID", "RESTARTS"], rows));
        }
        if !self.jobs.is_empty() {
            text.push('\n');
            text.push_str(&job_table(&self.jobs));
        }
        text
    }
}

fn facts(status: &Status) -> String {
    let point = &status.recovery_point;
    let lost = match (point.seconds, point.revisions) {
        (None, _) => "none: nothing could be restored".into(),
        (Some(seconds), None) => format!("{} ago ({seconds} s)", ago(seconds)),
        (Some(seconds), Some(revisions)) => format!("{} ago ({seconds} s), {revisions} revisions", ago(seconds)),
    };
    let daemon = match (status.pid, status.started_at) {
        (Some(pid), Some(at)) => format!("refloat {} on {}, pid {pid}, since {at:.0}", status.version, status.node),
        _ => format!("not running on {}", status.node),
    };
    let member = status.member.as_ref().map(|member| match (&member.version, member.revision, &member.error) {
        (Some(version), Some(revision), None) => {
            let name = member.name.clone().unwrap_or_default();
            format!("{name} {} etcd {version}, revision {revision}, {}", member.url, size(member.db_size.unwrap_or(0)))
        }
        (_, _, Some(error)) => format!("{}: {}", member.url, error.line()),
        _ => member.url.clone(),
    });
    let ids = [("lineage", &status.lineage), ("timeline", &status.timeline), ("cluster", &status.cluster_id)];
    let ids: Vec<String> = ids.iter().filter_map(|(name, id)| Some(format!("{name} {}", id.as_ref()?))).collect();
    let ledger = match status.ledger.why.as_ref() {
        Some(why) => format!("{}: {why}", status.ledger.state),
        None => String::new(),
    };
    fields(&[
        ("daemon", daemon),
        ("recovery point", lost),
        ("last verified", status.last_verified.clone().unwrap_or_default()),
        ("next run", status.next_run.map(|at| format!("{at:.0}")).unwrap_or_default()),
        ("member", member.unwrap_or_default()),
        ("history", ids.join(", ")),
        ("ledger", ledger),
    ])
}

fn stores(status: &Status) -> String {
    let rows = status.stores.iter().map(|store| {
        let point = status.recovery_point.by_store.get(&store.name);
        let newest = point.and_then(|p| p.seconds).map(|s| format!("{} ago", ago(s)));
        let said = store.error.as_ref().map(|error| error.line());
        vec![
            store.name.clone(),
            store.state.clone(),
            store.snapshots.map(|n| n.to_string()).unwrap_or_default(),
            store.used.map(size).unwrap_or_default(),
            store.free.map(size).unwrap_or_default(),
            said.or(newest).unwrap_or_else(|| "none".into()),
        ]
    });
    table(&["STORE", "STATE", "SNAPSHOTS", "USED", "FREE", "NEWEST VERIFIED"], &["SNAPSHOTS", "USED", "FREE"], rows)
}
