//! A whole cluster at one glance: all members asked at once, so that one dead or hung member delays nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::access::Access;
use super::facts::{Alarm, MemberInfo, MemberStatus};
use super::member::Member;
use super::own::normal;
use super::probe;
use crate::error::{Code, Error, Result};

/// Calls under way at once; etcd clusters have at most seven members.
const AT_ONCE: usize = 16;

/// What the members said, at one time, as far as they answered.
#[derive(Debug)]
pub struct ClusterView {
    /// `None` when nobody answered.
    pub cluster_id: Option<u64>,
    /// Id of the leader of the newest raft term that was heard of; `None` when no member knows one.
    pub leader: Option<u64>,
    /// In ascending order of ids. Empty when nobody could say who the members are.
    pub members: Vec<MemberView>,
    /// Sorted, each once; `None` when nobody could say (law 7: that is not "no alarms").
    pub alarms: Option<Vec<Alarm>>,
    /// Contradictions between members; sentences for people.
    pub warnings: Vec<String>,
    /// Given endpoints that failed and are not the status of a member above.
    pub failed: Vec<(String, Error)>,
}

/// One member of the list, and what it said itself.
#[derive(Debug)]
pub struct MemberView {
    pub info: MemberInfo,
    /// Where it answered; else where it was asked; `None` when it advertises no URL.
    pub url: Option<String>,
    /// All URLs at which it answered.
    pub endpoints: Vec<String>,
    pub status: Result<MemberStatus>,
}

impl MemberView {
    /// Whether this URL is the member's: it answered there, or advertises it.
    pub fn has_url(&self, url: &str) -> bool {
        let url = normal(url);
        self.endpoints.iter().chain(&self.url).chain(&self.info.client_urls).any(|own| normal(own) == url)
    }
}

/// What one member said about itself and the others.
#[derive(Debug)]
struct Told {
    status: MemberStatus,
    /// Refused by learners, and by etcd 3.6 and later to users without rights.
    members: Result<Vec<MemberInfo>>,
    /// Likewise.
    alarms: Result<Vec<Alarm>>,
}

/// One URL that was asked.
#[derive(Debug)]
struct Answer {
    url: String,
    /// Given by the caller, not learned from a member list.
    given: bool,
    told: Result<Told>,
}

/// Asks the given endpoints, and the advertised URLs of the members that those know. Never fails as a whole and
/// never takes longer than `deadline`: who has not answered by then has an error as status.
pub async fn view(endpoints: &[String], access: &Access, deadline: Duration) -> ClusterView {
    let end = Instant::now() + deadline;
    // Leaves room for the look that finds out why a call failed.
    let patience = deadline.saturating_sub(probe::LIMIT).max(deadline / 2).min(access.timeout());
    let access = access.clone().with_timeout(patience);
    let seats = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    let mut asked: Vec<(String, bool)> = Vec::new();
    let mut answers: BTreeMap<usize, Result<Told>> = BTreeMap::new();
    let ask = |tasks: &mut JoinSet<_>, asked: &mut Vec<(String, bool)>, url: &str, given: bool| {
        let url = normal(url);
        if asked.iter().any(|(known, _)| *known == url) {
            return;
        }
        let place = asked.len();
        asked.push((url.clone(), given));
        let (access, seats) = (access.clone(), seats.clone());
        tasks.spawn(async move {
            let _seat = seats.acquire().await;
            (place, question(&url, &access).await)
        });
    };
    for url in endpoints {
        ask(&mut tasks, &mut asked, url, true);
    }
    while let Ok(Some(done)) = timeout_at(end, tasks.join_next()).await {
        let Ok((place, told)) = done else { continue };
        if let Ok(Told { members: Ok(members), .. }) = &told {
            for member in members {
                let known = |url: &String| asked.iter().any(|(u, _)| *u == normal(url));
                if let (false, Some(url)) = (member.client_urls.iter().any(known), member.client_urls.first()) {
                    ask(&mut tasks, &mut asked, url, false);
                }
            }
        }
        answers.insert(place, told);
    }
    let answers = asked
        .into_iter()
        .enumerate()
        .map(|(place, (url, given))| {
            let told = answers.remove(&place).unwrap_or_else(|| Err(unanswered(&url, deadline)));
            Answer { url, given, told }
        })
        .collect();
    assemble(answers)
}

async fn question(url: &str, access: &Access) -> Result<Told> {
    let member = Member::connect(url, access).await?;
    let status = member.status().await?;
    let (members, alarms) = tokio::join!(member.members(), member.alarms());
    Ok(Told { status, members, alarms })
}

fn unanswered(url: &str, deadline: Duration) -> Error {
    Error::new(Code::MemberHung, "read status of", format!("member {url}"))
        .because(format!("no answer within {deadline:?}"))
        .remedy("look at the etcd process and its disk on that host")
}

/// Pure: what the answers say together.
fn assemble(answers: Vec<Answer>) -> ClusterView {
    let mut warnings = Vec::new();
    let good = || answers.iter().filter_map(|a| a.told.as_ref().ok().map(|told| (a.url.as_str(), told)));
    let cluster_id = most_common(good().map(|(_, told)| told.status.cluster_id));
    if good().any(|(_, told)| Some(told.status.cluster_id) != cluster_id) {
        let list: Vec<String> = good().map(|(url, t)| format!("{url} ({:x})", t.status.cluster_id)).collect();
        warnings.push(format!("the endpoints belong to different clusters: {}", list.join(", ")));
    }
    let ours = || good().filter(|(_, told)| Some(told.status.cluster_id) == cluster_id);
    let leader =
        ours().max_by_key(|(_, t)| (t.status.raft_term, t.status.leader.is_some())).and_then(|(_, t)| t.status.leader);
    let list = member_list(ours().map(|(url, told)| (url, told, Some(told.status.member_id) == leader)), &mut warnings);
    let ids: BTreeSet<u64> = list.iter().map(|m| m.id).collect();
    if !ids.is_empty() {
        for (url, told) in ours().filter(|(_, told)| !ids.contains(&told.status.member_id)) {
            warnings
                .push(format!("{url} answers as member {:x}, which is not in the member list", told.status.member_id));
        }
    }
    for (url, told) in ours() {
        if let (Err(error), false) = (&told.members, told.status.is_learner) {
            warnings.push(format!("{url} does not list the members: {}", error.why().join(": ")));
        }
    }
    let mut lists = ours().filter_map(|(_, told)| told.alarms.as_ref().ok()).peekable();
    let alarms =
        lists.peek().is_some().then(|| lists.flatten().copied().collect::<BTreeSet<_>>().into_iter().collect());

    let mut errors: Vec<(String, bool, Error)> = Vec::new();
    let mut heard: BTreeMap<u64, Vec<(String, MemberStatus)>> = BTreeMap::new();
    for answer in answers {
        match answer.told {
            Ok(told) if Some(told.status.cluster_id) == cluster_id => {
                heard.entry(told.status.member_id).or_default().push((answer.url, told.status));
            }
            Ok(_) => {}
            Err(error) => errors.push((answer.url, answer.given, error)),
        }
    }
    let members = list.into_iter().map(|info| member_view(info, &mut heard, &mut errors)).collect();
    let failed = errors.into_iter().filter(|(_, given, _)| *given).map(|(url, _, error)| (url, error)).collect();
    ClusterView { cluster_id, leader, members, alarms, warnings, failed }
}

fn member_view(
    info: MemberInfo,
    heard: &mut BTreeMap<u64, Vec<(String, MemberStatus)>>,
    errors: &mut Vec<(String, bool, Error)>,
) -> MemberView {
    let answers = heard.remove(&info.id).unwrap_or_default();
    let endpoints: Vec<String> = answers.iter().map(|(url, _)| url.clone()).collect();
    if let Some((url, status)) = answers.into_iter().next() {
        return MemberView { info, url: Some(url), endpoints, status: Ok(status) };
    }
    let own = |url: &str| info.client_urls.iter().any(|u| normal(u) == url);
    let (url, error) = match errors.iter().position(|(url, _, _)| own(url)) {
        Some(place) => {
            let (url, _, error) = errors.remove(place);
            (Some(url), error)
        }
        None => (
            info.client_urls.first().cloned(),
            Error::new(Code::MemberGone, "read status of", format!("member {}", info.label()))
                .because(match info.client_urls.is_empty() {
                    true => "it advertises no client URL: it was added but has not started",
                    false => "another member answers at its client URL",
                })
                .remedy("start that member, or correct its advertised client URLs"),
        ),
    };
    MemberView { info, url, endpoints, status: Err(error) }
}

/// The leader's list if it could be asked, else the most common one.
fn member_list<'a>(
    answers: impl Iterator<Item = (&'a str, &'a Told, bool)>,
    warnings: &mut Vec<String>,
) -> Vec<MemberInfo> {
    let shape = |list: &[MemberInfo]| list.iter().map(|m| (m.id, m.is_learner)).collect::<Vec<_>>();
    let lists: Vec<(&str, &Vec<MemberInfo>, bool)> =
        answers.filter_map(|(url, told, leads)| told.members.as_ref().ok().map(|list| (url, list, leads))).collect();
    let leaders = lists.iter().find(|(_, _, leads)| *leads).map(|(_, list, _)| shape(list));
    let Some(best) = leaders.or_else(|| most_common(lists.iter().map(|(_, list, _)| shape(list)))) else {
        return Vec::new();
    };
    let others: Vec<&str> = lists.iter().filter(|(_, list, _)| shape(list) != best).map(|(url, ..)| *url).collect();
    if !others.is_empty() {
        warnings.push(format!("these members have another member list than the rest: {}", others.join(", ")));
    }
    // Names and URLs appear only once a member has started, so the fullest of the equal lists is the newest.
    let named = |list: &Vec<MemberInfo>| list.iter().filter(|m| !m.name.is_empty()).count();
    let equal = lists.iter().filter(|(_, list, _)| shape(list) == best).map(|(_, list, _)| *list);
    equal.rev().max_by_key(|list| named(list)).cloned().unwrap_or_default()
}

/// The first one wins a tie.
fn most_common<T: PartialEq>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: Vec<(T, usize)> = Vec::new();
    for value in values {
        match counts.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::facts::AlarmKind;

    const CLUSTER: u64 = 0xc1;

    fn url(id: u64) -> String {
        format!("http://10.0.0.{id}:2379")
    }

    fn info(id: u64) -> MemberInfo {
        let name = format!("m{id}");
        MemberInfo { id, name, peer_urls: vec![], client_urls: vec![url(id)], is_learner: false }
    }

    fn told(cluster_id: u64, id: u64, leader: u64, list: &[u64]) -> Told {
        let status = MemberStatus {
            cluster_id,
            member_id: id,
            version: "3.6.16".into(),
            db_size: 1,
            db_in_use: 1,
            quota: None,
            leader: Some(leader).filter(|l| *l != 0),
            is_learner: false,
            raft_term: 2,
            raft_index: 1,
            raft_applied_index: 1,
            revision: 1,
            storage_version: None,
            downgrade_to: None,
            errors: vec![],
        };
        Told { status, members: Ok(list.iter().map(|id| info(*id)).collect()), alarms: Ok(vec![]) }
    }

    fn answer(id: u64, told: Result<Told>) -> Answer {
        Answer { url: url(id), given: true, told }
    }

    fn gone(id: u64) -> Result<Told> {
        Err(Error::new(Code::MemberGone, "read status of", url(id)).because("refused"))
    }

    /// id, then where it answered or the code of its error.
    fn shape(view: &ClusterView) -> Vec<(u64, std::result::Result<&str, Code>)> {
        let state = |m: &MemberView| match &m.status {
            Ok(_) => Ok(()),
            Err(e) => Err(e.code()),
        };
        view.members.iter().map(|m| (m.info.id, state(m).map(|()| m.url.as_deref().unwrap_or("nowhere")))).collect()
    }

    #[test]
    fn a_dead_member_is_its_status_and_nothing_else() {
        let all = [1, 2, 3];
        let view = assemble(vec![
            answer(1, Ok(told(CLUSTER, 1, 3, &all))),
            answer(2, gone(2)),
            answer(3, Ok(told(CLUSTER, 3, 3, &all))),
        ]);
        assert_eq!((view.cluster_id, view.leader), (Some(CLUSTER), Some(3)));
        let (one, three) = (url(1), url(3));
        assert_eq!(shape(&view), [(1, Ok(one.as_str())), (2, Err(Code::MemberGone)), (3, Ok(three.as_str()))]);
        assert_eq!(view.members[1].url, Some(url(2)));
        assert!(view.warnings.is_empty() && view.failed.is_empty(), "{view:?}");
    }

    #[test]
    fn nobody_answers() {
        let view = assemble(vec![answer(1, gone(1)), answer(2, gone(2))]);
        assert_eq!((view.cluster_id, view.leader, view.members.len(), view.failed.len()), (None, None, 0, 2));
        let view = assemble(vec![]);
        assert!(view.members.is_empty() && view.warnings.is_empty() && view.alarms.is_none());
    }

    #[test]
    fn an_endpoint_with_another_address_is_matched_by_what_answers() {
        let mut other = answer(1, Ok(told(CLUSTER, 1, 1, &[1])));
        other.url = "http://127.0.0.1:2379".into();
        // The advertised URL was tried too and failed: the member answers elsewhere, so nothing failed.
        let mut advertised = answer(1, gone(1));
        advertised.given = false;
        let view = assemble(vec![other, advertised]);
        assert_eq!(shape(&view), [(1, Ok("http://127.0.0.1:2379"))]);
        assert!(view.members[0].has_url("http://127.0.0.1:2379/") && view.members[0].has_url(&url(1)));
        assert!(view.failed.is_empty());
    }

    #[test]
    fn members_that_did_not_start_are_said_to_be_so() {
        let mut list = told(CLUSTER, 1, 1, &[1, 2]);
        if let Ok(members) = &mut list.members {
            members[1].client_urls.clear();
            members[1].name.clear();
        }
        let view = assemble(vec![answer(1, Ok(list))]);
        assert_eq!(shape(&view)[1], (2, Err(Code::MemberGone)));
        let error = view.members[1].status.as_ref().expect_err("it did not start");
        assert!(error.why()[0].contains("has not started"), "{:?}", error.why());
    }

    #[test]
    fn contradictions_are_warnings() {
        let clusters = assemble(vec![
            answer(1, Ok(told(CLUSTER, 1, 1, &[1, 2]))),
            answer(2, Ok(told(CLUSTER, 2, 1, &[1, 2]))),
            answer(3, Ok(told(0xbad, 3, 3, &[3]))),
        ]);
        assert_eq!((clusters.cluster_id, clusters.members.len()), (Some(CLUSTER), 2));
        assert!(clusters.warnings[0].contains("http://10.0.0.3:2379 (bad)"), "{:?}", clusters.warnings);

        // The leader's list counts, even against a majority.
        let lists = assemble(vec![
            answer(1, Ok(told(CLUSTER, 1, 3, &[1, 2, 3, 4]))),
            answer(2, Ok(told(CLUSTER, 2, 3, &[1, 2, 3, 4]))),
            answer(3, Ok(told(CLUSTER, 3, 3, &[1, 2, 3]))),
        ]);
        assert_eq!(lists.members.len(), 3);
        assert_eq!(lists.warnings.len(), 1);
        assert!(lists.warnings[0].ends_with("http://10.0.0.1:2379, http://10.0.0.2:2379"), "{:?}", lists.warnings);

        let removed = assemble(vec![
            answer(1, Ok(told(CLUSTER, 1, 1, &[1]))),
            answer(2, Ok(Told { members: gone(2).map(|_| vec![]), ..told(CLUSTER, 2, 1, &[]) })),
        ]);
        assert!(removed.warnings[0].contains("is not in the member list"), "{:?}", removed.warnings);
        assert!(removed.warnings[1].contains("does not list the members: refused"), "{:?}", removed.warnings);
    }

    #[test]
    fn the_newest_term_names_the_leader_and_alarms_are_counted_once() {
        let alarm = Alarm { member_id: 2, kind: AlarmKind::NoSpace };
        let mut old = told(CLUSTER, 1, 1, &[1, 2]);
        old.alarms = Ok(vec![alarm]);
        let mut new = told(CLUSTER, 2, 2, &[1, 2]);
        new.status.raft_term = 3;
        new.alarms = Ok(vec![alarm]);
        let view = assemble(vec![answer(1, Ok(old)), answer(2, Ok(new))]);
        assert_eq!((view.leader, view.alarms), (Some(2), Some(vec![alarm])));
    }
}
