//! What the journal says of an event: one entry each, with a fixed MESSAGE_ID, so that `journalctl -x` shows the page of
//! the catalogue (systemd/refloat.catalog) on what it means and what to do. A test holds the two against each other.

use super::event::{End, Event, Outcome, Skip, Survey, Verdict};
use super::job::JobId;
use super::record::Record;
use crate::config::rounded_size;

macro_rules! kinds {
    ($($name:ident = $word:literal, $id:literal;)*) => {
        $(const $name: Kind = Kind { word: $word, id: $id };)*

        /// All there are.
        pub const KINDS: &[Kind] = &[$($name,)*];
    };
}

/// A kind of entry. The id is never changed once released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub word: &'static str,
    pub id: u128,
}

kinds! {
    DAEMON_STARTED = "daemon-started", 0x15587007572ad83fb2551732eb2b1e19;
    DAEMON_STOPPED = "daemon-stopped", 0x8cec0fcbe42063522ea6d2dba8805e1e;
    CONFIG_LOADED = "config-loaded", 0xb6760b67b8fc3a09553a904ecab444d3;
    CONFIG_REFUSED = "config-refused", 0x2f8f00d43af1d90083c1c31f9e613129;
    JOB_QUEUED = "job-queued", 0x62f3bdff30e2bfc5856876ea09ad465f;
    JOB_JOINED = "job-joined", 0x04b2080af993a96602d245a2d5a88818;
    JOB_BEGAN = "job-began", 0xdffff160b32e2b9bfe539a7b6f116305;
    JOB_STEP = "job-step", 0x97b22ce78063e837ffe39b71a756defe;
    JOB_WARNED = "job-warned", 0xad68121c92376605d58484c8d55f33ab;
    JOB_CANCEL_ASKED = "job-cancel-asked", 0x08bee605397339b138f6cf53cb829f04;
    JOB_SUCCEEDED = "job-succeeded", 0x5516d3734f35c4020e17737c4a0801d2;
    JOB_FAILED = "job-failed", 0xae34b7074fbbaa5b2b1a07b267a14b02;
    JOB_CANCELED = "job-canceled", 0x412c648cf6a53f9965c5ea1e5f123de6;
    JOB_INTERRUPTED = "job-interrupted", 0x395b7e50a1f466995bfc2cee5bc8eb20;
    JOB_REQUEUED = "job-requeued", 0x0b477e37ca57c5b450844afb48899a1b;
    SLOT_SKIPPED = "slot-skipped", 0x89aa554c3566264710d37155f4bba707;
    SLOTS_MISSED = "slots-missed", 0x7ac502020e694d00a6aeb7f4efd3ddfc;
    SCHEDULE_BEGAN = "schedule-began", 0x9910c52c61bbfccd68bf6680506dc040;
    SCHEDULE_FOLLOWED = "schedule-followed", 0x0cec9fc64d5ddbf7f95549ce2f597dd9;
    SCHEDULE_PAUSED = "schedule-paused", 0x79dd5343aec4dbb1bc65e63fbace31f2;
    SCHEDULE_RESUMED = "schedule-resumed", 0x0a3e0f1876b956749c241b50507f961e;
    STORE_UNREADABLE = "store-unreadable", 0x714f39972d92232a9a16b7e0a517bdf2;
    CLOCK_STEPPED = "clock-stepped", 0x42f7c1c6291550422403996753cbfb96;
    CLOCK_TRUSTED = "clock-trusted", 0xa0f04068091ba33e48fb240b397cd512;
    TROUBLE = "trouble", 0x91f715d3cd11aff88e2cf421dcb26db3;
    TROUBLE_OVER = "trouble-over", 0xf5e89533fe06fa7bb73468a2ccde7d62;
}

/// Of syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Priority {
    /// A person must look.
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub kind: Kind,
    pub priority: Priority,
    pub text: String,
    /// Besides REFLOAT_EVENT.
    pub fields: Vec<(&'static str, String)>,
}

impl Message {
    fn new(kind: Kind, priority: Priority, text: impl Into<String>) -> Message {
        Message { kind, priority, text: text.into(), fields: Vec::new() }
    }

    fn with(mut self, field: &'static str, value: impl Into<String>) -> Message {
        self.fields.push((field, value.into()));
        self
    }

    fn of(self, job: JobId, record: &Record) -> Message {
        let kind = record.jobs.get(&job).map(|known| known.job.task.kind()).unwrap_or_default();
        self.with("REFLOAT_JOB", job.to_string()).with("REFLOAT_JOB_KIND", kind)
    }
}

/// The entries for an event that was just applied to `record`.
pub fn messages(event: &Event, record: &Record) -> Vec<Message> {
    use Priority::*;
    let task = |job: &JobId| record.jobs.get(job).map(|known| known.job.task.to_string()).unwrap_or_default();
    let one = match event {
        Event::Checkpoint { .. } => return Vec::new(),
        Event::Started { version, .. } => Message::new(DAEMON_STARTED, Notice, format!("refloat {version} runs")),
        Event::Stopped => Message::new(DAEMON_STOPPED, Notice, "refloat has stopped, nothing is left running"),
        Event::Configured { files, .. } => {
            let from = if files.is_empty() { "no file: defaults".into() } else { files.join(", ") };
            Message::new(CONFIG_LOADED, Info, format!("the configuration is in force ({from})"))
        }
        Event::ConfigRefused { failure } => {
            let text = format!("the new configuration is refused, the old one stays in force: {}", failure.line());
            Message::new(CONFIG_REFUSED, Error, text).with("REFLOAT_ERROR_CODE", &failure.code)
        }
        Event::Queued { job } => {
            Message::new(JOB_QUEUED, Info, format!("job {} queued: {}, {}", job.id, job.task, job.origin))
                .of(job.id, record)
        }
        Event::Coalesced { into, origin, .. } => {
            Message::new(JOB_JOINED, Info, format!("joined to job {into} ({}): {origin}", task(into))).of(*into, record)
        }
        Event::Began { job, deadline_at } => {
            let text = format!("job {job} begins: {}, until {deadline_at:.0} at the latest", task(job));
            Message::new(JOB_BEGAN, Info, text).of(*job, record)
        }
        Event::Step { job, step } => Message::new(JOB_STEP, Info, format!("job {job}: {step}")).of(*job, record),
        Event::Warned { job, text } => Message::new(JOB_WARNED, Warning, format!("job {job}: {text}")).of(*job, record),
        Event::CancelAsked { job, uid } => {
            Message::new(JOB_CANCEL_ASKED, Notice, format!("job {job} ({}) is to stop, says uid {uid}", task(job)))
                .of(*job, record)
        }
        Event::Ended { job, end } => ended(*job, end, &task(job)).of(*job, record),
        Event::Requeued { job, why } => {
            Message::new(JOB_REQUEUED, Notice, format!("job {job} ({}) is queued again: {why}", task(job)))
                .of(*job, record)
        }
        Event::Slot { schedule, slot, verdict, missed } => {
            return slot_messages(schedule, *slot, verdict, missed.as_ref(), record);
        }
        Event::Paused { schedule, until, uid } => {
            let until = until.map_or_else(|| "until it is resumed".into(), |until| format!("until {until:.0}"));
            Message::new(SCHEDULE_PAUSED, Notice, format!("schedule {schedule} is paused {until}, by uid {uid}"))
        }
        Event::Resumed { schedule, uid } => {
            Message::new(SCHEDULE_RESUMED, Notice, format!("schedule {schedule} goes on, by uid {uid}"))
        }
        Event::Surveyed { store, seen: Survey::Failed { failure } } => {
            Message::new(STORE_UNREADABLE, Warning, format!("store {store} cannot be read: {}", failure.line()))
                .with("REFLOAT_STORE", store)
                .with("REFLOAT_ERROR_CODE", &failure.code)
        }
        Event::Surveyed { .. } => return Vec::new(),
        Event::ClockStepped { seconds } => {
            let text = format!("the wall clock stepped by {seconds} s: nothing is removed on schedule for a day");
            Message::new(CLOCK_STEPPED, Warning, text)
        }
        Event::ClockTrusted { why } => {
            Message::new(CLOCK_TRUSTED, Notice, format!("the wall clock counts again: {why}"))
        }
        Event::Troubled { about, failure } => Message::new(TROUBLE, Warning, format!("{about}: {}", failure.line()))
            .with("REFLOAT_ERROR_CODE", &failure.code),
        Event::Cleared { about } => Message::new(TROUBLE_OVER, Notice, format!("{about}: well again")),
    };
    vec![one]
}

fn ended(job: JobId, end: &End, task: &str) -> Message {
    use Priority::*;
    match end {
        End::Succeeded { result } => {
            let message = Message::new(JOB_SUCCEEDED, Notice, format!("job {job} succeeded: {}", outcome(result)));
            match result {
                Outcome::Snapshot(made) => message
                    .with("REFLOAT_SNAPSHOT", made.manifest.id.to_string())
                    .with("REFLOAT_REVISION", made.manifest.revision.to_string()),
                Outcome::Found { snapshot } => message.with("REFLOAT_SNAPSHOT", snapshot),
                Outcome::Verify { .. } | Outcome::Prune { .. } | Outcome::Defrag(_) => message,
            }
        }
        End::Failed { failure, .. } => {
            let remedy = failure.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
            Message::new(JOB_FAILED, Error, format!("job {job} ({task}) failed: {}{remedy}", failure.line()))
                .with("REFLOAT_ERROR_CODE", &failure.code)
        }
        End::Canceled { note } => Message::new(JOB_CANCELED, Notice, format!("job {job} ({task}) canceled: {note}")),
        End::Interrupted { why } => {
            Message::new(JOB_INTERRUPTED, Warning, format!("job {job} ({task}) interrupted: {why}"))
        }
    }
}

/// What came of a job, in a few words.
pub fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Snapshot(made) => {
            let stores: Vec<&str> =
                made.stores.iter().filter(|s| s.failure.is_none()).map(|s| s.name.as_str()).collect();
            let (m, size) = (&made.manifest, rounded_size(made.manifest.size.stored));
            format!("snapshot {} at revision {}, {size}, in {}", m.id, m.revision, stores.join(", "))
        }
        Outcome::Found { snapshot } => format!("snapshot {snapshot} was published before the daemon ended"),
        Outcome::Verify { checked, damaged, failed } => {
            format!("{checked} checked, {} damaged, {} not readable", damaged.len(), failed.len())
        }
        Outcome::Prune { removed, to_trash, freed, kept, .. } => format!(
            "{removed} removed ({} to the trash, {} freed), {kept} kept",
            rounded_size(*to_trash),
            rounded_size(*freed)
        ),
        Outcome::Defrag(made) => format!(
            "member {} went from {} to {} in {:.1} s",
            made.member,
            rounded_size(made.before),
            rounded_size(made.after),
            made.took
        ),
    }
}

fn slot_messages(
    schedule: &str,
    slot: jiff::Timestamp,
    verdict: &Verdict,
    missed: Option<&super::event::Missed>,
    record: &Record,
) -> Vec<Message> {
    use Priority::*;
    let mut all = Vec::new();
    if let Some(missed) = missed {
        let text = format!(
            "schedule {schedule}: {} slots were missed, from {:.0} to {:.0}",
            missed.slots, missed.first, missed.last
        );
        all.push(Message::new(SLOTS_MISSED, Warning, text));
    }
    let decided = match verdict {
        Verdict::Run { job } => {
            let text = format!("job {} queued: {}, {}", job.id, job.task, job.origin);
            Message::new(JOB_QUEUED, Info, text).of(job.id, record)
        }
        Verdict::Skipped { why } => {
            let why = match why {
                Skip::Busy { job } => format!("job {job} takes one already"),
                Skip::Paused => "it is paused".into(),
                Skip::Window => "it is outside of its window".into(),
            };
            Message::new(SLOT_SKIPPED, Notice, format!("schedule {schedule}: slot {slot:.0} is skipped, {why}"))
        }
        Verdict::Begin => Message::new(SCHEDULE_BEGAN, Info, format!("schedule {schedule} counts from {slot:.0}")),
        Verdict::Follow => {
            let text = format!("schedule {schedule}: the wall clock stepped back, the cursor follows it to {slot:.0}");
            Message::new(SCHEDULE_FOLLOWED, Warning, text)
        }
    };
    all.push(decided.with("REFLOAT_SCHEDULE", schedule));
    all
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// MESSAGE_IDs of the catalogue with their pages.
    fn catalogue() -> BTreeMap<String, String> {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/refloat.catalog")).unwrap();
        let pages = text.split("\n-- ").skip(1).filter_map(|page| page.split_once('\n'));
        pages.map(|(id, page)| (id.trim().to_string(), page.to_string())).collect()
    }

    #[test]
    fn every_kind_has_a_page_and_every_page_a_kind() {
        let pages = catalogue();
        let ids: BTreeSet<String> = KINDS.iter().map(|kind| format!("{:032x}", kind.id)).collect();
        let words: BTreeSet<&str> = KINDS.iter().map(|kind| kind.word).collect();
        assert_eq!((ids.len(), words.len()), (KINDS.len(), KINDS.len()), "two kinds are alike");
        assert_eq!(pages.keys().cloned().collect::<BTreeSet<_>>(), ids);
        for kind in KINDS {
            let page = &pages[&format!("{:032x}", kind.id)];
            let (head, text) = page.split_once("\n\n").expect(kind.word);
            for field in ["Subject: ", "Defined-By: refloat", "Documentation: man:refloat(8)"] {
                assert!(head.contains(field), "{}: no {field}", kind.word);
            }
            assert!(text.trim().len() > 20, "{}: {text:?}", kind.word);
        }
    }

    #[test]
    fn an_entry_says_what_happened_and_has_the_fields_to_find_it_by() {
        let mut record = Record::default();
        let task = super::super::job::Task::Prune { store: "a".into() };
        let job = super::super::job::Job {
            id: JobId(7),
            task,
            origin: super::super::job::Origin::After { job: JobId(6) },
            created_at: jiff::Timestamp::UNIX_EPOCH,
        };
        let failure = super::super::failure::Failure {
            code: "held".into(),
            what: "prune store".into(),
            on: "a".into(),
            why: vec!["a freeze stands".into()],
            remedy: Some("wait".into()),
        };
        for (event, priority, text) in [
            (Event::Queued { job }, Priority::Info, "job 7 queued: prune store a, after job 6"),
            (
                Event::Ended { job: JobId(7), end: End::Failed { failure, result: None } },
                Priority::Error,
                "job 7 (prune store a) failed: prune store a: a freeze stands; wait",
            ),
        ] {
            record.apply(&event, jiff::Timestamp::UNIX_EPOCH);
            let said = messages(&event, &record);
            assert_eq!((said.len(), said[0].priority, said[0].text.as_str()), (1, priority, text));
            assert!(said[0].fields.contains(&("REFLOAT_JOB", "7".into())));
            assert!(said[0].fields.contains(&("REFLOAT_JOB_KIND", "prune".into())));
        }
    }
}
