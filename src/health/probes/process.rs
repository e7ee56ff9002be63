//! The own member's process, as `/proc` shows it: stopped, or with a thread that waits for a disk. No request can tell
//! these from lost packets.
//!
//! Which of several etcds it is, its command line or the only one there tells. That is read once for each process: to
//! read the memory of one that hangs may hang as well; its state does not.

use std::path::{Path, PathBuf};

/// Finds the process and looks at it.
#[derive(Debug)]
pub struct Watch {
    proc: PathBuf,
    /// Words of which one is on its command line: its client URL without scheme, its data directory.
    words: Vec<String>,
    known: Option<u32>,
}

/// One look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// State T or t of its main thread.
    pub stopped: bool,
    /// State D of any thread.
    pub blocked: bool,
}

impl Watch {
    pub fn new(proc: &Path, words: Vec<String>) -> Watch {
        Watch { proc: proc.into(), words: words.into_iter().filter(|word| word.len() > 3).collect(), known: None }
    }

    /// `None`: it is not there, or cannot be told from others.
    pub fn look(&mut self) -> Option<Look> {
        if self.known.is_none_or(|pid| self.name(pid).as_deref() != Some("etcd")) {
            self.known = self.find();
        }
        let pid = self.known?;
        let main = state(&self.stat(&self.proc.join(pid.to_string()))?)?;
        let threads = std::fs::read_dir(self.proc.join(pid.to_string()).join("task")).ok()?;
        let states = threads.flatten().filter_map(|thread| state(&self.stat(&thread.path())?));
        Some(Look { stopped: matches!(main, 'T' | 't'), blocked: states.into_iter().any(|state| state == 'D') })
    }

    fn find(&self) -> Option<u32> {
        let entries = std::fs::read_dir(&self.proc).ok()?;
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let etcds: Vec<u32> = pids.filter(|pid| self.name(*pid).as_deref() == Some("etcd")).collect();
        let ours = |pid: &&u32| {
            let line = std::fs::read(self.proc.join(pid.to_string()).join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            self.words.iter().any(|word| line.contains(word.as_str()))
        };
        let mut found = etcds.iter().filter(ours);
        match (found.next(), found.next(), etcds.as_slice()) {
            (Some(pid), None, _) => Some(*pid),
            // Its options may be in its environment or in a file.
            (None, None, [only]) => Some(*only),
            _ => None,
        }
    }

    fn name(&self, pid: u32) -> Option<String> {
        let name = std::fs::read_to_string(self.proc.join(pid.to_string()).join("comm")).ok()?;
        Some(name.trim_end().to_string())
    }

    fn stat(&self, dir: &Path) -> Option<String> {
        std::fs::read_to_string(dir.join("stat")).ok()
    }
}

/// `pid (name) S …`: the name may hold anything.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, pid: u32, name: &str, line: &str, states: &[char]) {
        let dir = proc.join(pid.to_string());
        for (at, state) in states.iter().enumerate() {
            let task = dir.join(format!("task/{}", pid + at as u32));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("stat"), format!("{pid} (a) b) {state} 1 2")).unwrap();
        }
        std::fs::write(dir.join("stat"), format!("{pid} (a) b) {} 1 2", states[0])).unwrap();
        std::fs::write(dir.join("comm"), format!("{name}\n")).unwrap();
        std::fs::write(dir.join("cmdline"), line.replace(' ', "\0")).unwrap();
    }

    #[test]
    fn the_own_one_is_found_and_its_states_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let watch = |words: &[&str]| Watch::new(dir.path(), words.iter().map(|word| word.to_string()).collect());
        assert_eq!(watch(&["10.0.0.1:2379"]).look(), None);
        process(dir.path(), 100, "etcd", "etcd --name a --data-dir /var/lib/etcd", &['S', 'D', 'S']);
        process(dir.path(), 200, "etcdctl", "etcdctl --endpoints 10.0.0.1:2379", &['D']);
        let blocked = Some(Look { stopped: false, blocked: true });
        assert_eq!((watch(&["/var/lib/etcd"]).look(), watch(&["10.0.0.1:2379"]).look()), (blocked, blocked));
        process(dir.path(), 300, "etcd", "etcd --name b --advertise-client-urls https://10.0.0.2:2379", &['T']);
        let mut second = watch(&["10.0.0.2:2379"]);
        assert_eq!(second.look(), Some(Look { stopped: true, blocked: false }));
        assert_eq!(watch(&["10.0.0.9:2379"]).look(), None, "one of two, and nobody knows which");
        process(dir.path(), 300, "sh", "sh", &['S']);
        assert_eq!(second.look(), blocked, "its number was given to another, and one is left");
    }

    #[test]
    fn this_process_is_neither_stopped_nor_unreadable() {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert!(matches!(state(&stat), Some('R' | 'S' | 'D')), "{stat}");
    }
}
