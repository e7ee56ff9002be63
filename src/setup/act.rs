//! Does what the plan says, in its order, each step durable before the next.

use std::path::Path;

use super::node::below;
use super::plan::Action;
use crate::error::{Code, Error, Result};
use crate::fs::Dir;

/// Directories and files. What is done stays done when a later step fails; running setup again goes on there.
pub fn files(root: &Path, actions: &[Action]) -> Result<()> {
    for action in actions {
        match action {
            Action::MakeDir { path, mode, owner } => {
                let (parent, name) = split(root, path)?;
                let made = parent.make_dir(name, *mode)?;
                if let Some(owner) = owner {
                    made.give_to(owner.uid, owner.gid)?;
                }
            }
            Action::Write { path, after, .. } => {
                let (parent, name) = split(root, path)?;
                parent.replace_public(name, after.as_bytes())?;
            }
            Action::Reload | Action::Enable { .. } | Action::Restart { .. } => {}
        }
        crate::crash::point!("setup::step");
    }
    Ok(())
}

fn split<'p>(root: &Path, path: &'p Path) -> Result<(Dir, &'p str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    match (path.parent(), name) {
        (Some(parent), Some(name)) => Ok((Dir::open(&below(root, parent))?, name)),
        _ => Err(Error::new(Code::CannotCreate, "write", path.display().to_string()).because("it has no usable name")),
    }
}
