//! `refloat fence`: what balancers hear about this node, and a person's word in it.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::context::{Context, Ending, aside};
use super::output::{Document, SCHEMA, fields};
use crate::config::{FenceMode, Settings, format_duration, parse_duration};
use crate::error::{Code, Error, Result};
use crate::fs::{BootTime, Dir};
use crate::health::fence::file::{self, Answer, Word};
use crate::health::fence::hand::{self, Hand};
use crate::health::fence::told::{Files, moment, told};
use crate::host::user;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// What balancers hear now, and why
    #[command(after_help = "Example:\n  refloat fence status")]
    Status,
    /// Keep this node in service, or take it out, by hand: it wins over every decision, also while health is dead
    #[command(after_help = "\
Examples:
  refloat fence hold --for 30m                              never fence this node for half an hour
  refloat fence hold --down --for 2h --reason maintenance  take it out of service for maintenance

Without --for it holds until `refloat fence release`, or until this host boots. It takes no connection away by itself: a
balancer does, see docs/fencing.md. Nobody checks whether another node is left: look at `refloat health` first.")]
    Hold(HoldArgs),
    /// Put this node back into service at once, whatever took it out, and end a hold
    #[command(after_help = "\
Examples:
  refloat fence release            up now; health may decide again in ten minutes
  refloat fence release --for 0s   end a hold; health decides at once")]
    Release(ReleaseArgs),
}

#[derive(Debug, Args)]
pub struct HoldArgs {
    /// For so long, such as 30m
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub span: Option<Duration>,
    /// Out of service instead of in it
    #[arg(long)]
    pub down: bool,
    /// Shown to whoever asks, and to balancers
    #[arg(long, value_name = "TEXT", default_value = "held by an administrator")]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// No fence for so long
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, default_value = "10m")]
    pub span: Duration,
}

fn duration(text: &str) -> std::result::Result<Duration, String> {
    parse_duration(text).map_err(|e| e.to_string())
}

pub async fn run(command: Command, context: &Context) -> Result<Ending> {
    let settings = context.settings()?.clone();
    let document = aside(move || {
        match command {
            Command::Status => {}
            Command::Hold(args) => hold(&args, &settings)?,
            Command::Release(args) => release(&args, &settings)?,
        }
        Ok(FenceDocument::of(&settings, BootTime::now().as_ref()))
    });
    context.output.document(&document.await?)?;
    Ok(Ending::Good)
}

fn hold(args: &HoldArgs, settings: &Settings) -> Result<()> {
    const WHAT: &str = "hold this node";
    if settings.fence.mode == FenceMode::Off {
        return Err(Error::new(Code::Config, WHAT, "")
            .because("[fence] mode is off, so balancers hear up whatever is held")
            .remedy("set it to advise or balancer, then: systemctl reload refloat-answer"));
    }
    if args.span == Some(Duration::ZERO) {
        return Err(Error::new(Code::Usage, WHAT, "").because("that time is over at once"));
    }
    let answer = if args.down { Word::Down } else { Word::Up };
    say(WHAT, settings, answer, args.span, &args.reason)
}

fn release(args: &ReleaseArgs, settings: &Settings) -> Result<()> {
    const WHAT: &str = "release this node";
    match args.span {
        Duration::ZERO => Hand::remove(&opened(WHAT, settings)?),
        span => say(WHAT, settings, Word::Up, Some(span), "released"),
    }
}

fn say(what: &str, settings: &Settings, answer: Word, span: Option<Duration>, reason: &str) -> Result<()> {
    let runtime = opened(what, settings)?;
    let boot = BootTime::now().ok_or_else(|| {
        Error::new(Code::Internal, what, "").because("nobody tells which boot this is: is /proc mounted?")
    })?;
    let at = moment(&boot);
    let uid = nix::unistd::getuid().as_raw();
    let until = span.map(|span| at.plus(span));
    Hand { boot_id: boot.boot_id, at, until, answer, reason: reason.into(), uid }.write(&runtime)
}

/// The runtime directory, for those who may: root, and whose it is.
fn opened(what: &str, settings: &Settings) -> Result<Dir> {
    let path = &settings.paths.runtime;
    let dir = Dir::open(path).map_err(|e| match e.code() {
        Code::NotFound => e.remedy("it is made when a service of refloat starts: systemctl start refloat-answer"),
        _ => e,
    })?;
    let owner = std::fs::metadata(path).map_err(|e| Error::io("look at directory", path.display().to_string(), e))?;
    if !user::is_root() && nix::unistd::geteuid().as_raw() != owner.uid() {
        return Err(Error::new(Code::Permission, what, "")
            .because("only root may say what balancers hear")
            .remedy("do it as root"));
    }
    Ok(dir)
}

#[derive(Debug, Serialize)]
struct FenceDocument {
    schema: u32,
    node: String,
    /// `off`, `advise`, `balancer`.
    mode: &'static str,
    /// What balancers hear.
    #[serde(flatten)]
    told: Answer,
    /// `null`: nothing is said by hand.
    hand: Option<HandDocument>,
    /// What the health process says, whether it counts or not.
    decided: Answer,
    agent_check: String,
    http: String,
}

#[derive(Debug, Serialize)]
struct HandDocument {
    answer: Word,
    reason: String,
    uid: u32,
    /// Seconds; `null`: until it is released.
    left: Option<u64>,
}

impl FenceDocument {
    fn of(settings: &Settings, boot: Option<&BootTime>) -> FenceDocument {
        let fence = &settings.fence;
        let files = Files::read(&settings.paths.runtime);
        let (boot_id, now) = boot.map(|boot| (boot.boot_id.as_str(), moment(boot))).unwrap_or_default();
        let hand = hand::in_force(files.hand.as_deref(), boot_id, now).map(|hand| HandDocument {
            left: hand.left(now).map(|left| left.as_secs()),
            answer: hand.answer,
            reason: hand.reason,
            uid: hand.uid,
        });
        FenceDocument {
            schema: SCHEMA,
            node: settings.node.clone(),
            mode: fence.mode.word(),
            told: told(fence.mode, &files, boot),
            hand,
            decided: file::answer(files.fence.as_deref(), boot_id, now),
            agent_check: fence.agent_check.to_string(),
            http: fence.http.to_string(),
        }
    }
}

impl Document for FenceDocument {
    fn table(&self) -> String {
        let said = |answer: &Answer| format!("{}: {}", answer.answer.text(), answer.reason);
        let hand = self.hand.as_ref().map_or("nothing".into(), |hand| {
            let left = hand.left.map_or("until it is released".into(), |left| {
                format!("for {}", format_duration(Duration::from_secs(left)))
            });
            format!("{} {left}, by uid {}: {}", hand.answer.text(), hand.uid, hand.reason)
        });
        fields(&[
            ("node", self.node.clone()),
            ("balancers hear", said(&self.told)),
            ("mode", self.mode.into()),
            ("by hand", hand),
            ("decided", said(&self.decided)),
            ("agent-check", self.agent_check.clone()),
            ("http", format!("http://{}/ready", self.http)),
        ])
    }
}
