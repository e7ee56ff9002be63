//! Two takes at once, a take beside other commands, and several nodes that share a store (law 10).

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bed::run::until;
use crate::bed::{Cluster, Fill, Liar, Lie, Line, Refloat};
use crate::stores::edit;
use crate::taking::{error_of, latest, listed, take, text, why};

fn start() -> (Cluster, Liar) {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(200);
    let liar = Liar::start(cluster.node(0).client_url());
    (cluster, liar)
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.try_into().expect("a process id")), signal).expect("signal an own child");
}

#[track_caller]
fn wait_for(what: &str, ready: impl Fn() -> bool) {
    let seen = until(Instant::now() + Duration::from_secs(60), || ready().then_some(()));
    seen.unwrap_or_else(|| panic!("no {what} within a minute"));
}

#[test]
fn two_takes_at_once() {
    let (_cluster, liar) = start();
    let refloat = Refloat::new(liar.url());
    let log = refloat.dir().join("second.log");
    // The first is stopped in the middle of its stream, goes on at the end, or is killed there.
    for (ending, taken) in [(Signal::SIGCONT, 2), (Signal::SIGKILL, 3)] {
        liar.lie(Lie::Trickle { after: 0, bytes: 8 << 10, every: Duration::from_millis(20) });
        let calls = liar.calls("Snapshot");
        let output = std::thread::scope(|scope| {
            let (refloat, liar, log) = (&refloat, &liar, &log);
            let (pid, first) = std::sync::mpsc::channel();
            let running = scope.spawn(move || {
                let run = refloat.command(&["-o", "json", "snapshot", "take"]);
                run.meanwhile(move |id| pid.send(id).expect("a listener")).run()
            });
            let first = first.recv().expect("a process id");
            wait_for("stream", || liar.calls("Snapshot") > calls);
            signal(first, Signal::SIGSTOP);
            liar.be_honest();

            let output = refloat.run(&["-o", "json", "snapshot", "take", "--no-wait"]);
            let error = error_of(&output);
            assert_eq!((output.code, &error["code"]), (Some(75), &"lock-held".into()), "{output}");
            assert!(why(&error).contains(&format!("held by snapshot take (pid {first} on test, since ")), "{error}");
            // Neither is the list of known stores changed under it; reading needs no lock.
            let output = refloat.run(&["-o", "json", "store", "init", "local"]);
            assert_eq!((output.code, &error_of(&output)["code"]), (Some(75), &"lock-held".into()), "{output}");
            refloat.run(&["snapshot", "list"]).ok();
            refloat.run(&["store", "check"]).ok();

            let waits = format!("wait for snapshot take (pid {first} on test");
            let second = scope.spawn(move || {
                let program = env!("CARGO_BIN_EXE_refloat");
                let script = format!("exec \"$@\" 2>{:?}", log.display().to_string());
                let run = crate::bed::Run::new("bash").args(["-c", &script, "bash", program, "--config"]);
                run.args([refloat.config_file()]).args(["snapshot", "take"]).run()
            });
            wait_for("reason to wait", || std::fs::read_to_string(log).is_ok_and(|said| said.contains(&waits)));
            signal(first, ending);
            let second = second.join().expect("no panic");
            assert!(second.success(), "{second}");
            running.join().expect("no panic")
        });
        assert_eq!(output.success(), ending == Signal::SIGCONT, "{output}");
        assert_eq!(listed(&refloat, &[]).len(), taken, "after {ending}");
        std::fs::remove_file(&log).unwrap();
    }
}

#[test]
fn a_take_beside_a_verification() {
    let (cluster, _liar) = start();
    let refloat = Refloat::new(cluster.node(0));
    take(&refloat);
    std::thread::scope(|scope| {
        let verify = scope.spawn(|| refloat.json(&["snapshot", "verify", "--all"]));
        take(&refloat);
        let verified = verify.join().expect("no panic");
        assert_eq!(verified["ok"], true, "{verified}");
    });
    assert_eq!(listed(&refloat, &[]).len(), 2);
}

#[test]
fn two_nodes_share_a_store() {
    let (cluster, _liar) = start();
    let first = Refloat::new(cluster.node(0));
    let second = Refloat::new(cluster.node(0));
    edit(&second, "node = \"test\"", "node = \"cp2.example\"");
    edit(&second, &second.store().display().to_string(), &first.store().display().to_string());
    let one = take(&first);
    Fill::new(&cluster).put("/registry/a", "b");
    let two = take(&second);
    let (one, two) = (text(&one, "id"), text(&two, "id"));
    assert!(one.ends_with("-test") && two.ends_with("-cp2.example"), "{one} {two}");
    for (refloat, own) in [(&first, one), (&second, two)] {
        assert_eq!(listed(refloat, &[]), [two, one]);
        assert_eq!(latest(refloat), own);
        // Any beginning or end that fits one alone.
        let revision = "0001-00000000000000000000".len();
        for (part, id) in [("test", one), ("example", two), (&two[..revision], two), (one, one), (&two[1..], two)] {
            assert_eq!(refloat.json(&["snapshot", "show", part])["id"], id, "{part}");
        }
        let output = refloat.run(&["-o", "json", "snapshot", "show", "0001-"]);
        let error = error_of(&output);
        assert_eq!((output.code, &error["code"]), (Some(64), &"ambiguous".into()), "{output}");
        let said = why(&error);
        assert!(said.contains("it fits 2 snapshots") && said.contains(one) && said.contains(two), "{said}");
        let output = refloat.run(&["-o", "json", "snapshot", "show", "0002-"]);
        assert_eq!((output.code, &error_of(&output)["code"]), (Some(66), &"not-found".into()), "{output}");
    }
    // Both at once: each has a lock of its own, and neither sweeps what the other one is writing.
    std::thread::scope(|scope| {
        let runs = [&first, &second].map(|refloat| scope.spawn(|| drop((take(refloat), take(refloat)))));
        runs.into_iter().for_each(|run| run.join().expect("no panic"));
    });
    assert_eq!(listed(&first, &[]).len(), 6);
    assert_eq!(first.json(&["snapshot", "verify", "--all"])["ok"], true);
}
