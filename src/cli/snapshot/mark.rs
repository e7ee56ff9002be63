//! `refloat snapshot pin`, `unpin` and `tag`.

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::document::{Outcome, Snapshot, StoreOutcome, outcome_line};
use super::select::{find_in, with_stores};
use crate::catalog::Catalog;
use crate::cli::context::{Context, Ending};
use crate::cli::failure::ErrorDocument;
use crate::cli::output::{Document, printable};
use crate::error::Result;
use crate::snapshot::pin::{Mark, Marked, mark};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot pin latest --reason before-upgrade
  refloat snapshot pin 0001-00000000000000004711")]
pub struct PinArgs {
    /// Id, any unique beginning or end of it, or `latest`
    #[arg(value_name = "ID")]
    pub id: String,
    /// Why, for whoever finds it later
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat snapshot unpin 0001-00000000000000004711 --reason upgraded")]
pub struct UnpinArgs {
    /// Id, any unique beginning or end of it, or `latest`
    #[arg(value_name = "ID")]
    pub id: String,
    /// Why, for whoever finds it later
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat snapshot tag latest before-upgrade")]
pub struct TagArgs {
    /// Id, any unique beginning or end of it, or `latest`
    #[arg(value_name = "ID")]
    pub id: String,
    /// Words to remember; `snapshot list --tag` finds them
    #[arg(value_name = "TAG", required = true, value_parser = super::tag)]
    pub tags: Vec<String>,
}

/// A line of text that fits into a note and onto a screen.
fn reason(text: &str) -> std::result::Result<String, String> {
    let text = text.trim();
    let good = (1..=500).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if good { Ok(text.into()) } else { Err("one line of 1 to 500 characters".into()) }
}

/// The snapshot as `snapshot show` has it, and what was done.
#[derive(Debug, Serialize)]
pub struct MarkDocument {
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// False: all was said before, nothing was written.
    pub changed: bool,
    /// One for each store in which something had to be written, or that could not be looked at.
    pub outcomes: Vec<StoreOutcome>,
    #[serde(skip)]
    said: &'static str,
}

impl Document for MarkDocument {
    fn table(&self) -> String {
        let manifest = &self.snapshot.shown.manifest;
        let (id, state) = (&manifest.id, self.snapshot.state_words());
        let said = if self.changed { self.said } else { "nothing to do" };
        let tags = self.snapshot.shown.tags.join(",");
        let tags = if tags.is_empty() { String::new() } else { format!("  tags {tags}") };
        let mut text = printable(&format!("{said}: {id}  {state}{tags}")) + "\n";
        for store in &self.outcomes {
            text.push_str(&outcome_line(
                &store.name,
                store.outcome == Outcome::Stored,
                "recorded",
                store.error.as_ref(),
            ));
        }
        text
    }
}

pub(super) async fn pin(args: PinArgs, context: &Context) -> Result<Ending> {
    run(context, args.id, Mark::Pin { reason: args.reason }, "pin snapshot", "pinned").await
}

pub(super) async fn unpin(args: UnpinArgs, context: &Context) -> Result<Ending> {
    run(context, args.id, Mark::Unpin { reason: args.reason }, "unpin snapshot", "unpinned").await
}

pub(super) async fn tag(args: TagArgs, context: &Context) -> Result<Ending> {
    run(context, args.id, Mark::Tag { tags: args.tags }, "tag snapshot", "tagged").await
}

async fn run(context: &Context, id: String, wanted: Mark, what: &str, said: &'static str) -> Result<Ending> {
    context.become_owner()?;
    let progress = context.progress.clone();
    let marked = with_stores(context, move |stores, node| {
        let list = stores.list();
        let (catalog, mut unread) = Catalog::read_available(&list);
        if catalog.stores().is_empty() && !unread.is_empty() {
            return Err(unread.swap_remove(0).1);
        }
        let shown = find_in(&stores, &catalog, &id, &node, &*progress)?;
        mark(&stores, unread, &shown, &node, &wanted, Timestamp::now())
    });
    let marked: Marked = marked.await?;
    let (failure, changed) = (marked.failure(what), marked.changed());
    let document = MarkDocument {
        snapshot: Snapshot { shown: marked.snapshot, now: Timestamp::now() },
        changed,
        outcomes: marked.stores.into_iter().map(StoreOutcome::from).collect(),
        said,
    };
    context.output.document(&document)?;
    failure.map_or(Ok(Ending::Good), Err)
}

impl From<crate::snapshot::publish::StoreOutcome> for StoreOutcome {
    fn from(one: crate::snapshot::publish::StoreOutcome) -> Self {
        let outcome = if one.result.is_ok() { Outcome::Stored } else { Outcome::Failed };
        StoreOutcome { name: one.name, outcome, error: one.result.as_ref().err().map(ErrorDocument::from) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line() {
        for (text, good) in [("  why  ", true), ("", false), ("  ", false), ("two\nlines", false)] {
            assert_eq!(reason(text).is_ok(), good, "{text:?}");
        }
        assert!(reason(&"x".repeat(500)).is_ok() && reason(&"x".repeat(501)).is_err());
        assert_eq!(reason(" x "), Ok("x".into()));
    }
}
