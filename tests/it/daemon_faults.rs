//! What is wrong around the daemon: it stays up, says so in status and sentence, and recovers by itself.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::bed::{Cluster, Daemon, Line, Refloat, SmallDisk};
use crate::taking::{listed, text};

const OFTEN: &str = "[snapshot]\nevery = \"10s\"\nshift = \"0s\"\n";

fn hup(daemon: &Daemon<'_>) {
    let pid = i32::try_from(daemon.process().pid()).expect("a process id");
    kill(Pid::from_raw(pid), Signal::SIGHUP).expect("signal an own child");
}

fn trouble<'s>(status: &'s Value, about: &str) -> Option<&'s Value> {
    status["troubles"].as_array().into_iter().flatten().find(|t| t["about"] == about)
}

#[test]
fn etcd_dies_and_comes_back() {
    let mut cluster = Cluster::start(Line::V36);
    let refloat = Refloat::new(cluster.node(0)).config(OFTEN);
    cluster.node_mut(0).kill();
    let daemon = Daemon::start(&refloat);
    let status = daemon.status_when("it is said", |s| trouble(s, "etcd").is_some());
    assert_eq!(trouble(&status, "etcd").expect("it")["error"]["code"], "member-gone", "{status}");
    assert!(text(&status, "summary").starts_with("etcd: "), "{status}");
    assert_eq!(status["recovery_point"]["revisions"], Value::Null);
    cluster.node_mut(0).restart();
    let status = daemon.status_when("it recovers", |s| s["stores"][0]["snapshots"].as_u64() >= Some(1));
    assert!(status["last_verified"].is_string(), "{status}");
    daemon.status_when("nothing is wrong any more", |s| trouble(s, "etcd").is_none());
    daemon.stop();
}

#[test]
fn etcd_moves_to_another_url() {
    let cluster = Cluster::start(Line::V36);
    let refloat = Refloat::new("http://127.0.0.1:1").config(OFTEN);
    let daemon = Daemon::start(&refloat);
    daemon.status_when("it is said", |s| trouble(s, "etcd").is_some());
    let config = std::fs::read_to_string(refloat.config_file()).expect("read it");
    let config = config.replace("http://127.0.0.1:1\"", &format!("{}\"", cluster.node(0).client_url()));
    std::fs::write(refloat.config_file(), config).expect("write it");
    hup(&daemon);
    daemon.status_when("it recovers", |s| s["stores"][0]["snapshots"].as_u64() >= Some(1));
    daemon.status_when("nothing is wrong any more", |s| trouble(s, "etcd").is_none());
}

#[test]
fn a_broken_configuration_is_refused_and_the_old_one_stays() {
    let cluster = Cluster::start(Line::V36);
    let refloat = Refloat::new(cluster.node(0)).config("[snapshot]\nschedule = \"0 0 1 1 *\"\n");
    let daemon = Daemon::start(&refloat);
    let good = std::fs::read_to_string(refloat.config_file()).expect("read it");
    for broken in [good.replace("schedule =", "shedule ="), good.replace("/state\"", "/other\"")] {
        std::fs::write(refloat.config_file(), &broken).expect("write it");
        hup(&daemon);
        std::fs::write(refloat.dir().join("good.toml"), &good).expect("write it");
        let status = daemon.wait("it is refused", || {
            let config = refloat.dir().join("good.toml").display().to_string();
            let output = crate::bed::Run::new(env!("CARGO_BIN_EXE_refloat"))
                .args(["--config", &config, "-o", "json", "status"])
                .run();
            output.success().then(|| output.json()).filter(|s| trouble(s, "configuration").is_some())
        });
        assert_eq!(status["schedules"][0]["expression"], "0 0 1 1 *", "{status}");
        std::fs::write(refloat.config_file(), good.replace("0 0 1 1 *", "0 0 2 2 *")).expect("write it");
        hup(&daemon);
        daemon.status_when("a good one is taken up", |s| {
            trouble(s, "configuration").is_none() && s["schedules"][0]["expression"] == "0 0 2 2 *"
        });
        std::fs::write(refloat.config_file(), &good).expect("write it");
        hup(&daemon);
        daemon.status_when("and the first again", |s| s["schedules"][0]["expression"] == "0 0 1 1 *");
    }
    daemon.stop();
}

#[test]
fn missing_certificates_are_named_and_taken_up_when_they_come() {
    let cluster = Cluster::builder(Line::V36).tls(true).start();
    let refloat = Refloat::new(cluster.node(0)).config(OFTEN);
    let key = &cluster.pki().expect("a PKI").client.key;
    let aside = key.with_extension("aside");
    std::fs::rename(key, &aside).expect("move the key away");
    let daemon = Daemon::start(&refloat);
    let status = daemon.status_when("it is said", |s| trouble(s, "certificates").is_some());
    let line = trouble(&status, "certificates").expect("it").to_string();
    assert!(line.contains("key_file"), "{line}");
    std::fs::rename(&aside, key).expect("move it back");
    daemon.status_when("it recovers", |s| s["stores"][0]["snapshots"].as_u64() >= Some(1));
    daemon.status_when("nothing is wrong any more", |s| trouble(s, "certificates").is_none());
}

#[test]
fn a_full_disk_of_the_state_stops_no_snapshot() {
    if crate::bed::skip_unless_root("a small file system for the state directory") {
        return;
    }
    let cluster = Cluster::start(Line::V36);
    let disk = SmallDisk::new(8 << 20);
    let refloat = Refloat::new(cluster.node(0)).config(OFTEN);
    let config = std::fs::read_to_string(refloat.config_file()).expect("read it");
    let config = config.replace(&refloat.state().display().to_string(), &disk.path().display().to_string());
    std::fs::write(refloat.config_file(), config).expect("write it");
    let daemon = Daemon::start(&refloat);
    daemon.status_when("the first one is there", |s| s["stores"][0]["snapshots"] == 1);
    // To the last byte; the ledger has some room of its own, and it takes long to use that up.
    let _ = std::fs::write(disk.path().join("fill"), vec![1u8; 16 << 20]);
    let before = listed(&refloat, &[]).len();
    daemon.status_when("more come all the same", |s| s["stores"][0]["snapshots"].as_u64() > Some(before as u64));
    std::fs::remove_file(disk.path().join("fill")).expect("remove it");
    let status = daemon.status_when("the ledger is well", |s| s["ledger"]["state"] == "good");
    assert!(status["last_verified"].is_string());
    daemon.stop();
}

#[test]
fn a_state_directory_that_is_moved_away_is_said() {
    let cluster = Cluster::start(Line::V36);
    let refloat = Refloat::new(cluster.node(0)).config("[snapshot]\nschedule = \"0 0 1 1 *\"\n");
    let moved = refloat.dir().join("moved");
    let daemon = Daemon::start(&refloat);
    std::fs::rename(refloat.state(), &moved).expect("move it");
    std::fs::create_dir(refloat.state()).expect("make another");
    let status = daemon.status_when("it is said", |s| trouble(s, "state directory").is_some());
    assert!(text(&status, "summary").contains("state directory"), "{status}");
    std::fs::remove_dir_all(refloat.state()).expect("remove the other");
    std::fs::rename(&moved, refloat.state()).expect("move it back");
    daemon.status_when("it is well", |s| trouble(s, "state directory").is_none());
}

#[test]
fn a_stale_socket_is_replaced_and_a_second_daemon_refused() {
    let cluster = Cluster::start(Line::V36);
    let refloat = Refloat::new(cluster.node(0)).config("[snapshot]\nschedule = \"0 0 1 1 *\"\n");
    let first = Daemon::start(&refloat);
    let second = refloat.command(&["daemon"]).run();
    assert_eq!(second.code, Some(75), "{second}");
    assert!(second.stderr.contains("another daemon listens there"), "{second}");
    first.process().kill();
    assert!(first.socket().exists());
    let third = Daemon::start(&refloat);
    third.stop();
    assert!(!refloat.dir().join("run/control.sock").exists());
}

#[test]
fn two_daemons_cannot_share_a_state_directory() {
    let cluster = Cluster::start(Line::V36);
    let refloat = Refloat::new(cluster.node(0)).config("[snapshot]\nschedule = \"0 0 1 1 *\"\n");
    let _first = Daemon::start(&refloat);
    let other = std::fs::read_to_string(refloat.config_file()).expect("read it").replace("/run\"", "/elsewhere\"");
    let file = refloat.dir().join("other.toml");
    std::fs::write(&file, other).expect("write it");
    let refused = crate::bed::Run::new(env!("CARGO_BIN_EXE_refloat"))
        .args(["--config", &file.display().to_string(), "daemon"])
        .timeout(Duration::from_secs(30))
        .run();
    assert_eq!(refused.code, Some(75), "{refused}");
    assert!(refused.stderr.contains("held by refloat daemon"), "{refused}");
}

/// A disk that takes nothing: said, no job begins, and everything goes on when it thaws.
#[test]
fn a_frozen_state_directory_is_said_and_thaws() {
    if crate::bed::skip_unless_root("a file system that can be frozen") {
        return;
    }
    let cluster = Cluster::start(Line::V36);
    let disk = crate::bed::FreezableDisk::new(64);
    let refloat = Refloat::new(cluster.node(0)).config(OFTEN);
    let config = std::fs::read_to_string(refloat.config_file()).expect("read it");
    let config = config.replace(&refloat.state().display().to_string(), &disk.path().display().to_string());
    std::fs::write(refloat.config_file(), config).expect("write it");
    let daemon = Daemon::start(&refloat);
    daemon.status_when("the first one is there", |s| s["stores"][0]["snapshots"] == 1);
    let frozen = disk.freeze();
    let status = daemon.status_when("it is said", |s| s["ledger"]["state"] == "silent");
    assert!(text(&status, "summary").contains("the ledger is silent"), "{status}");
    drop(frozen);
    let before = status["stores"][0]["snapshots"].as_u64();
    daemon
        .status_when("it goes on", |s| s["ledger"]["state"] == "good" && s["stores"][0]["snapshots"].as_u64() > before);
    daemon.stop();
}

/// One request over a connection of its own; the whole answer.
fn raw(daemon: &Daemon<'_>, request: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::os::unix::net::UnixStream::connect(daemon.socket()).expect("connect");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    stream.write_all(request.as_bytes()).expect("ask");
    let mut answer = Vec::new();
    // A connection that is cut after its answer still gave one.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn whatever_is_refused_on_the_socket_says_why_as_a_document() {
    let refloat = Refloat::new("http://127.0.0.1:1").config("[snapshot]\nschedule = \"0 0 1 1 *\"\n");
    let daemon = Daemon::start(&refloat);
    let long = "x".repeat(70 << 10);
    for (request, status) in [
        ("GET /v1/nothing HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".to_string(), 404),
        ("PUT /v1/jobs HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".to_string(), 405),
        ("GET /v1/jobs/%ff HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".to_string(), 400),
        (
            format!(
                "POST /v1/jobs HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{long}",
                long.len()
            ),
            413,
        ),
    ] {
        let answer = raw(&daemon, &request);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        let body: Value = serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {body:?}"));
        assert!(body["schema"] == 1 && body["error"]["code"].is_string(), "{body}");
    }
    // More connections than one user may hold: the one too many is told so, by the command as well.
    let socket = daemon.socket();
    let held: Vec<_> = (0..256).map(|_| std::os::unix::net::UnixStream::connect(&socket).expect("connect")).collect();
    let refused = refloat.run(&["status"]);
    assert!(refused.stderr.contains("holds as many as one may"), "{}", refused.stderr);
    drop(held);
    daemon.status_when("it answers again", |s| s["schema"] == 1);
}

#[test]
fn a_store_that_leaves_the_configuration_leaves_the_status_and_comes_back() {
    let cluster = Cluster::start(Line::V36);
    let refloat = Refloat::new(cluster.node(0)).config("[snapshot]\nschedule = \"0 0 1 1 *\"\n");
    let alone = std::fs::read_to_string(refloat.config_file()).expect("read it");
    let second = refloat.store().with_file_name("second");
    std::fs::create_dir(&second).expect("make it");
    let both = format!("{alone}\n[[store]]\nname = \"second\"\nurl = \"file://{}\"\n", second.display());
    std::fs::write(refloat.config_file(), &both).expect("write it");
    refloat.run(&["store", "init", "second"]).ok();
    let daemon = Daemon::start(&refloat);
    let names = |s: &Value| s["stores"].as_array().map_or(0, Vec::len);
    daemon.status_when("both are there", |s| names(s) == 2);
    std::fs::write(refloat.config_file(), &alone).expect("write it");
    hup(&daemon);
    daemon.status_when("one is there", |s| names(s) == 1 && s["recovery_point"]["by_store"]["second"].is_null());
    std::fs::write(refloat.config_file(), &both).expect("write it");
    hup(&daemon);
    daemon.status_when("both are there again", |s| names(s) == 2 && s["stores"][1]["state"] == "good");
    daemon.stop();
}
