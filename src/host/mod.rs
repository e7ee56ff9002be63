//! This host as the daemon sees it: systemd, by its notify socket and over D-Bus, and its users.
//!
//! In: names of units and users, words for the service manager. Out: facts about units as they change, and what became
//! of a request. Serves design §17 (at home in systemd) and promise 7 (what cannot be seen is said, not guessed:
//! without D-Bus there is a report that says so).
//!
//! Reading order: [`notify`] tells systemd how this service does; [`units`] follows units and never changes one;
//! [`control`] starts and stops units and is for root units alone; [`user`] is whom a command becomes; [`memory`] and
//! [`sockets`] are for services that must go on while the disk stands still, or while they are exchanged.

mod bus;
pub mod control;
#[cfg(test)]
mod fake;
pub mod log;
pub mod memory;
pub mod notify;
pub mod sockets;
pub mod units;
pub mod user;
