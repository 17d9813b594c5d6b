//! Feeds broken input to everything that reads clients' JSON and to whatever S3 reads of a request, for a while, and stops
//! at the first panic or broken promise.
//!
//! Inputs start from real files and requests and are changed at random, as text and as JSON values. Those that come to
//! an end not seen before (another error, another set of changed members) are kept and changed further. The seed is
//! printed; `--seed N` starts from it again. An input that fails is written to a file that is named.
//!
//! ```text
//! cargo test --test fuzz -- --seconds 300
//! ```

mod mutate;
mod reports;
mod s3;
mod targets;
mod views;

use mutate::{Dice, mutated};
use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    process::ExitCode,
    sync::mpsc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use targets::{TARGETS, Target};

/// Without `--seconds`: enough to notice that something is thoroughly wrong.
const SECONDS_DEFAULT: u64 = 5;
/// Inputs kept for one target.
const KEPT_MAX: usize = 4_000;
/// Longer inputs are not changed further. Bytes.
const INPUT_BYTES_MAX: usize = 64 << 10;
/// An input that takes longer hangs the server for its sender's pleasure.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    // A filter meant for the other tests.
    if arguments.get(1).is_some_and(|filter| !filter.starts_with('-') && !"fuzz".contains(filter.as_str())) {
        println!("not run: {} is no part of \"fuzz\"", arguments[1]);
        return ExitCode::SUCCESS;
    }
    let seconds = number("--seconds").unwrap_or(SECONDS_DEFAULT);
    let seed = number("--seed")
        .unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_micros() as u64));
    println!("fuzzing for {seconds} s with --seed {seed}");
    std::panic::set_hook(Box::new(|_| {}));
    let time = Duration::from_secs(seconds) / TARGETS.len() as u32;
    let failed = TARGETS.iter().filter(|target| !run(target, time, seed)).count();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the target stood.
fn run(target: &'static Target, time: Duration, seed: u64) -> bool {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || Fuzzer::new(target, seed, tell).run(time));
    let mut last: Vec<u8> = Vec::new();
    loop {
        match told.recv_timeout(ANSWER_TIME_MAX) {
            Ok(Report::Trying(input)) => last = input,
            Ok(Report::Done { runs, ends }) => {
                println!("{}: {runs} inputs, {ends} different ends", target.name);
                return true;
            }
            Ok(Report::Failed { input, why }) => return fail(target, &input, &why),
            Err(_) => {
                return fail(target, &last, &format!("no end after {ANSWER_TIME_MAX:?}, or soon after this input"));
            }
        }
    }
}

fn fail(target: &Target, input: &[u8], why: &str) -> bool {
    let file: PathBuf = std::env::temp_dir().join(format!("tidewater-fuzz-{}-{}", target.name, std::process::id()));
    let written = std::fs::write(&file, input).map(|()| file.display().to_string());
    println!("{}: FAILED: {why}\n  input: {}", target.name, written.unwrap_or_else(|error| error.to_string()));
    false
}

enum Report {
    /// Said now and then, so that whoever waits knows about where it hangs.
    Trying(Vec<u8>),
    Done {
        runs: u64,
        ends: usize,
    },
    Failed {
        input: Vec<u8>,
        why: String,
    },
}

struct Fuzzer {
    target: &'static Target,
    dice: Dice,
    kept: Vec<Vec<u8>>,
    /// How often each end was come to.
    ends: HashMap<String, u64>,
    tell: mpsc::Sender<Report>,
}

impl Fuzzer {
    fn new(target: &'static Target, seed: u64, tell: mpsc::Sender<Report>) -> Fuzzer {
        Fuzzer { target, dice: Dice::new(seed), kept: (target.corpus)(), ends: HashMap::new(), tell }
    }

    fn run(mut self, time: Duration) {
        let began = Instant::now();
        let mut runs = 0;
        for input in self.kept.clone() {
            if !self.try_one(&input) {
                return;
            }
        }
        while began.elapsed() < time {
            let input = mutated(&self.kept, &mut self.dice);
            if runs % 256 == 0 && self.tell.send(Report::Trying(input.clone())).is_err() {
                return;
            }
            runs += 1;
            if !self.try_one(&input) {
                return;
            }
        }
        let _ = self.tell.send(Report::Done { runs, ends: self.ends.len() });
    }

    /// `false`: it failed, and that was told.
    fn try_one(&mut self, input: &[u8]) -> bool {
        let why = match catch_unwind(AssertUnwindSafe(|| (self.target.run)(input))) {
            Ok(Ok(end)) => {
                let count = self.ends.entry(without_digits(&end)).or_default();
                *count += 1;
                if *count == 1 && self.kept.len() < KEPT_MAX && input.len() <= INPUT_BYTES_MAX {
                    self.kept.push(input.to_vec());
                }
                return true;
            }
            Ok(Err(broken)) => broken,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
            }
        };
        let _ = self.tell.send(Report::Failed { input: input.to_vec(), why });
        false
    }
}

/// Ends that differ in numbers and quoted names only are one.
fn without_digits(end: &str) -> String {
    end.chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
}
