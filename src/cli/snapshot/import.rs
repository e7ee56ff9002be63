//! `refloat snapshot import`.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::document::{Outcome, PreflightStore, Snapshot, StoreOutcome, outcome_line};
use crate::catalog::{HashKv, LineageId};
use crate::cli::context::{Context, Ending, aside};
use crate::cli::failure::ErrorDocument;
use crate::cli::output::{self, Document, SCHEMA, fields, printable, rfc3339};
use crate::error::{Error, Exit, Result};
use crate::snapshot::import::{self as work, ImportPlan, ImportRequest, Source};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot import /backup/etcd/snapshot.db
  refloat snapshot import ./snapshot.db --tag before-migration --pin
  refloat snapshot import ./snapshot.db --dry-run    judge it and say where it would go; store nothing
  refloat snapshot import ./member/snap/db --allow-unproven

A compressed file is unpacked first: `unzip` for those of RKE2 and k3s, `gzip -dk` for .gz; .zst is read as it is.")]
pub struct ImportArgs {
    /// A file of `etcdctl snapshot save`, or any other etcd database file; plain or zstd
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The lineage to join, where the file does not tell which cluster it is from
    #[arg(long, value_name = "LINEAGE")]
    pub lineage: Option<LineageId>,
    /// Remember this word with the snapshot; may be given several times
    #[arg(long = "tag", value_name = "TAG", value_parser = super::tag)]
    pub tags: Vec<String>,
    /// Never remove it, whatever the retention says
    #[arg(long)]
    pub pin: bool,
    /// Also take a file without a SHA-256 trailer: listed as unverified, never counted as a backup
    #[arg(long)]
    pub allow_unproven: bool,
    /// Judge the file and the space of the stores, then stop
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Serialize)]
pub struct ImportDocument {
    pub schema: u32,
    /// `null` without a daemon.
    pub job: Option<String>,
    pub snapshot: Snapshot,
    /// The same bytes were there before.
    pub already: bool,
    /// Stores in which something was written or failed.
    pub stores: Vec<StoreOutcome>,
}

/// `snapshot import --dry-run`.
#[derive(Debug, Serialize)]
pub struct ImportPlanDocument {
    pub schema: u32,
    pub file: String,
    /// The id that it would get, or that it has.
    pub id: String,
    /// `null`: one of its own, whose id is made when it is imported.
    pub lineage: Option<String>,
    pub new_lineage: bool,
    /// Why this lineage.
    pub reason: String,
    pub already: bool,
    /// It has a trailer that fits.
    pub proven: bool,
    #[serde(serialize_with = "rfc3339")]
    pub taken_at: Timestamp,
    pub revision: i64,
    pub compact_revision: i64,
    pub keys: u64,
    /// Bytes of the database.
    pub db: u64,
    /// Of the database without its trailer.
    pub sha256: String,
    pub hash_kv: Option<HashKv>,
    pub stores: Vec<PreflightStore>,
}

pub(super) async fn import(args: ImportArgs, context: &Context) -> Result<Ending> {
    let request = ImportRequest {
        file: args.file.clone(),
        lineage: args.lineage,
        tags: args.tags,
        pin: args.pin,
        allow_unproven: args.allow_unproven,
        stores: context.store_names()?,
        dry_run: args.dry_run,
    };
    let settings = context.settings()?;
    let file = args.file.clone();
    let source = aside(move || Source::open(&file)).await?;
    context.become_owner()?;
    let made = work::import(settings, &request, source, context.progress.clone(), &context.cancel).await?;
    let imported = match made {
        work::Outcome::Imported(imported) => *imported,
        work::Outcome::Plan(found) => return plan(*found, args.file.display().to_string(), context),
    };
    let failure = imported.failure();
    let document = ImportDocument {
        schema: SCHEMA,
        job: None,
        snapshot: Snapshot { shown: imported.snapshot, now: Timestamp::now() },
        already: imported.already,
        stores: imported.stores.into_iter().map(StoreOutcome::from).collect(),
    };
    context.output.document(&document)?;
    failure.map_or(Ok(Ending::Good), Err)
}

fn plan(found: ImportPlan, file: String, context: &Context) -> Result<Ending> {
    let mut first: Option<Exit> = None;
    let already = found.already;
    let stores = found.stores.into_iter().map(|(name, room)| {
        // What is there needs no room.
        first = first.or(room.as_ref().err().filter(|_| !already).map(Error::exit));
        let error = room.as_ref().err().map(ErrorDocument::from);
        let needed = room.map(|(_, needed)| needed).ok();
        PreflightStore { name, ok: error.is_none(), needed, error }
    });
    let document = ImportPlanDocument {
        schema: SCHEMA,
        file,
        id: found.id.to_string(),
        lineage: found.lineage.map(|lineage| lineage.to_string()),
        new_lineage: found.new_lineage,
        reason: found.reason,
        already,
        proven: found.proven,
        taken_at: found.modified,
        revision: found.id.revision(),
        compact_revision: found.compact_revision,
        keys: found.keys,
        db: found.db_size,
        sha256: found.sha256.to_string(),
        hash_kv: found.hash_kv,
        stores: stores.collect(),
    };
    context.output.document(&document)?;
    Ok(first.map_or(Ending::Good, Ending::Bad))
}

impl Document for ImportDocument {
    fn table(&self) -> String {
        let manifest = &self.snapshot.shown.manifest;
        let line = format!(
            "{}{}  {}  revision {}  {} ({} stored)  lineage {}",
            if self.already { "there already: " } else { "" },
            manifest.id,
            self.snapshot.state_words(),
            manifest.revision,
            output::size(manifest.size.db),
            output::size(manifest.size.stored),
            manifest.lineage,
        );
        let mut text = printable(&line) + "\n";
        for store in &self.stores {
            text.push_str(&outcome_line(&store.name, store.outcome == Outcome::Stored, "stored", store.error.as_ref()));
        }
        text
    }
}

impl Document for ImportPlanDocument {
    fn table(&self) -> String {
        let word = |yes: bool, is: &str, is_not: &str| if yes { is.to_string() } else { is_not.to_string() };
        let lineage = self.lineage.as_deref().unwrap_or("one of its own");
        let mut text = fields(&[
            ("file", self.file.clone()),
            ("sound", word(self.proven, "yes, and its trailer fits", "yes, but it has no trailer: unverified")),
            ("id", self.id.clone()),
            ("there already", word(self.already, "yes: nothing would be written", "no")),
            ("lineage", format!("{lineage}{} ({})", if self.new_lineage { ", new" } else { "" }, self.reason)),
            ("taken at", output::time(self.taken_at)),
            ("revision", format!("{} (compacted at {})", self.revision, self.compact_revision)),
            ("keys", self.keys.to_string()),
            ("size", output::size(self.db)),
            ("sha256", self.sha256.clone()),
        ]);
        for store in &self.stores {
            let needed = store.needed.map(output::size).unwrap_or_default();
            let good = format!("ready, {needed} are needed and free");
            text.push_str(&outcome_line(&store.name, store.ok, &good, store.error.as_ref()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::snapshot;
    use super::*;
    use crate::cli::args::Format;
    use crate::cli::output::tests::printed;

    #[test]
    fn what_was_there_is_said() {
        let stored = StoreOutcome { name: "local".into(), outcome: Outcome::Stored, error: None };
        let mut document =
            ImportDocument { schema: 1, job: None, snapshot: snapshot(), already: false, stores: vec![stored] };
        let id = document.snapshot.shown.manifest.id.to_string();
        let said = "verified, pinned  revision 4711  3.0 MiB (1.0 MiB stored)  lineage 00112233445566aa\n";
        assert_eq!(printed(&document, Format::Table), format!("{id}  {said}  store local: stored\n"));
        (document.already, document.stores) = (true, Vec::new());
        assert_eq!(printed(&document, Format::Table), format!("there already: {id}  {said}"));
    }

    #[test]
    fn a_dry_run_says_where_the_file_would_go() {
        let store = PreflightStore { name: "local".into(), ok: true, needed: Some(1 << 30), error: None };
        let mut document = ImportPlanDocument {
            schema: 1,
            file: "/b/x.db".into(),
            id: "0000-…".into(),
            lineage: Some("00112233445566aa".into()),
            new_lineage: true,
            reason: "because".into(),
            already: false,
            proven: false,
            taken_at: "2026-03-01T12:00:00Z".parse().unwrap(),
            revision: 7,
            compact_revision: 3,
            keys: 5,
            db: 3 << 20,
            sha256: "aa".into(),
            hash_kv: None,
            stores: vec![store],
        };
        let text = printed(&document, Format::Table);
        for line in [
            "sound          yes, but it has no trailer: unverified\n",
            "lineage        00112233445566aa, new (because)\n",
            "revision       7 (compacted at 3)\n",
            "  store local: ready, 1.0 GiB are needed and free\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        document.lineage = None;
        let text = printed(&document, Format::Table);
        assert!(text.contains("lineage        one of its own, new (because)\n"), "{text}");
    }
}
