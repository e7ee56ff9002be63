//! One question to one target, over time: the repeat rule (design §11). A single failure makes nothing: it is repeated on a
//! fresh connection, and two in a row make the fact failed; several good answers in a row make it good again.

use std::time::Duration;

use super::model::{Failure, Mono, Outcome, Sample};

/// How many answer times the median is taken of.
const TIMES: usize = 60;
/// How many good answers are remembered, to find one between two failures elsewhere.
const GOODS: usize = 8;
/// A median of fewer says nothing.
const ENOUGH: u8 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Good,
    Failed,
    Unknown,
}

/// When something was asked and when the answer, or the end of waiting, came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub asked: Mono,
    pub ended: Mono,
}

/// Failures without a good answer between.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub first: Span,
    /// The last but one.
    pub before: Span,
    pub last: Span,
    pub count: u32,
    /// The last one's.
    pub failure: Failure,
}

/// The numbers of the repeat rule for this question.
#[derive(Debug, Clone, Copy)]
pub struct Repeat {
    pub fails: u8,
    pub goods: u8,
    pub slow: Duration,
    pub late_after: Duration,
}

#[derive(Debug, Clone)]
pub struct Window {
    failed: bool,
    goods: u8,
    run: Option<Run>,
    goods_at: Goods,
    answered: Option<Mono>,
    asked: Option<Mono>,
    unknown: Option<(Mono, String)>,
    times: Times,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            failed: false,
            goods: 0,
            run: None,
            goods_at: Goods::default(),
            answered: None,
            asked: None,
            unknown: None,
            times: Times { at: [0; TIMES], next: 0, len: 0, above: 0 },
        }
    }
}

impl Window {
    /// True if the sample counted as an answer, good or failed.
    pub fn fold(&mut self, repeat: &Repeat, sample: &Sample) -> bool {
        let span = Span { asked: sample.at, ended: sample.at.plus(sample.took) };
        self.asked = Some(self.asked.map_or(sample.at, |before| before.max(sample.at)));
        match &sample.outcome {
            Outcome::Good(_) => {
                self.goods = self.goods.saturating_add(1);
                // From nothing known to good one answer is enough; from failed it is not.
                if self.failed && self.goods >= repeat.goods {
                    self.failed = false;
                }
                self.run = None;
                self.goods_at.push(span);
                self.times.push(sample.took, repeat.slow);
            }
            // The observer looked too late: that is its own trouble.
            Outcome::Failed(_) if sample.took > repeat.late_after => return false,
            Outcome::Failed(failure) => {
                self.goods = 0;
                match &mut self.run {
                    Some(run) => {
                        (run.before, run.last) = (run.last, span);
                        run.count = run.count.saturating_add(1);
                        if run.failure != *failure {
                            run.failure = failure.clone();
                        }
                    }
                    None => {
                        self.run =
                            Some(Run { first: span, before: span, last: span, count: 1, failure: failure.clone() })
                    }
                }
                if self.run.as_ref().is_some_and(|run| run.count >= u32::from(repeat.fails)) {
                    self.failed = true;
                }
            }
            Outcome::Unknown(why) => {
                match &mut self.unknown {
                    Some((at, before)) if before == why => *at = span.ended,
                    slot => *slot = Some((span.ended, why.clone())),
                }
                return false;
            }
        }
        self.answered = Some(span.ended);
        true
    }

    /// `stale_after`: an answer older than this is none.
    pub fn standing(&self, now: Mono, stale_after: Duration) -> Standing {
        match self.answered {
            Some(at) if now.since(at) <= stale_after => {
                if self.failed {
                    Standing::Failed
                } else if self.good().is_some() {
                    Standing::Good
                } else {
                    Standing::Unknown
                }
            }
            _ => Standing::Unknown,
        }
    }

    /// It failed often enough, and was not good often enough since.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Failures since the last good answer; one alone is a suspicion.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// The last good answer.
    pub fn good(&self) -> Option<Span> {
        self.goods_at.last
    }

    /// Good with no failure since, and asked at or after `then`.
    pub fn good_since(&self, then: Mono) -> Option<Span> {
        self.good().filter(|span| span.asked >= then && self.run.is_none())
    }

    /// Not failed, and good when asked after that run of failures was known, which then failed once more after that answer.
    pub fn outlasted_by(&self, run: &Run) -> bool {
        !self.failed && self.goods_at.any(|span| span.asked >= run.first.ended && span.ended <= run.last.asked)
    }

    /// Good with no failure since, and asked after the last but one of those failures, of at least three, and answered before the
    /// last ended: so what kept that one waiting did not keep this.
    pub fn answered_beside(&self, run: &Run) -> bool {
        let beside = |span: &Span| span.asked >= run.before.ended && span.ended <= run.last.ended;
        run.count > 2 && self.run.is_none() && self.goods_at.any(beside)
    }

    pub fn asked(&self) -> Option<Mono> {
        self.asked
    }

    pub fn answered(&self) -> Option<Mono> {
        self.answered
    }

    /// The last reason why it said nothing, if that is younger than the last answer.
    pub fn unknown(&self) -> Option<&str> {
        self.unknown
            .as_ref()
            .filter(|(at, _)| self.answered.is_none_or(|answer| *at >= answer))
            .map(|(_, why)| why.as_str())
    }

    /// The median of the last sixty answer times, where that is above the limit.
    pub fn slow(&self) -> Option<Duration> {
        self.times.slow()
    }

    pub fn median(&self) -> Option<Duration> {
        self.times.median()
    }

    /// The trouble that explained its failures until then is over: one more counts again.
    pub fn doubt_before(&mut self, then: Mono, fails: u8) {
        let Some(run) = self.run.as_mut().filter(|run| run.last.asked <= then) else { return };
        run.count = run.count.min(u32::from(fails.saturating_sub(1)));
        (run.first, run.before) = (run.last, run.last);
        if self.failed {
            self.failed = false;
            self.answered = None;
        }
    }

    /// The observer was in trouble itself: a failure that began since `then` is forgotten.
    pub fn forgive(&mut self, then: Mono) {
        if self.run.as_ref().is_some_and(|run| run.first.asked >= then) {
            self.run = None;
            if self.failed {
                self.failed = false;
                // Not good either, until it answers again.
                self.answered = None;
            }
        }
    }
}

/// The last good answers.
#[derive(Debug, Clone, Default)]
struct Goods {
    last: Option<Span>,
    ring: [Option<Span>; GOODS],
    next: u8,
}

impl Goods {
    fn push(&mut self, span: Span) {
        self.last = Some(span);
        self.ring[usize::from(self.next)] = Some(span);
        self.next = (self.next + 1) % GOODS as u8;
    }

    fn any(&self, holds: impl Fn(&Span) -> bool) -> bool {
        self.ring.iter().flatten().any(holds)
    }
}

/// A ring of answer times in milliseconds.
#[derive(Debug, Clone)]
struct Times {
    at: [u16; TIMES],
    next: u8,
    len: u8,
    /// How many of them are above the limit: so the common case needs no sorting.
    above: u8,
}

impl Times {
    fn push(&mut self, took: Duration, slow: Duration) {
        let limit = millis(slow);
        let place = usize::from(self.next);
        if usize::from(self.len) == TIMES {
            self.above -= u8::from(self.at[place] > limit);
        } else {
            self.len += 1;
        }
        self.at[place] = millis(took);
        self.above += u8::from(self.at[place] > limit);
        self.next = ((place + 1) % TIMES) as u8;
    }

    fn slow(&self) -> Option<Duration> {
        (self.len >= ENOUGH && self.above > self.len / 2).then(|| self.median()).flatten()
    }

    fn median(&self) -> Option<Duration> {
        let len = usize::from(self.len);
        let mut sorted = self.at;
        let used = sorted.get_mut(..len).filter(|used| !used.is_empty())?;
        let (_, median, _) = used.select_nth_unstable(len / 2);
        Some(Duration::from_millis(u64::from(*median)))
    }
}

fn millis(span: Duration) -> u16 {
    u16::try_from(span.as_millis()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::model::{Probe, Reading, TargetId};

    const REPEAT: Repeat =
        Repeat { fails: 2, goods: 5, slow: Duration::from_millis(250), late_after: Duration::from_millis(1400) };
    const STALE: Duration = Duration::from_secs(5);

    /// `g` good, `f` failed, `u` unknown, `l` failed but looked at late; one a second.
    fn run(course: &str) -> (Window, Mono) {
        let mut window = Window::default();
        let mut now = Mono(10_000);
        for letter in course.chars() {
            let (took, outcome) = match letter {
                'g' => (5, Outcome::Good(Reading::Nothing)),
                's' => (300, Outcome::Good(Reading::Nothing)),
                'f' => (1_000, Outcome::Failed(Failure::Silent)),
                'l' => (1_900, Outcome::Failed(Failure::Silent)),
                'u' => (5, Outcome::Unknown("HTTP 429".into())),
                _ => panic!("{letter}"),
            };
            let took = Duration::from_millis(took);
            window
                .fold(&REPEAT, &Sample { target: TargetId(0), probe: Probe::E3, at: now, took, fresh: false, outcome });
            now = now.plus(Duration::from_secs(1));
        }
        (window, now)
    }

    #[test]
    fn two_failures_in_a_row_fail_and_five_good_ones_mend() {
        for (course, want) in [
            ("", Standing::Unknown),
            ("g", Standing::Good),
            ("f", Standing::Unknown),
            ("ff", Standing::Failed),
            ("gf", Standing::Good),
            ("gfgfgfgf", Standing::Good),
            ("gff", Standing::Failed),
            ("gfufu", Standing::Failed),
            ("gffgggg", Standing::Failed),
            ("gffggggg", Standing::Good),
            ("gffggfggg", Standing::Failed),
            ("uu", Standing::Unknown),
            ("gllll", Standing::Good),
            ("guuuuuuu", Standing::Unknown),
        ] {
            let (window, now) = run(course);
            assert_eq!(window.standing(now, STALE), want, "{course}");
        }
    }

    #[test]
    fn an_old_answer_is_neither_good_nor_failed() {
        for course in ["gg", "ff"] {
            let (window, now) = run(course);
            assert_ne!(window.standing(now, STALE), Standing::Unknown);
            assert_eq!(window.standing(now.plus(Duration::from_secs(10)), STALE), Standing::Unknown, "{course}");
        }
    }

    #[test]
    fn slow_is_the_median_of_sixty() {
        assert_eq!(run(&"s".repeat(9)).0.slow(), None, "too few");
        assert_eq!(run(&"s".repeat(60)).0.slow(), Some(Duration::from_millis(300)));
        assert_eq!(run(&"sg".repeat(30)).0.slow(), None, "half is not more than half");
        assert_eq!(run(&("s".repeat(200) + &"g".repeat(31))).0.slow(), None, "old times leave the ring");
        assert_eq!(run(&("g".repeat(200) + &"s".repeat(31))).0.slow(), Some(Duration::from_millis(300)));
        assert_eq!(run("ggggffff").0.median(), Some(Duration::from_millis(5)), "failures are no answer times");
    }

    #[test]
    fn what_fell_into_own_trouble_is_forgotten() {
        let (mut window, now) = run("ggff");
        window.forgive(Mono(12_500));
        assert_eq!(window.standing(now, STALE), Standing::Failed, "it began before");
        window.forgive(Mono(12_000));
        assert_eq!(window.standing(now, STALE), Standing::Unknown);
        assert!(window.run().is_none());
    }

    #[test]
    fn a_reason_ends_with_the_next_answer() {
        assert_eq!(run("gu").0.unknown(), Some("HTTP 429"));
        assert_eq!(run("gug").0.unknown(), None);
    }
}
