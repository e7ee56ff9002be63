//! What is in the packages, as the tools of their worlds read them, and the rpm installed.

use std::collections::BTreeSet;
use std::path::Path;

use crate::bed::{self, Packages, Run};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Paths with modes, without directories.
fn in_deb(packages: &Packages) -> BTreeSet<String> {
    let listed = Run::new("dpkg-deb").args(["--contents".as_ref(), packages.deb.as_os_str()]).run().ok();
    let files = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    files.filter(|f| !f[0].starts_with('d')).map(|f| format!("{} {}", &f[0][1..], &f[5][1..])).collect()
}

fn in_rpm(packages: &Packages) -> BTreeSet<String> {
    let format = "[%{FILEMODES:perms} %{FILENAMES}\\n]";
    let args = ["-qp".as_ref(), "--queryformat".as_ref(), format.as_ref(), packages.rpm.as_os_str()];
    let listed = Run::new("rpm").args(args).run().ok();
    listed.lines().map(|line| line[1..].to_owned()).collect()
}

#[test]
fn both_packages_hold_the_same() {
    let packages = Packages::find();
    // Compressed here and not there; each world has its own place for zsh; and what only one of them knows.
    let same = |path: &str| path.trim_end_matches(".gz").replace("zsh/vendor-completions", "zsh/site-functions");
    let mut deb: BTreeSet<String> = in_deb(&packages).iter().map(|path| same(path)).collect();
    for own in ["/usr/share/doc/refloat/changelog.Debian", "/usr/share/lintian/overrides/refloat"] {
        assert!(deb.remove(&format!("rw-r--r-- {own}")), "{own} not in {deb:?}");
    }
    deb.insert("rw-r--r-- /usr/share/licenses/refloat/LICENSE".into());
    assert_eq!(deb, in_rpm(&packages));
    for file in
        ["/usr/lib/systemd/system/refloat.service", "/etc/refloat/refloat.toml", "/usr/share/man/man5/refloat.toml.5"]
    {
        assert!(deb.contains(&format!("rw-r--r-- {file}")), "{file}");
    }
    assert!(deb.contains("rwxr-xr-x /usr/bin/refloat"));
    // A unit that nobody packs is a unit that nobody has.
    for entry in root().join("systemd").read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = match name.as_str() {
            "sysusers.d" => "refloat.conf".into(),
            "answer-http" => "refloat-answer-http.socket".into(),
            _ => name,
        };
        assert!(deb.iter().any(|path| path.ends_with(&format!("/{name}"))), "{name} is in no package");
    }
}

#[test]
fn lintian_has_nothing_to_say() {
    let packages = Packages::find();
    let lintian = Run::new("lintian").args(["--fail-on=error,warning", "--allow-root", "--tag-display-limit=0"]);
    let said = lintian.args([packages.deb.as_os_str()]).run().ok();
    assert!(!said.contains("E:") && !said.contains("W:"), "{said}");
}

#[test]
fn versions_are_those_of_the_program() {
    let packages = Packages::find();
    let field = |deb: &Path, name: &str| {
        Run::new("dpkg-deb").args(["--field".as_ref(), deb.as_os_str(), name.as_ref()]).run().ok().trim().to_owned()
    };
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(field(&packages.deb, "Version"), format!("{version}-1"));
    let changelog = std::fs::read_to_string(root().join("packaging/deb/changelog")).unwrap();
    assert!(
        changelog.starts_with(&format!("refloat ({version}-1) ")),
        "packaging/deb/changelog begins with another one"
    );
    let newer = ["--compare-versions", &field(&packages.previous_deb, "Version"), "lt", &format!("{version}-1")];
    Run::new("dpkg").args(newer).run().ok();
    let rpm = ["-qp".as_ref(), "--queryformat=%{VERSION}".as_ref(), packages.rpm.as_os_str()];
    assert_eq!(Run::new("rpm").args(rpm).run().ok(), version);
}

#[test]
fn the_rpm_installs_upgrades_and_goes_without_anything_left() {
    if bed::skip_unless_root("installs an rpm into a directory") {
        return;
    }
    let packages = Packages::find();
    let dir = tempfile::tempdir().unwrap();
    let rpm = |args: &[&str]| {
        let run = Run::new("rpm").args(["--root".as_ref(), dir.path().as_os_str()]);
        run.args(["--nodeps", "--noscripts"]).args(args).run().ok()
    };
    let file = packages.rpm.display().to_string();
    rpm(&["--install", &file]);
    let program = dir.path().join("usr/bin/refloat");
    assert!(Run::new(&program).args(["--version"]).run().ok().contains(env!("CARGO_PKG_VERSION")));
    rpm(&["--verify", "refloat"]);
    // What a person wrote survives a reinstallation.
    let config = dir.path().join("etc/refloat/refloat.toml");
    std::fs::write(&config, "node = \"mine\"\n").unwrap();
    rpm(&["--install", "--replacepkgs", &file]);
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "node = \"mine\"\n");
    rpm(&["--erase", "refloat"]);
    assert!(!program.exists() && !dir.path().join("usr/lib/systemd/system/refloat.service").exists());
}

/// A unit and a word that some script must say about it, at each of the moments that rpm knows.
#[test]
fn the_scripts_of_the_rpm_do_what_the_macros_of_systemd_do() {
    let packages = Packages::find();
    let said = Run::new("rpm").args(["-qp".as_ref(), "--scripts".as_ref(), packages.rpm.as_os_str()]).run().ok();
    let between = |from: &str, to: &str| {
        let after = said.split(from).nth(1).unwrap_or_else(|| panic!("no {from} in {said}"));
        after.split(to).next().unwrap_or_default().to_owned()
    };
    let moments = [
        ("postinstall", "preuninstall", "\"$1\" -eq 1", "install-system-units", "--no-reload preset"),
        ("preuninstall", "postuninstall", "\"$1\" -eq 0", "remove-system-units", "--no-reload disable --now"),
        ("postuninstall", "\u{0}", "\"$1\" -ge 1", "mark-restart-system-units", "try-restart"),
    ];
    for (moment, next, condition, helper, fallback) in moments {
        let script = between(&format!("{moment} scriptlet"), &format!("{next} scriptlet"));
        for part in [condition, helper, fallback] {
            assert!(script.contains(part), "{moment}: no {part} in {script}");
        }
        // Nothing of it may fail an installation.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        let body = script.split_once(":\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        std::fs::write(&path, body).unwrap();
        Run::new("sh").args(["-n".as_ref(), path.as_os_str()]).run().ok();
    }
    assert!(between("postinstall", "preuninstall").contains("systemd-sysusers refloat.conf"));
}
