//! `refloat snapshot take` against streams that lie, stall or are canceled (promises 1 and 11): it ends within its
//! limits, says why with figures, and leaves nothing behind.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sha2::Digest;

use crate::bed::run::until;
use crate::bed::{Cluster, Fill, Liar, Lie, Line, Refloat, bbolt};
use crate::taking::{error_of, files, latest, listed, nothing_left, text, why};

/// An upper bound for any run; far above what one takes, far below for ever.
const BOUND: Duration = Duration::from_secs(60);

fn filled() -> Cluster {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(500);
    cluster
}

/// The whole stream of an idle member: its database and the trailer.
fn stream_of(cluster: &Cluster) -> Vec<u8> {
    let file = cluster.dir().join("saved.db");
    let name = file.to_str().expect("a temporary path is text");
    cluster.node(0).etcdctl(&["snapshot", "save", name]).ok();
    std::fs::read(file).expect("read what etcdctl saved")
}

/// Bytes that a test may hand to the liar.
fn for_ever(bytes: Vec<u8>) -> &'static [u8] {
    Box::leak(bytes.into_boxed_slice())
}

#[test]
fn lies_fail_with_their_reason_and_leave_nothing() {
    let cluster = filled();
    let end = stream_of(&cluster).len() as u64;
    let liar = Liar::start(cluster.node(0).client_url());
    let refloat = Refloat::new(liar.url()).config("[snapshot]\nstall_timeout = \"1s\"\n");
    let after = 400_000;
    let (cut, stalled, lies) = ("stream-cut", "stream-stalled", "stream-lies");
    let whole = format!("SHA-256 of the {} bytes of the database is ", end - 32);
    let without = format!("the stream has {} bytes", end - 32);
    let odd = format!("the stream has {} bytes", end + 100);
    let trickle = |bytes, every| Lie::Trickle { after, bytes, every: Duration::from_millis(every) };
    for (lie, code, cause) in [
        (Lie::CutOk { after: 0 }, cut, "; 0 bytes received"),
        (Lie::CutOk { after }, cut, "400000 bytes received"),
        (Lie::CutOk { after: end - 33 }, cut, "bytes received"),
        // Exactly what was announced, but the trailer is missing or cut.
        (Lie::CutOk { after: end - 32 }, lies, without.as_str()),
        (Lie::CutOk { after: end - 1 }, lies, "which is not a database with a trailer of 32"),
        (Lie::CutError { after, status: 14 }, cut, "400000 bytes received"),
        (Lie::CutError { after: end, status: 2 }, cut, "bytes received"),
        (Lie::Drop { after }, cut, "bytes received"),
        (Lie::Reset { after }, cut, "bytes received"),
        (Lie::Stall { after: 0 }, stalled, "no bytes for 1.0s; 0 bytes received"),
        (Lie::Stall { after }, stalled, "no bytes for 1.0s; 400000 bytes received"),
        (Lie::Stall { after: end }, stalled, "no bytes for 1.0s"),
        (trickle(1, 1000), stalled, "bytes received"),
        (trickle(1, 50), stalled, "at least 65536 are expected"),
        (Lie::EmptyForever { after: 0 }, stalled, "no bytes for 1.0s; 0 bytes received"),
        (Lie::EmptyForever { after }, stalled, "no bytes for 1.0s; 400000 bytes received"),
        (Lie::WrongTrailer, lies, whole.as_str()),
        (Lie::NoTrailer, lies, without.as_str()),
        (Lie::Flip { at: after }, lies, "SHA-256 of the "),
        (Lie::Flip { at: end - 5 }, lies, "SHA-256 of the "),
        (Lie::TooLong { extra: 100 }, lies, odd.as_str()),
        // A multiple of the page size: only the hash tells.
        (Lie::TooLong { extra: 4096 }, lies, "SHA-256 of the "),
        (Lie::TooLong { extra: u64::MAX }, lies, "and sends more"),
        (Lie::Remaining(1 << 60), cut, "the member ended it before"),
        (Lie::Remaining(0), lies, "the member announced 32768 bytes and sends more"),
        (Lie::Instead(&[]), cut, "before the first byte"),
        (Lie::Instead(&[7; 32]), lies, "the stream has 32 bytes"),
    ] {
        liar.lie(lie);
        let output = refloat.command(&["-o", "json", "snapshot", "take"]).timeout(BOUND).run();
        assert_eq!(output.code, Some(74), "{lie:?}: {output}");
        assert_eq!(output.stdout, "", "{lie:?}: {output}");
        let error = error_of(&output);
        assert_eq!(error["code"], code, "{lie:?}: {error}");
        assert!(why(&error).contains(cause), "{lie:?}: {error}");
        assert!(text(&error, "on").contains(&liar.url()), "{lie:?}: {error}");
        assert!(error["remedy"].is_string(), "{lie:?}: {error}");
        nothing_left(&refloat, &format!("{lie:?}"));
    }

    // The member itself was sound all the time.
    liar.be_honest();
    refloat.run(&["snapshot", "take"]).ok();
    assert_eq!(listed(&refloat, &[]).len(), 1);
    refloat.run(&["snapshot", "verify", "--all"]).ok();
}

#[test]
fn a_signal_in_the_stream_ends_it_at_once_and_leaves_nothing() {
    let cluster = filled();
    let liar = Liar::start(cluster.node(0).client_url());
    // Only the signal can end it.
    let refloat = Refloat::new(liar.url()).config("[snapshot]\nstall_timeout = \"1h\"\n");
    for (signal, lie) in [
        (Signal::SIGINT, Lie::Stall { after: 400_000 }),
        (Signal::SIGTERM, Lie::Stall { after: 400_000 }),
        (Signal::SIGINT, Lie::Stall { after: 0 }),
        (Signal::SIGTERM, Lie::EmptyForever { after: 400_000 }),
        (Signal::SIGINT, Lie::Trickle { after: 0, bytes: 1000, every: Duration::from_millis(1) }),
    ] {
        liar.lie(lie);
        let before = liar.calls("Snapshot");
        let (told, signaled) = std::sync::mpsc::channel();
        let calls = liar.counter("Snapshot");
        let interrupt = move |pid: u32| {
            let begun = until(Instant::now() + BOUND, || (calls() > before).then_some(()));
            begun.expect("the stream begins");
            kill(Pid::from_raw(pid.try_into().expect("a process id")), signal).expect("signal our own child");
            told.send(Instant::now()).expect("the test waits");
        };
        let take = refloat.command(&["-o", "json", "snapshot", "take"]).timeout(BOUND).meanwhile(interrupt).run();
        assert_eq!(take.code, Some(130), "{signal} {lie:?}: {take}");
        // A promise to people (design §10), not a speed to be measured.
        assert!(signaled.recv().expect("sent").elapsed() < Duration::from_secs(5), "{signal} {lie:?}: {take}");
        let document = take.stderr.lines().rev().find_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
        assert_eq!(document.expect("an error document")["error"]["code"], "canceled", "{take}");
        nothing_left(&refloat, &format!("{signal} {lie:?}"));
    }
    liar.be_honest();
    refloat.run(&["snapshot", "take"]).ok();
}

/// Pages in use of a type, from bbolt's own tool: `ID TYPE ITEMS OVRFLW`.
fn pages(file: &str, kind: &str) -> Vec<u64> {
    let table = bbolt(&["pages", file]).ok();
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.get(1) == Some(&kind)).filter_map(|row| row[0].parse().ok()).collect()
}

/// The member's database itself is damaged: the bytes arrive as sent, with the right trailer. They are kept and
/// named, and never count.
#[test]
fn a_damaged_database_with_a_right_trailer_is_kept_as_unverified() {
    let cluster = filled();
    // Its row is that of the newest revision, by which histories are told apart.
    let newest = "/registry/configmaps/default/the-newest-key-of-all";
    Fill::new(&cluster).put(newest, "value");
    let sound = stream_of(&cluster);
    let file = cluster.dir().join("saved.db");
    let file = file.to_str().expect("a temporary path is text");
    let page_size = u32::from_le_bytes(sound[24..28].try_into().expect("four bytes")) as usize;
    let (branches, leaves) = (pages(file, "branch"), pages(file, "leaf"));
    let (branch, leaf) = (branches[0] as usize * page_size, leaves[leaves.len() / 2] as usize * page_size);
    let places = sound.windows(newest.len()).enumerate().filter(|(_, bytes)| *bytes == newest.as_bytes());
    // Before a key stand its tag and its length.
    let tags: Vec<(usize, u8)> = places.map(|(at, _)| (at - 2, 0x07)).collect();
    let damaged = |changes: &[(usize, u8)]| {
        let mut bytes = sound[..sound.len() - 32].to_vec();
        changes.iter().for_each(|(at, bit)| bytes[*at] ^= bit);
        let trailer = sha2::Sha256::digest(&bytes);
        for_ever([&bytes[..], &trailer[..]].concat())
    };

    let liar = Liar::start(cluster.node(0).client_url());
    let refloat = Refloat::new(liar.url());
    let good = crate::taking::take(&refloat);
    let good = text(&good, "id").to_owned();
    let mut bad = Vec::new();
    for (what, changes) in [
        // Page header: id (8 bytes), flags (2), count (2), overflow (4); then elements, each with an offset.
        ("type of a branch page", vec![(branch + 8, 0x40)]),
        ("id of a leaf page", vec![(leaf, 0x01)]),
        ("count of a leaf page", vec![(leaf + 11, 0x10)]),
        ("offset of a leaf's first element", vec![(leaf + 16 + 5, 0x01)]),
        ("encoding of the newest row", tags),
        // Magic numbers of both metas: nothing can be found in it.
        ("both metas", vec![(16, 0xff), (page_size + 16, 0xff)]),
    ] {
        liar.lie(Lie::Instead(damaged(&changes)));
        let take = refloat.command(&["-o", "json", "snapshot", "take"]).run();
        assert_eq!(take.code, Some(65), "{what}: {take}");
        let error = error_of(&take);
        assert_eq!(error["code"], "data-invalid", "{what}: {error}");
        assert!(text(&error, "remedy").contains("database"), "{what}: {error}");
        let snapshot = &serde_json::from_str::<serde_json::Value>(&take.stdout).expect("a document")["snapshot"];
        assert_eq!(snapshot["state"], "unverified", "{what}: {snapshot}");
        assert!(snapshot["hash_kv"].is_null(), "{what}: {snapshot}");
        assert!(snapshot["not_checked"].as_array().is_some_and(|list| list.len() == 3), "{what}: {snapshot}");
        let id = text(snapshot, "id").to_owned();

        assert_eq!(latest(&refloat), good, "{what}");
        let list = listed(&refloat, &[]);
        assert_eq!(list.len(), bad.len() + 2, "{what}: it stands in the list of its own cluster: {list:?}");
        assert!(list.contains(&id), "{what}: {list:?}");
        let verify = refloat.command(&["-o", "json", "snapshot", "verify", &id]).run();
        assert_eq!(verify.code, Some(65), "{what}: {verify}");
        bad.push(id);
    }
    // Damage decides nothing about history: the next sound one goes on where the first stood.
    liar.be_honest();
    Fill::new(&cluster).put("/registry/configmaps/default/after", "damage");
    let next = crate::taking::take(&refloat);
    assert_eq!(next["timeline"], refloat.json(&["snapshot", "show", &good])["timeline"]);
    assert_eq!(latest(&refloat), text(&next, "id"));
    assert!(!files(&refloat.store()).iter().any(|name| name.contains("timelines/0002")));
}
