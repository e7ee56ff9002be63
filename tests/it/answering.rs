//! `refloat answer` as a process, what it is asked, and the files that it answers from.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use refloat::fs::{BootTime, Dir};
use refloat::health::fence::told::moment;
use refloat::health::fence::{FenceFile, Word};
use refloat::health::model::Mono;

use crate::bed::process::{Process, bound_to_us};
use crate::bed::{Refloat, ports, until};

/// Longer than anything that is waited for, also where the machine is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn clock() -> (String, Mono) {
    let boot = BootTime::now().expect("a boot id");
    let now = moment(&boot);
    (boot.boot_id, now)
}

/// A node: its configuration, its runtime directory, and the process that answers for it.
pub struct Answering {
    pub refloat: Refloat,
    pub agent: SocketAddr,
    pub http: SocketAddr,
    process: Option<Process>,
}

impl Answering {
    /// On ports of its own, with a mode.
    #[track_caller]
    pub fn start(mode: &str) -> Answering {
        Answering::at("127.0.0.1", ports::free(), ports::free(), mode)
    }

    #[track_caller]
    pub fn at(ip: &str, agent: u16, http: u16, mode: &str) -> Answering {
        let config = format!("[fence]\nmode = {mode:?}\nagent_check = \"{ip}:{agent}\"\nhttp = \"{ip}:{http}\"\n");
        let refloat = Refloat::new("http://127.0.0.1:1").config(&config);
        let address = |port: u16| SocketAddr::new(ip.parse().expect("an address"), port);
        let mut answering = Answering { refloat, agent: address(agent), http: address(http), process: None };
        answering.restart();
        answering
    }

    /// Kills it where it runs, starts it, and waits until it answers.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        let command = self.command(&[]);
        self.process = Some(Process::start(command));
        self.wait("an answer", || self.hears().map(drop));
    }

    /// The command, behind a wrapper where one is given.
    pub fn command(&self, wrapper: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_refloat");
        let mut command = bound_to_us(wrapper.first().copied().unwrap_or(program));
        if let Some((_, args)) = wrapper.split_first() {
            command.args(args).arg(program);
        }
        command.arg("--config").arg(self.refloat.config_file()).arg("answer").env_remove("NOTIFY_SOCKET");
        let log = OpenOptions::new().create(true).append(true).open(self.log_file()).expect("open the log");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    fn log_file(&self) -> PathBuf {
        self.refloat.dir().join("answer.log")
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    pub fn runtime(&self) -> Dir {
        Dir::open(&self.refloat.dir().join("run")).expect("the runtime directory")
    }

    /// Of the process; 0 while there is none.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().map_or(0, Process::pid)
    }

    /// What the health process would write now, `ago` before now.
    pub fn decide(&self, answer: Word, reason: &str, ago: Duration) {
        let (boot_id, now) = clock();
        let at = Mono(now.0 - u64::try_from(ago.as_millis()).expect("short"));
        FenceFile { boot_id, at, answer, reason: reason.into() }.write(&self.runtime()).expect("write the file");
    }

    /// Line of the agent and status of HTTP; `None` while nobody answers.
    pub fn hears(&self) -> Option<(String, u16)> {
        Some((asked(self.agent, "")?, ready(self.http)?))
    }

    #[track_caller]
    pub fn hears_now(&self, line: &str, status: u16) {
        assert_eq!(self.hears(), Some((line.to_owned(), status)), "{}", self.log());
    }

    #[track_caller]
    pub fn wait<T>(&self, what: &str, found: impl FnMut() -> Option<T>) -> T {
        match until(Instant::now() + PATIENCE, found) {
            Some(found) => found,
            None => panic!("not seen: {what}\n{}", self.log()),
        }
    }
}

/// Everything that comes until the other side closes.
pub fn asked(to: SocketAddr, words: &str) -> Option<String> {
    let mut stream = TcpStream::connect(to).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(words.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

/// The status of `GET /ready`.
pub fn ready(at: SocketAddr) -> Option<u16> {
    asked(at, "GET /ready HTTP/1.1\r\nHost: node\r\n\r\n")?.split(' ').nth(1)?.parse().ok()
}
