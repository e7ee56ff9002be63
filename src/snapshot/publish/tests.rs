//! A snapshot after a power loss at any moment of its publication (promises 1 and 11).

use std::io::Write;
use std::path::Path;

use super::*;
use crate::catalog::testing::{at, node, snapshot};
use crate::catalog::{EtcdId, Origin, Place, Reason, TimelineFacts};
use crate::fs::Dir;
use crate::fs::trace::Trace;
use crate::store::{Mode, OpenStore};

fn store(folder: &Path, name: &str) -> Arc<LocalStore> {
    let path = folder.join(name);
    std::fs::create_dir(&path).unwrap();
    let url = format!("file://{}", path.display());
    Arc::new(LocalStore::open(&OpenStore { name: name.into(), url, mode: Mode::Write }, None).unwrap())
}

#[test]
fn a_manifest_is_never_without_its_data_and_its_evidence() {
    let data = b"what etcd sent, compressed";
    let mut manifest = snapshot(1, 10, 0, "cp1");
    manifest.size.stored = data.len() as u64;
    manifest.sha256.stored = Digest(Sha256::digest(data).into());
    let facts = TimelineFacts { parent: None, cluster_id: EtcdId(0xcafe), first_revision: 1 };
    let placement = Placement {
        lineage: Place::New(manifest.lineage),
        origin: Some(Origin::Local),
        timeline: Place::New(manifest.timeline),
        timeline_facts: Some(facts),
        alarm: false,
        reasons: vec![Reason::FirstSnapshot],
    };
    let seen = Seen { node: node("cp1"), at: at(0), revision: 10, reasons: Vec::new() };

    let tmp = tempfile::tempdir().unwrap();
    let (home, other) = (store(tmp.path(), "home"), store(tmp.path(), "other"));
    let trace = Trace::start(&Dir::open(tmp.path()).unwrap()).unwrap();
    let staged = home.stage().unwrap();
    staged.file().write_all(data).unwrap();
    let publication = Publication { manifest: &manifest, placement: &placement, seen: &seen };
    let (outcomes, warnings) = publication.run(staged, Ok(()), &home, &[other]).unwrap();
    assert!(outcomes.iter().all(|o| o.result.is_ok()) && warnings.is_empty(), "{outcomes:?} {warnings:?}");
    trace.mark();

    let names = [
        Name::Manifest(manifest.lineage, manifest.id.clone()),
        Name::Data(manifest.lineage, manifest.id.clone(), manifest.codec),
        Name::Lineage(manifest.lineage),
        Name::Timeline(manifest.lineage, manifest.timeline),
    ]
    .map(|name| name.to_string());
    let losses = trace.losses();
    let mut without = [0, 0];
    for loss in &losses {
        let tmp = tempfile::tempdir().unwrap();
        loss.disk.restore(tmp.path()).unwrap();
        for (i, store) in ["home", "other"].into_iter().enumerate() {
            let read = |name: &String| std::fs::read(tmp.path().join(store).join(name)).ok();
            let [found, stored, lineage, timeline] = names.each_ref().map(read);
            let case = format!("{store}: {}", loss.case);
            assert!(found.is_some() || loss.marks == 0, "{case}: the take had ended");
            match found {
                None => without[i] += 1,
                Some(bytes) => {
                    assert_eq!(bytes, manifest.to_bytes().unwrap(), "{case}");
                    assert_eq!(stored.as_deref(), Some(&data[..]), "{case}");
                    assert!(
                        lineage.is_some_and(|l| !l.is_empty()) && timeline.is_some_and(|t| !t.is_empty()),
                        "{case}"
                    );
                }
            }
        }
    }
    assert!(without.iter().all(|n| *n > 5 && *n < losses.len()), "{without:?} of {}", losses.len());
}
