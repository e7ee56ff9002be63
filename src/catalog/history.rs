//! What stores know about lineages and timelines, and how it is written down.
//!
//! `lineage.json` and the timeline files are create-only evidence. Two nodes may write the same one at the same time:
//! what identifies it is equal on both, who saw it and when (`seen`) is not compared.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::evidence::{KnownLineage, KnownPoint, KnownTimeline, Placement, TimelineFacts, lineage_of_uid};
use super::id::SnapshotId;
use super::index::Catalog;
use super::manifest::{MAX_BYTES, ManifestError, SCHEMA, State, check_schema};
use super::names::Name;
use super::time::rfc3339;
use super::value::{EtcdId, LineageId, Node, TimelineId};
use crate::error::{Code, Error, Result};
use crate::store::Store;

/// What makes a lineage what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "origin", rename_all = "kebab-case")]
pub enum Origin {
    /// The UID of the kube-system namespace; the id follows from it.
    Uid { kube_system_uid: String },
    /// No UID could be read: a random id, known to this store alone.
    Local,
    /// Imported files that belong to nothing else.
    ForeignOrigin,
}

/// Who wrote an evidence file and what was seen; never compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub node: Node,
    #[serde(with = "rfc3339")]
    pub at: Timestamp,
    /// Revision of the snapshot that made it necessary.
    pub revision: i64,
    /// The reasons of the decision, for people.
    #[serde(default)]
    pub reasons: Vec<String>,
}

/// `<lineage>/lineage.json`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineageFile {
    pub schema: u32,
    pub lineage: LineageId,
    #[serde(flatten)]
    pub origin: Origin,
    pub seen: Seen,
}

/// `<lineage>/timelines/<number>-<hex>.json`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineFile {
    pub schema: u32,
    pub lineage: LineageId,
    pub timeline: TimelineId,
    /// The timeline that it branched off; null for the first.
    pub parent: Option<TimelineId>,
    pub cluster_id: EtcdId,
    pub first_revision: i64,
    pub seen: Seen,
}

fn parse_limited<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, ManifestError> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ManifestError::TooLarge(bytes.len() as u64));
    }
    check_schema(bytes)?;
    serde_json::from_slice(bytes).map_err(|e| ManifestError::Shape(e.to_string()))
}

fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, ManifestError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|e| ManifestError::Shape(e.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

impl LineageFile {
    /// Reads the file and holds it against its name and, where there is one, its UID.
    pub fn parse(bytes: &[u8], lineage: LineageId) -> Result<Self, ManifestError> {
        let file: LineageFile = parse_limited(bytes)?;
        if file.lineage != lineage {
            return Err(ManifestError::NotItsName("lineage"));
        }
        match &file.origin {
            Origin::Uid { kube_system_uid } if lineage_of_uid(kube_system_uid) != lineage => {
                Err(ManifestError::NotItsName("UID"))
            }
            _ => Ok(file),
        }
    }
}

impl TimelineFile {
    /// Reads the file and holds it against its name, which its content must hash to.
    pub fn parse(bytes: &[u8], lineage: LineageId, timeline: TimelineId) -> Result<Self, ManifestError> {
        let file: TimelineFile = parse_limited(bytes)?;
        if file.lineage != lineage {
            return Err(ManifestError::NotItsName("lineage"));
        }
        if file.timeline != timeline {
            return Err(ManifestError::NotItsName("timeline"));
        }
        if file.facts().hex() != timeline.hex {
            return Err(ManifestError::NotItsName("parent, cluster id or first revision"));
        }
        Ok(file)
    }

    pub fn facts(&self) -> TimelineFacts {
        TimelineFacts { parent: self.parent, cluster_id: self.cluster_id, first_revision: self.first_revision }
    }
}

/// Writes the evidence files of a placement into one store, before the first snapshot that names them.
///
/// Returns warnings about files that are there but cannot be read: they stop no snapshot. A file that says something
/// else is `Code::DataInvalid`.
pub fn write_evidence(store: &dyn Store, placement: &Placement, seen: &Seen) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    let lineage = placement.lineage.id();
    if let Some(origin) = &placement.origin {
        let file = LineageFile { schema: SCHEMA, lineage, origin: origin.clone(), seen: seen.clone() };
        let name = Name::Lineage(lineage).to_string();
        let same = |bytes: &[u8]| LineageFile::parse(bytes, lineage).map(|there| there.origin == file.origin);
        warnings.extend(create_same(store, &name, to_bytes(&file), &same)?);
    }
    if let Some(facts) = placement.timeline_facts {
        let timeline = placement.timeline.id();
        let TimelineFacts { parent, cluster_id, first_revision } = facts;
        let seen = seen.clone();
        let file = TimelineFile { schema: SCHEMA, lineage, timeline, parent, cluster_id, first_revision, seen };
        let name = Name::Timeline(lineage, timeline).to_string();
        let same = |bytes: &[u8]| TimelineFile::parse(bytes, lineage, timeline).map(|there| there.facts() == facts);
        warnings.extend(create_same(store, &name, to_bytes(&file), &same)?);
    }
    Ok(warnings)
}

type Same<'a> = &'a dyn Fn(&[u8]) -> Result<bool, ManifestError>;

/// Creates `name`, or makes sure that the one which is there says the same.
fn create_same(
    store: &dyn Store,
    name: &str,
    bytes: Result<Vec<u8>, ManifestError>,
    same: Same<'_>,
) -> Result<Option<String>> {
    let attempt = |e: Error| e.during("write evidence", format!("{name} in store {}", store.name()));
    let bytes = bytes.map_err(|e| Error::new(Code::Internal, "encode", name).because(e))?;
    match store.create(name, &bytes) {
        Ok(()) => return Ok(None),
        Err(e) if e.code() == Code::AlreadyExists => {}
        Err(e) => return Err(attempt(e)),
    }
    match same(&store.read(name, MAX_BYTES).map_err(attempt)?) {
        Ok(true) => Ok(None),
        Ok(false) => Err(attempt(
            Error::new(Code::DataInvalid, "compare", name)
                .because("the file that is there says something else")
                .remedy("look at both; a folder copied from another store must be moved out of this one"),
        )),
        Err(unreadable) => Ok(Some(format!("{name} in store {} cannot be used: {unreadable}", store.name()))),
    }
}

/// How many of the newest snapshots of a timeline are always looked at; older ones at growing distances.
const NEAR_POINTS: usize = 8;
/// Gives up looking for verified snapshots in a timeline after so many that are not.
const MAX_READS: usize = 1024;

/// What the stores of a catalogue know about lineages and timelines.
///
/// A file that cannot be read is skipped: what it would have said is then unknown, and that decides nothing.
pub fn read_known(catalog: &Catalog<'_>) -> Vec<KnownLineage> {
    catalog.lineages().map(|lineage| known_lineage(catalog, lineage)).collect()
}

fn known_lineage(catalog: &Catalog<'_>, id: LineageId) -> KnownLineage {
    let read = |store: usize, name: Name| catalog.store(store)?.read(&name.to_string(), MAX_BYTES).ok();
    let origin = catalog.lineage_files(id).find_map(|store| {
        let bytes = read(store, Name::Lineage(id))?;
        Some(LineageFile::parse(&bytes, id).ok()?.origin)
    });
    let mut timelines: Vec<KnownTimeline> = Vec::new();
    let blank = |id| KnownTimeline { id, cluster_id: None, file: None, points: Vec::new() };
    for (timeline, store) in catalog.timeline_files(id) {
        let at = timelines.iter().position(|t| t.id == timeline).unwrap_or_else(|| {
            timelines.push(blank(timeline));
            timelines.len() - 1
        });
        let known = &mut timelines[at];
        if known.file.is_none()
            && let Some(bytes) = read(store, Name::Timeline(id, timeline))
            && let Ok(file) = TimelineFile::parse(&bytes, id, timeline)
        {
            known.cluster_id = Some(file.cluster_id);
            known.file = Some(file);
        }
    }
    add_points(catalog, id, &mut timelines, &blank);
    timelines.sort_by_key(|t| t.id);
    KnownLineage { id, origin, timelines }
}

/// Adds verified snapshots: the newest few of each timeline number, then ever fewer of the older ones.
fn add_points(
    catalog: &Catalog<'_>,
    lineage: LineageId,
    timelines: &mut Vec<KnownTimeline>,
    blank: &dyn Fn(TimelineId) -> KnownTimeline,
) {
    let (mut number, mut seen, mut kept, mut reads) = (0, 0, 0, 0);
    for entry in catalog.entries(lineage).filter(|e| e.has_manifest() && e.id().timeline() > 0) {
        let id: &SnapshotId = entry.id();
        if id.timeline() != number {
            (number, seen, kept, reads) = (id.timeline(), 0, 0, 0);
        }
        seen += 1;
        if reads >= MAX_READS || (kept >= NEAR_POINTS && !usize::is_power_of_two(seen)) {
            continue;
        }
        reads += 1;
        let Some(shown) = catalog.load(&entry).shown.filter(|s| s.state == State::Verified) else { continue };
        kept += 1;
        let manifest = shown.manifest;
        if manifest.imported.is_some() {
            continue;
        }
        // A compaction up to the last revision may have taken rows of it: then the tail says nothing.
        let tail = manifest.tail.filter(|_| manifest.compact_revision < manifest.revision);
        let point = KnownPoint { revision: manifest.revision, tail, taken_at: manifest.taken_at };
        match timelines.iter_mut().find(|t| t.id == manifest.timeline) {
            Some(known) => {
                known.cluster_id = known.cluster_id.or(manifest.cluster_id);
                known.points.push(point);
            }
            None => timelines.push(KnownTimeline {
                cluster_id: manifest.cluster_id,
                points: vec![point],
                ..blank(manifest.timeline)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::evidence::{Place, Reason};
    use crate::catalog::manifest::{Agreement, AgreementResult, Manifest};
    use crate::catalog::testing::{LINEAGE, MemStore, at, node, snapshot};
    use crate::catalog::value::Digest;

    const UID: &str = "3f0e8a52-6c1d-4b7e-9a60-1d2c3b4a5968";

    fn placement(cluster: u64, first_revision: i64) -> Placement {
        let facts = TimelineFacts { parent: None, cluster_id: EtcdId(cluster), first_revision };
        Placement {
            lineage: Place::New(lineage_of_uid(UID)),
            origin: Some(Origin::Uid { kube_system_uid: UID.into() }),
            timeline: Place::New(TimelineId { number: 1, hex: facts.hex() }),
            timeline_facts: Some(facts),
            alarm: false,
            reasons: vec![Reason::Uid],
        }
    }

    fn seen(by: &str) -> Seen {
        Seen { node: node(by), at: at(0), revision: 7, reasons: vec!["because".into()] }
    }

    #[test]
    fn two_nodes_write_the_same_evidence() {
        let store = MemStore::new("a");
        let placement = placement(0xcafe, 1);
        assert!(write_evidence(&store, &placement, &seen("cp1")).unwrap().is_empty());
        assert!(write_evidence(&store, &placement, &seen("cp2")).unwrap().is_empty());
        assert_eq!(store.objects.lock().unwrap().len(), 2);

        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let known = read_known(&catalog);
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].origin, placement.origin);
        let timeline = &known[0].timelines[0];
        assert_eq!((timeline.id, timeline.cluster_id), (placement.timeline.id(), Some(EtcdId(0xcafe))));
        assert_eq!(timeline.file.as_ref().map(|f| f.seen.node.clone()), Some(node("cp1")));
        assert!(timeline.points.is_empty());
    }

    #[test]
    fn other_content_is_an_error_and_garbage_a_warning() {
        let store = MemStore::new("a");
        let placement = placement(0xcafe, 1);
        let lineage = placement.lineage.id();
        let name = Name::Lineage(lineage).to_string();
        let file = LineageFile { schema: 1, lineage, origin: Origin::Local, seen: seen("cp2") };
        store.put_text(&name, serde_json::to_vec(&file).unwrap());
        let error = write_evidence(&store, &placement, &seen("cp1")).unwrap_err();
        assert_eq!(error.code(), Code::DataInvalid);
        store.put_text(&name, "garbage");
        let warnings = write_evidence(&store, &placement, &seen("cp1")).unwrap();
        assert!(warnings[0].starts_with(&name) && warnings.len() == 1, "{warnings:?}");
        assert!(store.has(&Name::Timeline(lineage, placement.timeline.id()).to_string()));
    }

    #[test]
    fn files_are_held_against_their_names() {
        let lineage = lineage_of_uid(UID);
        let origin = |uid: &str| Origin::Uid { kube_system_uid: uid.into() };
        let file = |origin| LineageFile { schema: 1, lineage, origin, seen: seen("cp1") };
        let parse =
            |f: &LineageFile, l| LineageFile::parse(&serde_json::to_vec(f).unwrap(), l).map_err(|e| e.to_string());
        assert_eq!(parse(&file(origin(UID)), lineage), Ok(file(origin(UID))));
        assert_eq!(parse(&file(Origin::ForeignOrigin), lineage), Ok(file(Origin::ForeignOrigin)));
        assert_eq!(parse(&file(origin("x")), lineage), Err("its UID is not that of its name".into()));
        assert_eq!(parse(&file(origin(UID)), LINEAGE), Err("its lineage is not that of its name".into()));

        let facts = TimelineFacts { parent: None, cluster_id: EtcdId(1), first_revision: 1 };
        let timeline = TimelineId { number: 1, hex: facts.hex() };
        let file = TimelineFile {
            schema: 1,
            lineage,
            timeline,
            parent: None,
            cluster_id: EtcdId(1),
            first_revision: 1,
            seen: seen("cp1"),
        };
        let parse = |f: &TimelineFile| TimelineFile::parse(&serde_json::to_vec(f).unwrap(), lineage, timeline);
        assert_eq!(parse(&file).unwrap(), file);
        assert!(parse(&TimelineFile { cluster_id: EtcdId(2), ..file.clone() }).is_err());
        assert!(parse(&TimelineFile { first_revision: 2, ..file.clone() }).is_err());
        assert!(parse(&TimelineFile { schema: 2, ..file }).is_err());
    }

    #[test]
    fn history_is_made_of_verified_snapshots_only() {
        let store = MemStore::new("a");
        store.publish(&snapshot(1, 10, 0, "cp1"));
        store.publish(&Manifest { checks: Vec::new(), ..snapshot(1, 20, 1, "cp1") });
        let different = vec![Agreement::new("member 2", AgreementResult::Different)];
        store.publish(&Manifest { agreement: different, ..snapshot(1, 30, 2, "cp1") });
        store.publish(&snapshot(0, 99, 3, "cp1"));
        store.publish(&Manifest { compact_revision: 5, ..snapshot(2, 5, 4, "cp2") });
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let known = read_known(&catalog);
        let points: Vec<(u16, Vec<i64>)> =
            known[0].timelines.iter().map(|t| (t.id.number, t.points.iter().map(|p| p.revision).collect())).collect();
        assert_eq!(points, [(1, vec![10]), (2, vec![5])]);
        assert_eq!(known[0].timelines[0].cluster_id, Some(EtcdId(0xcafe)), "known from its manifests");
        assert_eq!(known[0].timelines[0].points[0].tail, Some(Digest([10; 32])));
        assert_eq!(known[0].timelines[1].points[0].tail, None, "compacted up to its last revision");
    }

    #[test]
    fn a_long_history_is_read_in_few_steps_and_always_from_its_newest() {
        let store = MemStore::new("a");
        (1..=2000).for_each(|revision| store.publish(&snapshot(1, revision, revision, "cp1")));
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let known = read_known(&catalog);
        let points: Vec<i64> = known[0].timelines[0].points.iter().map(|p| p.revision).collect();
        assert_eq!(points[..8], [2000, 1999, 1998, 1997, 1996, 1995, 1994, 1993]);
        assert_eq!(points[8..], [1985, 1969, 1937, 1873, 1745, 1489, 977]);
        assert!(store.reads.load(std::sync::atomic::Ordering::Relaxed) < 20);
    }
}
