//! What the store commands print.

use serde::Serialize;

use crate::cli::failure::ErrorDocument;
use crate::cli::output::{self, Document, printable, table};

#[derive(Debug, Serialize)]
pub struct InitDocument {
    pub schema: u32,
    pub name: String,
    /// The id in the marker, hex.
    pub id: String,
    /// The real path behind links.
    pub location: String,
    /// `false`: it was a store before.
    pub created: bool,
}

#[derive(Debug, Serialize)]
pub struct ListDocument {
    pub schema: u32,
    pub stores: Vec<StoreRow>,
}

#[derive(Debug, Clone, Serialize)]
pub struct StoreRow {
    pub name: String,
    pub url: String,
    pub state: State,
    /// The id in the marker; `null` without one.
    pub id: Option<String>,
    /// Bytes that refloat may still use; `null` where unknown.
    pub free: Option<u64>,
    /// Bytes of the file system; `null` where unknown.
    pub total: Option<u64>,
    /// Why it is not ready.
    pub error: Option<ErrorDocument>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Ready,
    /// An empty directory: becomes a store on first use.
    Empty,
    Missing,
    Foreign,
    Vanished,
    NotWritable,
    Unreadable,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Empty => "empty",
            State::Missing => "missing",
            State::Foreign => "foreign",
            State::Vanished => "vanished",
            State::NotWritable => "not-writable",
            State::Unreadable => "unreadable",
        }
    }
}

#[derive(Debug, Serialize)]
pub struct CheckDocument {
    pub schema: u32,
    pub ok: bool,
    pub stores: Vec<CheckResult>,
}

#[derive(Debug, Clone, Serialize)]
pub struct CheckResult {
    pub name: String,
    pub ok: bool,
    /// What was tried and worked.
    pub checks: Vec<String>,
    pub error: Option<ErrorDocument>,
}

impl Document for InitDocument {
    fn table(&self) -> String {
        let done = if self.created { "made" } else { "was there already" };
        printable(&format!("store {} {done}: {} at {}", self.name, self.id, self.location)) + "\n"
    }
}

impl Document for ListDocument {
    fn table(&self) -> String {
        let size = |bytes: Option<u64>| bytes.map(output::size).unwrap_or_else(|| "-".into());
        let rows = self
            .stores
            .iter()
            .map(|s| vec![s.name.clone(), s.state.word().into(), size(s.free), size(s.total), s.url.clone()]);
        let mut text = table(&["NAME", "STATE", "FREE", "TOTAL", "URL"], &["FREE", "TOTAL"], rows);
        for store in &self.stores {
            if let Some(error) = &store.error {
                text.push_str(&trouble(&store.name, error));
            }
        }
        text
    }

    fn lines(&self) -> serde_json::Result<Vec<String>> {
        self.stores.iter().map(serde_json::to_string).collect()
    }
}

impl Document for CheckDocument {
    fn table(&self) -> String {
        let mut text = String::new();
        for store in &self.stores {
            match &store.error {
                None => text
                    .push_str(&(printable(&format!("store {}: ok ({})", store.name, store.checks.join(", "))) + "\n")),
                Some(error) => text.push_str(&trouble(&store.name, error)),
            }
        }
        text
    }

    fn lines(&self) -> serde_json::Result<Vec<String>> {
        self.stores.iter().map(serde_json::to_string).collect()
    }
}

fn trouble(name: &str, error: &ErrorDocument) -> String {
    let remedy = error.remedy.as_ref().map(|remedy| format!("; try: {remedy}")).unwrap_or_default();
    let line = format!("store {name}: failed to {} {}: {}{remedy}", error.what, error.on, error.why.join(": "));
    printable(&line) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Format;
    use crate::cli::output::tests::printed;
    use crate::error::{Code, Error};

    fn missing() -> ErrorDocument {
        let error =
            Error::new(Code::StoreMissing, "open store", "/usb").because("no such directory").remedy("mount it");
        (&error).into()
    }

    #[test]
    fn list() {
        let ready = StoreRow {
            name: "local".into(),
            url: "file:///s".into(),
            state: State::Ready,
            id: Some("ab".into()),
            free: Some(1 << 30),
            total: Some(4 << 30),
            error: None,
        };
        let gone = StoreRow {
            name: "usb".into(),
            url: "file:///usb".into(),
            state: State::Missing,
            id: None,
            free: None,
            total: None,
            error: Some(missing()),
        };
        let document = ListDocument { schema: 1, stores: vec![ready, gone] };
        assert_eq!(
            printed(&document, Format::Table),
            "NAME   STATE       FREE    TOTAL  URL\nlocal  ready    1.0 GiB  4.0 GiB  file:///s\nusb    missing        -        \
             -  file:///usb\nstore usb: failed to open store /usb: no such directory; try: mount it\n"
        );
        assert_eq!(
            printed(&document, Format::Jsonl).lines().next(),
            Some(
                "{\"name\":\"local\",\"url\":\"file:///s\",\"state\":\"ready\",\"id\":\"ab\",\"free\":1073741824,\
                 \"total\":4294967296,\"error\":null}"
            )
        );
    }

    #[test]
    fn check_and_init() {
        let good =
            CheckResult { name: "local".into(), ok: true, checks: vec!["marker".into(), "write".into()], error: None };
        let bad = CheckResult { name: "usb".into(), ok: false, checks: vec![], error: Some(missing()) };
        let document = CheckDocument { schema: 1, ok: false, stores: vec![good, bad] };
        assert_eq!(
            printed(&document, Format::Table),
            "store local: ok (marker, write)\nstore usb: failed to open store /usb: no such directory; try: mount it\n"
        );
        let document =
            InitDocument { schema: 1, name: "local".into(), id: "ab".into(), location: "/s".into(), created: true };
        assert_eq!(printed(&document, Format::Table), "store local made: ab at /s\n");
    }
}
