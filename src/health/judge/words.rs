//! Advice for each cause, and figures in words.

use std::time::Duration;

use super::super::model::TargetId;
use super::super::verdict::Cause;
use super::View;

/// What a person may do.
pub(super) fn advice(cause: Cause) -> &'static str {
    match cause {
        Cause::HungProcess => {
            "look at the process (state T or D in ps, its log), then restart it; open ports and /metrics prove nothing"
        }
        Cause::Stopped => "start it, unless it is being restarted",
        Cause::Unreachable => "look at the host and its network",
        Cause::FrozenDisk => {
            "look at the disk of the data directory (kernel log, storage system); etcd goes on by itself when the disk does"
        }
        Cause::StalledWal => {
            "look at the disk of the WAL directory: reads from this member are old, whatever /livez says"
        }
        Cause::NoQuorumHere => {
            "look at the peer ports (2380) between this member and the others; it serves old data until then"
        }
        Cause::NoQuorumAnywhere => "start members until a majority runs; if they are lost, restore from a snapshot",
        Cause::LargePacketsLost => "look for a smaller MTU on the way (tunnels, VLANs): packets above some size vanish",
        Cause::NoSpace => {
            "compact, defragment each member, then disarm the alarm (etcdctl alarm disarm), in this order; find what fills it first"
        }
        Cause::Corrupt => {
            "stop the member that the alarm names, remove and add it anew; compare HashKV of all members first"
        }
        Cause::ExpiredCertificate => {
            "renew the certificates (kubeadm certs renew, or as they were made) and restart what serves them, one node at a time"
        }
        Cause::TlsFailed => {
            "compare the certificate authority and the names of the certificate with what the client expects"
        }
        Cause::AnswersErrors => "read the log of this process for the error",
        Cause::StaleCache => "restart this apiserver: its watch cache has stopped following etcd",
        Cause::EtcdBehindIt => "repair the etcd member behind this apiserver; restarting the apiserver does not help",
        Cause::WritesRefused => "read the error: admission webhooks, authorisation, or a read-only member",
        Cause::Defragmentation => "wait; defragment one member at a time, the leader last",
        Cause::Election => "wait; if leaders go on changing, look at the disks and the network of the members",
        Cause::ListOverload => {
            "let the client set resourceVersion=0 or use a watch; limit it by a FlowSchema until then"
        }
        Cause::SlowStorage => {
            "move etcd's data to a local disk with fsyncs below 10 ms; network file systems are not supported by etcd"
        }
        Cause::SlowMember => "look at the disk, the processor and the network of this member",
        Cause::OwnIsolation => {
            "look at the network of this node; name a balancer as witness ([health]) to tell both sides apart"
        }
        Cause::OwnStarvation => "look at what takes the processor or memory of this node",
        Cause::OwnClock => "look at the time service of this node",
        Cause::OwnCertificate => "renew the client certificate of this observer (refloat setup)",
        Cause::NotYetKnown => "wait for some seconds; if it stays, the reason says what could not be asked",
    }
}

/// `4.2 s`, `3 min`.
pub(super) fn lasts(span: Duration) -> String {
    match span.as_secs() {
        0..=9 => format!("{:.1} s", span.as_secs_f64()),
        seconds @ 10..=119 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

pub(super) fn bytes(count: u64) -> String {
    match count {
        0..=1_048_575 => format!("{} KiB", count >> 10),
        1_048_576..=1_073_741_823 => format!("{} MiB", count >> 20),
        _ => format!("{:.1} GiB", count as f64 / f64::from(1 << 30)),
    }
}

/// What the applied index did, seen against the others' revisions.
pub(super) fn standstill(view: &View, id: TargetId) -> String {
    let Some(past) = view.facts.past(id) else { return String::new() };
    let newest = view.voters().filter_map(|other| view.facts.past(other)?.revision).map(|(_, revision)| revision).max();
    match (past.status, past.revision, newest) {
        (Some(status), Some((_, revision)), Some(newest)) if newest > revision => {
            format!("its applied index stands at {}, revision {revision}, while others are at {newest}", status.applied)
        }
        (Some(status), ..) => format!("its applied index stands at {}", status.applied),
        _ => "its applied index is not known".to_owned(),
    }
}

pub(super) fn space(view: &View, id: TargetId) -> String {
    match view.facts.past(id).and_then(|past| past.status) {
        Some(status) => {
            let quota = status.quota.map_or(String::new(), |quota| format!(" of {}", bytes(quota)));
            let (size, used) = (bytes(status.db_size), bytes(status.db_in_use));
            format!("reads are answered, writes are refused for lack of space: {size}{quota}, {used} of it in use")
        }
        None => "reads are answered, writes are refused for lack of space".to_owned(),
    }
}

/// Names of file systems over a network, as the kernel writes them.
pub(super) fn is_network(name: &str) -> bool {
    const NETWORK: [&str; 12] = [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ceph",
        "glusterfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "9p",
        "ocfs2",
        "lustre",
    ];
    NETWORK.contains(&name)
}
