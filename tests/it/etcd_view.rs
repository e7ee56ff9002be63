//! A cluster at one glance, with members that are dead, stopped, learners, or of another cluster.

use std::time::Duration;

use refloat::error::Code;
use refloat::etcd::{Access, ClusterView, host_addresses, own_member, pick, resolve, view};

use crate::bed::{Cluster, Line, block_on};

const LIMIT: Duration = Duration::from_secs(20);

fn look(endpoints: &[String], deadline: Duration) -> ClusterView {
    block_on(view(endpoints, &Access::plain(LIMIT), deadline))
}

#[test]
fn one_endpoint_shows_all_members_of_every_line() {
    for line in Line::ALL {
        let cluster = Cluster::builder(line).members(3).start();
        let leader = cluster.leader().member_id();
        let seen = look(&[cluster.node(0).client_url().to_owned()], LIMIT);
        assert_eq!(seen.cluster_id, Some(cluster.node(0).cluster_id()), "{line}");
        assert_eq!(seen.leader, Some(leader), "{line}");
        assert_eq!(seen.members.len(), 3, "{line}");
        assert!(seen.warnings.is_empty() && seen.failed.is_empty(), "{line}: {seen:?}");
        assert_eq!(seen.alarms, Some(vec![]), "{line}");
        for node in cluster.nodes() {
            let member = seen.members.iter().find(|m| m.info.name == node.name()).expect("each node");
            assert_eq!(member.url.as_deref(), Some(node.client_url()), "{line}");
            let status = member.status.as_ref().expect("an answer");
            assert_eq!(status.member_id, node.member_id(), "{line}");
        }
    }
}

#[test]
fn dead_and_stopped_members_neither_fail_nor_delay_it() {
    let mut cluster = Cluster::builder(Line::V36).members(5).start();
    cluster.node_mut(1).kill();
    cluster.node(2).freeze();
    let deadline = Duration::from_secs(3);
    // The outer limit only ends a test that would hang.
    let seen = block_on(async {
        let access = Access::plain(LIMIT);
        let endpoints = cluster.endpoints();
        let whole = tokio::time::timeout(4 * deadline, view(&endpoints, &access, deadline)).await;
        whole.expect("the view ends by its own deadline")
    });
    let code = |name: &str| {
        let member = seen.members.iter().find(|m| m.info.name == name).expect("each member is listed");
        member.status.as_ref().err().map(|e| e.code())
    };
    let codes: Vec<_> = ["m1", "m2", "m3", "m4", "m5"].into_iter().map(code).collect();
    assert_eq!(codes, [None, Some(Code::MemberGone), Some(Code::MemberHung), None, None]);
    assert!(seen.failed.is_empty(), "{seen:?}");

    // The members that do not answer can still be named.
    let picked = pick(&seen.members, "m3").expect("a member by name");
    assert_eq!(picked.url, cluster.node(2).client_url());
    let id = format!("{:x}", picked.info.expect("it is listed").id);
    assert_eq!(pick(&seen.members, &id).expect("a member by id").url, cluster.node(2).client_url());

    // All five are on this host: only the setting can tell which one is ours.
    let host = host_addresses().expect("addresses");
    let endpoints = block_on(resolve(&cluster.endpoints(), LIMIT));
    let error = own_member(&seen.members, None, &endpoints, &host).expect_err("five candidates");
    assert_eq!(error.code(), Code::Config);
    let own = own_member(&seen.members, Some("m4"), &endpoints, &host).expect("the setting decides");
    assert_eq!(own.url, cluster.node(3).client_url());
    let one = &endpoints[4..];
    assert_eq!(own_member(&seen.members, None, one, &host).expect("one").url, cluster.node(4).client_url());
}

#[test]
fn nobody_answers() {
    let mut cluster = Cluster::start(Line::V36);
    let endpoints = cluster.endpoints();
    cluster.node_mut(0).kill();
    let seen = look(&endpoints, LIMIT);
    assert_eq!((seen.cluster_id, seen.members.len()), (None, 0));
    assert_eq!(seen.failed[0].0, endpoints[0]);
    assert_eq!(seen.failed[0].1.code(), Code::MemberGone);
}

#[test]
fn learners_and_strangers_are_told_apart() {
    let mut cluster = Cluster::start(Line::V36);
    let learner = cluster.add_learner();
    let name = cluster.node(learner).name().to_owned();
    let stranger = Cluster::start(Line::V36);
    let mut endpoints = cluster.endpoints();
    endpoints.extend(stranger.endpoints());
    let seen = look(&endpoints, LIMIT);
    assert_eq!(seen.members.len(), 2);
    let member = seen.members.iter().find(|m| m.info.name == name).expect("the learner is listed");
    assert!(member.info.is_learner && member.status.as_ref().is_ok_and(|s| s.is_learner));
    assert_eq!(seen.warnings.len(), 1, "{:?}", seen.warnings);
    assert!(seen.warnings[0].contains("different clusters"), "{:?}", seen.warnings);
    assert!(seen.warnings[0].contains(&stranger.endpoints()[0]), "{:?}", seen.warnings);
}
