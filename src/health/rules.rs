//! Every number and every rule of health in one value, so that tests can switch each off and show that it is missed.

use std::time::Duration;

use super::model::Probe;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Period of own targets; remote ones are asked a fifth as often.
    pub interval: Duration,
    pub deadline: Duration,
    /// An answer that was looked at this much after its deadline tells of the observer, not of the target.
    pub late: Duration,
    /// So many failures in a row make a fact failed.
    pub fails: u8,
    /// A failed question is repeated after this, on a fresh connection.
    pub repeat: Duration,
    /// So many good answers in a row make it good again; for probes slower than a second [`Rules::goods_slow`].
    pub goods: u8,
    pub goods_slow: u8,
    /// A fact without an answer for so many periods (and two seconds) is unknown.
    pub stale_periods: u32,
    /// Median of the last sixty above this: slow.
    pub slow: Duration,
    /// Lateness of own timers, and share of waiting for the processor or for memory, from which nobody is judged.
    pub starved_lateness: Duration,
    pub starved_pressure: f64,
    /// Seconds by which the wall clock may move.
    pub clock_step: i64,
    /// So long after its start the observer judges nobody.
    pub settle: Duration,
    /// A member without leader for less than this may be in an election.
    pub election: Duration,
    /// So many leader changes within [`Rules::storm_span`] are a storm: then a lost leader proves nothing until it has been
    /// lost for [`Rules::storm_patience`].
    pub storm_changes: usize,
    pub storm_span: Duration,
    pub storm_patience: Duration,
    /// What was stopped may be restarting for so long.
    pub restart: Duration,
    /// Defragmentation copies at least so many bytes a second; by that its grace is bounded.
    pub defrag_rate: u64,
    /// Free space must fall by so much while a member is silent, to be taken for its defragmentation.
    pub defrag_fall: u64,
    /// Applied entries behind the committed ones: slow.
    pub apply_lag: u64,
    /// Guards of the fence, each on by default.
    pub guards: Guards,
    /// So long must the own path be good again before a fence ends; doubled with each repeat.
    pub steady: Duration,
    pub steady_max: Duration,
    /// Repeats are forgotten after so long without a fence.
    pub forget: Duration,
    /// A fence outlives its evidence by so much, when that becomes unknown.
    pub keep: Duration,
}

/// Which rules of the fence are in force. Only tests switch one off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guards {
    /// A difference to the others is needed at all.
    pub difference: bool,
    /// The others' answers must be younger than the own failure, and the own failure must outlast them.
    pub proof: bool,
    pub rank: bool,
    pub quorum: bool,
    /// NOSPACE, defragmentation, election and what all share.
    pub nospace: bool,
    pub defragmentation: bool,
    pub election: bool,
    /// What was stopped may be restarting.
    pub restart: bool,
    pub starved: bool,
    pub isolated: bool,
    pub clock: bool,
    pub certificate: bool,
    pub started: bool,
    /// The apiserver's own checks never judge alone.
    pub checks_alone: bool,
    /// 401, 403, 404, 429 are unknown.
    pub unknown_is_unknown: bool,
    /// Fences do not end with the first good answer.
    pub hysteresis: bool,
}

impl Default for Guards {
    fn default() -> Self {
        Guards {
            difference: true,
            proof: true,
            rank: true,
            quorum: true,
            nospace: true,
            defragmentation: true,
            election: true,
            restart: true,
            starved: true,
            isolated: true,
            clock: true,
            certificate: true,
            started: true,
            checks_alone: true,
            unknown_is_unknown: true,
            hysteresis: true,
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Rules {
            interval: seconds(1),
            deadline: seconds(1),
            late: Duration::from_millis(400),
            fails: 2,
            repeat: Duration::from_millis(500),
            goods: 5,
            goods_slow: 2,
            stale_periods: 3,
            slow: Duration::from_millis(250),
            starved_lateness: Duration::from_millis(500),
            starved_pressure: 0.8,
            clock_step: 3,
            settle: seconds(6),
            election: seconds(10),
            storm_changes: 2,
            storm_span: seconds(15),
            storm_patience: seconds(10),
            restart: seconds(30),
            defrag_rate: 20 << 20,
            defrag_fall: 4 << 20,
            apply_lag: 5_000,
            guards: Guards::default(),
            steady: seconds(5),
            steady_max: seconds(300),
            forget: seconds(1_800),
            keep: seconds(10),
        }
    }
}

impl Rules {
    /// How often it is asked (design §11); scales with [`Rules::interval`].
    pub fn period(&self, probe: Probe, own: bool) -> Duration {
        let (mine, theirs) = match probe {
            Probe::E1 => (30, 30),
            Probe::E2 | Probe::E3 | Probe::A2 | Probe::V1 => (1, 5),
            Probe::E4 => (2, 10),
            Probe::E5 | Probe::A5 => (30, 300),
            Probe::E6 | Probe::A1 => (5, 5),
            Probe::A3 | Probe::A4 => (5, 30),
        };
        self.interval * if own { mine } else { theirs }
    }

    /// How long an answer is waited for. `/readyz` needs four seconds to say that it is not.
    pub fn deadline(&self, probe: Probe) -> Duration {
        if probe == Probe::A1 { self.deadline * 5 } else { self.deadline }
    }

    /// So old may the last answer be before the fact is unknown.
    pub fn stale_after(&self, probe: Probe, own: bool) -> Duration {
        self.period(probe, own) * self.stale_periods + self.deadline(probe) + Duration::from_secs(1)
    }

    pub fn goods_needed(&self, probe: Probe, own: bool) -> u8 {
        if self.period(probe, own) > self.interval { self.goods_slow } else { self.goods }
    }
}
