//! Bytes that are no sound snapshot: `snapshot verify` and `db check` refuse each with what is wrong and where,
//! never panic, and never take more memory than the input justifies (promise 1).

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refloat::format::check::{Checker, Options, Report};
use refloat::snapshot::judge::{Judgement, Object, judge};
use refloat::snapshot::progress::Silent;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::bed::{Cluster, Fill, Line, Output, Refloat, Rng, Run, soak};
use crate::page_walk::{self, Class, HEADER, Piece, Walk};

const TRAILER: usize = 32;
/// Flips of one bit, of the top bit and of the whole byte: a lucky value is not lucky three times.
const MASKS: [u8; 3] = [0x01, 0x80, 0xff];

/// A real snapshot with two levels of branch pages, rows on both sides of the compact revision, tombstones, leases.
fn sample(dir: &Path) -> (Vec<u8>, Refloat) {
    let cluster = Cluster::start(Line::V36);
    let fill = Fill::new(&cluster).seed(7);
    fill.kubernetes(40);
    fill.small(4_000);
    fill.compact(fill.revision());
    for i in 0..40 {
        fill.delete(&format!("/small/{:010}", i * 7));
    }
    fill.compact(fill.delete("/small/0000001000"));
    fill.small(4_000);
    fill.delete("/small/0000000003");
    let refloat = Refloat::new(&cluster);
    refloat.run(&["snapshot", "take"]).ok();
    let file = dir.join("sample.db");
    refloat.run(&["snapshot", "export", "latest", "--to", text(&file)]).ok();
    (std::fs::read(&file).expect("read the export"), refloat)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("refloat-bytes-").tempdir().expect("make a temporary directory")
}

fn verify(refloat: &Refloat, path: &Path) -> Output {
    refloat.run(&["-o", "json", "snapshot", "verify", text(path)])
}

fn check(refloat: &Refloat, path: &Path) -> Output {
    refloat.run(&["-o", "json", "db", "check", text(path)])
}

/// Exit code 65 with a reason: findings on stdout, or one error on stderr. Gives all words of it.
#[track_caller]
fn refused(output: &Output) -> String {
    assert_eq!(output.code, Some(65), "{output}");
    assert!(!output.stderr.contains("panicked"), "{output}");
    if output.stdout.is_empty() {
        let error: Value = serde_json::from_str(&output.stderr).unwrap_or_else(|e| panic!("{e}: {output}"));
        let error = &error["error"];
        assert!(error["why"].as_array().is_some_and(|why| !why.is_empty()), "{output}");
        assert!(error["on"].as_str().is_some_and(|on| !on.is_empty()), "{output}");
        return error.to_string();
    }
    let document: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output}"));
    let findings = document["findings"].as_array().expect("findings");
    assert!(document["ok"] == false && !findings.is_empty() && document["hash_kv"].is_null(), "{output}");
    for finding in findings {
        assert!(finding["message"].as_str().is_some_and(|message| message.len() > 10), "{output}");
    }
    document["findings"].to_string()
}

#[test]
fn files_that_are_no_whole_snapshot_are_refused_with_the_reason() {
    let dir = scratch();
    let (good, refloat) = sample(dir.path());
    let database = good.len() - TRAILER;
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("write a file");
        path
    };

    let whole = file("whole", &good);
    for output in [verify(&refloat, &whole), check(&refloat, &whole)] {
        let document = output.json();
        assert!(document["ok"] == true && document["not_covered"] == serde_json::json!([]), "{document}");
    }

    let directory = dir.path().join("directory");
    std::fs::create_dir(&directory).expect("make a directory");
    let fifo = dir.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("make a FIFO");
    assert!(std::fs::metadata(&fifo).expect("look at it").file_type().is_fifo());
    let zipped = file("zipped", &good);
    Run::new("gzip").args(["-1".as_ref(), zipped.as_os_str()]).run().ok();
    let words = "Not a database, but a text of some length about nothing in particular.\n".repeat(200);
    let mut zeroed = good.clone();
    zeroed[database..].fill(0);
    let padded = [&good[..], &[0]].concat();

    for (path, word) in [
        (file("empty", b""), "cut short"),
        (file("short", &good[..31]), "cut"),
        (file("half-a-sector", &good[..511]), "cut"),
        (file("half-a-sector-of-zeroes", &[0; 511]), "cut"),
        (directory, "directory"),
        (fifo, "FIFO"),
        (file("text", words.as_bytes()), "magic"),
        (dir.path().join("zipped.gz"), "gzip"),
        (file("minus-one", &good[..good.len() - 1]), "cut or padded"),
        (file("plus-one", &padded), "cut or padded"),
        (file("without-last-page", &good[..database - 4096]), "pages"),
        (file("zero-trailer", &zeroed), "trailer"),
        (file("zeroes", &vec![0; good.len()]), "magic"),
    ] {
        for output in [verify(&refloat, &path), check(&refloat, &path)] {
            let said = refused(&output);
            assert!(said.to_lowercase().contains(&word.to_lowercase()), "{word}: {output}");
        }
    }

    // Without its trailer a database is sound as far as structure goes, and says what that does not cover.
    let bare = file("no-trailer", &good[..database]);
    let said = refused(&verify(&refloat, &bare));
    assert!(said.contains("cannot-be-proven") && said.contains("db check"), "{said}");
    let document = check(&refloat, &bare).json();
    assert!(document["ok"] == true && document["not_covered"][0].as_str().is_some_and(|s| s.contains("values")));
    assert_eq!(document["hash_kv"], check(&refloat, &whole).json()["hash_kv"]);
}

/// The checker alone, without hashes: what it finds in a file without trailer.
#[allow(clippy::ptr_arg)] // a slice alone has no size of its own to be a reader
pub fn bare_check(database: &Vec<u8>) -> Report {
    let mut checker = Checker::begin(database, Options::default());
    checker.feed(database);
    checker.finish(database, false)
}

fn full_check(bytes: Vec<u8>) -> Judgement {
    let object = Object::Plain(Arc::new(bytes));
    judge(&object, "a file", Options::default(), &Silent, &CancellationToken::new()).expect("memory can be read")
}

/// Positions to flip: every one of the small classes, a fixed random part of the large ones.
fn positions(walk: &Walk<'_>) -> Vec<(usize, Piece)> {
    let mut by_class: BTreeMap<Class, Vec<(usize, &Piece)>> = BTreeMap::new();
    for piece in walk.pieces.iter().filter(|p| p.class != Class::Value) {
        by_class.entry(piece.class).or_default().extend(piece.at.clone().map(|at| (at, piece)));
    }
    let all = [
        Class::Meta,
        Class::Header,
        Class::BranchElement,
        Class::BranchKey,
        Class::LeafElement,
        Class::RowKey,
        Class::BucketName,
        Class::BucketValue,
        Class::InlineHeader,
    ];
    for class in all {
        assert!(by_class.contains_key(&class), "the sample has no {class:?}");
    }
    let most = if soak() { 4_000 } else { 400 };
    let mut rng = Rng::new(3);
    let mut chosen = Vec::new();
    for spots in by_class.into_values() {
        let whole = spots.len() <= most;
        let picked: Vec<_> = if whole { spots } else { (0..most).map(|_| *rng.pick(&spots)).collect() };
        chosen.extend(picked.into_iter().map(|(at, piece)| (at, piece.clone())));
    }
    chosen
}

#[test]
fn a_flipped_byte_is_found_wherever_it_lies() {
    let dir = scratch();
    let (good, refloat) = sample(dir.path());
    let database = good[..good.len() - TRAILER].to_vec();
    let report = bare_check(&database);
    assert!(report.ok(), "{:?}", report.findings);
    let compact = report.content.expect("content").compact_revision;
    let walk = page_walk::walk(&database, compact);
    let depth = walk.pieces.iter().filter(|p| p.class == Class::BranchElement).map(|p| p.page);
    assert!(depth.collect::<std::collections::BTreeSet<_>>().len() > 2, "the sample has several branch pages");
    assert!(walk.pieces.iter().any(|p| p.hidden.is_some()), "the sample has compacted rows");

    // With a trailer: any byte at all, free pages and value bytes included.
    let mut rng = Rng::new(5);
    let any = (0..if soak() { 5_000 } else { 150 }).map(|_| rng.below(good.len() as u64) as usize);
    for at in any.chain(database.len()..good.len()) {
        let mut bytes = good.clone();
        bytes[at] ^= MASKS[at % 3];
        assert!(!full_check(bytes).ok(), "byte {at} flipped under a trailer");
    }

    // Without: every structural byte, save those that nothing else in the file depends on.
    let chosen = positions(&walk);
    let missed = flip_all(&database, &chosen);
    let around = |at: usize| String::from_utf8_lossy(&database[at.saturating_sub(20)..at + 20]).into_owned();
    let shown: Vec<_> = missed.iter().take(20).map(|one| format!("{one:?} {:?}", around(one.0))).collect();
    assert!(
        missed.is_empty(),
        "{} of {} positions have flips that are not found: {shown:#?}",
        missed.len(),
        chosen.len()
    );

    // The same through the program, for some of each class.
    let file = dir.path().join("flipped.db");
    let mut seen: BTreeMap<Class, u32> = BTreeMap::new();
    for (at, piece) in chosen.iter().rev().filter(|(_, p)| p.hidden.is_none()) {
        let n = seen.entry(piece.class).or_default();
        *n += 1;
        if *n > 2 {
            continue;
        }
        for (bytes, is_proven) in [(&good, true), (&database, false)] {
            let mut bytes = bytes.clone();
            bytes[*at] ^= 0xff;
            std::fs::write(&file, bytes).expect("write a file");
            let said = refused(&check(&refloat, &file));
            let verified = refused(&verify(&refloat, &file));
            assert!(!verified.contains("cannot-be-proven"), "{verified}");
            assert!(!is_proven || verified.contains("trailer"), "{verified}");
            if matches!(piece.class, Class::Header | Class::BranchElement | Class::LeafElement | Class::RowKey) {
                assert!(said.contains("\"page\":"), "{said}");
            }
        }
    }
}

/// Whether the flip changed the number of a page into that of another tree page. Pages do not say which tree or which
/// transaction they belong to: an older copy with the same first key, or an older root, may be just as sound, and
/// `not_covered` says so. A page that is in use elsewhere, has other keys, or leaves a hole in history is found.
fn another_tree(database: &[u8], at: usize, mask: u8, piece: &Piece) -> bool {
    let field = match piece.class {
        Class::BranchElement => piece.at.start + 8..piece.at.end,
        Class::BucketValue => piece.at.start..piece.at.start + 8,
        _ => return false,
    };
    if !field.contains(&at) {
        return false;
    }
    let mut id: [u8; 8] = database[field.clone()].try_into().expect("8 bytes");
    id[at - field.start] ^= mask;
    let base = (u64::from_le_bytes(id) as usize).saturating_mul(4096);
    database.get(base..base.saturating_add(10)).is_some_and(|page| page[..8] == id && matches!(page[8..], [1 | 2, 0]))
}

/// Flips each position in turn, on all cores; gives those that were not found.
fn flip_all(database: &[u8], chosen: &[(usize, Piece)]) -> Vec<(usize, u8, Class, u64)> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let part = |part: Vec<&(usize, Piece)>| {
            let mut bytes = database.to_vec();
            let mut missed = Vec::new();
            for (i, (at, piece)) in part.into_iter().enumerate() {
                let small = piece.class != Class::RowKey && piece.class != Class::LeafElement;
                for mask in if small || soak() { &MASKS[..] } else { &MASKS[i % 3..=i % 3] } {
                    bytes[*at] ^= mask;
                    let found = !bare_check(&bytes).ok();
                    bytes[*at] ^= mask;
                    if !found && piece.hidden.is_none() && !another_tree(database, *at, *mask, piece) {
                        missed.push((*at, *mask, piece.class, piece.page));
                    }
                }
            }
            missed
        };
        let parts = (0..threads).map(|n| chosen.iter().skip(n).step_by(threads).collect());
        let running: Vec<_> = parts.map(|p| scope.spawn(move || part(p))).collect();
        running.into_iter().flat_map(|t| t.join().expect("no flip makes the checker panic")).collect()
    })
}

/// Claims of sizes that the file does not have, each in a file of its own.
fn hostile(database: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let walk = page_walk::walk(database, 0);
    let header = |branch: bool| {
        let piece = walk.pieces.iter().find(|p| {
            p.class == Class::Header && (database[p.at.start + 8] == 1) == branch && p.at.start >= 2 * walk.page_size
        });
        piece.expect("a page of this kind").at.start
    };
    let mut files = Vec::new();
    for (name, branch) in [("leaf", false), ("branch", true)] {
        for (what, at, bytes) in [
            ("overflow", 12, &u32::MAX.to_le_bytes()[..]),
            ("overflow of the whole file", 12, &(database.len() as u32 / 4096 - 8).to_le_bytes()),
            ("count", 10, &u16::MAX.to_le_bytes()),
            ("position", HEADER, &u32::MAX.to_le_bytes()),
            ("size", HEADER + 4, &u32::MAX.to_le_bytes()),
            ("more size", HEADER + 8, &u32::MAX.to_le_bytes()),
        ] {
            let mut file = database.to_vec();
            let at = header(branch) + at;
            file[at..at + bytes.len()].copy_from_slice(bytes);
            files.push((Box::leak(format!("{what} of a {name} page").into_boxed_str()) as &str, file));
        }
    }
    for (what, offset, value) in [
        ("high-water mark of 2^60", 40, 1u64 << 60),
        ("high-water mark of the last page id", 40, u64::MAX),
        ("high-water mark of 2^33", 40, 1 << 33),
        ("root page of 2^59", 16, 1 << 59),
        ("freelist page of 2^59", 32, 1 << 59),
        ("freelist on the root page", 32, 2),
        ("freelist on a meta page", 32, 0),
    ] {
        files.push((what, with_metas(database, walk.page_size, offset, value)));
    }
    files
}

/// A zstd frame header that claims `content` bytes, then an empty last block.
fn claiming_frame(content: u64) -> Vec<u8> {
    // Single segment, 8 bytes of content size.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    frame.extend(content.to_le_bytes());
    frame.extend([1, 0, 0]);
    frame
}

#[test]
fn claims_of_huge_sizes_cost_no_memory() {
    let dir = scratch();
    let (good, refloat) = sample(dir.path());
    let mut files = hostile(&good[..good.len() - TRAILER]);
    files.push(("frame of 2^60 bytes", claiming_frame(1 << 60)));
    files.push(("frame of the most bytes", claiming_frame(u64::MAX)));
    files.push(("frame of 16 MiB in nothing", claiming_frame(16 << 20)));
    let mut window = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff];
    window.extend([1, 0, 0]);
    files.push(("window of the largest size", window));
    let skip = [&0x184D_2A50u32.to_le_bytes()[..], &u32::MAX.to_le_bytes()].concat();
    files.push(("skippable frame of 4 GiB", skip.clone()));
    let mut index = skip;
    index[..4].copy_from_slice(&0x184D_2A5Eu32.to_le_bytes());
    index.extend([0xff; 60]);
    index.extend([60, 0, 0, 0]);
    index.extend(b"RFLTINDX");
    files.push(("frame index of noise", index));

    let path = dir.path().join("hostile");
    for (what, bytes) in files {
        std::fs::write(&path, bytes).expect("write a file");
        for command in [&["snapshot", "verify"][..], &["db", "check"], &["db", "inspect"], &["db", "keys"]] {
            little_memory(&refloat, command, &path, what);
        }
    }
    // A file that is as large as it claims, but has a hole where the claims point.
    for (what, bytes) in sparse(&good[..good.len() - TRAILER]) {
        std::fs::write(&path, bytes).expect("write a file");
        let file = std::fs::File::options().write(true).open(&path).expect("open a file");
        file.set_len(SPARSE).expect("make a hole");
        for command in [&["db", "check"][..], &["db", "keys"]] {
            little_memory(&refloat, command, &path, what);
        }
    }
}

/// Runs a command on a hostile file with limits on its address space and on what it really allocates.
#[track_caller]
fn little_memory(refloat: &Refloat, command: &[&str], path: &Path, what: &str) {
    let program = env!("CARGO_BIN_EXE_refloat");
    let limited = Run::new("prlimit").args(["--data=200000000", "--as=700000000", program, "-o", "json"]);
    let config = refloat.config_file();
    let output = limited.args(["--config", text(&config)]).args(command).args([text(path)]).run();
    assert!(!output.stderr.contains("panicked") && !output.stderr.contains("allocat"), "{what}: {output}");
    let may_pass = command[1] == "inspect" || command[1] == "keys";
    assert!(output.code == Some(65) || may_pass && output.code == Some(0), "{what}: {output}");
}

/// Bytes of a file with a hole.
const SPARSE: u64 = 1 << 30;

/// The last page of its kind claims most of a large, sparse file: by its header alone, and by an element too.
fn sparse(database: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let walk = page_walk::walk(database, 0);
    let mut files = Vec::new();
    for (what, branch, element) in [
        ("overflow of a leaf", false, false),
        ("value of a leaf", false, true),
        ("overflow of a branch", true, false),
        ("key of a branch", true, true),
    ] {
        let mut file = with_metas(database, walk.page_size, 40, SPARSE / 4096);
        let headers = walk.pieces.iter().filter(|p| p.class == Class::Header && p.at.start >= 2 * walk.page_size);
        let last = headers.filter(|p| (database[p.at.start + 8] == 1) == branch).map(|p| p.at.start).max();
        let at = last.expect("a page of this kind");
        let overflow = SPARSE / 4096 - at as u64 / 4096 - 1;
        file[at + 12..at + 16].copy_from_slice(&(overflow as u32).to_le_bytes());
        if element {
            let count = usize::from(u16::from_le_bytes([file[at + 10], file[at + 11]]));
            let size = at + HEADER + (count - 1) * 16 + if branch { 4 } else { 12 };
            file[size..size + 4].copy_from_slice(&((overflow * 4096) as u32).to_le_bytes());
        }
        files.push((what, file));
    }
    files
}

/// The database with another number in both meta pages, at this offset of their bodies, and checksums that fit.
fn with_metas(database: &[u8], page_size: usize, offset: usize, value: u64) -> Vec<u8> {
    let mut file = database.to_vec();
    for page in 0..2 {
        let body = page * page_size + HEADER;
        file[body + offset..body + offset + 8].copy_from_slice(&value.to_le_bytes());
        let sum = file[body..body + 56]
            .iter()
            .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
        file[body + 56..body + 64].copy_from_slice(&sum.to_le_bytes());
    }
    file
}
