//! Taking, proving and handing out snapshots (design §6).
//!
//! In: settings, a member, stores. Out: a snapshot that exists in every store that could take it, or a reason.
//! Serves promises 1 (verified means checked), 5 (refuse before harm) and 11 (crash anywhere).
//!
//! | step | file |
//! |---|---|
//! | which member, is it fit, does it fit | [`preflight`], [`room`] |
//! | stream, hash, compress into a nameless file | [`capture`] |
//! | read that file back and check everything | [`judge`] |
//! | what live members say at the same revision | [`agreement`] |
//! | which cluster and which history | [`evidence`] |
//! | data, then manifest, store by store | [`record`], [`publish`] |
//! | room for it: what killed runs left, then what retention lets go | [`leftovers`], [`making_room`], [`prune`](mod@prune) |
//! | all of it, under one lock | [`take`], [`state`], [`stores`]; asked and answered in [`outcome`] |
//!
//! [`prune`](mod@prune) removes by the rules, [`retire`] what a person names, [`pin`] says something about a snapshot
//! later. [`check`], [`copies`] and [`export`] work on what is stored, [`open`] on any database file, [`diff`] on two of either;
//! [`select`] finds the one that is meant, [`progress`] is how work tells that it moves.

pub mod agreement;
pub mod capture;
pub mod check;
pub mod copies;
pub mod diff;
pub mod evidence;
pub mod export;
pub mod import;
pub mod judge;
pub mod leftovers;
pub mod making_room;
pub mod open;
pub mod outcome;
pub mod pin;
pub mod preflight;
pub mod progress;
pub mod prune;
pub mod publish;
pub mod record;
pub mod retire;
pub mod room;
pub mod select;
pub mod state;
pub mod stores;
pub mod take;
