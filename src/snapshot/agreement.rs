//! What live members say about the same revision (design §6.4).
//!
//! A live HashKV blocks all reads and writes of a member that takes writes until its scan ends. So never on a
//! leader, never where the scan is predicted to be long, one call at a time.

use std::time::Duration;

use crate::catalog::{Agreement, AgreementResult};
use crate::config::Agreement as Mode;
use crate::error::Code;
use crate::etcd::{Access, Member, MemberView};
use crate::format::check::HashKv;

/// Time a member is taken to need for one row, before it has ever been measured.
const PER_ROW: Duration = Duration::from_micros(3);
/// The longest predicted scan that is asked for without being told to.
const MAX_SCAN: Duration = Duration::from_millis(300);
/// A call is given this much more than predicted, and no less than two seconds.
const PATIENCE: u32 = 20;

/// A member as far as the decision needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub id: u64,
    pub name: String,
    pub leader: bool,
    pub learner: bool,
    pub answers: bool,
}

/// Whom to ask, or why not: one entry a member in question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Ask(u64),
    Skip(u64, String),
}

/// The own member unless it leads, then one follower; nobody when the scan would be long.
pub fn decide(mode: Mode, rows: u64, own: u64, members: &[Candidate]) -> Vec<Decision> {
    let scan = PER_ROW.saturating_mul(rows.min(u64::from(u32::MAX)) as u32);
    let blocked = match mode {
        Mode::Off => Some("switched off".to_string()),
        Mode::Auto if scan > MAX_SCAN => Some(format!(
            "{rows} rows would block the member for about {} ms, more than {}",
            scan.as_millis(),
            MAX_SCAN.as_millis()
        )),
        Mode::Auto | Mode::Always => None,
    };
    let judge = |member: &Candidate| match (&blocked, member) {
        (Some(why), m) => Decision::Skip(m.id, why.clone()),
        (None, m) if m.leader => Decision::Skip(m.id, "is the leader".into()),
        (None, m) if m.learner => Decision::Skip(m.id, "is a learner".into()),
        (None, m) if !m.answers => Decision::Skip(m.id, "does not answer".into()),
        (None, m) => Decision::Ask(m.id),
    };
    let mut decisions: Vec<Decision> = members.iter().filter(|m| m.id == own).map(judge).collect();
    let others: Vec<Decision> = members.iter().filter(|m| m.id != own).map(judge).collect();
    // One follower is enough; where none can be asked, say why for the first.
    let ask = others.iter().find(|d| matches!(d, Decision::Ask(_))).or(others.first());
    decisions.extend(ask.cloned());
    decisions
}

/// Candidates from a cluster view.
pub fn candidates(members: &[MemberView], leader: Option<u64>) -> Vec<Candidate> {
    let candidate = |m: &MemberView| Candidate {
        id: m.info.id,
        name: m.info.label(),
        leader: leader == Some(m.info.id) || m.status.as_ref().is_ok_and(|s| s.is_leader()),
        learner: m.info.is_learner,
        answers: m.status.is_ok() && m.url.is_some(),
    };
    members.iter().map(candidate).collect()
}

/// Asks as decided. Never fails: what cannot be asked is skipped with its reason.
pub async fn ask(
    decisions: Vec<Decision>,
    file: HashKv,
    rows: u64,
    members: &[MemberView],
    access: &Access,
) -> Vec<Agreement> {
    let mut results = Vec::new();
    for decision in decisions {
        let (id, result) = match decision {
            Decision::Skip(id, why) => (id, AgreementResult::Skipped(why)),
            Decision::Ask(id) => (id, ask_one(id, file, rows, members, access).await),
        };
        let label = members.iter().find(|m| m.info.id == id).map(|m| m.info.label());
        let with = match label {
            Some(label) => format!("member {label} ({id:x})"),
            None => format!("member {id:x}"),
        };
        results.push(Agreement::new(with, result));
    }
    results
}

async fn ask_one(id: u64, file: HashKv, rows: u64, members: &[MemberView], access: &Access) -> AgreementResult {
    let view = members.iter().find(|m| m.info.id == id);
    let Some((view, url)) = view.and_then(|m| m.url.as_ref().map(|url| (m, url))) else {
        return AgreementResult::Skipped("has no client URL".into());
    };
    // Who leads may have changed while the snapshot was taken.
    let live = async {
        let member = Member::connect_named(url, &view.info.label(), access).await?;
        let status = member.status().await?;
        if status.is_leader() {
            return Ok(None);
        }
        let patience =
            (PER_ROW * PATIENCE).saturating_mul(rows.min(u64::from(u32::MAX)) as u32).max(Duration::from_secs(2));
        member.hash_kv(file.revision as i64, patience).await.map(Some)
    };
    match live.await {
        Ok(Some(live)) => compare(file, live.hash, live.revision, live.compact_revision),
        Ok(None) => AgreementResult::Skipped("has become the leader".into()),
        Err(error) if error.code() == Code::RevisionNotReachable => {
            let why = error.why().pop().unwrap_or_else(|| error.to_string());
            AgreementResult::NotComparable(why)
        }
        Err(error) => AgreementResult::Skipped(error.line()),
    }
}

/// Hashes mean something only at the same revision and the same compact revision.
fn compare(file: HashKv, hash: u32, revision: i64, compact_revision: i64) -> AgreementResult {
    if revision != file.revision as i64 {
        return AgreementResult::NotComparable(format!("answered for revision {revision}"));
    }
    if compact_revision != file.compact_revision as i64 {
        return AgreementResult::NotComparable(format!(
            "compacted to {compact_revision}, the snapshot to {}",
            file.compact_revision
        ));
    }
    if hash == file.hash { AgreementResult::Equal } else { AgreementResult::Different }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u64, leader: bool, learner: bool, answers: bool) -> Candidate {
        Candidate { id, name: format!("m{id}"), leader, learner, answers }
    }

    #[test]
    fn whom_to_ask() {
        let three = [member(1, false, false, true), member(2, true, false, true), member(3, false, false, true)];
        let skip = |id, why: &str| Decision::Skip(id, why.into());
        assert_eq!(decide(Mode::Auto, 1000, 1, &three), [Decision::Ask(1), Decision::Ask(3)]);
        assert_eq!(decide(Mode::Auto, 1000, 2, &three), [skip(2, "is the leader"), Decision::Ask(1)]);
        assert_eq!(decide(Mode::Off, 1, 1, &three), [skip(1, "switched off"), skip(2, "switched off")]);
        assert_eq!(decide(Mode::Always, 10_000_000, 1, &three), [Decision::Ask(1), Decision::Ask(3)]);
        assert!(matches!(&decide(Mode::Auto, 100_001, 1, &three)[0], Decision::Skip(1, why) if why.contains("300 ms")));
        assert_eq!(decide(Mode::Auto, 100_000, 1, &three)[0], Decision::Ask(1));
        let odd = [member(1, true, false, true), member(2, false, true, true), member(3, false, false, false)];
        assert_eq!(decide(Mode::Always, 1, 1, &odd), [skip(1, "is the leader"), skip(2, "is a learner")]);
        assert_eq!(decide(Mode::Auto, 1, 1, &[member(1, true, false, true)]), [skip(1, "is the leader")]);
    }

    #[test]
    fn only_the_same_pair_of_revisions_compares() {
        let file = HashKv { hash: 7, revision: 10, compact_revision: 4 };
        assert_eq!(compare(file, 7, 10, 4), AgreementResult::Equal);
        assert_eq!(compare(file, 8, 10, 4), AgreementResult::Different);
        assert!(matches!(compare(file, 8, 10, 5), AgreementResult::NotComparable(_)));
        assert!(matches!(compare(file, 8, 11, 4), AgreementResult::NotComparable(_)));
    }
}
