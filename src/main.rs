//! Crypto provider, logging, argument parsing, exit code; nothing else.

use std::process::ExitCode;

use refloat::cli;

fn main() -> ExitCode {
    #[cfg(feature = "failpoints")]
    let _failpoints = fail::FailScenario::setup();

    // One provider for all of TLS, named here, so that no library picks its own. It fails only when one is set.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();

    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    tracing_subscriber::fmt()
        .with_env_filter(cli.log_filter())
        .with_ansi(cli.global.color(&std::io::stderr()))
        .with_writer(cli.log_writer())
        .init();
    cli::run(cli)
}
