//! Load driver: starts a server, drives it from several clients, and prints one JSON report with the floor beside it.
//!
//! `cargo bench --bench load -- --database sqlite` (see `bench/README.md`). The floor is measured in the same run: the
//! same HTTP layers answering the same bytes from memory, and the same bytes written and synced to the same disk.
//! Times on a shared machine drift; compare the ratios.

mod catalog;
mod floor;
mod history;
mod http;
mod measure;
mod objects;
mod peers;
mod sign;
mod stack;
mod target;
mod transactions;

use clap::{Parser, ValueEnum};
use measure::{Figure, resident_mib};
use serde::Serialize;
use std::path::{Path, PathBuf};
use target::Target;

/// The server's allocator, so that the floor differs only in what stands behind the HTTP layers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
struct Arguments {
    /// Which database the server runs on. Postgres needs `TIDEWATER_TEST_POSTGRES_URL` of a cluster made for this.
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Database,
    /// Seconds each measurement lasts.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Only the measurements whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Folder for the server's data and the floor's files: on the disk to be measured.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Compares the S3 store with others instead: `NAME=PROGRAM`, where NAME is versitygw or minio. Repeated.
    #[arg(long)]
    peer: Vec<String>,
    /// Size of the object that memory is watched for. MiB.
    #[arg(long, default_value_t = 2048)]
    large_mib: u64,
    /// Serves the HTTP floor instead (used by this program itself).
    #[arg(long, hide = true)]
    serve_stack: Option<std::net::SocketAddr>,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Database {
    Sqlite,
    Postgres,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    database: Option<Database>,
    idle_resident_mib: Option<f64>,
    figures: Vec<Figure>,
    floor: Vec<Figure>,
    memory: Option<objects::Memory>,
}

const FEW: &[usize] = &[1, 8, 16];
const ONE_AND_MANY: &[usize] = &[1, 16];
const SIZES: &[usize] = &[4 << 10, 1 << 20, 64 << 20];

fn main() {
    let arguments = Arguments::parse();
    if let Some(addr) = arguments.serve_stack {
        return stack::serve(addr);
    }
    let folder = arguments
        .folder
        .clone()
        .unwrap_or_else(std::env::temp_dir)
        .join(format!("tidewater-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the bench folder can be made");
    let report = if arguments.peer.is_empty() {
        serde_json::to_string_pretty(&run(&arguments, &folder))
    } else {
        serde_json::to_string_pretty(&peers::compare(&arguments, &folder))
    };
    println!("{}", report.expect("a report is JSON"));
    std::fs::remove_dir_all(&folder).expect("the bench folder can be removed");
}

fn run(arguments: &Arguments, folder: &Path) -> Report {
    let url = (arguments.database == Database::Postgres).then(|| {
        std::env::var("TIDEWATER_TEST_POSTGRES_URL").expect("TIDEWATER_TEST_POSTGRES_URL names a Postgres cluster")
    });
    let target = Target::start(&folder.join("data"), url.as_deref());
    let signer = sign::Signer::new(target.s3);
    let mut report = Report {
        database: Some(arguments.database),
        idle_resident_mib: resident_mib(target.pid()),
        ..Report::default()
    };
    measure_catalog(arguments, &target, folder, &mut report);
    measure_objects(arguments, &target, &signer, folder, &mut report);
    report
}

fn measure_catalog(arguments: &Arguments, target: &Target, folder: &Path, report: &mut Report) {
    let seconds = arguments.seconds;
    if arguments.wants("loadTable") {
        report.figures.extend(note(catalog::load_table(target, seconds, FEW)));
        let bytes = target.load_answer_bytes("/v1/namespaces/load/tables/sales");
        report.floor.extend(note(stack::answers(target, "HTTP layers, loadTable's bytes", bytes, seconds, FEW)));
    }
    if arguments.wants("commit") {
        report.figures.extend(note(catalog::commit_one_table(target, seconds, FEW)));
        report.figures.extend(note(catalog::commit_many_tables(target, seconds, &[8, 16, 64])));
        let floor = |clients| floor::synced_appends(folder, "two synced writes of 4 KiB", seconds, 4096, 2, clients);
        report.floor.extend(note(vec![floor(1), floor(8)]));
    }
    if arguments.wants("history") {
        let bytes = history::prepare(target);
        report.figures.extend(note(history::load_table(target, seconds, ONE_AND_MANY)));
        report.floor.extend(note(stack::answers(target, "HTTP layers, history's bytes", bytes, seconds, ONE_AND_MANY)));
        report.figures.extend(note(vec![history::commit(target, seconds)]));
    }
    if arguments.wants("transaction") {
        report.figures.extend(note(transactions::ten_tables(target, seconds)));
    }
    if arguments.wants("createTable") {
        report.figures.extend(note(catalog::create_table(target, seconds, FEW)));
    }
    if arguments.wants("listTables") {
        report.figures.extend(note(catalog::list_tables(target, seconds, ONE_AND_MANY)));
    }
}

fn measure_objects(arguments: &Arguments, target: &Target, signer: &sign::Signer, folder: &Path, report: &mut Report) {
    let seconds = arguments.seconds;
    for &bytes in SIZES {
        let size = objects::size_name(bytes);
        if arguments.wants(&format!("PUT {size}")) {
            report.figures.extend(note(objects::put(target, signer, seconds, bytes, ONE_AND_MANY)));
            let name = format!("synced file of {size}");
            let floor = |clients| floor::synced_files(folder, &name, seconds, bytes, clients);
            report.floor.extend(note(vec![floor(1), floor(16)]));
        }
        if arguments.wants(&format!("GET {size}")) {
            report.figures.extend(note(objects::get(target, signer, seconds, bytes, ONE_AND_MANY)));
            let name = format!("HTTP layers, {size} from {}", stack::source(bytes));
            report.floor.extend(note(stack::answers(target, &name, bytes, seconds, ONE_AND_MANY)));
        }
    }
    if arguments.wants("memory") {
        report.memory = Some(objects::memory(target, signer, arguments.large_mib << 20));
    }
}

/// Shows people on the terminal how far it is; the report goes to standard output.
fn note(figures: Vec<Figure>) -> Vec<Figure> {
    for figure in &figures {
        eprintln!(
            "{:<40} {:>3} clients {:>10.1}/s  p50 {:>8.3} ms  p99 {:>8.3} ms  {} failures",
            figure.operation, figure.clients, figure.per_second, figure.p50_ms, figure.p99_ms, figure.failures
        );
    }
    figures
}

impl Arguments {
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }
}
