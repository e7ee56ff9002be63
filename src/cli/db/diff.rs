//! `refloat db diff`: what differs between two databases, by prefix, and what it prints.
//!
//! Values are never shown: they may be secrets. `refloat db get` shows one that is asked for.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::Args;
use serde::Serialize;

use super::document::Bytes;
use crate::catalog::State as SnapshotState;
use crate::cli::args::Format;
use crate::cli::context::{Context, Ending, aside};
use crate::cli::list::{List, Row};
use crate::cli::output::{Document, SCHEMA, printable, size, table};
use crate::cli::snapshot::{Subject, find, with_stores};
use crate::error::{Code, Error, Exit, Result};
use crate::format::check::HashKv;
use crate::format::diff::{Change, Changed, Differences, PrefixSum, State};
use crate::snapshot::diff::{Compared, Comparison, Point, Wanted, compare};
use crate::snapshot::open;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat db diff before.db after.db
  refloat db diff ./before.db latest --prefix /registry/secrets/ --keys
  refloat db diff snapshot.db snapshot.db --revision-a 4711    what changed in it since")]
pub struct DiffArgs {
    /// The older one: a database file (a name with `/`, or one that exists), a snapshot id, or `latest`
    #[arg(value_name = "A")]
    pub a: String,
    /// The newer one, likewise
    #[arg(value_name = "B")]
    pub b: String,
    /// A as it was at this revision; default: its newest
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    pub revision_a: Option<i64>,
    /// B as it was at this revision; default: its newest
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    pub revision_b: Option<i64>,
    /// Only keys that begin with this
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<OsString>,
    /// Parts of a path that make a prefix; default: all but the last for Kubernetes, else 2
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,
    /// Also every key: + added, ~ changed, - removed
    #[arg(long)]
    pub keys: bool,
    /// End with 2 when anything differs
    #[arg(long)]
    pub exit_code: bool,
}

pub async fn run(args: DiffArgs, context: &Context) -> Result<Ending> {
    let a = subject(&args.a, args.revision_a, context).await?;
    let b = subject(&args.b, args.revision_b, context).await?;
    let wanted = Wanted { prefix: args.prefix.unwrap_or_default().into_vec(), depth: args.depth, keys: args.keys };
    let (progress, cancel) = (context.progress.clone(), context.cancel.clone());
    let compared = aside(move || {
        let found = compare(&a.compared, &b.compared, &wanted, RandomState::new(), &*progress, &cancel)?;
        Ok((a.name, b.name, found))
    });
    let (a, b, found) = compared.await?;
    let any = found.differences.totals.any();
    let (head, keys) = DiffHead::new(a, b, found);
    if args.keys {
        print_keys(&head, keys, context)?;
    } else {
        context.output.document(&head)?;
    }
    Ok(if args.exit_code && any { Ending::Bad(Exit::Changes) } else { Ending::Good })
}

/// One of the two, open.
struct Opened {
    name: Name,
    compared: Compared,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    File(String),
    Id(String),
}

async fn subject(text: &str, revision: Option<i64>, context: &Context) -> Result<Opened> {
    let revision = revision.map(|r| r.max(0).unsigned_abs());
    let id = match Subject::of(text) {
        Subject::File(path) => {
            return aside(move || {
                let on = path.display().to_string();
                let object = open::file(&path)?.object;
                Ok(Opened { name: Name::File(on.clone()), compared: Compared { object, on, revision, sha256: None } })
            })
            .await;
        }
        Subject::Id(id) => id,
        Subject::All => text.into(),
    };
    let progress = context.progress.clone();
    with_stores(context, move |stores, node| {
        let shown = find(&stores, &id, &node, &*progress)?;
        let manifest = &shown.manifest;
        if shown.state != SnapshotState::Verified {
            progress.warn(&format!("{} is {}: see `refloat snapshot show`", manifest.id, shown.state.word()));
        }
        // A copy that a later look found damaged is read only where there is no other.
        let mut holders: Vec<_> = stores.good().filter(|s| shown.stores.contains(&s.name)).collect();
        holders.sort_by_key(|s| shown.damaged_stores.contains(&s.name));
        let holder = holders.first().ok_or_else(|| {
            Error::new(Code::NotFound, "read snapshot", manifest.id.to_string())
                .because("no store that could be opened holds it")
        })?;
        let (object, note) = open::stored(&holder.store, manifest)?;
        if let Some(note) = note {
            progress.warn(&format!("{}: {note}", manifest.id));
        }
        let on = format!("{} in store {}", manifest.id, holder.name);
        let compared = Compared { object, on, revision, sha256: Some(manifest.sha256.db) };
        Ok(Opened { name: Name::Id(manifest.id.to_string()), compared })
    })
    .await
}

/// The document, up to its list `keys`, which is there with `--keys` alone and whose rows follow one by one.
#[derive(Debug, Serialize)]
pub struct DiffHead {
    schema: u32,
    a: Place,
    b: Place,
    totals: Counts,
    prefixes: Vec<PrefixRow>,
    /// What else there is to say, such as that these are two clusters.
    notes: Vec<String>,
}

/// One of the two and where it stands.
#[derive(Debug, Serialize)]
struct Place {
    #[serde(flatten)]
    name: Name,
    revision: u64,
    /// 0: never compacted.
    compact_revision: u64,
    hash_kv: Option<HashKv>,
}

#[derive(Debug, Serialize)]
struct Counts {
    added: u64,
    changed: u64,
    removed: u64,
}

#[derive(Debug, Serialize)]
struct PrefixRow {
    /// Empty for keys without a path.
    prefix: Bytes,
    #[serde(flatten)]
    counts: Counts,
    /// Bytes of keys and values of those that differ, in A and in B.
    bytes_a: u64,
    bytes_b: u64,
}

/// One key of `--keys`.
#[derive(Debug, Serialize)]
struct ChangeRow {
    key: Bytes,
    kind: &'static str,
    /// `value`, `lease`, `created`: which of them differ; empty unless changed.
    changed: Vec<&'static str>,
    a: Option<StateRow>,
    b: Option<StateRow>,
}

#[derive(Debug, Serialize)]
struct StateRow {
    create_revision: i64,
    mod_revision: i64,
    version: i64,
    /// Hex; `null` without one.
    lease: Option<String>,
    /// Bytes of the value.
    size: u64,
}

impl DiffHead {
    fn new(a: Name, b: Name, found: Comparison) -> (DiffHead, impl Iterator<Item = ChangeRow>) {
        let mut notes = Vec::new();
        if found.of_two_clusters() {
            notes.push("two clusters: their kube-system namespaces have different UIDs".into());
        }
        let place = |name, point: Point| Place {
            name,
            revision: point.revision,
            compact_revision: point.compact_revision,
            hash_kv: point.hash_kv,
        };
        let Differences { totals, prefixes, keys } = found.differences;
        let row = |(prefix, sum): (Vec<u8>, PrefixSum)| PrefixRow {
            prefix: Bytes(prefix),
            counts: Counts::from(sum.counts),
            bytes_a: sum.bytes_a,
            bytes_b: sum.bytes_b,
        };
        let head = DiffHead {
            schema: SCHEMA,
            a: place(a, found.a),
            b: place(b, found.b),
            totals: totals.into(),
            prefixes: prefixes.into_iter().map(row).collect(),
            notes,
        };
        (head, keys.into_iter().filter_map(ChangeRow::new))
    }

    /// Which two, and what there is to say about them.
    fn heading(&self) -> String {
        let side = |letter: &str, place: &Place| {
            let (Name::File(name) | Name::Id(name)) = &place.name;
            format!("{letter}  {}  revision {}\n", printable(name), place.revision)
        };
        let notes: String = self.notes.iter().map(|note| format!("{}\n", printable(note))).collect();
        format!("{}{}{notes}", side("A", &self.a), side("B", &self.b))
    }

    fn summary(&self) -> String {
        match &self.totals {
            Counts { added: 0, changed: 0, removed: 0 } => "no difference\n".into(),
            Counts { added, changed, removed } => format!("{added} added, {changed} changed, {removed} removed\n"),
        }
    }
}

impl From<crate::format::diff::Totals> for Counts {
    fn from(totals: crate::format::diff::Totals) -> Self {
        Counts { added: totals.added, changed: totals.changed, removed: totals.removed }
    }
}

impl Document for DiffHead {
    fn table(&self) -> String {
        let right = ["ADDED", "CHANGED", "REMOVED", "BYTES A", "BYTES B"];
        let header = ["PREFIX", "ADDED", "CHANGED", "REMOVED", "BYTES A", "BYTES B"];
        let mut text = self.heading();
        if !self.prefixes.is_empty() {
            let rows = self.prefixes.iter().map(|row| {
                let prefix = if row.prefix.0.is_empty() { "(no path)".into() } else { row.prefix.shown() };
                let count = |n: u64| n.to_string();
                let Counts { added, changed, removed } = row.counts;
                vec![prefix, count(added), count(changed), count(removed), size(row.bytes_a), size(row.bytes_b)]
            });
            text.push('\n');
            text.push_str(&table(&header, &right, rows));
            text.push('\n');
        }
        text + &self.summary()
    }

    fn lines(&self) -> serde_json::Result<Vec<String>> {
        self.prefixes.iter().map(serde_json::to_string).collect()
    }
}

impl ChangeRow {
    fn new((key, change): (Vec<u8>, Change)) -> Option<ChangeRow> {
        let state = |state: State| StateRow {
            create_revision: state.create_revision,
            mod_revision: state.mod_revision,
            version: state.version,
            lease: (state.lease != 0).then(|| format!("{:x}", state.lease)),
            size: state.size,
        };
        Some(ChangeRow {
            key: Bytes(key),
            kind: change.kind()?.word(),
            changed: change.changed().into_iter().map(Changed::word).collect(),
            a: change.a.map(state),
            b: change.b.map(state),
        })
    }
}

impl Row for ChangeRow {
    fn text(&self) -> String {
        let key = self.key.shown();
        let one = |sign: &str, state: &StateRow| {
            let lease = state.lease.as_ref().map(|lease| format!(", lease {lease}")).unwrap_or_default();
            format!("{sign} {key}  revision {}, {}{lease}", state.mod_revision, size(state.size))
        };
        match (&self.a, &self.b) {
            (None, Some(b)) => one("+", b),
            (Some(a), None) => one("-", a),
            (None, None) => key,
            (Some(a), Some(b)) => {
                let mut text = format!("~ {key}  revision {} to {}", a.mod_revision, b.mod_revision);
                for what in &self.changed {
                    let lease = |state: &StateRow| state.lease.clone().unwrap_or_else(|| "none".into());
                    text.push_str(&match *what {
                        "lease" => format!(", lease {} to {}", lease(a), lease(b)),
                        "created" => ", deleted and created again".into(),
                        _ => format!(", value {} to {}", size(a.size), size(b.size)),
                    });
                }
                text
            }
        }
    }
}

fn print_keys(head: &DiffHead, keys: impl Iterator<Item = ChangeRow>, context: &Context) -> Result<()> {
    let people = context.output.format() == Format::Table;
    if people {
        context.output.raw(head.heading().as_bytes())?;
    }
    let mut list = List::begin(&context.output, head, "keys")?;
    for row in keys {
        list.row(&row)?;
    }
    list.end()?;
    if people {
        context.output.raw(head.summary().as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::tests::printed;
    use crate::format::diff::Totals;

    fn place(name: Name, revision: u64) -> Place {
        Place { name, revision, compact_revision: 0, hash_kv: None }
    }

    fn head(prefixes: Vec<PrefixRow>, counts: Counts) -> DiffHead {
        let (a, b) = (place(Name::File("a\n.db".into()), 4), place(Name::Id("0001-5".into()), 5));
        DiffHead { schema: 1, a, b, totals: counts, prefixes, notes: vec!["two".into()] }
    }

    #[test]
    fn names_are_the_documented_ones() {
        let counts = || Counts { added: 1, changed: 2, removed: 3 };
        let row = PrefixRow { prefix: Bytes(b"/a".into()), counts: counts(), bytes_a: 4, bytes_b: 5 };
        let head = head(vec![row], counts());
        let row = "{\"prefix\":\"/a\",\"added\":1,\"changed\":2,\"removed\":3,\"bytes_a\":4,\"bytes_b\":5}";
        assert_eq!(
            serde_json::to_string(&head).unwrap(),
            format!(
                "{{\"schema\":1,\"a\":{{\"file\":\"a\\n.db\",\"revision\":4,\"compact_revision\":0,\"hash_kv\":null}},\
                 \"b\":{{\"id\":\"0001-5\",\"revision\":5,\"compact_revision\":0,\"hash_kv\":null}},\
                 \"totals\":{{\"added\":1,\"changed\":2,\"removed\":3}},\"prefixes\":[{row}],\"notes\":[\"two\"]}}"
            )
        );
        assert_eq!(printed(&head, Format::Jsonl), format!("{row}\n"));
        assert_eq!(
            printed(&head, Format::Table),
            "A  a\\n.db  revision 4\nB  0001-5  revision 5\ntwo\n\n\
             PREFIX  ADDED  CHANGED  REMOVED  BYTES A  BYTES B\n/a          1        2        3      4 B      5 B\n\n\
             1 added, 2 changed, 3 removed\n"
        );
    }

    #[test]
    fn no_difference_is_said() {
        let none = head(Vec::new(), Totals::default().into());
        assert!(printed(&none, Format::Table).ends_with("two\nno difference\n"));
        assert_eq!(printed(&none, Format::Jsonl), "");
    }

    #[test]
    fn a_key_tells_what_happened_to_it() {
        let state = |modified, lease: Option<&str>, size| StateRow {
            create_revision: 2,
            mod_revision: modified,
            version: 1,
            lease: lease.map(Into::into),
            size,
        };
        let row = |changed: &[&'static str], a, b| ChangeRow {
            key: Bytes(b"k\xff".into()),
            kind: "changed",
            changed: changed.into(),
            a,
            b,
        };
        let all = row(&["value", "lease", "created"], Some(state(3, None, 9)), Some(state(7, Some("7b"), 2048)));
        for (row, text) in [
            (row(&[], None, Some(state(3, Some("7b"), 9))), "+ k\\xff  revision 3, 9 B, lease 7b"),
            (row(&[], Some(state(3, None, 9)), None), "- k\\xff  revision 3, 9 B"),
            (all, "~ k\\xff  revision 3 to 7, value 9 B to 2.0 KiB, lease none to 7b, deleted and created again"),
        ] {
            assert_eq!(row.text(), text);
        }
        let json = serde_json::to_string(&row(&["lease"], Some(state(3, None, 9)), None)).unwrap();
        assert_eq!(
            json,
            "{\"key\":{\"hex\":\"6bff\"},\"kind\":\"changed\",\"changed\":[\"lease\"],\"a\":{\"create_revision\":2,\
             \"mod_revision\":3,\"version\":1,\"lease\":null,\"size\":9},\"b\":null}"
        );
    }
}
