//! NOSPACE: a member's database has reached its quota, and the whole cluster refuses writes until space is made and the
//! alarm is disarmed. What fills it, and the way out: compact, defragment each member, disarm. The plan is pure.

use serde::Serialize;

use super::plan::MemberFacts;
use crate::etcd::AlarmKind;

/// So many of the newest revisions stay when a cluster is compacted by hand: watchers that are a little behind go on.
pub const KEEP_REVISIONS: i64 = 1000;
/// Of its quota a member may hold so much when the alarm is disarmed: else it is raised again at once.
const BELOW_PERCENT: u64 = 90;
/// etcd's own default, where the member does not tell it (before 3.6).
pub const DEFAULT_QUOTA: u64 = 2 << 30;

/// All that is decided from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Member ids with their alarms; `None`: nobody could say.
    pub alarms: Option<Vec<(u64, AlarmKind)>>,
    pub members: Vec<MemberFacts>,
    /// Bytes, and whether the member told it.
    pub quota: (u64, bool),
    /// Newest revision.
    pub revision: i64,
    /// `None`: already as far as is wanted is not known.
    pub compacted: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    Compact {
        to: i64,
    },
    /// The own member; the others by their own nodes.
    Defragment {
        member: String,
    },
    Disarm {
        members: Vec<u64>,
    },
}

/// The way out, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub raised: bool,
    pub steps: Vec<Step>,
    /// Members that are to be defragmented on their own nodes before the alarm can be disarmed.
    pub elsewhere: Vec<String>,
    /// Why nothing is done, or not all of it.
    pub refused: Vec<String>,
}

/// What to do about the alarm. A step is only planned once those before it were seen to be done: plan again after each.
pub fn plan(facts: &Facts) -> Plan {
    let (mut steps, mut refused, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    let raised: Vec<u64> = match &facts.alarms {
        None => {
            refused.push("whether the alarm is raised could not be read".into());
            return Plan { raised: false, steps, elsewhere, refused };
        }
        Some(alarms) => alarms.iter().filter(|(_, kind)| *kind == AlarmKind::NoSpace).map(|(id, _)| *id).collect(),
    };
    if raised.is_empty() {
        refused.push("the alarm NOSPACE is not raised".into());
        return Plan { raised: false, steps, elsewhere, refused };
    }
    if facts.alarms.iter().flatten().any(|(_, kind)| *kind == AlarmKind::Corrupt) {
        refused
            .push("the alarm CORRUPT is raised too: find the damaged member first, and change nothing before".into());
        return Plan { raised: true, steps, elsewhere, refused };
    }
    let limit = facts.quota.0 / 100 * BELOW_PERCENT;
    let large: Vec<&MemberFacts> = facts.members.iter().filter(|member| member.db_size > limit).collect();
    if large.is_empty() {
        steps.push(Step::Disarm { members: raised });
        return Plan { raised: true, steps, elsewhere, refused };
    }
    let to = facts.revision - KEEP_REVISIONS;
    let history = facts.compacted.is_none_or(|at| at < to);
    if to > 0 && history {
        steps.push(Step::Compact { to });
    }
    for member in &large {
        let enough = member.db_in_use <= limit || history;
        match (member.own, enough) {
            (_, false) => refused.push(format!(
                "member {} holds {} bytes in use of a quota of {}: a defragmentation frees too little; delete something, or raise \
                 --quota-backend-bytes",
                member.name, member.db_in_use, facts.quota.0
            )),
            (true, true) => steps.push(Step::Defragment { member: member.name.clone() }),
            (false, true) => elsewhere.push(member.name.clone()),
        }
    }
    if elsewhere.is_empty() && refused.is_empty() {
        steps.push(Step::Disarm { members: raised });
    }
    Plan { raised: true, steps, elsewhere, refused }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn member(id: u64, size: u64, in_use: u64) -> MemberFacts {
        MemberFacts {
            id,
            name: format!("m{id}"),
            own: id == 1,
            leader: false,
            learner: false,
            db_size: size * MIB,
            db_in_use: in_use * MIB,
            health: Ok(()),
        }
    }

    fn facts(members: Vec<MemberFacts>) -> Facts {
        let alarms = Some(vec![(1, AlarmKind::NoSpace)]);
        Facts { alarms, members, quota: (100 * MIB, true), revision: 50_000, compacted: None }
    }

    #[test]
    fn one_member_goes_all_the_way() {
        let mut facts = facts(vec![member(1, 100, 99)]);
        let steps = plan(&facts).steps;
        let disarm = Step::Disarm { members: vec![1] };
        assert_eq!(steps, [Step::Compact { to: 49_000 }, Step::Defragment { member: "m1".into() }, disarm.clone()]);
        // Compacted already, and there is something to gain.
        (facts.compacted, facts.members[0].db_in_use) = (Some(49_500), 10 * MIB);
        assert_eq!(plan(&facts).steps, [Step::Defragment { member: "m1".into() }, disarm.clone()]);
        // Nothing to gain: no step that would only make it worse.
        facts.members[0].db_in_use = 95 * MIB;
        let stuck = plan(&facts);
        assert!(stuck.steps.is_empty() && stuck.refused[0].contains("delete something"), "{stuck:?}");
        // Space was made by somebody.
        facts.members[0].db_size = 20 * MIB;
        assert_eq!(plan(&facts).steps, [disarm]);
    }

    #[test]
    fn the_others_come_first_on_their_own_nodes() {
        let plan = plan(&facts(vec![member(1, 100, 20), member(2, 100, 20), member(3, 30, 20)]));
        assert_eq!(plan.elsewhere, ["m2"]);
        assert_eq!(plan.steps, [Step::Compact { to: 49_000 }, Step::Defragment { member: "m1".into() }]);
    }

    #[test]
    fn unknown_and_other_alarms_change_nothing() {
        let mut facts = facts(vec![member(1, 100, 20)]);
        for (alarms, raised, word) in [
            (None, false, "could not be read"),
            (Some(vec![]), false, "not raised"),
            (Some(vec![(2, AlarmKind::Corrupt)]), false, "not raised"),
            (Some(vec![(1, AlarmKind::NoSpace), (2, AlarmKind::Corrupt)]), true, "CORRUPT"),
        ] {
            facts.alarms = alarms;
            let plan = plan(&facts);
            assert!(plan.steps.is_empty() && plan.raised == raised && plan.refused[0].contains(word), "{plan:?}");
        }
    }
}
