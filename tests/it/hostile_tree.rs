//! A store of chance: snapshots of several lineages, nodes and timelines, and among them whatever may stand in a
//! directory, also under names of ours. It remembers what a prune of node `cp1` may take, and what must stay.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use refloat::catalog::manifest::SCHEMA;
use refloat::catalog::{
    Codec, Digest, EtcdId, Imported, LineageId, Manifest, Node, Note, NoteBody, Sha256, Size, SnapshotId, TimelineId,
    check, time,
};

use crate::bed::Rng;

/// Of each file outside.
pub const OUTSIDE_BYTES: usize = 9;
pub const OWN: LineageId = LineageId([0xaa; 8]);
const OTHER: LineageId = LineageId([0xbb; 8]);

/// One snapshot that is whole, readable, this node's and this lineage's.
#[derive(Debug, Clone)]
pub struct Whole {
    pub id: SnapshotId,
    pub verified: bool,
    pub pinned: bool,
    pub imported: bool,
    /// Something of it is not what refloat writes: nothing of it may go.
    pub odd: bool,
    /// It can be read, so it may stand for others.
    pub counts: bool,
    /// Below the store.
    pub files: BTreeSet<PathBuf>,
}

pub struct HostileTree<'r> {
    rng: &'r mut Rng,
    root: PathBuf,
    outside: PathBuf,
    pub scope_is_cluster: bool,
    pub whole: Vec<Whole>,
    /// What else a prune may take: leftovers of this node, and what waits in the trash of its reach.
    pub loose: BTreeSet<PathBuf>,
    taken: BTreeMap<(LineageId, String), ()>,
}

pub fn node(name: &str) -> Node {
    name.parse().expect("a node's name")
}

/// Seconds of the tests' own time.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).expect("a time")
}

fn manifest(lineage: LineageId, id: &SnapshotId, verified: bool, bytes: u64) -> Manifest {
    let number = id.timeline();
    Manifest {
        schema: SCHEMA,
        id: id.clone(),
        lineage,
        timeline: TimelineId { number, hex: if number == 0 { [0; 4] } else { [number as u8; 4] } },
        cluster_id: Some(EtcdId(0xcafe)),
        node: id.node().clone(),
        member_id: Some(EtcdId(1)),
        member_name: None,
        revision: id.revision(),
        compact_revision: 0,
        taken_at: id.taken_at(),
        finished_at: id.taken_at(),
        size: Size { db: 4096, in_use: None, stored: bytes },
        sha256: Sha256 { db: Digest([1; 32]), stored: Digest([2; 32]) },
        codec: Codec::Zstd,
        recipients: Vec::new(),
        hash_kv: None,
        agreement: Vec::new(),
        tail: None,
        etcd_version: None,
        storage_version: None,
        cluster_version: None,
        raft_term: None,
        raft_index: None,
        keys: None,
        leases: None,
        alarms: Vec::new(),
        checks: check::REQUIRED.iter().take(if verified { 4 } else { 1 }).map(ToString::to_string).collect(),
        not_checked: Vec::new(),
        tags: Vec::new(),
        imported: (number == 0).then(|| Imported { from: "x.db".into(), at: id.taken_at() }),
    }
}

impl<'r> HostileTree<'r> {
    /// In the empty directory `root`; links lead to files of `outside`.
    pub fn grow(rng: &'r mut Rng, root: &Path, outside: &Path) -> HostileTree<'r> {
        let marker = format!("{{\"schema\":1,\"id\":\"{}\",\"created_at\":\"\"}}", "0".repeat(32));
        fs::write(root.join("refloat-store.json"), marker).unwrap();
        let scope_is_cluster = rng.below(3) == 0;
        let (root, outside) = (root.to_owned(), outside.to_owned());
        let (whole, loose, taken) = Default::default();
        let mut tree = HostileTree { rng, root, outside, scope_is_cluster, whole, loose, taken };
        for lineage in [OWN, OTHER] {
            for dir in ["snapshots", "trash"] {
                fs::create_dir_all(tree.root.join(format!("{lineage}/{dir}"))).unwrap();
            }
        }
        for _ in 0..3 + tree.rng.below(12) {
            tree.snapshot();
        }
        for _ in 0..tree.rng.below(6) {
            tree.trashed();
        }
        for _ in 0..tree.rng.below(8) {
            tree.foreign();
        }
        tree
    }

    fn reaches(&self, lineage: LineageId, id: &SnapshotId) -> bool {
        lineage == OWN && (self.scope_is_cluster || id.node().as_str() == "cp1")
    }

    fn id(&mut self) -> (LineageId, SnapshotId) {
        loop {
            let lineage = if self.rng.below(6) == 0 { OTHER } else { OWN };
            let name = *self.rng.pick(&["cp1", "cp1", "cp1", "cp1", "cp2", "cp1.x"]);
            let (timeline, revision) = (*self.rng.pick(&[1, 1, 1, 2, 3, 0]), 1 + self.rng.below(60) as i64);
            // Mostly as time goes, with its steps.
            let seconds = revision * 1800 + if self.rng.below(60) == 0 { self.rng.below(400_000) as i64 } else { 0 };
            let id = SnapshotId::new(timeline, revision, at(seconds), node(name)).expect("an id");
            if self.taken.insert((lineage, id.to_string()), ()).is_none() {
                return (lineage, id);
            }
        }
    }

    fn write(&mut self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.root.join(name), bytes).unwrap();
        PathBuf::from(name)
    }

    fn outside_file(&mut self) -> PathBuf {
        let name = *self.rng.pick(&["a", "b", "c"]);
        self.outside.join(name)
    }

    /// Directories below the root; `false` where a link stands in the way, which this must not follow either.
    fn make(&self, dir: &str) -> bool {
        let mut at = self.root.clone();
        dir.split('/').filter(|part| !part.is_empty()).all(|part| {
            at.push(part);
            let _ = fs::create_dir(&at);
            at.symlink_metadata().is_ok_and(|m| m.is_dir())
        })
    }

    /// Something that is no file of ours stands, or takes the place of one.
    fn obstruct(&mut self, name: &str) {
        let (at, outside) = (self.root.join(name), self.outside_file());
        let _ = fs::remove_file(&at);
        match self.rng.below(5) {
            0 => symlink(outside, at).unwrap(),
            1 => symlink("/", at).unwrap(),
            2 => fs::create_dir(&at).and_then(|()| fs::write(at.join(at.file_name().unwrap()), "x")).unwrap(),
            3 => mkfifo(&at, Mode::S_IRWXU).unwrap(),
            _ => symlink("nowhere", at).unwrap(),
        }
    }

    fn snapshot(&mut self) {
        let (lineage, id) = self.id();
        let base = format!("{lineage}/snapshots/{id}");
        let (data, json) = (format!("{base}.db.zst"), format!("{base}.json"));
        let bytes = 1 + self.rng.below(64);
        let verified = self.rng.below(5) > 0;
        let text = manifest(lineage, &id, verified, bytes).to_bytes().expect("a manifest");
        let content = vec![b'd'; bytes as usize];
        let reached = self.reaches(lineage, &id);
        let own = lineage == OWN && id.node().as_str() == "cp1";
        let mut whole = Whole {
            verified,
            pinned: false,
            imported: id.timeline() == 0,
            odd: false,
            counts: true,
            files: BTreeSet::new(),
            id: id.clone(),
        };
        whole.files.insert(self.write(&data, &content));
        if self.rng.below(7) == 0 {
            // Never became a snapshot.
            if own {
                self.loose.append(&mut whole.files);
            }
            return;
        }
        whole.files.insert(self.write(&json, &text));
        if self.rng.below(4) == 0 {
            let (kind, body) = match self.rng.below(3) {
                0 => ("pin", NoteBody::Pin { reason: None }),
                1 => ("tag", NoteBody::Tag { tags: vec!["t".into()] }),
                _ => ("unpin", NoteBody::Unpin { reason: None }),
            };
            whole.pinned = kind == "pin";
            let note = Note::new(id.clone(), at(1), node("cp1"), body);
            let name = note.name(lineage).to_string();
            whole.files.insert(self.write(&name, note.to_bytes().expect("a note")));
            match self.rng.below(5) {
                0 => {
                    self.write(&name, "torn");
                    (whole.odd, whole.counts) = (true, false);
                }
                1 => {
                    self.obstruct(&name);
                    (whole.odd, whole.counts) = (true, false);
                }
                _ => {}
            }
        }
        let other = id.to_string().replacen("-0", "-1", 1);
        let fault = self.rng.below(24);
        match fault {
            0 => drop(self.write(&json, "{")),
            // Another snapshot's words.
            1 => drop(self.write(&json, String::from_utf8(text).unwrap().replace(&id.to_string(), &other))),
            2 => drop(self.write(&data, [content, vec![0]].concat())),
            3 => fs::remove_file(self.root.join(&data)).unwrap(),
            4 => self.obstruct(&data),
            5 => self.obstruct(&json),
            6 => {
                let (which, to) =
                    (self.rng.pick(&[&data, &json]).to_string(), self.outside.join(format!("link-{lineage}-{id}")));
                fs::hard_link(self.root.join(which), to).unwrap();
            }
            7 => {
                let outside = self.outside_file();
                fs::remove_file(self.root.join(&data)).unwrap();
                fs::hard_link(outside, self.root.join(&data)).unwrap();
            }
            _ if whole.odd => {}
            _ => {
                if reached {
                    self.whole.push(whole);
                }
                return;
            }
        }
        whole.odd = true;
        // Two names make it no less readable, where the size is right.
        whole.counts &= fault >= 8 || fault == 6 || (fault == 7 && bytes == OUTSIDE_BYTES as u64);
        if reached {
            self.whole.push(whole);
        }
    }

    fn trashed(&mut self) {
        let (lineage, id) = self.id();
        let removed = time::compact(at(self.rng.below(200_000) as i64)).expect("a time");
        let base = format!("{lineage}/trash/{removed}-{id}");
        let reached = self.reaches(lineage, &id);
        let mut files = BTreeSet::new();
        for end in ["db.zst", "json", "tag-20260101T000000000Z.json"] {
            if self.rng.below(5) == 0 {
                continue;
            }
            let name = format!("{base}.{end}");
            files.insert(self.write(&name, "trash"));
            match self.rng.below(12) {
                0 => {
                    self.obstruct(&name);
                    files.remove(Path::new(&name));
                }
                1 => {
                    fs::hard_link(self.root.join(&name), self.outside.join(format!("link-{lineage}-{end}-{id}")))
                        .unwrap();
                    files.remove(Path::new(&name));
                }
                _ => {}
            }
        }
        // A removal that was cut short.
        if self.rng.below(4) == 0 {
            let name = format!("{lineage}/snapshots/{id}.db.zst");
            files.insert(self.write(&name, "half"));
        }
        if reached {
            self.loose.append(&mut files);
        }
    }

    fn foreign(&mut self) {
        let (lineage, id) = self.id();
        let dir = match self.rng.below(6) {
            0 => String::new(),
            1 => format!("{lineage}/"),
            2 => format!("{lineage}/trash/"),
            3 => "photos/".into(),
            _ => format!("{lineage}/snapshots/"),
        };
        if !self.make(&dir) {
            return;
        }
        let odd: [&[u8]; 8] = [b"new\nline", b"-rf", b"..x", b"\xff\xfe", &[b'x'; 255], b"a b", b"*", b".db.zst"];
        match self.rng.below(7) {
            0 => {
                let name = OsStr::from_bytes(odd[self.rng.below(8) as usize]);
                fs::write(self.root.join(&dir).join(name), "foreign").unwrap();
            }
            1 => {
                let almost = ["db", "db.zst.bak", "json~", "DB.ZST", "db.zst.old", "jsonl", "pin.json"];
                let name = format!("{dir}{id}.{}", self.rng.pick(&almost));
                self.write(&name, "foreign");
            }
            2 => {
                let name =
                    format!("{dir}{}", self.rng.pick(&["01234567-x", ".refloat-tmp-0123456789abcdef", "y.json"]));
                self.write(&name, "foreign");
            }
            3 => {
                let name = format!("{dir}{id}.db.zst");
                self.obstruct(&name);
            }
            4 => {
                let name = *self.rng.pick(&["cccccccccccccccc", "link"]);
                let _ = symlink(&self.outside, self.root.join(name));
            }
            5 => {
                // In the place of a directory of ours, where that is still empty.
                let name = format!("{lineage}/{}", self.rng.pick(&["trash", "snapshots", "changes"]));
                let at = self.root.join(&name);
                if fs::remove_dir(&at).is_ok() || at.symlink_metadata().is_err() {
                    self.obstruct(&name);
                }
            }
            _ => {
                let deep = format!("{lineage}/changes/0001-01010101/cp1");
                if self.make(&deep) {
                    self.write(&format!("{deep}/{:020}-{:020}.seg.zst", 1, 9), "segment");
                }
            }
        }
    }
}
