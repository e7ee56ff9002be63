//! One import from the lock to the manifest: the order of the steps.

use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::copy::{self, Failed};
use super::outcome::{ImportRequest, Imported, Outcome};
use super::place::Placed;
use super::source::Source;
use crate::catalog::shown::Copy;
use crate::catalog::{self, Node, Origin, Shown};
use crate::config::Settings;
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::format::check::{Content, Options};
use crate::fs::{Dir, Limits};
use crate::snapshot::capture::Sunk;
use crate::snapshot::evidence;
use crate::snapshot::judge::{Judgement, Object, Trailer, judge, split};
use crate::snapshot::progress::Progress;
use crate::snapshot::publish::Publication;
use crate::snapshot::record::{self, ImportFacts};
use crate::snapshot::state::{limits, lock_for, node, open_state};
use crate::snapshot::stores::OpenStores;
use crate::store::LocalStore;

/// Findings that are named one by one.
const SHOWN: usize = 20;

/// Imports the file that `source` holds open. `DataInvalid` for one that is damaged or changes meanwhile, `CannotBeProven` for one without
/// trailer unless that is allowed.
pub async fn import(
    settings: &Settings,
    request: &ImportRequest,
    source: Source,
    progress: Arc<dyn Progress>,
    cancel: &CancellationToken,
) -> Result<Outcome> {
    let node = node(settings)?;
    let state = open_state(settings, cancel)?;
    let (patience, limits) = (settings.snapshot.max_duration, limits(settings, cancel));
    // What a take and an import find out about space and leftovers holds only while the other does nothing.
    let (what, called) = ("import snapshot on", "snapshot import");
    let _lock = lock_for(what, called, (&state, &limits), &node, patience, &*progress, cancel).await?;
    let stores = OpenStores::for_writing(settings, &request.stores, &state, cancel)?;
    let options = Options { wanted_key: evidence::namespace_key(&settings.etcd.prefix), ..Options::default() };
    let work = Work { request: request.clone(), node, state, limits, progress, cancel: cancel.clone(), options };
    tokio::task::spawn_blocking(move || work.run(stores, source))
        .await
        .map_err(|e| Error::new(Code::Internal, "import snapshot", "").because(e))?
}

/// One import with everything that its steps need.
pub(super) struct Work {
    pub(super) request: ImportRequest,
    pub(super) node: Node,
    pub(super) state: Dir,
    pub(super) limits: Limits,
    pub(super) progress: Arc<dyn Progress>,
    cancel: CancellationToken,
    options: Options,
}

/// The file, judged.
pub(super) struct Found {
    pub(super) source: Source,
    pub(super) judgement: Judgement,
    pub(super) content: Content,
    pub(super) proven: bool,
}

impl Work {
    fn run(self, mut stores: OpenStores, source: Source) -> Result<Outcome> {
        let found = self.look(source)?;
        crash::point!("import::verified");
        let placed = self.place(&stores, &found)?;
        if self.request.dry_run {
            return Ok(Outcome::Plan(Box::new(placed.plan(&found, &stores, &self.node))));
        }
        let Placed { placement, id, twin } = placed;
        if let Some(twin) = twin {
            return self.already(&mut stores, &placement, twin).map(|done| Outcome::Imported(Box::new(done)));
        }
        if matches!(placement.origin, Some(Origin::ForeignOrigin)) {
            let lineage = placement.lineage.id();
            self.progress.warn(&format!(
                "the file does not tell which cluster it is from and gets lineage {lineage} of its own; for further files \
                 of that cluster: --lineage {lineage}"
            ));
        }
        stores.drop_full(stores.check_room(&self.node, found.judgement.db_len))?;
        self.canceled()?;
        self.progress.step("copy");
        let (home, sunk) = loop {
            let home = stores.home()?;
            match copy::copy(&found.source, &home.store, &*self.progress, &self.cancel) {
                Ok(sunk) => break (home, sunk),
                Err(Failed::Source(error)) => return Err(error),
                Err(Failed::Store(error)) => stores.set_aside(&home.name, error)?,
            }
        };
        crash::point!("import::copied");
        self.progress.step("verify stored");
        let (object, judged) = self.read_back(&sunk, &home.store, &found)?;
        crash::point!("import::read_back");
        self.canceled()?;
        self.progress.step("publish");
        let now = Timestamp::now();
        let manifest = record::imported(ImportFacts {
            node: &self.node,
            id,
            stored_bytes: sunk.written.stored_bytes,
            object: &object,
            judgement: &judged,
            placement: &placement,
            tags: &self.request.tags,
            imported: catalog::Imported { from: found.source.name(), at: catalog::time::to_millis(now) },
        })?;
        let others: Vec<_> = stores.good().filter(|s| s.name != home.name).map(|s| s.store.clone()).collect();
        let mut outcomes = stores.failures();
        let seen = self.seen(&placement, &manifest, now);
        let publication = Publication { manifest: &manifest, placement: &placement, seen: &seen };
        let (published, warnings) = publication.run(sunk.staged, sunk.flushing.wait(), &home.store, &others)?;
        warnings.iter().for_each(|w| self.progress.warn(w));
        crash::point!("import::published");
        let holders: Vec<String> = published.iter().filter(|o| o.result.is_ok()).map(|o| o.name.clone()).collect();
        outcomes.extend(published);
        if holders.is_empty() {
            let first = outcomes.into_iter().find_map(|o| o.result.err());
            return Err(first.unwrap_or_else(|| Error::new(Code::Internal, "publish snapshot", "without any store")));
        }
        self.remember(&stores, &holders);
        let copies: Vec<Copy> = holders.iter().map(|s| Copy { store: s.clone(), ..Copy::default() }).collect();
        let done = Imported { snapshot: Shown::fold(manifest, &copies), stores: outcomes, already: false };
        Ok(Outcome::Imported(Box::new(self.marked(&stores, done, &[]))))
    }

    fn canceled(&self) -> Result<()> {
        match self.cancel.is_cancelled() {
            true => Err(Error::new(Code::Canceled, "import", self.request.file.display().to_string())
                .because("asked to stop; nothing was stored")),
            false => Ok(()),
        }
    }

    /// Judges the file; what is damaged, changes or cannot be proven ends here.
    fn look(&self, source: Source) -> Result<Found> {
        self.progress.step("verify");
        let on = source.name();
        let (_, has_trailer, _) = split(source.object.bytes().len());
        if !has_trailer && source.live {
            return Err(Error::new(Code::CannotBeProven, "import", &*on)
                .because("another process holds it, probably a running etcd: it changes while it is read")
                .remedy(
                    "take a snapshot of that etcd with `refloat snapshot take`, or copy the file once etcd is stopped",
                ));
        }
        let judgement = judge(&source.object, &on, self.options.clone(), &*self.progress, &self.cancel)?;
        source.check_unchanged()?;
        if let Some(first) = judgement.findings.first() {
            judgement.findings.iter().take(SHOWN).for_each(|f| self.progress.warn(&f.to_string()));
            return Err(Error::new(Code::DataInvalid, "import", &*on)
                .because(format!("{} findings, the first: {first}", judgement.findings.len()))
                .remedy(format!("nothing was stored; `refloat snapshot verify {on}` shows everything")));
        }
        let proven = judgement.trailer == Trailer::Good;
        if !proven {
            self.unproven(&on)?;
        }
        let content = judgement.content.clone().ok_or_else(|| Error::new(Code::DataInvalid, "read", &*on))?;
        Ok(Found { source, judgement, content, proven })
    }

    /// A database file that no snapshot stream made.
    fn unproven(&self, on: &str) -> Result<()> {
        let why = "it has no SHA-256 trailer: its pages are sound, its values cannot be proven";
        if !self.request.allow_unproven {
            return Err(Error::new(Code::CannotBeProven, "import", on).because(why).remedy(
                "use a file of `etcdctl snapshot save`, or add --allow-unproven: it is then listed as unverified and never \
                 counts as a backup",
            ));
        }
        self.progress.warn(&format!("{why}; it is imported as unverified"));
        Ok(())
    }

    /// The stored bytes must be those of the file, and as sound.
    fn read_back(&self, sunk: &Sunk, store: &LocalStore, found: &Found) -> Result<(Object, Judgement)> {
        let on = "the stored import";
        let object = copy::written(sunk, store, on)?;
        let judged = judge(&object, on, self.options.clone(), &*self.progress, &self.cancel)?;
        if let Some(damage) = judged.findings.iter().find(|f| f.check == "frame") {
            return Err(Error::new(Code::Io, "read back", on)
                .because(format!("what was written and what is read differ: {damage}"))
                .remedy("check the disk of that store"));
        }
        found.source.check_unchanged()?;
        let same = judged.db_sha256 == found.judgement.db_sha256 && judged.trailer == found.judgement.trailer;
        if same && judged.ok() { Ok((object, judged)) } else { Err(found.source.changed()) }
    }
}
