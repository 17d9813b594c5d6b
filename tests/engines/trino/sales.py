"""The sales story in Trino: create, write, change, travel in time, drop.

Trino's catalog file is what `tidewater connect trino` prints, to the letter: storage keys come vended.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from datetime import date

import trino
from steps import close, eventually, run, same
from tidewater import Server, databases, free_ports

READY_DEADLINE_S = 180
STOP_DEADLINE_S = 60
FIRST = [(1001, 501, 250.75, date(2024, 1, 10)), (1002, 502, 180.40, date(2024, 1, 11))]
JVM = """-Xmx1500M
-XX:+UseG1GC
-XX:-OmitStackTraceInFastThrow
-XX:ReservedCodeCacheSize=256M
-Djdk.attach.allowAttachSelf=true
--enable-native-access=ALL-UNNAMED
--sun-misc-unsafe-memory-access=allow
"""


class Trino:
    """One node on loopback with one catalog, `lake`; a context manager."""

    def __init__(self, folder, catalog):
        self.home = pathlib.Path(os.environ["TRINO_HOME"])
        (self.port,) = free_ports(1)
        self.etc = pathlib.Path(folder) / "etc"
        (self.etc / "catalog").mkdir(parents=True)
        self.write("node.properties", environment="test", id="test", **{"data-dir": f"{folder}/data"}, prefix="node.")
        self.write("node.properties", **{"bind-ip": "127.0.0.1", "internal-address": "127.0.0.1"}, prefix="node.")
        (self.etc / "config.properties").write_text(
            "coordinator=true\nnode-scheduler.include-coordinator=true\n"
            f"http-server.http.port={self.port}\ndiscovery.uri=http://127.0.0.1:{self.port}\n"
        )
        (self.etc / "jvm.config").write_text(JVM)
        (self.etc / "catalog/lake.properties").write_text(catalog)

    def write(self, name, prefix, **values):
        with open(self.etc / name, "a") as file:
            file.writelines(f"{prefix}{key}={value}\n" for key, value in values.items())

    def __enter__(self):
        self.log = open(self.etc / "server.log", "wb")
        launcher = [self.home / "bin/launcher", "run", "--etc-dir", self.etc]
        launcher += ["--launcher-config", self.home / "bin/launcher.properties"]
        self.process = subprocess.Popen(launcher, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + READY_DEADLINE_S
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(RuntimeError)
                raise RuntimeError("Trino did not become ready")
            time.sleep(0.5)
        return self

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/info", timeout=1) as answer:
                return b'"starting":false' in answer.read()
        except (urllib.error.URLError, OSError):
            return False

    def __exit__(self, failure, *_):
        self.process.terminate()
        try:
            self.process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        if failure:
            lines = (self.etc / "server.log").read_text(errors="replace").splitlines()
            print("---- the last lines of Trino's log", *lines[-40:], sep="\n", flush=True)


class Story:
    def __init__(self, server, node):
        self.server = server
        self.connection = trino.dbapi.connect(host="127.0.0.1", port=node.port, user="test", catalog="lake")

    def sql(self, statement):
        cursor = self.connection.cursor()
        cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()]

    def rows(self, suffix=""):
        return self.sql(f"SELECT order_id, customer_id, amount, order_date FROM lakehouse.sales {suffix} ORDER BY order_id")

    def create(self):
        self.sql("CREATE SCHEMA lake.lakehouse")
        self.sql(
            "CREATE TABLE lakehouse.sales (order_id BIGINT, customer_id BIGINT, amount DOUBLE, order_date DATE) "
            "WITH (partitioning = ARRAY['day(order_date)'])"
        )
        same(self.sql("SHOW TABLES FROM lakehouse"), [("sales",)])
        path = self.sql("SELECT file FROM lakehouse.\"sales$metadata_log_entries\" LIMIT 1")[0][0]
        self.location = path.rsplit("/metadata/", 1)[0]

    def insert(self):
        values = ", ".join(f"({o}, {c}, {a}e0, DATE '{d}')" for o, c, a, d in FIRST)
        self.sql(f"INSERT INTO lakehouse.sales VALUES {values}")
        same(self.rows(), FIRST)
        snapshots = 'SELECT snapshot_id FROM lakehouse."sales$snapshots" ORDER BY committed_at DESC LIMIT 1'
        self.first = self.sql(snapshots)[0][0]

    def update(self):
        self.sql("UPDATE lakehouse.sales SET amount = 300e0 WHERE order_id = 1001")
        same(self.sql("SELECT amount FROM lakehouse.sales WHERE order_id = 1001"), [(300.0,)])

    def merge(self):
        self.sql(
            "MERGE INTO lakehouse.sales t USING (VALUES (BIGINT '1002', 200e0), (BIGINT '1003', 99.95e0)) u (id, amount) "
            "ON t.order_id = u.id WHEN MATCHED THEN UPDATE SET amount = u.amount "
            "WHEN NOT MATCHED THEN INSERT VALUES (u.id, 501, u.amount, DATE '2024-01-12')"
        )
        same([row[0] for row in self.rows()], [1001, 1002, 1003])

    def delete(self):
        self.sql("DELETE FROM lakehouse.sales WHERE order_id = 1002")
        same([row[0] for row in self.rows()], [1001, 1003])

    def aggregate(self):
        total = (
            "SELECT customer_id, SUM(amount) AS total_spent FROM lakehouse.sales "
            "GROUP BY customer_id ORDER BY total_spent DESC"
        )
        same([(customer, round(spent, 2)) for customer, spent in self.sql(total)], [(501, 399.95)])

    def travel(self):
        same(self.rows(f"FOR VERSION AS OF {self.first}"), FIRST)

    def create_as_select(self):
        self.sql("CREATE TABLE lakehouse.copy AS SELECT * FROM lakehouse.sales")
        same(self.sql("SELECT count(*) FROM lakehouse.copy"), [(2,)])
        self.sql("DROP TABLE lakehouse.copy")

    def drop(self):
        same(len(self.server.objects(self.location)) > 0, True)
        self.sql("DROP TABLE lakehouse.sales")
        eventually(lambda: same(self.server.objects(self.location), []))
        self.sql("DROP SCHEMA lake.lakehouse")


def story(database):
    with Server(database) as server, tempfile.TemporaryDirectory(prefix="tidewater-trino-") as folder:
        with Trino(folder, server.connect("trino")) as node:
            told = Story(server, node)
            steps = [
                ("create table partitioned by day(order_date)", told.create),
                ("insert", told.insert),
                ("update", told.update),
                ("merge", told.merge),
                ("delete", told.delete),
                ("aggregate", told.aggregate),
                ("version as of", told.travel),
                ("create table as select", told.create_as_select),
                ("drop leaves no object", told.drop),
            ]
            return run(f"trino on {database}", steps)


close([story(database) for database in databases(sys.argv[1:])])
