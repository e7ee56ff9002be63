//! `refloat snapshot show`.

use clap::Args;
use jiff::Timestamp;

use super::document::{ShowDocument, Snapshot};
use super::select::{find, with_stores};
use crate::cli::context::{Context, Ending};
use crate::error::Result;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot show latest
  refloat snapshot show 0001-00000000000000004711 -o json")]
pub struct ShowArgs {
    /// Id, any unique beginning or end of it, or `latest`
    #[arg(value_name = "ID")]
    pub id: String,
}

pub(super) async fn show(args: ShowArgs, context: &Context) -> Result<Ending> {
    let progress = context.progress.clone();
    let shown = with_stores(context, move |stores, node| find(&stores, &args.id, &node, &*progress)).await?;
    context.output.document(&ShowDocument(Snapshot { shown, now: Timestamp::now() }))?;
    Ok(Ending::Good)
}
