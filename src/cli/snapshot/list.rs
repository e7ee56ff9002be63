//! `refloat snapshot list`.

use clap::Args;
use jiff::Timestamp;

use super::document::Snapshot;
use super::list_document::{Kind, Listed, Others, Rest, StoredName};
use super::select::{own_lineage, read_catalog, with_stores};
use crate::catalog::{Catalog, Filter, Lineages, Node, Unreadable};
use crate::cli::context::{Context, Ending};
use crate::error::{Code, Error, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot list
  refloat snapshot list --limit 10 --node cp1
  refloat snapshot list --tag before-upgrade
  refloat snapshot list --all-lineages -o json")]
pub struct ListArgs {
    /// Also snapshots of other clusters that share the store
    #[arg(long)]
    pub all_lineages: bool,
    /// Only snapshots that this node took
    #[arg(long, value_name = "NAME")]
    pub node: Option<Node>,
    /// Only snapshots with this tag
    #[arg(long, value_name = "TAG", value_parser = super::tag)]
    pub tag: Option<String>,
    /// Stop after so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Also the names of what refloat did not write
    #[arg(long)]
    pub foreign: bool,
}

pub(super) async fn list(args: ListArgs, context: &Context) -> Result<Ending> {
    let (progress, cancel, output) = (context.progress.clone(), context.cancel.clone(), context.output.clone());
    let listed = with_stores(context, move |stores, node| {
        let catalog = read_catalog(&stores.list(), &*progress)?;
        let lineages = if args.all_lineages { Lineages::All } else { own_lineage(&stores, &catalog, &*progress) };
        let filter = Filter { lineages, node: args.node };
        let chosen = catalog.chosen(&filter, &node);
        let with_snapshots = |l: &&_| catalog.entries(**l).any(|e| e.has_manifest());
        let mut listed = Listed::begin(&output, chosen.iter().filter(with_snapshots).nth(1).is_some())?;
        let (now, mut unreadable) = (Timestamp::now(), Vec::new());
        // A few are read, written and forgotten before the next: memory is that of the names.
        let mut entries = catalog.loading(catalog.matching(chosen.clone(), &filter));
        while args.limit.is_none_or(|limit| listed.rows() < limit) {
            let Some((_, loaded)) = entries.next() else { break };
            if cancel.is_cancelled() {
                return Err(Error::new(Code::Canceled, "list snapshots", ""));
            }
            unreadable.extend(loaded.unreadable);
            if let Some(shown) = loaded.shown
                && args.tag.as_ref().is_none_or(|tag| shown.tags.contains(tag))
            {
                listed.row(&Snapshot { shown, now })?;
            }
        }
        listed.end(&Rest {
            other_lineages: catalog.others(&chosen),
            omitted: Some(entries.left() as u64).filter(|left| *left > 0),
            others: others(&catalog, args.foreign, unreadable),
        })
    });
    listed.await?;
    Ok(Ending::Good)
}

fn others(catalog: &Catalog<'_>, name_foreign: bool, unreadable: Vec<Unreadable>) -> Others {
    let named = |kind, store: String, name: String, why| StoredName { kind, store, name, why };
    let mut found: Vec<StoredName> = Vec::new();
    let foreign = catalog.foreign_names().iter().cloned();
    found.extend(foreign.map(|f| named(Kind::Foreign, f.store, f.name, None)));
    found.extend(catalog.unfinished().into_iter().map(|u| named(Kind::Unfinished, u.store, u.name, None)));
    found.extend(unreadable.into_iter().map(|u| named(Kind::Unreadable, u.store, u.name, Some(u.reason))));
    Others::new(catalog.foreign(), name_foreign, found)
}
