"""Runs Sales.java against a fresh server: its catalog is the statement that `tidewater connect flink` prints."""

import os
import pathlib
import subprocess
import sys

from steps import close, run, same
from tidewater import Server, databases

STEPS = ["create catalog", "create database", "create table", "insert", "read", "drop"]
TIMEOUT_S = 300
OPENED = ["java.util", "java.lang", "java.nio", "java.time"]


def flink(server):
    statement = pathlib.Path(server.folder) / "catalog.sql"
    statement.write_text(server.connect("flink"))
    command = [pathlib.Path(os.environ["JAVA_HOME"]) / "bin/java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    for package in OPENED:
        command += ["--add-opens", f"java.base/{package}=ALL-UNNAMED"]
    command += ["-cp", os.environ["FLINK_CLASSPATH"], pathlib.Path(__file__).with_name("Sales.java"), statement]
    # Region, endpoint and keys must come from the catalog.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S)
    done = [line.removeprefix("done ") for line in ended.stdout.splitlines() if line.startswith("done ")]
    same((done, ended.returncode), (STEPS, 0))


def story(database):
    with Server(database) as server:
        return run(f"flink on {database}", [(", ".join(STEPS), lambda: flink(server))])


close([story(database) for database in databases(sys.argv[1:])])
