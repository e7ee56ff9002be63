#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFacts {
    pub name: String,
    pub load: String,
    pub active: String,
    pub sub: String,
    pub main_pid: u32,
    pub restarts: u32,
    pub since: Option<jiff::Timestamp>,
    pub result: String,
}
