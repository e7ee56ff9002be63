//! Prunes of stores in memory: what goes, in which order, and what the next run makes of a run that ended anywhere.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::*;
use crate::catalog::manifest::Manifest;
use crate::catalog::names::Name;
use crate::catalog::note::{Note, NoteBody};
use crate::catalog::retention::{Policy, Situation, Space};
use crate::catalog::testing::{LINEAGE, MemStore, at, node, snapshot};
use crate::catalog::{Catalog, LineageId};
use crate::config::{RetentionSettings, Scope};
use crate::error::Code;
use crate::store::{Call, DryRun, Fault, Planned, Store, Unreliable};

const OTHER: LineageId = LineageId([0xbb; 8]);
const HOUR: i64 = 3600;

/// Keeps the last two; nothing else.
fn rules() -> RetentionSettings {
    RetentionSettings {
        keep_last: 2,
        keep_within: std::time::Duration::ZERO,
        keep_hourly: 0,
        keep_daily: 0,
        keep_weekly: 0,
        keep_monthly: 0,
        min_keep: 1,
    }
}

struct Wanted {
    now: Timestamp,
    scope: Scope,
    grace: u64,
    space: Space,
}

impl Wanted {
    fn new() -> Wanted {
        Wanted { now: at(10 * HOUR), scope: Scope::Node, grace: 3600, space: Space::default() }
    }

    fn plan(&self, store: &dyn Store) -> Plan {
        let catalog = Catalog::read(&[store]).unwrap();
        self.plan_of(&catalog)
    }

    fn plan_of(&self, catalog: &Catalog<'_>) -> Plan {
        let own = node("cp1");
        let found = find(catalog, 0, &Reach { scope: self.scope, node: &own, lineage: LINEAGE });
        let policy = Policy {
            rules: rules(),
            timezone: TimeZone::UTC,
            scope: self.scope,
            node: own,
            lineage: LINEAGE,
            max_bytes: None,
            trash_grace: std::time::Duration::from_secs(self.grace),
        };
        let situation = Situation {
            now: self.now,
            overdue_at: None,
            clock_jump: None,
            clock_trusted: false,
            freeze: None,
            space: self.space,
        };
        plan(catalog.stores()[0], found, &policy, &situation)
    }

    fn run(&self, store: &dyn Store) -> Report {
        let catalog = Catalog::read(&[store]).unwrap();
        act(&self.plan_of(&catalog), &catalog, (0, 0), self.now, &mut |_| true)
    }
}

/// Five snapshots of one hour each, the oldest with a note, beside things that are not this prune's.
fn store() -> (MemStore, Vec<Manifest>) {
    let store = MemStore::new("a");
    let own: Vec<Manifest> = (0..5).map(|n| snapshot(1, 10 + n, n * HOUR, "cp1")).collect();
    own.iter().for_each(|m| store.publish(m));
    let tag = Note::new(own[0].id.clone(), at(1), node("cp1"), NoteBody::Tag { tags: vec!["x".into()] });
    store.put_text(&tag.name(LINEAGE).to_string(), tag.to_bytes().unwrap());
    store.publish(&snapshot(1, 1, 0, "cp2"));
    store.publish(&Manifest { lineage: OTHER, ..snapshot(1, 1, 0, "cp1") });
    store.put_text("readme.txt", "foreign");
    store.put_text(&format!("{LINEAGE}/trash/readme.txt"), "foreign");
    store.put_text(&format!("{LINEAGE}/snapshots/{}.db.zst.bak", own[0].id), "foreign");
    (store, own)
}

fn names(store: &MemStore) -> BTreeSet<String> {
    store.objects.lock().unwrap().keys().cloned().collect()
}

fn trashed(store: &MemStore) -> Vec<String> {
    let ours = |n: &String| n.contains("/trash/") && !n.ends_with("readme.txt");
    names(store).into_iter().filter(ours).map(|n| n.rsplit('/').next().unwrap().to_string()).collect()
}

/// Everything that this prune must never touch.
fn untouched(store: &MemStore) -> BTreeSet<String> {
    let foreign = |n: &String| {
        n.starts_with(&OTHER.to_string()) || n.contains("-cp2.") || n.ends_with("readme.txt") || n.ends_with(".bak")
    };
    names(store).into_iter().filter(foreign).collect()
}

#[test]
fn what_goes_waits_in_the_trash_and_then_is_gone() {
    let (store, own) = store();
    let others = untouched(&store);
    let wanted = Wanted::new();
    let plan = wanted.plan(&store);
    let gone: Vec<i64> =
        plan.decisions.remove.iter().map(|r| plan.found.candidates[r.candidate].id.revision()).collect();
    assert_eq!(gone, [10, 11, 12], "oldest first");
    assert!(plan.changes() && !plan.held() && plan.removed_bytes() == (9, 0));

    let report = wanted.run(&store);
    assert_eq!((report.removed.len(), report.to_trash, report.freed), (3, 9, 0));
    assert!(report.refused.is_empty() && report.removed.iter().all(|r| r.in_trash));
    let time = crate::catalog::time::compact(wanted.now).unwrap();
    assert_eq!(
        trashed(&store)[..3],
        [
            format!("{time}-{}.db.zst", own[0].id),
            format!("{time}-{}.json", own[0].id),
            format!("{time}-{}.tag-{}.json", own[0].id, crate::catalog::time::compact(at(1)).unwrap()),
        ]
    );
    assert_eq!((trashed(&store).len(), untouched(&store)), (7, others.clone()));

    let early = Wanted { now: at(10 * HOUR + 3599), ..Wanted::new() };
    assert!(!early.plan(&store).changes());
    let late = Wanted { now: at(11 * HOUR), ..Wanted::new() };
    let report = late.run(&store);
    assert_eq!((report.emptied.len(), report.removed.len()), (3, 0));
    assert!(report.freed > 9 && trashed(&store).is_empty());
    assert_eq!(untouched(&store), others);
    for kept in &own[3..] {
        assert!(store.has(&kept.name().to_string()) && store.has(&kept.data_name().to_string()));
    }
    assert!(!late.plan(&store).changes());
}

#[test]
fn without_grace_or_trash_it_is_gone_at_once() {
    let (store, _) = store();
    let wanted = Wanted { grace: 0, ..Wanted::new() };
    let report = wanted.run(&store);
    assert_eq!((report.removed.len(), report.to_trash, report.freed), (3, 0, 9));
    assert!(trashed(&store).is_empty() && report.removed.iter().all(|r| !r.in_trash));
    assert!(!wanted.plan(&store).changes());
}

#[test]
fn a_plan_changes_nothing_and_names_the_same_as_the_act() {
    let (store, _) = store();
    let before = names(&store);
    let wanted = Wanted::new();
    let dry = DryRun::new(store);
    let catalog = Catalog::read(&[&dry as &dyn Store]).unwrap();
    act(&wanted.plan_of(&catalog), &catalog, (0, 0), wanted.now, &mut |_| true);
    let moved = dry.planned().into_iter().filter(|p| matches!(p, Planned::Rename { .. })).count();
    assert_eq!((moved, dry.planned().len()), (7, 7));
    drop(catalog);
    assert_eq!(names(&dry.into_inner()), before);
}

#[test]
fn two_looks_at_one_store_have_one_hash_and_any_change_of_what_goes_another() {
    let (store, own) = store();
    let wanted = Wanted::new();
    let hash = wanted.plan(&store).hash;
    assert_eq!(wanted.plan(&store).hash, hash);
    // Something that changes nothing about what goes.
    store.put_text("another.txt", "foreign");
    assert_eq!(wanted.plan(&store).hash, hash);
    assert_ne!(Wanted { grace: 0, ..Wanted::new() }.plan(&store).hash, hash, "at once is not by way of the trash");
    let pin = Note::new(own[1].id.clone(), at(2), node("cp1"), NoteBody::Pin { reason: None });
    store.put_text(&pin.name(LINEAGE).to_string(), pin.to_bytes().unwrap());
    assert_ne!(wanted.plan(&store).hash, hash);
}

/// Whatever call is the last of a run, the next run ends where an undisturbed one does.
#[test]
fn a_run_that_ended_anywhere_is_finished_by_the_next() {
    for grace in [3600, 0] {
        let wanted = Wanted { grace, ..Wanted::new() };
        let (whole, own) = store();
        wanted.run(&whole);
        let want = names(&whole);
        let kept =
            |s: &MemStore| own[3..].iter().all(|m| s.has(&m.name().to_string()) && s.has(&m.data_name().to_string()));
        for nth in 1..30 {
            for lost in [false, true] {
                let fault = |code| if lost { Fault::LoseAnswer(code) } else { Fault::Fail(code) };
                // From that call on nothing works any more: as after a kill, nothing else is done.
                let mut bad = Unreliable::new(store().0);
                for later in nth..60 {
                    let one = if later == nth { fault(Code::StoreVanished) } else { Fault::Fail(Code::StoreVanished) };
                    bad = bad.nth(later, Call::Rename, one.clone()).nth(later, Call::Delete, one);
                }
                wanted.run(&bad);
                let store = bad.into_inner();
                assert!(kept(&store), "{nth}");
                let listed = Catalog::read(&[&store as &dyn Store]).unwrap();
                for entry in listed.entries(LINEAGE).filter(|e| e.has_manifest()) {
                    assert!(listed.load(&entry).unreadable.is_empty(), "{nth}: half a snapshot is listed");
                }
                drop(listed);
                let report = wanted.run(&store);
                assert!(report.refused.is_empty(), "{nth}: {:?}", report.refused);
                wanted.run(&store);
                assert_eq!(names(&store), want, "grace {grace}, call {nth}, lost {lost}");
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_named_and_left() {
    let (store, own) = store();
    let wanted = Wanted::new();
    store.put_text(&own[0].name().to_string(), "{");
    store.broken.lock().unwrap().insert(own[1].name().to_string(), Code::Io);
    let plan = wanted.plan(&store);
    let named: BTreeSet<String> = plan.found.unreadable.iter().map(|u| u.name.clone()).collect();
    assert_eq!(named, BTreeSet::from([own[0].name().to_string(), own[1].name().to_string()]));
    let report = wanted.run(&store);
    let gone: Vec<i64> = report.removed.iter().map(|r| r.id.revision()).collect();
    assert_eq!(gone, [12]);
    for stays in &own[..2] {
        assert!(store.has(&stays.name().to_string()) && store.has(&stays.data_name().to_string()));
    }
}

#[test]
fn one_whose_notes_cannot_be_read_is_worth_nobody_knows_what() {
    let (store, own) = store();
    let look = Note::new(
        own[4].id.clone(),
        at(5),
        node("cp1"),
        NoteBody::Verified { ok: false, checks: vec![], findings: vec![] },
    );
    store.put_text(&look.name(LINEAGE).to_string(), "torn");
    let plan = Wanted::new().plan(&store);
    assert_eq!(plan.found.unreadable.len(), 1);
    assert!(plan.found.candidates.iter().all(|c| c.id != own[4].id));
    let kept: Vec<i64> = plan.decisions.keep.iter().map(|k| plan.found.candidates[k.candidate].id.revision()).collect();
    assert_eq!(kept, [13, 12], "it does not count as one of the last two");
}

#[test]
fn a_pin_in_another_store_counts_here() {
    let (a, own) = store();
    let b = MemStore::new("b");
    b.publish(&own[0]);
    let pin = Note::new(own[0].id.clone(), at(2), node("cp1"), NoteBody::Pin { reason: None });
    b.put_text(&pin.name(LINEAGE).to_string(), pin.to_bytes().unwrap());
    let catalog = Catalog::read(&[&a as &dyn Store, &b]).unwrap();
    let plan = Wanted::new().plan_of(&catalog);
    let gone: Vec<i64> =
        plan.decisions.remove.iter().map(|r| plan.found.candidates[r.candidate].id.revision()).collect();
    assert_eq!(gone, [11, 12]);
}

#[test]
fn leftovers_of_this_node_go_and_those_of_others_stay() {
    let (store, _) = store();
    let wanted = Wanted::new();
    wanted.run(&store);
    let (mine, theirs) = (snapshot(1, 30, 9, "cp1"), snapshot(1, 31, 9, "cp2"));
    for m in [&mine, &theirs] {
        store.put_text(&m.data_name().to_string(), "half");
        let tag = Note::new(m.id.clone(), at(1), node("cp1"), NoteBody::Tag { tags: vec![] });
        store.put_text(&tag.name(LINEAGE).to_string(), tag.to_bytes().unwrap());
    }
    let plan = wanted.plan(&store);
    assert_eq!((plan.found.leftovers.len(), plan.found.usage.unfinished), (2, 4));
    assert!(plan.found.leftovers.iter().all(|l| matches!(l, Leftover::Stray { .. })));
    // A manifest that appears after all keeps them.
    let reads = store.reads.load(Ordering::Relaxed);
    let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
    store.publish(&mine);
    let report = act(&wanted.plan_of(&catalog), &catalog, (0, 0), wanted.now, &mut |_| true);
    assert_eq!((report.cleaned.len(), report.refused.len()), (0, 2));
    assert!(store.reads.load(Ordering::Relaxed) > reads);
    store.delete(&mine.name().to_string()).unwrap();
    store.put_text(&mine.data_name().to_string(), "half");
    drop(catalog);
    let report = wanted.run(&store);
    assert_eq!((report.cleaned.len(), report.freed), (2, 4));
    assert!(!store.has(&mine.data_name().to_string()) && store.has(&theirs.data_name().to_string()));
}

#[test]
fn a_stop_ends_between_two_steps() {
    let (store, _) = store();
    let wanted = Wanted::new();
    let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
    let report = act(&wanted.plan_of(&catalog), &catalog, (0, 0), wanted.now, &mut |r| r.removed.len() < 2);
    assert!(report.stopped && report.removed.len() == 2);
    assert_eq!(wanted.run(&store).removed.len(), 1);
}

#[test]
fn a_whole_removal_is_named_by_its_parts_in_the_trash() {
    let m = snapshot(1, 10, 0, "cp1");
    for name in [m.name(), m.data_name()] {
        let Some(Name::Trash(lineage, when, was)) = name.clone().in_trash(at(7)) else { panic!("{name}") };
        assert_eq!((lineage, when, was.before(LINEAGE)), (LINEAGE, at(7), name));
    }
    assert_eq!(Name::Marker.in_trash(at(7)), None);
}

#[test]
fn where_no_name_can_be_made_parts_go_at_once_and_the_next_run_finishes() {
    // The manifest, its tag and its data of the first; then those of the others.
    for names_left in 0..8 {
        let (store, own) = store();
        let (others, wanted) = (untouched(&store), Wanted::new());
        *store.names_left.lock().unwrap() = Some(names_left);
        let report = wanted.run(&store);
        assert_eq!((report.removed.len(), report.refused.len()), (3, 0), "{names_left}: {report:?}");
        assert_eq!(report.to_trash + report.freed, 9, "{names_left}");
        for gone in &own[..3] {
            assert!(
                !names(&store).iter().any(|n| n.contains(&format!("snapshots/{}", gone.id)) && !n.ends_with(".bak"))
            );
        }
        // No manifest waits without its data.
        let trashed = trashed(&store);
        for manifest in trashed.iter().filter_map(|n| n.strip_suffix("-cp1.json")) {
            assert!(trashed.contains(&format!("{manifest}-cp1.db.zst")), "{names_left}: {trashed:?}");
        }
        assert!(!wanted.plan(&store).changes(), "{names_left}");
        assert_eq!(untouched(&store), others);
    }
}

#[test]
fn the_half_of_a_removal_goes_on_also_where_no_name_can_be_made_and_with_the_rest_of_it() {
    for (grace, full) in [(3600, true), (0, false), (0, true)] {
        let (store, own) = store();
        let (name, data) = (own[0].name().to_string(), own[0].data_name());
        let to = own[0].name().in_trash(at(9 * HOUR)).unwrap().to_string();
        store.rename(&name, &to).unwrap();
        if full {
            *store.names_left.lock().unwrap() = Some(0);
        }
        let wanted = Wanted { grace, ..Wanted::new() };
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let report = act(&wanted.plan_of(&catalog), &catalog, (0, 0), wanted.now, &mut |_| true);
        assert!(report.refused.is_empty() && report.cleaned.contains(&data.to_string()), "{report:?}");
        assert!(!store.has(&data.to_string()), "{grace} {full}");
        *store.names_left.lock().unwrap() = None;
        wanted.run(&store);
        assert!(
            !names(&store).iter().any(|n| n.contains(&own[0].id.to_string()) && !n.ends_with(".bak")),
            "{grace} {full}"
        );
        assert!(!wanted.plan(&store).changes(), "{grace} {full}");
    }
}

#[test]
fn between_two_turns_anything_that_came_of_writers_is_seen() {
    for grace in [3600, 0] {
        let (store, own) = store();
        store.put_text(&snapshot(1, 40, 1, "cp1").data_name().to_string(), "half");
        let wanted = Wanted { grace, ..Wanted::new() };
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let plan = wanted.plan_of(&catalog);
        let (mut from, mut gone, mut turns, mut removed) = (0, 0u64, 0, 0);
        loop {
            let mut steps = 0;
            let report = act(&plan, &catalog, (0, from), wanted.now, &mut |_| {
                steps += 1;
                steps < 2
            });
            (from, gone, turns) = (from + report.steps, gone.wrapping_add(report.gone), turns + 1);
            removed += report.removed.len();
            assert!(catalog.is_still_so(gone).unwrap(), "nothing but what this run did, turn {turns}");
            let pin = Note::new(own[4].id.clone(), at(turns), node("cp1"), NoteBody::Pin { reason: None });
            let pin = pin.name(LINEAGE).to_string();
            for name in [&pin, "readme2.txt"] {
                store.put_text(name, "x");
                assert!(!catalog.is_still_so(gone).unwrap(), "{name}");
                store.delete(name).unwrap();
            }
            store.delete(&own[4].name().to_string()).unwrap();
            assert!(!catalog.is_still_so(gone).unwrap(), "a removal by somebody else");
            store.publish(&own[4]);
            if !report.stopped {
                break;
            }
        }
        assert_eq!((turns, removed), (4, 3), "a leftover and three snapshots, one a turn");
    }
}
