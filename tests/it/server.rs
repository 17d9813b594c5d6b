//! Starts the real program on free ports and stops it: gently, at once, or when the test ends.

use crate::database::{Database, PostgresDatabase};
use std::{
    fs::{self, File},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};
use tempfile::TempDir;

const READY_DEADLINE: Duration = Duration::from_secs(30);
const EXIT_DEADLINE: Duration = Duration::from_secs(30);
const CONDITION_DEADLINE: Duration = Duration::from_secs(30);
const POLL_EVERY: Duration = Duration::from_millis(10);

pub const ROOT_ID: &str = "TWROOTFORTESTS00";
pub const ROOT_SECRET: &str = "root-secret-for-tests/0123456789+abcdef";

/// What a server is started with. Listeners, folder, database and root key are set already.
pub struct Setup {
    database: Option<PostgresDatabase>,
    folder: TempDir,
    flags: Vec<(String, String)>,
    variables: Vec<(String, String)>,
    addresses: [SocketAddr; 3],
}

impl Setup {
    pub async fn on(database: Database) -> Setup {
        let folder = tempfile::Builder::new().prefix("tidewater-it-").tempdir().expect("a temporary folder");
        let database = match database {
            Database::Sqlite => None,
            Database::Postgres => Some(PostgresDatabase::create().await),
        };
        let variables = vec![
            ("TIDEWATER_ROOT_ACCESS_KEY_ID".to_owned(), ROOT_ID.to_owned()),
            ("TIDEWATER_ROOT_SECRET_ACCESS_KEY".to_owned(), ROOT_SECRET.to_owned()),
        ];
        Setup { database, folder, flags: Vec::new(), variables, addresses: free_addresses() }
    }

    /// Another process on the same database.
    pub fn replica_of(server: &Server) -> Setup {
        let folder = tempfile::Builder::new().prefix("tidewater-it-").tempdir().expect("a temporary folder");
        let mut variables = server.setup.variables.clone();
        variables.push(("TIDEWATER_DATABASE_URL".to_owned(), server.postgres().url()));
        Setup { database: None, folder, flags: Vec::new(), variables, addresses: free_addresses() }
    }

    /// Adds a flag: `flag("token-lifetime-s", 1)`.
    pub fn flag(mut self, name: &str, value: impl ToString) -> Setup {
        self.flags.push((format!("--{name}"), value.to_string()));
        self
    }

    /// Sets a variable of the environment.
    pub fn variable(mut self, name: &str, value: impl ToString) -> Setup {
        self.variables.push((name.to_owned(), value.to_string()));
        self
    }

    /// Leaves the root key to the program.
    pub fn without_root_key(mut self) -> Setup {
        self.variables.retain(|(name, _)| !name.starts_with("TIDEWATER_ROOT_"));
        self
    }

    /// Puts the data folder somewhere else than into the test's own folder.
    pub fn data(self, folder: &Path) -> Setup {
        self.flag("data", folder.display())
    }

    /// Starts it and waits until it says it is ready.
    pub async fn start(self) -> Server {
        let mut server = Server { child: spawn(&self), setup: self };
        server.wait_until_ready().await;
        server
    }

    /// Runs it to its end, for starts that must fail: the status and everything it said.
    pub async fn run_to_end(self) -> (ExitStatus, String) {
        let mut server = Server { child: spawn(&self), setup: self };
        let status = server.wait_for_exit().await;
        (status, server.log())
    }

    /// The program with this setup's settings, for other subcommands: `command("connect")` and further arguments.
    pub fn command(&self, subcommand: &str) -> Command {
        let mut command = self.command_on_folder(subcommand);
        let listeners = ["--catalog-addr", "--s3-addr", "--metrics-addr"];
        for (name, address) in listeners.iter().zip(self.addresses) {
            command.arg(name).arg(address.to_string());
        }
        for (name, value) in self.flags.iter().filter(|(name, _)| name != "--data") {
            command.arg(format!("{name}={value}"));
        }
        command
    }

    /// The program told of folder, database and variables, and of nothing else.
    pub fn command_on_folder(&self, subcommand: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidewater"));
        command.arg(subcommand).stdin(Stdio::null());
        // The test's own variables would be settings the program does not know.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TIDEWATER_")) {
            command.env_remove(name);
        }
        if let Some(database) = &self.database {
            command.env("TIDEWATER_DATABASE_URL", database.url());
        }
        command.envs(self.variables.iter().cloned());
        command.arg("--data").arg(self.data_folder());
        command
    }

    fn data_folder(&self) -> PathBuf {
        let given = self.flags.iter().find(|(name, _)| name == "--data");
        given.map_or_else(|| self.folder.path().join("data"), |(_, value)| PathBuf::from(value))
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }
}

/// A running server. Dropping it kills the process; a failing test shows the end of its log.
pub struct Server {
    child: Child,
    setup: Setup,
}

impl Server {
    pub async fn start(database: Database) -> Server {
        Setup::on(database).await.start().await
    }

    /// The Postgres database it stands on.
    pub fn postgres(&self) -> &PostgresDatabase {
        self.setup.database.as_ref().expect("this server stands on Postgres")
    }
    pub fn catalog_url(&self) -> String {
        format!("http://{}", self.setup.addresses[0])
    }
    pub fn s3_url(&self) -> String {
        format!("http://{}", self.setup.addresses[1])
    }
    pub fn metrics_url(&self) -> String {
        format!("http://{}", self.setup.addresses[2])
    }
    pub fn catalog_address(&self) -> SocketAddr {
        self.setup.addresses[0]
    }
    pub fn s3_address(&self) -> SocketAddr {
        self.setup.addresses[1]
    }
    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.setup.data_folder()
    }
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
    /// The program with this server's settings, for other subcommands.
    pub fn command(&self, subcommand: &str) -> Command {
        self.setup.command(subcommand)
    }
    /// The program told where this server's folder is, and its root key.
    pub fn command_on_folder(&self, subcommand: &str) -> Command {
        self.setup.command_on_folder(subcommand)
    }
    /// Everything every start of this server wrote to its standard output and error.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.setup.log_path()).unwrap_or_default()).into_owned()
    }

    /// SIGTERM, without waiting.
    pub fn terminate(&self) {
        signal("TERM", self.pid());
    }
    /// SIGKILL: what a crash of the process is like. `restart` brings it back.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process can be killed");
        self.child.wait().expect("the process ends");
    }
    /// Starts it again after `kill` or its end: same folder, database and addresses.
    pub async fn restart(&mut self) {
        self.child = spawn(&self.setup);
        self.wait_until_ready().await;
    }
    pub async fn wait_for_exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + EXIT_DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the process can be waited for") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server did not end:\n{}", self.log());
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    pub async fn wait_until_ready(&mut self) {
        let url = format!("{}/health/ready", self.catalog_url());
        let deadline = Instant::now() + READY_DEADLINE;
        loop {
            if reqwest::get(&url).await.is_ok_and(|answer| answer.status() == 200) {
                return;
            }
            if let Some(status) = self.child.try_wait().expect("the process can be waited for") {
                panic!("the server ended with {status}:\n{}", self.log());
            }
            assert!(Instant::now() < deadline, "the server did not become ready:\n{}", self.log());
            tokio::time::sleep(POLL_EVERY).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            let log = self.log();
            let from = log.lines().count().saturating_sub(40);
            eprintln!("---- the end of the server's log");
            log.lines().skip(from).for_each(|line| eprintln!("{line}"));
        }
    }
}

/// Waits for a condition, with a deadline.
pub async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    tokio::time::timeout(CONDITION_DEADLINE, waiting).await.expect("the condition holds in time");
}

/// Sends a signal by name with the shell's own `kill`.
pub fn signal(name: &str, pid: u32) {
    let status = Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -{name} {pid}");
}

fn spawn(setup: &Setup) -> Child {
    let log = File::options().create(true).append(true).open(setup.log_path()).expect("the log can be opened");
    let errors = log.try_clone().expect("the log can be shared");
    setup.command("serve").stdout(log).stderr(errors).spawn().expect("the server starts")
}

/// Below the ports that the system gives to outgoing connections, so that nobody takes one before the server does, nor
/// while it is down; each process of tests goes through them from another place.
const PORTS: std::ops::Range<u32> = 12_000..32_000;

fn free_addresses() -> [SocketAddr; 3] {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let free = || loop {
        let step = TAKEN.fetch_add(1, Ordering::Relaxed);
        assert!(step < PORTS.len() as u32, "no port is free");
        let start = std::process::id().wrapping_mul(1_009);
        let port = PORTS.start + start.wrapping_add(step) % PORTS.len() as u32;
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).expect("a port")));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    };
    [free(), free(), free()]
}
