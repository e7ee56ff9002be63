//! The snapshot stream against honest members of every line and against one that lies.

use std::time::{Duration, Instant};

use refloat::error::{Code, Error, Result};
use refloat::etcd::{Access, Member, SnapshotStream, StreamLimits};
use sha2::Digest;

use crate::bed::run::until;
use crate::bed::{Cluster, Fill, Liar, Lie, Line, block_on};

const LIMIT: Duration = Duration::from_secs(20);
const FOR_EVER: Duration = Duration::from_secs(60);

async fn start(url: &str, limits: StreamLimits) -> Result<SnapshotStream> {
    Member::connect(url, &Access::plain(LIMIT)).await?.snapshot(limits).await
}

/// All bytes, and the error that ended them.
fn take(url: &str, limits: StreamLimits) -> (Vec<u8>, Option<Error>) {
    let work = async {
        let mut bytes = Vec::new();
        let mut stream = match start(url, limits).await {
            Ok(stream) => stream,
            Err(error) => return (bytes, Some(error)),
        };
        loop {
            match stream.next().await {
                Ok(Some(blob)) => bytes.extend_from_slice(&blob),
                Ok(None) => return (bytes, None),
                Err(error) => {
                    assert!(stream.next().await.is_err(), "an error is never followed by a clean end");
                    return (bytes, Some(error));
                }
            }
        }
    };
    block_on(async { tokio::time::timeout(FOR_EVER, work).await.expect("a stream has limits") })
}

#[test]
fn honest_members_of_every_line() {
    for line in Line::ALL {
        let cluster = Cluster::start(line);
        Fill::new(&cluster).kubernetes(500);
        block_on(async {
            let limits = StreamLimits::new(LIMIT, FOR_EVER);
            let mut stream = start(cluster.node(0).client_url(), limits).await.expect("start");
            let mut bytes = Vec::new();
            assert_eq!(stream.remaining(), None);
            let first = stream.next().await.expect("the first blob").expect("not the end");
            let announced = first.len() as u64 + stream.remaining().expect("a first message");
            bytes.extend_from_slice(&first);
            while let Some(blob) = stream.next().await.expect("a blob") {
                bytes.extend_from_slice(&blob);
            }
            assert_eq!(stream.version().is_some(), line >= Line::V36, "{line}");
            assert_eq!((bytes.len() as u64, stream.received()), (announced + 32, announced + 32), "{line}");
            assert_eq!(stream.remaining(), Some(0), "{line}");
            let (database, trailer) = bytes.split_at(bytes.len() - 32);
            assert_eq!(sha2::Sha256::digest(database).as_slice(), trailer, "{line}");
        });
    }
}

#[test]
fn lies_end_within_the_limits() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(500);
    let liar = Liar::start(cluster.node(0).client_url());
    let (honest, error) = take(&liar.url(), StreamLimits::new(LIMIT, FOR_EVER));
    assert!(error.is_none(), "{error:?}");
    let (after, end) = (400_000, honest.len() as u64);
    let second = Duration::from_secs(1);
    let quick = StreamLimits::new(second, FOR_EVER);
    let patient = StreamLimits::new(LIMIT, FOR_EVER);
    let slow = |bytes, every| Lie::Trickle { after, bytes, every: Duration::from_millis(every) };
    let (cut, stalled, lies) = (Code::StreamCut, Code::StreamStalled, Code::StreamLies);
    for (lie, limits, code, cause) in [
        (Lie::CutOk { after: 0 }, patient, cut, "; 0 bytes received"),
        (Lie::CutOk { after }, patient, cut, "400000 bytes received"),
        (Lie::CutError { after, status: 14 }, patient, cut, "400000 bytes received"),
        (Lie::Drop { after }, patient, cut, "bytes received"),
        (Lie::Reset { after }, patient, cut, "bytes received"),
        (Lie::Stall { after: 0 }, quick, stalled, "no bytes for 1.0s; 0 bytes received"),
        (Lie::Stall { after }, quick, stalled, "no bytes for 1.0s; 400000 bytes received"),
        (Lie::Stall { after: end }, quick, stalled, "no bytes"),
        (slow(1, 50), quick, stalled, "at least 65536 are expected"),
        (slow(100, 5), quick, stalled, "at least 65536 are expected"),
        (Lie::EmptyForever { after: 0 }, quick, stalled, "no bytes"),
        (Lie::EmptyForever { after }, quick, stalled, "no bytes"),
        (Lie::Stall { after }, StreamLimits::new(FOR_EVER, second), stalled, "not finished within 1.0s"),
        (slow(1, 50), StreamLimits { floor: 0, ..StreamLimits::new(FOR_EVER, second) }, stalled, "not finished"),
        (Lie::TooLong { extra: u64::MAX }, patient, lies, "and sends more"),
        (Lie::Remaining(1 << 60), patient, cut, "ended it before"),
    ] {
        liar.lie(lie);
        let (bytes, error) = take(&liar.url(), limits);
        let error = error.unwrap_or_else(|| panic!("{lie:?} was accepted with {} bytes", bytes.len()));
        let why = error.why().join(": ");
        assert_eq!(error.code(), code, "{lie:?}: {why}");
        assert!(why.contains(cause), "{lie:?}: {why}");
        assert!(error.on().contains(&liar.url()), "{lie:?}: {error}");
        assert!(error.get_remedy().is_some(), "{lie:?}");
    }
    // Wrong bytes are not the stream's business: the verifier finds them in what was stored.
    for (lie, length) in [(Lie::WrongTrailer, end), (Lie::NoTrailer, end - 32), (Lie::Flip { at: after }, end)] {
        liar.lie(lie);
        let (bytes, error) = take(&liar.url(), patient);
        assert_eq!((bytes.len() as u64, error.map(|e| e.code())), (length, None), "{lie:?}");
    }
}

/// More than connections and their windows hold, so that the member cannot be done before we read.
fn large() -> Cluster {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).large(48, 1 << 20);
    cluster
}

#[test]
fn dropping_the_stream_frees_the_members_transaction() {
    let cluster = large();
    let node = cluster.node(0);
    // Counted when the transaction of a snapshot is closed.
    let closed = || node.metric("etcd_disk_backend_snapshot_duration_seconds_count").expect("a metric");
    let before = closed();
    let member = block_on(Member::connect(node.client_url(), &Access::plain(LIMIT))).expect("connect");
    let stream = block_on(async {
        let mut stream = member.snapshot(StreamLimits::new(LIMIT, FOR_EVER)).await.expect("start");
        stream.next().await.expect("a blob").expect("not the end");
        stream
    });
    assert_eq!(closed(), before, "the member holds the transaction as long as the stream is there");
    drop(stream);
    let freed = until(Instant::now() + FOR_EVER, || (closed() > before).then_some(()));
    assert!(freed.is_some(), "the transaction is still open");
    // The connection itself was not given up for it.
    block_on(member.status()).expect("status");
}

#[test]
fn a_slow_reader_is_not_the_members_fault() {
    let cluster = large();
    block_on(async {
        let stall = Duration::from_secs(2);
        let mut stream = start(cluster.node(0).client_url(), StreamLimits::new(stall, FOR_EVER)).await.expect("start");
        stream.next().await.expect("a blob");
        // The pause is the subject here: longer than the stall limit, and ours.
        tokio::time::sleep(stall + stall / 2).await;
        while stream.next().await.expect("a blob").is_some() {}
        assert!(stream.received() > 48 << 20);
    });
}

#[test]
fn a_member_that_stops_or_dies_half_way() {
    for (kill, code, cause) in [(false, Code::StreamStalled, "does not answer"), (true, Code::StreamCut, "is gone")] {
        let mut cluster = large();
        let url = cluster.node(0).client_url().to_owned();
        let limits = StreamLimits::new(Duration::from_secs(2), FOR_EVER);
        let mut stream = block_on(start(&url, limits)).expect("start");
        block_on(stream.next()).expect("a blob");
        if kill {
            cluster.node_mut(0).kill()
        } else {
            cluster.node(0).freeze()
        }
        let error = block_on(async {
            loop {
                match stream.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("the whole snapshot was under way"),
                    Err(error) => break error,
                }
            }
        });
        let why = error.why().join(": ");
        assert_eq!(error.code(), code, "{why}");
        assert!(why.contains(cause), "{why}");
        assert!(error.on().contains(&url), "{error}");
    }
}

/// A progress display wakes up often and must not make the reader deaf to a stall.
#[test]
fn a_reader_that_keeps_canceling_its_wait_still_sees_the_stall() {
    let cluster = large();
    let limits = StreamLimits::new(Duration::from_secs(2), FOR_EVER);
    let mut stream = block_on(start(cluster.node(0).client_url(), limits)).expect("start");
    block_on(stream.next()).expect("a blob");
    cluster.node(0).freeze();
    let error = block_on(async {
        let watch = async {
            loop {
                // So short that also the look which finds out why is canceled each time.
                match tokio::time::timeout(Duration::from_millis(10), stream.next()).await {
                    Ok(Ok(Some(_))) | Err(_) => {}
                    Ok(Ok(None)) => panic!("the whole snapshot was under way"),
                    Ok(Err(error)) => break error,
                }
            }
        };
        tokio::time::timeout(FOR_EVER / 2, watch).await.expect("the stall is seen")
    });
    assert_eq!(error.code(), Code::StreamStalled, "{:?}", error.why());
}
