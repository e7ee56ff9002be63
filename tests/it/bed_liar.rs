//! The bed's liar: honest until told otherwise, and each lie is told as it is described.

use std::time::Duration;

use etcd_client::Error;
use sha2::Digest;

use crate::bed::{Cluster, Fill, Liar, Lie, Line, Target, block_on};

const CUT: u64 = 20_000;

/// What a client saw of a snapshot.
#[derive(Debug, Default)]
struct Seen {
    bytes: Vec<u8>,
    messages: usize,
    /// None while the stream has not ended.
    end: Option<Result<(), Error>>,
}

/// Reads a snapshot to its end, or until the reader has enough; then it may stay silent for half a second, and that
/// alone is expected of it.
fn snapshot(url: &str, enough: impl Fn(&Seen) -> bool + Sync) -> Seen {
    let target = Target::from(url);
    block_on(async {
        let mut seen = Seen::default();
        let mut stream = match target.connect().await.snapshot().await {
            Ok(stream) => stream,
            Err(e) => return Seen { end: Some(Err(e)), ..seen },
        };
        while !enough(&seen) {
            match stream.message().await {
                Ok(Some(message)) => {
                    seen.bytes.extend_from_slice(message.blob());
                    seen.messages += 1;
                }
                Ok(None) => return Seen { end: Some(Ok(())), ..seen },
                Err(e) => return Seen { end: Some(Err(e)), ..seen },
            }
        }
        if let Ok(more) = tokio::time::timeout(Duration::from_millis(500), stream.message()).await {
            let more = more.map(|m| m.map(|m| m.blob().len()));
            panic!("silence was expected, not {more:?}");
        }
        seen
    })
}

fn to_its_end(_: &Seen) -> bool {
    false
}

/// How many bytes of the trailer differ from the hash of what is before it. Two snapshots of an idle member are not
/// the same bytes, each commit changes a meta page, so a snapshot is held against itself.
fn wrong_hash_bytes(snapshot: &[u8]) -> usize {
    let (database, trailer) = snapshot.split_at(snapshot.len() - 32);
    sha2::Sha256::digest(database).iter().zip(trailer).filter(|(a, b)| a != b).count()
}

fn start() -> (Cluster, Liar) {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(100);
    let liar = Liar::start(cluster.node(0).client_url());
    (cluster, liar)
}

#[test]
fn all_calls_pass_and_are_counted() {
    let (cluster, liar) = start();
    let through = Fill::new(liar.url());
    let revision = through.put("through", "the liar");
    assert_eq!(through.hash_kv(0), Fill::new(cluster.node(0)).hash_kv(0));

    let mut client = through.client();
    let watched = block_on(async {
        let options = etcd_client::WatchOptions::new().with_start_revision(revision);
        let mut stream = client.watch("through", Some(options)).await?;
        loop {
            if let Some(event) = stream.message().await?.and_then(|m| m.events().first().cloned()) {
                return Ok::<_, Error>(event.kv().map(|kv| kv.value().to_vec()));
            }
        }
    });
    assert_eq!(watched.expect("a watch").as_deref(), Some(&b"the liar"[..]), "streams in both directions pass");

    let honest = snapshot(&liar.url(), to_its_end);
    assert!(matches!(honest.end, Some(Ok(()))), "{:?}", honest.end);
    assert_eq!((honest.bytes.len() % 4096, wrong_hash_bytes(&honest.bytes)), (32, 0), "pages and a trailer");
    assert_eq!(
        (liar.calls("Snapshot"), liar.calls("HashKV"), liar.calls("Put"), liar.calls("Defragment")),
        (1, 1, 1, 0)
    );
}

#[test]
fn it_can_be_what_the_member_list_names() {
    let liar = Liar::listen();
    let cluster = Cluster::builder(Line::V36).members(3).advertise(1, &liar.url()).start();
    liar.stand_before(cluster.node(1).client_url());
    let members = cluster.node(0).etcdctl(&["member", "list"]).ok();
    assert!(members.contains(&liar.url()) && !members.contains(cluster.node(1).client_url()), "{members}");
    assert_eq!(Fill::new(liar.url()).hash_kv(0), Fill::new(cluster.node(1)).hash_kv(0));
}

#[test]
fn another_file_altogether() {
    let (_cluster, liar) = start();
    let honest: &'static [u8] = Box::leak(snapshot(&liar.url(), to_its_end).bytes.into_boxed_slice());
    Fill::new(liar.url()).put("later", "than that file");
    for bytes in [honest, &honest[..100], b""] {
        liar.lie(Lie::Instead(bytes));
        let seen = snapshot(&liar.url(), to_its_end);
        assert!(matches!(seen.end, Some(Ok(()))), "{:?}", seen.end);
        assert!(seen.bytes == bytes, "{} of {} bytes, or others", seen.bytes.len(), bytes.len());
    }
}

#[test]
fn streams_that_end_wrongly() {
    let (_cluster, liar) = start();
    let end = snapshot(&liar.url(), to_its_end).bytes.len();
    for (lie, length, fails) in [
        (Lie::CutOk { after: CUT }, 20_000, false),
        (Lie::CutError { after: CUT, status: 14 }, 20_000, true),
        (Lie::Drop { after: CUT }, 20_000, true),
        (Lie::Reset { after: CUT }, 20_000, true),
        (Lie::WrongTrailer, end, false),
        (Lie::NoTrailer, end - 32, false),
        (Lie::Flip { at: CUT }, end, false),
        (Lie::Remaining(1 << 60), end, false),
        (Lie::TooLong { extra: 100_000 }, end + 100_000, false),
    ] {
        liar.lie(lie);
        let Seen { bytes: told, end: ended, .. } = snapshot(&liar.url(), to_its_end);
        assert_eq!(matches!(ended, Some(Err(_))), fails, "{lie:?}: {ended:?}");
        // What was under way when a connection or a stream breaks may be lost, by the rules of HTTP/2.
        let broken = matches!(lie, Lie::Drop { .. } | Lie::Reset { .. });
        assert!(told.len() == length || (broken && told.len() < length), "{lie:?}: {}", told.len());
        match lie {
            Lie::WrongTrailer => assert_eq!(wrong_hash_bytes(&told), 1, "the database is right, its hash is not"),
            Lie::Flip { .. } => assert!(wrong_hash_bytes(&told) > 16, "the hash is right, the database is not"),
            Lie::Remaining(_) => assert_eq!(wrong_hash_bytes(&told), 0),
            Lie::TooLong { .. } => assert_eq!(wrong_hash_bytes(&told[..end]), 0),
            _ => {}
        }
    }
    liar.be_honest();
    assert_eq!(wrong_hash_bytes(&snapshot(&liar.url(), to_its_end).bytes), 0);
}

#[test]
fn streams_that_do_not_end() {
    let (_cluster, liar) = start();
    let cut = CUT as usize;

    liar.lie(Lie::Stall { after: CUT });
    assert_eq!(snapshot(&liar.url(), |seen| seen.bytes.len() >= cut).bytes.len(), cut);

    liar.lie(Lie::Trickle { after: CUT, bytes: 7, every: Duration::from_secs(1) });
    let trickled = snapshot(&liar.url(), |seen| seen.bytes.len() > cut);
    assert_eq!(trickled.bytes.len(), cut + 7, "one piece a second");

    // These never pause: a reader that gave up after so much has seen what there is to see.
    let url = liar.url();
    let read = |messages: usize| {
        let target = Target::from(url.as_str());
        block_on(async move {
            let mut stream = target.connect().await.snapshot().await?;
            let mut sizes = Vec::new();
            while sizes.len() < messages {
                sizes.push(stream.message().await?.map(|m| m.blob().len()));
            }
            Ok::<_, Error>(sizes)
        })
    };
    liar.lie(Lie::EmptyForever { after: CUT });
    let sizes = read(300).expect("a stream without end");
    assert_eq!(sizes.iter().map(|s| s.expect("no end")).sum::<usize>(), cut);
    liar.lie(Lie::TooLong { extra: u64::MAX });
    let sizes = read(2_000).expect("a stream without end");
    assert!(sizes.iter().map(|s| s.expect("no end")).sum::<usize>() > 50_000_000);
}

#[test]
fn hashes_that_are_wrong_or_do_not_come() {
    let (_cluster, liar) = start();
    let through = Fill::new(liar.url());
    let honest = through.hash_kv(0);
    liar.lie(Lie::WrongHash);
    let wrong = through.hash_kv(0);
    assert_eq!((wrong.revision, wrong.compact_revision), (honest.revision, honest.compact_revision));
    assert_ne!(wrong.hash, honest.hash);

    liar.lie(Lie::HashError { status: 12 });
    let mut client = through.client();
    let error = block_on(async { client.hash_kv(0).await }).expect_err("a status");
    assert!(matches!(&error, Error::GRpcStatus(s) if s.code() as i32 == 12), "{error}");

    liar.lie(Lie::HashHang);
    let silent = block_on(async { tokio::time::timeout(Duration::from_millis(500), client.hash_kv(0)).await });
    assert!(silent.is_err(), "{silent:?}");
    liar.be_honest();
    assert_eq!(through.hash_kv(0), honest);
}
