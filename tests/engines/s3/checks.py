"""Runs conformance checks against fresh servers and holds the outcome to two lists: a surprise of either kind is a failure.

Each check is a process of its own that names its buckets from a counter, so one server runs one check at a time; there are
several servers, and each has every bucket deleted before a check begins.
"""

import os
import pathlib
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from tidewater import Server

HERE = pathlib.Path(__file__).parent
SERVERS = 2
TIMEOUT_S = 90
# Groups of checks about what this store does. The client has others: of its own users, of its website hosting, of files.
GROUPS = """
AbortMultipartUpload Authentication CORSMiddleware CompleteMultipartUpload CopyObject CreateBucket CreateMultipartUpload
DeleteBucket DeleteBucketCors DeleteBucketPolicy DeleteBucketTagging DeleteObject DeleteObjectTagging DeleteObjects
GetBucketCors GetBucketLocation GetBucketPolicy GetBucketPolicyStatus GetBucketTagging GetObject GetObjectAttributes
GetObjectTagging HeadBucket HeadObject ListBuckets ListMultipartUploads ListObjects ListObjectsV2 ListParts PostObject
PreflightOPTIONS PresignedAuth PublicBucket PutBucketCors PutBucketPolicy PutBucketTagging PutObject PutObjectTagging
SignedStreamingPayload SignedStreamingPayloadTrailer UnsignedStreamingPayloadTrailer UploadPart UploadPartCopy
""".split()


def checks(client, wanted):
    """Names of the client's checks in our groups that match."""
    listed = subprocess.run([client, "test", "--help"], capture_output=True, text=True, env=environment(), check=True).stdout
    names = re.findall(r"^ +(\w+) .* integration test$", listed, re.MULTILINE)
    return sorted(name for name in names if name.split("_")[0] in GROUPS and re.search(wanted, name))


def environment():
    # The client refuses to start where this is set.
    return {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}


class Store:
    """The S3 side of one server, seen with its root key."""

    def __init__(self, server):
        self.server = server
        key, secret = server.root_key
        self.s3 = boto3.client(
            "s3",
            endpoint_url=server.s3_url,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )

    def run(self, client, name, folder):
        """(whether it passed, why not)"""
        self.clear()
        key, secret = self.server.root_key
        command = [client, "test", "-a", key, "-s", secret, "-e", self.server.s3_url, name]
        try:
            done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return False, f"no end after {TIMEOUT_S} s"
        printed = re.sub(r"\x1b\[\d+m", "", done.stdout + done.stderr)
        lines = [line for line in printed.splitlines() if line.startswith("FAIL ") or "panic" in line]
        passed = not lines and re.search(r"^PASS ", printed, re.MULTILINE) is not None
        return passed, "" if passed else (lines or printed.splitlines() or ["nothing was printed"])[0][:300]

    def clear(self):
        for bucket in self.s3.list_buckets()["Buckets"]:
            self.delete(bucket["Name"])

    def delete(self, bucket):
        for page in self.s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
            for upload in page.get("Uploads", []):
                self.s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        for page in self.s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            for version in page.get("Versions", []) + page.get("DeleteMarkers", []):
                self.delete_version(bucket, version)
        self.s3.delete_bucket(Bucket=bucket)

    def delete_version(self, bucket, version):
        which = {"Bucket": bucket, "Key": version["Key"], "VersionId": version["VersionId"]}
        try:
            self.s3.delete_object(**which, BypassGovernanceRetention=True)
        except ClientError:
            # Held: a check that failed may have left it so.
            self.s3.put_object_legal_hold(**which, LegalHold={"Status": "OFF"})
            self.s3.delete_object(**which, BypassGovernanceRetention=True)


def run_all(client, names):
    """What became of each check, by name. One that fails is run once more: the machine may have been busy."""
    waiting, outcomes, broken = queue.Queue(), {}, []
    for name in names:
        waiting.put(name)

    def work(folder):
        with Server("sqlite") as server:
            store = Store(server)
            while True:
                try:
                    name = waiting.get_nowait()
                except queue.Empty:
                    break
                passed, why = store.run(client, name, folder)
                if not passed and name not in KNOWN:
                    passed, why = store.run(client, name, folder)
                    if passed:
                        print(f"     {name}: passed the second time", flush=True)
                outcomes[name] = (passed, why)
            # Checks leave what the store of a warehouse is not made for; the server has nothing else to show.
            store.clear()

    def guarded(folder):
        try:
            work(folder)
        except BaseException as error:  # the other servers' checks count all the same
            broken.append(f"a server's checks broke off: {type(error).__name__}: {error}")

    with tempfile.TemporaryDirectory(prefix="tidewater-checks-") as folder:
        workers = [threading.Thread(target=guarded, args=[folder]) for _ in range(SERVERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    if broken:
        raise SystemExit("\n".join(f"FAIL s3checks: {why}" for why in broken))
    return outcomes


def known_failures():
    lines = (HERE / "checks_failed.tsv").read_text().splitlines()
    pairs = [line.split("\t") for line in lines if line and not line.startswith("#")]
    unfounded = [pair[0] for pair in pairs if len(pair) != 2 or not pair[1].strip()]
    if unfounded:
        raise SystemExit(f"checks_failed.tsv: no reason given: {', '.join(unfounded)}")
    return dict(pairs)


def expected_to_pass():
    lines = (HERE / "checks_passed.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def verdict(outcomes, expected, wanted):
    """Every way in which what happened is not what the lists say."""
    surprises = []
    for name, (passed, why) in sorted(outcomes.items()):
        if passed and name in KNOWN:
            surprises.append(f"{name}: passes, but stands in checks_failed.tsv: move it to checks_passed.txt")
        elif passed and name not in expected:
            surprises.append(f"{name}: passes, but stands in no list: add it to checks_passed.txt")
        elif not passed and name not in KNOWN:
            listed = "must pass" if name in expected else "stands in no list"
            surprises.append(f"{name}: {listed}, but fails: {why}")
    for name in sorted((expected | set(KNOWN)) - set(outcomes)):
        if re.search(wanted, name):
            surprises.append(f"{name}: stands in a list, but did not run")
    return surprises


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    client, started = os.environ["VERSITYGW"], time.monotonic()
    outcomes = run_all(client, checks(client, wanted))
    passed = {name for name, (ok, _) in outcomes.items() if ok}
    if os.environ.get("CHECKS_WRITE"):
        head = "# Checks that must pass, one a line. Those that do not are in checks_failed.tsv.\n"
        (HERE / "checks_passed.txt").write_text(head + "".join(f"{name}\n" for name in sorted(passed)))
    surprises = verdict(outcomes, expected_to_pass(), wanted)
    for surprise in surprises:
        print(f"FAIL s3checks: {surprise}", flush=True)
    known = len(outcomes.keys() - passed) - sum("but fails" in surprise for surprise in surprises)
    took = time.monotonic() - started
    print(f"{'FAIL' if surprises else 'ok  '} s3checks: {len(passed)} of {len(outcomes)} checks pass, {known} fail for reasons given ({took:.0f} s)")
    print(f"{len(passed)} passed, {len(surprises)} failed", flush=True)
    sys.exit(1 if surprises or not passed else 0)


KNOWN = known_failures()
main()
