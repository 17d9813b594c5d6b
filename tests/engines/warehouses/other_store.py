"""A warehouse in another maker's store: made through the API, written and read by PyIceberg in each way it may get in."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import boto3
import pyarrow as pa
from botocore.config import Config
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from steps import close, eventually, run, same
from tidewater import Server, free_ports

BUCKET = "other"
KEY, SECRET = "otherstorekey", "otherstoresecret0123456789"
# How clients may get in; a store without an STS has no session keys to give.
WAYS = {"versitygw": ["remote-signing", "static-keys"], "minio": ["session-keys", "remote-signing", "static-keys"]}
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))


class OtherStore:
    """The store as its makers ship it, on a free port, with one bucket; a context manager."""

    def __init__(self, name, program):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="other-store-"))
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.environment = {**os.environ, "MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": SECRET, "MINIO_CI_CD": "1"}
        self.command = {
            "versitygw": [program, "--access", KEY, "--secret", SECRET, "--port", f"127.0.0.1:{port}", "posix", self.folder],
            "minio": [program, "server", "--address", f"127.0.0.1:{port}", self.folder],
        }[name]

    def __enter__(self):
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(self.command, env=self.environment, stdin=quiet, stdout=quiet, stderr=quiet)
        config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 20, "mode": "standard"})
        keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        self.client = boto3.client("s3", endpoint_url=self.url, region_name="us-east-1", config=config, **keys)
        self.client.create_bucket(Bucket=BUCKET)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def keys(self, prefix):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


class Story:
    def __init__(self, server, store, way):
        self.server, self.store, self.way = server, store, way

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.server.catalog_url + path, json.dumps(body).encode() if body else None, method=method)
        request.add_header("content-type", "application/json")
        request.add_header("authorization", f"Bearer {self.token()}")
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or "null")

    def token(self):
        key, secret = self.server.root_key
        form = urllib.parse.urlencode({"grant_type": "client_credentials", "client_id": key, "client_secret": secret})
        with urllib.request.urlopen(self.server.catalog_url + "/v1/oauth/tokens", form.encode()) as answer:
            return json.loads(answer.read())["access_token"]

    def make(self):
        storage = {
            "type": "s3", "endpoint": self.store.url, "region": "us-east-1", "access-key-id": KEY, "secret-access-key": SECRET,
            "delegation": self.way,
        }  # fmt: skip
        body = {"name": self.way, "location": f"s3://{BUCKET}/{self.way}", "storage": storage}
        shown = self.call("POST", "/api/v1/warehouses", body)
        same(shown["storage"]["delegation"], self.way)
        same(self.store.keys(self.way), [])

    def refused(self):
        body = {"name": "bad", "location": f"s3://{BUCKET}/bad", "storage": {"type": "s3", "endpoint": self.store.url,
                "access-key-id": KEY, "secret-access-key": "wrong"}}  # fmt: skip
        try:
            self.call("POST", "/api/v1/warehouses", body)
        except urllib.error.HTTPError as error:
            same(error.code, 400)
            return
        raise AssertionError("a wrong secret was taken")

    def connect(self):
        key, secret = self.server.root_key
        wanted = "remote-signing" if self.way == "remote-signing" else "vended-credentials"
        properties = {"uri": self.server.catalog_url, "credential": f"{key}:{secret}", "warehouse": self.way}
        properties["header.X-Iceberg-Access-Delegation"] = wanted
        if self.way == "remote-signing":
            properties |= {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO", "s3.signer": "S3V4RestSigner"}
        self.catalog = load_catalog("other", type="rest", **properties)
        self.catalog.create_namespace("ns")

    def write_and_read(self):
        table = self.catalog.create_table("ns.t", SCHEMA)
        rows = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})
        table.append(rows)
        table.append(rows.slice(1))
        table.delete("id = 1")
        read = self.catalog.load_table("ns.t").scan().to_arrow().sort_by("id").to_pydict()
        same(read, {"id": [2, 2], "name": ["b", "b"]})
        folder = table.location().removeprefix(f"s3://{BUCKET}/")
        if not any(key.endswith(".parquet") for key in self.store.keys(folder + "/data/")):
            raise AssertionError(f"no data file in the other store below {folder}")
        self.folder = folder

    def purge(self):
        self.catalog.purge_table("ns.t")
        # Some stores keep folders as objects.
        eventually(lambda: same([key for key in self.store.keys(self.folder) if not key.endswith("/")], []))

    def steps(self):
        return [
            ("make the warehouse", self.make), ("a wrong secret is refused", self.refused), ("connect", self.connect),
            ("write and read", self.write_and_read), ("purge", self.purge),
        ]  # fmt: skip


def main(chosen):
    results = []
    for text in chosen:
        name, _, program = text.partition("=")
        for database in ("sqlite", "postgres"):
            with OtherStore(name, program) as store, Server(database) as server:
                for way in WAYS[name]:
                    results.append(run(f"{name}, {way}, on {database}", Story(server, store, way).steps()))
    close(results)


if __name__ == "__main__":
    main(sys.argv[1:])
