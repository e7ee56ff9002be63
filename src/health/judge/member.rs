//! What is the matter with an etcd member (patterns: docs/health.md). The serializable read says whether its process and
//! its database answer, the linearizable one whether it has a quorum, the two writes whether its log and large packets pass.

use std::time::Duration;

use super::super::model::{Failure, Probe, Target, TargetId, Work};
use super::super::past::Past;
use super::super::verdict::{Cause, State};
use super::super::window::{Run, Standing};
use super::cluster::{Cluster, Elsewhere, elsewhere, reached_others};
use super::words;
use super::{Judged, View};

/// A thread that waits for the disk for this long hangs.
const BLOCKED: Duration = Duration::from_millis(1_500);
/// Statuses in a row with the applied index far behind.
const LAGGING: u8 = 2;
/// Latencies of the disk above which etcd's own guide calls it too slow, with room: 10 and 25 ms are the aims.
const SLOW_FSYNC: Duration = Duration::from_millis(100);
const SLOW_COMMIT: Duration = Duration::from_millis(250);
/// Defragmentation of nothing takes this long too.
const DEFRAG_FLOOR: Duration = Duration::from_secs(5);
const DEFRAG_CAP: Duration = Duration::from_secs(300);
/// A remote member is taken to be defragmenting only if it is worth it.
const DEFRAG_WORTH: u64 = 64 << 20;

pub(super) fn judge(view: &View, cluster: &Cluster, id: TargetId, target: &Target) -> Judged {
    let judged = first(view, cluster, id, target);
    if judged.is(State::Bad) && !judged.is_bad_by(&[Cause::NoSpace, Cause::ExpiredCertificate, Cause::Corrupt]) {
        return zombie(view, id, judged);
    }
    judged
}

fn first(view: &View, cluster: &Cluster, id: TargetId, target: &Target) -> Judged {
    if let Some(run) = view.failing(id, Probe::E2) {
        return silent(view, id, target, Probe::E2, run);
    }
    if !target.learner {
        let lost = [Probe::E3, Probe::E4].into_iter().find_map(|probe| Some((probe, view.failing(id, probe)?)));
        if let Some((probe, run)) = lost {
            // That local reads are answered has to be seen after it began.
            if !view.good_after(id, Probe::E2, run) {
                return silent(view, id, target, probe, run);
            }
            return no_consensus(view, cluster, id, target, probe, run);
        }
        // It rests on reads: they must have been answered since.
        let alone = |run: &&Run| run.failure != Failure::NoSpace && view.good_after(id, Probe::E3, run);
        if let Some(run) = view.failing(id, Probe::E5).filter(alone) {
            return write_lost(view, cluster, id, run);
        }
    }
    if let Some(run) = view.failing(id, Probe::E1).filter(|run| run.failure.is_handshake()) {
        return handshake(id, Probe::E1, run);
    }
    if cluster.alarm("corrupt") {
        let text = "alarm CORRUPT is raised: members hold different data, or one found its own damaged";
        return Judged::bad(Cause::Corrupt, (id, Probe::E4), text);
    }
    let refused = view.failing(id, Probe::E5).is_some_and(|run| run.failure == Failure::NoSpace);
    if refused || (cluster.alarm("nospace") && !target.learner) {
        let by = (id, if refused { Probe::E5 } else { Probe::E4 });
        return Judged::bad(Cause::NoSpace, by, words::space(view, id));
    }
    if view.standing(id, Probe::E2) != Standing::Good
        || (!target.learner && view.standing(id, Probe::E3) != Standing::Good)
    {
        return unknown(view, id, if target.learner { &[Probe::E2] } else { &[Probe::E2, Probe::E3] });
    }
    slow(view, id, target).unwrap_or_else(|| noted(view, id))
}

/// The serializable read fails, or has not been answered since another failed: nothing there answers.
fn silent(view: &View, id: TargetId, target: &Target, probe: Probe, run: &Run) -> Judged {
    let by = (id, probe);
    let lasts = words::lasts(view.lasts(run));
    let past = view.facts.past(id);
    match &run.failure {
        Failure::Refused => {
            return Judged::bad(Cause::Stopped, by, format!("its port has refused connections for {lasts}"));
        }
        // On the own node nothing lies between: its backlog is full because it accepts no more.
        Failure::Unreachable if target.own => {}
        Failure::Unreachable if reached_others(view, id, run) => {
            return Judged::bad(Cause::Unreachable, by, format!("its host has not answered for {lasts}"));
        }
        Failure::Unreachable => {
            let text =
                format!("not reached for {lasts}, and nothing else was since: the network here may be the cause");
            return Judged::new(State::Unknown, Cause::OwnIsolation, Some(by), text);
        }
        Failure::Expired | Failure::Tls(_) => return handshake(id, probe, run),
        Failure::Server(text) | Failure::NoLeader(text) => {
            return Judged::bad(Cause::AnswersErrors, by, format!("reads have failed for {lasts}: {text}"));
        }
        Failure::Silent | Failure::Reset | Failure::NoSpace | Failure::Stale { .. } => {}
    }
    if let Some(ago) = restarting(view, past) {
        let text = format!("it was stopped {} ago and does not answer yet ({lasts})", words::lasts(ago));
        return Judged::bad(Cause::Stopped, by, text);
    }
    if let Some(text) = defragmenting(view, id, target, past, run) {
        return Judged::bad(Cause::Defragmentation, by, format!("{text}; no read has been answered for {lasts}"));
    }
    let process = view.facts.process().filter(|_| target.own);
    if process.is_some_and(|process| process.stopped) {
        return Judged::bad(
            Cause::HungProcess,
            by,
            format!("its process is stopped by a signal; no answer for {lasts}"),
        );
    }
    if target.own
        && let Some(text) = blocked(view)
    {
        return Judged::bad(Cause::FrozenDisk, by, format!("no read has been answered for {lasts}; {text}"));
    }
    if view.good_after(id, Probe::E1, run) {
        let text = format!(
            "no read has been answered for {lasts}, while its port completes handshakes: the process lives, its database does not answer"
        );
        return Judged::bad(Cause::FrozenDisk, by, text);
    }
    Judged::bad(Cause::HungProcess, by, format!("its port accepts connections, and nothing has answered for {lasts}"))
}

/// The local read is answered, what needs the others or the log is not.
fn no_consensus(view: &View, cluster: &Cluster, id: TargetId, target: &Target, probe: Probe, run: &Run) -> Judged {
    let by = (id, probe);
    let lasts = view.lasts(run);
    let what = if probe == Probe::E3 { "linearizable reads" } else { "proposals" };
    let said = format!("{what} have failed for {}, serializable reads are answered", words::lasts(lasts));
    if let Some(ago) = restarting(view, view.facts.past(id)) {
        let text = format!("{said}; it was stopped {} ago", words::lasts(ago));
        return Judged::bad(Cause::Stopped, by, text);
    }
    if matches!(run.failure, Failure::Expired | Failure::Tls(_)) {
        return handshake(id, probe, run);
    }
    let status = view.facts.past(id).and_then(|past| past.status).filter(|status| status.at >= run.first.asked);
    let leaderless = status.is_some_and(|status| status.leader == 0) || matches!(run.failure, Failure::NoLeader(_));
    let elsewhere = elsewhere(view, id, probe, run);
    // Reads that are answered after the proposals failed: consensus works, its log does not.
    let log_alone = probe == Probe::E4 && view.good_after(id, Probe::E3, run);
    if target.own
        && let Some(text) = blocked(view)
    {
        return Judged::bad(Cause::StalledWal, by, said).and(text);
    }
    let election = |why: &str| Judged::bad(Cause::Election, by, said.clone()).and(why);
    if cluster.storm && lasts < view.rules.storm_patience {
        let span = view.rules.storm_span.as_secs();
        return election(&format!("{} leader changes within {span} s", cluster.changes));
    }
    if !log_alone {
        match elsewhere {
            Elsewhere::Answers => {}
            _ if lasts < view.rules.election => return election("no other member has answered since"),
            Elsewhere::Fails => {
                let text =
                    format!("{} of {} members answer, {} are needed", cluster.reading, cluster.voters, cluster.quorum);
                return Judged::bad(Cause::NoQuorumAnywhere, by, said).and(text);
            }
            Elsewhere::NotAsked => {}
        }
    }
    if leaderless && !log_alone {
        let text = "it knows no leader while other members answer: it is cut off from them";
        return Judged::bad(Cause::NoQuorumHere, by, said).and(text);
    }
    let process = view.facts.process().filter(|_| target.own);
    if let Some(large) = view.failing(id, Probe::E5) {
        // Reads pass beside an idle log that stands still, so a small proposal has to show it, or the own process.
        if view.good_after(id, Probe::E4, large) || process.is_some() {
            let text = format!("a put of 16 KiB has failed for {}", words::lasts(view.lasts(large)));
            return Judged::bad(Cause::LargePacketsLost, by, said).and(text).and(words::standstill(view, id));
        }
    }
    if process.is_some() && elsewhere == Elsewhere::Answers && !log_alone {
        let text = "other members answer, and no thread of it waits for the disk: its entries do not arrive";
        return Judged::bad(Cause::NoQuorumHere, by, said).and(text);
    }
    let text = "nothing that must be written to its log is answered: its WAL stands still";
    Judged::bad(Cause::StalledWal, by, said).and(text).and(words::standstill(view, id))
}

/// Only the large write fails.
fn write_lost(view: &View, cluster: &Cluster, id: TargetId, run: &Run) -> Judged {
    let by = (id, Probe::E5);
    let said = format!("a put of 16 KiB has failed for {}", words::lasts(view.lasts(run)));
    match &run.failure {
        Failure::Server(text) => Judged::bad(Cause::WritesRefused, by, format!("{said}: {text}")),
        Failure::Expired | Failure::Tls(_) => handshake(id, Probe::E5, run),
        _ if cluster.storm && view.lasts(run) < view.rules.storm_patience => Judged::bad(Cause::Election, by, said),
        _ => {
            let text = "small reads and proposals are answered";
            Judged::bad(Cause::LargePacketsLost, by, said).and(text).and(words::standstill(view, id))
        }
    }
}

pub(super) fn handshake(id: TargetId, probe: Probe, run: &Run) -> Judged {
    match &run.failure {
        Failure::Expired => {
            let text =
                "its certificate, or the one that it was shown, is over: established connections go on, new ones fail";
            Judged::bad(Cause::ExpiredCertificate, (id, probe), text)
        }
        Failure::Tls(text) => Judged::bad(Cause::TlsFailed, (id, probe), format!("new connections fail: {text}")),
        _ => Judged::bad(Cause::TlsFailed, (id, probe), "new connections fail"),
    }
}

/// How long ago it was stopped, while it may still be coming back.
pub(super) fn restarting(view: &View, past: Option<&Past>) -> Option<Duration> {
    let past = past?;
    let announced = past.planned.filter(|planned| planned.what == Work::Restart && planned.until > view.now);
    let ago = past.refused.map(|at| view.now.since(at)).filter(|ago| *ago < view.rules.restart);
    ago.or(announced.map(|_| Duration::ZERO))
}

/// Why its silence is taken for a defragmentation. Nothing that a request shows tells it from a frozen disk, so this is either
/// announced, or seen on the own disk as a copy that grows, or for a remote member only likely; and bounded by its size.
fn defragmenting(view: &View, id: TargetId, target: &Target, past: Option<&Past>, run: &Run) -> Option<String> {
    let past = past?;
    if past.planned.is_some_and(|planned| planned.what == Work::Defragmentation && planned.until > view.now) {
        return Some("its defragmentation was announced".to_owned());
    }
    let status = past.status?;
    let seconds = status.db_size / view.rules.defrag_rate.max(1);
    let bound = (DEFRAG_FLOOR + Duration::from_secs(seconds)).min(DEFRAG_CAP);
    if view.lasts(run) > bound {
        return None;
    }
    let size = words::bytes(status.db_size);
    if target.own {
        let fell = view.facts.disk_fell(run.first.asked, view.now);
        let written = fell >= view.rules.defrag_fall && view.good_after(id, Probe::E1, run);
        return written.then(|| {
            format!(
                "its file system filled by {} since it fell silent: it writes a new database ({size})",
                words::bytes(fell)
            )
        });
    }
    let unused = status.db_size.saturating_sub(status.db_in_use);
    let worth = unused >= DEFRAG_WORTH && unused >= status.db_size / 4;
    (worth && view.good_after(id, Probe::E1, run)).then(|| {
        format!("likely its defragmentation ({size}, of which {} are unused), else its disk", words::bytes(unused))
    })
}

/// What the own disk says, if it hangs.
fn blocked(view: &View) -> Option<String> {
    let dir = view.observer.data_dir.as_ref();
    if let Some(since) = dir.and_then(|dir| dir.hung_since) {
        return Some(format!("its file system has not answered for {}", words::lasts(view.now.since(since))));
    }
    let since = view.facts.process()?.blocked_since?;
    let lasts = view.now.since(since);
    (lasts >= BLOCKED).then(|| format!("a thread of it has waited for the disk for {}", words::lasts(lasts)))
}

/// Adds that it takes itself for the leader while others know a later one.
fn zombie(view: &View, id: TargetId, judged: Judged) -> Judged {
    let Some(status) = view.facts.past(id).and_then(|past| past.status) else { return judged };
    if status.leader != 0 && status.leader == status.member_id && status.term < view.facts.terms.last {
        let text = format!(
            "it takes itself for the leader of term {}, while others are in term {}",
            status.term, view.facts.terms.last
        );
        return judged.and(text);
    }
    judged
}

pub(super) fn unknown(view: &View, id: TargetId, probes: &[Probe]) -> Judged {
    let reasons = probes.iter().filter_map(|probe| {
        let why = view.facts.window(id, *probe).unknown()?;
        Some(format!("{probe}: {why}"))
    });
    let mut reasons: Vec<String> = reasons.collect();
    if reasons.is_empty() {
        reasons.push("too few answers yet, or none for several periods".to_owned());
    }
    Judged { reasons, ..Judged::new(State::Unknown, Cause::NotYetKnown, None, String::new()) }
}

fn slow(view: &View, id: TargetId, target: &Target) -> Option<Judged> {
    let past = view.facts.past(id)?;
    let file_system = view.observer.data_dir.as_ref().and_then(|dir| dir.file_system.as_deref());
    let network = file_system.filter(|name| target.own && words::is_network(name));
    let gauges = past.gauges.as_ref();
    let over = |time: Option<Duration>, limit: Duration| time.filter(|time| *time > limit);
    let fsync = gauges.and_then(|gauges| over(gauges.fsync, SLOW_FSYNC));
    let commit = gauges.and_then(|gauges| over(gauges.commit, SLOW_COMMIT));
    let mut reasons = Vec::new();
    let mut by = None;
    for probe in [Probe::E3, Probe::E4, Probe::E2] {
        if let Some(median) = view.facts.window(id, probe).slow() {
            by = by.or(Some((id, probe)));
            reasons.push(format!("half of its answers to {probe} took {} ms or more", median.as_millis()));
        }
    }
    if past.lagging >= LAGGING
        && let Some(status) = past.status
    {
        reasons.push(format!("{} entries are committed and not applied", status.index.saturating_sub(status.applied)));
    }
    reasons.extend(fsync.map(|time| format!("99 % of its fsyncs take up to {} ms", time.as_millis())));
    reasons.extend(commit.map(|time| format!("99 % of its commits take up to {} ms", time.as_millis())));
    if reasons.is_empty() {
        return None;
    }
    let mut cause = Cause::SlowMember;
    if let Some(name) = network {
        cause = Cause::SlowStorage;
        reasons.push(format!("its data directory is on {name}, a network file system"));
    } else if fsync.is_some() || commit.is_some() {
        cause = Cause::SlowStorage;
    }
    Some(Judged { state: Some(State::Slow), cause: Some(cause), by, reasons, advice: None })
}

/// Good, with what a person should know.
fn noted(view: &View, id: TargetId) -> Judged {
    let mut judged = Judged::good();
    let Some(past) = view.facts.past(id) else { return judged };
    if let Some((size, quota)) = past.status.and_then(|status| Some((status.db_size, status.quota?)))
        && quota > 0
        && size >= quota / 5 * 4
    {
        let percent = size.saturating_mul(100) / quota;
        judged.reasons.push(format!("its database of {} has reached {percent} % of the quota", words::bytes(size)));
        judged.advice = Some(words::advice(Cause::NoSpace).to_owned());
    }
    let own = view.watched.target(id).is_some_and(|target| target.own);
    if own
        && let Some(full_in) = view.observer.data_dir.as_ref().and_then(|dir| dir.full_in).filter(|left| *left < 3_600)
    {
        judged.reasons.push(format!("its file system is full in {full_in} s at the present rate"));
        judged.advice = Some("make space on the member's file system now: etcd ends itself when it is full".to_owned());
    }
    judged
}
