//! The configuration as it may be written: every key optional, every unknown key an error.
//!
//! Values that stand for themselves (a size, a duration, a count) are read here; what needs a second value or the
//! host to judge is left to [`super::validate`].

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use super::settings::{Agreement, EtcdLayout, FenceMode, FenceTarget, MinFree, Scope};
use super::units::{self, UnitError};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Input {
    pub node: Option<String>,
    pub paths: PathsInput,
    pub etcd: EtcdInput,
    pub store: Vec<StoreInput>,
    pub snapshot: SnapshotInput,
    pub maintain: MaintainInput,
    pub fence: FenceInput,
    pub health: HealthInput,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PathsInput {
    pub state: Option<PathBuf>,
    pub runtime: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct EtcdInput {
    pub member: Option<String>,
    pub endpoints: Option<Vec<String>>,
    pub prefix: Option<String>,
    pub ca_file: Option<String>,
    pub cert_file: Option<String>,
    pub key_file: Option<String>,
    pub username: Option<String>,
    pub password_file: Option<String>,
    pub timeout: Option<Span>,
    pub data_dir: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StoreInput {
    pub name: Option<String>,
    pub url: Option<String>,
    pub min_free: Option<MinFree>,
    pub max_bytes: Option<Size>,
    pub scope: Option<Scope>,
    pub trash_grace: Option<Span>,
    pub retention: RetentionInput,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RetentionInput {
    pub keep_last: Option<Count>,
    pub keep_within: Option<Span>,
    pub keep_hourly: Option<Count>,
    pub keep_daily: Option<Count>,
    pub keep_weekly: Option<Count>,
    pub keep_monthly: Option<Count>,
    pub min_keep: Option<Count>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SnapshotInput {
    pub schedule: Option<String>,
    pub every: Option<Span>,
    pub timezone: Option<String>,
    pub window: Option<String>,
    pub shift: Option<String>,
    pub agreement: Option<Agreement>,
    pub rate: Option<String>,
    pub stall_timeout: Option<Span>,
    pub max_duration: Option<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MaintainInput {
    pub min_gain: Option<Size>,
    pub min_gain_percent: Option<Count>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FenceInput {
    pub mode: Option<FenceMode>,
    pub target: Option<FenceTarget>,
    pub agent_check: Option<String>,
    pub http: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HealthInput {
    pub enabled: Option<bool>,
    pub interval: Option<Span>,
    pub timeout: Option<Span>,
    pub apiservers: Option<Vec<String>>,
    pub kubeconfig: Option<String>,
    pub write_probe: Option<bool>,
    pub balancer: Option<String>,
    pub layout: Option<EtcdLayout>,
}

/// A duration, written as in [`units::parse_duration`].
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Span(pub Duration);

impl TryFrom<String> for Span {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        units::parse_duration(&text).map(Span)
    }
}

/// Bytes, written as in [`units::parse_size`].
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Size(pub u64);

impl TryFrom<String> for Size {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        units::parse_size(&text).map(Size)
    }
}

impl<'de> Deserialize<'de> for MinFree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "auto" => Ok(MinFree::Auto),
            size => match units::parse_size(size) {
                Ok(bytes) => Ok(MinFree::Bytes(bytes)),
                Err(e) => Err(de::Error::custom(format!("{e}; or \"auto\""))),
            },
        }
    }
}

/// How many snapshots; far more than anybody keeps, so that a slip of the keyboard is noticed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count(pub u32);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;
        impl Visitor<'_> for Whole {
            type Value = Count;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number from 0 to 100000")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Count, E> {
                match u32::try_from(number) {
                    Ok(count) if count <= 100_000 => Ok(Count(count)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
                }
            }
        }
        deserializer.deserialize_any(Whole)
    }
}
