//! Which snapshot a person means: `latest`, a whole id, or any prefix or suffix that fits one alone.

use std::cmp::Reverse;

use super::index::{Catalog, Entry};
use super::manifest::State;
use super::shown::Shown;
use super::value::{LineageId, Node};
use crate::error::{Code, Error, Result};

/// The word for [`Catalog::latest`].
pub const LATEST: &str = "latest";
/// So many candidates are named when an abbreviation fits several.
const MAX_NAMED: usize = 10;

impl Catalog<'_> {
    /// The lineage that this node's snapshots are about: that of the newest verified snapshot which this node took,
    /// else of the newest verified one of any node. Newest by the time in the id; imports never decide.
    pub fn current_lineage(&self, own: &Node) -> Option<LineageId> {
        let mut entries: Vec<Entry<'_>> = self.all_entries().filter(counts).collect();
        entries.sort_by_key(|e| (e.id().node() != own, Reverse(e.id().taken_at())));
        entries.iter().find(|e| self.verified(e).is_some()).map(Entry::lineage)
    }

    /// The newest verified snapshot of a lineage's newest timeline, this node's first. Without `lineage`, of the
    /// current one.
    ///
    /// `Code::NotFound` when there is none; an older timeline is never taken instead, because it is another history.
    pub fn latest(&self, own: &Node, lineage: Option<LineageId>) -> Result<Shown> {
        let none = |why: String| Error::new(Code::NotFound, "find snapshot", LATEST).because(why);
        let Some(lineage) = lineage.or_else(|| self.current_lineage(own)) else {
            return Err(none("no store holds a verified snapshot".into()).remedy("take one, or look at the whole list"));
        };
        let Some(timeline) = self.entries(lineage).filter(counts).map(|e| e.id().timeline()).max() else {
            return Err(none(format!("lineage {lineage} has no snapshot")));
        };
        let newest = || self.entries(lineage).filter(|e| counts(e) && e.id().timeline() == timeline);
        let mine = newest().filter(|e| e.id().node() == own).find_map(|e| self.verified(&e));
        mine.or_else(|| newest().find_map(|e| self.verified(&e))).ok_or_else(|| {
            none(format!("timeline {timeline:04}, the newest of lineage {lineage}, has no verified snapshot"))
                .remedy("name an older one by its id if its history is meant")
        })
    }

    /// Resolves `latest`, an id, or a prefix or suffix of one; `<lineage>/` before it narrows the search.
    ///
    /// `Code::Ambiguous` names the candidates, `Code::NotFound` when nothing fits, `Code::DataInvalid` when the one
    /// that fits cannot be read.
    pub fn find(&self, spec: &str, own: &Node, lineage: Option<LineageId>) -> Result<Shown> {
        if spec == LATEST {
            return self.latest(own, lineage);
        }
        let attempt = |code| Error::new(code, "find snapshot", spec);
        let candidates: Vec<Entry<'_>> = self
            .all_entries()
            .filter(|e| e.has_manifest() && lineage.is_none_or(|l| e.lineage() == l))
            .filter(|e| matches(spec, e))
            .collect();
        let exact: Vec<Entry<'_>> = candidates.iter().copied().filter(|e| is_whole(spec, e)).collect();
        let fitting = if exact.is_empty() { candidates } else { exact };
        match fitting.as_slice() {
            [] => Err(attempt(Code::NotFound)
                .because("no snapshot has such an id")
                .remedy("see `refloat snapshot list --all-lineages`")),
            [one] => {
                let loaded = self.load(one);
                loaded.shown.ok_or_else(|| {
                    let why: Vec<String> =
                        loaded.unreadable.iter().map(|u| format!("{}: {}", u.store, u.reason)).collect();
                    match why.is_empty() {
                        true => attempt(Code::NotFound).because("it was removed a moment ago"),
                        false => attempt(Code::DataInvalid).because(why.join("; ")),
                    }
                })
            }
            several => {
                let mut names: Vec<String> = several.iter().take(MAX_NAMED).map(whole).collect();
                if several.len() > MAX_NAMED {
                    names.push(format!("and {} more", several.len() - MAX_NAMED));
                }
                Err(attempt(Code::Ambiguous)
                    .because(format!("it fits {} snapshots: {}", several.len(), names.join(", ")))
                    .remedy("give more of the id"))
            }
        }
    }

    fn verified(&self, entry: &Entry<'_>) -> Option<Shown> {
        let usable = |s: &Shown| s.state == State::Verified && s.manifest.imported.is_none();
        self.load(entry).shown.filter(usable)
    }
}

/// Imports stand in timeline 0 and are never the newest.
fn counts(entry: &Entry<'_>) -> bool {
    entry.has_manifest() && entry.id().timeline() > 0
}

/// `<lineage>/<id>`: the form that is never ambiguous.
fn whole(entry: &Entry<'_>) -> String {
    format!("{}/{}", entry.lineage(), entry.id())
}

fn is_whole(spec: &str, entry: &Entry<'_>) -> bool {
    spec == whole(entry) || spec == entry.id().to_string()
}

fn matches(spec: &str, entry: &Entry<'_>) -> bool {
    let id = match spec.split_once('/') {
        Some((lineage, id)) if lineage == entry.lineage().to_string() => id,
        Some(_) => return false,
        None => spec,
    };
    let text = entry.id().to_string();
    !id.is_empty() && (text.starts_with(id) || text.ends_with(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::manifest::{Agreement, AgreementResult, Imported, Manifest};
    use crate::catalog::testing::{LINEAGE, MemStore, at, node, snapshot};
    use crate::store::Store;

    const OTHER: LineageId = LineageId([0xbb; 8]);

    fn latest(snapshots: &[Manifest], own: &str) -> Result<i64, Code> {
        let store = MemStore::new("a");
        snapshots.iter().for_each(|m| store.publish(m));
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        catalog.latest(&node(own), None).map(|s| s.manifest.revision).map_err(|e| e.code())
    }

    fn unverified(m: Manifest) -> Manifest {
        Manifest { checks: Vec::new(), ..m }
    }

    fn disputed(m: Manifest) -> Manifest {
        Manifest { agreement: vec![Agreement::new("member 2", AgreementResult::Different)], ..m }
    }

    #[test]
    fn latest_is_the_newest_verified_of_the_newest_timeline_own_node_first() {
        let s = snapshot;
        let of = |lineage, m: Manifest| Manifest { lineage, ..m };
        let imported = |m: Manifest| Manifest { imported: Some(Imported { from: "f".into(), at: at(0) }), ..m };
        let table: Vec<(&str, Vec<Manifest>, Result<i64, Code>)> = vec![
            ("nothing", vec![], Err(Code::NotFound)),
            ("one", vec![s(1, 10, 0, "cp1")], Ok(10)),
            ("newest of two", vec![s(1, 10, 0, "cp1"), s(1, 20, 9, "cp1")], Ok(20)),
            ("own before newer of others", vec![s(1, 10, 0, "cp1"), s(1, 20, 9, "cp2")], Ok(10)),
            ("others where there is no own", vec![s(1, 10, 0, "cp3"), s(1, 20, 9, "cp2")], Ok(20)),
            (
                "unverified and disputed never count",
                vec![s(1, 10, 0, "cp1"), unverified(s(1, 20, 1, "cp1")), disputed(s(1, 30, 2, "cp1"))],
                Ok(10),
            ),
            ("newest timeline, although its revision is lower", vec![s(1, 90, 0, "cp1"), s(2, 50, 9, "cp1")], Ok(50)),
            (
                "newest timeline, although only another node has it",
                vec![s(1, 90, 0, "cp1"), s(2, 50, 9, "cp2")],
                Ok(50),
            ),
            (
                "an older timeline is never taken instead",
                vec![s(1, 90, 0, "cp1"), unverified(s(2, 50, 9, "cp1"))],
                Err(Code::NotFound),
            ),
            ("imports are never latest", vec![imported(s(0, 99, 50, "cp1"))], Err(Code::NotFound)),
            ("own lineage", vec![s(1, 10, 0, "cp1"), of(OTHER, s(3, 90, 9, "cp2"))], Ok(10)),
            ("rebuilt: the lineage of the newest own", vec![s(1, 90, 0, "cp1"), of(OTHER, s(1, 5, 9, "cp1"))], Ok(5)),
            (
                "a disputed one does not make its lineage current",
                vec![s(1, 90, 0, "cp1"), of(OTHER, disputed(s(1, 5, 9, "cp1")))],
                Ok(90),
            ),
        ];
        for (name, snapshots, want) in table {
            assert_eq!(latest(&snapshots, "cp1"), want, "{name}");
        }
    }

    #[test]
    fn latest_of_a_named_lineage() {
        let store = MemStore::new("a");
        store.publish(&snapshot(1, 10, 0, "cp1"));
        store.publish(&Manifest { lineage: OTHER, ..snapshot(1, 20, 9, "cp2") });
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        assert_eq!(catalog.current_lineage(&node("cp1")), Some(LINEAGE));
        assert_eq!(catalog.current_lineage(&node("cp9")), Some(OTHER));
        let of = |l| catalog.latest(&node("cp1"), Some(l)).map(|s| s.manifest.revision).map_err(|e| e.code());
        assert_eq!(of(OTHER), Ok(20));
        assert_eq!(of(LineageId([1; 8])), Err(Code::NotFound));
    }

    #[test]
    fn abbreviations() {
        let store = MemStore::new("a");
        // The second id has the first as its prefix.
        for m in [snapshot(1, 10, 0, "cp1"), snapshot(1, 10, 0, "cp1.x"), snapshot(2, 20, 1, "cp2")] {
            store.publish(&m);
        }
        let elsewhere = Manifest { lineage: OTHER, ..snapshot(2, 20, 1, "cp2") };
        store.publish(&elsewhere);
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let find = |spec: &str, lineage| {
            let found = catalog.find(spec, &node("cp1"), lineage);
            found.map(|s| s.manifest.id.to_string()).map_err(|e| e.code())
        };
        let id = snapshot(1, 10, 0, "cp1").id.to_string();
        let longer = snapshot(1, 10, 0, "cp1.x").id.to_string();
        let second = snapshot(2, 20, 1, "cp2").id.to_string();
        assert_eq!(find(&id, None), Ok(id.clone()), "a whole id wins against longer ones");
        assert_eq!(find("cp1.x", None), Ok(longer));
        assert_eq!(find("-cp1", None), Ok(id));
        assert_eq!(find("0001", None), Err(Code::Ambiguous));
        assert_eq!(find("0002", None), Err(Code::Ambiguous), "one id in two lineages");
        assert_eq!(find("0002", Some(LINEAGE)), Ok(second.clone()));
        assert_eq!(find(&format!("{OTHER}/0002"), None), Ok(second.clone()));
        assert_eq!(find(&format!("{OTHER}/{second}"), None), Ok(second.clone()));
        assert_eq!(find("latest", None), Ok(second));
        for nothing in ["", "/", "0003", "P1", &format!("{LINEAGE}/"), "zz/0001"] {
            assert_eq!(find(nothing, None), Err(Code::NotFound), "{nothing:?}");
        }
        let ambiguous = catalog.find("0001", &node("cp1"), None).unwrap_err();
        assert!(ambiguous.why()[0].contains("it fits 2 snapshots: "), "{:?}", ambiguous.why());
    }

    #[test]
    fn one_that_cannot_be_read_says_why() {
        let store = MemStore::new("a");
        let m = snapshot(1, 10, 0, "cp1");
        store.put_text(&m.name().to_string(), m.to_bytes().unwrap());
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let error = catalog.find("cp1", &node("cp1"), None).unwrap_err();
        assert_eq!(error.code(), Code::DataInvalid);
        assert_eq!(error.why(), ["a: data object missing"]);
    }
}
