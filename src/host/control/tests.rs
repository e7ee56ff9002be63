//! Against a systemd of our own on a bus of our own.

use super::super::fake::{Bus, DEADLINE, Fake, Systemd};
use super::*;

async fn started(bus: &Bus) -> (Systemd, Control) {
    let systemd = Systemd::start(bus, &[("etcd.service", Fake::RUNNING)]).await;
    let control = Control::connect(Some(&bus.address()), DEADLINE).await.unwrap();
    (systemd, control)
}

#[tokio::test(flavor = "multi_thread")]
async fn our_job_is_found_among_others_although_it_ends_before_the_answer() {
    let Some(bus) = Bus::start() else { return };
    let (systemd, control) = started(&bus).await;
    control.stop_unit("etcd.service", DEADLINE).await.unwrap();
    control.start_unit("etcd.service", DEADLINE).await.unwrap();
    control.restart_unit("etcd.service", DEADLINE).await.unwrap();
    control.reload_daemon(DEADLINE).await.unwrap();
    let links = control.enable_units(&["a.service", "b.path"], DEADLINE).await.unwrap();
    assert_eq!(links, ["/etc/wants/a.service", "/etc/wants/b.path"]);
    let calls = [
        "stop etcd.service replace",
        "start etcd.service replace",
        "restart etcd.service replace",
        "reload",
        "enable a.service b.path false false",
    ];
    assert_eq!(systemd.state.lock().unwrap().calls, calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_result_is_an_error_that_names_it() {
    let Some(bus) = Bus::start() else { return };
    let (systemd, control) = started(&bus).await;
    for result in ["failed", "canceled", "timeout", "dependency", "skipped"] {
        systemd.state.lock().unwrap().job_result = Some(result);
        let err = control.start_unit("etcd.service", DEADLINE).await.unwrap_err();
        assert_eq!((err.code(), err.on()), (Code::UnitFailed, "etcd.service"));
        assert!(err.line().contains(result), "{}", err.line());
    }
    // It never ends: the deadline does.
    systemd.state.lock().unwrap().job_result = None;
    let err = control.stop_unit("etcd.service", Duration::from_millis(300)).await.unwrap_err();
    assert!(err.line().contains("not done within 300ms"), "{}", err.line());
    let err = control.start_unit("none.service", DEADLINE).await.unwrap_err();
    assert!(err.line().contains("no such unit"), "{}", err.line());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_systemd_or_a_bus_it_says_so() {
    let tmp = tempfile::tempdir().unwrap();
    let address = format!("unix:path={}", tmp.path().join("none").display());
    assert_eq!(Control::connect(Some(&address), DEADLINE).await.unwrap_err().code(), Code::UnitFailed);
    let Some(mut bus) = Bus::start() else { return };
    let err = Control::connect(Some(&bus.address()), DEADLINE).await.unwrap_err();
    assert_eq!(
        (err.code(), err.get_remedy()),
        (Code::UnitFailed, Some("run it on a system that was booted with systemd"))
    );
    // The bus dies under a call.
    let (systemd, control) = started(&bus).await;
    systemd.state.lock().unwrap().job_result = None;
    let call = tokio::spawn(async move { control.start_unit("etcd.service", DEADLINE).await });
    let asked = async {
        while systemd.state.lock().unwrap().calls.is_empty() {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(DEADLINE, asked).await.unwrap();
    bus.stop();
    assert_eq!(call.await.unwrap().unwrap_err().code(), Code::UnitFailed);
}
