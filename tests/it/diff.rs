//! `db diff` against what the live member tells of the same two revisions.

use std::collections::BTreeMap;
use std::path::Path;

use etcd_client::{GetOptions, PutOptions, Txn, TxnOp};
use serde_json::{Value, json};

use crate::bed::{Cluster, Fill, Line, Output, Refloat, block_on};
use crate::oracles::{bytes, path};
use crate::taking::{error_of, take, text, why};

/// A key as the member tells it: create revision, mod revision, lease, value.
type Keys = BTreeMap<Vec<u8>, (i64, i64, i64, Vec<u8>)>;

/// One member, its program under test, and a counter for files.
struct Bed {
    cluster: Cluster,
    refloat: Refloat,
    fill: Fill,
}

impl Bed {
    fn start() -> Bed {
        let cluster = Cluster::start(Line::V36);
        let (refloat, fill) = (Refloat::new(&cluster).member("m1"), Fill::new(&cluster).seed(7));
        Bed { cluster, refloat, fill }
    }

    /// A snapshot by etcdctl.
    fn save(&self, name: &str) -> String {
        let file = self.cluster.dir().join(name);
        self.cluster.node(0).etcdctl(&["snapshot", "save", path(&file)]).ok();
        path(&file).to_owned()
    }

    fn live(&self, revision: i64) -> Keys {
        let (mut keys, mut from) = (Keys::new(), vec![0]);
        loop {
            let options = GetOptions::new().with_from_key().with_limit(100).with_revision(revision);
            let answer = block_on(async { self.fill.client().get(from.clone(), Some(options)).await });
            let answer = answer.expect("get keys");
            for kv in answer.kvs() {
                let facts = (kv.create_revision(), kv.mod_revision(), kv.lease(), kv.value().to_vec());
                keys.insert(kv.key().to_vec(), facts);
            }
            match answer.kvs().last() {
                Some(last) if answer.more() => from = [last.key(), &[0]].concat(),
                _ => return keys,
            }
        }
    }

    fn diff(&self, args: &[&str]) -> Value {
        self.refloat.json(&[&["db", "diff"], args].concat())
    }

    /// Demands that the two say exactly what the member's own answers differ in.
    #[track_caller]
    fn compare(&self, what: &str, args: &[&str], (a, b): (&Keys, &Keys)) {
        let said = self.diff(&[args, &["--keys"]].concat());
        let rows = said["keys"].as_array().expect("keys");
        let own: Vec<_> = rows.iter().map(|row| (bytes(&row["key"]), facts(row))).collect();
        assert!(own.is_sorted_by(|x, y| x.0 < y.0), "{what}: in the order of their bytes, each once");
        let own: BTreeMap<_, _> = own.into_iter().collect();
        let expected = difference(a, b);
        assert_eq!(own, expected, "{what}");

        let count = |kind: &str| expected.values().filter(|facts| facts.0 == kind).count();
        let counts = json!({"added": count("added"), "changed": count("changed"), "removed": count("removed")});
        assert_eq!(said["totals"], counts, "{what}");
        // The same sums without the keys, and by prefix.
        let short = self.diff(args);
        assert!(short.get("keys").is_none(), "{what}");
        assert_eq!((&short["totals"], &short["prefixes"]), (&said["totals"], &said["prefixes"]), "{what}");
        let prefixes = said["prefixes"].as_array().expect("prefixes");
        for column in ["added", "changed", "removed"] {
            let sum: u64 = prefixes.iter().map(|p| p[column].as_u64().expect("a number")).sum();
            assert_eq!(counts[column], sum, "{what}: {column} by prefix");
        }
        for (column, keys) in [("bytes_a", a), ("bytes_b", b)] {
            let sum: u64 = prefixes.iter().map(|p| p[column].as_u64().expect("a number")).sum();
            let of = |key: &Vec<u8>| keys.get(key).map_or(0, |facts| (key.len() + facts.3.len()) as u64);
            assert_eq!(sum, expected.keys().map(of).sum::<u64>(), "{what}: {column} by prefix");
        }
        let code = self.refloat.run(&[&["db", "diff", "--exit-code"], args].concat()).code;
        assert_eq!(code, Some(if expected.is_empty() { 0 } else { 2 }), "{what}");
    }
}

/// Kind, what changed, and mod revision, lease and size on both sides.
type Told = (String, Vec<String>, [Option<(i64, Option<String>, u64)>; 2]);

fn facts(row: &Value) -> Told {
    let words = row["changed"].as_array().expect("a list").iter();
    let side = |name: &str| {
        let state = row[name].as_object()?;
        let lease = state["lease"].as_str().map(Into::into);
        Some((state["mod_revision"].as_i64()?, lease, state["size"].as_u64()?))
    };
    let changed = words.map(|word| word.as_str().expect("a word").to_owned()).collect();
    (text(row, "kind").into(), changed, [side("a"), side("b")])
}

/// What two answers of the member differ in.
fn difference(a: &Keys, b: &Keys) -> BTreeMap<Vec<u8>, Told> {
    let side = |keys: &Keys, key: &[u8]| {
        let (_, modified, lease, value) = keys.get(key)?;
        Some((*modified, (*lease != 0).then(|| format!("{lease:x}")), value.len() as u64))
    };
    let mut told = BTreeMap::new();
    for key in a.keys().chain(b.keys()) {
        let (kind, changed) = match (a.get(key), b.get(key)) {
            (Some(x), Some(y)) => {
                let all = [(x.3 != y.3, "value"), (x.2 != y.2, "lease"), (x.0 != y.0, "created")];
                let changed: Vec<String> =
                    all.iter().filter(|(differs, _)| *differs).map(|(_, w)| (*w).into()).collect();
                if changed.is_empty() {
                    continue;
                }
                ("changed", changed)
            }
            (Some(_), None) => ("removed", vec![]),
            _ => ("added", vec![]),
        };
        told.insert(key.clone(), (kind.into(), changed, [side(a, key), side(b, key)]));
    }
    told
}

fn put(fill: &Fill, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>, lease: i64) {
    let (key, value) = (key.into(), value.into());
    let options = (lease != 0).then(|| PutOptions::new().with_lease(lease));
    block_on(async { fill.client().put(key, value, options).await }).expect("put a key");
}

/// Every kind of change, also ones that are none.
fn change(bed: &Bed) {
    let fill = &bed.fill;
    let keys: Vec<Vec<u8>> = bed.live(0).into_keys().filter(|key| key.starts_with(b"/registry/")).collect();
    assert!(keys.len() > 200, "enough to change");
    for (i, key) in keys.iter().enumerate() {
        let name = String::from_utf8(key.clone()).expect("a Kubernetes key is text");
        match i % 12 {
            0 => drop(fill.put(&name, "other")),
            1 => drop(fill.delete(&name)),
            _ => {}
        }
    }
    let lease = fill.grant(3600);
    put(fill, "same/again", "v", 0);
    fill.delete("same/reborn");
    put(fill, "same/reborn", "v", 0);
    put(fill, "same/leased", "v", lease);
    put(fill, "same/freed", "v", 0);
    put(fill, "same/all", "w", lease);
    fill.delete("same/size");
    put(fill, b"\xff\xfe/odd\n".to_vec(), "new", 0);
    put(fill, "no-path", "new", 0);
    let ops = vec![
        TxnOp::put("txn/1", "one", None),
        TxnOp::put("txn/2", vec![0xff; 9000], Some(PutOptions::new().with_lease(lease))),
        TxnOp::delete("same/gone", None),
    ];
    block_on(async { fill.client().txn(Txn::new().and_then(ops)).await }).expect("commit a transaction");
    // There and away again between the two.
    put(fill, "same/visitor", "v", 0);
    fill.delete("same/visitor");
}

fn before(bed: &Bed) {
    bed.fill.kubernetes(300);
    let lease = bed.fill.grant(3600);
    for key in ["again", "reborn", "leased", "all", "size", "gone"] {
        put(&bed.fill, format!("same/{key}"), "v", 0);
    }
    put(&bed.fill, "same/freed", "v", lease);
}

#[test]
fn says_what_the_member_says() {
    let bed = Bed::start();
    let empty = (bed.save("empty.db"), bed.live(0));
    before(&bed);
    let id = text(&take(&bed.refloat), "id").to_owned();
    let (a, then) = (bed.save("a.db"), bed.live(0));
    let revision = bed.fill.revision();
    change(&bed);
    let (b, now) = (bed.save("b.db"), bed.live(0));
    take(&bed.refloat);

    bed.compare("two files", &[&a, &b], (&then, &now));
    bed.compare("backwards", &[&b, &a], (&now, &then));
    bed.compare("empty and full", &[&empty.0, &b], (&empty.1, &now));
    bed.compare("full and empty", &[&b, &empty.0], (&now, &empty.1));
    bed.compare("a file and itself", &[&b, &b], (&now, &now));
    bed.compare("snapshots", &[&id, "latest"], (&then, &now));
    bed.compare("a snapshot and a file", &[&id, &b], (&then, &now));
    bed.compare("a file and a snapshot", &[&a, "latest"], (&then, &now));
    let at = revision.to_string();
    bed.compare("one file, two revisions", &[&b, &b, "--revision-a", &at], (&then, &now));
    bed.compare("the other way", &[&b, "latest", "--revision-b", &at], (&now, &then));
    let between = (revision + 5).to_string();
    bed.compare("in between", &[&a, &b, "--revision-b", &between], (&then, &bed.live(revision + 5)));
    for prefix in ["/registry/pods/", "same/", "no such"] {
        let below = |keys: &Keys| -> Keys {
            keys.iter().filter(|(k, _)| k.starts_with(prefix.as_bytes())).map(|(k, f)| (k.clone(), f.clone())).collect()
        };
        bed.compare(prefix, &[&a, &b, "--prefix", prefix], (&below(&then), &below(&now)));
    }

    // Compacted, so that the newer one has lost every row that was replaced, and its tombstones.
    bed.fill.compact(bed.fill.revision());
    let compacted = bed.save("compacted.db");
    bed.compare("before and after compaction", &[&b, &compacted], (&now, &now));
    bed.compare("over a compaction", &[&a, &compacted], (&then, &now));
    let out = bed.refloat.run(&["db", "diff", &a, &compacted, "--revision-b", &at]);
    assert_eq!(out.code, Some(66), "{out}");
    // A database of its own without trailer, and exported and packed ones.
    std::fs::copy(&b, bed.cluster.dir().join("plain")).expect("copy");
    let plain = bed.cluster.dir().join("plain");
    let file = std::fs::File::options().write(true).open(&plain).expect("open");
    file.set_len(file.metadata().expect("length").len() - 32).expect("cut the trailer");
    bed.compare("without trailer", &[&a, path(&plain)], (&then, &now));
    let export = bed.cluster.dir().join("export.db");
    bed.refloat.run(&["snapshot", "export", &id, "--to", path(&export)]).ok();
    bed.compare("an export", &[path(&export), &b], (&then, &now));

    documents(&bed, &a, &b, &id);
    never_a_value(&bed, &a, &b);
}

/// Names that scripts rely on, and what people see.
fn documents(bed: &Bed, a: &str, b: &str, id: &str) {
    let said = bed.diff(&[a, b]);
    assert_eq!((&said["schema"], &said["a"]["file"], &said["notes"]), (&json!(1), &json!(a), &json!([])));
    let hash = bed.refloat.json(&["db", "hashkv", b]);
    assert_eq!(said["b"]["hash_kv"]["hash"], hash["hash"]);
    assert_eq!(said["b"]["revision"], hash["revision"]);
    assert_eq!(bed.diff(&[id, b])["a"]["id"], id);
    let named: Vec<&str> =
        said["prefixes"].as_array().expect("prefixes").iter().filter_map(|p| p["prefix"].as_str()).collect();
    assert!(named.contains(&"same") && named.contains(&""), "{named:?}");
    assert!(named.iter().any(|p| p.starts_with("/registry/pods/")), "by resource and namespace: {named:?}");
    let shallow = bed.diff(&[a, b, "--depth", "1"]);
    let shallow = shallow["prefixes"].as_array().expect("prefixes");
    assert!(shallow.iter().any(|p| p["prefix"] == "/registry") && shallow.len() < named.len(), "{shallow:?}");

    let table = bed.refloat.run(&["db", "diff", a, b]).ok();
    for part in ["PREFIX", "/registry/pods/", "(no path)", " added, ", "revision "] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let keys = bed.refloat.run(&["db", "diff", a, b, "--keys"]).ok();
    for line in ["+ no-path  revision ", "- same/gone  revision ", "+ \\xff\\xfe/odd\\n  revision "] {
        assert!(keys.lines().any(|l| l.starts_with(line)), "{line}: {keys}");
    }
    let line = |key: &str| keys.lines().find(|l| l.starts_with(&format!("~ {key} "))).unwrap_or_default();
    assert!(line("same/reborn").ends_with(", deleted and created again"), "{keys}");
    assert!(line("same/leased").contains(", lease none to "), "{keys}");
    assert!(line("same/freed").ends_with(" to none"), "{keys}");
    assert!(!keys.contains("same/again") && !keys.contains("same/visitor"), "{keys}");
    assert_eq!(bed.refloat.run(&["db", "diff", a, a]).ok().lines().last(), Some("no difference"));
    let lines = bed.refloat.run(&["-o", "jsonl", "db", "diff", a, b, "--keys", "--prefix", "same/"]).ok();
    let kinds: Vec<Value> = lines.lines().map(|l| serde_json::from_str::<Value>(l).expect("a line")).collect();
    assert!(kinds.iter().any(|row| row["key"] == "same/gone" && row["kind"] == "removed"), "{lines}");
}

/// Values may be secrets: none is in any output.
fn never_a_value(bed: &Bed, a: &str, b: &str) {
    put(&bed.fill, "/registry/secrets/default/token", "top-secret-value", 0);
    let c = bed.save("secret.db");
    for format in ["table", "json", "jsonl"] {
        for (from, to) in [(a, &*c), (&*c, b)] {
            let out = bed.refloat.run(&["-o", format, "-v", "db", "diff", from, to, "--keys"]);
            let shown = format!("{}{}", out.stdout, out.stderr);
            assert!(out.success() && shown.contains("/registry/secrets/default/token"), "{out}");
            assert!(!shown.contains("top-secret"), "{out}");
        }
    }
}

#[test]
fn two_clusters_are_compared_and_named_as_such() {
    let uids = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"];
    let beds = uids.map(|uid| {
        let bed = Bed::start();
        Fill::new(&bed.cluster).kube_system(uid).kubernetes(20);
        bed
    });
    let [a, b] = beds.each_ref().map(|bed| (bed.save("one.db"), bed.live(0)));
    beds[0].compare("two clusters", &[&a.0, &b.0], (&a.1, &b.1));
    let said = beds[0].diff(&[&a.0, &b.0]);
    assert!(said["notes"][0].as_str().is_some_and(|note| note.contains("two clusters")), "{said}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let bed = Bed::start();
    bed.fill.kubernetes(60);
    let good = bed.save("good.db");
    let id = text(&take(&bed.refloat), "id").to_owned();
    let mut bytes = std::fs::read(&good).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    let bad = bed.cluster.dir().join("bad.db");
    std::fs::write(&bad, &bytes).expect("write");
    let missing = bed.cluster.dir().join("missing.db");
    let refused = |args: [&str; 2], code: i32, word: &str| -> Output {
        let out = bed.refloat.run(&["-o", "json", "db", "diff", args[0], args[1]]);
        assert_eq!((out.code, &out.stdout[..]), (Some(code), ""), "{args:?}: {out}");
        assert_eq!(text(&error_of(&out), "code"), word, "{args:?}: {out}");
        out
    };
    for args in [[&good, path(&bad)], [path(&bad), &good]] {
        let error = error_of(&refused(args, 65, "data-invalid"));
        assert!(why(&error).contains("trailer") && text(&error, "on") == path(&bad), "{error}");
    }
    refused([&good, path(&missing)], 66, "not-found");
    refused(["no-such-id", &good], 66, "not-found");

    // A stored object that rots.
    let object = find(&bed.refloat.store(), &format!("{id}.db.zst"));
    let mut bytes = std::fs::read(&object).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&object, &bytes).expect("write");
    refused([&good, "latest"], 65, "data-invalid");
    refused([&good, path(&object)], 65, "data-invalid");
    let usage = bed.refloat.run(&["db", "diff", &good]);
    assert_eq!(usage.code, Some(64), "{usage}");
}

fn find(store: &Path, name: &str) -> std::path::PathBuf {
    let found = crate::taking::files(store).into_iter().find(|file| file.ends_with(name));
    store.join(found.unwrap_or_else(|| panic!("{name} in the store")))
}
