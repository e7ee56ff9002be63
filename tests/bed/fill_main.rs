//! Fills an etcd with data: the helpers of the bed as a program, for the demo, the benchmarks and by hand.

use std::process::ExitCode;

#[path = "mod.rs"]
mod bed;

const USAGE: &str = "bed-fill URL kubernetes OBJECTS | small KEYS | large KEYS BYTES | compact REVISION
fills a plain etcd; REFLOAT_SEED=N gives other data; prints the revision reached";

enum What {
    Kubernetes(u64),
    Small(u64),
    Large(u64, usize),
    Compact(i64),
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some((url, what)) = parse(&words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    let fill = bed::Fill::new(url);
    match what {
        What::Kubernetes(objects) => {
            fill.kubernetes(objects);
        }
        What::Small(keys) => fill.small(keys),
        What::Large(keys, bytes) => fill.large(keys, bytes),
        What::Compact(revision) => fill.compact(revision),
    }
    println!("{}", fill.revision());
    ExitCode::SUCCESS
}

fn parse<'a>(words: &[&'a str]) -> Option<(&'a str, What)> {
    Some(match *words {
        [url, "kubernetes", objects] => (url, What::Kubernetes(objects.parse().ok()?)),
        [url, "small", keys] => (url, What::Small(keys.parse().ok()?)),
        [url, "large", keys, bytes] => (url, What::Large(keys.parse().ok()?, bytes.parse().ok()?)),
        [url, "compact", revision] => (url, What::Compact(revision.parse().ok()?)),
        _ => return None,
    })
}
