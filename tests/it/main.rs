//! All integration tests in one binary: one link step, one start of shared helpers.

// Tests start processes and remove what they made; refloat itself must not (clippy.toml).
#![allow(clippy::disallowed_methods)]

#[path = "../bed/mod.rs"]
mod bed;

mod agreement;
mod bed_liar;
mod bed_smoke;
mod by_hand;
mod bytes;
mod bytes_stored;
mod cli_config;
mod cli_usage;
mod crash;
mod daemon;
mod daemon_crash;
mod daemon_faults;
mod diff;
mod discover;
mod docs;
mod etcd_failures;
mod etcd_member;
mod etcd_stream;
mod etcd_tls;
mod etcd_view;
mod forge;
mod forms;
mod generated;
mod history;
mod hostile;
mod hostile_tree;
mod import;
mod import_faults;
mod ledger;
mod listing;
mod locks;
mod many_keys;
mod node_again;
mod node_bed;
mod node_daemon;
mod node_package;
mod node_sandbox;
mod node_setup;
mod node_upgrade;
mod nodes;
mod oracles;
mod oracles_bbolt;
mod oracles_states;
mod owner;
mod packages;
mod page_walk;
mod pattern;
mod pins;
mod prune;
mod prune_crash;
mod prune_hostile;
mod prune_said;
mod prune_trees;
mod retire;
mod retire_needed;
mod rings;
mod setup;
mod shared;
mod store_frozen;
mod store_hung;
mod stores;
mod stores_places;
mod stores_space;
mod take_member;
mod take_stream;
mod taking;
mod traced;
mod tree;
mod unit_watch;
mod units;
