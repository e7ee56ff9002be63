//! On which file system a path lies, by `/proc/self/mountinfo` (proc(5)).

use std::path::{Path, PathBuf};

/// Those that wait for a network, or for other hosts: etcd on them falls behind and loses its leader.
const NETWORK: [&str; 15] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "ceph",
    "9p",
    "glusterfs",
    "lustre",
    "gfs2",
    "ocfs2",
    "afs",
    "beegfs",
    "gpfs",
    "virtiofs",
];

/// The type of the file system that holds `path`, and where it is mounted.
pub fn file_system(mountinfo: &str, path: &Path) -> Option<(String, PathBuf)> {
    let mounts = mountinfo.lines().filter_map(parse);
    // Of two on one place the later one is seen.
    mounts.filter(|(_, at)| path.starts_with(at)).max_by_key(|(_, at)| at.components().count())
}

/// `36 35 98:0 /root /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw`
fn parse(line: &str) -> Option<(String, PathBuf)> {
    let (before, after) = line.split_once(" - ")?;
    let at = before.split(' ').nth(4)?;
    Some((after.split(' ').next()?.into(), unescaped(at).into()))
}

/// Blanks and the like are written as `\\040`.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) if code.is_ascii() => {
                out.push(char::from(code));
                rest = &after[3..];
            }
            _ => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out + rest
}

/// Whether files there come over a network.
pub fn is_network(kind: &str) -> bool {
    NETWORK.contains(&kind) || kind.strip_prefix("fuse.").is_some_and(|kind| NETWORK.contains(&kind) || kind == "sshfs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_and_latest_mount_counts() {
        let info = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                    30 22 0:40 / /var/lib/etcd rw shared:5 - xfs /dev/sdb rw\n\
                    31 30 0:41 / /var/lib/etcd rw - nfs4 host:/x rw\n\
                    32 22 0:42 / /mnt/a\\040b rw - fuse.glusterfs x rw\nnonsense\n";
        for (path, kind, at) in [
            ("/var/lib/etcd/member", "nfs4", "/var/lib/etcd"),
            ("/var/lib/etcd2", "ext4", "/"),
            ("/mnt/a b/c", "fuse.glusterfs", "/mnt/a b"),
        ] {
            assert_eq!(file_system(info, Path::new(path)), Some((kind.into(), at.into())), "{path}");
        }
        assert_eq!(file_system("", Path::new("/")), None);
        assert_eq!(
            ["nfs4", "fuse.glusterfs", "fuse.sshfs", "ext4", "fuse"].map(is_network),
            [true, true, true, false, false]
        );
    }
}
