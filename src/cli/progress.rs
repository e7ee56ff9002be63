//! Progress on standard error: a bar on a terminal, lines elsewhere, JSON lines on request.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle as BarStyle};
use serde::Serialize;

use super::args::{Global, ProgressStyle};
use super::output::{printable, size};
use crate::snapshot::progress::Progress;

/// What the command line asks for, on this terminal; with the bar, if there is one, for whoever else writes to it.
pub(super) fn choose(global: &Global) -> (Arc<dyn Progress>, Option<ProgressBar>) {
    let stderr = io::stderr();
    match global.progress {
        ProgressStyle::Jsonl => (Arc::new(JsonLines::new(Box::new(stderr), global.quiet)), None),
        ProgressStyle::None => (Arc::new(Lines::new(Box::new(stderr), true)), None),
        ProgressStyle::Auto if global.quiet || !stderr.is_terminal() => {
            (Arc::new(Lines::new(Box::new(stderr), global.quiet)), None)
        }
        ProgressStyle::Auto => {
            let bar = Bar::new(global.color(&stderr));
            let handle = bar.bar.clone();
            (Arc::new(bar), Some(handle))
        }
    }
}

type Sink = Mutex<Box<dyn Write + Send>>;

/// Progress is a courtesy: a closed standard error does not stop the work.
fn say(sink: &Sink, line: &str) {
    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = sink.write_all(format!("{line}\n").as_bytes()).and_then(|()| sink.flush());
}

/// One line per step.
struct Lines {
    sink: Sink,
    quiet: bool,
}

impl Lines {
    fn new(sink: Box<dyn Write + Send>, quiet: bool) -> Self {
        Lines { sink: Mutex::new(sink), quiet }
    }
}

impl Progress for Lines {
    fn step(&self, step: &str) {
        if !self.quiet {
            say(&self.sink, &printable(step));
        }
    }

    fn bytes(&self, _done: u64, _total: Option<u64>, _unit: &str) {}

    fn warn(&self, message: &str) {
        say(&self.sink, &format!("warning: {}", printable(message)));
    }
}

#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Tick>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Tick {
    done: u64,
    total: Option<u64>,
    unit: String,
}

/// One line per step, and at most one per [`JsonLines::PERIOD`] within a step.
struct JsonLines {
    sink: Sink,
    quiet: bool,
    state: Mutex<Ticks>,
}

#[derive(Default)]
struct Ticks {
    step: String,
    last: Option<Instant>,
    /// Held back; written before the next step, so that the last figure of a step is never lost.
    held: Option<Tick>,
}

impl JsonLines {
    const PERIOD: Duration = Duration::from_millis(500);

    fn new(sink: Box<dyn Write + Send>, quiet: bool) -> Self {
        JsonLines { sink: Mutex::new(sink), quiet, state: Mutex::default() }
    }

    fn write(&self, line: Line<'_>) {
        if let Ok(text) = serde_json::to_string(&line) {
            say(&self.sink, &text);
        }
    }

    fn tick(&self, now: Instant, tick: Tick) {
        if self.quiet {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last.is_some_and(|last| now.saturating_duration_since(last) < Self::PERIOD) {
            state.held = Some(tick);
            return;
        }
        (state.last, state.held) = (Some(now), None);
        self.write(Line { schema: 1, step: Some(&state.step), progress: Some(tick), warning: None });
    }

    fn flush(&self, state: &mut Ticks) {
        if let Some(tick) = state.held.take() {
            self.write(Line { schema: 1, step: Some(&state.step), progress: Some(tick), warning: None });
        }
    }
}

impl Progress for JsonLines {
    fn step(&self, step: &str) {
        if self.quiet {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.flush(&mut state);
        state.step = step.into();
        state.last = None;
        self.write(Line { schema: 1, step: Some(step), progress: None, warning: None });
    }

    fn bytes(&self, done: u64, total: Option<u64>, unit: &str) {
        self.tick(Instant::now(), Tick { done, total, unit: unit.into() });
    }

    fn warn(&self, message: &str) {
        self.write(Line { schema: 1, step: None, progress: None, warning: Some(message) });
    }
}

impl Drop for JsonLines {
    fn drop(&mut self) {
        let mut state = std::mem::take(self.state.get_mut().unwrap_or_else(PoisonError::into_inner));
        self.flush(&mut state);
    }
}

/// A bar that gives way to a line when its step is over.
struct Bar {
    bar: ProgressBar,
    color: bool,
    kind: Mutex<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Spinner,
    Bytes { total: bool },
    Count { total: bool },
}

impl Bar {
    fn new(color: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
        Bar { bar, color, kind: Mutex::new(Kind::Spinner) }
    }

    fn style(&self, kind: Kind) -> Option<BarStyle> {
        let (on, off) = if self.color { (".cyan", "") } else { ("", "") };
        let template = match kind {
            Kind::Spinner => "{spinner} {msg} {elapsed}".to_string(),
            Kind::Bytes { total: false } => "{spinner} {msg} {done} {rate}".to_string(),
            Kind::Count { total: false } => "{spinner} {msg} {human_pos} {elapsed}".to_string(),
            Kind::Bytes { total: true } => {
                format!("{{msg}} [{{bar:30{on}{off}}}] {{done}} of {{all}} {{rate}} {{eta}}")
            }
            Kind::Count { total: true } => {
                format!("{{msg}} [{{bar:30{on}{off}}}] {{human_pos}} of {{human_len}} {{eta}}")
            }
        };
        let style = BarStyle::with_template(&template).ok()?.progress_chars("=> ");
        let write = |text: String, out: &mut dyn std::fmt::Write| {
            let _ = out.write_str(&text);
        };
        Some(
            style
                .with_key("done", move |s: &ProgressState, out: &mut dyn std::fmt::Write| write(size(s.pos()), out))
                .with_key("all", move |s: &ProgressState, out: &mut dyn std::fmt::Write| {
                    write(size(s.len().unwrap_or(0)), out);
                })
                .with_key("rate", move |s: &ProgressState, out: &mut dyn std::fmt::Write| {
                    write(format!("{}/s", size(s.per_sec() as u64)), out);
                }),
        )
    }
}

impl Progress for Bar {
    fn step(&self, step: &str) {
        let before = self.bar.message();
        if !before.is_empty() {
            self.bar.println(before);
        }
        let mut kind = self.kind.lock().unwrap_or_else(PoisonError::into_inner);
        *kind = Kind::Spinner;
        // The style first: each later call may draw.
        if let Some(style) = self.style(Kind::Spinner) {
            self.bar.set_style(style);
        }
        self.bar.set_message(printable(step));
        self.bar.unset_length();
        self.bar.reset();
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    fn bytes(&self, done: u64, total: Option<u64>, unit: &str) {
        let wanted = match unit {
            "B" => Kind::Bytes { total: total.is_some() },
            _ => Kind::Count { total: total.is_some() },
        };
        let mut kind = self.kind.lock().unwrap_or_else(PoisonError::into_inner);
        if *kind != wanted {
            *kind = wanted;
            if let Some(style) = self.style(wanted) {
                self.bar.set_style(style);
            }
        }
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
    }

    fn warn(&self, message: &str) {
        self.bar.println(format!("warning: {}", printable(message)));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::tests::Captured;
    use super::*;

    fn tick(done: u64) -> Tick {
        Tick { done, total: Some(9), unit: "B".into() }
    }

    #[test]
    fn json_lines_are_thinned_and_keep_the_last_figure() {
        let sink = Captured::default();
        let progress = JsonLines::new(Box::new(sink.clone()), false);
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        progress.step("stream");
        for (millis, done) in [(0, 1), (100, 2), (499, 3), (500, 4), (600, 5)] {
            progress.tick(at(millis), tick(done));
        }
        progress.warn("slow \"disk\"");
        progress.step("verify");
        progress.tick(at(700), tick(6));
        progress.tick(at(701), tick(7));
        drop(progress);
        let line = |step: &str, done| {
            format!(
                "{{\"schema\":1,\"step\":\"{step}\",\"progress\":{{\"done\":{done},\"total\":9,\"unit\":\"B\"}}}}\n"
            )
        };
        let expected = [
            "{\"schema\":1,\"step\":\"stream\"}\n".to_string(),
            line("stream", 1),
            line("stream", 4),
            "{\"schema\":1,\"warning\":\"slow \\\"disk\\\"\"}\n".to_string(),
            line("stream", 5),
            "{\"schema\":1,\"step\":\"verify\"}\n".to_string(),
            line("verify", 6),
            line("verify", 7),
        ];
        assert_eq!(sink.text(), expected.concat());
    }

    #[test]
    fn quiet_leaves_warnings() {
        let sink = Captured::default();
        let all: [Box<dyn Progress>; 2] = [
            Box::new(JsonLines::new(Box::new(sink.clone()), true)),
            Box::new(Lines::new(Box::new(sink.clone()), true)),
        ];
        for progress in &all {
            progress.step("stream");
            progress.bytes(1, None, "B");
            progress.warn("w");
        }
        drop(all);
        assert_eq!(sink.text(), "{\"schema\":1,\"warning\":\"w\"}\nwarning: w\n");
    }

    #[test]
    fn plain_lines_have_no_ticks_and_no_terminal_codes() {
        let sink = Captured::default();
        let progress = Lines::new(Box::new(sink.clone()), false);
        progress.step("stream\u{1b}[2J");
        progress.bytes(1, Some(2), "B");
        assert_eq!(sink.text(), "stream\\u{1b}[2J\n");
    }

    #[test]
    fn every_bar_template_is_valid() {
        let bar = Bar::new(true);
        for total in [false, true] {
            for kind in [Kind::Spinner, Kind::Bytes { total }, Kind::Count { total }] {
                assert!(bar.style(kind).is_some());
            }
        }
    }
}
