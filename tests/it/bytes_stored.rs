//! Damage in the stored object: flips in frames, headers, index and footer, cuts at many places. `snapshot verify ID`
//! says that it is damaged and where, and a damaged copy no longer counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use refloat::catalog::Digest;
use refloat::format::check::Options;
use refloat::snapshot::judge::{Object, judge};
use refloat::snapshot::progress::Silent;
use refloat::store::codec::{Framed, IndexState};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::bed::{Cluster, Fill, Line, Output, Refloat, Rng, Run, soak};

/// A store with one snapshot of several frames; gives its object's path and bytes too.
fn stored() -> (Refloat, PathBuf, Vec<u8>) {
    let cluster = Cluster::start(Line::V36);
    let fill = Fill::new(&cluster).seed(7);
    fill.kubernetes(600);
    fill.large(6, 700_000);
    let refloat = Refloat::new(&cluster);
    refloat.run(&["snapshot", "take"]).ok();
    let object = objects(&refloat.store()).pop().expect("one object");
    let bytes = std::fs::read(&object).expect("read the object");
    (refloat, object, bytes)
}

fn objects(store: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![store.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("list the store") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "zst") {
                found.push(path);
            }
        }
    }
    found
}

/// Replaces the object as damage would: same name, other bytes.
fn replace(object: &Path, bytes: &[u8]) {
    let file = object.with_extension("new");
    std::fs::write(&file, bytes).expect("write the object");
    std::fs::rename(&file, object).expect("replace the object");
}

#[track_caller]
fn damaged(output: &Output) -> String {
    assert_eq!(output.code, Some(65), "{output}");
    assert!(!output.stderr.contains("panicked"), "{output}");
    // One of another length is not even opened: an error names the figures.
    let said = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    let document: serde_json::Value = serde_json::from_str(said).unwrap_or_else(|e| panic!("{e}: {output}"));
    let why = if output.stdout.is_empty() { &document["error"]["why"][0] } else { &document["findings"][0]["message"] };
    assert!(document["ok"] != true && why.as_str().is_some_and(|why| !why.is_empty()), "{output}");
    document.to_string()
}

/// What the judge says of these bytes as a stored object: sound only if their hash is the stored one.
fn sound(bytes: &[u8], digest: &Digest) -> bool {
    let Ok(framed) = Framed::open(Arc::new(bytes.to_vec()) as Arc<dyn refloat::format::ReadAt>) else { return false };
    let object = Object::Framed(Arc::new(framed));
    let judged = judge(&object, "an object", Options::default(), &Silent, &CancellationToken::new());
    let judged = judged.expect("memory can be read");
    // As `snapshot verify` does: the bytes must be sound and the very ones that were written.
    judged.ok() && judged.stored_sha256.as_ref() == Some(digest)
}

#[test]
fn a_damaged_object_is_found_with_its_place() {
    let (refloat, object, good) = stored();
    let digest = Digest(Sha256::digest(&good).into());
    assert!(sound(&good, &digest));
    let framed = Framed::open(Arc::new(good.clone()) as Arc<dyn refloat::format::ReadAt>).expect("a sound object");
    assert_eq!(framed.index_state(), IndexState::Stored);
    let frames: Vec<_> = (0..framed.frame_count()).map(|i| framed.frame_range(i)).collect();
    let index = framed.index_range().expect("an index");
    let (index, len) = (index.start as usize, good.len());
    assert!(frames.len() > 4, "several frames: {}", frames.len());
    let verify = || refloat.run(&["-o", "json", "snapshot", "verify", "latest"]);
    let id = refloat.json(&["snapshot", "list"])["snapshots"][0]["id"].as_str().expect("an id").to_owned();
    let verify_id = || refloat.run(&["-o", "json", "snapshot", "verify", &id]);

    // The decompressor of the field agrees on what the object holds (promise 10).
    let unpacked = Run::new("sh").args(["-c", "zstd -qdc \"$0\" | cmp - \"$1\""]);
    let exported = refloat.dir().join("exported.db");
    refloat.run(&["snapshot", "export", "latest", "--to", exported.to_str().expect("text")]).ok();
    unpacked.args([object.as_os_str(), exported.as_os_str()]).run().ok();
    assert_eq!(verify().json()["ok"], true);

    // Every byte of frame headers, index and footer, and some within the frames.
    let mut rng = Rng::new(11);
    let headers = frames.iter().flat_map(|f| f.start as usize..f.start as usize + 12);
    let within = (0..if soak() { 2_000 } else { 60 }).map(|_| rng.below(index as u64) as usize).collect::<Vec<_>>();
    for at in headers.chain(index..len).chain(within) {
        let mut bytes = good.clone();
        bytes[at] ^= [0x01, 0x80, 0xff][at % 3];
        assert!(!sound(&bytes, &digest), "byte {at} of {len}, index at {index}");
    }
    let cuts = (0..if soak() { 500 } else { 40 }).map(|_| rng.below(len as u64) as usize).collect::<Vec<_>>();
    for cut in cuts.into_iter().chain([0, 1, 3, 4, 5, 12, index - 1, index, index + 1, len - 12, len - 1]) {
        assert!(!sound(&good[..cut], &digest), "cut to {cut} of {len}");
    }

    // Through the program: the place is named.
    let third = frames[2].start as usize;
    for (at, words) in [
        (0, "frame 0"),
        (third + 4, "frame 2"),
        (third + 1000, "frame 2"),
        (index - 1, &*format!("frame {}", frames.len() - 1)),
        (index + 2, "frame index"),
        (index + 12, "frame index"),
        (index + 34, "frame index"),
        (len - 10, "frame index"),
        (len - 1, "frame index"),
    ] {
        let mut bytes = good.clone();
        bytes[at] ^= 0x55;
        replace(&object, &bytes);
        let said = damaged(&verify_id());
        assert!(said.contains(words), "flip at {at}: {words}: {said}");
        assert!(said.contains("stored object"), "flip at {at}: the stored hash differs too: {said}");
    }
    let mut flipped = good.clone();
    flipped[third + 77] ^= 4;
    for cut in [0, 5, third, third + 5, index, index + 7, len - 1] {
        replace(&object, &good[..cut]);
        let said = damaged(&verify_id());
        assert!(said.contains(&format!("{cut} bytes")), "cut to {cut}: {said}");
    }
    replace(&object, &[&good[..], b"x"].concat());
    damaged(&verify_id());

    // A damaged copy is no backup until it is whole again.
    let listed = || refloat.json(&["snapshot", "list"]);
    assert_eq!(listed()["snapshots"], serde_json::json!([]), "an object of another length is none");
    replace(&object, &flipped);
    damaged(&verify_id());
    assert_ne!(listed()["snapshots"][0]["state"], "verified");
    replace(&object, &good);
    assert_eq!(verify_id().json()["ok"], true);
    assert_eq!(listed()["snapshots"][0]["state"], "verified");
}

/// Without manifest an object is a file like any other: what is inside it is proven by its trailer alone.
#[test]
fn compressed_files_are_judged_by_what_they_hold() {
    let (refloat, object, good) = stored();
    let exported = refloat.dir().join("exported.db");
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    refloat.run(&["snapshot", "export", "latest", "--to", &text(&exported)]).ok();
    let hash = refloat.json(&["snapshot", "verify", &text(&exported)])["hash_kv"].clone();
    assert!(hash.is_object());
    let whole = std::fs::read(&exported).expect("read a file");
    let unpacked = |file: &Path| {
        let plain = refloat.dir().join("unpacked.db");
        Run::new("sh").args(["-c", "zstd -qdc < \"$0\" > \"$1\"", &text(file), &text(&plain)]).run().ok();
        std::fs::read(plain).expect("read a file")
    };
    let pack = |name: &str, script: &str| {
        let packed = refloat.dir().join(name);
        Run::new("sh").args(["-c", script, &text(&exported), &text(&packed)]).run().ok();
        packed
    };
    // As other tools make them: one frame with its size, one without, with checksums, several files after another.
    let files = [
        object.clone(),
        pack("sized.zst", "zstd -q -9 \"$0\" -o \"$1\""),
        pack("piped.zst", "zstd -q -c < \"$0\" > \"$1\""),
        pack("long.zst", "zstd -q --long=27 -c < \"$0\" > \"$1\""),
        pack("split.zst", "head -c 1000000 \"$0\" | zstd -qc > \"$1\"; tail -c +1000001 \"$0\" | zstd -qc >> \"$1\""),
    ];
    for file in &files {
        for command in [&["snapshot", "verify"][..], &["db", "check"]] {
            let document = refloat.json(&[command, &[&*text(file)]].concat());
            assert!(document["ok"] == true && document["hash_kv"] == hash, "{}: {document}", file.display());
            assert_eq!(document["not_covered"], serde_json::json!([]), "{}", file.display());
        }
        let bytes = std::fs::read(file).expect("read a file");
        let damaged_file = refloat.dir().join("damaged.zst");
        let mut rng = Rng::new(bytes.len() as u64);
        for n in 0..if soak() { 60 } else { 4 } {
            let at = rng.below(bytes.len() as u64 - 400) as usize;
            let mut bytes = bytes.clone();
            if n % 2 == 0 {
                bytes[at] ^= 0x10
            } else {
                bytes.truncate(at.max(4))
            }
            std::fs::write(&damaged_file, bytes).expect("write a file");
            let output = refloat.run(&["-o", "json", "snapshot", "verify", &text(&damaged_file)]);
            // Some bits of zstd's headers mean nothing; then the content must be what it was.
            match output.code {
                Some(0) => assert!(unpacked(&damaged_file) == whole, "{n}: {output}"),
                _ => drop(damaged(&output)),
            }
        }
    }
    // The index is no part of what is proven: without it the content is the same.
    let framed = Framed::open(Arc::new(good.clone()) as Arc<dyn refloat::format::ReadAt>).expect("a sound object");
    let index = framed.index_range().expect("an index").start as usize;
    for bytes in [
        good[..index].to_vec(),
        [&good[..index], &[&good[index..index + 9], &[0xee], &good[index + 10..]].concat()].concat(),
    ] {
        let file = refloat.dir().join("no-index.zst");
        std::fs::write(&file, bytes).expect("write a file");
        assert_eq!(refloat.json(&["snapshot", "verify", &text(&file)])["hash_kv"], hash);
    }
}
