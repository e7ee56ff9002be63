//! The values in force, with where each was set, for `config show`.

use serde::Serialize;
use toml::Value;

use super::merge::{self, Origin, Table};
use super::settings::*;
use super::units::{format_duration, format_size};

/// One key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    /// Such as `store.0.retention.keep_last`.
    pub key: String,
    /// As it would be written; `None`: not set, and there is no default.
    pub value: Option<Value>,
    /// `None`: the default.
    pub origin: Option<ShownOrigin>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownOrigin {
    pub file: String,
    pub line: usize,
}

impl From<&Origin> for ShownOrigin {
    fn from(origin: &Origin) -> Self {
        ShownOrigin { file: origin.file.display().to_string(), line: origin.line }
    }
}

pub(super) fn shown(settings: &Settings, input: &Table) -> Vec<Shown> {
    let mut list = Vec::new();
    let mut add = |key: &str, value: Option<Value>| {
        let origin = merge::lookup(input, key).map(|item| ShownOrigin::from(&item.origin));
        list.push(Shown { key: key.into(), value, origin });
    };
    // Destructured, so that a new setting does not compile before it is shown.
    let Settings { node, paths: PathSettings { state, runtime }, etcd, stores, snapshot, health, maintain, fence } =
        settings;
    add("node", text(node));
    add("paths.state", text(state.display()));
    add("paths.runtime", text(runtime.display()));
    etcd_keys(etcd, &mut add);
    for (index, store) in stores.iter().enumerate() {
        store_keys(store, &format!("store.{index}"), &mut add);
    }
    snapshot_keys(snapshot, &mut add);
    let MaintainSettings { min_gain, min_gain_percent } = maintain;
    add("maintain.min_gain", text(format_size(*min_gain)));
    add("maintain.min_gain_percent", number(*min_gain_percent));
    fence_keys(fence, &mut add);
    health_keys(health, &mut add);
    list
}

type Add<'a> = dyn FnMut(&str, Option<Value>) + 'a;

fn etcd_keys(etcd: &EtcdSettings, add: &mut Add<'_>) {
    let EtcdSettings { member, endpoints, prefix, ca_file, client_cert, login, timeout, data_dir } = etcd;
    add("etcd.member", member.as_ref().and_then(text));
    add("etcd.endpoints", Some(Value::Array(endpoints.iter().map(|url| Value::String(url.clone())).collect())));
    add("etcd.prefix", text(prefix));
    add("etcd.ca_file", ca_file.as_ref().and_then(|path| text(path.display())));
    add("etcd.cert_file", client_cert.as_ref().and_then(|c| text(c.cert_file.display())));
    add("etcd.key_file", client_cert.as_ref().and_then(|c| text(c.key_file.display())));
    add("etcd.username", login.as_ref().and_then(|l| text(&l.username)));
    add("etcd.password_file", login.as_ref().and_then(|l| text(l.password_file.display())));
    add("etcd.timeout", text(format_duration(*timeout)));
    add("etcd.data_dir", data_dir.as_ref().and_then(|path| text(path.display())));
}

fn store_keys(store: &StoreSettings, at: &str, add: &mut Add<'_>) {
    let StoreSettings { name, url, path: _, min_free, max_bytes, scope, trash_grace, retention } = store;
    let mut add = |key: &str, value| add(&format!("{at}.{key}"), value);
    add("name", text(name));
    add("url", text(url));
    add(
        "min_free",
        text(match min_free {
            MinFree::Auto => "auto".into(),
            MinFree::Bytes(bytes) => format_size(*bytes),
        }),
    );
    add("max_bytes", max_bytes.map(|bytes| Value::String(format_size(bytes))));
    add(
        "scope",
        text(match scope {
            Scope::Node => "node",
            Scope::Cluster => "cluster",
        }),
    );
    add("trash_grace", text(format_duration(*trash_grace)));
    let RetentionSettings { keep_last, keep_within, keep_hourly, keep_daily, keep_weekly, keep_monthly, min_keep } =
        retention;
    add("retention.keep_last", number(*keep_last));
    add("retention.keep_within", text(format_duration(*keep_within)));
    add("retention.keep_hourly", number(*keep_hourly));
    add("retention.keep_daily", number(*keep_daily));
    add("retention.keep_weekly", number(*keep_weekly));
    add("retention.keep_monthly", number(*keep_monthly));
    add("retention.min_keep", number(*min_keep));
}

fn snapshot_keys(snapshot: &SnapshotSettings, add: &mut Add<'_>) {
    let SnapshotSettings { schedule, timezone, window, shift, agreement, rate, stall_timeout, max_duration } = snapshot;
    let (cron, every) = match schedule {
        Schedule::Cron(cron) => (text(cron.as_str()), None),
        Schedule::Every(period) => (None, text(format_duration(*period))),
    };
    add("snapshot.schedule", cron);
    add("snapshot.every", every);
    add("snapshot.timezone", text(timezone.iana_name().unwrap_or("UTC")));
    add("snapshot.window", window.as_ref().and_then(text));
    add("snapshot.shift", text(shift.map_or_else(|| "auto".into(), format_duration)));
    add(
        "snapshot.agreement",
        text(match agreement {
            Agreement::Auto => "auto",
            Agreement::Off => "off",
            Agreement::Always => "always",
        }),
    );
    add("snapshot.rate", text(rate.map_or_else(|| "off".into(), format_size)));
    add("snapshot.stall_timeout", text(format_duration(*stall_timeout)));
    add("snapshot.max_duration", text(format_duration(*max_duration)));
}

fn fence_keys(fence: &FenceSettings, add: &mut Add<'_>) {
    let FenceSettings { mode, target, agent_check, http } = fence;
    add("fence.mode", text(mode.word()));
    add(
        "fence.target",
        text(match target {
            FenceTarget::Auto => "auto",
            FenceTarget::Apiserver => "apiserver",
            FenceTarget::Etcd => "etcd",
        }),
    );
    add("fence.agent_check", text(agent_check));
    add("fence.http", text(http));
}

fn health_keys(health: &HealthSettings, add: &mut Add<'_>) {
    let HealthSettings { enabled, interval, timeout, apiservers, kubeconfig, write_probe, balancer, layout } = health;
    add("health.enabled", Some(Value::Boolean(*enabled)));
    add("health.interval", text(format_duration(*interval)));
    add("health.timeout", text(format_duration(*timeout)));
    let urls: Vec<Value> = apiservers.iter().map(|url| Value::String(url.clone())).collect();
    add("health.apiservers", (!urls.is_empty()).then_some(Value::Array(urls)));
    add("health.kubeconfig", text(kubeconfig.display()));
    add("health.write_probe", Some(Value::Boolean(*write_probe)));
    add("health.balancer", balancer.as_ref().and_then(text));
    add("health.layout", layout.and_then(|layout| text(layout.word())));
}

fn text(value: impl ToString) -> Option<Value> {
    Some(Value::String(value.to_string()))
}

fn number(value: u32) -> Option<Value> {
    Some(Value::Integer(value.into()))
}
