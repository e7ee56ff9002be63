//! Recorded traces: what was asked and answered, as JSON lines, so that a fault that was once seen on a real cluster stays a
//! test. The first line says what was watched; the others follow in the order in which answers came.

use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::model::{Gauges, Kind, Mono, Observer, Planned, Sample, TargetId, Watched};
use super::rules::Rules;
use super::verdict::{Cause, State, Verdicts, verdict};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Watched(Watched),
    Sample(Sample),
    Observer(Observer),
    Gauges {
        target: TargetId,
        gauges: Gauges,
    },
    Planned {
        target: TargetId,
        planned: Option<Planned>,
    },
    /// What must have been said by then.
    Expect(Expect),
}

/// What a verdict must be; what is absent is not looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expect {
    pub at: Mono,
    pub kind: Kind,
    pub name: String,
    pub state: State,
    #[serde(default)]
    pub cause: Option<Cause>,
    /// Stands somewhere in the reasons.
    #[serde(default)]
    pub reason: Option<String>,
    /// Among the causes of the whole cluster, or why nobody is judged.
    #[serde(default)]
    pub shared: Option<Cause>,
}

/// Plays the lines through facts and verdicts, judging every quarter of a second, and tells what was not as expected.
pub fn replay(lines: &[Line], rules: Rules) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(Line::Watched(watched)) = lines.first() else {
        return vec!["the first line does not say what is watched".to_owned()];
    };
    let mut facts = Facts::new(rules, watched);
    let mut observer = Observer::default();
    let mut verdicts = Verdicts::default();
    let mut now = Mono(0);
    let mut judge = |facts: &Facts, observer: &Observer, until: Mono| {
        while now < until {
            now = Mono(now.0.saturating_add(250)).min(until);
            verdicts = verdict(watched, facts, observer, &verdicts, now);
        }
        verdicts.clone()
    };
    for line in lines.iter().skip(1) {
        match line {
            Line::Watched(_) => wrong.push("what is watched is said twice".to_owned()),
            Line::Sample(sample) => {
                judge(&facts, &observer, sample.at.plus(sample.took));
                facts.fold(sample);
            }
            Line::Observer(seen) => {
                judge(&facts, &observer, seen.at);
                observer = seen.clone();
                facts.observe(seen);
            }
            Line::Gauges { target, gauges } => facts.gauges(*target, gauges.clone()),
            Line::Planned { target, planned } => facts.planned(*target, *planned),
            Line::Expect(expect) => wrong.extend(expect.missed(watched, &judge(&facts, &observer, expect.at))),
        }
    }
    wrong
}

impl Expect {
    fn missed(&self, watched: &Watched, verdicts: &Verdicts) -> Option<String> {
        let what = format!("{:?} {} at {} ms", self.kind, self.name, self.at.0);
        let Some((id, _)) = watched.of(self.kind).find(|(_, target)| target.name == self.name) else {
            return Some(format!("{what}: not watched"));
        };
        let Some(verdict) = verdicts.by_target.get(&id) else { return Some(format!("{what}: no verdict")) };
        let reasons = verdict.reasons.join("; ");
        let blind = verdicts.blind.as_ref().map(|(cause, _)| *cause);
        let said = |shared: Cause| blind == Some(shared) || verdicts.cluster.iter().any(|(cause, _)| *cause == shared);
        let fits = verdict.state == self.state
            && self.cause.is_none_or(|cause| verdict.cause == Some(cause))
            && self.reason.as_ref().is_none_or(|reason| reasons.contains(reason.as_str()))
            && self.shared.is_none_or(said);
        let got = format!(
            "{:?} {:?} ({reasons}), shared {:?}, blind {blind:?}",
            verdict.state, verdict.cause, verdicts.cluster
        );
        (!fits).then(|| format!("{what}: {self:?} was expected, it is {got}"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn recorded_traces_are_judged_as_they_should_be() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/health");
        let (mut traces, mut expected, mut wrong, mut causes) = (0, 0, Vec::new(), Vec::new());
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "jsonl") {
                continue;
            }
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let parse = |(place, line): (usize, &str)| -> Line {
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}:{}: {e}", place + 1))
            };
            let lines: Vec<Line> = text.lines().enumerate().map(parse).collect();
            traces += 1;
            let expects =
                || lines.iter().filter_map(|line| if let Line::Expect(expect) = line { Some(expect) } else { None });
            expected += expects().count();
            causes.extend(expects().flat_map(|expect| [expect.cause, expect.shared]).flatten());
            wrong.extend(replay(&lines, Rules::default()).into_iter().map(|line| format!("{name}: {line}")));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let untested: Vec<Cause> = Cause::ALL.into_iter().filter(|cause| !causes.contains(cause)).collect();
        assert!(untested.is_empty(), "no trace leads to {untested:?}");
        assert!(traces >= 12 && expected >= traces, "{traces} traces with {expected} expectations");
    }
}
