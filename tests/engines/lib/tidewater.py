"""Starts the real server for an engine, on free ports, with a folder and a database of its own.

TIDEWATER_BIN                  the program (default: the debug build)
TIDEWATER_TEST_POSTGRES_URL    a Postgres whose user may create databases; needed for `postgres`
"""

import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
READY_DEADLINE_S = 30
STOP_DEADLINE_S = 30


def program():
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return os.environ.get("TIDEWATER_BIN", str(target / "debug" / "tidewater"))


def databases(arguments):
    """The databases named on the command line; all when none is."""
    wanted = arguments or ["sqlite", "postgres"]
    unknown = set(wanted) - {"sqlite", "postgres"}
    if unknown:
        raise SystemExit(f"unknown database: {', '.join(sorted(unknown))} (sqlite, postgres)")
    return wanted


def free_ports(count):
    """Below the ports of outgoing connections, so that no client takes one before the server does."""
    found = []
    while len(found) < count:
        port = 12_000 + secrets.randbelow(20_000)
        with socket.socket() as tried:
            if port not in found and tried.connect_ex(("127.0.0.1", port)) != 0:
                found.append(port)
    return found


class Server:
    """A running server; a context manager that stops it and removes what it left."""

    def __init__(self, database):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tidewater-engine-"))
        self.root_key = ("root" + secrets.token_hex(8), secrets.token_urlsafe(30))
        catalog, s3, metrics = free_ports(3)
        self.catalog_url, self.s3_url = f"http://127.0.0.1:{catalog}", f"http://127.0.0.1:{s3}"
        self.settings = [
            "--data", str(self.folder / "data"),
            "--catalog-addr", f"127.0.0.1:{catalog}",
            "--s3-addr", f"127.0.0.1:{s3}",
            "--metrics-addr", f"127.0.0.1:{metrics}",
        ]  # fmt: skip
        self.database = Postgres() if database == "postgres" else None
        # The test's own variables would be settings the server does not know.
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("TIDEWATER_")}
        self.environment["TIDEWATER_ROOT_ACCESS_KEY_ID"], self.environment["TIDEWATER_ROOT_SECRET_ACCESS_KEY"] = self.root_key
        if self.database:
            self.environment["TIDEWATER_DATABASE_URL"] = self.database.url

    def __enter__(self):
        self.log = open(self.folder / "server.log", "wb")
        self.process = subprocess.Popen(
            [program(), "serve", *self.settings], env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        try:
            self.wait_until_ready()
        except BaseException:
            self.__exit__(RuntimeError)
            raise
        return self

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_DEADLINE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(self.catalog_url + "/health/ready", timeout=1) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise RuntimeError(f"the server did not become ready: exit code {self.process.poll()}")

    def connect(self, engine, *arguments):
        """What `tidewater connect ENGINE` prints for this server."""
        command = [program(), "connect", engine, *arguments, *self.settings]
        return subprocess.run(command, env=self.environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    def objects(self, location):
        """Keys under an `s3://bucket/prefix`, listed with the root key."""
        import boto3
        from botocore.config import Config

        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        client = boto3.client(
            "s3",
            endpoint_url=self.s3_url,
            region_name="us-east-1",
            aws_access_key_id=self.root_key[0],
            aws_secret_access_key=self.root_key[1],
            config=Config(s3={"addressing_style": "path"}),
        )
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix.rstrip("/") + "/")
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def __exit__(self, failure, *_):
        self.process.terminate()
        try:
            code = self.process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.log.close()
        if failure:
            print("---- the last lines of the server's log", flush=True)
            print(*(self.folder / "server.log").read_text(errors="replace").splitlines()[-40:], sep="\n", flush=True)
        if self.database:
            self.database.drop()
        os.chdir(ROOT)  # an engine may have been run inside the folder
        shutil.rmtree(self.folder, ignore_errors=True)
        if not failure and code != 0:
            raise RuntimeError(f"the server did not stop cleanly: exit code {code}")


class Postgres:
    """A fresh database in the test cluster."""

    def __init__(self):
        self.server = os.environ.get("TIDEWATER_TEST_POSTGRES_URL")
        if not self.server:
            raise SystemExit("TIDEWATER_TEST_POSTGRES_URL is not set")
        self.name = "engine_" + secrets.token_hex(6)
        self.psql(f"create database {self.name}")
        base, _, query = self.server.partition("?")
        self.url = base.rpartition("/")[0] + "/" + self.name + ("?" + query if query else "")

    def drop(self):
        self.psql(f"drop database {self.name} with (force)")

    def psql(self, statement):
        subprocess.run(["psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-d", self.server, "-c", statement], check=True)
