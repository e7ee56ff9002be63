//! `refloat discover`.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::context::{Context, Ending, aside};
use super::output::{Document, SCHEMA, printable, rfc3339, table};
use crate::discover::{CertificateFile, Fact, Found, Layout, Look, Other, Source, discover};
use crate::error::Result;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo refloat discover             what runs here, each fact with the file and flag that it was read from
  sudo refloat discover -o json     also every file that was looked at

It reads files and asks nobody; `sudo refloat setup` writes what it finds into the configuration. Exit code 66 where there
is neither etcd nor an apiserver.")]
pub struct DiscoverArgs {
    /// Look below this directory instead of /
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
}

#[derive(Debug, Serialize)]
pub struct DiscoverDocument {
    schema: u32,
    layout: Layout,
    facts: Vec<Row>,
    certificates: Vec<CertificateRow>,
    /// Members that were found as well.
    others: Vec<Other>,
    warnings: Vec<String>,
    looked: Vec<LookedRow>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    /// Lists are joined by commas.
    value: String,
    from: Source,
}

#[derive(Debug, Serialize)]
struct CertificateRow {
    role: &'static str,
    path: PathBuf,
    /// This and the following are `null` where it could not be read.
    subject: Option<String>,
    #[serde(serialize_with = "maybe_rfc3339")]
    not_before: Option<Timestamp>,
    #[serde(serialize_with = "maybe_rfc3339")]
    not_after: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct LookedRow {
    path: PathBuf,
    #[serde(flatten)]
    look: Look,
}

fn maybe_rfc3339<S: serde::Serializer>(
    time: &Option<Timestamp>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    match time {
        Some(time) => rfc3339(time, serializer),
        None => serializer.serialize_none(),
    }
}

pub async fn run(args: DiscoverArgs, context: &Context) -> Result<Ending> {
    let found = aside(move || discover(&args.root, Timestamp::now())).await?;
    context.output.document(&DiscoverDocument::new(found))?;
    Ok(Ending::Good)
}

impl DiscoverDocument {
    pub fn new(found: Found) -> Self {
        let facts = rows(&found);
        let row = |role, file: &CertificateFile| CertificateRow {
            role,
            path: file.path.clone(),
            subject: file.facts.as_ref().map(|facts| facts.subject.clone()),
            not_before: file.facts.as_ref().map(|facts| facts.not_before),
            not_after: file.facts.as_ref().map(|facts| facts.not_after),
        };
        let pair = found.client.iter().flat_map(|client| [row("ca", &client.ca), row("client", &client.cert)]);
        let looked = found.looked.into_iter().map(|(path, look)| LookedRow { path, look });
        DiscoverDocument {
            schema: SCHEMA,
            layout: found.layout,
            facts,
            certificates: pair.collect(),
            others: found.others,
            warnings: found.warnings,
            looked: looked.collect(),
        }
    }
}

fn rows(found: &Found) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add =
        |name, fact: Option<Fact<String>>| rows.extend(fact.map(|f| Row { name, value: f.value, from: f.from }));
    let list = |fact: &Option<Fact<Vec<String>>>| fact.as_ref().map(|fact| fact.map(|list| list.join(",")));
    let path = |fact: &Option<Fact<PathBuf>>| fact.as_ref().map(|fact| fact.map(|path| path.display().to_string()));
    if let Some(member) = &found.member {
        add("run", Some(member.run.map(ToString::to_string)));
        add("member", member.name.clone());
        add("client_urls", list(&member.client_urls));
        add("peer_urls", list(&member.peer_urls));
        // Peer URLs: clients cannot use them.
        add("initial_cluster", list(&member.initial_cluster));
        add("data_dir", path(&member.data_dir));
        add("wal_dir", path(&member.wal_dir));
        add("file_system", member.file_system.clone());
    }
    if let Some(api) = &found.apiserver {
        add("apiserver", Some(api.run.map(ToString::to_string)));
        add("apiserver_etcd", list(&api.etcd_servers));
        let uses = if api.local_only { "this host's member alone" } else { "not this host's member alone" };
        add("apiserver_uses", api.etcd_servers.as_ref().map(|fact| fact.map(|_| uses.to_string())));
        add("etcd_prefix", api.prefix.clone());
        add("events_etcd", api.events.clone());
    }
    found.endpoints.iter().for_each(|fact| add("endpoint", Some(fact.clone())));
    if let Some(client) = &found.client {
        let file = |path: &Path| Some(Fact::new(path.display().to_string(), client.from.clone()));
        add("ca_file", file(&client.ca.path));
        add("cert_file", file(&client.cert.path));
        add("key_file", file(&client.key));
    }
    rows
}

impl Document for DiscoverDocument {
    fn table(&self) -> String {
        let mut text = format!("layout: {}\n\n", self.layout.word());
        let row = |row: &Row| vec![row.name.to_string(), row.value.clone(), row.from.to_string()];
        text.push_str(&table(&["FACT", "VALUE", "FROM"], &[], self.facts.iter().map(row)));
        if !self.certificates.is_empty() {
            let time = |time: Option<Timestamp>| time.map(super::output::time).unwrap_or_else(|| "unreadable".into());
            let row = |one: &CertificateRow| {
                let subject = one.subject.clone().unwrap_or_default();
                vec![one.role.to_string(), time(one.not_after), subject, one.path.display().to_string()]
            };
            text.push('\n');
            text.push_str(&table(&["CERTIFICATE", "ENDS", "SUBJECT", "FILE"], &[], self.certificates.iter().map(row)));
        }
        for warning in &self.warnings {
            text.push_str(&format!("\nwarning: {}", printable(warning)));
        }
        if self.warnings.is_empty() { text } else { text + "\n" }
    }

    fn lines(&self) -> serde_json::Result<Vec<String>> {
        self.facts.iter().map(serde_json::to_string).collect()
    }
}
