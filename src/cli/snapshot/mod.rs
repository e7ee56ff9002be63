//! `refloat snapshot`: one file a verb, the words that they print in `*document.rs`, what they share in `select`.

mod document;
mod export;
mod import;
mod list;
mod list_document;
mod mark;
mod select;
mod show;
mod take;
mod verify;
mod verify_document;

use clap::Subcommand;

use super::context::{Context, Ending};
use crate::catalog::note::{TAG_RULE, is_tag};
use crate::error::Result;

pub use document::{
    ExportDocument, Outcome, PreflightDocument, PreflightStore, ShowDocument, Snapshot, StoreOutcome, TakeDocument,
};
pub use export::ExportArgs;
pub use import::{ImportArgs, ImportDocument, ImportPlanDocument};
pub use list::ListArgs;
pub use list_document::{Kind, Others, StoredName};
pub use mark::{MarkDocument, PinArgs, TagArgs, UnpinArgs};
pub use show::ShowArgs;
pub use take::TakeArgs;
pub use verify::{Subject, VerifyArgs};

pub(super) use select::{find, with_stores};
pub use verify_document::{VerifyAllDocument, VerifyDocument};

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
    /// Verify a file of etcdctl, etcdutl, RKE2, k3s or kubespray and store it like a snapshot of our own
    Import(ImportArgs),
    /// Never remove this snapshot, whatever the retention says
    Pin(PinArgs),
    /// Leave a pinned snapshot to the retention again
    Unpin(UnpinArgs),
    /// Remember words with a snapshot
    Tag(TagArgs),
}

pub async fn run(command: Command, context: &Context) -> Result<Ending> {
    match command {
        Command::Take(args) => take::take(args, context).await,
        Command::List(args) => list::list(args, context).await,
        Command::Show(args) => show::show(args, context).await,
        Command::Verify(args) => verify::verify(args, context).await,
        Command::Export(args) => export::export(args, context).await,
        Command::Import(args) => import::import(args, context).await,
        Command::Pin(args) => mark::pin(args, context).await,
        Command::Unpin(args) => mark::unpin(args, context).await,
        Command::Tag(args) => mark::tag(args, context).await,
    }
}

fn tag(text: &str) -> std::result::Result<String, String> {
    if is_tag(text) { Ok(text.into()) } else { Err(TAG_RULE.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_words() {
        for (text, good) in [("before-upgrade", true), ("a=b", true), ("", false), ("two words", false), ("x\n", false)]
        {
            assert_eq!(tag(text).is_ok(), good, "{text}");
        }
        assert!(tag(&"x".repeat(64)).is_err());
    }
}
