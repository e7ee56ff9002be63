//! The units that setup is about.

/// One that is enabled and started, and the drop-in that is written for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Unit {
    pub name: &'static str,
    pub drop_in: &'static str,
    /// What starts it at boot, below /etc/systemd/system.
    pub wants: &'static str,
    /// Started anew when the configuration changes.
    pub configured: bool,
}

pub const SERVICE: Unit = Unit {
    name: "refloat.service",
    drop_in: "/etc/systemd/system/refloat.service.d/10-setup.conf",
    wants: "multi-user.target.wants",
    configured: true,
};

/// Reads the same credentials, and writes nothing but its runtime directory.
pub const HEALTH: Unit = Unit {
    name: "refloat-health.service",
    drop_in: "/etc/systemd/system/refloat-health.service.d/10-setup.conf",
    wants: "multi-user.target.wants",
    configured: true,
};

pub const CERTS: Unit = Unit {
    name: "refloat-certs.path",
    drop_in: "/etc/systemd/system/refloat-certs.path.d/10-setup.conf",
    wants: "multi-user.target.wants",
    configured: false,
};

/// The service behind the two sockets is a part of them: it goes and comes with them.
pub const ANSWER: Unit = Unit {
    name: "refloat-answer.socket",
    drop_in: "/etc/systemd/system/refloat-answer.socket.d/10-setup.conf",
    wants: "sockets.target.wants",
    configured: false,
};

pub const ANSWER_HTTP: Unit = Unit {
    name: "refloat-answer-http.socket",
    drop_in: "/etc/systemd/system/refloat-answer-http.socket.d/10-setup.conf",
    wants: "sockets.target.wants",
    configured: false,
};

/// In the order in which they are started.
pub const ALL: [&Unit; 5] = [&SERVICE, &HEALTH, &CERTS, &ANSWER, &ANSWER_HTTP];
