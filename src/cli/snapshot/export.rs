//! `refloat snapshot export`.

use std::path::PathBuf;

use clap::Args;

use super::document::ExportDocument;
use super::select::{find, with_stores};
use crate::catalog::{State, check};
use crate::cli::context::{Context, Ending};
use crate::cli::output::SCHEMA;
use crate::error::{Code, Error, Result};
use crate::snapshot::export;

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

pub(super) async fn export(args: ExportArgs, context: &Context) -> Result<Ending> {
    let (progress, cancel) = (context.progress.clone(), context.cancel.clone());
    let document = with_stores(context, move |stores, node| {
        let shown = find(&stores, &args.id, &node, &*progress)?;
        let manifest = &shown.manifest;
        if shown.state != State::Verified {
            progress.warn(&format!("{} is {}: see `refloat snapshot show`", manifest.id, shown.state.word()));
        }
        if manifest.not_checked.iter().any(|n| n.check == check::TRAILER) {
            progress.warn(
                "the file has no SHA-256 trailer: `etcdutl snapshot restore` takes it with --skip-hash-check alone",
            );
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
