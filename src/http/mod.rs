//! The control interface: HTTP on a unix socket.
