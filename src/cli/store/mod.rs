//! `refloat store`.

mod document;
mod retire;

use clap::{Args, Subcommand};

use super::context::{Context, Ending, aside};
use super::failure::ErrorDocument;
use super::output::SCHEMA;
use super::owner;
use crate::catalog::Catalog;
use crate::config::StoreSettings;
use crate::error::{Code, Error, Exit, Result};
use crate::fs::{Holder, Limits, Pending};
use crate::host::user::Owner;
use crate::snapshot::{state, stores};
use crate::store::{KnownStores, LocalStore, Mode, Store};

pub use document::{CheckDocument, CheckResult, InitDocument, ListDocument, State, StoreRow};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the directory of a configured store a store, also one that holds other things
    Init(InitArgs),
    /// The configured stores with their state and space
    List(ListArgs),
    /// Look whether each store can be read, written and trusted
    Check(CheckArgs),
    /// Remove all snapshots of a cluster, a history or a node that is no more
    Retire(retire::RetireArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat store init local    writes the marker; nothing else in the directory is touched")]
pub struct InitArgs {
    /// Name from the configuration
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat store list -o json")]
pub struct ListArgs {}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat store check
  refloat store check --store local")]
pub struct CheckArgs {}

pub async fn run(command: Command, context: &Context) -> Result<Ending> {
    match command {
        Command::Init(args) => init(args, context).await,
        Command::List(args) => list(args, context).await,
        Command::Check(args) => check(args, context).await,
        Command::Retire(args) => retire::retire(args, context).await,
    }
}

async fn init(args: InitArgs, context: &Context) -> Result<Ending> {
    let settings = context.settings()?.clone();
    let one = context.store_named(&args.name)?.clone();
    if let Some(owner) = context.other_owner()? {
        hand_over(&one, &owner)?;
        owner::go_on_as(&owner, &settings.paths.state, &[&one])?;
    }
    let cancel = context.cancel.clone();
    let limits = state::limits(&settings, &cancel);
    let document = aside(move || {
        let dir = state::open_state(&settings, &cancel)?;
        let node = state::node(&settings)?;
        // Whoever changes what is known of stores holds the lock.
        let _lock = state::try_lock((&dir, &limits), &Holder::current("store init", node.as_str()))?
            .into_lock("make store", &one.name)?;
        let mut known = state::load_known(&dir, &limits)?;
        let open = |mode, known| LocalStore::begin_open(&stores::request(&one, mode), known, &limits)?.wait();
        let before = open(Mode::Read, None).ok().map(|s| s.id().to_string());
        let store = open(Mode::Init, known.get(&one.path))?;
        known.remember(&one.path, store.id(), None);
        state::save_known(&known, &dir, &limits)?;
        let created = before.as_deref() != Some(store.id());
        Ok(InitDocument {
            schema: SCHEMA,
            name: one.name,
            id: store.id().into(),
            location: store.path().display().to_string(),
            created,
        })
    });
    context.output.document(&document.await?)?;
    Ok(Ending::Good)
}

/// As root: what is to be the store belongs to the one who will write into it. Only a directory that is made here, or
/// one of root's that holds nothing yet, such as that of a new disk.
fn hand_over(one: &StoreSettings, owner: &Owner) -> Result<()> {
    let dir = match LocalStore::make_dir(&stores::request(one, Mode::Init))? {
        Some(made) => made,
        None => return Ok(()),
    };
    dir.give_to(owner.uid, owner.gid)
}

async fn list(_args: ListArgs, context: &Context) -> Result<Ending> {
    let (known, chosen, limits) = known_and_chosen(context)?;
    let rows = aside(move || Ok(chosen.iter().map(|one| row(one, &known, &limits)).collect()));
    let document = ListDocument { schema: SCHEMA, stores: rows.await? };
    context.output.document(&document)?;
    Ok(Ending::Good)
}

fn row(one: &StoreSettings, known: &KnownStores, limits: &Limits) -> StoreRow {
    let opening = LocalStore::begin_open(&stores::request(one, Mode::Read), known.get(&one.path), limits);
    let opened = opening.and_then(Pending::wait);
    let space = opened.as_ref().ok().and_then(|s| s.space().ok().flatten());
    let state = match &opened {
        Ok(store) if store.id().is_empty() => State::Empty,
        Ok(_) => State::Ready,
        Err(error) => match error.code() {
            Code::StoreMissing => State::Missing,
            Code::StoreForeign => State::Foreign,
            Code::StoreVanished => State::Vanished,
            Code::StoreNotWritable => State::NotWritable,
            _ => State::Unreadable,
        },
    };
    StoreRow {
        name: one.name.clone(),
        url: one.url.to_string(),
        state,
        id: opened.as_ref().ok().map(|s| s.id().to_string()).filter(|id| !id.is_empty()),
        free: space.map(|s| s.free),
        total: space.map(|s| s.total),
        error: opened.as_ref().err().map(ErrorDocument::from),
    }
}

async fn check(_args: CheckArgs, context: &Context) -> Result<Ending> {
    context.become_owner()?;
    let (known, chosen, limits) = known_and_chosen(context)?;
    let results = aside(move || {
        let outcome = |one: &StoreSettings| {
            let mut checks = Vec::new();
            let result = check_one(one, (&known, &limits), &mut checks);
            let exit = result.as_ref().err().map(Error::exit);
            let error = result.as_ref().err().map(ErrorDocument::from);
            (exit, CheckResult { name: one.name.clone(), ok: error.is_none(), checks, error })
        };
        Ok(chosen.iter().map(outcome).collect::<Vec<_>>())
    });
    let (exits, stores): (Vec<Option<Exit>>, Vec<CheckResult>) = results.await?.into_iter().unzip();
    context.output.document(&CheckDocument { schema: SCHEMA, ok: stores.iter().all(|s| s.ok), stores })?;
    Ok(exits.into_iter().flatten().next().map_or(Ending::Good, Ending::Bad))
}

/// Each look is noted once it succeeded. An empty directory is only looked at: a check makes no store.
fn check_one(one: &StoreSettings, (known, limits): (&KnownStores, &Limits), checks: &mut Vec<String>) -> Result<()> {
    let open = |mode| LocalStore::begin_open(&stores::request(one, mode), known.get(&one.path), limits)?.wait();
    let read = open(Mode::Read)?;
    if read.id().is_empty() {
        checks.push("empty, becomes a store on first use".into());
        return Ok(());
    }
    checks.push("marker".into());
    let catalog = Catalog::read(&[&read as &dyn Store])?;
    checks.push("list".into());
    if let Some(newest) = catalog.all_entries().filter(|e| e.has_manifest()).max_by_key(|e| e.id().taken_at()) {
        let loaded = catalog.load(&newest);
        if let Some(bad) = loaded.unreadable.first() {
            let error = Error::new(Code::DataInvalid, "read newest manifest in store", &one.name);
            return Err(error.because(format!("{}: {}", bad.name, bad.reason)));
        }
        checks.push("newest manifest".into());
    }
    // Writes a file that never gets a name.
    let write = open(Mode::Write)?;
    let (staged, name) = (write.stage()?, one.name.clone());
    staged.spend("write to", move |staged| {
        let failed = |e| Error::io("write to store", &name, e);
        std::io::Write::write_all(&mut staged.file(), b"refloat store check").map_err(failed)?;
        staged.file().sync_all().map_err(failed)
    })?;
    checks.push("write".into());
    Ok(())
}

fn known_and_chosen(context: &Context) -> Result<(KnownStores, Vec<StoreSettings>, Limits)> {
    let limits = state::limits(context.settings()?, &context.cancel);
    let known = stores::known(context.settings()?, &limits)?;
    Ok((known, context.stores()?.into_iter().cloned().collect(), limits))
}
