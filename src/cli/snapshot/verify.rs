//! `refloat snapshot verify`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};

use super::select::{find, own_lineage, read_catalog, with_stores};
use super::verify_document::{VerifyAllDocument, VerifyDocument};
use crate::catalog::find::LATEST;
use crate::catalog::{Filter, LineageId};
use crate::cli::context::{Context, Ending, aside};
use crate::cli::output::SCHEMA;
use crate::cli::remote;
use crate::engine::job::Task;
use crate::error::{Code, Error, Exit, Result};
use crate::snapshot::check::{self, Proof};
use crate::snapshot::copies::{Copies, verify_copies};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat snapshot verify latest
  refloat snapshot verify --all
  refloat snapshot verify --all --no-wait   as a job of the daemon
  refloat snapshot verify ./snapshot.db    a file of `etcdctl snapshot save`")]
#[command(group(ArgGroup::new("what").required(true).args(["subject", "all"])))]
pub struct VerifyArgs {
    /// Snapshot id, `latest`, or a file with a SHA-256 trailer (a name with `/`, or one that exists)
    #[arg(value_name = "ID|FILE")]
    pub subject: Option<String>,
    /// Every snapshot of this cluster
    #[arg(long)]
    pub all: bool,
    /// Queue it in the daemon and return at once; not for a file
    #[arg(long)]
    pub no_wait: bool,
}

/// What `verify` and `db diff` are about.
#[derive(Debug, PartialEq, Eq)]
pub enum Subject {
    All,
    Id(String),
    File(PathBuf),
}

impl VerifyArgs {
    pub fn subject(&self) -> Subject {
        match &self.subject {
            None => Subject::All,
            Some(text) => Subject::of(text),
        }
    }
}

impl Subject {
    /// A snapshot or a file: the one rule for every command that takes both.
    pub fn of(text: &str) -> Subject {
        // `<lineage>/<id>` is the form of an id that is never ambiguous; else a slash makes a path.
        let with_lineage = text.split_once('/').is_some_and(|(lineage, _)| lineage.parse::<LineageId>().is_ok());
        match text {
            // `latest` is always the snapshot; a file of that name is `./latest`.
            LATEST => Subject::Id(text.into()),
            _ if Path::new(text).exists() => Subject::File(text.into()),
            _ if with_lineage => Subject::Id(text.into()),
            _ if text.contains('/') => Subject::File(text.into()),
            _ => Subject::Id(text.into()),
        }
    }
}

pub(super) async fn verify(args: VerifyArgs, context: &Context) -> Result<Ending> {
    if args.no_wait {
        return queue(&args, context).await;
    }
    let (progress, cancel) = (context.progress.clone(), context.cancel.clone());
    let document = match args.subject() {
        Subject::File(path) => {
            let checked = aside(move || check::file(&path, Proof::Required, &*progress, &cancel)).await?;
            VerifyDocument::from(checked)
        }
        Subject::Id(id) => {
            context.become_owner()?;
            let each = with_stores(context, move |stores, node| {
                let shown = find(&stores, &id, &node, &*progress)?;
                let copies = verify_copies(&stores, &shown, &node, &*progress, &cancel)?;
                Ok(copies.into_iter().map(|copy| VerifyDocument::from(copy.checked)).collect::<Vec<_>>())
            });
            let mut each = each.await?;
            match each.len() {
                1 => each.remove(0),
                _ => return print_all(each, context),
            }
        }
        Subject::All => {
            context.become_owner()?;
            let all = with_stores(context, move |stores, node| {
                let catalog = read_catalog(&stores.list(), &*progress)?;
                let lineages = own_lineage(&stores, &catalog, &*progress);
                let mut results: Vec<VerifyDocument> = Vec::new();
                for loaded in catalog.shown(&Filter { lineages, node: None }, &node) {
                    let mut copies: Copies = loaded.unreadable.into_iter().map(Into::into).collect();
                    if let Some(shown) = &loaded.shown {
                        progress.step(&format!("verify {}", shown.manifest.id));
                        copies.extend(verify_copies(&stores, shown, &node, &*progress, &cancel)?);
                    }
                    results.extend(copies.into_iter().map(|copy| VerifyDocument::from(copy.checked)));
                }
                Ok(results)
            });
            return print_all(all.await?, context);
        }
    };
    context.output.document(&document)?;
    Ok(document.exit().map_or(Ending::Good, Ending::Bad))
}

async fn queue(args: &VerifyArgs, context: &Context) -> Result<Ending> {
    let subject = match args.subject() {
        Subject::All => "all".into(),
        Subject::Id(id) => id,
        Subject::File(path) => {
            return Err(Error::new(Code::Usage, "queue", path.display().to_string())
                .because("the daemon verifies what is in stores")
                .remedy("leave out --no-wait"));
        }
    };
    let client = remote::needed(context, "queue verification").await?;
    let task = Task::Verify { subject, store: context.store_names()?.into_iter().next() };
    remote::queue(&client, &task, context).await?;
    Ok(Ending::Good)
}

fn print_all(results: Vec<VerifyDocument>, context: &Context) -> Result<Ending> {
    let document = VerifyAllDocument { schema: SCHEMA, ok: results.iter().all(|r| r.ok), results };
    context.output.document(&document)?;
    Ok(if document.ok { Ending::Good } else { Ending::Bad(Exit::Data) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_a_file_or_an_id() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("latest").display().to_string();
        for (text, expected) in [
            (None, Subject::All),
            (Some("latest"), Subject::Id("latest".into())),
            (Some("00112233445566aa/0001"), Subject::Id("00112233445566aa/0001".into())),
            (Some("no/such/file"), Subject::File("no/such/file".into())),
            (Some("./latest"), Subject::File("./latest".into())),
            (Some(file.as_str()), Subject::File(file.clone().into())),
            // Tests run in the package's root.
            (Some("Cargo.toml"), Subject::File("Cargo.toml".into())),
        ] {
            let args = VerifyArgs { subject: text.map(String::from), all: text.is_none(), no_wait: false };
            assert_eq!(args.subject(), expected);
        }
    }
}
