//! What can go wrong in a simulated cluster, and when: one fault and its surroundings make a schedule.

use super::rng::Rng;

/// Of one node, if not said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    HungMember,
    FrozenDisk,
    StalledWal {
        load: bool,
    },
    /// Cut off from the other members' peer ports; `also` one more node with it where there are five.
    Minority,
    /// Between this member and the others; `stuck`: a large entry blocks all later ones.
    LargeLossPeer {
        stuck: bool,
    },
    /// Between this apiserver and etcd.
    LargeLossApiserver {
        stuck: bool,
    },
    StaleCache,
    HungApiserver,
    StoppedApiserver,
    StoppedMember,
    ExpiredApiserver,

    ElectionStorm,
    RollingRestart,
    Defragmentation,
    WholeDown,
    /// So many members hang that no quorum is left.
    QuorumLost,
    NoSpace,
    /// This member's database alone is above its quota.
    NoSpaceOne,
    AllCertificates,
    Starved,
    Isolated,
    ClockStep,
    OwnCertificate,
    Throttled,
    Unauthorized,
    Webhooks,
    SlowDisk,
    /// `/readyz` fails for a while after etcd came back, though reads and writes work.
    NotReady,
    /// The observer's process starts anew in the middle.
    ObserverRestart,
    /// All apiservers but this one are stopped; then it hangs.
    LastApiserver,
    /// The member hangs for nine seconds, again and again.
    Flapping,
    /// The whole node starts: its observer is up first, etcd needs some seconds more.
    Boot,
    Quiet,
}

pub const KINDS: [Kind; 35] = [
    Kind::HungMember,
    Kind::FrozenDisk,
    Kind::StalledWal { load: false },
    Kind::StalledWal { load: true },
    Kind::Minority,
    Kind::LargeLossPeer { stuck: false },
    Kind::LargeLossPeer { stuck: true },
    Kind::LargeLossApiserver { stuck: false },
    Kind::LargeLossApiserver { stuck: true },
    Kind::StaleCache,
    Kind::HungApiserver,
    Kind::StoppedApiserver,
    Kind::StoppedMember,
    Kind::ExpiredApiserver,
    Kind::ElectionStorm,
    Kind::RollingRestart,
    Kind::Defragmentation,
    Kind::WholeDown,
    Kind::QuorumLost,
    Kind::NoSpace,
    Kind::NoSpaceOne,
    Kind::AllCertificates,
    Kind::Starved,
    Kind::Isolated,
    Kind::ClockStep,
    Kind::OwnCertificate,
    Kind::Throttled,
    Kind::Unauthorized,
    Kind::Webhooks,
    Kind::SlowDisk,
    Kind::NotReady,
    Kind::LastApiserver,
    Kind::Flapping,
    Kind::Boot,
    Kind::Quiet,
];

#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub kind: Kind,
    /// Bit `i`: node `i` has it.
    pub nodes: u8,
    /// Milliseconds.
    pub from: u64,
    pub to: u64,
}

impl Fault {
    pub fn on(&self, node: usize, at: u64) -> bool {
        self.nodes >> node & 1 == 1 && (self.from..self.to).contains(&at)
    }
}

/// Everything random about a run, drawn from its seed before it begins.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub seed: u64,
    /// Members and apiservers: one of each on every node.
    pub size: usize,
    /// Each apiserver asks its own member; else all ask all.
    pub local: bool,
    pub balancer: bool,
    pub faults: Vec<Fault>,
    /// Milliseconds.
    pub length: u64,
}

impl Schedule {
    pub fn random(seed: u64) -> Schedule {
        let kind = KINDS[(seed % KINDS.len() as u64) as usize];
        Schedule::of(kind, seed)
    }

    pub fn of(kind: Kind, seed: u64) -> Schedule {
        let mut rng = Rng::new(seed ^ 0xFA17);
        let size = if rng.permille(500) { 3 } else { 5 };
        let from = rng.between(20_000, 28_000);
        let to = from + rng.between(36_000, 45_000);
        let node = rng.below(size as u64) as usize;
        let one = 1_u8 << node;
        let all = (1_u8 << size) - 1;
        let mut faults = Vec::new();
        let mut push = |kind, nodes, from, to| faults.push(Fault { kind, nodes, from, to });
        match kind {
            Kind::HungMember | Kind::FrozenDisk | Kind::HungApiserver => {
                // Two of five are the incident, sometimes not quite at the same time; of three apiservers two test the rank.
                let pair = size == 5 || kind == Kind::HungApiserver;
                push(kind, one, from, to);
                if pair && rng.permille(500) {
                    push(kind, 1 << ((node + 1) % size), from + rng.below(2) * rng.below(4_000), to);
                }
                if rng.permille(200) {
                    let at = from + 12_000 + rng.below(10_000);
                    push(Kind::ObserverRestart, one, at, at + 1);
                }
            }
            Kind::Minority if size == 5 && rng.permille(500) => push(kind, one | 1 << ((node + 1) % size), from, to),
            Kind::QuorumLost => {
                let lost = size / 2 + 1;
                (0..lost).for_each(|i| {
                    push(Kind::HungMember, 1 << ((node + i) % size), from + i as u64 * rng.below(300), to)
                });
                push(kind, all, from, to);
            }
            Kind::LastApiserver => {
                push(Kind::StoppedApiserver, all & !one, from, to);
                push(kind, one, from + rng.below(15_000), to);
            }
            Kind::RollingRestart => {
                let mut at = from;
                for i in 0..size {
                    let lasts = rng.between(3_000, 9_000);
                    push(kind, 1 << ((node + i) % size), at, at + lasts);
                    at += lasts + rng.between(4_000, 9_000);
                }
            }
            Kind::Flapping => (0..5).for_each(|i| push(kind, one, from + i * 18_000, from + i * 18_000 + 9_000)),
            Kind::Boot => push(kind, one, from, from + rng.between(3_500, 5_000)),
            Kind::Defragmentation => push(kind, one, from, from + rng.between(4_000, 22_000)),
            Kind::WholeDown
            | Kind::ElectionStorm
            | Kind::NoSpace
            | Kind::AllCertificates
            | Kind::Throttled
            | Kind::Unauthorized
            | Kind::Webhooks => push(kind, all, from, to),
            _ => push(kind, one, from, to),
        }
        // Some other observer has trouble of its own at the same time.
        if rng.permille(200) && !matches!(kind, Kind::Starved | Kind::Isolated | Kind::ClockStep | Kind::OwnCertificate)
        {
            let other = 1 << ((node + size - 1) % size);
            let kind = *rng.pick(&[Kind::Starved, Kind::ClockStep, Kind::OwnCertificate]);
            let at = from + rng.below(20_000);
            push(kind, other, at, at + 15_000);
        }
        let length = faults.iter().map(|fault| fault.to).max().unwrap_or(to) + 32_000;
        Schedule { seed, size, local: rng.permille(600), balancer: rng.permille(500), faults, length }
    }

    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.faults.iter().map(|fault| fault.kind)
    }
}
