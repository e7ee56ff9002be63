//! What is decided about this node's path, on its way to whoever answers balancers: a file in the runtime directory each
//! second, and beside it what the next process of this boot goes on from, so that a restart does not flap.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::{self, FenceMode, FenceSettings};
use crate::error::Result;
use crate::fs::{BootTime, Dir};
use crate::health::fence::decide::{FenceRules, FenceState, FenceTarget, Hand, Mode};
use crate::health::fence::file::{FenceFile, MAX_AGE, Word};
use crate::health::fence::hand;
use crate::health::model::Mono;

/// In the runtime directory.
const STATE: &str = "fence.state";
const LIMIT: u64 = 64 << 10;
const SCHEMA: u32 = 1;

/// The runtime directory, opened once.
#[derive(Debug)]
pub struct Desk {
    runtime: Dir,
    boot_id: String,
    /// It is told once that nothing can be written.
    complained: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    schema: u32,
    boot_id: String,
    at: Mono,
    state: FenceState,
}

impl Desk {
    pub fn open(runtime: &Path) -> Result<Desk> {
        // Without it whoever reads the file takes it for another boot's: *up*.
        let boot_id = BootTime::now().map(|boot| boot.boot_id).unwrap_or_default();
        Ok(Desk { runtime: Dir::open(runtime)?, boot_id, complained: false })
    }

    /// What the process before this one had decided, if that is not long ago.
    pub fn before(&self, now: Mono) -> FenceState {
        let bytes = self.runtime.read(STATE, LIMIT).unwrap_or_default();
        match serde_json::from_slice::<Document>(&bytes) {
            Ok(Document { schema: SCHEMA, boot_id, at, state })
                if boot_id == self.boot_id && now.since(at) <= MAX_AGE && at <= now =>
            {
                state
            }
            _ => FenceState::default(),
        }
    }

    /// The configured rules, and what a person said.
    pub fn rules(&self, settings: &FenceSettings, now: Mono) -> FenceRules {
        let bytes = hand::read(&self.runtime);
        let said = hand::in_force(bytes.as_deref(), &self.boot_id, now).map(|hand| match hand.answer {
            Word::Down => Hand::Hold { reason: hand.reason, until: hand.until },
            Word::Up => Hand::Release { until: hand.until },
        });
        FenceRules { hand: said, ..rules(settings) }
    }

    /// Writes both files. What the rules decided is written in every mode: whoever answers knows the mode.
    pub fn tell(&mut self, state: &FenceState, now: Mono) {
        let word = |state: &FenceState| match &state.fenced {
            Some(fenced) => (Word::Down, format!("{} {}: {}", fenced.target, fenced.cause, fenced.reason)),
            None => (Word::Up, state.why.last().cloned().unwrap_or_else(|| "nothing is wrong with this node".into())),
        };
        let (answer, reason) = word(state);
        let boot_id = self.boot_id.clone();
        let told = FenceFile { boot_id: boot_id.clone(), at: now, answer, reason }.write(&self.runtime);
        let document = Document { schema: SCHEMA, boot_id, at: now, state: state.clone() };
        let kept = serde_json::to_vec(&document).map(|bytes| self.runtime.replace_public(STATE, &bytes));
        match told.err().or(kept.ok().and_then(Result::err)) {
            Some(error) if !self.complained => {
                tracing::error!("balancers hear *up*, whatever is seen: {}", error.line());
                self.complained = true;
            }
            Some(_) => {}
            None => self.complained = false,
        }
    }
}

/// The configured part.
pub fn rules(settings: &FenceSettings) -> FenceRules {
    let mode = match settings.mode {
        FenceMode::Off => Mode::Off,
        FenceMode::Advise => Mode::Advise,
        FenceMode::Balancer => Mode::Balancer,
    };
    let target = match settings.target {
        config::FenceTarget::Auto => FenceTarget::Auto,
        config::FenceTarget::Apiserver => FenceTarget::Apiserver,
        config::FenceTarget::Etcd => FenceTarget::Etcd,
    };
    FenceRules { mode, target, hand: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::fence::told::{Files, now as told};
    use crate::health::model::Kind;
    use crate::health::probes::local;
    use crate::health::verdict::Cause;

    #[test]
    fn a_decision_reaches_the_balancer_and_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let mut desk = Desk::open(dir.path()).unwrap();
        let now = local::now();
        assert_eq!(desk.before(now), FenceState::default());
        let fenced = crate::health::fence::decide::Fenced {
            target: "10.0.0.1:6443".into(),
            kind: Kind::Apiserver,
            cause: Cause::HungProcess,
            reason: "nothing answers".into(),
            since: now,
            shown: now,
        };
        let state = FenceState { fenced: Some(fenced), ..FenceState::default() };
        desk.tell(&state, now);
        let said = told(FenceMode::Balancer, dir.path());
        assert_eq!((said.answer, said.reason.as_str()), (Word::Down, "10.0.0.1:6443 hung-process: nothing answers"));
        assert_eq!(told(FenceMode::Advise, dir.path()).answer, Word::Up);
        assert_eq!(desk.before(now.plus(MAX_AGE)), state);
        assert_eq!(desk.before(now.plus(MAX_AGE * 2)), FenceState::default());
        desk.tell(&FenceState::default(), now);
        assert_eq!(told(FenceMode::Balancer, dir.path()).answer, Word::Up);
        assert!(Files::read(dir.path()).fence.is_some());
    }

    #[test]
    fn a_persons_word_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let desk = Desk::open(dir.path()).unwrap();
        let now = local::now();
        let settings = FenceSettings::default();
        assert_eq!(desk.rules(&settings, now), FenceRules::default());
        for (answer, expected) in
            [(Word::Down, Hand::Hold { reason: "x".into(), until: None }), (Word::Up, Hand::Release { until: None })]
        {
            let boot_id = desk.boot_id.clone();
            let hand = hand::Hand { boot_id, at: now, until: None, answer, reason: "x".into(), uid: 0 };
            hand.write(&desk.runtime).unwrap();
            assert_eq!(desk.rules(&settings, now).hand, Some(expected));
        }
    }
}
