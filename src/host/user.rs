//! Users: whose a directory is, and going on as that user for good.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::errno::Errno;
use nix::unistd::{Gid, Uid, User, geteuid, initgroups, setegid, seteuid, setgroups, setresgid, setresuid};

use crate::error::{Code, Error, Result};

/// Who owns something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    /// The user's own group; that of the directory for a user without an entry.
    pub gid: u32,
    /// `None`: no entry for this number.
    pub name: Option<String>,
}

impl Owner {
    /// `None` if the directory is missing, or cannot be there.
    pub fn of(dir: &Path) -> Result<Option<Owner>> {
        let on = dir.display().to_string();
        let meta = match std::fs::metadata(dir) {
            Ok(meta) => meta,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(e) => return Err(Error::io("look at directory", on, e)),
        };
        let user =
            User::from_uid(Uid::from_raw(meta.uid())).map_err(|e| Error::io("look up owner of", on, e.into()))?;
        Ok(Some(match user {
            Some(user) => Owner { uid: meta.uid(), gid: user.gid.as_raw(), name: Some(user.name) },
            None => Owner { uid: meta.uid(), gid: meta.gid(), name: None },
        }))
    }

    /// By name or as a number: what `chown` takes.
    pub fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.uid.to_string())
    }
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Makes the whole process that user's, with the user's groups, and makes sure that there is no way back.
pub fn go_on_as(owner: &Owner) -> Result<()> {
    let on = owner.shown();
    let failed = |e: Errno| Error::new(Code::Permission, "go on as user", &*on).because(std::io::Error::from(e));
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    // Groups first: without root they cannot be given up any more.
    match owner.name.as_deref().map(std::ffi::CString::new) {
        Some(Ok(name)) => initgroups(&name, gid).map_err(failed)?,
        _ => setgroups(&[gid]).map_err(failed)?,
    }
    setresgid(gid, gid, gid).map_err(failed)?;
    setresuid(uid, uid, uid).map_err(failed)?;
    let back = seteuid(Uid::from_raw(0)).is_ok() || (owner.gid != 0 && setegid(Gid::from_raw(0)).is_ok());
    if back || geteuid() != uid {
        return Err(Error::new(Code::Internal, "give up root for user", on)
            .because("this process can still become root again")
            .remedy("run refloat as that user, for instance with `sudo -u`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_an_owner() {
        let dir = tempfile::tempdir().unwrap();
        let owner = Owner::of(dir.path()).unwrap().unwrap();
        assert_eq!(owner.uid, geteuid().as_raw());
        assert_eq!(Owner::of(&dir.path().join("none")).unwrap(), None);
        let root = Owner::of(Path::new("/")).unwrap().unwrap();
        assert_eq!((root.uid, root.gid, root.shown().as_str()), (0, 0, "root"));
        assert_eq!(Owner { uid: 4711, gid: 1, name: None }.shown(), "4711");
    }
}
