//! systemd unit files: sections, continued lines, drop-ins, environment, command lines (systemd.syntax, systemd.unit,
//! systemd.exec and systemd.service have the rules).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::fact::{Fact, Source};
use super::files::Files;

/// Highest first. `/lib` is a link to `/usr/lib` nearly everywhere.
const PLACES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// A service as far as it tells how a program is run.
#[derive(Debug, Clone)]
pub struct Unit {
    /// `etcd.service`.
    pub name: String,
    pub file: PathBuf,
    /// The words of the command line, variables replaced, and the file that it stands in.
    pub command: Vec<String>,
    pub command_file: PathBuf,
    pub environment: BTreeMap<String, Fact<String>>,
    /// Something wants it at boot.
    pub enabled: bool,
    /// Files of `EnvironmentFile=` that are there.
    pub environment_files: Vec<PathBuf>,
}

/// Every service that runs a program of one of these names, and how many unit files were read.
pub fn running(files: &mut Files, programs: &[&str]) -> (Vec<(String, Unit)>, usize) {
    let mut by_name: BTreeMap<String, PathBuf> = BTreeMap::new();
    for place in PLACES.map(Path::new) {
        for name in files.names(place).into_iter().filter(|name| name.ends_with(".service")) {
            by_name.entry(name).or_insert_with_key(|name| place.join(name));
        }
    }
    by_name.retain(|_, path| !files.is_masked(path));
    let count = by_name.len();
    let mut found = Vec::new();
    for (name, file) in by_name {
        let Some(text) = files.text(&file) else { continue };
        let mut sources = vec![(file.clone(), text)];
        drop_ins(files, &name, &mut sources);
        // Most units have nothing to do with it: only the few others are looked at closely.
        if !sources.iter().any(|(_, text)| programs.iter().any(|program| text.contains(program))) {
            continue;
        }
        let unit = read(files, &name, &file, &sources);
        if let Some(at) = program(&unit.command, programs) {
            let program = base(&unit.command[at]).to_string();
            found.push((program, Unit { command: unit.command[at + 1..].to_vec(), ..unit }));
        }
    }
    (found, count)
}

/// Which word of a command is the program: the first, or one behind a wrapper. A directory that happens to be called
/// like it is the value of a flag, or has no flags behind it.
fn program(command: &[String], programs: &[&str]) -> Option<usize> {
    let flag = |at: usize| command.get(at).is_some_and(|word| word.starts_with('-'));
    let value = |at: usize| flag(at) && command[at] != "-c" && !command[at].contains('=');
    let named = |at: &usize| programs.contains(&base(&command[*at]));
    (0..command.len()).filter(named).find(|at| *at == 0 || (flag(at + 1) && !value(at - 1)))
}

fn base(word: &str) -> &str {
    word.trim_start_matches(['-', '@', ':', '+', '!']).rsplit('/').next().unwrap_or(word)
}

fn drop_ins(files: &mut Files, unit: &str, sources: &mut Vec<(PathBuf, String)>) {
    let mut by_name: BTreeMap<String, PathBuf> = BTreeMap::new();
    for place in PLACES.map(Path::new) {
        let folder = place.join(format!("{unit}.d"));
        if !files.is_dir(&folder) {
            continue;
        }
        for name in files.names(&folder).into_iter().filter(|name| name.ends_with(".conf")) {
            by_name.entry(name).or_insert_with_key(|name| folder.join(name));
        }
    }
    by_name.retain(|_, path| !files.is_masked(path));
    for path in by_name.into_values() {
        if let Some(text) = files.text(&path) {
            sources.push((path, text));
        }
    }
}

fn read(files: &mut Files, name: &str, file: &Path, sources: &[(PathBuf, String)]) -> Unit {
    let mut command: Option<(PathBuf, String)> = None;
    let mut inline: BTreeMap<String, Fact<String>> = BTreeMap::new();
    let mut environment_files: Vec<String> = Vec::new();
    let expand = |text: &str, files: &mut Files| specifiers(text, name, files);
    for (path, text) in sources {
        for (key, value) in settings(text, "Service") {
            match key.as_str() {
                // An empty one takes back all before.
                "ExecStart" if value.is_empty() => command = None,
                "ExecStart" if command.is_none() => command = Some((path.clone(), expand(&value, files))),
                "Environment" if value.is_empty() => inline.clear(),
                "Environment" => {
                    for word in words(&expand(&value, files)) {
                        if let Some((variable, value)) = word.split_once('=') {
                            inline.insert(variable.into(), Fact::new(value.into(), Source::at(path, variable)));
                        }
                    }
                }
                "EnvironmentFile" if value.is_empty() => environment_files.clear(),
                "EnvironmentFile" => environment_files.push(expand(&value, files)),
                _ => {}
            }
        }
    }
    let mut environment = inline;
    let mut there = Vec::new();
    // What a file says wins over Environment=, later files over earlier ones.
    for path in environment_files {
        let path = PathBuf::from(path.strip_prefix('-').unwrap_or(&path));
        let Some(text) = files.text(&path) else { continue };
        environment.extend(variables(&text, &path));
        there.push(path);
    }
    let (command_file, line) = command.unwrap_or_else(|| (file.into(), String::new()));
    let enabled = PLACES.iter().any(|place| {
        ["multi-user.target.wants", "multi-user.target.requires", "default.target.wants"]
            .iter()
            .any(|wants| files.exists(&Path::new(place).join(wants).join(name)))
    });
    let command = command_line(&line, &environment);
    Unit { name: name.into(), file: file.into(), command, command_file, environment, enabled, environment_files: there }
}

/// Keys and values of one section, continued lines joined.
fn settings(text: &str, section: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut within = false;
    for line in joined(text) {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            within = name == section;
        } else if within && let Some((key, value)) = line.split_once('=') {
            found.push((key.trim().into(), value.trim().into()));
        }
    }
    found
}

/// A backslash at the end continues a line; comments between are left out.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        let (part, more) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        match lines.last_mut() {
            Some(last) if open => {
                last.push(' ');
                last.push_str(part);
            }
            _ => lines.push(part.into()),
        }
        open = more;
    }
    lines
}

/// Variables of an environment file, in their order.
fn variables(text: &str, path: &Path) -> Vec<(String, Fact<String>)> {
    let assignments = joined(text).into_iter().filter_map(|line| {
        let (name, value) = line.trim().split_once('=')?;
        let name = name.trim().trim_start_matches("export ").trim();
        Some((name.to_string(), unquoted(value.trim())))
    });
    assignments.map(|(name, value)| (name.clone(), Fact::new(value, Source::at(path, name)))).collect()
}

fn unquoted(value: &str) -> String {
    let quoted = value.starts_with(['"', '\'']);
    if quoted { words(value).join(" ") } else { value.into() }
}

/// Words as systemd splits them: blanks, both quotes, backslash.
pub fn words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (_, '\\') if quote != Some('\'') => {
                if let Some(next) = chars.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            (None, c) if c.is_whitespace() => found.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    found.extend(word);
    found
}

/// The words of a command, variables replaced. What a shell is given as its script is split once more: some
/// distributions start etcd that way.
fn command_line(line: &str, environment: &BTreeMap<String, Fact<String>>) -> Vec<String> {
    let mut found = Vec::new();
    for word in words(line) {
        let bare = word.strip_prefix('$').filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        match bare.and_then(|name| environment.get(name)) {
            // `$WORDS` alone becomes as many words as it holds.
            Some(value) => found.extend(words(&value.value)),
            None => {
                let replaced = replaced(&word, environment);
                if word.contains(' ') && found.last().is_some_and(|last: &String| last == "-c") {
                    found.extend(words(&replaced));
                } else {
                    found.push(replaced);
                }
            }
        }
    }
    found
}

/// `${NAME}` and, for shells, `$NAME`; a variable that is not known stays as it is.
fn replaced(word: &str, environment: &BTreeMap<String, Fact<String>>) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, tail) = braced.unwrap_or_else(|| {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            after.split_at(end)
        });
        match environment.get(name) {
            Some(value) => out.push_str(&value.value),
            None => out.push_str(&rest[at..rest.len() - tail.len()]),
        }
        rest = tail;
    }
    out + rest
}

/// The specifiers that units of etcd use; others stay as they are.
fn specifiers(text: &str, unit: &str, files: &mut Files) -> String {
    if !text.contains('%') {
        return text.into();
    }
    let stem = unit.rsplit_once('.').map_or(unit, |(stem, _)| stem);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let host = files.text(Path::new("/etc/hostname")).unwrap_or_default().trim().to_string();
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('%') => out.push('%'),
            Some('n') => out.push_str(unit),
            Some('N') => out.push_str(stem),
            Some('p') => out.push_str(prefix),
            Some('i' | 'I') => out.push_str(instance),
            Some('H') => out.push_str(&host),
            Some('l') => out.push_str(host.split('.').next().unwrap_or_default()),
            other => {
                out.push('%');
                out.extend(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_systemds() {
        for (text, expected) in [
            ("a  b\tc", vec!["a", "b", "c"]),
            ("'a b' \"c d\"e", vec!["a b", "c de"]),
            (r#"--name=\"x\" 'it\s' "" y"#, vec!["--name=\"x\"", r"it\s", "", "y"]),
            ("", vec![]),
            ("\"open", vec!["open"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn a_directory_is_no_program() {
        for (line, at) in [
            ("/usr/bin/etcd", Some(0)),
            ("-/usr/bin/etcd --name x", Some(0)),
            ("/usr/bin/numactl --interleave=all /usr/bin/etcd --name x", Some(2)),
            ("/bin/bash -c /usr/bin/etcd --x", Some(2)),
            ("/usr/bin/backup --dir /var/lib/etcd --keep 3", None),
            ("/bin/chown -R etcd /var/lib/etcd", None),
            ("/usr/bin/etcd-backup", None),
        ] {
            assert_eq!(program(&words(line), &["etcd"]), at, "{line}");
        }
    }

    #[test]
    fn continued_lines_skip_comments() {
        let text =
            "[Service]\nExecStart=/usr/bin/etcd \\\n  --a=b \\\n# not this \\\n  --c d\n;x\n[Install]\nExecStart=no\n";
        assert_eq!(
            settings(text, "Service"),
            [("ExecStart".to_string(), "/usr/bin/etcd    --a=b    --c d".to_string())]
        );
    }

    #[test]
    fn environment_files_have_quotes_and_comments() {
        let text = "# c\n; d\n A=1\nB=\"x y\"\nexport C='z'\nD=a\\\nb\nnonsense\nE=\n";
        let found: Vec<(String, String)> =
            variables(text, Path::new("/e")).into_iter().map(|(name, fact)| (name, fact.value)).collect();
        let expected = [("A", "1"), ("B", "x y"), ("C", "z"), ("D", "a b"), ("E", "")];
        assert_eq!(found, expected.map(|(a, b)| (a.to_string(), b.to_string())));
    }

    #[test]
    fn variables_are_replaced_where_they_are_known() {
        let environment: BTreeMap<String, Fact<String>> = [("N", "m1"), ("ARGS", "--x --y=z")]
            .map(|(name, value)| (name.to_string(), Fact::new(value.to_string(), Source::file(Path::new("/e")))))
            .into();
        for (line, expected) in [
            ("/usr/bin/etcd --name ${N} $ARGS", vec!["/usr/bin/etcd", "--name", "m1", "--x", "--y=z"]),
            (
                "sh -c \"G=$(nproc) /usr/bin/etcd --name=\\\"${N}\\\"\"",
                vec!["sh", "-c", "G=$(nproc)", "/usr/bin/etcd", "--name=m1"],
            ),
            ("etcd --name=${NONE}x$ $", vec!["etcd", "--name=${NONE}x$", "$"]),
        ] {
            assert_eq!(command_line(line, &environment), expected, "{line}");
        }
    }
}
