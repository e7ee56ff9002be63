//! Writes a snapshot as the file that `etcdutl snapshot restore` takes: the database and its trailer (promise 10).

use std::fs::File;
use std::io::Write;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::judge::{Object, split};
use super::open;
use super::progress::Progress;
use crate::catalog::{Digest, Manifest};
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::fs::Dir;
use crate::store::LocalStore;

/// What was written.
#[derive(Debug)]
pub struct Exported {
    /// With the trailer.
    pub bytes: u64,
    /// Of the database without its trailer.
    pub sha256: Digest,
}

/// Decodes into a nameless file beside the target, compares the hash, then gives it its name. An existing target
/// is never replaced.
pub fn export(
    store: &LocalStore,
    manifest: &Manifest,
    to: &Path,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Exported> {
    let on = to.display().to_string();
    let refused = |why: &str| Error::new(Code::CannotCreate, "export to", &on).because(why.to_string());
    let name = to.file_name().and_then(|n| n.to_str()).ok_or_else(|| refused("it names no file"))?;
    if to.symlink_metadata().is_ok() {
        return Err(Error::new(Code::AlreadyExists, "export to", &on)
            .because("the file exists")
            .remedy("name another file, or remove that one first"));
    }
    let parent = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let dir = Dir::open(parent).map_err(|e| e.with_code(Code::CannotCreate).during("export to", &on))?;
    let (object, _) = open::stored(store, manifest)?;
    let Object::Framed(framed) = object else {
        return Err(Error::new(Code::Internal, "export", &on).because("the stored object has no frames"));
    };
    crash::point!("export::opened");
    let total = framed.plain_len();
    if dir.space()?.free < total {
        return Err(Error::new(Code::TooLittleSpace, "export to", &on)
            .because(format!("{} bytes are free, {total} are needed", dir.space()?.free))
            .remedy("export to another file system"));
    }
    let staged = dir.stage()?;
    let failed = |e: std::io::Error| Error::io("write", &on, e);
    let (mut file, mut hasher): (&File, Sha256) = (staged.file(), Sha256::new());
    let (db_len, _, _) = split(total);
    let (mut done, mut raw, mut plain) = (0u64, Vec::new(), Vec::new());
    for i in 0..framed.frame_count() {
        if cancel.is_cancelled() {
            return Err(Error::new(Code::Canceled, "export to", &on));
        }
        let read = framed.frame_stored(i, &mut raw).and_then(|()| framed.decode(i, &raw, &mut plain));
        read.map_err(|e| e.into_error("read", &manifest.id.to_string()))?;
        let database = db_len.saturating_sub(done).min(plain.len() as u64);
        hasher.update(&plain[..database as usize]);
        file.write_all(&plain).map_err(failed)?;
        done += plain.len() as u64;
        progress.bytes(done, Some(total), "B");
    }
    let sha256 = Digest(hasher.finalize().into());
    if sha256 != manifest.sha256.db {
        return Err(Error::new(Code::DataInvalid, "export", manifest.id.to_string())
            .because("SHA-256 of the database is not the one in its manifest")
            .remedy("see `refloat snapshot verify`; nothing was written"));
    }
    staged.publish(&dir, name)?;
    Ok(Exported { bytes: done, sha256 })
}
