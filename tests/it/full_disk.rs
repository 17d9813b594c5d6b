//! A full disk: writes are refused, nothing is lost, and room makes it work again without a restart.

use crate::{
    catalog::{Answer, Catalog},
    database::Database,
    s3::{BUCKET, S3, elements},
    server::{Server, Setup},
};
use reqwest::Method;
use serde_json::Value;
use std::{
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::Command,
};

on_both_databases! {
    a_full_disk_refuses_writes_and_loses_nothing,
    a_disk_that_others_filled_to_the_last_byte_loses_nothing,
}

const DISK_MIB: usize = 64;
const RESERVE_MIB: usize = 8;
const MIB: usize = 1 << 20;
const PART_BYTES: usize = 5 * MIB;
/// Their bytes lie beside the index: deleting them frees nothing at once.
const DELETED: usize = 20;
/// More than fit in any test's disk. Objects or commits.
const OBJECTS_MAX: usize = 1_000;

async fn a_full_disk_refuses_writes_and_loses_nothing(database: Database) {
    let disk = SmallDisk::mount();
    let setup = Setup::on(database).await.data(&disk.folder.join("data"));
    let mut server = setup.flag("disk-reserve-bytes", RESERVE_MIB * MIB).start().await;
    let (catalog, s3) = (Catalog::login(&server).await, S3::root(&server));
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    assert_eq!(s3.put(BUCKET, "kept", vec![1; MIB]).await.status, 200);
    let upload = Upload::begin(&s3, "parts").await;
    let first = upload.put_part(1, vec![3; PART_BYTES]).await;
    assert_eq!(first.status, 200, "{}", first.text());

    let filled = fill(&s3, "fill", MIB).await;
    assert!(filled > DISK_MIB / 2, "{filled} MiB fit on {DISK_MIB} MiB");
    fill(&s3, "rest", 64 << 10).await;
    fill(&s3, "last", 4 << 10).await;
    assert_refused(&s3, "kept").await;
    assert_refused(&s3, "new").await;
    assert_full(&upload.put_part(2, vec![4; PART_BYTES]).await);
    check_kept(&server, filled).await;
    let committed = commit_until_refused(&catalog).await;
    let loaded = catalog.load_table("ns", "t").await.ok();
    assert_eq!(loaded["metadata-location"], committed, "the refused commit swapped nothing");
    assert!(server.log().contains("ERROR"), "the operator is told:\n{}", server.log());
    // Completing copies nothing, so it may fit; refused, it is as if it had not been asked for.
    let completed = upload.complete(&first).await;
    if completed.status == 200 {
        assert!(s3.get(BUCKET, "parts").await.body == vec![3; PART_BYTES], "the completed object is whole");
    } else {
        assert_full(&completed);
        assert_eq!(s3.get(BUCKET, "parts").await.status, 404);
    }

    server.terminate();
    server.wait_for_exit().await;
    server.restart().await;
    let catalog = Catalog::login(&server).await;
    check_kept(&server, filled).await;
    // The restart tidied up, which may have made a little room.
    commit_until_refused(&catalog).await;

    for at in 0..4 {
        assert_eq!(s3.delete(BUCKET, &format!("fill/{at}")).await.status, 204);
        assert_eq!(s3.get(BUCKET, &format!("fill/{at}")).await.status, 404);
    }
    crate::server::until(async || s3.put(BUCKET, "new", vec![2; MIB]).await.status == 200).await;
    catalog.set_property("ns", "t", "key", "value").await.ok();
}

/// The reserve is the server's, but others write to the disk too.
async fn a_disk_that_others_filled_to_the_last_byte_loses_nothing(database: Database) {
    let disk = SmallDisk::mount();
    let setup = Setup::on(database).await.data(&disk.folder.join("data"));
    let server = setup.flag("disk-reserve-bytes", RESERVE_MIB * MIB).start().await;
    let (catalog, s3) = (Catalog::login(&server).await, S3::root(&server));
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    let before = catalog.set_property("ns", "t", "key", "before").await.ok()["metadata-location"].clone();
    assert_eq!(s3.put(BUCKET, "kept", vec![1; MIB]).await.status, 200);

    for at in 0..DELETED {
        assert_eq!(s3.put(BUCKET, &format!("small/{at}"), "small").await.status, 200);
    }
    let filler = disk.folder.join("filler");
    fill_to_the_last_byte(&filler);
    assert_refused(&s3, "kept").await;
    assert_refused(&s3, "new").await;
    catalog.set_property("ns", "t", "key", "lost").await.error(503, "ServiceUnavailableException");
    check_kept(&server, 0).await;
    assert_eq!(catalog.load_table("ns", "t").await.ok()["metadata-location"], before);
    for at in 0..DELETED {
        assert_eq!(s3.delete(BUCKET, &format!("small/{at}")).await.status, 204, "a deletion works on a full disk");
    }
    assert_eq!(s3.keys(BUCKET, "small/").await.len(), 0);
    assert_eq!(s3.get(BUCKET, "kept").await.status, 200);

    std::fs::remove_file(filler).expect("the filler can be removed");
    crate::server::until(async || s3.put(BUCKET, "new", vec![2; MIB]).await.status == 200).await;
    catalog.set_property("ns", "t", "key", "after").await.ok();
    assert!(s3.get(BUCKET, "kept").await.body == vec![1; MIB], "the old object is whole");
}

fn fill_to_the_last_byte(filler: &Path) {
    let mut file = std::fs::File::create(filler).expect("a file on the disk");
    for size in [MIB, 4 << 10, 1] {
        for _ in 0..DISK_MIB * MIB / size {
            match file.write(&vec![0; size]) {
                Ok(written) => assert!(written > 0),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
                    break;
                }
            }
        }
    }
}

/// Puts objects of a size until one is refused; answers how many fit.
async fn fill(s3: &S3, prefix: &str, size: usize) -> usize {
    for at in 0..OBJECTS_MAX {
        let answer = s3.put(BUCKET, &format!("{prefix}/{at}"), vec![0; size]).await;
        if answer.status != 200 {
            assert_full(&answer);
            return at;
        }
    }
    panic!("the disk never became full");
}

/// Little room may be left for files as small as metadata. Answers the last version that was acknowledged.
async fn commit_until_refused(catalog: &Catalog) -> Value {
    let mut last = catalog.load_table("ns", "t").await.ok()["metadata-location"].clone();
    for count in 0..OBJECTS_MAX {
        let answer = catalog.set_property("ns", "t", "key", &count.to_string()).await;
        if answer.status != 200 {
            answer.error(503, "ServiceUnavailableException");
            return last;
        }
        last = answer.ok()["metadata-location"].clone();
    }
    panic!("commits were never refused");
}

async fn assert_refused(s3: &S3, key: &str) {
    assert_full(&s3.put(BUCKET, key, vec![9; MIB]).await);
}

#[track_caller]
fn assert_full(answer: &Answer) {
    answer.s3_error(507, "InsufficientStorage");
}

/// A multipart upload under way.
struct Upload<'a> {
    s3: &'a S3,
    path: String,
    id: String,
}

impl<'a> Upload<'a> {
    async fn begin(s3: &'a S3, key: &str) -> Upload<'a> {
        let path = format!("/{BUCKET}/{key}");
        let begun = s3.send(Method::POST, &path, &[("uploads", "")], &[], "").await;
        let id = elements(&begun.text(), "UploadId").next().expect("an upload id").to_owned();
        Upload { s3, path, id }
    }

    async fn put_part(&self, number: u32, body: Vec<u8>) -> Answer {
        let query = [("partNumber", &*number.to_string()), ("uploadId", &self.id)];
        self.s3.send(Method::PUT, &self.path, &query, &[], body).await
    }

    /// Of its first part alone.
    async fn complete(&self, first: &Answer) -> Answer {
        let etag = first.header("etag").expect("a part's ETag");
        let part = format!("<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>");
        let body = format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>");
        self.s3.send(Method::POST, &self.path, &[("uploadId", &self.id)], &[], body).await
    }
}

/// What was there before is there still, and nothing else.
async fn check_kept(server: &Server, filled: usize) {
    let s3 = S3::root(server);
    assert!(s3.get(BUCKET, "kept").await.body == vec![1; MIB], "the old object is whole");
    assert_eq!(s3.keys(BUCKET, "fill/").await.len(), filled);
    assert_eq!(s3.get(BUCKET, "new").await.status, 404);
}

/// A file system of its own size in memory, unmounted at the end. Mounting takes root.
struct SmallDisk {
    folder: PathBuf,
    _parent: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> SmallDisk {
        let parent = tempfile::Builder::new().prefix("tidewater-disk-").tempdir().expect("a temporary folder");
        let folder = parent.path().join("disk");
        std::fs::create_dir(&folder).expect("a folder to mount on");
        let size = format!("size={DISK_MIB}m");
        let mounted = run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs"], &folder);
        assert!(mounted, "a small file system could not be mounted: this test needs root");
        SmallDisk { folder, _parent: parent }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a server may still be on its way out.
        run("umount", &["-l"], &self.folder);
    }
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> bool {
    Command::new(program).args(arguments).arg(folder).status().is_ok_and(|status| status.success())
}
