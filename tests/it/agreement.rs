//! What live members say about a snapshot's revision (design §6.4): whom a take asks, what their answers make of it.

use serde_json::{Value, json};

use crate::bed::{Cluster, Fill, Liar, Lie, Line, Node, Refloat};
use crate::taking::{error_of, files, latest, listed, take, text, why};

fn three() -> Cluster {
    let cluster = Cluster::builder(Line::V36).members(3).start();
    Fill::new(&cluster).kubernetes(200);
    cluster
}

/// HashKV calls that a member answered, by its own count.
fn answered(node: &Node) -> f64 {
    let metric = "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"HashKV\",\
                  grpc_service=\"etcdserverpb.Maintenance\",grpc_type=\"unary\"}";
    node.metric(metric).unwrap_or(0.0)
}

/// (member's name, result) of each entry.
fn results(snapshot: &Value) -> Vec<(String, String)> {
    let entries = snapshot["agreement"].as_array().unwrap_or_else(|| panic!("{snapshot}"));
    let name = |with: &str| with.split_whitespace().nth(1).unwrap_or_default().to_owned();
    entries.iter().map(|e| (name(text(e, "with")), text(e, "result").to_owned())).collect()
}

fn reasons(snapshot: &Value) -> String {
    snapshot["agreement"].to_string()
}

#[test]
fn followers_are_asked_and_agree_and_a_leader_never_is() {
    let cluster = three();
    let leader = cluster.leader().name().to_owned();
    let followers: Vec<String> = cluster.followers().iter().map(|n| n.name().to_owned()).collect();
    let own = followers[0].as_str();
    let pair = |name: &str, result: &str| (name.to_owned(), result.to_owned());

    // The own follower, then the other one.
    let refloat = Refloat::new(&cluster).member(own);
    let snapshot = take(&refloat);
    assert_eq!(snapshot["state"], "verified");
    assert_eq!(results(&snapshot), [pair(own, "equal"), pair(&followers[1], "equal")]);
    // The leader is own: not asked; one follower is.
    let led = take(&Refloat::new(&cluster).member(&leader));
    assert_eq!(led["state"], "verified");
    assert_eq!(results(&led)[0], pair(&leader, "skipped"));
    assert_eq!(results(&led)[1].1, "equal", "{}", reasons(&led));
    assert_eq!(results(&led).len(), 2);
    assert!(reasons(&led).contains("is the leader"), "{}", reasons(&led));
    // Switched off: nobody.
    let before: f64 = cluster.nodes().iter().map(answered).sum();
    let off = take(&Refloat::new(&cluster).member(own).config("[snapshot]\nagreement = \"off\"\n"));
    assert_eq!(off["state"], "verified");
    assert!(results(&off).iter().all(|(_, result)| result == "skipped"), "{}", reasons(&off));
    assert!(reasons(&off).contains("switched off"), "{}", reasons(&off));
    assert_eq!(cluster.leader().name(), leader, "a test that holds only while the leader stays");
    assert_eq!(answered(cluster.leader()), 0.0);
    assert_eq!((before, cluster.nodes().iter().map(answered).sum::<f64>()), (3.0, 3.0));

    // A single member is its own leader.
    let single = Cluster::start(Line::V36);
    Fill::new(&single).kubernetes(50);
    let alone = take(&Refloat::new(&single));
    assert_eq!((results(&alone), alone["state"].as_str()), (vec![pair("m1", "skipped")], Some("verified")));
    assert!(reasons(&alone).contains("is the leader"), "{}", reasons(&alone));
    assert_eq!(answered(single.node(0)), 0.0);
}

#[test]
fn members_that_differ_make_a_snapshot_disputed_and_it_never_counts() {
    let mut cluster = three();
    let followers: Vec<String> = cluster.followers().iter().map(|n| n.name().to_owned()).collect();
    let own = cluster.nodes().iter().position(|n| n.name() == followers[0]).expect("a follower");
    // The newest row of all: by its like, histories are told apart.
    Fill::new(&cluster).put("word", "the-truth-of-the-matter");
    let refloat = Refloat::new(&cluster).member(&followers[0]);
    let honest = take(&refloat);
    assert_eq!(honest["state"], "verified");
    let good = text(&honest, "id");

    cluster.node_mut(own).falsify("the-truth-of-the-matter", "a-lie-that-is-as-long-!");
    let output = refloat.command(&["-o", "json", "snapshot", "take"]).run();
    assert_eq!(output.code, Some(65), "{output}");
    let error = error_of(&output);
    assert_eq!(error["code"], "disputed");
    assert!(why(&error).contains("another content at the same revision"), "{error}");
    let document: Value = serde_json::from_str(&output.stdout).expect("a document");
    let disputed = &document["snapshot"];
    assert_eq!(disputed["state"], "disputed");
    let different = (followers[1].clone(), "different".to_owned());
    assert_eq!(results(disputed), [(followers[0].clone(), "equal".to_owned()), different]);
    assert!(error["why"].to_string().contains(&followers[1]), "the member that differs is named: {error}");
    // It is a member that differs, not a history that begins.
    assert_eq!(disputed["timeline"], honest["timeline"], "{disputed}");
    assert!(!output.stderr.contains("history"), "{output}");

    let id = text(disputed, "id");
    assert_eq!(listed(&refloat, &[]), [id, good]);
    assert!(refloat.run(&["snapshot", "list"]).ok().contains("disputed"));
    assert_eq!(latest(&refloat), good);
    // The bytes are sound; what they say is in doubt.
    let verify = refloat.run(&["snapshot", "verify", id]).ok();
    assert!(verify.contains("disputed"), "{verify}");
    assert_eq!(refloat.json(&["snapshot", "show", id])["state"], "disputed", "a sound copy does not settle it");

    // From another member: verified or disputed, as the follower that is asked is the honest or the falsified one; in
    // the same history in any case.
    let other = refloat.command(&["-o", "json", "snapshot", "take", "--member", cluster.leader().name()]).run();
    let document: Value = serde_json::from_str(&other.stdout).expect("a document");
    let state =
        if document["snapshot"]["agreement"].to_string().contains("different") { "disputed" } else { "verified" };
    let exit = if state == "disputed" { 65 } else { 0 };
    assert_eq!((document["snapshot"]["state"].as_str(), other.code), (Some(state), Some(exit)), "{other}");
    assert_eq!(document["snapshot"]["timeline"], honest["timeline"], "{other}");
}

#[test]
fn answers_that_are_late_wrong_or_about_something_else() {
    let cluster = three();
    let follower = cluster.followers()[0];
    let liar = Liar::start(follower.client_url());
    let refloat = Refloat::new(liar.url());
    let own = |snapshot: &Value| snapshot["agreement"][0].clone();

    // It never answers: bounded, and the other one still counts.
    liar.lie(Lie::HashHang);
    let hung = take(&refloat);
    assert_eq!((hung["state"].as_str(), own(&hung)["result"].as_str()), (Some("verified"), Some("skipped")));
    assert!(text(&own(&hung), "reason").contains("no answer within"), "{}", reasons(&hung));
    assert_eq!(hung["agreement"][1]["result"], "equal", "{}", reasons(&hung));
    // It cannot.
    liar.lie(Lie::HashError { status: 12 });
    let unable = take(&refloat);
    assert_eq!((unable["state"].as_str(), own(&unable)["result"].as_str()), (Some("verified"), Some("skipped")));
    assert!(own(&unable)["reason"].as_str().is_some_and(|why| !why.is_empty()), "{}", reasons(&unable));

    // A file of before a compaction against members of after it.
    liar.be_honest();
    let file = cluster.dir().join("before.db");
    follower.etcdctl(&["snapshot", "save", file.to_str().expect("text")]).ok();
    let before: &'static [u8] = Box::leak(std::fs::read(file).expect("read it").into_boxed_slice());
    let fill = Fill::new(&cluster);
    let revision = fill.revision();
    fill.compact(revision - 10);
    liar.lie(Lie::Instead(before));
    let compacted = take(&refloat);
    let results: Vec<&Value> = compacted["agreement"].as_array().into_iter().flatten().collect();
    assert!(results.iter().all(|e| e["result"] == "not-comparable"), "{}", reasons(&compacted));
    assert!(text(results[0], "reason").contains(&format!("compacted to {}", revision - 10)), "{}", reasons(&compacted));
    assert_eq!(compacted["state"], "verified", "nothing disagrees");
    // And beyond its revision altogether.
    let revision = fill.put("/registry/configmaps/default/later", "value");
    fill.compact(revision);
    let gone = take(&refloat);
    assert_eq!(own(&gone)["result"], "not-comparable", "{}", reasons(&gone));
    assert!(text(&own(&gone), "reason").contains("compacted"), "{}", reasons(&gone));

    // A hash that is wrong is a dispute. (At the compact revision itself etcd answers with the hash of the compaction,
    // which is one of the compact revision before, so there nothing can be compared.)
    liar.be_honest();
    fill.put("/registry/configmaps/default/latest", "value");
    liar.lie(Lie::WrongHash);
    let output = refloat.command(&["-o", "json", "snapshot", "take"]).run();
    assert_eq!(output.code, Some(65), "{output}");
    let document: Value = serde_json::from_str(&output.stdout).expect("a document");
    assert_eq!(document["snapshot"]["state"], "disputed", "{document}");
    assert_eq!(document["snapshot"]["agreement"][0]["result"], json!("different"), "{document}");
    assert!(!files(&refloat.store()).iter().any(|name| name.contains("timelines/0002")));
}
