//! Commands that write into state or stores do so as the owner of the state directory, never as root beside it.
//!
//! What an earlier run as root left there is not taken over silently: whose files root hands out is root's own decision,
//! so it is named with the command that does it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::catalog::LineageId;
use crate::config::StoreSettings;
use crate::error::{Code, Error, Result};
use crate::host::user::{self, Owner};
use crate::store::MARKER;

/// Whose `state` is, when this process is root and that is somebody else.
pub fn other(state: &Path) -> Result<Option<Owner>> {
    if !user::is_root() {
        return Ok(None);
    }
    Ok(Owner::of(state)?.filter(|owner| owner.uid != 0))
}

/// From here on this process is `owner`. `Permission` when root's files are in the way.
pub fn go_on_as(owner: &Owner, state: &Path, stores: &[&StoreSettings]) -> Result<()> {
    if let Some((place, first)) = of_root(state, stores) {
        let shown = owner.shown();
        let chown = owner.name.as_ref().map_or(format!("{}:{}", owner.uid, owner.gid), |name| format!("{name}:"));
        return Err(Error::new(Code::Permission, "go on as user", &*shown)
            .because(format!("{} belongs to root, from a run before: {shown} could not use it", first.display()))
            .remedy(format!("look at it, then `chown -hR --from=root {chown} {}`", place.display())));
    }
    user::go_on_as(owner)
}

/// The first thing of root's in state or a store, with the directory it is in. Looks at what stands between the owner
/// and the work: the files in the state directory, and the directories of stores; a single file deep within that cannot
/// be read is named by whoever reads it.
fn of_root(state: &Path, stores: &[&StoreSettings]) -> Option<(PathBuf, PathBuf)> {
    let found =
        entries(state).find(|path| is_roots(path) && !path.ends_with("lost+found")).map(|path| (state.into(), path));
    found.or_else(|| {
        stores.iter().find_map(|store| {
            let own: Vec<PathBuf> = entries(&store.path).filter(|path| is_own(path)).collect();
            let directories = own.iter().filter(|path| is_directory(path));
            let within = directories.flat_map(|path| entries(path)).filter(|path| is_directory(path));
            let mut all = own.iter().cloned().chain(within);
            all.find(|path| is_roots(path)).map(|path| (store.path.clone(), path))
        })
    })
}

/// What a directory holds; nothing for what is none.
fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let list = std::fs::read_dir(dir).into_iter().flatten().flatten();
    list.map(|entry| entry.path())
}

/// What refloat makes in a store; other things there are nobody's business.
fn is_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name == MARKER || name.parse::<LineageId>().is_ok())
}

fn is_directory(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

fn is_roots(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.uid() == 0)
}
