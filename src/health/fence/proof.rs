//! The difference that a fence needs: the same question that fails here is answered elsewhere, asked after it failed here, and
//! it failed here again after that answer. Older answers prove nothing: in an election, or when the own network goes, all were
//! good a moment ago.

use super::super::facts::Facts;
use super::super::judge::member_behind;
use super::super::model::{Kind, Probe, TargetId, Watched};
use super::super::rules::Rules;
use super::super::verdict::{State, Verdicts};
use super::super::window::Run;

/// What proves the difference, or what is missing.
pub type Shown = Result<String, String>;

#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    pub rules: &'a Rules,
    pub watched: &'a Watched,
    pub facts: &'a Facts,
    pub verdicts: &'a Verdicts,
    /// The fact that judged the own path.
    pub by: (TargetId, Probe),
    /// Its failures.
    pub run: &'a Run,
}

impl Case<'_> {
    fn serves(&self, id: TargetId) -> bool {
        matches!(self.verdicts.state(id), State::Good | State::Slow)
    }

    /// Answered elsewhere after it failed here, and failed here again after that; where an election could be why, at the same
    /// time as it went on to fail here.
    fn answered(&self, id: TargetId, probe: Probe) -> bool {
        let window = self.facts.window(id, probe);
        match self.by.1 {
            Probe::E1 | Probe::A4 => window.outlasted_by(self.run),
            _ => window.answered_beside(self.run),
        }
    }

    fn name(&self, id: TargetId) -> &str {
        self.watched.target(id).map_or("?", |target| target.name.as_str())
    }

    /// At least one other apiserver reads from etcd what this one does not.
    pub fn other_apiserver(&self, own: TargetId) -> Shown {
        let others = || self.watched.of(Kind::Apiserver).filter(|(id, _)| *id != own && self.serves(*id));
        let good: Vec<&str> = others().map(|(_, target)| target.name.as_str()).collect();
        if good.is_empty() && self.rules.guards.difference {
            return self.witness().ok_or_else(|| "no other apiserver is good: the last one is never fenced".to_owned());
        }
        if !self.rules.guards.proof || !self.rules.guards.difference {
            return Ok(format!("good elsewhere: {}", good.join(", ")));
        }
        let probe = if self.run.failure.is_handshake() { Probe::E1 } else { self.by.1 };
        let proven = others().find(|(id, _)| self.answered(*id, Probe::A2) && self.same(*id, probe));
        match proven {
            Some((_, target)) => Ok(format!("{} has answered the same question since", target.name)),
            None => self
                .witness()
                .ok_or_else(|| format!("{} looked good, but has not answered since this path failed", good.join(", "))),
        }
    }

    /// The failing question itself, at that apiserver or at the member behind it.
    fn same(&self, id: TargetId, probe: Probe) -> bool {
        let of_member = matches!(probe, Probe::E2 | Probe::E3 | Probe::E4 | Probe::E5 | Probe::E6);
        if probe == Probe::E1 || !of_member {
            return self.answered(id, probe);
        }
        match member_behind(self.watched, id) {
            Some(member) => self.answered(member, probe),
            None => {
                self.watched.of(Kind::Member).any(|(member, _)| member != self.by.0 && self.answered(member, probe))
            }
        }
    }

    /// A read through the balancer, while this node's own are dead, came from somebody else.
    fn witness(&self) -> Option<String> {
        if !matches!(self.by.1, Probe::A2 | Probe::E2 | Probe::E3) || self.run.failure.is_handshake() {
            return None;
        }
        let mut balancers = self.watched.of(Kind::Balancer);
        let (_, target) = balancers.find(|(id, _)| self.answered(*id, Probe::V1))?;
        Some(format!("the balancer {} has answered since: an apiserver elsewhere reads from etcd", target.name))
    }

    /// The other good voters are a quorum, and answer what fails here.
    pub fn other_members(&self, own: TargetId) -> Shown {
        let voters = || self.watched.of(Kind::Member).filter(|(_, target)| !target.learner).map(|(id, _)| id);
        let quorum = voters().count() / 2 + 1;
        let good: Vec<TargetId> = voters().filter(|id| *id != own && self.serves(*id)).collect();
        let names = |ids: &[TargetId]| ids.iter().map(|id| self.name(*id)).collect::<Vec<_>>().join(", ");
        if good.len() < quorum && self.rules.guards.quorum {
            return Err(format!("{} other members are good ({}), a quorum is {quorum}", good.len(), names(&good)));
        }
        if !self.rules.guards.proof {
            return Ok(format!("good elsewhere: {}", names(&good)));
        }
        let probe = if self.run.failure.is_handshake() { Probe::E1 } else { self.by.1 };
        let proven: Vec<TargetId> = good.iter().copied().filter(|id| self.answered(*id, probe)).collect();
        if proven.len() < quorum && self.rules.guards.quorum {
            return Err(format!("only {} of {} have answered since this member failed", proven.len(), good.len()));
        }
        Ok(format!("{} have answered the same question since, a quorum is {quorum}", names(&proven)))
    }

    /// Among the bad ones, only the first by name may be fenced: so nodes that cannot talk to each other never fence too many.
    /// `waits`: also those must have been asked since that may be about to turn out bad.
    pub fn rank(&self, own: TargetId, waits: bool) -> Shown {
        if !self.rules.guards.rank {
            return Ok("rank is not looked at".to_owned());
        }
        let count = self.watched.of(Kind::Apiserver).count();
        let most = most(count);
        let mine = self.name(own);
        let before =
            || self.watched.of(Kind::Apiserver).filter(|(id, target)| *id != own && target.name.as_str() < mine);
        let bad = before().filter(|(id, _)| self.verdicts.state(*id) == State::Bad).count();
        if bad >= most {
            return Err(format!("{bad} of {count} before it by name are bad, at most {most} are fenced"));
        }
        let open: Vec<&str> =
            before().filter(|(id, _)| !self.settled(*id)).map(|(_, target)| target.name.as_str()).collect();
        if waits && self.rules.guards.proof && bad + open.len() >= most && !open.is_empty() {
            return Err(format!("{} ranks before it and has not been asked since", open.join(", ")));
        }
        Ok(format!("{bad} bad before it by name, at most {most} are fenced"))
    }

    /// Asked after the failure here, and known to be good or bad by that.
    fn settled(&self, id: TargetId) -> bool {
        if self.verdicts.state(id) == State::Bad {
            return true;
        }
        let window = self.facts.window(id, Probe::A2);
        window.run().is_none() && window.asked().is_some_and(|at| at >= self.run.first.ended)
    }
}

/// How many of so many apiservers may be fenced by rank.
pub fn most(count: usize) -> usize {
    (count.saturating_sub(1) / 2).max(1)
}
