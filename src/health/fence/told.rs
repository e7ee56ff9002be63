//! What a balancer is told now: the person's word, else, where `[fence] mode` lets it, what health decided.

use std::path::Path;

use super::file::{self, Answer, FENCE, LIMIT, Word};
use super::hand;
use crate::config::FenceMode;
use crate::error::Code;
use crate::fs::{BootTime, Dir};
use crate::health::model::Mono;

/// Bytes of the two files: `None` where there is none.
#[derive(Debug, Clone, Default)]
pub struct Files {
    pub fence: Option<Vec<u8>>,
    pub hand: Option<Vec<u8>>,
}

impl Files {
    /// From the runtime directory, which lies in memory. What cannot be read is as good as nothing in the fence file.
    pub fn read(runtime: &Path) -> Files {
        let Ok(dir) = Dir::open(runtime) else { return Files::default() };
        let fence = match dir.read(FENCE, LIMIT) {
            Ok(bytes) => Some(bytes),
            Err(e) if e.code() == Code::NotFound => None,
            Err(_) => Some(Vec::new()),
        };
        Files { fence, hand: hand::read(&dir) }
    }
}

/// `boot`: `None` where nobody tells which boot this is; then no file counts.
pub fn told(mode: FenceMode, files: &Files, boot: Option<&BootTime>) -> Answer {
    if mode == FenceMode::Off {
        return Answer::up("[fence] mode is off");
    }
    let Some(boot) = boot else { return Answer::up("nobody tells which boot this is") };
    let now = moment(boot);
    if let Some(hand) = hand::in_force(files.hand.as_deref(), &boot.boot_id, now) {
        return Answer { answer: hand.answer, reason: format!("by hand: {}", hand.reason) };
    }
    let decided = file::answer(files.fence.as_deref(), &boot.boot_id, now);
    match (mode, decided.answer) {
        (FenceMode::Balancer, _) | (_, Word::Up) => decided,
        (FenceMode::Off | FenceMode::Advise, Word::Down) => {
            Answer::up(format!("[fence] mode only advises; it would be down: {}", decided.reason))
        }
    }
}

/// The same moment as the files write it.
pub fn moment(boot: &BootTime) -> Mono {
    Mono::default().plus(boot.since)
}

/// Files and clock of this host.
pub fn now(mode: FenceMode, runtime: &Path) -> Answer {
    told(mode, &Files::read(runtime), BootTime::now().as_ref())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{FenceFile, Hand};
    use super::*;

    #[test]
    fn hands_win_and_only_balancer_passes_a_decision_on() {
        let boot = BootTime { boot_id: "b".into(), since: Duration::from_secs(100) };
        let at = moment(&boot);
        let hand = |answer| {
            let hand = Hand { boot_id: "b".into(), at, until: None, answer, reason: "x".into(), uid: 0 };
            Some(hand.encode())
        };
        let fence = |answer| Some(FenceFile { boot_id: "b".into(), at, answer, reason: "x".into() }.encode());
        use FenceMode::{Advise, Balancer, Off};
        use Word::{Down, Up};
        for (mode, by_hand, decided, expected) in [
            (Off, None, Some(Down), Up),
            (Off, Some(Down), Some(Down), Up),
            (Advise, None, Some(Down), Up),
            (Advise, Some(Down), Some(Up), Down),
            (Balancer, None, None, Up),
            (Balancer, None, Some(Up), Up),
            (Balancer, None, Some(Down), Down),
            (Balancer, Some(Up), Some(Down), Up),
            (Balancer, Some(Down), Some(Up), Down),
            (Balancer, Some(Down), None, Down),
        ] {
            let files = Files { fence: decided.and_then(fence), hand: by_hand.and_then(hand) };
            let said = told(mode, &files, Some(&boot));
            assert_eq!(said.answer, expected, "{mode:?} {by_hand:?} {decided:?}: {}", said.reason);
        }
        let files = Files { fence: fence(Down), hand: hand(Down) };
        assert_eq!(told(Balancer, &files, None).answer, Up);
    }

    #[test]
    fn a_directory_that_is_away_is_up() {
        assert_eq!(now(FenceMode::Balancer, Path::new("/nowhere/at/all")).answer, Word::Up);
    }
}
