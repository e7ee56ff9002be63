//! Manual pages and completions are made from the command line and from the sample configuration, and checked in:
//! `./dev generate` makes them anew, and this test tells when that was forgotten.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use refloat::cli::Cli;

const SAMPLE: &str = include_str!("../../config/refloat.toml");

/// Path below `packaging` → content.
type Files = BTreeMap<String, String>;

#[test]
fn manual_pages_and_completions_are_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging");
    let made = files();
    let there = checked_in(&root);
    if std::env::var_os("REFLOAT_GENERATE").is_some() {
        for name in there.keys().filter(|name| !made.contains_key(*name)) {
            std::fs::remove_file(root.join(name)).expect("remove a stale file");
        }
        for (name, content) in &made {
            std::fs::create_dir_all(root.join(name).parent().expect("a directory")).expect("make a directory");
            std::fs::write(root.join(name), content).expect("write a file");
        }
        return;
    }
    let stale = |name: &&String| there.get(*name) != made.get(*name);
    let names: std::collections::BTreeSet<&String> = made.keys().chain(there.keys()).collect();
    let stale: Vec<&String> = names.into_iter().filter(stale).collect();
    assert!(stale.is_empty(), "packaging/ does not fit the code any more, run ./dev generate: {stale:?}");
}

fn checked_in(root: &Path) -> Files {
    let mut files = Files::new();
    for dir in ["man", "completions"] {
        for entry in std::fs::read_dir(root.join(dir)).into_iter().flatten() {
            let path = entry.expect("a directory entry").path();
            let name = format!("{dir}/{}", path.file_name().unwrap_or_default().to_string_lossy());
            files.insert(name, std::fs::read_to_string(&path).expect("read a file"));
        }
    }
    files
}

fn files() -> Files {
    let mut files = Files::new();
    let mut root = Cli::command();
    root.build();
    pages(&root, &mut files);
    files.insert("man/refloat.toml.5".into(), configuration());
    for (shell, name) in [(Shell::Bash, "refloat.bash"), (Shell::Zsh, "_refloat"), (Shell::Fish, "refloat.fish")] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "refloat", &mut script);
        files.insert(format!("completions/{name}"), String::from_utf8(script).expect("UTF-8"));
    }
    files
}

/// One page for each command, as git has them: refloat-snapshot-take(8).
fn pages(command: &Command, files: &mut Files) {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    files.insert(format!("man/{name}.8"), page(command, &name));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        pages(sub, files);
    }
}

fn page(command: &Command, name: &str) -> String {
    let man = Man::new(command.clone()).section("8").date("").source("refloat").manual("etcd snapshots");
    let mut text = Vec::new();
    let mut render = |part: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| part(&mut text).expect("write to memory");
    render(&|w| man.render_title(w));
    render(&|w| man.render_name_section(w));
    render(&|w| man.render_synopsis_section(w));
    render(&|w| man.render_description_section(w));
    render(&|w| man.render_options_section(w));
    if command.has_subcommands() {
        render(&|w| man.render_subcommands_section(w));
    }
    let mut text = String::from_utf8(text).expect("UTF-8");
    if let Some(more) = command.get_after_help() {
        text.push_str(&sections(&more.to_string()));
    }
    let root = name == "refloat";
    if root {
        text.push_str(FILES);
    }
    let others = if root { "refloat.toml(5), etcd(1), systemd(1)" } else { "refloat(8), refloat.toml(5)" };
    text + ".SH \"SEE ALSO\"\n" + others + "\n"
}

const FILES: &str = "\
.SH FILES
.TP
/etc/refloat/refloat.toml, conf.d/*.toml beside it
The configuration, see refloat.toml(5).
.TP
/var/lib/refloat
State, and the default store below it.
.TP
/run/refloat
Locks and sockets.
";

/// What stands after the options: a line with a colon at its end begins a section, indented lines stay as they are.
fn sections(help: &str) -> String {
    let mut text = String::new();
    let mut verbatim = false;
    for line in help.lines() {
        let indented = line.starts_with("  ");
        if indented != verbatim {
            text.push_str(if indented { ".nf\n" } else { ".fi\n" });
            verbatim = indented;
        }
        match line.strip_suffix(':') {
            Some(heading) if !indented && heading.len() < 20 => {
                writeln!(text, ".SH {}", heading.to_uppercase()).expect("write to a string");
            }
            _ if line.is_empty() => text.push_str(".PP\n"),
            _ => writeln!(text, "{}", roff(line.strip_prefix("  ").unwrap_or(line))).expect("write to a string"),
        }
    }
    text + if verbatim { ".fi\n" } else { "" }
}

/// A line of text that means itself.
fn roff(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('…', "...");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

/// refloat.toml(5): what the sample says, key by key.
fn configuration() -> String {
    let mut text = String::from(
        ".TH refloat.toml 5 \"\" \"refloat\" \"etcd snapshots\"\n.SH NAME\nrefloat.toml \\- configuration of refloat\n.SH DESCRIPTION\n",
    );
    let mut comment: Vec<&str> = Vec::new();
    let mut first = true;
    for line in SAMPLE.lines() {
        if let Some(said) = line.strip_prefix("# ") {
            comment.push(said);
        } else if line == "#" {
            comment.push("");
        } else if let Some((key, value)) = line.strip_prefix('#').and_then(|line| line.split_once(" = ")) {
            writeln!(text, ".TP\n\\fB{} = {}\\fR", roff(key), roff(value)).expect("write to a string");
            paragraphs(&mut text, &mut comment);
        } else if line.starts_with('[') || line.starts_with("#[") {
            writeln!(text, ".SH \"{}\"", roff(line.trim_start_matches('#'))).expect("write to a string");
            paragraphs(&mut text, &mut comment);
        } else if line.is_empty() && first {
            // The title is said already, and what follows is for the reader of any part.
            comment.remove(0);
            paragraphs(&mut text, &mut comment);
            text.push_str(".SH \"TOP LEVEL\"\n");
            first = false;
        }
    }
    text + ".SH \"SEE ALSO\"\nrefloat(8), refloat\\-config(8)\n"
}

/// Writes the lines and empties the list; a line about the default begins anew.
fn paragraphs(text: &mut String, comment: &mut Vec<&str>) {
    for said in comment.drain(..) {
        match said {
            "" => text.push_str(".PP\n"),
            said if said.starts_with("Default: ") => writeln!(text, ".br\n{}", roff(said)).expect("write to a string"),
            said => writeln!(text, "{}", roff(said)).expect("write to a string"),
        }
    }
}
