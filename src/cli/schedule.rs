//! `refloat schedule`.

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::context::{Context, Ending};
use super::output::{Document, SCHEMA, fields, table};
use super::remote;
use crate::config::parse_duration;
use crate::engine::core::{SNAPSHOT, known_schedule, timetable};
use crate::engine::record::Cursor;
use crate::error::{Code, Error, Result};
use crate::http::api::{Done, Pause};
use crate::status::Schedule;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Each schedule with its last decisions and its next run
    #[command(after_help = "Example:\n  refloat schedule list")]
    List,
    /// The next slots, and what will happen at each
    #[command(after_help = "\
Examples:
  refloat schedule explain
  refloat schedule explain snapshot -n 50")]
    Explain(ExplainArgs),
    /// Decide no slot with a run, until it is resumed or the time is over
    #[command(after_help = "\
Examples:
  refloat schedule pause --for 3h
  refloat schedule pause snapshot --until 2026-12-24T08:00:00Z")]
    Pause(PauseArgs),
    /// Go on after a pause: the next slot runs
    #[command(after_help = "Example:\n  refloat schedule resume")]
    Resume(NameArgs),
}

#[derive(Debug, Args)]
pub struct NameArgs {
    /// Which one
    #[arg(value_name = "NAME", default_value = SNAPSHOT)]
    pub name: String,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// How many slots
    #[arg(short, long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub number: u16,
}

#[derive(Debug, Args)]
pub struct PauseArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// For so long
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, conflicts_with = "until")]
    pub span: Option<SignedDuration>,
    /// Until this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<Timestamp>,
}

fn duration(text: &str) -> std::result::Result<SignedDuration, String> {
    let parsed = parse_duration(text).map_err(|e| e.to_string())?;
    SignedDuration::try_from(parsed).map_err(|e| e.to_string())
}

pub async fn run(command: Command, context: &Context) -> Result<Ending> {
    match command {
        Command::List => {
            let (status, runs) = remote::status(context).await?;
            if !runs {
                context.progress.warn("the daemon does not run: nothing is scheduled until it does");
            }
            context.output.document(&ListDocument { schema: SCHEMA, schedules: status.schedules })?;
        }
        Command::Explain(args) => explain(&args, context).await?,
        Command::Pause(args) => {
            let now = Timestamp::now();
            let until = match args.span {
                Some(span) => Some(now.checked_add(span).map_err(|e| refused(&args.name.name).because(e))?),
                None => args.until,
            };
            if until.is_some_and(|until| until <= now) {
                return Err(refused(&args.name.name).because("that time is over"));
            }
            let client = remote::needed(context, "pause schedule").await?;
            client.post::<Done>(&format!("/v1/schedules/{}/pause", args.name.name), &Pause { until }).await?;
            print(&args.name.name, context).await?;
        }
        Command::Resume(args) => {
            let client = remote::needed(context, "resume schedule").await?;
            client.post::<Done>(&format!("/v1/schedules/{}/resume", args.name), &()).await?;
            print(&args.name, context).await?;
        }
    }
    Ok(Ending::Good)
}

fn refused(name: &str) -> Error {
    Error::new(Code::Usage, "pause schedule", name)
}

async fn print(name: &str, context: &Context) -> Result<()> {
    let (status, _) = remote::status(context).await?;
    let schedules = status.schedules.into_iter().filter(|s| s.name == name).collect();
    context.output.document(&ListDocument { schema: SCHEMA, schedules })
}

async fn explain(args: &ExplainArgs, context: &Context) -> Result<()> {
    let name = &args.name.name;
    known_schedule(name)?;
    let (status, _) = remote::status(context).await?;
    let Some(schedule) = status.schedules.into_iter().find(|s| s.name == *name) else {
        return Err(Error::new(Code::NotFound, "find schedule", name).because("the daemon does not have it"));
    };
    let settings = context.settings()?;
    let now = Timestamp::now();
    let timetable = timetable(settings, now);
    let cursor = Cursor::at(schedule.cursor);
    let slots = timetable.next(Some(&cursor), now, usize::from(args.number)).into_iter().map(|(slot, at)| {
        let paused = schedule.paused && schedule.paused_until.is_none_or(|until| at < until);
        let outside = settings.snapshot.window.is_some_and(|w| !w.holds(at, &settings.snapshot.timezone));
        let act = match (paused, outside) {
            (true, _) => "skip: paused",
            (false, true) => "skip: outside of the window",
            (false, false) => "run",
        };
        Slot { slot, at, act: act.into() }
    });
    let document = ExplainDocument { schema: SCHEMA, slots: slots.collect(), schedule };
    context.output.document(&document)
}

#[derive(Debug, Serialize)]
struct ListDocument {
    schema: u32,
    schedules: Vec<Schedule>,
}

#[derive(Debug, Serialize)]
struct ExplainDocument {
    schema: u32,
    schedule: Schedule,
    slots: Vec<Slot>,
}

#[derive(Debug, Serialize)]
struct Slot {
    slot: Timestamp,
    /// With the node's shift.
    at: Timestamp,
    act: String,
}

fn head(schedule: &Schedule) -> String {
    let time = |at: Option<Timestamp>| at.map(|at| format!("{at:.0}")).unwrap_or_default();
    fields(&[
        ("schedule", schedule.name.clone()),
        ("slots", format!("{} ({})", schedule.expression, schedule.timezone)),
        ("window", schedule.window.clone().unwrap_or_default()),
        ("shift", format!("{} s after each slot, by this node's name or [snapshot] shift", schedule.shift)),
        ("cursor", time(schedule.cursor)),
        (
            "paused",
            match (schedule.paused, schedule.paused_until) {
                (true, Some(until)) => format!("until {until:.0}"),
                (true, None) => "until `refloat schedule resume`".into(),
                (false, _) => String::new(),
            },
        ),
        ("next run", time(schedule.next_run)),
        ("follows", "a prune of each store that has the new snapshot".into()),
    ])
}

impl Document for ListDocument {
    fn table(&self) -> String {
        let mut text = String::new();
        for schedule in &self.schedules {
            text.push_str(&head(schedule));
            let rows = schedule.last.iter().map(|d| {
                let missed =
                    if d.missed > 0 { format!("{} slots before it were missed", d.missed) } else { String::new() };
                let said = [d.reason.clone().unwrap_or_default(), missed];
                let said: Vec<String> = said.into_iter().filter(|s| !s.is_empty()).collect();
                vec![
                    format!("{:.0}", d.slot),
                    d.verdict.clone(),
                    d.job.clone().unwrap_or_default(),
                    format!("{:.0}", d.at),
                    said.join("; "),
                ]
            });
            text.push_str(&table(&["SLOT", "DECISION", "JOB", "DECIDED", "WHY"], &[], rows));
        }
        text
    }

    fn lines(&self) -> serde_json::Result<Vec<String>> {
        self.schedules.iter().map(serde_json::to_string).collect()
    }
}

impl Document for ExplainDocument {
    fn table(&self) -> String {
        let rows = self.slots.iter().map(|s| vec![format!("{:.0}", s.slot), format!("{:.0}", s.at), s.act.clone()]);
        head(&self.schedule) + &table(&["SLOT", "AT", "WHAT"], &[], rows)
    }

    fn lines(&self) -> serde_json::Result<Vec<String>> {
        self.slots.iter().map(serde_json::to_string).collect()
    }
}
