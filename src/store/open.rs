//! Whether a directory is the store that the configuration means.
//!
//! The rules are a pure table ([`decide`]); the code around it looks and acts. Nothing is written before the rules
//! have spoken, and nothing at all in [`Mode::Read`].

use std::path::{Path, PathBuf};

use super::{Known, LocalStore, MARKER, Marker, shown};
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::fs::{Dir, Limits, Pending, STAGED_PREFIX, is_not_a_directory, is_out_of_space, is_refused};

/// What the caller is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// List and read; works without write permission. An empty directory is a store without objects.
    Read,
    /// List, read and remove: nothing is made but names in the trash, so it works on a full file system.
    Remove,
    /// Also create and delete; an existing empty directory becomes a store.
    Write,
    /// `refloat store init`: a person decided that this directory is to be a store.
    Init,
}

/// A store as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenStore {
    pub name: String,
    pub url: String,
    pub mode: Mode,
}

impl OpenStore {
    /// The absolute path in the URL, links not resolved. `Config` for anything but `file:///…`.
    pub fn path(&self) -> Result<PathBuf> {
        let OpenStore { name, url, .. } = self;
        let wrong = |why: &str, remedy: String| {
            Err(Error::new(Code::Config, "understand url of store", name)
                .because(format!("{url:?} {why}"))
                .remedy(remedy))
        };
        if url.starts_with('/') {
            return wrong("is a path", format!("write url = \"file://{url}\""));
        }
        let parsed = match url::Url::parse(url) {
            Ok(parsed) => parsed,
            Err(e) => return wrong(&format!("is no URL: {e}"), "write url = \"file:///absolute/path\"".into()),
        };
        if parsed.scheme() != "file" {
            return wrong(
                &format!("has the scheme {:?}", parsed.scheme()),
                "use file:///absolute/path; s3, gs and az come with a later version".into(),
            );
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return wrong("has a query or a fragment", "write `?` as %3F and `#` as %23".into());
        }
        match parsed.to_file_path() {
            Ok(path) if url.to_ascii_lowercase().starts_with("file:///") => Ok(path),
            _ => wrong("names no absolute path on this host", "write url = \"file:///absolute/path\"".into()),
        }
    }
}

/// What is behind the path.
#[derive(Debug)]
enum Found {
    Marker(String),
    Empty,
    /// Other content, with the first name of it.
    Other(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Use,
    Initialise,
    /// An empty directory, only looked at.
    Blank,
    Foreign,
    Vanished,
}

fn decide(found: &Found, mode: Mode, known_id: Option<&str>) -> Decision {
    match (found, mode, known_id) {
        (Found::Marker(_), Mode::Init, _) | (Found::Marker(_), _, None) => Decision::Use,
        (Found::Marker(id), _, Some(known)) if id == known => Decision::Use,
        (_, Mode::Init, _) => Decision::Initialise,
        (_, _, Some(_)) => Decision::Vanished,
        (Found::Empty, Mode::Write, None) => Decision::Initialise,
        (Found::Empty, Mode::Read | Mode::Remove, None) => Decision::Blank,
        (Found::Other(_), _, None) => Decision::Foreign,
    }
}

impl LocalStore {
    /// Opens the directory, once, by the rules of a store's marker. `known` is what was last seen at this path.
    ///
    /// Errors: `StoreMissing`, `StoreForeign`, `StoreVanished`, `StoreNotWritable`, `TooLittleSpace`, `Config`.
    pub fn open(config: &OpenStore, known: Option<&Known>) -> Result<LocalStore> {
        LocalStore::begin_open(config, known, &Limits::default())?.wait()
    }

    /// Starts to open it, so that one that hangs costs the others no time.
    pub fn begin_open(config: &OpenStore, known: Option<&Known>, limits: &Limits) -> Result<Pending<LocalStore>> {
        let path = config.path()?;
        let (patience, _) = super::local::patience(&path, &format!("{} at {}", config.name, path.display()), limits);
        let (config, known, limits) = (config.clone(), known.cloned(), limits.clone());
        patience.begin("open", limits.look, move || LocalStore::open_here(&config, path, known.as_ref(), &limits))
    }

    fn open_here(config: &OpenStore, path: PathBuf, known: Option<&Known>, limits: &Limits) -> Result<LocalStore> {
        crash::point!("store::open_store");
        let dir = open_dir(config, &path, known)?;
        let on = format!("{} at {}", config.name, location(&path, &dir));
        let foreign = |why: String| Error::new(Code::StoreForeign, "open store", &*on).because(why);
        if is_root(&dir)? {
            return Err(foreign("it is the root directory of this host".into())
                .remedy("point the store to a directory of its own; nothing in / is ever touched"));
        }
        let found = look(&dir).map_err(|e| match known {
            Some(_) if e.code() == Code::StoreForeign => e.with_code(Code::StoreVanished),
            _ => e,
        })?;
        let decision = decide(&found, config.mode, known.map(|k| k.store_id.as_str()));
        match decision {
            Decision::Foreign => {
                let first = match &found {
                    Found::Other(first) => first.as_str(),
                    _ => "",
                };
                return Err(foreign(format!("it has no {MARKER} but other content, such as {first:?}")).remedy(
                    format!(
                        "check the path; if this directory is to be the store, run `refloat store init {}`",
                        config.name
                    ),
                ));
            }
            Decision::Vanished => return Err(vanished(config, &on, &found, known)),
            Decision::Use | Decision::Initialise | Decision::Blank => {}
        }
        if matches!(config.mode, Mode::Write | Mode::Init) {
            check_writable(&dir, &on)?;
        }
        let id = match (decision, found) {
            (Decision::Initialise, _) => Marker::create(&dir).map_err(|e| explain(e, &dir, &on))?.id,
            (_, Found::Marker(id)) => id,
            _ => String::new(),
        };
        Ok(LocalStore::new(dir, path, config.name.clone(), id, config.mode != Mode::Read, limits))
    }
}

impl LocalStore {
    /// Only the directory, for one that another user is to own: made if it is missing, by the rules of
    /// [`LocalStore::open`]. `None` when it is there already and holds something.
    pub fn make_dir(config: &OpenStore) -> Result<Option<Dir>> {
        let dir = open_dir(config, &config.path()?, None)?;
        if is_root(&dir)? {
            return Ok(None);
        }
        Ok(matches!(look(&dir)?, Found::Empty).then_some(dir))
    }
}

fn open_dir(config: &OpenStore, path: &Path, known: Option<&Known>) -> Result<Dir> {
    let missing = |e: Error| {
        let err = Error::new(Code::StoreMissing, "open store", &*config.name).because(e);
        match known {
            Some(k) => err.remedy(format!("mount {}: store {} was there before", path.display(), k.store_id)),
            None => err.remedy(format!(
                "mount {0} or create it, for instance with `refloat store init {1}`",
                path.display(),
                config.name
            )),
        }
    };
    match Dir::open(path) {
        Err(e) if e.code() == Code::NotFound && config.mode == Mode::Init => {
            let (Some(parent), Some(leaf)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
                return Err(missing(e));
            };
            // One level only: a whole missing path is more likely a typing error or a missing mount.
            Dir::open(parent).map_err(missing)?.create_dirs(leaf)
        }
        Err(e) if e.code() == Code::NotFound => Err(missing(e)),
        Err(e) if is_refused(&e) && config.mode != Mode::Read => Err(not_writable(e, &config.name)),
        Err(e) if is_not_a_directory(&e) => {
            Err(e.during("open store", &*config.name).with_code(Code::StoreForeign).remedy("name a directory"))
        }
        Err(e) => Err(e.during("open store", &*config.name)),
        Ok(dir) => Ok(dir),
    }
}

/// The real path, and the configured one where it differs.
fn location(path: &Path, dir: &Dir) -> String {
    if dir.path() == path {
        path.display().to_string()
    } else {
        format!("{} (configured as {})", dir.path().display(), path.display())
    }
}

fn is_root(dir: &Dir) -> Result<bool> {
    Ok(dir.path() == Path::new("/") || dir.identity() == Dir::open(Path::new("/"))?.identity())
}

fn look(dir: &Dir) -> Result<Found> {
    if let Some(marker) = Marker::read(dir)? {
        return Ok(Found::Marker(marker.id));
    }
    let other = dir.entries()?.into_iter().find(|e| {
        // A leftover of an initialisation that was cut short is nobody else's content.
        e.name != "lost+found" && !e.name.to_str().is_some_and(|n| n.starts_with(STAGED_PREFIX))
    });
    Ok(other.map_or(Found::Empty, |e| Found::Other(shown(&e.name).into_owned())))
}

fn vanished(config: &OpenStore, on: &str, found: &Found, known: Option<&Known>) -> Error {
    let was = known.map_or("", |k| k.store_id.as_str());
    let why = match found {
        Found::Marker(id) => format!("it was store {was}, now it is store {id}"),
        Found::Empty => format!("it was store {was}, now it is empty"),
        Found::Other(first) => {
            format!("it was store {was}, now it has no {MARKER} but other content, such as {first:?}")
        }
    };
    Error::new(Code::StoreVanished, "open store", on).because(why).remedy(format!(
        "mount the disk that holds the store; if the change is wanted, run `refloat store init {}`",
        config.name
    ))
}

/// Finds out by doing: permissions, a file system mounted read-only, an immutable directory.
fn check_writable(dir: &Dir, on: &str) -> Result<()> {
    dir.stage().map(drop).map_err(|e| explain(e, dir, on))
}

fn explain(err: Error, dir: &Dir, on: &str) -> Error {
    if is_refused(&err) {
        return not_writable(err, on);
    }
    if is_out_of_space(&err) {
        let space = dir.space().map_or("no space".into(), |s| format!("{} of {} bytes free", s.free, s.total));
        return err.during("open store", format!("{on} ({space})")).with_code(Code::TooLittleSpace);
    }
    err.during("open store", on)
}

fn not_writable(err: Error, on: &str) -> Error {
    Error::new(Code::StoreNotWritable, "open store", on)
        .because(err)
        .remedy("give the user that runs refloat write access, or mount the file system writable")
}

#[cfg(test)]
mod tests;
