//! Input and surroundings in, [`Settings`] or the reason against them out. Touches no file.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use url::Url;

use super::input::{
    EtcdInput, FenceInput, HealthInput, Input, MaintainInput, PathsInput, RetentionInput, SnapshotInput, Span,
    StoreInput,
};
use super::merge::{self, Table};
use super::settings::*;
use super::window::Window;
use super::{Surroundings, credential, decode, schedule, units};
use crate::error::{Code, Error, Result};

/// Slots that are held against a window before it is called unreachable.
const SLOTS_TRIED: usize = 2000;

pub(super) fn settings(table: &Table, surroundings: &Surroundings) -> Result<Settings> {
    let input: Input = decode::decode(table).map_err(decode::Fault::into_error)?;
    let check = Check { table, surroundings };
    Ok(Settings {
        node: check.node(input.node)?,
        paths: check.paths(input.paths)?,
        etcd: check.etcd(input.etcd)?,
        stores: check.stores(input.store)?,
        snapshot: check.snapshot(input.snapshot)?,
        maintain: check.maintain(&input.maintain)?,
        fence: check.fence(input.fence)?,
        health: check.health(input.health)?,
    })
}

/// URLs of one sort of server.
struct UrlKind {
    schemes: &'static [&'static str],
    /// Where none is written.
    port: u16,
    is: &'static str,
}

const CLIENT_URL: UrlKind =
    UrlKind { schemes: &["http://", "https://"], port: 2379, is: "a client URL such as \"https://10.0.0.1:2379\"" };
const APISERVER_URL: UrlKind =
    UrlKind { schemes: &["https://"], port: 6443, is: "the URL of an apiserver such as \"https://10.0.0.1:6443\"" };

struct Check<'a> {
    table: &'a Table,
    surroundings: &'a Surroundings,
}

impl Check<'_> {
    /// An error at `key`, or at the nearest table around it that was written.
    fn refuse(&self, key: &str, because: impl std::fmt::Display) -> Error {
        let mut path = key;
        let place = loop {
            match (merge::lookup(self.table, path), path.rsplit_once('.')) {
                (Some(item), _) => break item.origin.to_string(),
                (None, Some((outer, _))) => path = outer,
                (None, None) => break "defaults".into(),
            }
        };
        Error::new(Code::Config, "read configuration", place).because(format!("{key}: {because}"))
    }

    fn node(&self, given: Option<String>) -> Result<String> {
        const ALLOWED: &str = "a-z, 0-9, dot and hyphen, at most 63 characters";
        let usable = |name: &str| {
            let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-';
            (1..=63).contains(&name.len()) && name.bytes().all(allowed)
        };
        match given {
            Some(name) if usable(&name) => Ok(name),
            Some(name) => Err(self.refuse("node", format!("{name:?} is not a node name: {ALLOWED}"))),
            None => {
                let host = &self.surroundings.host_name;
                let label = host.split('.').next().unwrap_or_default().to_ascii_lowercase();
                if usable(&label) {
                    return Ok(label);
                }
                let because = format!("the host name {host:?} does not begin with a usable name ({ALLOWED})");
                Err(self.refuse("node", because).remedy("set `node` in the configuration"))
            }
        }
    }

    fn paths(&self, input: PathsInput) -> Result<PathSettings> {
        let default = PathSettings::default();
        Ok(PathSettings {
            state: self.absolute("paths.state", input.state, default.state)?,
            runtime: self.absolute("paths.runtime", input.runtime, default.runtime)?,
        })
    }

    fn absolute(&self, key: &str, given: Option<PathBuf>, default: PathBuf) -> Result<PathBuf> {
        let path = given.unwrap_or(default);
        if is_plain_absolute(&path) {
            Ok(path)
        } else {
            Err(self.refuse(key, format!("{path:?} is not an absolute path without `..`")))
        }
    }

    fn etcd(&self, input: EtcdInput) -> Result<EtcdSettings> {
        let default = EtcdSettings::default();
        let endpoints = match input.endpoints {
            None => default.endpoints,
            Some(list) => self.endpoints(list)?,
        };
        let prefix = input.prefix.unwrap_or(default.prefix);
        if !prefix.starts_with('/') || prefix.ends_with('/') {
            let because = format!("{prefix:?} is not a prefix: it begins with `/` and does not end with it");
            return Err(self.refuse("etcd.prefix", because));
        }
        if input.member.as_deref() == Some("") {
            return Err(self.refuse("etcd.member", "empty: write a member's name, id or client URL"));
        }
        let ca_file = self.file("etcd.ca_file", input.ca_file)?;
        if let (Some(https), None) = (endpoints.iter().find(|url| url.starts_with("https:")), &ca_file) {
            let because = format!("{https} needs `ca_file`: there are no built-in certificate authorities");
            return Err(self.refuse("etcd.endpoints", because));
        }
        let cert_file = self.file("etcd.cert_file", input.cert_file)?;
        let key_file = self.file("etcd.key_file", input.key_file)?;
        let client_cert = self
            .both(("etcd.cert_file", cert_file), ("etcd.key_file", key_file))?
            .map(|(cert_file, key_file)| ClientCert { cert_file, key_file });
        let password_file = self.file("etcd.password_file", input.password_file)?;
        let login = self
            .both(("etcd.username", input.username), ("etcd.password_file", password_file))?
            .map(|(username, password_file)| Login { username, password_file });
        let timeout = self.within("etcd.timeout", input.timeout, default.timeout, "100ms", "5m")?;
        let data_dir = match input.data_dir {
            Some(path) => Some(self.absolute("etcd.data_dir", Some(path), PathBuf::new())?),
            None => None,
        };
        Ok(EtcdSettings { member: input.member, endpoints, prefix, ca_file, client_cert, login, timeout, data_dir })
    }

    fn endpoints(&self, list: Vec<String>) -> Result<Vec<String>> {
        const KEY: &str = "etcd.endpoints";
        let endpoints = self.urls(KEY, list, &CLIENT_URL)?;
        if endpoints.is_empty() {
            return Err(self.refuse(KEY, "the list is empty"));
        }
        Ok(endpoints)
    }

    /// Each as scheme, host and port alone.
    fn urls(&self, key: &str, list: Vec<String>, kind: &UrlKind) -> Result<Vec<String>> {
        let mut urls: Vec<String> = Vec::new();
        for text in list {
            let url = self.url(key, &text, kind)?;
            if urls.contains(&url) {
                return Err(self.refuse(key, format!("{text:?} is there twice")));
            }
            urls.push(url);
        }
        Ok(urls)
    }

    fn url(&self, key: &str, text: &str, kind: &UrlKind) -> Result<String> {
        let plain = kind.schemes.iter().any(|scheme| text.starts_with(scheme));
        let url = Url::parse(text).ok().filter(|url| {
            let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
            let anonymous = url.username().is_empty() && url.password().is_none();
            plain && url.has_host() && bare && anonymous
        });
        let Some(url) = url else {
            return Err(self.refuse(key, format!("{text:?} is not {}", kind.is)));
        };
        let port = port(&url, text, kind.port);
        Ok(format!("{}://{}:{port}", url.scheme(), url.host_str().unwrap_or_default()))
    }

    fn health(&self, input: HealthInput) -> Result<HealthSettings> {
        let default = HealthSettings::default();
        let kubeconfig = self.file("health.kubeconfig", input.kubeconfig)?.unwrap_or(default.kubeconfig);
        let balancer = match input.balancer {
            Some(text) => Some(self.url("health.balancer", &text, &APISERVER_URL)?),
            None => None,
        };
        let apiservers = self.urls("health.apiservers", input.apiservers.unwrap_or_default(), &APISERVER_URL)?;
        if let Some(twice) = balancer.as_ref().filter(|url| apiservers.contains(url)) {
            let because = format!("{twice} is one of `apiservers` too: it is not the balancer's address");
            return Err(self.refuse("health.balancer", because));
        }
        Ok(HealthSettings {
            enabled: input.enabled.unwrap_or(default.enabled),
            interval: self.within("health.interval", input.interval, default.interval, "500ms", "10s")?,
            timeout: self.within("health.timeout", input.timeout, default.timeout, "200ms", "5s")?,
            apiservers,
            kubeconfig,
            write_probe: input.write_probe.unwrap_or(default.write_probe),
            balancer,
            layout: input.layout,
        })
    }

    /// A path, or `credential:NAME` for a file that systemd hands to the service.
    fn file(&self, key: &str, given: Option<String>) -> Result<Option<PathBuf>> {
        let Some(text) = given else { return Ok(None) };
        let Some(name) = text.strip_prefix(credential::SCHEME) else {
            return self.absolute(key, Some(text.into()), PathBuf::new()).map(Some);
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(allowed) {
            let because = format!("{name:?} is not a credential's name: letters, digits, dot, hyphen, underscore");
            return Err(self.refuse(key, because));
        }
        Ok(Some(credential::resolve(name, self.surroundings)))
    }

    /// Two values that make sense only together.
    fn both<A, B>(&self, a: (&str, Option<A>), b: (&str, Option<B>)) -> Result<Option<(A, B)>> {
        match (a, b) {
            ((_, Some(a)), (_, Some(b))) => Ok(Some((a, b))),
            ((_, None), (_, None)) => Ok(None),
            ((has, Some(_)), (wants, None)) | ((wants, None), (has, Some(_))) => {
                Err(self.refuse(has, format!("it needs `{wants}` beside it")))
            }
        }
    }

    fn stores(&self, input: Vec<StoreInput>) -> Result<Vec<StoreSettings>> {
        let mut names = HashSet::new();
        let mut paths: Vec<PathBuf> = Vec::new();
        let given = if input.is_empty() {
            vec![StoreInput {
                name: Some(StoreSettings::DEFAULT_NAME.into()),
                url: Some(StoreSettings::DEFAULT_URL.into()),
                ..StoreInput::default()
            }]
        } else {
            input
        };
        let mut stores = Vec::new();
        for (index, input) in given.into_iter().enumerate() {
            let at = format!("store.{index}");
            let store = self.store(&at, input)?;
            if !names.insert(store.name.clone()) {
                return Err(
                    self.refuse(&format!("{at}.name"), format!("{:?} is the name of another store", store.name))
                );
            }
            // One directory under two names would be counted, thinned and swept twice.
            if let Some(other) = paths.iter().find(|p| p.starts_with(&store.path) || store.path.starts_with(p)) {
                let because = format!("{} overlaps another store at {}", store.path.display(), other.display());
                return Err(self.refuse(&format!("{at}.url"), because));
            }
            paths.push(store.path.clone());
            stores.push(store);
        }
        Ok(stores)
    }

    fn store(&self, at: &str, input: StoreInput) -> Result<StoreSettings> {
        let key = |name: &str| format!("{at}.{name}");
        let missing = |name: &str| self.refuse(at, format!("`{name}` is missing"));
        let name = input.name.ok_or_else(|| missing("name"))?;
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if !(1..=63).contains(&name.len()) || !name.bytes().all(allowed) {
            let because = format!("{name:?} is not a store's name: a-z, 0-9 and hyphen, at most 63 characters");
            return Err(self.refuse(&key("name"), because));
        }
        let text = input.url.ok_or_else(|| missing("url"))?;
        // `file:backups` parses as well, as /backups: a relative path is no mistake to be mended by guessing.
        let absolute = text.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("file:///"));
        let local = Url::parse(&text).ok().filter(|url| {
            absolute
                && url.scheme() == "file"
                && url.host_str().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        });
        // Through its components a path loses a slash at its end.
        let found = local.and_then(|url| url.to_file_path().ok().map(|path| (url, path.components().collect())));
        let Some((url, path)) = found.filter(|(_, path): &(Url, PathBuf)| is_plain_absolute(path)) else {
            let because = format!("{text:?} is not a store this version knows: write \"file:///absolute/directory\"");
            return Err(self.refuse(&key("url"), because));
        };
        let max_bytes = input.max_bytes.map(|size| size.0);
        if max_bytes.is_some_and(|bytes| bytes < 1 << 20) {
            return Err(self.refuse(&key("max_bytes"), "at least 1MiB"));
        }
        let grace = StoreSettings::DEFAULT_TRASH_GRACE;
        Ok(StoreSettings {
            name,
            url,
            path,
            min_free: input.min_free.unwrap_or(MinFree::Auto),
            max_bytes,
            scope: input.scope.unwrap_or(Scope::Node),
            trash_grace: self.within(&key("trash_grace"), input.trash_grace, grace, "0s", "365d")?,
            retention: self.retention(&key("retention"), input.retention)?,
        })
    }

    fn retention(&self, at: &str, input: RetentionInput) -> Result<RetentionSettings> {
        let default = RetentionSettings::default();
        let within =
            self.within(&format!("{at}.keep_within"), input.keep_within, default.keep_within, "0s", "3650d")?;
        let rules = RetentionSettings {
            keep_last: input.keep_last.map_or(default.keep_last, |n| n.0),
            keep_within: within,
            keep_hourly: input.keep_hourly.map_or(default.keep_hourly, |n| n.0),
            keep_daily: input.keep_daily.map_or(default.keep_daily, |n| n.0),
            keep_weekly: input.keep_weekly.map_or(default.keep_weekly, |n| n.0),
            keep_monthly: input.keep_monthly.map_or(default.keep_monthly, |n| n.0),
            min_keep: input.min_keep.map_or(default.min_keep, |n| n.0),
        };
        let only_last = rules.keep_within.is_zero()
            && [rules.keep_hourly, rules.keep_daily, rules.keep_weekly, rules.keep_monthly] == [0; 4];
        if only_last && rules.keep_last == 0 && rules.min_keep == 0 {
            return Err(self
                .refuse(at, "every rule is 0, so nothing would be kept")
                .remedy("set at least one keep_… rule"));
        }
        // `min_keep` is a floor under the rules. Where nothing but it can hold a snapshot, one of the two is a slip.
        if only_last && rules.min_keep > rules.keep_last {
            let because = format!(
                "the rules contradict each other: min_keep = {} keeps more than keep_last = {}, and all others are 0",
                rules.min_keep, rules.keep_last
            );
            return Err(self.refuse(at, because).remedy("raise keep_last to min_keep, or lower min_keep"));
        }
        Ok(rules)
    }

    fn snapshot(&self, input: SnapshotInput) -> Result<SnapshotSettings> {
        if input.schedule.is_some() && input.every.is_some() {
            let because = "`schedule` and `every` are both set";
            return Err(self.refuse("snapshot.every", because).remedy("keep one of the two"));
        }
        let schedule = match input.every {
            Some(_) => Schedule::Every(self.within("snapshot.every", input.every, Duration::ZERO, "10s", "366d")?),
            None => {
                let text = input.schedule.as_deref().unwrap_or(SnapshotSettings::DEFAULT_SCHEDULE);
                let cron = schedule::parse(text).map_err(|why| {
                    let because = format!("{text:?} is not a schedule: {why}");
                    let remedy =
                        "write five fields: minute, hour, day of month, month, day of week; such as \"*/30 * * * *\"";
                    self.refuse("snapshot.schedule", because).remedy(remedy)
                })?;
                Schedule::Cron(Box::new(cron))
            }
        };
        let name = input.timezone.as_deref().unwrap_or(SnapshotSettings::DEFAULT_TIMEZONE);
        let timezone = match name {
            "UTC" => TimeZone::UTC,
            _ => TimeZone::get(name).map_err(|e| {
                let remedy = "write a name from the host's time zone database, such as \"UTC\" or \"Europe/Berlin\"";
                self.refuse("snapshot.timezone", e).remedy(remedy)
            })?,
        };
        let stall = SnapshotSettings::DEFAULT_STALL_TIMEOUT;
        let longest = SnapshotSettings::DEFAULT_MAX_DURATION;
        Ok(SnapshotSettings {
            window: self.window(input.window, &schedule, &timezone)?,
            shift: self.shift(input.shift)?,
            schedule,
            timezone,
            agreement: input.agreement.unwrap_or(Agreement::Auto),
            rate: self.rate(input.rate)?,
            stall_timeout: self.within("snapshot.stall_timeout", input.stall_timeout, stall, "1s", "1h")?,
            max_duration: self.within("snapshot.max_duration", input.max_duration, longest, "2m", "7d")?,
        })
    }

    fn window(&self, given: Option<String>, schedule: &Schedule, timezone: &TimeZone) -> Result<Option<Window>> {
        const KEY: &str = "snapshot.window";
        let Some(text) = given else { return Ok(None) };
        let Some(window) = Window::parse(&text) else {
            let because = format!("{text:?} is not a window such as \"22:00-06:00\"");
            return Err(self.refuse(KEY, because));
        };
        // Where a period begins to count is not known here.
        if matches!(schedule, Schedule::Every(_)) {
            return Ok(Some(window));
        }
        let mut at = Timestamp::UNIX_EPOCH;
        for _ in 0..SLOTS_TRIED {
            match schedule.nth_after(at, 1, timezone) {
                Some(next) if window.holds(next, timezone) => return Ok(Some(window)),
                Some(next) => at = next,
                None => break,
            }
        }
        Err(self.refuse(KEY, format!("no slot of the schedule lies within {window}")))
    }

    fn shift(&self, given: Option<String>) -> Result<Option<Duration>> {
        const KEY: &str = "snapshot.shift";
        match given.as_deref() {
            None | Some("auto") => Ok(None),
            Some(text) => match units::parse_duration(text) {
                Ok(shift) if shift <= Duration::from_secs(3600) => Ok(Some(shift)),
                Ok(_) => Err(self.refuse(KEY, format!("{text} is more than an hour"))),
                Err(e) => Err(self.refuse(KEY, e)),
            },
        }
    }

    fn maintain(&self, input: &MaintainInput) -> Result<MaintainSettings> {
        let default = MaintainSettings::default();
        let percent = input.min_gain_percent.as_ref().map_or(default.min_gain_percent, |count| count.0);
        if percent > 100 {
            return Err(self.refuse("maintain.min_gain_percent", format!("{percent} is more than 100")));
        }
        let min_gain = input.min_gain.as_ref().map_or(default.min_gain, |size| size.0);
        Ok(MaintainSettings { min_gain, min_gain_percent: percent })
    }

    fn rate(&self, given: Option<String>) -> Result<Option<u64>> {
        const KEY: &str = "snapshot.rate";
        match given.as_deref() {
            None => Ok(Some(SnapshotSettings::DEFAULT_RATE)),
            Some("off") => Ok(None),
            Some(text) => match units::parse_size(text) {
                Ok(rate) if rate >= SnapshotSettings::LEAST_RATE => Ok(Some(rate)),
                Ok(_) => Err(self
                    .refuse(KEY, format!("{text} is below 10MiB a second"))
                    .remedy("a slower stream keeps etcd from freeing pages for too long; or write \"off\"")),
                Err(e) => Err(self.refuse(KEY, format!("{e}; or \"off\""))),
            },
        }
    }

    fn fence(&self, input: FenceInput) -> Result<FenceSettings> {
        let default = FenceSettings::default();
        let agent_check = self.address("fence.agent_check", input.agent_check, default.agent_check)?;
        let http = self.address("fence.http", input.http, default.http)?;
        // The same port on any address and on one of them: only one could be had.
        if agent_check.port() == http.port() {
            return Err(self.refuse("fence.http", format!("port {} is that of agent_check as well", http.port())));
        }
        Ok(FenceSettings {
            mode: input.mode.unwrap_or(default.mode),
            target: input.target.unwrap_or(default.target),
            agent_check,
            http,
        })
    }

    fn address(&self, key: &str, given: Option<String>, default: SocketAddr) -> Result<SocketAddr> {
        let Some(text) = given else { return Ok(default) };
        let parsed = text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
        parsed.ok_or_else(|| {
            let because = format!("{text:?} is not an address with a port such as \"0.0.0.0:9978\" or \"[::1]:9978\"");
            self.refuse(key, because)
        })
    }

    fn within(&self, key: &str, given: Option<Span>, default: Duration, least: &str, most: &str) -> Result<Duration> {
        let value = given.map_or(default, |span| span.0);
        let bound = |text| units::parse_duration(text).map_err(|e| self.refuse(key, e));
        if value < bound(least)? || value > bound(most)? {
            let because = format!("{} is outside {least} to {most}", units::format_duration(value));
            return Err(self.refuse(key, because));
        }
        Ok(value)
    }
}

fn is_plain_absolute(path: &Path) -> bool {
    let plain = |c: Component<'_>| matches!(c, Component::RootDir | Component::Normal(_));
    // The root itself is never meant.
    path.is_absolute()
        && path.parent().is_some()
        && path.components().all(plain)
        && !path.as_os_str().as_encoded_bytes().contains(&0)
}

/// The port of a URL: the server's usual one unless another was written. The parser hides a written port that is the
/// scheme's own, so that one is looked for in the text.
fn port(url: &Url, text: &str, usual: u16) -> u16 {
    let written = || text.trim_end_matches('/').rsplit(':').next().and_then(|end| end.parse().ok());
    url.port().or_else(|| url.port_or_known_default().filter(|own| written() == Some(*own))).unwrap_or(usual)
}
