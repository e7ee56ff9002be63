//! Fragments laid over each other: tables merge, everything else is replaced by the later file.
//!
//! Each value keeps the file and line it came from, so that an error and `config show --origin` can name them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fragment::Fragment;
use crate::error::{Code, Error, Result};

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub file: Arc<Path>,
    /// From 1.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

pub(super) type Table = BTreeMap<String, Item>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub value: Value,
    pub origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Bool(bool),
    /// A kind of value that no key takes: a fraction or a date.
    Other(&'static str),
    List(Vec<Item>),
    Table(Table),
}

/// Later fragments win.
pub(super) fn merge(fragments: &[Fragment]) -> Result<Table> {
    let mut merged = Table::new();
    for fragment in fragments {
        overlay(&mut merged, parse(fragment)?);
    }
    Ok(merged)
}

fn overlay(base: &mut Table, over: Table) {
    for (key, item) in over {
        match (base.get_mut(&key), item) {
            (Some(Item { value: Value::Table(below), .. }), Item { value: Value::Table(above), .. }) => {
                overlay(below, above);
            }
            (_, item) => {
                base.insert(key, item);
            }
        }
    }
}

/// The item at a path such as `store.0.url`.
pub(super) fn lookup<'a>(table: &'a Table, path: &str) -> Option<&'a Item> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let mut item = table.get(first)?;
    for part in rest.split('.').filter(|part| !part.is_empty()) {
        item = match &item.value {
            Value::Table(table) => table.get(part)?,
            Value::List(items) => items.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(item)
}

fn parse(fragment: &Fragment) -> Result<Table> {
    let reader = Reader { text: &fragment.text, file: fragment.path.as_path().into() };
    let table = DeTable::parse(&fragment.text).map_err(|e| {
        let origin = reader.origin(e.span().map_or(0, |span| span.start));
        Error::new(Code::Config, "read configuration", origin.to_string())
            .because(e.message().replace('\n', ", "))
            .remedy("correct the TOML syntax there")
    })?;
    reader.table(table.get_ref())
}

struct Reader<'a> {
    text: &'a str,
    file: Arc<Path>,
}

impl Reader<'_> {
    fn origin(&self, offset: usize) -> Origin {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        Origin { file: self.file.clone(), line: 1 + before.iter().filter(|byte| **byte == b'\n').count() }
    }

    fn table(&self, table: &DeTable<'_>) -> Result<Table> {
        let mut items = Table::new();
        for (key, value) in table.iter() {
            let origin = self.origin(key.span().start);
            items.insert(key.get_ref().to_string(), self.item(value, origin)?);
        }
        Ok(items)
    }

    fn item(&self, value: &Spanned<DeValue<'_>>, origin: Origin) -> Result<Item> {
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                Value::Integer(parsed.map_err(|e| {
                    Error::new(Code::Config, "read configuration", origin.to_string())
                        .because(format!("{} is out of range: {e}", number.as_str()))
                })?)
            }
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Float(_) => Value::Other("a fraction"),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Table(table) => Value::Table(self.table(table)?),
            DeValue::Array(items) => {
                let items = items.iter().map(|item| self.item(item, self.origin(item.span().start)));
                Value::List(items.collect::<Result<_>>()?)
            }
        };
        Ok(Item { value, origin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragments(texts: &[&str]) -> Vec<Fragment> {
        let name = |i| format!("/{i}.toml").into();
        texts.iter().enumerate().map(|(i, text)| Fragment { path: name(i), text: text.to_string() }).collect()
    }

    /// `path = value  # origin` for each leaf.
    fn flat(table: &Table, prefix: &str, out: &mut Vec<String>) {
        for (key, item) in table {
            match &item.value {
                Value::Table(inner) => flat(inner, &format!("{prefix}{key}."), out),
                Value::List(items) => {
                    out.push(format!("{prefix}{key} = {} items # {}", items.len(), item.origin));
                }
                value => out.push(format!("{prefix}{key} = {value:?} # {}", item.origin)),
            }
        }
    }

    fn merged(texts: &[&str]) -> Vec<String> {
        let mut out = Vec::new();
        flat(&merge(&fragments(texts)).unwrap(), "", &mut out);
        out
    }

    #[test]
    fn tables_merge_scalars_and_lists_replace() {
        let below = "node = 'a'\n[etcd]\nprefix = '/x'\nendpoints = ['1', '2']\n[[store]]\nname = 's'\n[[store]]";
        let above = "\n[etcd]\n\nendpoints = ['3']\nmember = 7\n[[store]]\nretention.keep_last = 1";
        assert_eq!(
            merged(&[below, above]),
            [
                "etcd.endpoints = 1 items # /1.toml:4",
                "etcd.member = Integer(7) # /1.toml:5",
                "etcd.prefix = Text(\"/x\") # /0.toml:3",
                "node = Text(\"a\") # /0.toml:1",
                "store = 1 items # /1.toml:6",
            ]
        );
    }

    #[test]
    fn a_table_and_a_scalar_replace_each_other() {
        assert_eq!(merged(&["etcd = 1", "etcd.member = 'm'"]), ["etcd.member = Text(\"m\") # /1.toml:1"]);
        assert_eq!(merged(&["etcd.member = 'm'", "etcd = 1"]), ["etcd = Integer(1) # /1.toml:1"]);
    }

    #[test]
    fn paths_reach_into_lists() {
        let table = merge(&fragments(&["[[store]]\nname='a'\n[[store]]\n\nname = 'b'\nx.y = 1.5"])).unwrap();
        assert_eq!(lookup(&table, "store.1.name").unwrap().origin.line, 5);
        assert_eq!(lookup(&table, "store.1").unwrap().origin.line, 3);
        assert_eq!(lookup(&table, "store.1.x.y").unwrap().value, Value::Other("a fraction"));
        for path in ["store.2", "store.name", "store.1.name.x", "other", ""] {
            assert_eq!(lookup(&table, path), None, "{path}");
        }
    }

    #[test]
    fn syntax_errors_name_file_and_line() {
        for (text, line) in
            [("a = 1\nb = = 2", 2), ("[x]\n[x]", 2), ("a = 1\na = 2", 2), ("a = 99999999999999999999", 1)]
        {
            let error = merge(&fragments(&[text])).unwrap_err();
            assert_eq!((error.code(), error.on()), (Code::Config, format!("/0.toml:{line}").as_str()), "{text}");
            assert_eq!(error.why().len(), 1, "{text}");
        }
    }
}
