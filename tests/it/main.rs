//! All integration tests in one binary: one link step, one start of shared helpers.

#[path = "../bed/mod.rs"]
mod bed;

mod bed_smoke;
mod etcd_failures;
mod etcd_member;
mod etcd_stream;
mod etcd_tls;
mod etcd_view;
