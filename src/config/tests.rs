//! The whole way from text to settings, and the sample file against the code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::fragment::Fragment;
use super::*;
use crate::error::{Code, Error};

fn surroundings() -> Surroundings {
    Surroundings { root: "/nowhere".into(), host_name: "CP1.example.org".into(), credentials: None }
}

fn parse_in(text: &str, surroundings: &Surroundings) -> Result<Loaded> {
    let fragment = Fragment { path: "/c.toml".into(), text: text.into() };
    let input = merge::merge(&[fragment])?;
    let settings = validate::settings(&input, surroundings)?;
    Ok(Loaded { settings, files: Vec::new(), input })
}

fn parse(text: &str) -> Result<Settings> {
    parse_in(text, &surroundings()).map(|loaded| loaded.settings)
}

fn refused(text: &str) -> Error {
    parse(text).err().unwrap_or_else(|| panic!("accepted: {text}"))
}

#[test]
fn nothing_written_is_a_working_configuration() {
    let settings = parse("").unwrap();
    assert_eq!(settings.node, "cp1");
    assert_eq!(settings.etcd.endpoints, ["http://127.0.0.1:2379"]);
    assert_eq!(settings.etcd.prefix, "/registry");
    assert_eq!(settings.paths.state, Path::new("/var/lib/refloat"));
    let [store] = settings.stores.as_slice() else { panic!("{:?}", settings.stores) };
    assert_eq!((store.name.as_str(), store.path.as_path()), ("local", Path::new("/var/lib/refloat/store")));
    assert_eq!((store.min_free, store.max_bytes, store.scope), (MinFree::Auto, None, Scope::Node));
    assert_eq!(store.trash_grace, Duration::from_secs(86_400));
    assert_eq!(settings.snapshot.agreement, Agreement::Auto);
    assert_eq!((settings.fence.mode, settings.fence.target), (FenceMode::Advise, FenceTarget::Auto));
    assert!(matches!(&settings.snapshot.schedule, Schedule::Cron(cron) if cron.as_str() == "*/30 * * * *"));
}

#[test]
fn everything_written_arrives() {
    let text = "
        node = 'n.1-a'
        [paths]
        state = '/s'
        runtime = '/r'
        [etcd]
        member = 'm'
        endpoints = ['https://h:443/', 'http://[::1]', 'https://10.0.0.1:2379']
        prefix = '/p'
        ca_file = '/ca'
        cert_file = '/cert'
        key_file = '/key'
        username = 'u'
        password_file = '/pw'
        timeout = '250ms'
        data_dir = '/var/lib/etcd'
        [[store]]
        name = 'a'
        url = 'file:///a%20b/'
        min_free = '2GiB'
        max_bytes = '20GiB'
        scope = 'cluster'
        trash_grace = '0s'
        retention = { keep_last = 1, keep_within = '1h', keep_hourly = 2, keep_daily = 3, keep_weekly = 4, keep_monthly = 5, min_keep = 6 }
        [snapshot]
        every = '30m'
        timezone = 'UTC'
        agreement = 'off'
        stall_timeout = '1m'
        max_duration = '3h'
        rate = '20MiB'
        [maintain]
        min_gain = '1MiB'
        min_gain_percent = 7
        [fence]
        mode = 'balancer'
        target = 'etcd'
        agent_check = '127.0.0.1:1'
        http = '[::1]:2'
        [health]
        enabled = false
        interval = '2s'
        timeout = '500ms'
        apiservers = ['https://h', 'https://[::1]:443/']
        kubeconfig = '/k'
        write_probe = false
        balancer = 'https://vip:8443'
        layout = 'all'";
    let Settings { node, paths, etcd, stores, snapshot, health, maintain, fence } = parse(text).unwrap();
    assert_eq!((fence.mode, fence.target), (FenceMode::Balancer, FenceTarget::Etcd));
    assert_eq!((fence.agent_check.to_string(), fence.http.to_string()), ("127.0.0.1:1".into(), "[::1]:2".into()));
    assert_eq!(maintain, MaintainSettings { min_gain: 1 << 20, min_gain_percent: 7 });
    assert_eq!(snapshot.rate, Some(20 << 20));
    assert_eq!((node.as_str(), paths), ("n.1-a", PathSettings { state: "/s".into(), runtime: "/r".into() }));
    assert_eq!(
        etcd,
        EtcdSettings {
            member: Some("m".into()),
            endpoints: vec!["https://h:443".into(), "http://[::1]:2379".into(), "https://10.0.0.1:2379".into()],
            prefix: "/p".into(),
            ca_file: Some("/ca".into()),
            client_cert: Some(ClientCert { cert_file: "/cert".into(), key_file: "/key".into() }),
            login: Some(Login { username: "u".into(), password_file: "/pw".into() }),
            timeout: Duration::from_millis(250),
            data_dir: Some("/var/lib/etcd".into()),
        }
    );
    let store = &stores[0];
    assert_eq!((stores.len(), store.path.as_path()), (1, Path::new("/a b")));
    assert_eq!((store.min_free, store.max_bytes), (MinFree::Bytes(2 << 30), Some(20 << 30)));
    assert_eq!((store.scope, store.trash_grace), (Scope::Cluster, Duration::ZERO));
    let RetentionSettings { keep_last, keep_within, keep_hourly, keep_daily, keep_weekly, keep_monthly, min_keep } =
        store.retention;
    assert_eq!([keep_last, keep_hourly, keep_daily, keep_weekly, keep_monthly, min_keep], [1, 2, 3, 4, 5, 6]);
    assert_eq!(keep_within, Duration::from_secs(3600));
    assert_eq!(snapshot.schedule, Schedule::Every(Duration::from_secs(1800)));
    assert_eq!((snapshot.agreement, snapshot.stall_timeout), (Agreement::Off, Duration::from_secs(60)));
    assert_eq!(snapshot.max_duration, Duration::from_secs(3 * 3600));
    assert_eq!(
        health,
        HealthSettings {
            enabled: false,
            interval: Duration::from_secs(2),
            timeout: Duration::from_millis(500),
            apiservers: vec!["https://h:6443".into(), "https://[::1]:443".into()],
            kubeconfig: "/k".into(),
            write_probe: false,
            balancer: Some("https://vip:8443".into()),
            layout: Some(EtcdLayout::All),
        }
    );
}

#[test]
fn endpoints_get_etcds_port() {
    for (text, endpoint) in [
        ("http://a", "http://a:2379"),
        ("http://a/", "http://a:2379"),
        ("http://a:80", "http://a:80"),
        ("http://a:080/", "http://a:80"),
        ("http://a:443", "http://a:443"),
        ("http://[fe80::1]:80", "http://[fe80::1]:80"),
        ("http://[::80]", "http://[::80]:2379"),
    ] {
        let settings = parse(&format!("etcd.endpoints = ['{text}']")).unwrap();
        assert_eq!(settings.etcd.endpoints, [endpoint], "{text}");
    }
}

/// Each is refused with the line of the value and a text that contains the last column.
#[test]
fn what_is_refused_and_where() {
    let store = |rest: &str| format!("[[store]]\nname = 'a'\nurl = 'file:///a'\n{rest}");
    let cases: Vec<(String, usize, &str)> = vec![
        ("node = 'Ä'".into(), 1, "a-z, 0-9, dot and hyphen"),
        ("node = ''".into(), 1, "a-z, 0-9, dot and hyphen"),
        (format!("node = '{}'", "x".repeat(64)), 1, "at most 63"),
        ("node = 5".into(), 1, "node: invalid type: integer `5`, expected a string"),
        ("[paths]\nstate = 'relative'".into(), 2, "not an absolute path"),
        ("[paths]\nstate = '/a/../b'".into(), 2, "not an absolute path"),
        ("[paths]\n\nruntime = ''".into(), 3, "not an absolute path"),
        ("paths = 1".into(), 1, "paths: invalid type"),
        ("[etcd]\nendpoints = []".into(), 2, "the list is empty"),
        ("[etcd]\nendpoints = 'http://a'".into(), 2, "expected a sequence"),
        ("[etcd]\nendpoints = ['a:2379']".into(), 2, "is not a client URL"),
        ("[etcd]\nendpoints = ['http:a:2379']".into(), 2, "is not a client URL"),
        ("[etcd]\nendpoints = ['http://u:p@a']".into(), 2, "is not a client URL"),
        ("[etcd]\nendpoints = ['http://a/b']".into(), 2, "is not a client URL"),
        ("[etcd]\nendpoints = ['http://a', 'http://a:2379']".into(), 2, "twice"),
        ("[etcd]\nendpoints = ['https://a']".into(), 2, "needs `ca_file`"),
        ("[etcd]\nprefix = 'registry'".into(), 2, "begins with `/`"),
        ("[etcd]\nprefix = '/registry/'".into(), 2, "does not end with it"),
        ("[etcd]\nmember = ''".into(), 2, "empty"),
        ("[etcd]\ncert_file = '/c'".into(), 2, "needs `etcd.key_file` beside it"),
        ("[etcd]\nusername = 'c'".into(), 2, "needs `etcd.password_file` beside it"),
        ("[etcd]\npassword_file = '/c'".into(), 2, "needs `etcd.username` beside it"),
        ("[etcd]\nca_file = 'ca.crt'".into(), 2, "not an absolute path"),
        ("[etcd]\nca_file = 'credential:../x'".into(), 2, "not a credential's name"),
        ("[etcd]\ntimeout = '1ms'".into(), 2, "1ms is outside 100ms to 5m"),
        ("[etcd]\ntimeout = 5".into(), 2, "etcd.timeout: invalid type: integer `5`"),
        ("[[store]]\nurl = 'file:///a'".into(), 1, "`name` is missing"),
        ("[[store]]\nname = 'a'".into(), 1, "`url` is missing"),
        ("[[store]]\nname = 'A'\nurl = 'file:///a'".into(), 2, "not a store's name"),
        ("[[store]]\nname = 'a'\nurl = '/a'".into(), 3, "write \"file:///absolute/directory\""),
        ("[[store]]\nname = 'a'\nurl = 'file:///'".into(), 3, "write \"file:///absolute/directory\""),
        ("[[store]]\nname = 'a'\nurl = 'file:///a%00'".into(), 3, "write \"file:///absolute/directory\""),
        ("[[store]]\nname = 'a'\nurl = 's3://b/c'".into(), 3, "not a store this version knows"),
        ("[[store]]\nname = 'a'\nurl = 'file://host/a'".into(), 3, "not a store this version knows"),
        (store("[[store]]\nname = 'a'\nurl = 'file:///b'"), 5, "name of another store"),
        (store("[[store]]\nname = 'b'\nurl = 'file:///a/b'"), 6, "overlaps another store at /a"),
        (store("min_free = '5%'"), 4, "or \"auto\""),
        (store("max_bytes = '0B'"), 4, "at least 1MiB"),
        (store("max_bytes = '20 GiB'"), 4, "is not a size"),
        (store("scope = 'all'"), 4, "unknown variant `all`, expected `node` or `cluster`"),
        (store("trash_grace = '366d'"), 4, "366d is outside 0s to 365d"),
        (store("retention.keep_last = -1"), 4, "expected a whole number from 0 to 100000"),
        (store("retention.keep_last = 100001"), 4, "expected a whole number from 0 to 100000"),
        (store("retention.keep_last = 1.5"), 4, "a fraction"),
        (store("\nretention.keep_lats = 1"), 5, "`keep_lats` is not a known key"),
        (
            store("retention = { keep_last = 0, keep_within = '0s', keep_hourly = 0, keep_daily = 0, min_keep = 0 }"),
            4,
            "nothing would be kept",
        ),
        (
            store("retention = { keep_last = 2, keep_within = '0s', keep_hourly = 0, keep_daily = 0 }"),
            4,
            "min_keep = 3 keeps more than keep_last = 2",
        ),
        ("[snapshot]\nschedule = '0 * * * *'\nevery = '30m'".into(), 3, "`schedule` and `every` are both set"),
        ("[snapshot]\nschedule = '0 */30 * * * *'".into(), 2, "it has 6 fields"),
        ("[snapshot]\nschedule = '0 0 30 2 *'".into(), 2, "it never comes"),
        ("[snapshot]\nevery = '9s'".into(), 2, "9s is outside 10s to 366d"),
        ("[snapshot]\nwindow = '22-6'".into(), 2, "\"22-6\" is not a window"),
        (
            "[snapshot]\nschedule = '0 12 * * *'\nwindow = '22:00-06:00'".into(),
            3,
            "no slot of the schedule lies within",
        ),
        ("[snapshot]\nshift = '2h'".into(), 2, "2h is more than an hour"),
        ("[snapshot]\nevery = '10 minuts'".into(), 2, "did you mean \"10m\"?"),
        ("[snapshot]\ntimezone = 'Mars/Olympus'".into(), 2, "Mars/Olympus"),
        ("[snapshot]\nagreement = true".into(), 2, "snapshot.agreement: invalid type: boolean `true`"),
        ("[snapshot]\nstall_timeout = 1979-05-27".into(), 2, "a date"),
        ("[snapshot]\nrate = '1MiB'".into(), 2, "1MiB is below 10MiB a second"),
        ("[snapshot]\nrate = 'fast'".into(), 2, "or \"off\""),
        ("[maintain]\nmin_gain_percent = 101".into(), 2, "101 is more than 100"),
        ("[fence]\nmode = 'on'".into(), 2, "unknown variant `on`"),
        ("[fence]\nagent_check = 'localhost:9978'".into(), 2, "is not an address with a port"),
        ("[fence]\nhttp = '0.0.0.0:0'".into(), 2, "is not an address with a port"),
        ("[fence]\nhttp = '9979'".into(), 2, "is not an address with a port"),
        ("[fence]\nhttp = '127.0.0.1:9978'".into(), 2, "port 9978 is that of agent_check as well"),
        ("[health]\nenabled = 'yes'".into(), 2, "health.enabled: invalid type: string"),
        ("[health]\ninterval = '1m'".into(), 2, "1m is outside 500ms to 10s"),
        ("[health]\ntimeout = '0s'".into(), 2, "0s is outside 200ms to 5s"),
        ("[health]\napiservers = ['http://a:6443']".into(), 2, "is not the URL of an apiserver"),
        ("[health]\napiservers = ['https://a', 'https://a:6443']".into(), 2, "twice"),
        ("[health]\nbalancer = 'a:6443'".into(), 2, "is not the URL of an apiserver"),
        ("[health]\napiservers = ['https://a']\nbalancer = 'https://a'".into(), 3, "one of `apiservers` too"),
        ("[health]\nkubeconfig = 'kubeconfig'".into(), 2, "not an absolute path"),
        ("[health]\nlayout = 'some'".into(), 2, "unknown variant `some`, expected `local` or `all`"),
        ("[helth]\ninterval = '1s'".into(), 1, "`helth` is not a known key in this version"),
    ];
    for (text, line, part) in cases {
        let error = refused(&text);
        assert_eq!((error.code(), error.on()), (Code::Config, format!("/c.toml:{line}").as_str()), "{text}: {error:?}");
        assert!(error.why().concat().contains(part), "{text}: {:?}", error.why());
    }
}

#[test]
fn a_slip_of_the_keyboard_gets_the_nearest_key() {
    for (text, remedy) in [
        ("nodes = 'a'", "did you mean `node`?"),
        ("[snapsot]", "did you mean `snapshot`?"),
        ("[etcd]\nend_points = []", "did you mean `endpoints`?"),
        ("[etcd]\nca-file = '/a'", "did you mean `ca_file`?"),
        ("[[store]]\nmax_byte = '1GiB'", "did you mean `max_bytes`?"),
        ("[health]\nlay_out = 'all'", "did you mean `layout`?"),
        ("[playbook]", "remove it; known here: node, paths, etcd, store, snapshot, maintain, fence, health"),
    ] {
        assert_eq!(refused(text).get_remedy(), Some(remedy), "{text}");
    }
}

#[test]
fn a_host_name_without_a_usable_label_asks_for_the_key() {
    for host in ["", ".org", "ü", &"x".repeat(64)] {
        let odd = Surroundings { host_name: host.into(), ..surroundings() };
        let error = parse_in("", &odd).unwrap_err();
        assert_eq!((error.on(), error.get_remedy()), ("defaults", Some("set `node` in the configuration")), "{host}");
        assert!(parse_in("node = 'a'", &odd).is_ok());
    }
}

#[test]
fn credentials_are_files_that_systemd_handed_over() {
    let dir = tempfile::tempdir().unwrap();
    let surroundings = Surroundings { credentials: Some(dir.path().into()), ..surroundings() };
    let parse = |name: &str| parse_in(&format!("[etcd]\nca_file = 'credential:{name}'"), &surroundings);
    // Whether it is there is asked when it is read: all but etcd works without.
    assert_eq!(parse("etcd.ca").unwrap().settings.etcd.ca_file, Some(dir.path().join("etcd.ca")));
}

const SAMPLE: &str = include_str!("../../config/refloat.toml");

/// Key → (comment, value), with `store.0` for the list.
fn sample() -> BTreeMap<String, (String, String)> {
    let mut keys = BTreeMap::new();
    let (mut section, mut comment) = (String::new(), String::new());
    for line in SAMPLE.lines() {
        if let Some(text) = line.strip_prefix("# ") {
            comment.push_str(text);
            comment.push('\n');
        } else if let Some(list) = line.strip_prefix("#[[") {
            section = format!("{}.0.", list.trim_end_matches(']'));
            comment.clear();
        } else if let Some(table) = line.strip_prefix('[') {
            section = format!("{}.", table.trim_end_matches(']'));
        } else if let Some((key, value)) = line.strip_prefix('#').and_then(|line| line.split_once(" = ")) {
            let before = keys.insert(format!("{section}{key}"), (std::mem::take(&mut comment), value.to_string()));
            assert!(before.is_none(), "{key} twice");
        } else if line.is_empty() {
            comment.clear();
        }
    }
    keys
}

/// The keys that serde knows, asked from the input types themselves.
fn known_keys() -> BTreeSet<String> {
    fn fields<'a, T: serde::Deserialize<'a> + std::fmt::Debug>(prefix: &str) -> BTreeSet<String> {
        let origin = Origin { file: Path::new("/x").into(), line: 1 };
        let stranger = merge::Item { value: merge::Value::Bool(true), origin };
        let table: &'a merge::Table = Box::leak(Box::new([("?".to_string(), stranger)].into()));
        let known = decode::decode::<T>(table).unwrap_err().known;
        known.iter().map(|key| format!("{prefix}{key}")).collect()
    }
    let mut keys = fields::<input::Input>("");
    for (table, inner) in [
        ("paths", fields::<input::PathsInput>("paths.")),
        ("etcd", fields::<input::EtcdInput>("etcd.")),
        ("store", fields::<input::StoreInput>("store.0.")),
        ("store.0.retention", fields::<input::RetentionInput>("store.0.retention.")),
        ("snapshot", fields::<input::SnapshotInput>("snapshot.")),
        ("maintain", fields::<input::MaintainInput>("maintain.")),
        ("fence", fields::<input::FenceInput>("fence.")),
        ("health", fields::<input::HealthInput>("health.")),
    ] {
        assert!(keys.remove(table), "{table}");
        keys.extend(inner);
    }
    keys
}

#[test]
fn the_sample_has_every_key_and_no_other() {
    let sample: BTreeSet<String> = sample().into_keys().collect();
    assert_eq!(sample, known_keys());
    let shown = parse_in("", &surroundings()).unwrap().shown();
    assert_eq!(sample, shown.into_iter().map(|shown| shown.key).collect());
}

#[test]
fn the_sample_tells_the_defaults_and_units() {
    let shown = parse_in("", &surroundings()).unwrap().shown();
    let sample = sample();
    for Shown { key, value, .. } in shown {
        let (comment, example) = &sample[&key];
        let default =
            comment.lines().find_map(|line| line.strip_prefix("Default: ")).unwrap_or_else(|| panic!("{key}"));
        match value {
            _ if key == "node" => assert_eq!(default, "the first label of the host name."),
            Some(value) => {
                // "24h" is the field's way to write what is printed as "1d".
                let meant = |text: &str| match parse_duration(text.trim_matches('"')) {
                    Ok(duration) => format!("{duration:?}"),
                    Err(_) => text.to_string(),
                };
                let value = meant(&value.to_string());
                assert_eq!((meant(default), meant(example)), (value.clone(), value), "{key}");
            }
            None => assert!(default.starts_with("none"), "{key}: {default}"),
        }
        let unit = match example.trim_matches('"') {
            text if parse_duration(text).is_ok() => "duration",
            text if parse_size(text).is_ok() => "size",
            _ => "",
        };
        assert!(comment.contains(unit), "{key}: no word of its unit");
    }
}

#[test]
fn the_sample_is_the_default_and_all_its_examples_are_valid() {
    assert_eq!(parse(SAMPLE).unwrap(), parse("").unwrap());
    let is_setting = |line: &str| line.starts_with("#[[") || (line.starts_with('#') && !line.starts_with("# "));
    let on: Vec<&str> = SAMPLE
        .lines()
        // The two exclude each other.
        .filter(|line| !line.starts_with("#every"))
        .map(|line| if is_setting(line) { &line[1..] } else { line })
        .collect();
    let settings = parse(&on.join("\n")).unwrap();
    assert!(settings.etcd.login.is_some() && settings.stores[0].max_bytes == Some(20 << 30));
}

#[test]
fn loading_reads_files_below_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("etc/refloat/refloat.toml", "node = 'main'\n[etcd]\ntimeout = '1s'");
    write("usr/lib/refloat/conf.d/50-x.toml", "[etcd]\ntimeout = '2s'\nprefix = '/x'");
    let here = Surroundings { root: dir.path().into(), ..surroundings() };
    let loaded = load(&here, None).unwrap();
    assert_eq!((loaded.settings.node.as_str(), loaded.files.len()), ("main", 2));
    assert_eq!(loaded.settings.etcd.timeout, Duration::from_secs(2));
    let shown = loaded.shown();
    let timeout = shown.iter().find(|shown| shown.key == "etcd.timeout").unwrap();
    let origin = timeout.origin.as_ref().unwrap();
    assert!(origin.file.ends_with("usr/lib/refloat/conf.d/50-x.toml") && origin.line == 2, "{origin:?}");
}
