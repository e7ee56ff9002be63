//! States of a cluster that leave their own traces in a database: users, removed members, alarms, a downgrade, a
//! compaction under way, a restore with a bumped revision. A real trace must never look like damage.

use etcd_client::{AlarmAction, AlarmType, CompactionOptions};

use crate::bed::{Cluster, Fill, Line, block_on, soak};
use crate::oracles::{Oracle, content, path};

/// Sound as a snapshot, and sound without its trailer, where anything odd counts.
#[track_caller]
fn sound_with_and_without_trailer(oracle: &mut Oracle, what: &str) -> refloat::format::check::Content {
    let file = oracle.save();
    let content = content(&file);
    let bytes = std::fs::read(&file).expect("read a snapshot");
    let bare = file.with_extension("bare");
    std::fs::write(&bare, &bytes[..bytes.len() / 512 * 512]).expect("write a file");
    let checked = oracle.refloat.json(&["db", "check", path(&bare)]);
    assert!(checked["ok"] == true && checked["not_covered"][0].is_string(), "{what}: {checked}");
    content
}

#[test]
fn users_removed_members_alarms_and_downgrades_are_no_damage() {
    let lines = if soak() { Line::ALL.to_vec() } else { vec![Line::V34, Line::V36, Line::V37] };
    for line in lines {
        // Otherwise a member that has been connected for less than five seconds may not see another one go.
        let hasty = ["--strict-reconfig-check=false"];
        let cluster = Cluster::builder(line).auth("root", "secret").args(hasty).start();
        let mut oracle = Oracle::on(cluster);
        let fill = oracle.fill();
        fill.kubernetes(50);
        for args in [
            &["user", "add", "reader:pw"][..],
            &["role", "add", "reads"],
            &["role", "grant-permission", "reads", "read", "/registry/", "/registry0"],
            &["user", "grant-role", "reader", "reads"],
            &["user", "add", "nobody", "--no-password"],
        ] {
            oracle.cluster.node(0).etcdctl(args).ok();
        }
        // A learner comes and goes: no election can come between.
        let learner = oracle.cluster.add_learner();
        let content = sound_with_and_without_trailer(&mut oracle, &format!("{line} with a learner"));
        assert_eq!(content.members.iter().filter(|m| m.is_learner).count(), 1, "{line}: {:?}", content.members);
        let gone = format!("{:x}", oracle.cluster.node(learner).member_id());
        let id = oracle.cluster.node(0).member_id();
        block_on(async { fill.client().alarm(AlarmAction::Activate, AlarmType::Nospace, None).await })
            .expect("raise an alarm");
        oracle.cluster.node(0).etcdctl(&["member", "remove", &gone]).ok();
        let below = match line {
            Line::V36 => Some("3.5.0"),
            Line::V37 => Some("3.6.0"),
            // Before, a downgrade leaves nothing in the database.
            Line::V34 | Line::V35 => None,
        };
        if let Some(below) = below {
            oracle.cluster.node(0).etcdctl(&["downgrade", "enable", below]).ok();
        }
        let content = sound_with_and_without_trailer(&mut oracle, &format!("{line}"));
        let count = |name: &str| content.buckets.iter().find(|(bucket, _)| bucket == name).map_or(0, |(_, n)| *n);
        let counts = (count("authUsers"), count("authRoles"), count("members_removed"), count("members"));
        assert_eq!(counts, (3, 2, 1, 1), "{line}: {:?}", content.buckets);
        assert_eq!(content.alarms.len(), 1, "{line}: {:?}", content.alarms);
        assert!(content.members.iter().any(|m| m.id == id), "{line}");
        assert!(below.is_none() || count("cluster") == 2, "{line}: {:?}", content.buckets);
    }
}

#[test]
fn a_compaction_under_way_changes_no_hash() {
    // So slow that it has not ended when the file is looked at, nor an hour later.
    let slow = |line: Line| match line {
        Line::V34 => None,
        Line::V35 => Some(["--experimental-compaction-batch-limit=20", "--experimental-compaction-sleep-interval=1m"]),
        Line::V36 | Line::V37 => Some(["--compaction-batch-limit=20", "--compaction-sleep-interval=1m"]),
    };
    for line in if soak() { Line::ALL.to_vec() } else { vec![Line::V36] } {
        let Some(args) = slow(line) else { continue };
        let mut oracle = Oracle::on(Cluster::builder(line).args(args).start());
        let fill = oracle.fill();
        fill.kubernetes(100);
        fill.small(3_000);
        fill.small(3_000);
        let newest = fill.revision();
        let options = CompactionOptions::new();
        block_on(async { fill.client().compact(newest - 5, Some(options)).await }).expect("compact");
        fill.put("after", "it");
        let file = oracle.save();
        let (meta, newest) = (content(&file).meta, newest - 5);
        assert_eq!(meta.scheduled_compaction, Some(newest as u64), "{line}");
        assert!(meta.finished_compaction < meta.scheduled_compaction, "{line}: {meta:?}");
        oracle.compare("a compaction under way");
        sound_with_and_without_trailer(&mut oracle, "a compaction under way");

        // Killed in the middle of it, and gone on with.
        oracle.cluster.node_mut(0).kill();
        let file = oracle.cluster.node(0).db_file();
        assert_eq!(oracle.refloat.json(&["db", "check", path(&file)])["ok"], true, "{line}");
        oracle.cluster.node_mut(0).restart();
        oracle.compare("after a kill within a compaction");
    }
}

#[test]
fn a_restore_with_a_bumped_revision_is_no_damage() {
    for line in if soak() { vec![Line::V35, Line::V36, Line::V37] } else { vec![Line::V36] } {
        let mut oracle = Oracle::start(line);
        let made = oracle.fill().kubernetes(60);
        let file = oracle.save();
        let flags = ["--initial-cluster-token=bumped", "--bump-revision=1000000", "--mark-compacted"];
        oracle.cluster.restore(&file, &flags);
        let content = sound_with_and_without_trailer(&mut oracle, "bumped");
        assert_eq!(content.revision as i64, made.revision + 1_000_000, "{line}");
        assert_eq!(Fill::new(&oracle.cluster).revision(), made.revision + 1_000_000, "{line}");
        let fill = oracle.fill();
        fill.put("first", "after it");
        fill.kubernetes(30);
        let content = sound_with_and_without_trailer(&mut oracle, "written to after a bump");
        let file = oracle.save();
        let own = oracle.refloat.json(&["db", "hashkv", path(&file)]);
        let live = fill.hash_kv(0);
        assert_eq!((own["hash"].as_u64(), own["revision"].as_i64()), (Some(live.hash.into()), Some(live.revision)));
        assert_eq!(content.compact_revision as i64, live.compact_revision, "{line}");
    }
}
