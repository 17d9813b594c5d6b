"""The sales story in Spark SQL: create, write, update, evolve, travel in time, purge.

Spark is configured by what `tidewater connect spark` prints and by nothing else but this machine's own needs (below):
the catalog's address and a credential. Storage keys, endpoint and region come vended from the catalog.
"""

import logging
import multiprocessing
import os
import subprocess
import sys
from datetime import date

from steps import close, run, same
from tidewater import Server, databases

# How Spark runs on a test machine; nothing about the catalog or its storage.
MACHINE = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.jars.ivy": os.path.join(os.environ["TOOLS_CACHE"], "ivy"),
}
STORAGE_KEYS = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token", "fs.s3a", "s3.endpoint")

FIRST = [(1001, 501, 250.75, date(2024, 1, 10)), (1002, 502, 180.40, date(2024, 1, 11))]
UPDATED = [(1001, 501, 300.00, date(2024, 1, 10)), FIRST[1]]
MERGED = [UPDATED[0], (1002, 502, 190.00, date(2024, 1, 11)), (1003, 503, 99.95, date(2024, 1, 12))]
LEFT = [MERGED[0], MERGED[2]]


def spark_session(conf_file):
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {conf_file} pyspark-shell"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("tidewater-sales")
    for key, value in MACHINE.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("FATAL")
    logging.getLogger("SQLQueryContextLogger").disabled = True  # a failing step prints its own error
    return spark


class Story:
    def __init__(self, server):
        self.server = server
        self.conf_file = server.folder / "spark-defaults.conf"

    def sql(self, statement):
        return [tuple(row) for row in self.spark.sql(statement).collect()]

    def rows(self, suffix=""):
        return self.sql(f"SELECT order_id, customer_id, amount, order_date FROM {self.sales} {suffix} ORDER BY order_id")

    def latest_snapshot(self):
        """Its id and its commit time."""
        return self.sql(f"SELECT snapshot_id, committed_at FROM {self.sales}.snapshots ORDER BY committed_at DESC LIMIT 1")[0]

    def location(self, table):
        return dict(r[:2] for r in self.sql(f"DESCRIBE TABLE EXTENDED {table}") if r[0] == "Location")["Location"]

    def connect(self):
        printed = self.server.connect("spark", "--format", "conf")
        self.conf_file.write_text(printed)
        lines = [line.split(None, 1) for line in printed.splitlines() if line.strip() and not line.startswith("#")]
        conf = {key: value for key, value in lines}
        same([key for key in conf if any(part in key for part in STORAGE_KEYS)], [])
        names = [key.removeprefix("spark.sql.catalog.") for key in conf if key.startswith("spark.sql.catalog.")]
        catalog = [name for name in names if "." not in name]
        same(len(catalog), 1)
        self.catalog, self.conf = catalog[0], conf
        self.sales = f"{self.catalog}.lakehouse.sales"
        self.spark = spark_session(self.conf_file)

    def create(self):
        self.sql(f"CREATE NAMESPACE {self.catalog}.lakehouse")
        self.sql(
            f"CREATE TABLE {self.sales} (order_id BIGINT, customer_id BIGINT, amount DOUBLE, order_date DATE) "
            "USING iceberg PARTITIONED BY (days(order_date))"
        )
        same(("lakehouse", "sales", False) in self.sql(f"SHOW TABLES IN {self.catalog}.lakehouse"), True)
        same(self.rows(), [])

    def insert(self):
        self.sql(
            f"INSERT INTO {self.sales} VALUES (1001, 501, 250.75, DATE'2024-01-10'), (1002, 502, 180.40, DATE'2024-01-11')"
        )
        same(self.rows(), FIRST)
        self.first_snapshot, self.first_time = self.latest_snapshot()
        days = self.sql(f"SELECT partition.order_date_day, record_count FROM {self.sales}.partitions ORDER BY 1")
        same(days, [(date(2024, 1, 10), 1), (date(2024, 1, 11), 1)])

    def update(self):
        self.sql(f"UPDATE {self.sales} SET amount = 300.00 WHERE order_id = 1001")
        same(self.rows(), UPDATED)
        self.second_snapshot, _ = self.latest_snapshot()

    def merge(self):
        self.sql(
            f"MERGE INTO {self.sales} t USING (SELECT * FROM VALUES (1002L, 502L, 190.00D, DATE'2024-01-11'), "
            "(1003L, 503L, 99.95D, DATE'2024-01-12') AS v(order_id, customer_id, amount, order_date)) u "
            "ON t.order_id = u.order_id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        same(self.rows(), MERGED)

    def delete(self):
        self.sql(f"DELETE FROM {self.sales} WHERE order_id = 1002")
        same(self.rows(), LEFT)

    def add_column(self):
        self.sql(f"ALTER TABLE {self.sales} ADD COLUMN region STRING")
        self.sql(f"UPDATE {self.sales} SET region = 'north' WHERE order_id = 1003")
        same(self.sql(f"SELECT order_id, region FROM {self.sales} ORDER BY 1"), [(1001, None), (1003, "north")])

    def rename_column(self):
        self.sql(f"ALTER TABLE {self.sales} RENAME COLUMN region TO area")
        same(self.sql(f"SELECT order_id, area FROM {self.sales} ORDER BY 1"), [(1001, None), (1003, "north")])

    def drop_column(self):
        self.sql(f"ALTER TABLE {self.sales} DROP COLUMN area")
        same(self.spark.table(self.sales).columns, ["order_id", "customer_id", "amount", "order_date"])
        same(self.rows(), LEFT)

    def version_as_of(self):
        same(self.rows(f"VERSION AS OF {self.first_snapshot}"), FIRST)
        same(self.rows(f"VERSION AS OF {self.second_snapshot}"), UPDATED)

    def timestamp_as_of(self):
        same(self.rows(f"TIMESTAMP AS OF '{self.first_time:%Y-%m-%d %H:%M:%S.%f}'"), FIRST)

    def create_table_as_select(self):
        totals = f"{self.catalog}.lakehouse.totals"
        self.sql(f"CREATE TABLE {totals} USING iceberg AS SELECT customer_id, sum(amount) AS total FROM {self.sales} GROUP BY 1")
        same(self.sql(f"SELECT * FROM {totals} ORDER BY 1"), [(501, 300.00), (503, 99.95)])

    def views(self):
        """Made, read, replaced, listed, described and dropped; a view and a table never have one name."""
        space = f"{self.catalog}.lakehouse"
        names = lambda: sorted(row[1] for row in self.sql(f"SHOW VIEWS IN {space}") if row[0] == "lakehouse")
        self.sql(f"CREATE VIEW {space}.big (id COMMENT 'of the order', amount) COMMENT 'over 100' AS "
                 f"SELECT order_id, amount FROM {self.sales} WHERE amount > 100")
        same(self.sql(f"SELECT * FROM {space}.big ORDER BY id"), [(1001, 300.00)])
        same(names(), ["big"])
        self.sql(f"CREATE OR REPLACE VIEW {space}.big AS SELECT order_id FROM {self.sales} WHERE amount > 50")
        same(self.sql(f"SELECT * FROM {space}.big ORDER BY 1"), [(1001,), (1003,)])
        self.sql(f"ALTER VIEW {space}.big SET TBLPROPERTIES ('owner-team' = 'sales')")
        same(("owner-team", "sales") in self.sql(f"SHOW TBLPROPERTIES {space}.big"), True)
        for taken in (f"CREATE VIEW {space}.sales AS SELECT 1 AS one", f"CREATE TABLE {space}.big (id BIGINT) USING iceberg"):
            try:
                self.sql(taken)
            except Exception as error:
                same("already exists" in str(error).lower(), True)
            else:
                raise AssertionError(f"went through: {taken}")
        self.sql(f"ALTER VIEW {space}.big RENAME TO {space}.large")
        same(names(), ["large"])
        self.sql(f"DROP VIEW {space}.large")
        same(names(), [])

    def remote_signing(self):
        """A catalog of the same server whose client holds no keys: every request to the store is signed by the catalog."""
        for key, value in self.conf.items():
            if key.startswith(f"spark.sql.catalog.{self.catalog}"):
                key = key.replace(f"catalog.{self.catalog}", "catalog.signed")
                if key.endswith("X-Iceberg-Access-Delegation"):
                    value = "remote-signing"
                self.spark.conf.set(key, value)
        delegation = "spark.sql.catalog.signed.header.X-Iceberg-Access-Delegation"
        same(self.spark.conf.get(delegation), "remote-signing")
        table = "signed.lakehouse.signed"
        self.sql(f"CREATE TABLE {table} USING iceberg AS SELECT * FROM {self.sales}")
        self.sql(f"INSERT INTO {table} VALUES (3001, 1, 1.0, DATE'2024-03-01')")
        self.sql(f"UPDATE {table} SET amount = 2.0 WHERE order_id = 3001")
        same(self.sql(f"SELECT order_id, amount FROM {table} ORDER BY 1"), [(1001, 300.0), (1003, 99.95), (3001, 2.0)])
        same(self.sql(f"SELECT count(*) FROM {self.catalog}.lakehouse.signed"), [(3,)])
        location = self.location(table)
        same(self.server.objects(location) != [], True)
        self.sql(f"DROP TABLE {table} PURGE")
        same(self.server.objects(location), [])

    def pyiceberg_reads_the_same(self):
        from pyiceberg_catalog import load

        frame = load(self.server).load_table("lakehouse.sales").scan().to_pandas().sort_values("order_id")
        same(list(frame.itertuples(index=False, name=None)), LEFT)

    def printed_command(self):
        """In a Spark of its own: the command as printed, with a statement to run behind it."""
        machine = " ".join(f"--conf {key}={value}" for key, value in MACHINE.items())
        statement = "SELECT order_id, amount FROM lakehouse.sales ORDER BY order_id"
        command = f"{self.server.connect('spark').rstrip()} {machine} -e '{statement}'"
        spark = subprocess.run(["bash", "-c", command], cwd=self.server.folder, capture_output=True, text=True)
        same((spark.returncode, spark.stdout.split()), (0, ["1001", "300.0", "1003", "99.95"]))

    def purge(self, name):
        table = f"{self.catalog}.lakehouse.{name}"
        location = self.location(table)
        before = self.server.objects(location)
        same([any(part in key for key in before) for part in ("/metadata/", "/data/")], [True, True])
        self.sql(f"DROP TABLE {table} PURGE")
        same(self.server.objects(location), [])
        same([row for row in self.sql(f"SHOW TABLES IN {self.catalog}.lakehouse") if row[1] == name], [])

    def steps(self):
        return [
            ("starts with what connect prints, without storage keys", self.connect),
            ("create table partitioned by days(order_date)", self.create),
            ("insert", self.insert),
            ("update", self.update),
            ("merge", self.merge),
            ("delete", self.delete),
            ("add column", self.add_column),
            ("rename column", self.rename_column),
            ("drop column", self.drop_column),
            ("version as of", self.version_as_of),
            ("timestamp as of", self.timestamp_as_of),
            ("create table as select", self.create_table_as_select),
            ("views", self.views),
            ("writes, reads and purges by remote signing, without keys", self.remote_signing),
            ("pyiceberg reads the same rows into pandas", self.pyiceberg_reads_the_same),
            ("the printed command runs", self.printed_command),
            ("drop purge of the selected copy leaves no object", lambda: self.purge("totals")),
            ("drop purge leaves no object", lambda: self.purge("sales")),
            ("drop namespace", lambda: self.sql(f"DROP NAMESPACE {self.catalog}.lakehouse")),
        ]


def tell(database):
    """Runs the story against a server of its own; answers (passed, failed)."""
    with Server(database) as server:
        story = Story(server)
        try:
            return run(f"spark on {database}", story.steps())
        finally:
            if hasattr(story, "spark"):
                story.spark.stop()


if __name__ == "__main__":
    # One process a database: the Java process behind a session keeps that session's settings.
    with multiprocessing.get_context("spawn").Pool(processes=1, maxtasksperchild=1) as pool:
        close(pool.map(tell, databases(sys.argv[1:]), chunksize=1))
