//! Facts of real members of every line, held against what the members' own tools and metrics say.

use std::time::Duration;

use refloat::error::Code;
use refloat::etcd::{Access, Alarm, AlarmKind, Member, defects};

use crate::bed::{Cluster, Fill, Line, block_on};

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn every_line_tells_its_facts() {
    for line in Line::ALL {
        let cluster = Cluster::start(line);
        let node = cluster.node(0);
        let fill = Fill::new(node);
        let made = fill.kubernetes(200);
        let compact = made.revision - 20;
        fill.compact(compact);
        fill.put("greeting", "hello");
        let second = fill.put("greeting", "hello again");
        let live = fill.hash_kv(second);

        block_on(async {
            let member = Member::connect(node.client_url(), &Access::plain(LIMIT)).await.expect("connect");
            let status = member.status().await.expect("status");
            assert_eq!(status.version, line.version());
            assert_eq!(status.member_id, node.member_id(), "{line}");
            assert!(status.is_leader() && !status.is_learner, "{line}");
            assert!(status.db_size >= status.db_in_use && status.db_in_use > 0, "{line}: {status:?}");
            assert_eq!(status.revision, second, "{line}");
            assert!(status.raft_applied_index > 0 && status.raft_index >= status.raft_applied_index, "{line}");
            let newer = line >= Line::V36;
            assert_eq!(status.quota.is_some(), newer, "{line}");
            assert_eq!(status.storage_version.is_some(), newer, "{line}");
            assert_eq!(member.version().await.expect("version"), line.version());

            let members = member.members().await.expect("members");
            assert_eq!(members.len(), 1, "{line}");
            assert_eq!((members[0].id, members[0].name.as_str()), (status.member_id, node.name()));
            assert_eq!(members[0].client_urls, [node.client_url()], "{line}");
            assert_eq!(members[0].peer_urls, [node.peer_url()], "{line}");
            assert_eq!(member.alarms().await.expect("alarms"), [], "{line}");

            for header in [member.linearizable().await, member.serializable().await] {
                let header = header.expect("a read");
                assert_eq!((header.cluster_id, header.member_id), (status.cluster_id, status.member_id), "{line}");
                assert_eq!((header.revision, header.raft_term), (second, status.raft_term), "{line}");
            }
            let kv = member.get(b"greeting").await.expect("a read").expect("the key");
            assert_eq!(kv.value, b"hello again");
            assert_eq!((kv.mod_revision, kv.create_revision, kv.version, kv.lease), (second, second - 1, 2, 0));
            assert_eq!(member.get(b"absent").await.expect("a read"), None);

            let hash = member.hash_kv(second, LIMIT).await.expect("HashKV");
            assert_eq!((hash.hash, hash.revision), (live.hash, second), "{line}");
            assert_eq!(hash.compact_revision, compact, "{line}");
            for revision in [compact - 1, second + 1] {
                let error = member.hash_kv(revision, LIMIT).await.expect_err("out of reach");
                assert_eq!(error.code(), Code::RevisionNotReachable, "{line}: {:?}", error.why());
            }
        });
    }
}

#[test]
fn a_store_that_was_never_compacted_has_compact_revision_zero() {
    for line in Line::ALL {
        let cluster = Cluster::start(line);
        let revision = Fill::new(&cluster).put("a", "b");
        let hash = block_on(async {
            let member = Member::connect(cluster.node(0).client_url(), &Access::plain(LIMIT)).await.expect("connect");
            member.hash_kv(revision, LIMIT).await.expect("HashKV")
        });
        assert_eq!((hash.revision, hash.compact_revision), (revision, 0), "{line}");
    }
}

#[test]
fn calls_go_to_the_member_that_was_named() {
    let cluster = Cluster::builder(Line::V36).members(3).start();
    for node in cluster.nodes() {
        let id = node.member_id();
        block_on(async {
            let member = Member::connect(node.client_url(), &Access::plain(LIMIT)).await.expect("connect");
            // A balanced connection would wander.
            for _ in 0..5 {
                assert_eq!(member.status().await.expect("status").member_id, id);
                assert_eq!(member.linearizable().await.expect("a read").member_id, id);
                assert_eq!(member.serializable().await.expect("a read").member_id, id);
            }
        });
    }
}

#[test]
fn a_full_member_raises_its_alarm() {
    let cluster = Cluster::builder(Line::V36).args(["--quota-backend-bytes=1048576"]).start();
    let value = "x".repeat(100_000);
    let refused = (0..100).any(|i| !cluster.etcdctl(&["put", &format!("k{i}"), &value]).success());
    assert!(refused, "10 MB do not fit into 1 MiB");
    block_on(async {
        let member = Member::connect(cluster.node(0).client_url(), &Access::plain(LIMIT)).await.expect("connect");
        let status = member.status().await.expect("status");
        let alarm = Alarm { member_id: status.member_id, kind: AlarmKind::NoSpace };
        assert_eq!(member.alarms().await.expect("alarms"), [alarm]);
        assert_eq!(status.quota, Some(1 << 20));
        assert!(status.errors.iter().any(|e| e.contains("NOSPACE")), "{:?}", status.errors);
    });
}

#[test]
fn the_lines_of_the_bed_are_known_to_the_table() {
    for line in Line::ALL {
        assert!(defects(line.version()).iter().all(|d| d.id != "unknown-version"), "{line}");
    }
}
