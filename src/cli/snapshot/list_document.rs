//! What `snapshot list` prints: rows as they are read, then what else there is.

use std::collections::BTreeSet;

use serde::Serialize;

use super::document::Snapshot;
use crate::catalog::{OtherLineage, Shown};
use crate::cli::args::Format;
use crate::cli::columns::Columns;
use crate::cli::list::{List, Row};
use crate::cli::output::{self, Output, SCHEMA};
use crate::error::Result;

#[derive(Serialize)]
struct Head {
    schema: u32,
}

/// Everything beside the rows, known after the last one.
#[derive(Debug, Default, Serialize)]
pub struct Rest {
    /// Lineages with snapshots that are not in the list.
    pub other_lineages: Vec<OtherLineage>,
    /// Snapshots that the list did not come to, because `--limit` was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<u64>,
    #[serde(flatten)]
    pub others: Others,
}

/// What else lies in the stores. Lists hold names; `details` says where and why.
#[derive(Debug, Default, Serialize)]
pub struct Others {
    /// How many objects refloat did not write.
    pub foreign: u64,
    /// With `--foreign` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_names: Option<Vec<String>>,
    /// Data without a manifest.
    pub unfinished: Vec<String>,
    /// Own-looking manifests that cannot be read.
    pub unreadable: Vec<String>,
    /// One for each name in the three lists.
    pub details: Vec<StoredName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredName {
    pub kind: Kind,
    pub store: String,
    /// Below the store's root.
    pub name: String,
    pub why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Foreign,
    Unfinished,
    Unreadable,
}

impl Others {
    /// `foreign` counts also what `found` does not name; without `name_foreign` none is named.
    pub fn new(foreign: u64, name_foreign: bool, found: Vec<StoredName>) -> Self {
        let details: Vec<StoredName> =
            found.into_iter().filter(|one| name_foreign || one.kind != Kind::Foreign).collect();
        let names = |kind| {
            // The same name in two stores is one name.
            let names: BTreeSet<&String> = details.iter().filter(|one| one.kind == kind).map(|one| &one.name).collect();
            names.into_iter().cloned().collect::<Vec<String>>()
        };
        Others {
            foreign,
            foreign_names: name_foreign.then(|| names(Kind::Foreign)),
            unfinished: names(Kind::Unfinished),
            unreadable: names(Kind::Unreadable),
            details,
        }
    }
}

/// The list under way.
pub struct Listed<'a> {
    output: &'a Output,
    form: Form<'a>,
    rows: u64,
}

enum Form<'a> {
    Table(Columns<'a>, bool),
    Json(List<'a>),
}

impl<'a> Listed<'a> {
    /// `several`: of several lineages; one alone would be the same word in each row.
    pub fn begin(output: &'a Output, several: bool) -> Result<Self> {
        let form = if output.format() == Format::Table {
            let mut header =
                vec!["ID", "AGE", "STATE", "MARKS", "REVISION", "SIZE", "STORED", "STORES", "NODE", "TAGS"];
            header.extend(several.then_some("LINEAGE"));
            Form::Table(Columns::new(output, header, &["AGE", "REVISION", "SIZE", "STORED"]), several)
        } else {
            Form::Json(List::begin(output, &Head { schema: SCHEMA }, "snapshots")?)
        };
        Ok(Listed { output, form, rows: 0 })
    }

    pub fn row(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.rows += 1;
        match &mut self.form {
            Form::Table(columns, several) => columns.row(cells(snapshot, *several)),
            Form::Json(list) => list.row(snapshot),
        }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn end(self, rest: &Rest) -> Result<()> {
        match self.form {
            Form::Json(list) => list.end_with(SCHEMA, rest),
            Form::Table(columns, _) => {
                columns.end()?;
                let none = if self.rows == 0 { "no snapshots\n" } else { "" };
                self.output.raw(format!("{none}{}", rest.text()).as_bytes())
            }
        }
    }
}

impl Row for Snapshot {
    fn text(&self) -> String {
        cells(self, true).join("  ")
    }
}

fn cells(snapshot: &Snapshot, several: bool) -> Vec<String> {
    let Shown { manifest, stores, tags, state, .. } = &snapshot.shown;
    let mut cells = vec![
        manifest.id.to_string(),
        output::age(snapshot.age()),
        state.word().into(),
        snapshot.marks().join(","),
        manifest.revision.to_string(),
        output::size(manifest.size.db),
        output::size(manifest.size.stored),
        stores.join(","),
        manifest.node.to_string(),
        tags.join(","),
    ];
    cells.extend(several.then(|| manifest.lineage.to_string()));
    cells
}

impl Rest {
    fn text(&self) -> String {
        let mut text = String::new();
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        if let Some(omitted) = self.omitted {
            text.push_str(&format!("{omitted} more: not listed (--limit)\n"));
        }
        let Others { foreign, unfinished, unreadable, details, .. } = &self.others;
        if !unfinished.is_empty() {
            text.push_str(&format!("{} unfinished: data without a manifest, never counted\n", unfinished.len()));
        }
        if !unreadable.is_empty() {
            text.push_str(&format!("{} unreadable: neither counted nor removed\n", unreadable.len()));
        }
        if *foreign > 0 {
            text.push_str(&format!(
                "{foreign} foreign: not written by refloat, never touched (--foreign names them)\n"
            ));
        }
        for OtherLineage { lineage, snapshots, stored } in &self.other_lineages {
            text.push_str(&format!(
                "other lineage {lineage}: {snapshots} snapshot{} of another cluster, {} stored (--all-lineages lists them)\n",
                plural(*snapshots),
                output::size(*stored)
            ));
        }
        for one in details {
            let kind = match one.kind {
                Kind::Foreign => "foreign",
                Kind::Unfinished => "unfinished",
                Kind::Unreadable => "unreadable",
            };
            text.push_str(&format!("  {kind}: {}\n", one.line()));
        }
        text
    }
}

impl StoredName {
    fn line(&self) -> String {
        let why = self.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        output::printable(&format!("{} in store {}{why}", self.name, self.store))
    }
}

#[cfg(test)]
#[path = "list_document_tests.rs"]
mod tests;
