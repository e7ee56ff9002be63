//! Which member, and is it fit to be asked (design §6.1, law 10).

use std::time::Duration;

use jiff::Timestamp;

use crate::config::EtcdSettings;
use crate::error::{Code, Error, Result};
use crate::etcd::{
    Access, AccessFiles, Chosen, ClusterView, Member, MemberStatus, defects, expiry, host_addresses, own_member, pick,
    resolve, view,
};

/// The member and what it says of itself.
pub struct Fit {
    pub member: Member,
    pub chosen: Chosen,
    pub status: MemberStatus,
    pub view: ClusterView,
    pub access: Access,
    /// What a person should read although the work goes on.
    pub warnings: Vec<String>,
}

/// Client credentials from the configuration.
pub fn access(etcd: &EtcdSettings) -> Result<Access> {
    Access::load(&AccessFiles {
        ca_file: etcd.ca_file.clone(),
        cert_file: etcd.client_cert.as_ref().map(|c| c.cert_file.clone()),
        key_file: etcd.client_cert.as_ref().map(|c| c.key_file.clone()),
        username: etcd.login.as_ref().map(|l| l.username.clone()),
        password_file: etcd.login.as_ref().map(|l| l.password_file.clone()),
        timeout: etcd.timeout,
    })
}

/// Finds the member and refuses one that is gone, hung or a learner. `by_hand` names another than the own one.
/// `loaded`: credentials that were read already, by a process that may not read their files any more.
pub async fn preflight(etcd: &EtcdSettings, loaded: Option<&Access>, by_hand: Option<&str>) -> Result<Fit> {
    let access = match loaded {
        Some(access) => access.clone(),
        None => access(etcd)?,
    };
    let mut warnings = access.warnings().to_vec();
    warnings.extend(expiry::warnings(Timestamp::now(), &access));
    // Time for one slow member beside the others, not for each after the other.
    let view = view(&etcd.endpoints, &access, etcd.timeout + Duration::from_secs(3)).await;
    warnings.extend(view.warnings.iter().cloned());
    let chosen = match by_hand {
        Some(wanted) => pick(&view.members, wanted),
        None => {
            let endpoints = resolve(&etcd.endpoints, etcd.timeout).await;
            own_member(&view.members, etcd.member.as_deref(), &endpoints, &host_addresses()?)
        }
    };
    let chosen = match chosen {
        Ok(chosen) => chosen,
        // When nobody answers, that is the reason, not that a name is not found among none.
        Err(error) if view.members.is_empty() => match first_failure(view.failed) {
            Some(failure) => return Err(failure),
            None => return Err(error),
        },
        Err(error) => return Err(error),
    };
    let label = chosen.info.as_ref().map(|i| i.label()).unwrap_or_default();
    let member = Member::connect_named(&chosen.url, &label, &access).await?;
    let status = member.status().await?;
    if status.is_learner {
        return Err(Error::new(Code::MemberLearner, "take snapshot from", member.url())
            .because("the member is a learner: it may be behind the cluster without anybody noticing")
            .remedy("promote it, or name another member with --member"));
    }
    if let Some(other) = view.cluster_id.filter(|id| *id != status.cluster_id) {
        let on = member.url().to_string();
        return Err(Error::new(Code::Config, "take snapshot from", on)
            .because(format!("it belongs to cluster {:x}, the configured endpoints to {other:x}", status.cluster_id))
            .remedy("name the endpoints of one cluster; another cluster needs a configuration of its own"));
    }
    for defect in defects(&status.version) {
        let fixed = defect.fixed_in.map_or_else(|| "no fixed version is known".into(), |v| format!("fixed in {v}"));
        let text =
            format!("etcd {}: {} ({}; {fixed}; {})", status.version, defect.summary, defect.id, defect.reference);
        // Said every time only where a mere update helps; else it would be noise that hides what matters.
        if defect.has_patch_for(&status.version) { warnings.push(text) } else { tracing::info!("{text}") }
    }
    match &view.alarms {
        Some(alarms) => alarms.iter().for_each(|alarm| {
            warnings.push(format!("member {:x} has raised the alarm {}", alarm.member_id, alarm.kind.word()));
        }),
        None => warnings.push("alarms could not be read: whether one is raised is not known".into()),
    }
    if status.leader.is_none() {
        warnings.push("the member knows no leader: its data may be behind the cluster's".into());
    }
    Ok(Fit { member, chosen, status, view, access, warnings })
}

/// The failure that tells most: one that somebody has to mend before one that may pass.
fn first_failure(failed: Vec<(String, Error)>) -> Option<Error> {
    let mut errors: Vec<Error> = failed.into_iter().map(|(_, error)| error).collect();
    errors.sort_by_key(|e| match e.code() {
        Code::Permission | Code::TlsFailed | Code::Config => 0,
        Code::MemberHung => 1,
        _ => 2,
    });
    errors.into_iter().next()
}
