//! Which lineage a file joins, and whether it is there already (design §7): pure, but for reading what the stores say.
//!
//! An import begins no timeline, closes no lineage and raises no alarm, whatever it holds.

use std::collections::BTreeSet;

use crate::catalog::manifest::MAX_BYTES;
use crate::catalog::{
    Catalog, Digest, KnownLineage, LineageFile, LineageId, Name, Node, Origin, Place, Placement, Reason, Shown,
    SnapshotId, State, TimelineId, UidEvidence, lineage_of_uid,
};
use crate::error::{Code, Error, Result};

/// Decides the lineage: that of the UID in the file, else the one asked for, else one for files of unknown origin.
///
/// `unused` is such a lineage that an import left without any snapshot when it was killed; `random` becomes a new one.
pub fn belongs(
    uid: &UidEvidence,
    asked: Option<LineageId>,
    known: &[KnownLineage],
    unused: Option<LineageId>,
    random: [u8; 8],
) -> Result<Placement> {
    let placed = |lineage: Place<LineageId>, origin: Option<Origin>, reason: Reason| Placement {
        lineage,
        origin,
        timeline: Place::Existing(TimelineId::IMPORTS),
        timeline_facts: None,
        alarm: false,
        reasons: vec![reason],
    };
    let find = |id: LineageId| known.iter().find(|l| l.id == id);
    let refused = |code, asked: LineageId| Error::new(code, "import into lineage", asked.to_string());
    match (uid, asked) {
        (UidEvidence::Readable(uid), asked) => {
            let own = lineage_of_uid(uid);
            if let Some(asked) = asked.filter(|asked| *asked != own) {
                return Err(refused(Code::Usage, asked)
                    .because(format!("the UID of the namespace kube-system in the file says lineage {own}"))
                    .remedy("leave out --lineage"));
            }
            let lineage = if find(own).is_some() { Place::Existing(own) } else { Place::New(own) };
            Ok(placed(lineage, Some(Origin::Uid { kube_system_uid: uid.clone() }), Reason::Uid))
        }
        (_, Some(asked)) => match find(asked) {
            Some(lineage) => Ok(placed(Place::Existing(asked), lineage.origin.clone(), Reason::NoUid)),
            None => Err(refused(Code::NotFound, asked)
                .because("no store knows it")
                .remedy("see `refloat snapshot list --all-lineages`, or leave out --lineage")),
        },
        (_, None) => {
            let lineage = unused.map_or(Place::New(LineageId(random)), Place::Existing);
            Ok(placed(lineage, Some(Origin::ForeignOrigin), Reason::NoUid))
        }
    }
}

/// Lineages that hold files of unknown origin.
pub fn foreign(known: &[KnownLineage]) -> BTreeSet<LineageId> {
    known.iter().filter(|l| l.origin == Some(Origin::ForeignOrigin)).map(|l| l.id).collect()
}

/// A lineage of this node's own making for a file of unknown origin that never came to be.
pub fn unused(catalog: &Catalog<'_>, known: &[KnownLineage], node: &Node) -> Option<LineageId> {
    let empty = |l: &LineageId| catalog.entries(*l).all(|e| !e.has_manifest());
    let made_here = |l: &LineageId| {
        let name = Name::Lineage(*l).to_string();
        let files = catalog.stores().iter().filter_map(|store| store.read(&name, MAX_BYTES).ok());
        let mut read = files.filter_map(|bytes| LineageFile::parse(&bytes, *l).ok());
        read.next().is_some_and(|file| file.seen.node == *node) && read.all(|file| file.seen.node == *node)
    };
    foreign(known).into_iter().filter(empty).find(made_here)
}

/// The snapshot with these very bytes, if one of `lineages` has it. One that is worth less than the file (damaged, or
/// without the trailer that the file has) does not count.
pub fn twin(
    catalog: &Catalog<'_>,
    lineages: &BTreeSet<LineageId>,
    revision: i64,
    db: Digest,
    proven: bool,
) -> Option<Shown> {
    let entries = lineages.iter().flat_map(|l| catalog.entries(*l));
    let candidates = entries.filter(|e| e.has_manifest() && e.id().revision() == revision);
    let mut same = candidates.filter_map(|e| catalog.load(&e).shown).filter(|s| s.manifest.sha256.db == db);
    same.find(|s| s.state != State::Unverified || !proven)
}

/// An id that nothing in the lineage has, also no leftover: two files may have the same revision and time.
pub fn free_id(catalog: &Catalog<'_>, lineage: LineageId, wanted: SnapshotId) -> Result<SnapshotId> {
    let taken: BTreeSet<&SnapshotId> =
        catalog.entries(lineage).map(|e| e.id()).filter(|id| id.timeline() == 0).collect();
    let failed = || Error::new(Code::DataInvalid, "name import", wanted.to_string());
    let mut id = wanted.clone();
    while taken.contains(&id) {
        let later = id.taken_at().checked_add(jiff::SignedDuration::from_millis(1));
        let later = later.map_err(|e| failed().because(e))?;
        id =
            SnapshotId::new(id.timeline(), id.revision(), later, id.node().clone()).map_err(|e| failed().because(e))?;
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Manifest;
    use crate::catalog::history::Seen;
    use crate::catalog::testing::{LINEAGE, MemStore, at, node, snapshot};
    use crate::store::Store;

    const UID: &str = "3f0e8a52-6c1d-4b7e-9a60-1d2c3b4a5968";
    const RANDOM: [u8; 8] = [9; 8];

    fn known(id: LineageId, origin: Origin) -> KnownLineage {
        KnownLineage { id, origin: Some(origin), timelines: Vec::new() }
    }

    #[test]
    fn the_uid_decides_then_the_person_then_chance() {
        let own = lineage_of_uid(UID);
        let readable = || UidEvidence::Readable(UID.into());
        let uid = || Origin::Uid { kube_system_uid: UID.into() };
        let stores = [known(own, uid()), known(LINEAGE, Origin::Local)];
        let new = LineageId(RANDOM);
        type Want = Result<(Place<LineageId>, Option<Origin>), Code>;
        // Case, UID in the file, lineage asked for, lineages known, one left unused.
        type Row<'a> = (&'a str, UidEvidence, Option<LineageId>, &'a [KnownLineage], Option<LineageId>, Want);
        let table: Vec<Row> = vec![
            ("known UID", readable(), None, &stores, None, Ok((Place::Existing(own), Some(uid())))),
            ("new UID", readable(), None, &[], None, Ok((Place::New(own), Some(uid())))),
            ("UID and the same asked for", readable(), Some(own), &[], None, Ok((Place::New(own), Some(uid())))),
            ("UID and another asked for", readable(), Some(LINEAGE), &stores, None, Err(Code::Usage)),
            (
                "encrypted, asked for",
                UidEvidence::Encrypted,
                Some(LINEAGE),
                &stores,
                None,
                Ok((Place::Existing(LINEAGE), Some(Origin::Local))),
            ),
            ("asked for, nobody knows it", UidEvidence::Absent, Some(new), &stores, None, Err(Code::NotFound)),
            (
                "nothing known",
                UidEvidence::Absent,
                None,
                &stores,
                None,
                Ok((Place::New(new), Some(Origin::ForeignOrigin))),
            ),
            (
                "one left by a killed import",
                UidEvidence::Encrypted,
                None,
                &stores,
                Some(LINEAGE),
                Ok((Place::Existing(LINEAGE), Some(Origin::ForeignOrigin))),
            ),
        ];
        for (case, uid, asked, known, unused, want) in table {
            let got = belongs(&uid, asked, known, unused, RANDOM);
            if let Ok(placement) = &got {
                assert!(placement.timeline == Place::Existing(TimelineId::IMPORTS) && !placement.alarm, "{case}");
                assert!(placement.timeline_facts.is_none() && !placement.reasons.is_empty(), "{case}");
            }
            assert_eq!(got.map(|p| (p.lineage, p.origin)).map_err(|e| e.code()), want, "{case}");
        }
    }

    #[test]
    fn the_same_bytes_are_found_again_unless_the_file_is_worth_more() {
        let store = MemStore::new("a");
        let manifest = snapshot(0, 10, 0, "cp1");
        store.publish(&manifest);
        store.publish(&Manifest { checks: vec!["stored".into()], ..snapshot(0, 20, 1, "cp1") });
        store.publish(&snapshot(1, 30, 2, "cp2"));
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let db = manifest.sha256.db;
        let find = |lineages: &[LineageId], revision, db, proven| {
            twin(&catalog, &lineages.iter().copied().collect(), revision, db, proven).map(|s| s.manifest.revision)
        };
        assert_eq!(find(&[LINEAGE], 10, db, true), Some(10));
        assert_eq!(find(&[LINEAGE], 30, db, true), Some(30), "one that was taken, and exported");
        assert_eq!(find(&[LINEAGE], 20, db, false), Some(20));
        assert_eq!(find(&[LINEAGE], 20, db, true), None, "now it has a trailer");
        assert_eq!(find(&[LINEAGE], 10, Digest([7; 32]), true), None);
        assert_eq!(find(&[LineageId([1; 8])], 10, db, true), None);
    }

    #[test]
    fn an_id_is_never_used_twice() {
        let store = MemStore::new("a");
        let (first, second) = (snapshot(0, 10, 0, "cp1"), snapshot(0, 11, 0, "cp1"));
        store.publish(&first);
        // What a killed import left counts too.
        store.put_text(&second.data_name().to_string(), "abc");
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        for taken in [&first, &second] {
            let id = free_id(&catalog, LINEAGE, taken.id.clone()).unwrap();
            let later = at(0).checked_add(jiff::SignedDuration::from_millis(1)).unwrap();
            assert_eq!((id.taken_at(), id.revision()), (later, taken.revision));
        }
        let free = snapshot(0, 12, 0, "cp1").id;
        assert_eq!(free_id(&catalog, LINEAGE, free.clone()).unwrap(), free);
    }

    #[test]
    fn only_an_empty_lineage_of_this_nodes_making_is_used_again() {
        let write = |store: &MemStore, lineage: LineageId, by: &str, origin: Origin| {
            let seen = Seen { node: node(by), at: at(0), revision: 1, reasons: Vec::new() };
            let file = LineageFile { schema: 1, lineage, origin, seen };
            store.put_text(&Name::Lineage(lineage).to_string(), serde_json::to_vec(&file).unwrap());
        };
        let ids: Vec<LineageId> = (1..=4u8).map(|n| LineageId([n; 8])).collect();
        let store = MemStore::new("a");
        write(&store, ids[0], "cp1", Origin::ForeignOrigin);
        store.publish(&Manifest { lineage: ids[0], ..snapshot(0, 10, 0, "cp1") });
        write(&store, ids[1], "cp2", Origin::ForeignOrigin);
        write(&store, ids[2], "cp1", Origin::Local);
        write(&store, ids[3], "cp1", Origin::ForeignOrigin);
        let left = Manifest { lineage: ids[3], ..snapshot(0, 10, 0, "cp1") };
        store.put_text(&left.data_name().to_string(), "abc");
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let known = crate::catalog::read_known(&catalog);
        assert_eq!(foreign(&known), [ids[0], ids[1], ids[3]].into());
        assert_eq!(unused(&catalog, &known, &node("cp1")), Some(ids[3]));
        assert_eq!(unused(&catalog, &known, &node("cp3")), None);
    }
}
