//! `refloat snapshot`.

mod document;
mod verify;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::context::{Context, Ending, aside};
use super::failure::ErrorDocument;
use super::output::SCHEMA;
use crate::catalog::find::LATEST;
use crate::catalog::{Catalog, Filter, LineageId, Lineages, Node, Shown, State};
use crate::error::{Code, Error, Exit, Result};
use crate::format::check::Finding;
use crate::snapshot::check::{self, Proof};
use crate::snapshot::export;
use crate::snapshot::outcome::{self, TakeRequest};
use crate::snapshot::progress::Progress;
use crate::snapshot::state;
use crate::snapshot::stores::OpenStores;
use crate::snapshot::take::take as take_snapshot;
use crate::store::Store;

pub use document::{
    ExportDocument, Kind, ListDocument, Others, Outcome, PreflightDocument, PreflightStore, ShowDocument, Snapshot,
    StoreOutcome, StoredName, TakeDocument,
};
pub use verify::{VerifyAllDocument, VerifyDocument};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take a snapshot, verify the stored bytes, publish it in every store
    Take(TakeArgs),
    /// What there is, newest first
    List(ListArgs),
    /// Everything known about one snapshot
    Show(ShowArgs),
    /// Check stored bytes again: hashes, page tree, rows
    Verify(VerifyArgs),
    /// Write a snapshot as the file that `etcdutl snapshot restore` accepts
    Export(ExportArgs),
}

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
    #[arg(long = "tag", value_name = "TAG", value_parser = tag)]
    pub tags: Vec<String>,
    /// When another snapshot is under way, fail at once instead of waiting for it
    #[arg(long)]
    pub no_wait: bool,
    /// Check the member and the space of the stores, then stop
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot list
  refloat snapshot list --all-lineages -o json")]
pub struct ListArgs {
    /// Also snapshots of other clusters that share the store
    #[arg(long)]
    pub all_lineages: bool,
    /// Also the names of what refloat did not write
    #[arg(long)]
    pub foreign: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot show latest
  refloat snapshot show 0001-00000000000000004711 -o json")]
pub struct ShowArgs {
    /// Id, any unique beginning or end of it, or `latest`
    #[arg(value_name = "ID")]
    pub id: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot verify latest
  refloat snapshot verify --all
  refloat snapshot verify ./snapshot.db    a file of `etcdctl snapshot save`")]
#[group(id = "what", required = true, multiple = false)]
pub struct VerifyArgs {
    /// Snapshot id, `latest`, or a file with a SHA-256 trailer (a name with `/`, or one that exists)
    #[arg(value_name = "ID|FILE", group = "what")]
    pub subject: Option<String>,
    /// Every snapshot of this cluster
    #[arg(long, group = "what")]
    pub all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat snapshot export latest --to ./snapshot.db    then: etcdutl snapshot restore ./snapshot.db …")]
pub struct ExportArgs {
    /// Id, any unique beginning or end of it, or `latest`
    #[arg(value_name = "ID")]
    pub id: String,
    /// File to create; an existing one is never replaced
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
}

/// What `verify` and `db diff` are about.
#[derive(Debug, PartialEq, Eq)]
pub enum Subject {
    All,
    Id(String),
    File(PathBuf),
}

impl VerifyArgs {
    pub fn subject(&self) -> Subject {
        match &self.subject {
            None => Subject::All,
            Some(text) => Subject::of(text),
        }
    }
}

impl Subject {
    /// A snapshot or a file: the one rule for every command that takes both.
    pub fn of(text: &str) -> Subject {
        // `<lineage>/<id>` is the form of an id that is never ambiguous; else a slash makes a path.
        let with_lineage = text.split_once('/').is_some_and(|(lineage, _)| lineage.parse::<LineageId>().is_ok());
        match text {
            // `latest` is always the snapshot; a file of that name is `./latest`.
            LATEST => Subject::Id(text.into()),
            _ if Path::new(text).exists() => Subject::File(text.into()),
            _ if with_lineage => Subject::Id(text.into()),
            _ if text.contains('/') => Subject::File(text.into()),
            _ => Subject::Id(text.into()),
        }
    }
}

fn tag(text: &str) -> std::result::Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '=' | '/' | '+');
    if (1..=63).contains(&text.len()) && text.chars().all(allowed) {
        Ok(text.into())
    } else {
        Err("letters, digits and - _ . : = / +, at most 63".into())
    }
}

pub async fn run(command: Command, context: &Context) -> Result<Ending> {
    match command {
        Command::Take(args) => take(args, context).await,
        Command::List(args) => list(args, context).await,
        Command::Show(args) => show(args, context).await,
        Command::Verify(args) => verify(args, context).await,
        Command::Export(args) => export(args, context).await,
    }
}

async fn take(args: TakeArgs, context: &Context) -> Result<Ending> {
    let request = TakeRequest {
        member: args.member,
        tags: args.tags,
        no_wait: args.no_wait,
        stores: context.store_names()?,
        dry_run: args.dry_run,
    };
    let made = take_snapshot(context.settings()?, &request, context.progress.clone(), &context.cancel).await?;
    let taken = match made {
        outcome::Outcome::Taken(taken) => *taken,
        outcome::Outcome::Preflight(found) => return preflight(found, context),
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

fn preflight(found: outcome::Preflight, context: &Context) -> Result<Ending> {
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

/// Opens the stores for reading and works on them.
pub(super) async fn with_stores<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(OpenStores, Node) -> Result<T> + Send + 'static,
) -> Result<T> {
    let settings = context.settings()?;
    let stores = OpenStores::for_reading(settings, &context.store_names()?)?;
    for (name, error) in stores.failed() {
        context.progress.warn(&format!("store {name}: {}", error.line()));
    }
    let node = state::node(settings)?;
    aside(move || work(stores, node)).await
}

async fn list(args: ListArgs, context: &Context) -> Result<Ending> {
    let progress = context.progress.clone();
    let listing = with_stores(context, move |stores, node| {
        let catalog = read_catalog(&stores.list(), &*progress)?;
        let lineages = if args.all_lineages { Lineages::All } else { own_lineage(&stores, &catalog, &*progress) };
        Ok(catalog.listing(&Filter { lineages, node: None }, &node))
    });
    let listing = listing.await?;
    let now = Timestamp::now();
    let named = |kind, store: String, name: String, why| StoredName { kind, store, name, why };
    let mut found: Vec<StoredName> = Vec::new();
    found.extend(listing.foreign_names.into_iter().map(|f| named(Kind::Foreign, f.store, f.name, None)));
    found.extend(listing.unfinished.into_iter().map(|u| named(Kind::Unfinished, u.store, u.name, None)));
    found.extend(listing.unreadable.into_iter().map(|u| named(Kind::Unreadable, u.store, u.name, Some(u.reason))));
    let document = ListDocument {
        schema: SCHEMA,
        snapshots: listing.snapshots.into_iter().map(|shown| Snapshot { shown, now }).collect(),
        other_lineages: listing.other_lineages.iter().map(ToString::to_string).collect(),
        others: Others::new(listing.foreign, args.foreign, found),
    };
    context.output.document(&document)?;
    Ok(Ending::Good)
}

async fn show(args: ShowArgs, context: &Context) -> Result<Ending> {
    let progress = context.progress.clone();
    let shown = with_stores(context, move |stores, node| find(&stores, &args.id, &node, &*progress)).await?;
    context.output.document(&ShowDocument(Snapshot { shown, now: Timestamp::now() }))?;
    Ok(Ending::Good)
}

pub(super) fn find(stores: &OpenStores, id: &str, node: &Node, progress: &dyn Progress) -> Result<Shown> {
    let catalog = read_catalog(&stores.list(), progress)?;
    // An id means one snapshot wherever it is; `latest` means this node's cluster.
    let lineage = match own_lineage(stores, &catalog, progress) {
        Lineages::One(lineage) if id == LATEST => Some(lineage),
        _ => None,
    };
    catalog.find(id, node, lineage)
}

/// The cluster that commands without an id are about: the one whose snapshot this node took last. A node that has
/// taken none goes by what the stores hold, which in a shared store may be another cluster: that is said.
fn own_lineage(stores: &OpenStores, catalog: &Catalog<'_>, progress: &dyn Progress) -> Lineages {
    if let Some(lineage) = stores.lineage() {
        return Lineages::One(lineage);
    }
    let several = catalog.lineages().filter(|l| catalog.entries(*l).any(|e| e.has_manifest())).nth(1).is_some();
    if several {
        progress.warn(
            "the stores hold snapshots of several clusters and this node has taken none of them: see --all-lineages",
        );
    }
    Lineages::Current
}

/// One store that cannot be listed does not hide what the others hold; an error when none can.
fn read_catalog<'a>(stores: &[&'a dyn Store], progress: &dyn Progress) -> Result<Catalog<'a>> {
    let (catalog, mut failed) = Catalog::read_available(stores);
    if catalog.stores().is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1);
    }
    for (store, error) in failed {
        progress.warn(&format!("store {store}: {}", error.line()));
    }
    Ok(catalog)
}

async fn verify(args: VerifyArgs, context: &Context) -> Result<Ending> {
    let (progress, cancel) = (context.progress.clone(), context.cancel.clone());
    let document = match args.subject() {
        Subject::File(path) => {
            let checked = aside(move || check::file(&path, Proof::Required, &*progress, &cancel)).await?;
            VerifyDocument::from(checked)
        }
        Subject::Id(id) => {
            let each = with_stores(context, move |stores, node| {
                let shown = find(&stores, &id, &node, &*progress)?;
                verify_copies(&stores, &shown, &node, &*progress, &cancel)
            });
            let mut each = each.await?;
            match each.len() {
                1 => each.remove(0),
                _ => return print_all(each, context),
            }
        }
        Subject::All => {
            let all = with_stores(context, move |stores, node| {
                let catalog = read_catalog(&stores.list(), &*progress)?;
                let lineages = own_lineage(&stores, &catalog, &*progress);
                let listing = catalog.listing(&Filter { lineages, node: None }, &node);
                // What cannot even be looked at is not sound.
                let mut results: Vec<VerifyDocument> =
                    listing.unreadable.iter().map(|u| unreadable(&u.name, &u.store, "manifest", &u.reason)).collect();
                for shown in &listing.snapshots {
                    progress.step(&format!("verify {}", shown.manifest.id));
                    results.extend(verify_copies(&stores, shown, &node, &*progress, &cancel)?);
                }
                Ok(results)
            });
            return print_all(all.await?, context);
        }
    };
    context.output.document(&document)?;
    Ok(document.exit().map_or(Ending::Good, Ending::Bad))
}

/// One result a store that holds it.
fn verify_copies(
    stores: &OpenStores,
    shown: &Shown,
    node: &Node,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Vec<VerifyDocument>> {
    let mut results = Vec::new();
    for opened in stores.good().filter(|s| shown.stores.contains(&s.name)) {
        let looked = check::snapshot(&opened.store, shown, progress, cancel);
        let mut checked = match looked {
            Ok(checked) => checked,
            Err(error) if error.code() == Code::Canceled => return Err(error),
            // One that cannot be read says nothing about the others, and is not left out.
            Err(error) => {
                let why = error.line();
                results.push(unreadable(&shown.manifest.id.to_string(), &opened.name, "read", &why));
                continue;
            }
        };
        let recorded = stores.writable(opened).and_then(|s| check::record(&s, &shown.manifest, node, &checked));
        if let Err(error) = recorded {
            let why = error.why().pop().unwrap_or_default();
            checked.notes.push(format!("the result could not be recorded in store {}: {why}", opened.name));
        }
        let mut document = VerifyDocument::from(checked);
        if shown.stores.len() > 1 {
            document.subject = format!("{} in store {}", document.subject, opened.name);
        }
        results.push(document);
    }
    Ok(results)
}

fn unreadable(what: &str, store: &str, check: &'static str, why: &str) -> VerifyDocument {
    VerifyDocument::from(check::Checked {
        subject: format!("{what} in store {store}"),
        findings: vec![Finding { page: None, check, message: why.into() }],
        hash_kv: None,
        not_covered: Vec::new(),
        notes: Vec::new(),
    })
}

fn print_all(results: Vec<VerifyDocument>, context: &Context) -> Result<Ending> {
    let document = VerifyAllDocument { schema: SCHEMA, ok: results.iter().all(|r| r.ok), results };
    context.output.document(&document)?;
    Ok(if document.ok { Ending::Good } else { Ending::Bad(Exit::Data) })
}

async fn export(args: ExportArgs, context: &Context) -> Result<Ending> {
    let (progress, cancel) = (context.progress.clone(), context.cancel.clone());
    let document = with_stores(context, move |stores, node| {
        let shown = find(&stores, &args.id, &node, &*progress)?;
        let manifest = &shown.manifest;
        if shown.state != State::Verified {
            progress.warn(&format!("{} is {}: see `refloat snapshot show`", manifest.id, shown.state.word()));
        }
        // A copy that a later look found damaged comes last; one that turns out to be makes way for the next.
        let mut holders: Vec<_> = stores.good().filter(|s| shown.stores.contains(&s.name)).collect();
        holders.sort_by_key(|s| shown.damaged_stores.contains(&s.name));
        let mut outcome = Err(Error::new(Code::NotFound, "export snapshot", manifest.id.to_string())
            .because("no store that could be opened holds it"));
        for holder in holders {
            outcome = export::export(&holder.store, manifest, &args.to, &*progress, &cancel);
            match &outcome {
                Err(error) if matches!(error.code(), Code::DataInvalid | Code::Io | Code::NotFound) => {
                    let why = error.why().join(": ");
                    progress.warn(&format!("the copy in store {} is not sound: {error}: {why}", holder.name));
                }
                _ => break,
            }
        }
        let exported = outcome?;
        Ok(ExportDocument {
            schema: SCHEMA,
            id: manifest.id.to_string(),
            file: args.to.display().to_string(),
            bytes: exported.bytes,
            sha256: exported.sha256.to_string(),
        })
    });
    context.output.document(&document.await?)?;
    Ok(Ending::Good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_a_file_or_an_id() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("latest").display().to_string();
        for (text, expected) in [
            (None, Subject::All),
            (Some("latest"), Subject::Id("latest".into())),
            (Some("00112233445566aa/0001"), Subject::Id("00112233445566aa/0001".into())),
            (Some("no/such/file"), Subject::File("no/such/file".into())),
            (Some("./latest"), Subject::File("./latest".into())),
            (Some(file.as_str()), Subject::File(file.clone().into())),
            // Tests run in the package's root.
            (Some("Cargo.toml"), Subject::File("Cargo.toml".into())),
        ] {
            let args = VerifyArgs { subject: text.map(String::from), all: text.is_none() };
            assert_eq!(args.subject(), expected);
        }
    }

    #[test]
    fn tags_are_words() {
        for (text, good) in [("before-upgrade", true), ("a=b", true), ("", false), ("two words", false), ("x\n", false)]
        {
            assert_eq!(tag(text).is_ok(), good, "{text}");
        }
        assert!(tag(&"x".repeat(64)).is_err());
    }
}
