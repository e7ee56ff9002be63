//! `refloat snapshot take` from a member that cannot give one: the error names member and cause in bounded time, and
//! another member is taken only by hand (promise 5).

use std::time::Duration;

use serde_json::Value;

use crate::bed::pki::Pair;
use crate::bed::{Cluster, Fill, Liar, Line, Output, Refloat, Target, block_on};
use crate::taking::{error_of, files, listed, nothing_left, take, text, why};

/// An upper bound for any failure: discovery and dialling have 5 s each by default, and a machine may be busy.
const BOUND: Duration = Duration::from_secs(60);

fn attempt(refloat: &Refloat, more: &[&str]) -> Output {
    refloat.command(&["-o", "json", "snapshot", "take"]).args(more).timeout(BOUND).run()
}

/// A take that fails before its first byte.
#[track_caller]
fn refused(refloat: &Refloat, more: &[&str], what: &str, exit: i32, code: &str, named: &str, cause: &str) -> Value {
    let output = attempt(refloat, more);
    assert_eq!(output.code, Some(exit), "{what}: {output}");
    assert_eq!(output.stdout, "", "{what}: {output}");
    let error = error_of(&output);
    assert_eq!(error["code"], code, "{what}: {error}");
    assert!(text(&error, "on").contains(named), "{what}: {named} in {error}");
    assert!(why(&error).contains(cause), "{what}: {cause} in {error}");
    assert!(error["remedy"].is_string(), "{what}: {error}");
    nothing_left(refloat, what);
    error
}

#[test]
fn an_own_member_that_hangs_is_gone_or_learns_is_named_and_another_is_taken_by_hand() {
    // The check would refuse a new member in the first five seconds.
    let mut cluster = Cluster::builder(Line::V36).members(3).args(["--strict-reconfig-check=false"]).start();
    Fill::new(&cluster).kubernetes(100);
    let learner = cluster.add_learner();
    let own = cluster.followers()[0].name().to_owned();
    let at = cluster.nodes().iter().position(|n| n.name() == own).expect("a member");
    let other = cluster.followers().into_iter().find(|n| n.name() != own && n.name() != cluster.node(learner).name());
    let (other, other_id, other_url) = {
        let node = other.expect("two followers");
        (node.name().to_owned(), format!("{:x}", node.member_id()), node.client_url().to_owned())
    };
    let url = cluster.node(at).client_url().to_owned();
    let refloat = Refloat::new(&cluster).member(&own);

    let named = format!("member {own} ({url})");
    cluster.node(at).freeze();
    refused(&refloat, &[], "stopped", 69, "member-hung", &named, "accepts connections but the process does not answer");
    // The same with the own member as its URL alone, and as the only endpoint.
    let alone = Refloat::new(url.as_str());
    refused(&alone, &[], "stopped, alone", 69, "member-hung", &url, "does not answer");

    // While the own one hangs, another by hand: by name, id and URL.
    for wanted in [other.as_str(), &other_id, &other_url] {
        let snapshot = attempt(&refloat, &["--member", wanted]);
        assert_eq!(snapshot.code, Some(0), "{wanted}: {snapshot}");
        let snapshot: Value = serde_json::from_str(&snapshot.stdout).expect("a document");
        assert_eq!(snapshot["snapshot"]["member_name"], other.as_str(), "{wanted}: {snapshot}");
        assert_eq!(snapshot["snapshot"]["state"], "verified", "{wanted}");
    }
    cluster.node(at).thaw();
    cluster.node(at).wait_ready();

    cluster.node_mut(at).kill();
    let dead = Refloat::new(&cluster).member(&own);
    refused(&dead, &[], "killed", 69, "member-gone", &named, "refused");
    refused(&Refloat::new(url.as_str()), &[], "killed, alone", 69, "member-gone", &url, "refused");
    cluster.node_mut(at).restart();

    let name = cluster.node(learner).name().to_owned();
    let learning = Refloat::new(&cluster).member(&name);
    refused(&learning, &[], "a learner", 69, "member-learner", cluster.node(learner).client_url(), "is a learner");
    refused(&dead, &["--member", &name], "a learner by hand", 69, "member-learner", "", "is a learner");

    let error = refused(&dead, &["--member", "nobody"], "unknown", 66, "not-found", "nobody", &own);
    assert!(why(&error).contains(&other_url), "the candidates are named: {error}");

    // All on one address and none is said to be ours.
    let nobodys = Refloat::new(&cluster);
    let error = refused(&nobodys, &[], "no own member", 78, "config", "", &other_url);
    assert!(why(&error).contains(&own) && why(&error).contains(&other), "the candidates are named: {error}");
    assert!(text(&error, "remedy").contains("[etcd] member"), "{error}");
    let absent = Refloat::new(&cluster).member("cp9");
    refused(&absent, &[], "own member that is not there", 78, "config", "cp9", &own);
    // And once everything is well again, the own member is taken.
    assert_eq!(take(&dead)["member_name"], own.as_str());
}

#[test]
fn certificates_and_passwords_that_are_wrong_are_told_apart() {
    let cluster = Cluster::builder(Line::V36).tls(true).auth("root", "right").start();
    let target = Target::from(&cluster);
    let pki = cluster.pki().expect("a cluster with certificates").clone();
    let url = cluster.node(0).client_url().to_owned();
    let with_client = |client: &Pair| {
        let mut pki = pki.clone();
        pki.client = client.clone();
        Target { pki: Some(pki), ..target.clone() }
    };
    let with_user = |user: Option<(&str, &str)>| {
        let user = user.map(|(name, password)| (name.to_owned(), password.to_owned()));
        Target { user, ..target.clone() }
    };
    let wrong_ca = {
        let mut pki = pki.clone();
        pki.ca = pki.foreign_ca.clone();
        Target { pki: Some(pki), ..target.clone() }
    };
    let plain = Target::from(url.replace("https://", "http://"));
    for (what, target, exit, code, cause) in [
        ("a foreign CA", wrong_ca, 69, "tls-failed", "not signed by the authority in ca_file"),
        ("a foreign client", with_client(&pki.foreign), 77, "permission", "refused our client certificate"),
        ("an expired client", with_client(&pki.expired), 77, "permission", "has expired"),
        ("a wrong password", with_user(Some(("root", "wrong"))), 77, "permission", "invalid user ID or password"),
        ("an unknown user", with_user(Some(("nobody", "right"))), 77, "permission", ""),
        ("no password", with_user(None), 77, "permission", ""),
        ("plain text on a TLS port", plain.clone(), 69, "tls-failed", "the port speaks TLS"),
    ] {
        let on = &target.endpoints[0];
        refused(&Refloat::new(&target), &[], what, exit, code, on, cause);
        // With the own member named, though nobody can say who the members are.
        refused(&Refloat::new(&target).member(on), &[], what, exit, code, on, cause);
        refused(&Refloat::new(&target).member("m1"), &[], what, exit, code, on, cause);
    }
    let refloat = Refloat::new(&cluster);
    assert_eq!(take(&refloat)["state"], "verified");
}

#[test]
fn a_plain_member_is_refused_to_a_client_with_certificates_and_a_password_is_too_much() {
    let secure = Cluster::builder(Line::V36).tls(true).start();
    let open = Cluster::start(Line::V36);
    let url = open.node(0).client_url().replace("http://", "https://");
    let target = Target { endpoints: vec![url.clone()], pki: secure.pki().cloned(), user: None };
    refused(&Refloat::new(&target), &[], "TLS on a plain port", 69, "tls-failed", &url, "plain HTTP/2, not TLS");
    let user = Some(("root".to_owned(), "secret".to_owned()));
    let target = Target { user, ..Target::from(&open) };
    let on = open.node(0).client_url();
    refused(&Refloat::new(&target), &[], "a user without users", 78, "config", on, "authentication is not enabled");
    // A port that is no etcd at all.
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("listen on loopback");
    let silent = format!("http://{}", port.local_addr().expect("an address"));
    refused(&Refloat::new(silent.as_str()), &[], "a silent port", 69, "member-hung", &silent, "does not answer");
}

#[test]
fn a_member_without_space_is_still_backed_up_and_the_alarm_is_said() {
    let cluster = Cluster::builder(Line::V36).args(["--quota-backend-bytes=4194304"]).start();
    let fill = Fill::new(&cluster);
    let full = block_on(async {
        let mut client = fill.client();
        for i in 0..100 {
            if let Err(error) = client.put(format!("/large/{i}"), vec![7; 512 << 10], None).await {
                return Some(error.to_string());
            }
        }
        None
    });
    assert!(full.is_some_and(|error| error.contains("space exceeded")), "the quota is reached");
    let output = attempt(&Refloat::new(&cluster), &[]);
    assert_eq!(output.code, Some(0), "{output}");
    let warning = output.stderr.lines().find(|line| line.contains("NOSPACE"));
    let id = format!("{:x}", cluster.node(0).member_id());
    assert!(warning.is_some_and(|line| line.contains(&id)), "{output}");
    let document: Value = serde_json::from_str(&output.stdout).expect("a document");
    assert_eq!(document["snapshot"]["state"], "verified", "{document}");
    assert_eq!(document["snapshot"]["alarms"], serde_json::json!([format!("{id} NOSPACE")]), "{document}");
}

#[test]
fn a_dry_run_looks_and_takes_nothing() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let liar = Liar::start(cluster.node(0).client_url());
    let refloat = Refloat::new(liar.url());
    let found = refloat.json(&["snapshot", "take", "--dry-run"]);
    assert_eq!((&found["member"], &found["url"]), (&"m1".into(), &liar.url().into()), "{found}");
    assert_eq!(found["etcd_version"], cluster.line().version(), "{found}");
    assert_eq!((found["stores"][0]["name"].as_str(), found["stores"][0]["ok"].as_bool()), (Some("local"), Some(true)));
    assert_eq!((liar.calls("Snapshot"), liar.calls("HashKV")), (0, 0), "the member was only looked at");
    nothing_left(&refloat, "a dry run");
    // It fails where a take would.
    let absent = Refloat::new(&cluster).member("cp9");
    refused(&absent, &["--dry-run"], "dry, absent", 78, "config", "cp9", "m1");
}

#[test]
fn each_line_is_taken_and_verified() {
    for line in Line::ALL {
        let cluster = Cluster::start(line);
        let fill = Fill::new(&cluster);
        let made = fill.kubernetes(200);
        let live = fill.hash_kv(0);
        let refloat = Refloat::new(&cluster);
        let snapshot = take(&refloat);
        assert_eq!(snapshot["state"], "verified", "{line}: {snapshot}");
        assert_eq!(snapshot["revision"], made.revision, "{line}");
        assert_eq!(snapshot["hash_kv"]["hash"], live.hash, "{line}");
        assert_eq!(snapshot["etcd_version"], line.version(), "{line}");
        assert_eq!(files(&refloat.store()).len(), 4, "lineage, timeline, data, manifest: {line}");
        refloat.run(&["snapshot", "verify", "latest"]).ok();
        let to = refloat.dir().join("exported.db");
        refloat.run(&["snapshot", "export", "latest", "--to", to.to_str().expect("text")]).ok();
        line.etcdutl(&["snapshot", "status", to.to_str().expect("text"), "-w", "json"]).ok();
        assert_eq!(listed(&refloat, &[]).len(), 1, "{line}");
    }
}
