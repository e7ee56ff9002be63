//! Certificates, right and wrong, against real members: the code, the cause and the side that is at fault.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use refloat::error::{Code, Error};
use refloat::etcd::{Access, AccessFiles, Member};

use crate::bed::pki::Pair;
use crate::bed::process::{Process, bound_to_us};
use crate::bed::run::until;
use crate::bed::{Cluster, Line, Pki, Refloat, block_on, ports};

const LIMIT: Duration = Duration::from_secs(20);

fn files(ca: &Path, pair: Option<&Pair>) -> AccessFiles {
    AccessFiles {
        ca_file: Some(ca.into()),
        cert_file: pair.map(|p| p.cert.clone()),
        key_file: pair.map(|p| p.key.clone()),
        timeout: LIMIT,
        ..AccessFiles::default()
    }
}

fn access(ca: &Path, pair: Option<&Pair>) -> Access {
    Access::load(&files(ca, pair)).expect("files that can be read")
}

fn failure(url: &str, access: &Access) -> Error {
    let call = async { Member::connect(url, access).await?.status().await };
    block_on(call).expect_err("this cannot work")
}

fn expect(error: &Error, code: Code, cause: &str, remedy: &str) {
    let why = error.why().join(": ");
    assert_eq!(error.code(), code, "{why}");
    assert!(why.contains(cause), "{why}");
    assert!(error.get_remedy().is_some_and(|r| r.contains(remedy)), "{:?}", error.get_remedy());
}

#[test]
fn certificates_right_and_wrong_on_every_line() {
    for line in Line::ALL {
        let cluster = Cluster::builder(line).tls(true).start();
        let pki = cluster.pki().expect("certificates");
        let url = cluster.node(0).client_url();
        let by_name = url.replace("127.0.0.1", "localhost");
        for url in [url, by_name.as_str()] {
            let access = access(&pki.ca, Some(&pki.client));
            let status = block_on(async { Member::connect(url, &access).await?.status().await });
            assert_eq!(status.expect("the right certificates").member_id, cluster.node(0).member_id(), "{line}");
        }
        let refused = |ca, pair| failure(url, &access(ca, pair));
        let (denied, tls) = (Code::Permission, Code::TlsFailed);
        expect(&refused(&pki.ca, Some(&pki.expired)), denied, "our client certificate has expired", "renew");
        expect(&refused(&pki.ca, Some(&pki.foreign)), denied, "refused our client certificate", "cert_file");
        expect(&refused(&pki.ca, None), denied, "wants a client certificate", "cert_file");
        expect(&refused(&pki.foreign_ca, Some(&pki.client)), tls, "not signed by the authority in ca_file", "ca_file");
        let plain = url.replace("https://", "http://");
        expect(&failure(&plain, &Access::plain(LIMIT)), tls, "the port speaks TLS", "https://");
        cluster.node(0).freeze();
        let short = access(&pki.ca, Some(&pki.client)).with_timeout(Duration::from_secs(1));
        expect(&failure(url, &short), Code::MemberHung, "the process does not answer", "--member");
    }
}

#[test]
fn tls_on_a_plain_port_on_every_line() {
    for line in Line::ALL {
        let cluster = Cluster::start(line);
        let pki = Pki::make(cluster.dir());
        let url = cluster.node(0).client_url().replace("http://", "https://");
        let error = failure(&url, &access(&pki.ca, Some(&pki.client)));
        expect(&error, Code::TlsFailed, "the port speaks plain HTTP/2", "http://");
    }
}

/// An etcd with a server certificate of our choice (clusters of the bed have only good ones), on two loopback
/// addresses; gives the URL with the first.
fn etcd_with(dir: &Path, pair: &Pair) -> (Process, String) {
    let (client, peer) = (ports::free(), ports::free());
    let url = format!("https://127.0.0.1:{client}");
    let peer = format!("http://127.0.0.1:{peer}");
    let mut command = bound_to_us(Line::V36.etcd_program());
    let both = format!("{url},https://127.0.0.2:{client}");
    command.args(["--name=m1", "--listen-client-urls", &both, "--advertise-client-urls", &url]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.arg(format!("--initial-cluster=m1={peer}")).arg("--data-dir").arg(dir.join("data"));
    command.arg("--cert-file").arg(&pair.cert).arg("--key-file").arg(&pair.key);
    let log = std::fs::File::create(dir.join("log")).expect("make a log");
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(log);
    let process = Process::start(command);
    let port_opens = || process.listens_on(client).then_some(());
    until(Instant::now() + Duration::from_secs(60), port_opens).expect("etcd opens its port");
    (process, url)
}

#[test]
fn a_server_certificate_that_expired_or_names_another_host() {
    let dir = tempfile::tempdir().expect("make a directory");
    let pki = Pki::make(dir.path());
    let (_etcd, url) = etcd_with(dir.path(), &pki.expired);
    expect(
        &failure(&url, &access(&pki.ca, None)),
        Code::TlsFailed,
        "server certificate has expired on 2020-02-01",
        "renew",
    );

    let dir = tempfile::tempdir().expect("make a directory");
    let pki = Pki::make(dir.path());
    // It names 127.0.0.1, ::1 and localhost.
    let (_etcd, url) = etcd_with(dir.path(), &pki.server);
    let trusting = access(&pki.ca, None);
    block_on(async { Member::connect(&url, &trusting).await?.status().await }).expect("a name in the certificate");
    let other = url.replace("127.0.0.1", "127.0.0.2");
    expect(&failure(&other, &trusting), Code::TlsFailed, "does not name this host", "certificate");
}

#[test]
fn a_take_warns_a_month_before_a_certificate_ends() {
    let cluster = Cluster::builder(Line::V36).tls(true).start();
    let pki = cluster.pki().expect("certificates");
    for (pair, said) in [(&pki.client, None), (&pki.soon, Some("ends in 4 days"))] {
        let loaded = access(&pki.ca, Some(pair));
        assert_eq!(loaded.expires().len(), 2, "the authority and the client certificate");
        assert!(loaded.expires().iter().all(|one| one.not_before < one.not_after), "{:?}", loaded.expires());
        let refloat = Refloat::new(&cluster);
        let text = std::fs::read_to_string(refloat.config_file()).expect("read the configuration");
        let text = text.replace(&pki.client.cert.display().to_string(), &pair.cert.display().to_string());
        let text = text.replace(&pki.client.key.display().to_string(), &pair.key.display().to_string());
        std::fs::write(refloat.config_file(), text).expect("write the configuration");
        let output = refloat.run(&["snapshot", "take"]);
        assert!(output.success(), "{output}");
        match said {
            None => assert!(!output.stderr.contains("ends in"), "{output}"),
            Some(said) => {
                let warning = format!("client certificate {} {said}", pair.cert.display());
                assert!(output.stderr.contains(&warning), "{output}");
            }
        }
    }
}

#[test]
fn files_that_do_not_belong_together() {
    let dir = tempfile::tempdir().expect("make a directory");
    let pki = Pki::make(dir.path());
    let mixed = Pair { cert: pki.client.cert.clone(), key: pki.server.key.clone() };
    let no_key = Pair { cert: pki.client.cert.clone(), key: pki.client.cert.clone() };
    let gone = Pair { cert: pki.client.cert.clone(), key: PathBuf::from("/nonexistent/key") };
    for (ca, pair, on, cause) in [
        (&pki.ca, mixed, "key_file", "does not belong to the certificate"),
        (&pki.ca, no_key, "key_file", "no private key"),
        (&pki.ca, gone, "key_file", "No such file"),
        (&pki.client.key, pki.client.clone(), "ca_file", "no certificate"),
    ] {
        let error = Access::load(&files(ca, Some(&pair))).expect_err(cause);
        assert!(error.on().contains(on), "{error}");
        let why = error.why().join(": ");
        assert_eq!(error.code(), Code::Config);
        assert!(why.contains(cause), "{why}");
        assert!(error.get_remedy().is_some(), "{error}");
    }
}
