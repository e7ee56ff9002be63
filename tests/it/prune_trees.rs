//! Prune in directories of chance (promise 2): whatever stands there, nothing is removed or renamed but what refloat
//! wrote, in this node's reach, and of that neither the newest nor the floor nor anything pinned.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use refloat::catalog::prune::{Plan, Reach, Report, act, find, plan};
use refloat::catalog::retention::{Freeze, Policy, Situation, Space};
use refloat::catalog::{Catalog, SnapshotId};
use refloat::config::{RetentionSettings, Scope};
use refloat::store::{LocalStore, Mode, OpenStore, Store};

use crate::bed::{Rng, seed};
use crate::hostile_tree::{HostileTree, OUTSIDE_BYTES, OWN, Whole, at, node};
use crate::tree::{Tree, tree};

/// What came of some trees, so that a test that prunes nothing is noticed.
#[derive(Debug, Default)]
struct Sum {
    removed: usize,
    emptied: usize,
    cleaned: usize,
    refused: usize,
    held: usize,
    stopped: usize,
}

/// Everything that one run decides by.
struct Chance {
    policy: Policy,
    situation: Situation,
    /// It is stopped after so many steps.
    steps: u64,
}

impl Chance {
    fn new(rng: &mut Rng, scope: Scope, used: u64, unfinished: u64) -> Chance {
        let mut few = |limit: u64| if rng.below(2) == 0 { 0 } else { rng.below(limit) as u32 };
        let rules = RetentionSettings {
            keep_last: few(4),
            keep_within: Duration::from_secs(u64::from(few(20_000))),
            keep_hourly: few(3),
            keep_daily: few(3),
            keep_weekly: few(2),
            keep_monthly: few(2),
            min_keep: few(4),
        };
        let policy = Policy {
            rules,
            timezone: TimeZone::UTC,
            scope,
            node: node("cp1"),
            lineage: OWN,
            max_bytes: (rng.below(3) == 0).then(|| rng.below(200)),
            trash_grace: Duration::from_secs(*rng.pick(&[0, 3_600, 86_400])),
        };
        let year = 365 * 86_400;
        let now = if rng.below(9) > 0 { at(110_000) } else { at(*rng.pick(&[40_000, -year, year])) };
        let freeze = match rng.below(24) {
            0 => Some(Freeze { until: None, reason: "torn".into() }),
            1 => Some(Freeze { until: Some(at(90_000)), reason: "a restore".into() }),
            _ => None,
        };
        let space = Space {
            used,
            unfinished,
            free: (rng.below(3) == 0).then(|| rng.below(100)),
            reserved: rng.below(150),
            coming: rng.below(2) * 30,
            coming_free: rng.below(2) * 60,
        };
        let overdue_at = (rng.below(12) == 0).then(|| at(rng.below(200_000) as i64));
        let clock_jump = (rng.below(8) == 0).then_some(3600);
        let situation = Situation { now, overdue_at, clock_jump, clock_trusted: rng.below(4) == 0, freeze, space };
        let steps = if rng.below(4) == 0 { rng.below(6) } else { u64::MAX };
        Chance { policy, situation, steps }
    }
}

fn run(store: &LocalStore, scope: Scope, rng: &mut Rng) -> Option<(Plan, Report, Chance)> {
    // What cannot be listed to its end is left alone.
    let catalog = Catalog::read(&[store as &dyn Store]).ok()?;
    let own = node("cp1");
    let found = find(&catalog, 0, &Reach { scope, node: &own, lineage: OWN });
    let chance = Chance::new(rng, scope, found.usage.used, found.usage.unfinished);
    let plan = plan(store, found, &chance.policy, &chance.situation);
    let mut left = chance.steps;
    let report = act(&plan, &catalog, (0, 0), chance.situation.now, &mut |_| {
        left = left.saturating_sub(1);
        left > 0
    });
    Some((plan, report, chance))
}

/// What is gone from its place was in reach and free to go, and is nowhere or whole in the trash.
#[track_caller]
fn only_ours(before: &Tree, after: &Tree, free: &BTreeSet<PathBuf>, case: &str) -> BTreeSet<PathBuf> {
    let mut gone = BTreeSet::new();
    let mut inodes: BTreeMap<u64, &Path> = BTreeMap::new();
    for (name, leaf) in before {
        if after.get(name) == Some(leaf) {
            continue;
        }
        let path = Path::new(name);
        assert!(!after.contains_key(name), "{case}: {path:?} is not what it was");
        assert!(free.contains(path), "{case}: {path:?} is gone");
        gone.insert(path.to_owned());
        inodes.insert(leaf.inode, path);
    }
    for (name, leaf) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        let path = Path::new(name);
        if path == Path::new(&format!("{OWN}/trash")) {
            continue;
        }
        let was = inodes.get(&leaf.inode).unwrap_or_else(|| panic!("{case}: {path:?} is new"));
        assert_eq!(before.get(was.as_os_str()).map(|b| &b.content), Some(&leaf.content), "{case}: {path:?}");
        let file = path.file_name().unwrap().to_str().unwrap();
        let in_trash = path.parent() == Some(Path::new(&format!("{OWN}/trash")));
        assert!(in_trash && file[20..] == *was.file_name().unwrap(), "{case}: {was:?} became {path:?}");
    }
    gone
}

/// The newest verified one of each timeline, the floor, pinned and imported ones are whole.
#[track_caller]
fn floor_holds(whole: &[Whole], gone: &BTreeSet<PathBuf>, min_keep: u32, case: &str) {
    let stays = |w: &Whole| w.files.is_disjoint(gone);
    let backups = || whole.iter().filter(|w| w.verified && !w.imported && w.counts);
    let mut newest: BTreeMap<u16, &SnapshotId> = BTreeMap::new();
    for w in backups() {
        let known = newest.entry(w.id.timeline()).or_insert(&w.id);
        *known = (*known).max(&w.id);
    }
    for w in whole.iter().filter(|w| !stays(w)) {
        assert!(!w.pinned, "{case}: {} is pinned", w.id);
        assert!(!w.imported, "{case}: {} is an import", w.id);
        assert!(newest.get(&w.id.timeline()).is_some_and(|newest| **newest > w.id), "{case}: {} is the newest", w.id);
    }
    let (had, has) = (backups().count(), backups().filter(|w| stays(w)).count());
    assert!(has >= had.min(min_keep as usize), "{case}: {has} of {had} with min_keep {min_keep}");
}

fn one(seed: u64, scratch: &Path, sum: &mut Sum) {
    let case = format!("tree {seed}");
    let (root, outside) = (scratch.join("store"), scratch.join("outside"));
    for dir in [&root, &outside] {
        fs::create_dir_all(dir).unwrap();
    }
    for name in ["a", "b", "c"] {
        fs::write(outside.join(name), name.repeat(OUTSIDE_BYTES)).unwrap();
    }
    let mut rng = Rng::new(seed);
    let grown = HostileTree::grow(&mut rng, &root, &outside);
    let scope = if grown.scope_is_cluster { Scope::Cluster } else { Scope::Node };
    let (whole, loose) = (grown.whole, grown.loose);
    let mut free = loose.clone();
    whole.iter().filter(|w| !w.odd).for_each(|w| free.extend(w.files.iter().cloned()));
    let (first, beside) = (tree(&root), tree(&outside));
    let url = format!("file://{}", root.display());
    let store = LocalStore::open(&OpenStore { name: "a".into(), url, mode: Mode::Remove }, None).unwrap();
    // Twice: the second one meets what the first one left.
    let (mut before, mut min_keep) = (first.clone(), u32::MAX);
    for round in 0..2 {
        let Some((plan, report, chance)) = run(&store, scope, &mut rng) else { break };
        let after = tree(&root);
        let case = format!("{case}, run {round}: {report:?}");
        let now_gone = only_ours(&before, &after, &free, &case);
        if plan.held() {
            assert!(now_gone.is_empty() && after == before, "{case}: held");
            sum.held += 1;
        }
        // What went into the trash may go from there.
        free.extend(after.keys().filter(|name| !before.contains_key(*name)).map(PathBuf::from));
        if !now_gone.is_empty() {
            min_keep = min_keep.min(chance.policy.rules.min_keep);
        }
        let gone = first.keys().map(PathBuf::from).filter(|name| !after.contains_key(name.as_os_str())).collect();
        floor_holds(&whole, &gone, min_keep.min(chance.policy.rules.min_keep), &case);
        before = after;
        sum.removed += report.removed.len();
        sum.emptied += report.emptied.len();
        sum.cleaned += report.cleaned.len();
        sum.refused += report.refused.len();
        sum.stopped += usize::from(report.stopped);
    }
    // By hash and by link count.
    assert_eq!(tree(&outside), beside, "{case}");
    fs::remove_dir_all(&root).unwrap();
    fs::remove_dir_all(&outside).unwrap();
}

fn many(from: u64, count: u64) -> Sum {
    // In memory, where that is possible: each removal is synced.
    let memory = Path::new("/dev/shm");
    let scratch = tempfile::Builder::new().prefix("refloat-trees-").tempdir_in(memory);
    let scratch = scratch.or_else(|_| tempfile::tempdir()).unwrap();
    let mut sum = Sum::default();
    for n in 0..count {
        one(from.wrapping_add(n), scratch.path(), &mut sum);
    }
    eprintln!("{count} trees: {sum:?}");
    assert!(
        sum.removed as u64 > count / 4 && sum.emptied as u64 > count / 20 && sum.cleaned as u64 > count / 20,
        "{sum:?}"
    );
    assert!(sum.refused > 0 && sum.held > 0 && sum.stopped > 0, "{sum:?}");
    sum
}

#[test]
fn in_trees_of_chance_nothing_goes_that_refloat_did_not_write() {
    many(seed(), 5_000);
}

#[test]
#[ignore = "soak: some minutes"]
fn in_a_hundred_thousand_trees_nothing_goes_that_refloat_did_not_write() {
    let seed = seed();
    std::thread::scope(|scope| {
        for half in 0..2u64 {
            scope.spawn(move || many(seed.wrapping_add(half * 50_000), 50_000));
        }
    });
}
