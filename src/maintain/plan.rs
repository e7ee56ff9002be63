//! Whether and how the own member is defragmented. Pure.

use std::time::Duration;

use serde::Serialize;

use crate::config::MaintainSettings;

/// Slowest rewrite that still ends within its deadline, bytes a second: a tenth of what slow disks do.
const SLOWEST: u64 = 5 << 20;
const SHORTEST_DEADLINE: Duration = Duration::from_secs(60);
/// The copy holds what is in use, and some slack.
const SLACK: u64 = 64 << 20;

/// One member of the cluster, as asked just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberFacts {
    pub id: u64,
    pub name: String,
    pub own: bool,
    pub leader: bool,
    pub learner: bool,
    /// Bytes.
    pub db_size: u64,
    pub db_in_use: u64,
    /// It reads locally and with quorum, and a proposal passes; else why not.
    pub health: Result<(), String>,
}

impl MemberFacts {
    fn gain(&self) -> u64 {
        self.db_size.saturating_sub(self.db_in_use)
    }

    /// Whether a defragmentation pays.
    fn pays(&self, rules: &MaintainSettings) -> bool {
        let share = u128::from(self.gain()) * 100 >= u128::from(self.db_size) * u128::from(rules.min_gain_percent);
        self.gain() >= rules.min_gain && share && self.gain() > 0
    }
}

/// All that is decided from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub members: Vec<MemberFacts>,
    /// Free bytes beside the own database; else why they are not known.
    pub free: Result<u64, String>,
    /// etcd's own faults in its version that make this unsafe.
    pub defects: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// So that nobody waits for a leader that stands still.
    MoveLeader { to: u64, name: String },
    /// The deadline in seconds.
    Defragment { deadline: u64 },
}

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Refusal {
    NoOwnMember,
    NotWorth {
        gain: u64,
        least: u64,
        percent: u32,
    },
    /// The own member, or one of the others.
    Unhealthy {
        name: String,
        why: String,
    },
    /// The leader is the last: these come first.
    LeaderLast {
        others: Vec<String>,
    },
    NoOtherLeader,
    Space {
        needed: u64,
        free: u64,
    },
    SpaceUnknown {
        why: String,
    },
    Defect {
        what: String,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::config::format_size as size;
        match self {
            Refusal::NoOwnMember => f.write_str("no member of the cluster is this node's own"),
            Refusal::NotWorth { gain, least, percent } => {
                write!(f, "it would free {} only; wanted are {} and {percent} %", size(*gain), size(*least))
            }
            Refusal::Unhealthy { name, why } => write!(f, "member {name} is not well: {why}"),
            Refusal::LeaderLast { others } => {
                write!(f, "this member leads and comes last; first {}", others.join(", "))
            }
            Refusal::NoOtherLeader => f.write_str("this member leads, and no other voting member can take over"),
            Refusal::Space { needed, free } => {
                write!(f, "the copy needs {}, and {} are free beside the database", size(*needed), size(*free))
            }
            Refusal::SpaceUnknown { why } => write!(f, "the room for the copy is not known: {why}"),
            Refusal::Defect { what } => f.write_str(what),
        }
    }
}

/// What would be done, or why not. Without refusals the steps are done in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub member: String,
    /// Bytes.
    pub db_size: u64,
    pub db_in_use: u64,
    pub gain: u64,
    pub steps: Vec<Step>,
    pub refused: Vec<Refusal>,
    /// What a person should know before.
    pub notes: Vec<String>,
}

/// `anyway`: also where it frees little.
pub fn plan(facts: &Facts, rules: &MaintainSettings, anyway: bool) -> Plan {
    let Some(own) = facts.members.iter().find(|member| member.own) else {
        let (member, refused) = (String::new(), vec![Refusal::NoOwnMember]);
        return Plan { member, db_size: 0, db_in_use: 0, gain: 0, steps: vec![], refused, notes: vec![] };
    };
    let others: Vec<&MemberFacts> = facts.members.iter().filter(|member| !member.own).collect();
    let voters = facts.members.iter().filter(|member| !member.learner).count();
    let (mut refused, mut notes, mut steps) = (Vec::new(), Vec::new(), Vec::new());

    if !own.pays(rules) && !anyway {
        let (least, percent) = (rules.min_gain, rules.min_gain_percent);
        refused.push(Refusal::NotWorth { gain: own.gain(), least, percent });
    }
    refused.extend(facts.defects.iter().map(|what| Refusal::Defect { what: what.clone() }));
    for member in &facts.members {
        if let Err(why) = &member.health {
            refused.push(Refusal::Unhealthy { name: member.name.clone(), why: why.clone() });
        }
    }
    let needed = own.db_in_use.saturating_add(SLACK);
    match &facts.free {
        Ok(free) if *free < needed => refused.push(Refusal::Space { needed, free: *free }),
        Ok(_) => {}
        Err(why) => refused.push(Refusal::SpaceUnknown { why: why.clone() }),
    }
    let able = |member: &&&MemberFacts| !member.learner && member.health.is_ok();
    if own.leader && voters > 1 {
        let first: Vec<String> =
            others.iter().filter(|member| member.pays(rules)).map(|member| member.name.clone()).collect();
        if !first.is_empty() {
            refused.push(Refusal::LeaderLast { others: first });
        }
        // The one with the lowest id: the same at each look.
        match others.iter().filter(able).min_by_key(|member| member.id) {
            Some(to) => steps.push(Step::MoveLeader { to: to.id, name: to.name.clone() }),
            None => refused.push(Refusal::NoOtherLeader),
        }
    }
    let takes = Duration::from_secs(own.db_in_use / SLOWEST);
    if !own.learner && others.iter().filter(able).count() < voters / 2 + 1 {
        notes.push("the cluster answers nothing meanwhile: without this member it has no quorum".into());
    }
    steps.push(Step::Defragment { deadline: takes.max(SHORTEST_DEADLINE).as_secs() });
    if !refused.is_empty() {
        steps.clear();
    }
    Plan {
        member: own.name.clone(),
        db_size: own.db_size,
        db_in_use: own.db_in_use,
        gain: own.gain(),
        steps,
        refused,
        notes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn rules() -> MaintainSettings {
        MaintainSettings { min_gain: 100 * MIB, min_gain_percent: 20 }
    }

    fn member(id: u64, free: u64) -> MemberFacts {
        MemberFacts {
            id,
            name: format!("m{id}"),
            own: id == 1,
            leader: false,
            learner: false,
            db_size: (500 + free) * MIB,
            db_in_use: 500 * MIB,
            health: Ok(()),
        }
    }

    /// Three members with so many MiB to gain, `leader` leads, number 1 is ours.
    fn facts(gains: [u64; 3], leader: u64) -> Facts {
        let members = (1..).zip(gains).map(|(id, gain)| MemberFacts { leader: id == leader, ..member(id, gain) });
        Facts { members: members.collect(), free: Ok(10_000 * MIB), defects: vec![] }
    }

    fn words(plan: &Plan) -> Vec<String> {
        plan.refused.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn it_must_pay() {
        for (gain, anyway, pays) in [
            (0, false, false),
            (99, false, false),
            // 100 MiB of 600 are less than 20 %.
            (100, false, false),
            (125, false, true),
            (0, true, true),
        ] {
            let plan = plan(&facts([gain, 0, 0], 2), &rules(), anyway);
            assert_eq!(plan.refused.is_empty(), pays, "{gain} {anyway}: {:?}", words(&plan));
            assert_eq!(plan.steps.is_empty(), !pays);
        }
    }

    #[test]
    fn the_leader_is_last_and_hands_over_first() {
        let waits = plan(&facts([500, 500, 0], 1), &rules(), false);
        assert_eq!(waits.refused, [Refusal::LeaderLast { others: vec!["m2".into()] }]);
        assert!(waits.steps.is_empty());
        let goes = plan(&facts([500, 50, 0], 1), &rules(), false);
        let (to, name) = (2, "m2".to_string());
        assert_eq!(goes.steps, [Step::MoveLeader { to, name }, Step::Defragment { deadline: 100 }]);
        // To somebody who is able.
        let mut facts = facts([500, 0, 0], 1);
        facts.members[1].learner = true;
        assert_eq!(plan(&facts, &rules(), false).steps[0], Step::MoveLeader { to: 3, name: "m3".into() });
        facts.members[2].learner = true;
        // The only voter: nobody else leads, and nothing is moved.
        let alone = plan(&facts, &rules(), false);
        assert_eq!(alone.steps, [Step::Defragment { deadline: 100 }]);
        assert!(alone.notes[0].contains("no quorum"), "{:?}", alone.notes);
    }

    #[test]
    fn one_that_is_not_well_stops_all() {
        for who in 0..3 {
            let mut facts = facts([500, 0, 0], 2);
            facts.members[who].health = Err("hung".into());
            let plan = plan(&facts, &rules(), true);
            assert_eq!(words(&plan), [format!("member m{} is not well: hung", who + 1)]);
            assert!(plan.steps.is_empty());
        }
    }

    #[test]
    fn the_copy_must_fit() {
        let mut facts = facts([500, 0, 0], 2);
        facts.free = Ok(563 * MIB);
        assert!(matches!(plan(&facts, &rules(), true).refused[..], [Refusal::Space { .. }]));
        facts.free = Ok(564 * MIB);
        assert!(plan(&facts, &rules(), true).refused.is_empty());
        facts.free = Err("not asked".into());
        assert!(matches!(plan(&facts, &rules(), true).refused[..], [Refusal::SpaceUnknown { .. }]));
        facts.members.clear();
        assert_eq!(plan(&facts, &rules(), true).refused, [Refusal::NoOwnMember]);
    }

    #[test]
    fn two_members_lose_their_quorum_and_it_is_said() {
        let mut facts = facts([500, 0, 0], 2);
        assert!(plan(&facts, &rules(), false).notes.is_empty());
        facts.members.pop();
        assert!(plan(&facts, &rules(), false).notes[0].contains("no quorum"));
    }
}
