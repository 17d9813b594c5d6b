//! Every call the store itself makes on files; SQLite's own calls are its own.
//!
//! Large bodies live under random names in [`FOLDERS`] pre-made folders, so no folder is ever renamed or made while
//! serving. A [`Faults`] plan can stand in front of each call: tests fail the Nth one and read back what was written
//! and synced; without a plan the cost is one branch.

use super::{Error, Result, health::Health, reaper::Reaper};
use rustix::buffer::spare_capacity;
use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Fan-out: names start with two hexadecimal digits, which are their folder.
const FOLDERS: u32 = 256;
const FILES_FOLDER: &str = "files";

/// A share of the disk, 1 in this many bytes, that writes leave free.
const RESERVE_SHARE: u64 = 50;

/// Holds room that nobody else can take: others write to the disk too, and a deletion has to be written down.
const BALLAST_FILE: &str = "ballast";
const BALLAST_BYTES: u64 = 4 << 20;

/// The store's folder as a set of files. Cheap to clone.
#[derive(Clone)]
pub(super) struct Disk {
    files: Arc<Path>,
    ballast: Arc<Ballast>,
    /// 0: no room is kept, by no means.
    reserve_bytes: u64,
    health: Arc<Health>,
    faults: Option<Arc<Faults>>,
}

/// Names a file of this store: `ab/` and 32 hexadecimal digits starting with `ab`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FileName(String);

impl FileName {
    fn random() -> Self {
        let name = uuid::Uuid::new_v4().simple().to_string();
        Self(format!("{}/{name}", &name[..2]))
    }

    /// For names the index or the folder gave: they never leave the store's own folder.
    pub fn parse(name: &str) -> Option<Self> {
        let (folder, rest) = name.split_once('/')?;
        let valid = folder.len() == 2 && rest.len() == 32 && rest.starts_with(folder);
        (valid && rest.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn folder(&self) -> &str {
        self.0.split_once('/').map_or("", |(folder, _)| folder)
    }
}

struct Ballast {
    file: PathBuf,
    held: Mutex<bool>,
}

impl Ballast {
    /// Takes the room again once there is enough.
    fn take(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if *held {
            return;
        }
        match self.allocate() {
            Ok(()) => *held = true,
            Err(error) => {
                tracing::warn!(%error, "no room can be held for deletions on a full disk");
                // Part of it is of no use.
                let _ = fs::remove_file(&self.file);
            }
        }
    }

    fn allocate(&self) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        let file = File::options().write(true).create(true).truncate(false).open(&self.file)?;
        Ok(fallocate(&file, FallocateFlags::empty(), 0, BALLAST_BYTES)?)
    }

    fn give_up(&self) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = std::mem::take(&mut *held) && fs::remove_file(&self.file).is_ok();
        if dropped {
            tracing::error!("the disk is full to the last byte: the room held for deletions is given up");
        }
        dropped
    }
}

impl Disk {
    /// Makes the folders where they are missing. Blocking.
    pub fn open(root: &Path, reserve_bytes: u64, health: Arc<Health>, faults: Option<Arc<Faults>>) -> io::Result<Self> {
        let files = root.join(FILES_FOLDER);
        // The last folder is made last: where it stands, all stand.
        if !files.join(folder_name(FOLDERS - 1)).is_dir() {
            for folder in 0..FOLDERS {
                fs::create_dir_all(files.join(folder_name(folder)))?;
            }
            File::open(&files)?.sync_all()?;
            File::open(root)?.sync_all()?;
        }
        let ballast = Arc::new(Ballast { file: root.join(BALLAST_FILE), held: Mutex::new(false) });
        if reserve_bytes > 0 {
            ballast.take();
        }
        Ok(Self { files: files.into(), ballast, reserve_bytes, health, faults })
    }

    /// To look at the files in a folder that may be another process's.
    pub fn view(root: &Path) -> Self {
        let ballast = Arc::new(Ballast { file: root.join(BALLAST_FILE), held: Mutex::new(false) });
        let (files, health) = (root.join(FILES_FOLDER).into(), Arc::new(Health::new()));
        Self { files, ballast, reserve_bytes: 0, health, faults: None }
    }

    /// Bytes of the files beside the large bodies' (the index and its log), and bytes of the disk that are free.
    pub fn usage(&self, root: &Path) -> io::Result<(u64, u64)> {
        let mut used = 0;
        for entry in fs::read_dir(root)? {
            let (name, found) = {
                let entry = entry?;
                (entry.file_name(), entry.metadata()?)
            };
            used += if found.is_file() && name != BALLAST_FILE { found.len() } else { 0 };
        }
        let disk = rustix::fs::statvfs(root).map_err(io::Error::from)?;
        Ok((used, disk.f_bavail.saturating_mul(disk.f_frsize)))
    }

    /// Makes a little room on a disk that is full to the last byte, for what frees more. Answers whether it did.
    pub fn drop_ballast(&self) -> bool {
        self.ballast.give_up()
    }

    /// # Errors
    /// `Error::Full` when writing `bytes` would leave less free than the reserve.
    pub fn require_room(&self, bytes: u64) -> Result<()> {
        self.before(|| Call::Room)?;
        if self.reserve_bytes == 0 {
            return Ok(());
        }
        let disk = rustix::fs::statvfs(&*self.files).map_err(io::Error::from)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let total = disk.f_blocks.saturating_mul(disk.f_frsize);
        let reserve = self.reserve_bytes.max(total / RESERVE_SHARE);
        if free < reserve.saturating_add(bytes) {
            return Err(Error::Full);
        }
        self.ballast.take();
        Ok(())
    }

    /// A new file that is removed when dropped, unless [`FreshFile::keep`] is called.
    pub fn create(&self, reaper: Reaper) -> Result<FreshFile> {
        self.health.check()?;
        let name = FileName::random();
        self.before(|| Call::Create(name.0.clone()))?;
        let file = File::options().write(true).create_new(true).open(self.path(&name))?;
        Ok(FreshFile { disk: self.clone(), reaper, name, file, length: 0, kept: false })
    }

    pub fn open_file(&self, name: &FileName) -> io::Result<StoredFile> {
        self.before(|| Call::Open(name.0.clone()))?;
        let file = File::open(self.path(name))?;
        Ok(StoredFile { disk: self.clone(), name: name.clone(), file })
    }

    /// Removing a file that is gone already succeeds.
    pub fn remove(&self, name: &FileName) -> io::Result<()> {
        self.before(|| Call::Remove(name.0.clone()))?;
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The names of the fan-out folders, for walking all files with bounded memory.
    pub fn folders() -> impl Iterator<Item = String> {
        (0..FOLDERS).map(folder_name)
    }

    /// The files of one fan-out folder; foreign names are left out.
    pub fn list(&self, folder: &str) -> io::Result<Vec<FileName>> {
        self.before(|| Call::List(folder.to_owned()))?;
        let mut names = Vec::new();
        for entry in fs::read_dir(self.files.join(folder))? {
            let name = entry?.file_name();
            names.extend(name.to_str().and_then(|name| FileName::parse(&format!("{folder}/{name}"))));
        }
        Ok(names)
    }

    fn path(&self, name: &FileName) -> PathBuf {
        self.files.join(&name.0)
    }

    fn before(&self, call: impl FnOnce() -> Call) -> io::Result<()> {
        match &self.faults {
            None => Ok(()),
            Some(faults) => faults.meet(call()),
        }
    }

    /// A sync that fails for anything but want of space is final.
    fn synced(&self, result: io::Result<()>) -> Result<()> {
        result.map_err(|error| match Error::from(error) {
            Error::Full => Error::Full,
            error => {
                self.health.fail(&super::error_chain(&error));
                error
            }
        })
    }
}

/// Makes a folder and those above it where they are missing, each synced into the one that holds it. Blocking.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = match folder.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    make_folder(above)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => File::open(above)?.sync_all(),
    }
}

fn folder_name(folder: u32) -> String {
    format!("{folder:02x}")
}

/// A file being written, in one sequence of appends. Dropping it removes it, on the reaper's thread.
pub(super) struct FreshFile {
    disk: Disk,
    reaper: Reaper,
    name: FileName,
    file: File,
    length: u64,
    kept: bool,
}

impl FreshFile {
    pub fn name(&self) -> &FileName {
        &self.name
    }

    /// Blocking.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.disk.before(|| Call::Write { name: self.name.0.clone(), offset: self.length, bytes: bytes.to_vec() })?;
        self.file.write_all_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Syncs the bytes and then the folder that names them: from here a crash keeps the file. Blocking.
    pub fn sync(&self) -> Result<()> {
        self.disk.health.check()?;
        let folder = self.name.folder();
        // Before anything is synced: to find too many files open is no failed sync.
        self.disk.before(|| Call::OpenFolder(folder.to_owned()))?;
        let opened = File::open(self.disk.files.join(folder))?;
        let synced = self.disk.before(|| Call::Sync(self.name.0.clone())).and_then(|()| self.file.sync_data());
        self.disk.synced(synced)?;
        let synced = self.disk.before(|| Call::SyncFolder(folder.to_owned())).and_then(|()| opened.sync_all());
        self.disk.synced(synced)
    }

    /// A record names the file now, or may: it stays.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for FreshFile {
    fn drop(&mut self) {
        if !self.kept {
            self.reaper.discard(self.name.clone());
        }
    }
}

/// A published file, open for positioned reads; readable to its end even after it was removed.
pub(super) struct StoredFile {
    disk: Disk,
    name: FileName,
    file: File,
}

impl StoredFile {
    pub fn name(&self) -> &FileName {
        &self.name
    }

    /// Up to `length` bytes at `offset`; fewer only where the file ends. Blocking.
    pub fn read_at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.disk.before(|| Call::Read(self.name.0.clone()))?;
        let mut bytes = Vec::with_capacity(length.max(1));
        while bytes.len() < length {
            let position = offset.saturating_add(bytes.len() as u64);
            match rustix::io::pread(&self.file, spare_capacity(&mut bytes), position) {
                Ok(0) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}

/// One call on the disk, as a plan sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    Room,
    Create(String),
    Write { name: String, offset: u64, bytes: Vec<u8> },
    OpenFolder(String),
    Sync(String),
    SyncFolder(String),
    Open(String),
    Read(String),
    Remove(String),
    List(String),
}

/// What to do to the calls of a [`Disk`], and what they were.
#[derive(Default)]
pub(super) struct Faults(Mutex<Plan>);

#[derive(Default)]
struct Plan {
    calls: Vec<Call>,
    /// Index of the call to fail, counted from the last `Faults::fail_nth`, and the error number it answers.
    failing: Option<(usize, i32)>,
    failed: Option<Call>,
}

impl Faults {
    fn meet(&self, call: Call) -> io::Result<()> {
        let mut plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = plan.calls.len();
        plan.calls.push(call.clone());
        match plan.failing {
            Some((nth, error)) if nth == index => {
                plan.failed = Some(call);
                Err(io::Error::from_raw_os_error(error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
impl Faults {
    /// From here on the call number `nth` (from 0) fails with `error`; forgets earlier calls.
    pub fn fail_nth(&self, nth: usize, error: i32) {
        *self.0.lock().unwrap() = Plan { failing: Some((nth, error)), ..Plan::default() };
    }

    /// No call fails any more; forgets earlier calls.
    pub fn clear(&self) {
        *self.0.lock().unwrap() = Plan::default();
    }

    pub fn calls(&self) -> Vec<Call> {
        self.0.lock().unwrap().calls.clone()
    }

    /// The call that was made to fail, if it was reached.
    pub fn failed(&self) -> Option<Call> {
        self.0.lock().unwrap().failed.clone()
    }
}
