//! What balancers hear of a real process: by the fence file, by hand, and when everything around it is gone.

use std::time::Duration;

use refloat::health::fence::Word;

use crate::answering::{Answering, PATIENCE, clock};
use crate::bed::process::Process;
use crate::bed::{Run, skip_unless_root};

const NOW: Duration = Duration::ZERO;

#[test]
fn a_word_counts_for_ten_seconds_and_no_longer() {
    let node = Answering::start("balancer");
    node.hears_now("up ready 100%\n", 200);
    node.decide(Word::Down, "hung process", NOW);
    node.hears_now("down #hung process\n", 503);
    node.decide(Word::Up, "well", NOW);
    node.hears_now("up ready 100%\n", 200);
    // Health is killed while it says down: nobody writes any more.
    let ago = Duration::from_secs(7);
    node.decide(Word::Down, "hung process", ago);
    let (_, written) = clock();
    node.hears_now("down #hung process\n", 503);
    node.wait("up again", || node.hears().filter(|heard| heard.1 == 200));
    let silence = clock().1.since(written) + ago;
    assert!(silence >= Duration::from_secs(10), "up after {silence:?} alone");
}

#[test]
fn all_of_it_is_in_memory() {
    if skip_unless_root("locks memory") {
        return;
    }
    let node = Answering::start("balancer");
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).expect("its status");
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:")?.trim().strip_suffix(" kB")?.parse().ok());
    assert!(locked.is_some_and(|kib: u64| kib > 1024), "{status}\n{}", node.log());
}

#[test]
fn only_balancer_passes_a_decision_on() {
    for mode in ["off", "advise"] {
        let node = Answering::start(mode);
        node.decide(Word::Down, "hung process", NOW);
        node.hears_now("up ready 100%\n", 200);
    }
}

#[test]
fn a_persons_word_wins() {
    let node = Answering::start("balancer");
    let fence = |args: &[&str]| node.refloat.json(&[&["fence"], args].concat());
    let held = fence(&["hold", "--down", "--for", "1h", "--reason", "new disk"]);
    node.hears_now("down #by hand: new disk\n", 503);
    assert_eq!((held["answer"].as_str(), held["hand"]["answer"].as_str()), (Some("down"), Some("down")), "{held}");
    assert!(held["hand"]["left"].as_u64().is_some_and(|left| (3_000..=3_600).contains(&left)), "{held}");
    fence(&["hold"]);
    node.decide(Word::Down, "hung process", NOW);
    node.hears_now("up ready 100%\n", 200);
    let status = fence(&["status"]);
    assert_eq!(
        (&status["hand"]["left"], status["decided"]["answer"].as_str()),
        (&serde_json::Value::Null, Some("down"))
    );
    fence(&["hold", "--down"]);
    fence(&["release"]);
    node.decide(Word::Down, "hung process", NOW);
    node.hears_now("up ready 100%\n", 200);
    let released = fence(&["release", "--for", "0s"]);
    assert_eq!(
        (&released["hand"], released["answer"].as_str()),
        (&serde_json::Value::Null, Some("down")),
        "{released}"
    );
    node.hears_now("down #hung process\n", 503);
    // It ends by itself.
    fence(&["hold", "--for", "1s"]);
    node.wait("its end", || fence(&["status"])["hand"].is_null().then_some(()));

    let output = node.refloat.run(&["fence", "hold", "--for", "0s"]);
    assert_eq!(output.code, Some(64), "{output}");
    let off = Answering::start("off");
    let output = off.refloat.run(&["fence", "hold", "--down"]);
    assert_eq!(output.code, Some(78), "{output}");
    assert!(off.refloat.run(&["fence", "status"]).ok().contains("[fence] mode is off"));
}

#[test]
fn others_may_look_and_not_say() {
    if skip_unless_root("becomes somebody else") {
        return;
    }
    let node = Answering::start("balancer");
    let permit = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("let others in");
    };
    permit(node.refloat.dir());
    let config = node.refloat.config_file().display().to_string();
    let as_nobody = |args: &[&str]| {
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_refloat"), "--config"];
        Run::new("setpriv").args(user).args([config.as_str()]).args(args).run()
    };
    assert!(as_nobody(&["fence", "status"]).ok().contains("balancers hear"));
    for args in [["fence", "hold"], ["fence", "release"]] {
        let output = as_nobody(&args);
        assert_eq!(output.code, Some(77), "{output}");
    }
    node.hears_now("up ready 100%\n", 200);
}

/// Started as systemd does it: on the first question, with both sockets, told apart by their names.
fn activated(node: &Answering, failpoint: Option<&str>) -> Process {
    let (agent, http) = (node.agent.to_string(), node.http.to_string());
    let wrapper =
        ["systemd-socket-activate", "-l", &http, "-l", &agent, "--fdname=http:agent-check", "--setenv=FAILPOINTS"];
    let mut command = node.command(&wrapper);
    command.envs(failpoint.map(|point| ("FAILPOINTS", point)));
    Process::start(command)
}

#[test]
fn sockets_of_systemd_are_told_apart_by_name() {
    let mut node = Answering::start("balancer");
    node.kill();
    node.decide(Word::Down, "hung process", NOW);
    let _process = activated(&node, None);
    let heard = node.wait("an answer", || node.hears());
    assert_eq!(heard, ("down #hung process\n".to_owned(), 503), "{}", node.log());
}

#[test]
fn a_wrong_configuration_is_up_until_it_is_right() {
    let mut node = Answering::start("balancer");
    node.kill();
    let file = node.refloat.config_file();
    let good = std::fs::read_to_string(&file).expect("read it");
    let write = |text: &str| std::fs::write(&file, text).expect("write it");
    // Without systemd's sockets there is nothing to answer on.
    write("nonsense = 1\n");
    let output = node.refloat.command(&["answer"]).timeout(PATIENCE).run();
    assert_eq!(output.code, Some(78), "{output}");
    let process = activated(&node, None);
    let up = node.wait("an answer", || node.hears());
    assert_eq!(up.1, 200);
    node.decide(Word::Down, "hung process", NOW);
    write(&good);
    let hangup = || nix::sys::signal::kill(nix::unistd::Pid::from_raw(process.pid() as i32), nix::sys::signal::SIGHUP);
    hangup().expect("tell it");
    node.wait("the new configuration", || {
        node.decide(Word::Down, "hung process", NOW);
        node.hears().filter(|heard| heard.1 == 503)
    });
    // What is in force stays when the next one is wrong: it complains, and goes on.
    write("nonsense = 1\n");
    let complaints = || node.log().matches("nonsense").count();
    let before = complaints();
    hangup().expect("tell it");
    node.wait("the complaint", || (complaints() > before).then_some(()));
    node.decide(Word::Down, "hung process", NOW);
    node.hears_now("down #hung process\n", 503);
    assert!(process.terminate(PATIENCE).success());
}

#[test]
fn a_disk_that_stands_still_does_not_keep_balancers_waiting() {
    let mut node = Answering::start("balancer");
    node.kill();
    // The call that reads the configuration does not come back until somebody has opened and closed this.
    let hold = node.refloat.dir().join("hold");
    nix::unistd::mkfifo(&hold, nix::sys::stat::Mode::S_IRWXU).expect("make a FIFO");
    let _process = activated(&node, Some(&format!("answer::configuration=return({})", hold.display())));
    let hears = || {
        node.decide(Word::Down, "hung process", NOW);
        node.hears()
    };
    assert_eq!(node.wait("an answer", hears), ("up ready 100%\n".to_owned(), 200), "{}", node.log());
    std::fs::write(&hold, "").expect("let it go on");
    node.wait("the configuration", || hears().filter(|heard| heard.1 == 503));
}

#[test]
fn the_script_for_keepalived_fails_on_an_explicit_no_alone() {
    let mut node = Answering::start("balancer");
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/snippets/refloat-ready");
    let url = format!("http://{}/ready", node.http);
    let fails = |url: &str| !Run::new(&script).args([url]).run().success();
    assert!(!fails(&url));
    node.decide(Word::Down, "hung process", NOW);
    assert!(fails(&url));
    assert!(!fails(&format!("http://{}/other", node.http)));
    node.kill();
    assert!(!fails(&url), "refused");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("listen");
    assert!(!fails(&format!("http://{}/ready", silent.local_addr().expect("its address"))), "hangs");
}
