//! Makes a snapshot exist: evidence, data, read-back, manifest; store by store, one failing alone.
//!
//! Takes and imports alike. The manifest is the commit mark (law 5). A kill before it leaves data that no listing counts
//! and that the next take or import sweeps.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::catalog::{Digest, Manifest, Name, Placement, history::Seen, write_evidence};
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::format::ReadAt;
use crate::fs::{Aside, Staged};
use crate::store::{LocalStore, Store};

/// What became of the snapshot in one store.
#[derive(Debug)]
pub struct StoreOutcome {
    pub name: String,
    pub result: Result<()>,
}

/// Everything that is written, and where it lies until then.
pub struct Publication<'a> {
    pub manifest: &'a Manifest,
    pub placement: &'a Placement,
    pub seen: &'a Seen,
}

impl Publication<'_> {
    fn data_name(&self) -> String {
        Name::Data(self.manifest.lineage, self.manifest.id.clone(), self.manifest.codec).to_string()
    }

    /// Publishes into the store that holds the staged file, if that reached the disk, then copies into the others.
    /// Gives one outcome a store and the warnings.
    pub fn run(
        &self,
        staged: Aside<Staged>,
        flushed: Result<()>,
        home: &Arc<LocalStore>,
        others: &[Arc<LocalStore>],
    ) -> Result<(Vec<StoreOutcome>, Vec<String>)> {
        let on = format!("store {}", home.name());
        // The bytes stay readable through their own handle, whatever becomes of the first store.
        let source = home.read_back(&staged, &on)?;
        let mut warnings = Vec::new();
        let mut outcomes = Vec::new();
        let mut note = |store: &Arc<LocalStore>, result: Result<Vec<String>>| {
            let result = result.map(|more| warnings.extend(more));
            outcomes.push(StoreOutcome { name: store.name().into(), result });
        };
        note(home, flushed.and_then(|()| self.publish_home(staged, home)));
        for store in others {
            note(store, self.publish_copy(&source, store));
        }
        Ok((outcomes, warnings))
    }

    /// Copies a published snapshot into stores that lack it.
    pub fn copy(&self, source: &dyn ReadAt, stores: &[Arc<LocalStore>]) -> (Vec<StoreOutcome>, Vec<String>) {
        let mut warnings = Vec::new();
        let copied = stores.iter().map(|store| {
            let result = self.publish_copy(source, store).map(|more| warnings.extend(more));
            StoreOutcome { name: store.name().into(), result }
        });
        (copied.collect(), warnings)
    }

    fn publish_home(&self, staged: Aside<Staged>, store: &LocalStore) -> Result<Vec<String>> {
        not_canceled(store)?;
        store.check_marker()?;
        // From the data to its manifest nobody may take the one for a leftover.
        let _writing = store.share()?;
        let warnings = write_evidence(store, self.placement, self.seen)?;
        crash::point!("take::evidence");
        let name = self.data_name();
        store.publish(staged, &name)?;
        crash::point!("take::data");
        // Its bytes were read back and judged before they got their name; the name must lead to them.
        let len = store.open(&name)?.len();
        self.same_size(len, &name, store)?;
        self.commit(store)?;
        Ok(warnings)
    }

    fn publish_copy(&self, source: &dyn ReadAt, store: &LocalStore) -> Result<Vec<String>> {
        not_canceled(store)?;
        store.check_marker()?;
        let _writing = store.share()?;
        let warnings = write_evidence(store, self.placement, self.seen)?;
        let name = self.data_name();
        store.put(&name, source)?;
        let stored = store.open(&name)?;
        self.same_size(stored.len(), &name, store)?;
        let digest = sha256(&*stored).map_err(|e| Error::io("read back", &name, e))?;
        if digest != self.manifest.sha256.stored {
            return Err(Error::new(Code::Io, "read back", format!("{name} in store {}", store.name()))
                .because("SHA-256 of what the store returns is not that of what was written")
                .remedy("check the disk of that store"));
        }
        self.commit(store)?;
        Ok(warnings)
    }

    fn same_size(&self, len: u64, name: &str, store: &LocalStore) -> Result<()> {
        let wanted = self.manifest.size.stored;
        if len == wanted {
            return Ok(());
        }
        Err(Error::new(Code::Io, "read back", format!("{name} in store {}", store.name()))
            .because(format!("{len} bytes instead of {wanted}"))
            .remedy("check the disk of that store"))
    }

    fn commit(&self, store: &LocalStore) -> Result<()> {
        not_canceled(store)?;
        let name = Name::Manifest(self.manifest.lineage, self.manifest.id.clone()).to_string();
        let bytes =
            self.manifest.to_bytes().map_err(|e| Error::new(Code::Internal, "encode manifest", &name).because(e))?;
        crash::point!("take::before_manifest");
        store.create(&name, &bytes)?;
        crash::point!("take::manifest");
        // A last look: what the manifest says exists must still be there.
        let data = self.data_name();
        let len = store.open(&data).map_err(|e| e.with_code(Code::Io).during("look again for", &data))?.len();
        self.same_size(len, &data, store)
    }
}

/// The last moments at which a stop leaves nothing that is listed.
fn not_canceled(store: &LocalStore) -> Result<()> {
    match store.limits().cancel.is_cancelled() {
        true => Err(Error::new(Code::Canceled, "publish snapshot in store", store.name())),
        false => Ok(()),
    }
}

/// SHA-256 of a whole object.
pub fn sha256(object: &dyn ReadAt) -> std::io::Result<Digest> {
    let (mut hasher, mut offset, mut piece) = (Sha256::new(), 0, vec![0; 1 << 20]);
    while offset < object.len() {
        let n = (object.len() - offset).min(piece.len() as u64) as usize;
        object.read_at(offset, &mut piece[..n])?;
        hasher.update(&piece[..n]);
        offset += n as u64;
    }
    Ok(Digest(hasher.finalize().into()))
}

#[cfg(test)]
mod tests;
