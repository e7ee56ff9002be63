//! The answer unit on a booted system: started by the first question, killed, upgraded, removed, and what is heard
//! meanwhile.

use std::time::{Duration, Instant};

use crate::bed::{self, Packages, SystemdNode};

const SOCKETS: [&str; 2] = ["refloat-answer.socket", "refloat-answer-http.socket"];
/// Asks once, in the node. A refusal is an answer too.
const ASK: &str = "exec 3<>/dev/tcp/127.0.0.1/9978 2>/dev/null && timeout 20 cat <&3 || echo refused";

/// With both sockets open, and nobody behind them yet.
#[track_caller]
fn listening(deb: &std::path::Path) -> SystemdNode {
    let node = SystemdNode::boot("cp1");
    node.install(deb);
    node.write("/etc/refloat/refloat.toml", "0644", "[fence]\nmode = \"balancer\"\n");
    node.run(&["systemctl", "start", SOCKETS[0], SOCKETS[1]]).ok();
    node
}

#[track_caller]
fn heard(node: &SystemdNode) -> String {
    node.run(&["bash", "-c", ASK]).stdout.trim().to_owned()
}

#[test]
fn the_first_question_starts_it_and_the_next_one_starts_it_again() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let mut node = listening(&Packages::find().deb);
    let of = |node: &SystemdNode, property: &str| node.property("refloat-answer.service", property);
    assert_eq!(of(&node, "ActiveState"), "inactive");
    assert_eq!(heard(&node), "up ready 100%", "{}", node.journal("refloat-answer"));
    assert_eq!(of(&node, "ActiveState"), "active");
    let http = "exec 3<>/dev/tcp/127.0.0.1/9979; printf 'GET /ready HTTP/1.0\\r\\n\\r\\n' >&3; head -n1 <&3";
    assert!(node.run(&["bash", "-c", http]).ok().starts_with("HTTP/1.0 200"));
    node.run(&["systemd-analyze", "security", "--no-pager", "--threshold=15", "refloat-answer.service"]).ok();

    node.run(&["refloat", "fence", "hold", "--down", "--reason", "new disk"]).ok();
    assert_eq!(heard(&node), "down #by hand: new disk");
    node.run(&["systemctl", "kill", "--signal=KILL", "refloat-answer.service"]).ok();
    assert_eq!(heard(&node), "down #by hand: new disk");
    // A word by hand ends with the boot; the ports come back with it once they are enabled.
    node.run(&["systemctl", "enable", SOCKETS[0], SOCKETS[1]]).ok();
    node.reboot();
    assert_eq!(heard(&node), "up ready 100%", "{}", node.journal("refloat-answer"));
    // Moved by a drop-in, as setup writes it: the service goes with its socket.
    node.write(
        "/etc/systemd/system/refloat-answer.socket.d/10-setup.conf",
        "0644",
        "[Socket]\nListenStream=\nListenStream=127.0.0.1:9988\n",
    );
    node.run(&["systemctl", "daemon-reload"]).ok();
    node.run(&["systemctl", "restart", SOCKETS[0]]).ok();
    assert_eq!(heard(&node), "refused");
    assert_eq!(node.run(&["bash", "-c", &ASK.replace("9978", "9988")]).stdout.trim(), "up ready 100%");
    // A node of the bed may not lock memory, which is told once at each start, and no more than that.
    let journal = node.journal("refloat-answer");
    let told = |line: &&str| line.contains("WARN") || line.contains("ERROR");
    let others = journal.lines().filter(told).find(|line| !line.contains("memory is not locked"));
    assert_eq!(others, None, "{journal}");
}

#[test]
fn nobody_hears_another_word_while_it_is_upgraded() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let packages = Packages::find();
    let node = listening(&packages.previous_deb);
    heard(&node);
    node.run(&["refloat", "fence", "hold", "--down", "--reason", "x"]).ok();
    node.copy_in(&packages.deb, "/var/tmp/new.deb", "0644");
    let script = format!(
        "(while [ ! -e /run/over ]; do {ASK}; exec 3<&- 3>&-; done) >/run/heard & \
         dpkg --install /var/tmp/new.deb && systemctl restart refloat-answer.service; code=$?; : >/run/over; wait; exit $code"
    );
    let before = (heard(&node), node.property("refloat-answer.service", "MainPID"));
    node.run(&["bash", "-c", &script]).ok();
    assert_ne!(before.1, node.property("refloat-answer.service", "MainPID"), "it was exchanged");
    let all = node.read("/run/heard");
    assert!(all.lines().count() > 10, "{all}");
    assert!(all.lines().all(|line| line == before.0 && line.starts_with("down #")), "{all}");
}

#[test]
fn removal_releases_first() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let packages = Packages::find();
    let node = listening(&packages.deb);
    heard(&node);
    node.run(&["refloat", "fence", "hold", "--down", "--reason", "x"]).ok();
    let down = heard(&node);
    let script = format!(
        "(while {ASK}; do exec 3<&- 3>&-; sleep 0.2; done) >/run/heard & dpkg --remove refloat; code=$?; kill $!; exit $code"
    );
    let begun = Instant::now();
    let said = node.run(&["bash", "-c", &script]).ok();
    assert!(said.contains("releasing this node"), "{said}");
    assert!(begun.elapsed() >= Duration::from_secs(15), "nobody had time to hear it");
    let all = node.read("/run/heard");
    // A connection that was open when the port went says nothing.
    let mut lines: Vec<&str> = all.lines().filter(|line| !line.is_empty()).collect();
    lines.dedup();
    let up = lines.iter().position(|line| *line == "up ready 100%").unwrap_or_else(|| panic!("never up: {lines:?}"));
    assert!(lines[..up].iter().all(|line| *line == down) && up < lines.len(), "{lines:?}");
    let then = &lines[up..];
    assert!(then == ["up ready 100%"] || then == ["up ready 100%", "refused"], "up to the end: {lines:?}");
    assert!(!node.exists("/run/refloat/fence.hand") && !node.exists("/run/refloat/fence"));

    // Where nobody is out of service nobody waits.
    let node = listening(&packages.deb);
    heard(&node);
    let said = node.run(&["dpkg", "--remove", "refloat"]).ok();
    assert!(!said.contains("releasing this node"), "{said}");
}
