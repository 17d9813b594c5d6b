"""Pastes the README's quick start into a shell: `make run`, then every block behind a `<!-- quickstart -->` mark."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

from steps import close, eventually, run, same
from tidewater import ROOT, program

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"<!-- quickstart -->\n(?:.*\n)*?```sh\n((?:.*\n)*?)```", README)
PORTS = (8181, 9000, 9464)
READY_DEADLINE_S = 1200 if os.environ.get("RELEASE") else 300


class QuickStart:
    def __init__(self, folder):
        self.folder = folder
        self.clone = folder / "tidewater"
        drop = ("CARGO_TARGET_DIR", "TIDEWATER_BIN")
        self.environment = {k: v for k, v in os.environ.items() if k not in drop and not k.startswith("TIDEWATER_")}

    def ports_are_free(self):
        for port in PORTS:
            with socket.socket() as probe:
                same(probe.connect_ex(("127.0.0.1", port)) != 0, True)

    def clone_it(self):
        """What git would hand a newcomer, with the changes not yet committed."""
        files = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True)
        for name in filter(None, files.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.clone / name)
        if not os.environ.get("RELEASE"):
            self.stand_in_for_the_release()

    def stand_in_for_the_release(self):
        """A `cargo` that has the release built already: it is the debug build."""
        release = self.clone / "target" / "release"
        release.mkdir(parents=True)
        (release / "tidewater").symlink_to(pathlib.Path(program()).resolve())
        (self.folder / "bin").mkdir()
        cargo = self.folder / "bin" / "cargo"
        cargo.write_text('#!/bin/sh\ntest "$*" = "build --release --locked"\n')
        cargo.chmod(0o755)
        self.environment["PATH"] = f"{cargo.parent}:{self.environment['PATH']}"

    def make_run(self):
        (command,) = re.findall(r"^```sh\n(make run)\n```", README, re.MULTILINE)
        self.log = open(self.folder / "make-run.log", "wb")
        self.server = subprocess.Popen(
            ["bash", "-c", command], cwd=self.clone, env=self.environment, stdout=self.log, stderr=self.log, start_new_session=True
        )
        deadline = time.monotonic() + READY_DEADLINE_S
        while time.monotonic() < deadline and self.server.poll() is None:
            try:
                with urllib.request.urlopen("http://127.0.0.1:8181/health/ready", timeout=1):
                    return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("not ready:\n" + self.said())

    def said(self):
        return (self.folder / "make-run.log").read_text(errors="replace")

    def welcome(self):
        told = ("http://127.0.0.1:8181", "http://127.0.0.1:9000", "lakehouse", "keys/root")
        # It is ready a moment before it says so.
        eventually(lambda: same([place for place in told if place not in self.said()], []))

    def paste(self):
        """All blocks into one shell, as a person would."""
        same(len(BLOCKS), 2)
        shell = subprocess.run(
            ["bash", "-e", "-o", "pipefail"], input="".join(BLOCKS), cwd=self.clone, env=self.environment, text=True, capture_output=True
        )
        self.output = shell.stdout
        if shell.returncode:
            raise AssertionError(f"exit code {shell.returncode}\n{shell.stdout}\n{shell.stderr[-4000:]}")

    def curl_shows_the_table(self):
        same('"error"' in self.output, False)
        same(self.output.count('"metadata-location"'), 2)
        same('"timestamptz"' in self.output, True)

    def spark_shows_the_rows(self):
        rows = [line.split("\t") for line in self.output.splitlines() if line.startswith("100")]
        same(rows, [["1001", "501", "250.75", "2024-01-10"], ["1002", "502", "180.4", "2024-01-11"]])

    def the_key_is_private(self):
        same(oct((self.clone / "spark.conf").stat().st_mode & 0o777), "0o600")

    def stop(self):
        children = subprocess.run(["pgrep", "-g", str(self.server.pid), "tidewater"], capture_output=True, text=True)
        (server,) = children.stdout.split()
        os.kill(int(server), signal.SIGTERM)
        same(self.server.wait(60), 0)

    def clean(self):
        if hasattr(self, "server") and self.server.poll() is None:
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait()

    def steps(self):
        return [
            ("the default ports are free", self.ports_are_free),
            ("a fresh clone", self.clone_it),
            ("make run becomes ready", self.make_run),
            ("the welcome says where everything is", self.welcome),
            ("the blocks run", self.paste),
            ("curl shows the table", self.curl_shows_the_table),
            ("spark shows the rows", self.spark_shows_the_rows),
            ("the file with the key is private", self.the_key_is_private),
            ("SIGTERM ends it with 0", self.stop),
        ]


if __name__ == "__main__":
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidewater-quickstart-"))
    quick_start = QuickStart(folder)
    try:
        close([run("quick start", quick_start.steps())])
    finally:
        quick_start.clean()
        shutil.rmtree(folder, ignore_errors=True)
