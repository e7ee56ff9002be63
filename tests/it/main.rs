//! One integration binary: linking once is faster than linking each file.

mod cli_config;
mod cli_usage;
mod rings;
