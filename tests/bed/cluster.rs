//! Clusters of one, three or five members on free ports of this machine.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::line::Line;
use super::node::{Node, NotReady};
use super::pki::Pki;
use super::rng::Rng;
use super::run::{Output, until};
use super::target::Target;

/// How often a start is repeated because another process took a port.
const TRIES: usize = 5;

/// What a cluster shall be; [`Builder::start`] makes it.
pub struct Builder {
    line: Line,
    members: usize,
    tls: bool,
    user: Option<(String, String)>,
    args: Vec<String>,
    token: Option<String>,
    advertise: HashMap<usize, String>,
}

impl Builder {
    /// One by default.
    pub fn members(mut self, members: usize) -> Self {
        self.members = members;
        self
    }

    /// Client certificates are demanded, and members show them to each other.
    pub fn tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }

    /// Enables authentication; the name must be root, because etcd demands that user.
    pub fn auth(mut self, name: &str, password: &str) -> Self {
        self.user = Some((name.to_owned(), password.to_owned()));
        self
    }

    /// More flags for every member.
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The initial cluster token, which makes the cluster id together with names and peer URLs; random by
    /// default, so that two clusters are never the same by accident.
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// The client URL that a member, by its index, has in the member list: that of a [`super::Liar`] before it.
    pub fn advertise(mut self, member: usize, url: &str) -> Self {
        self.advertise.insert(member, url.to_owned());
        self
    }

    /// Starts the members and returns once each of them serves.
    #[track_caller]
    pub fn start(self) -> Cluster {
        let mut last = None;
        for _ in 0..TRIES {
            let mut cluster = self.plan();
            cluster.nodes.iter_mut().for_each(Node::launch);
            match cluster.nodes.iter().try_for_each(Node::ready) {
                Ok(()) => {
                    if let Some(user) = &self.user {
                        cluster.enable_auth(user.clone());
                    }
                    return cluster;
                }
                Err(NotReady::PortTaken) => last = Some(NotReady::PortTaken),
                Err(why) => panic!("{} with {} members did not start: {why:?}", self.line, self.members),
            }
        }
        panic!("{} did not start {TRIES} times: {last:?}", self.line);
    }

    #[track_caller]
    fn plan(&self) -> Cluster {
        let dir = tempfile::Builder::new().prefix("refloat-bed-").tempdir().expect("make a temporary directory");
        let target = Target { pki: self.tls.then(|| Pki::make(dir.path())), ..Target::default() };
        let plan = |i: usize| {
            let name = format!("m{}", i + 1);
            Node::plan(self.line, &name, dir.path().join(&name), target.clone())
        };
        let mut nodes: Vec<Node> = (0..self.members).map(plan).collect();
        let peers: Vec<String> = nodes.iter().map(|n| format!("{}={}", n.name(), n.peer_url())).collect();
        let token = self.token.clone().unwrap_or_else(|| format!("bed-{}", Rng::from_clock().hex(16)));
        for (i, node) in nodes.iter_mut().enumerate() {
            node.advertise = self.advertise.get(&i).cloned();
            node.args = vec!["--initial-cluster".into(), peers.join(",")];
            node.args.extend(["--initial-cluster-state=new".into(), format!("--initial-cluster-token={token}")]);
            node.args.extend(self.args.iter().cloned());
        }
        Cluster { line: self.line, args: self.args.clone(), target, nodes, dir }
    }
}

/// A running cluster; its members end when it is dropped.
pub struct Cluster {
    line: Line,
    args: Vec<String>,
    /// Certificates and user; the endpoints are the nodes'.
    target: Target,
    nodes: Vec<Node>,
    // Last, so that members have ended before their data goes.
    dir: TempDir,
}

impl Cluster {
    pub fn builder(line: Line) -> Builder {
        let (args, advertise) = (Vec::new(), HashMap::new());
        Builder { line, members: 1, tls: false, user: None, args, token: None, advertise }
    }

    /// One plain member.
    #[track_caller]
    pub fn start(line: Line) -> Self {
        Cluster::builder(line).start()
    }

    pub fn line(&self) -> Line {
        self.line
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    #[track_caller]
    pub fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    #[track_caller]
    pub fn node_mut(&mut self, index: usize) -> &mut Node {
        &mut self.nodes[index]
    }

    /// The client URLs of all members.
    pub fn endpoints(&self) -> Vec<String> {
        self.nodes.iter().map(|n| n.client_url().to_owned()).collect()
    }

    pub fn pki(&self) -> Option<&Pki> {
        self.target.pki.as_ref()
    }

    /// A directory for whatever a test wants to keep beside the members; removed with them.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The index of the leader; waits for an election.
    #[track_caller]
    pub fn leader_index(&self) -> usize {
        let leader = || self.nodes.iter().position(Node::is_leader);
        let found = until(Instant::now() + Duration::from_secs(60), leader);
        found.expect("a cluster with quorum elects a leader within a minute")
    }

    #[track_caller]
    pub fn leader(&self) -> &Node {
        self.node(self.leader_index())
    }

    /// All members but the leader.
    #[track_caller]
    pub fn followers(&self) -> Vec<&Node> {
        let leader = self.leader_index();
        self.nodes.iter().enumerate().filter(|(i, _)| *i != leader).map(|(_, n)| n).collect()
    }

    /// etcdctl of this line against all members.
    #[track_caller]
    pub fn etcdctl(&self, args: &[&str]) -> Output {
        Target::from(self).etcdctl(self.line).args(args).run()
    }

    /// Adds a learner and waits until it follows; gives its index.
    #[track_caller]
    pub fn add_learner(&mut self) -> usize {
        let name = format!("m{}", self.nodes.len() + 1);
        let mut node = Node::plan(self.line, &name, self.dir.path().join(&name), self.target.clone());
        self.etcdctl(&["member", "add", &name, "--learner", &format!("--peer-urls={}", node.peer_url())]).ok();
        let known = self.nodes.iter().chain([&node]);
        let peers: Vec<String> = known.map(|n| format!("{}={}", n.name(), n.peer_url())).collect();
        node.args = vec!["--initial-cluster".into(), peers.join(","), "--initial-cluster-state=existing".into()];
        node.args.extend(self.args.iter().cloned());
        node.launch();
        node.wait_ready();
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Kills all members, throws their data away and starts them again with the same names, URLs and token: a new
    /// cluster with the same cluster id. Authentication is off in it.
    #[track_caller]
    pub fn rebuild(&mut self) {
        self.stop_and_clear();
        self.start_again();
    }

    /// Kills all members and gives each the content of a snapshot by this line's own restore; `args` are more flags
    /// for that. The cluster id changes when the token does, which these flags decide.
    #[track_caller]
    pub fn restore(&mut self, snapshot: &Path, args: &[&str]) {
        self.stop_and_clear();
        let peers: Vec<String> = self.nodes.iter().map(|n| format!("{}={}", n.name(), n.peer_url())).collect();
        for node in &self.nodes {
            let (snapshot, data) = (snapshot.display().to_string(), node.data_dir().display().to_string());
            let mut restore = vec!["snapshot", "restore", &snapshot, "--data-dir", &data, "--name", node.name()];
            let (peers, peer) = (peers.join(","), node.peer_url());
            restore.extend(["--initial-cluster", &peers, "--initial-advertise-peer-urls", &peer]);
            restore.extend(args);
            self.line.etcdutl(&restore).ok();
        }
        self.start_again();
    }

    #[track_caller]
    fn stop_and_clear(&mut self) {
        for node in &mut self.nodes {
            node.kill();
            std::fs::remove_dir_all(node.data_dir()).expect("remove the data of a member");
        }
        for target in self.nodes.iter_mut().map(|n| &mut n.target).chain([&mut self.target]) {
            target.user = None;
        }
    }

    #[track_caller]
    fn start_again(&mut self) {
        self.nodes.iter_mut().for_each(Node::launch);
        self.nodes.iter().for_each(Node::wait_ready);
    }

    #[track_caller]
    fn enable_auth(&mut self, user: (String, String)) {
        let (name, password) = &user;
        self.etcdctl(&["user", "add", &format!("{name}:{password}")]).ok();
        // Newer lines have the role from the start, older ones want it made.
        self.etcdctl(&["role", "add", "root"]);
        self.etcdctl(&["user", "grant-role", name, "root"]).ok();
        self.etcdctl(&["auth", "enable"]).ok();
        for target in self.nodes.iter_mut().map(|n| &mut n.target).chain([&mut self.target]) {
            target.user = Some(user.clone());
        }
    }

    /// Saves the logs where they outlive the test, and shows their ends.
    fn tell(&self) {
        let kept = keep_for_people(self.dir.path());
        eprintln!("logs of {} are kept in {}", self.line, kept.display());
        for node in &self.nodes {
            eprintln!("{}", node.log_end());
            let to = kept.join(format!("{}.log", node.name()));
            if let Err(e) = std::fs::copy(node.log_file(), &to) {
                eprintln!("cannot keep {}: {e}", to.display());
            }
        }
    }
}

impl From<&Cluster> for Target {
    fn from(cluster: &Cluster) -> Self {
        Target { endpoints: cluster.endpoints(), ..cluster.target.clone() }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell();
        }
    }
}

/// A directory below `target/tmp` with the test's and the cluster's name.
pub(super) fn keep_for_people(cluster: &Path) -> PathBuf {
    let test = std::thread::current().name().unwrap_or("test").replace("::", ".");
    let name = cluster.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let base = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = base.join(format!("{test}.{name}"));
    if let Err(e) = std::fs::create_dir_all(&dir) {
        eprintln!("cannot make {}: {e}", dir.display());
    }
    dir
}
