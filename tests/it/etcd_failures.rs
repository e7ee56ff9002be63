//! What a caller is told when a member is gone, stopped, a learner, without quorum, or wants a password.

use std::path::{Path, PathBuf};
use std::time::Duration;

use refloat::error::{Code, Error};
use refloat::etcd::{Access, AccessFiles, Member, StreamLimits};

use crate::bed::{Cluster, Fill, Line, block_on};

/// For calls that shall run into it.
const SHORT: Duration = Duration::from_secs(1);
/// For calls that shall not.
const LONG: Duration = Duration::from_secs(20);
/// Far beyond any limit in here: reaching it means that a call waited for ever.
const FOR_EVER: Duration = Duration::from_secs(60);

/// One error per call, each in bounded time.
fn all_calls(url: &str, limit: Duration) -> Vec<(&'static str, Option<Error>)> {
    let calls = async {
        let member = Member::connect_named(url, "m9", &Access::plain(limit)).await.expect("connect dials nothing");
        vec![
            ("status", member.status().await.err()),
            ("members", member.members().await.err()),
            ("alarms", member.alarms().await.err()),
            ("linearizable", member.linearizable().await.err()),
            ("serializable", member.serializable().await.err()),
            ("hash_kv", member.hash_kv(1, limit).await.err()),
            ("get", member.get(b"a").await.err()),
            ("snapshot", member.snapshot(StreamLimits::new(limit, limit)).await.err()),
        ]
    };
    block_on(async { tokio::time::timeout(FOR_EVER, calls).await.expect("all calls have a deadline") })
}

fn expect(errors: Vec<(&'static str, Option<Error>)>, code: Code, url: &str, cause: &str) {
    for (call, error) in errors {
        let error = error.unwrap_or_else(|| panic!("{call} succeeded"));
        let why = error.why().join(": ");
        assert_eq!(error.code(), code, "{call}: {why}");
        assert!(error.on().contains("m9") && error.on().contains(url), "{call}: {error}");
        assert!(why.contains(cause), "{call}: {why}");
        assert!(error.get_remedy().is_some(), "{call}");
    }
}

#[test]
fn a_stopped_and_a_killed_member() {
    let mut cluster = Cluster::start(Line::V36);
    let url = cluster.node(0).client_url().to_owned();
    cluster.node(0).freeze();
    expect(all_calls(&url, SHORT), Code::MemberHung, &url, "accepts connections but the process does not answer");
    cluster.node(0).thaw();
    cluster.node(0).wait_ready();
    assert!(all_calls(&url, LONG).iter().all(|(_, error)| error.is_none()), "it is well again");
    cluster.node_mut(0).kill();
    expect(all_calls(&url, LONG), Code::MemberGone, &url, "refused");
}

#[test]
fn a_name_that_does_not_resolve() {
    let url = "http://etcd.invalid:2379";
    expect(all_calls(url, LONG), Code::MemberGone, url, "lookup");
}

#[test]
fn a_connection_survives_a_restart_of_the_member() {
    let mut cluster = Cluster::start(Line::V36);
    let access = Access::plain(LONG);
    let member = block_on(Member::connect(cluster.node(0).client_url(), &access)).expect("connect");
    let before = block_on(member.status()).expect("status");
    cluster.node_mut(0).kill();
    assert_eq!(block_on(member.status()).expect_err("it is gone").code(), Code::MemberGone);
    cluster.node_mut(0).restart();
    assert_eq!(block_on(member.status()).expect("status").member_id, before.member_id);
}

#[test]
fn without_quorum_local_reads_work_and_others_say_so() {
    for line in Line::in_full() {
        let cluster = Cluster::builder(line).members(3).start();
        cluster.node(1).freeze();
        cluster.node(2).freeze();
        block_on(async {
            let member =
                Member::connect(cluster.node(0).client_url(), &Access::plain(3 * SHORT)).await.expect("connect");
            let error = member.linearizable().await.expect_err("one of three is no quorum");
            assert_eq!(error.code(), Code::NoQuorum, "{:?}", error.why());
            assert!(error.get_remedy().is_some());
            member.serializable().await.expect("a local read");
            // etcd gives up by itself after some seconds and says so in its own words.
            let patient = Access::plain(Duration::from_secs(30));
            let member = Member::connect(cluster.node(0).client_url(), &patient).await.expect("connect");
            let error = member.linearizable().await.expect_err("one of three is no quorum");
            assert_eq!(error.code(), Code::NoQuorum, "{:?}", error.why());
        });
    }
}

#[test]
fn a_learner_says_that_it_is_one() {
    for line in Line::ALL {
        let mut cluster = Cluster::builder(line).start();
        let learner = cluster.add_learner();
        block_on(async {
            let url = cluster.node(learner).client_url();
            let member = Member::connect(url, &Access::plain(LONG)).await.expect("connect");
            assert!(member.status().await.expect("a learner answers this").is_learner, "{line}");
            let error = member.linearizable().await.expect_err("a learner does not serve this");
            assert_eq!(error.code(), Code::MemberLearner, "{line}: {:?}", error.why());
            assert!(error.get_remedy().is_some());
        });
    }
}

fn user(name: &str, password_file: PathBuf) -> Access {
    let files = AccessFiles {
        username: Some(name.into()),
        password_file: Some(password_file),
        timeout: LONG,
        ..AccessFiles::default()
    };
    Access::load(&files).expect("a password file")
}

fn password(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("write a password");
    path
}

#[test]
fn users_and_passwords() {
    for line in Line::ALL {
        let cluster = Cluster::builder(line).auth("root", "secret").start();
        Fill::new(&cluster).put("a", "b");
        cluster.etcdctl(&["user", "add", "bob:secret"]).ok();
        let url = cluster.node(0).client_url();
        let right = password(cluster.dir(), "right", "secret\n");
        let wrong = password(cluster.dir(), "wrong", "guess\n");
        let limits = StreamLimits::new(LONG, FOR_EVER);
        block_on(async {
            let member = Member::connect(url, &user("root", right.clone())).await.expect("connect as root");
            member.linearizable().await.expect("root reads");
            member.members().await.expect("root lists members");
            member.hash_kv(1, FOR_EVER).await.expect("root hashes");
            member.snapshot(limits).await.expect("root takes snapshots");

            for (name, file) in [("root", &wrong), ("nobody", &right)] {
                let error = Member::connect(url, &user(name, file.clone())).await.expect_err("refused");
                assert_eq!(error.code(), Code::Permission, "{line}: {:?}", error.why());
                assert!(error.get_remedy().is_some_and(|r| r.contains("password_file")), "{line}");
            }
            let plain = Access::plain(LONG);
            let bob = Member::connect(url, &user("bob", right.clone())).await.expect("connect as bob");
            let nobody = Member::connect(url, &plain).await.expect("connect");
            for member in [bob, nobody] {
                let errors = [
                    member.linearizable().await.err(),
                    member.hash_kv(1, FOR_EVER).await.err(),
                    member.snapshot(limits).await.err(),
                ];
                for (call, error) in errors.into_iter().enumerate() {
                    let error = error.unwrap_or_else(|| panic!("{line}: call {call} was allowed"));
                    assert_eq!(error.code(), Code::Permission, "{line}: {:?}", error.why());
                }
            }
        });
    }
}

#[test]
fn a_user_for_an_etcd_without_users_is_a_configuration_error() {
    let cluster = Cluster::start(Line::V36);
    let access = user("root", password(cluster.dir(), "password", "secret"));
    let error = block_on(Member::connect(cluster.node(0).client_url(), &access)).expect_err("auth is not enabled");
    assert_eq!(error.code(), Code::Config, "{:?}", error.why());
}
