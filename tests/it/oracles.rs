//! Every offline result against one that we did not compute: HashKV, keys and values against the live member,
//! counts and restores against etcd's own tools, at each turn that history can take.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use etcd_client::{GetOptions, PutOptions, Txn, TxnOp};
use refloat::format::check::{Content, Options};
use refloat::snapshot::judge::judge;
use refloat::snapshot::open;
use refloat::snapshot::progress::Silent;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::bed::{Cluster, Fill, HashKv, Line, Refloat, Rng, block_on, soak};

/// One line's member with everything that is asked about it.
pub struct Oracle {
    pub cluster: Cluster,
    pub refloat: Refloat,
    files: u32,
}

/// A key as client or file tells it: create, mod revision, version, lease in hex, size of the value.
type Facts = (i64, i64, i64, Option<String>, u64);
type Keys = BTreeMap<Vec<u8>, Facts>;

impl Oracle {
    pub fn start(line: Line) -> Self {
        Oracle::on(Cluster::start(line))
    }

    /// Of several members the first one is the own.
    pub fn on(cluster: Cluster) -> Self {
        let refloat = Refloat::new(&cluster).member("m1");
        Oracle { cluster, refloat, files: 0 }
    }

    pub fn fill(&self) -> Fill {
        Fill::new(&self.cluster).seed(7)
    }

    /// A snapshot by the line's own etcdctl.
    pub fn save(&mut self) -> PathBuf {
        self.files += 1;
        let file = self.cluster.dir().join(format!("{}.db", self.files));
        self.cluster.node(0).etcdctl(&["snapshot", "save", path(&file)]).ok();
        file
    }

    /// Compares a fresh snapshot with the member, at its newest and some earlier revisions.
    #[track_caller]
    pub fn compare(&mut self, stage: &str) {
        let stage = format!("{}, {stage}", self.cluster.line());
        let file = self.save();
        assert_eq!(self.refloat.json(&["snapshot", "verify", path(&file)])["ok"], true, "{stage}");
        let content = content(&file);
        let (newest, compact) = (content.revision as i64, content.compact_revision as i64);
        self.compare_hashes(&stage, &file, newest, compact);
        self.compare_keys(&stage, &file, newest, compact);
        self.compare_counts(&stage, &file, &content);
    }

    fn compare_hashes(&self, stage: &str, file: &Path, newest: i64, compact: i64) {
        let live = self.fill().hash_kv(0);
        let own = self.hash_kv(file, None);
        assert_eq!(live.revision, newest, "{stage}: revision");
        assert_eq!((own.revision, own.compact_revision), (newest, compact.max(0)), "{stage}");
        assert_eq!((own.hash, own.compact_revision), (live.hash, live.compact_revision.max(0)), "{stage}: newest");
        let span = newest - compact;
        let wanted = [compact, compact + 1, compact + 2, compact + span / 3, newest - 1, newest];
        let mut compared = 0;
        for revision in wanted.into_iter().filter(|r| (compact.max(1)..=newest).contains(r)) {
            // Exactly at a compaction older lines refuse and newer ones answer from memory, for the compact
            // revision before; nothing to compare with then.
            let Some(live) = live_hash_kv(&self.fill(), revision) else {
                assert_eq!(revision, compact, "{stage}: only there a line may refuse");
                continue;
            };
            if live.compact_revision.max(0) != compact.max(0) {
                assert_eq!(revision, compact, "{stage}: only there a line may answer from memory");
                continue;
            }
            let own = self.hash_kv(file, Some(revision));
            assert_eq!(own.hash, live.hash, "{stage}: at {revision}, compacted at {compact}");
            compared += 1;
        }
        assert!(compared > 0 || span == 0, "{stage}: something to compare");
        for beyond in [newest + 1, compact - 1] {
            if beyond > 0 {
                let revision = beyond.to_string();
                let out = self.refloat.run(&["db", "hashkv", path(file), "--revision", &revision]);
                assert_eq!(out.code, Some(66), "{stage}: {out}");
            }
        }
    }

    pub fn hash_kv(&self, file: &Path, revision: Option<i64>) -> HashKv {
        let revision = revision.map(|r| r.to_string());
        let mut args = vec!["db", "hashkv", path(file)];
        args.extend(revision.iter().flat_map(|r| ["--revision", r]));
        let said = self.refloat.json(&args);
        let number = |name: &str| said[name].as_i64().expect("a number");
        HashKv {
            hash: number("hash") as u32,
            compact_revision: number("compact_revision"),
            revision: number("revision"),
        }
    }

    fn compare_keys(&self, stage: &str, file: &Path, newest: i64, compact: i64) {
        let fill = self.fill();
        let listed = self.refloat.json(&["db", "keys", path(file)]);
        assert_eq!(listed["revision"], newest, "{stage}");
        let own: Keys = listed["keys"].as_array().expect("keys").iter().map(own_key).collect();
        let live = live_keys(&fill, newest);
        assert!(own == live, "{stage}: {} keys in the file, {} live", own.len(), live.len());
        let mut rng = Rng::new(newest as u64);
        for _ in 0..if soak() { 40 } else { 8 } {
            let revision = compact.max(1) + rng.below((newest - compact.max(1) + 1) as u64) as i64;
            let then = live_keys(&fill, revision);
            // One that is there then, and one that is there now but perhaps was not then.
            for keys in [&then, &live] {
                let keys: Vec<_> = keys.keys().filter(|k| !k.contains(&0) && !k.starts_with(b"-")).collect();
                if !keys.is_empty() {
                    let key: &&Vec<u8> = rng.pick(&keys);
                    self.compare_value(stage, file, key, revision);
                }
            }
        }
    }

    fn compare_value(&self, stage: &str, file: &Path, key: &[u8], revision: i64) {
        use std::os::unix::ffi::OsStrExt;
        let live = live_value(&self.fill(), key, revision);
        let command = self.refloat.command(&["-o", "json", "db", "get", path(file)]);
        let output = command.args([std::ffi::OsStr::from_bytes(key)]).args(["--revision", &revision.to_string()]).run();
        match live {
            None => assert_eq!(output.code, Some(66), "{stage}: at {revision}: {output}"),
            Some((mod_revision, value)) => {
                let own = output.json();
                assert_eq!(own["mod_revision"], mod_revision, "{stage}: {own}");
                assert!(bytes(&own["value"]) == value, "{stage}: value at {revision}: {own}");
            }
        }
    }

    fn compare_counts(&self, stage: &str, file: &Path, content: &Content) {
        let line = self.cluster.line();
        let status = line.etcdutl(&["snapshot", "status", path(file), "-w", "json"]).json();
        let inspected = self.refloat.json(&["db", "inspect", path(file)]);
        // Lines up to 3.5 count the rows of all buckets, later ones the live keys.
        let entries: u64 = content.buckets.iter().map(|(_, n)| n).sum();
        let expected = if line <= Line::V35 { entries } else { content.live_keys };
        assert_eq!(status["totalKey"], expected, "{stage}: {status} {:?}", content.buckets);
        assert_eq!(status["totalSize"], inspected["size"], "{stage}: {status} {inspected}");
        // etcd's tool takes that of the last row; 3.4 drops a tombstone that it compacts at, and the row with it.
        let dropped = content.revision == content.compact_revision || content.revision == 1;
        let same = status["revision"] == inspected["revision"];
        assert!(same || dropped && status["revision"].as_u64() < Some(content.revision), "{stage}: {status}");
        let leases = self.cluster.etcdctl(&["lease", "list", "-w", "json"]).json();
        let leases = leases["leases"].as_array().map_or(0, Vec::len);
        assert_eq!(inspected["leases"], leases, "{stage}: {inspected}");
        assert_eq!(inspected["findings"], 0, "{stage}");
    }
}

pub fn path(file: &Path) -> &str {
    file.to_str().expect("a temporary path is text")
}

/// What the library says of a sound file.
#[track_caller]
pub fn content(file: &Path) -> Content {
    let opened = open::file(file).expect("open a snapshot");
    let judged = judge(&opened.object, path(file), Options::default(), &Silent, &CancellationToken::new());
    let judged = judged.expect("read a snapshot");
    assert!(judged.ok(), "{}: {:?}", file.display(), judged.findings);
    // What only damage makes must never be seen on real files: without a trailer it would count.
    let odd: Vec<_> = judged.notes.iter().map(|n| &n.message).collect();
    assert!(odd.is_empty(), "{}: {odd:?}", file.display());
    judged.content.expect("content")
}

/// `None` where the member refuses.
fn live_hash_kv(fill: &Fill, revision: i64) -> Option<HashKv> {
    let answer = block_on(async { fill.client().hash_kv(revision).await }).ok()?;
    let newest = answer.header().map_or(0, |h| h.revision());
    Some(HashKv { hash: answer.hash(), compact_revision: answer.compact_version(), revision: newest })
}

fn live_keys(fill: &Fill, revision: i64) -> Keys {
    let key = |kv: &etcd_client::KeyValue| {
        let lease = (kv.lease() != 0).then(|| format!("{:x}", kv.lease()));
        let facts = (kv.create_revision(), kv.mod_revision(), kv.version(), lease, kv.value().len() as u64);
        (kv.key().to_vec(), facts)
    };
    // In parts: the client takes no answer above 4 MiB.
    let (mut keys, mut from) = (Keys::new(), vec![0]);
    loop {
        let options = GetOptions::new().with_from_key().with_limit(100).with_revision(revision);
        let answer = block_on(async { fill.client().get(from.clone(), Some(options)).await }).expect("get keys");
        keys.extend(answer.kvs().iter().map(key));
        match answer.kvs().last() {
            Some(last) if answer.more() => from = [last.key(), &[0]].concat(),
            _ => return keys,
        }
    }
}

fn live_value(fill: &Fill, key: &[u8], revision: i64) -> Option<(i64, Vec<u8>)> {
    let options = GetOptions::new().with_revision(revision);
    let answer = block_on(async { fill.client().get(key, Some(options)).await }).expect("get a key");
    answer.kvs().first().map(|kv| (kv.mod_revision(), kv.value().to_vec()))
}

fn own_key(row: &Value) -> (Vec<u8>, Facts) {
    let number = |name: &str| row[name].as_i64().expect("a number");
    let facts = (
        number("create_revision"),
        number("mod_revision"),
        number("version"),
        row["lease"].as_str().map(Into::into),
        row["size"].as_u64().expect("a size"),
    );
    (bytes(&row["key"]), facts)
}

/// Text, or `{"hex": …}`.
pub fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => {
            let hex = other["hex"].as_str().unwrap_or_else(|| panic!("neither text nor hex: {other}"));
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect()
        }
    }
}

fn put(fill: &Fill, key: &[u8], value: &[u8]) {
    block_on(async { fill.client().put(key, value, None).await }).expect("put a key");
}

fn transaction(fill: &Fill, ops: Vec<TxnOp>) {
    block_on(async { fill.client().txn(Txn::new().and_then(ops)).await }).expect("commit a transaction");
}

fn delete_all(fill: &Fill) {
    let options = etcd_client::DeleteOptions::new().with_all_keys();
    block_on(async { fill.client().delete("\0", Some(options)).await }).expect("delete all keys");
}

/// Keys that are not text, values that are not there, several generations of a key, several changes in one revision.
fn oddities(fill: &Fill) {
    for key in
        [&b"a"[..], b"a\0", b"a\0b", b"\0", b"\0\0", b"\xff\xfe", b"\xff\xff\xff", "ключ".as_bytes(), b" ", b"\n"]
    {
        put(fill, key, key);
        put(fill, key, b"");
    }
    put(fill, &[b'k'; 1000], &[0; 3000]);
    for _ in 0..3 {
        fill.put("again", "here");
        fill.put("again", "still");
        fill.delete("again");
    }
    fill.put("again", "last");
    let lease = fill.grant(3600);
    let options = || Some(PutOptions::new().with_lease(lease));
    transaction(
        fill,
        vec![
            TxnOp::put("t/1", "one", options()),
            TxnOp::put("t/2", vec![0xffu8; 9000], None),
            TxnOp::delete("a", None),
            TxnOp::put("t/3", "", options()),
            TxnOp::delete("again", None),
        ],
    );
    transaction(fill, vec![TxnOp::delete("t/1", None), TxnOp::put("t/3", "x", None)]);
    fill.grant(7200);
}

/// From an empty database through each kind of compaction, compared at every stage.
fn history(line: Line) {
    let mut oracle = Oracle::start(line);
    let fill = oracle.fill();
    oracle.compare("nothing but a first start");
    oddities(&fill);
    oracle.compare("odd keys, never compacted");
    delete_all(&fill);
    oracle.compare("all keys deleted, never compacted");
    let gone = fill.revision();
    fill.compact(gone - 1);
    oracle.compare("all keys deleted, compacted below");
    fill.compact(gone);
    oracle.compare("all keys deleted, compacted at the last tombstone");

    let before = fill.revision();
    let made = fill.kubernetes(if soak() { 2_000 } else { 300 });
    fill.large(3, 1 << 20);
    oracle.compare("objects and large values");
    fill.compact(before + (made.revision - before) / 2);
    oracle.compare("compacted in the middle");
    let deleted = fill.delete("/large/0000000001");
    fill.put("after", "the deletion");
    fill.compact(deleted);
    oracle.compare("compacted at a tombstone");
    fill.compact(fill.revision());
    oracle.compare("compacted at the newest revision");
    oddities(&fill);
    oracle.compare("and on from there");
    oracle.cluster.node_mut(0).terminate();
    oracle.cluster.node_mut(0).restart();
    oracle.compare("after a restart");
}

#[test]
fn a_file_of_the_main_line_says_what_its_member_says() {
    history(Line::V36);
}

#[test]
fn a_file_of_any_line_says_what_its_member_says() {
    for line in [Line::V34, Line::V35, Line::V37] {
        if soak() {
            history(line);
            continue;
        }
        let mut oracle = Oracle::start(line);
        let fill = oracle.fill();
        oddities(&fill);
        let before = fill.revision();
        let made = fill.kubernetes(100);
        oracle.compare("objects, never compacted");
        fill.compact(before + (made.revision - before) / 2);
        oracle.compare("compacted in the middle");
        let deleted = fill.delete("t/3");
        fill.compact(deleted);
        oracle.compare("compacted at a tombstone");
    }
}

#[test]
fn what_is_exported_starts_an_etcd_of_the_same_line_with_the_same_hash() {
    for line in Line::ALL {
        let mut oracle = Oracle::start(line);
        let fill = oracle.fill();
        let made = fill.kubernetes(200);
        oddities(&fill);
        fill.compact(made.revision - 20);
        fill.large(2, 1 << 20);
        oracle.refloat.run(&["snapshot", "take"]).ok();
        let file = oracle.cluster.dir().join("exported.db");
        oracle.refloat.run(&["snapshot", "export", "latest", "--to", path(&file)]).ok();
        let own = oracle.hash_kv(&file, None);
        assert_eq!(own.revision, fill.revision(), "{line}");

        let content = content(&file);
        oracle.compare_counts(&format!("{line}, exported"), &file, &content);
        oracle.cluster.restore(&file, &["--initial-cluster-token=restored"]);
        let restored = Fill::new(&oracle.cluster).hash_kv(0);
        assert_eq!((restored.revision, restored.compact_revision), (own.revision, own.compact_revision), "{line}");
        assert_eq!(restored.hash, own.hash, "{line}");
    }
}

#[test]
fn the_database_of_a_stopped_member_passes_as_far_as_it_can_be_proven() {
    for line in if soak() { Line::ALL.to_vec() } else { vec![Line::V34, Line::V36] } {
        for gently in [true, false] {
            let mut oracle = Oracle::start(line);
            let fill = oracle.fill();
            let made = fill.kubernetes(200);
            fill.compact(made.revision / 2);
            for i in 0..200 {
                fill.put(&format!("more/{:03}", i % 50), "x");
                if i % 60 == 59 {
                    fill.compact(fill.revision() - 10);
                }
            }
            let live = fill.hash_kv(0);
            if gently {
                oracle.cluster.node_mut(0).terminate();
            } else {
                oracle.cluster.node_mut(0).kill();
            }
            let file = oracle.cluster.node(0).db_file();
            let before = std::fs::read(&file).expect("read the database");
            let checked = oracle.refloat.json(&["db", "check", path(&file)]);
            assert!(checked["not_covered"][0].is_string(), "{line}: {checked}");
            if gently {
                let own = oracle.hash_kv(&file, None);
                assert_eq!(own, HashKv { revision: live.revision, ..live }, "{line}");
            }
            assert!(std::fs::read(&file).expect("read it again") == before, "{line}: read-only");
        }
    }
}

/// Random histories: short, so that every odd turn is taken close to every other.
#[test]
fn random_histories_have_the_hash_and_the_keys_of_their_member() {
    let mut oracle = Oracle::start(Line::V36);
    let fill = oracle.fill();
    let seeds = if soak() { 60 } else { 6 };
    for seed in 1..=seeds {
        let mut rng = Rng::new(seed);
        for _ in 0..40 + rng.below(60) {
            step(&fill, &mut rng);
        }
        oracle.compare(&format!("random history {seed}"));
    }
}

fn step(fill: &Fill, rng: &mut Rng) {
    let key = |rng: &mut Rng| format!("k{}", rng.below(12));
    match rng.below(21) {
        0..9 => {
            let size = rng.below(200) as usize;
            put(fill, key(rng).as_bytes(), &vec![b'v'; size]);
        }
        9..14 => drop(fill.delete(&key(rng))),
        14..17 => {
            // Each key once: etcd refuses a transaction that changes one twice.
            let mut keys: Vec<String> = (0..4).map(|_| key(rng)).collect();
            keys.sort();
            keys.dedup();
            let op = |k: String, n: u64| if n == 0 { TxnOp::delete(k, None) } else { TxnOp::put(k, "txn", None) };
            let ops = keys.into_iter().map(|k| op(k, rng.below(3))).collect();
            transaction(fill, ops);
        }
        17 => delete_all(fill),
        18 => {
            // Revoked, a lease takes its keys with it in one revision.
            let (lease, keep) = (fill.grant(3600), rng.below(2) == 0);
            for _ in 0..2 {
                let options = PutOptions::new().with_lease(lease);
                block_on(async { fill.client().put(key(rng), "leased", Some(options)).await }).expect("put a key");
            }
            if !keep {
                block_on(async { fill.client().lease_revoke(lease).await }).expect("revoke a lease");
            }
        }
        _ => {
            let newest = fill.revision();
            let back = rng.below(6) as i64;
            let compact = etcd_client::CompactionOptions::new().with_physical();
            // One below the last compaction is refused, which is fine.
            let _ = block_on(async { fill.client().compact((newest - back).max(1), Some(compact)).await });
        }
    }
}
