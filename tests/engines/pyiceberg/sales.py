"""The sales story in PyIceberg: create, write, change, evolve, travel in time, purge.

PyIceberg is configured by what `tidewater connect pyiceberg` prints: an address and a credential. Storage keys come vended.
"""

import sys
from datetime import date

import pyarrow as pa
from duckdb_catalog import attach
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType
from pyiceberg_catalog import load
from steps import close, eventually, run, same
from tidewater import Server, databases

NAME = "lakehouse.sales"
SCHEMA = Schema(
    NestedField(1, "order_id", LongType()),
    NestedField(2, "customer_id", LongType()),
    NestedField(3, "amount", DoubleType()),
    NestedField(4, "order_date", DateType()),
)
BY_DAY = PartitionSpec(PartitionField(4, 1000, DayTransform(), "order_day"))
ARROW = pa.schema(
    [("order_id", pa.int64()), ("customer_id", pa.int64()), ("amount", pa.float64()), ("order_date", pa.date32())]
)

FIRST = [(1001, 501, 250.75, date(2024, 1, 10)), (1002, 502, 180.40, date(2024, 1, 11))]
CHANGED = [(1001, 501, 300.00, date(2024, 1, 10)), FIRST[1]]
THIRD = (1003, 503, 99.95, date(2024, 1, 12))


def arrow(rows):
    return pa.Table.from_pylist([dict(zip(ARROW.names, row)) for row in rows], schema=ARROW)


def refused(error, action):
    try:
        action()
    except error:
        return
    raise AssertionError(f"expected {error.__name__}")


class Story:
    def __init__(self, server):
        self.server = server

    def table(self):
        return self.catalog.load_table(NAME)

    def rows(self, **scan):
        frame = self.table().scan(selected_fields=tuple(ARROW.names), **scan).to_pandas().sort_values("order_id")
        return list(frame.itertuples(index=False, name=None))

    def connect(self):
        self.catalog = load(self.server)
        same(self.catalog.list_namespaces(), [])

    def namespace(self):
        self.catalog.create_namespace("lakehouse", {"purpose": "orders"})
        refused(NamespaceAlreadyExistsError, lambda: self.catalog.create_namespace("lakehouse"))
        self.catalog.update_namespace_properties("lakehouse", updates={"purpose": "sales"})
        same(self.catalog.load_namespace_properties("lakehouse")["purpose"], "sales")

    def create(self):
        self.catalog.create_table(NAME, SCHEMA, partition_spec=BY_DAY)
        refused(TableAlreadyExistsError, lambda: self.catalog.create_table(NAME, SCHEMA))
        same(self.catalog.list_tables("lakehouse"), [("lakehouse", "sales")])
        same(self.rows(), [])

    def append(self):
        self.table().append(arrow(FIRST))
        self.first_snapshot = self.table().current_snapshot().snapshot_id
        same(self.rows(), FIRST)

    def overwrite(self):
        self.table().overwrite(arrow(CHANGED[:1]), overwrite_filter="order_id = 1001")
        same(self.rows(), CHANGED)

    def upsert(self):
        result = self.table().upsert(arrow([(1002, 502, 190.00, date(2024, 1, 11)), THIRD]), join_cols=["order_id"])
        same((result.rows_updated, result.rows_inserted), (1, 1))
        same(self.rows(), [CHANGED[0], (1002, 502, 190.00, date(2024, 1, 11)), THIRD])

    def delete(self):
        self.table().delete("order_id = 1002")
        same(self.rows(), [CHANGED[0], THIRD])

    def evolve(self):
        with self.table().update_schema() as update:
            update.add_column("region", StringType())
        with self.table().update_schema() as update:
            update.rename_column("region", "area")
        same(self.table().schema().column_names, [*ARROW.names, "area"])
        with self.table().update_schema() as update:
            update.delete_column("area")
        same(self.rows(), [CHANGED[0], THIRD])

    def travel(self):
        same(self.rows(snapshot_id=self.first_snapshot), FIRST)

    def stale_writer(self):
        """Two writers from one base: the second is refused or retries, and neither's acknowledged rows are lost."""
        first, second = self.table(), self.table()
        first.append(arrow([(2001, 1, 1.0, date(2024, 2, 1))]))
        wanted = [1001, 1003, 2001]
        try:
            second.append(arrow([(2002, 1, 1.0, date(2024, 2, 1))]))
            wanted.append(2002)
        except Exception as error:
            same(type(error).__name__, "CommitFailedException")
        same([row[0] for row in self.rows()], wanted)

    def rename(self):
        before = self.rows()
        self.catalog.rename_table(NAME, "lakehouse.orders")
        refused(NoSuchTableError, self.table)
        self.catalog.rename_table("lakehouse.orders", NAME)
        same(self.rows(), before)

    def printed_snippet(self):
        snippet = self.server.connect("pyiceberg", "--format", "python")
        names = {}
        exec(snippet, names)
        same(names["catalog"].load_table(NAME).scan().to_arrow().num_rows, len(self.rows()))

    def remote_signing(self):
        """Through fsspec, whose client holds no keys: the catalog signs each of its requests."""
        signed = load(
            self.server,
            **{
                "header.X-Iceberg-Access-Delegation": "remote-signing",
                "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
                "s3.signer": "S3V4RestSigner",
            },
        )
        table = signed.create_table("lakehouse.signed", SCHEMA)
        same([key for key in table.io.properties if "access-key" in key], [])
        table.append(arrow(FIRST))
        table.delete("order_id = 1002")
        same(signed.load_table("lakehouse.signed").scan().to_arrow().to_pylist(), arrow(FIRST[:1]).to_pylist())
        same(self.catalog.load_table("lakehouse.signed").scan().to_arrow().num_rows, 1)
        signed.drop_table("lakehouse.signed")

    def duckdb_reads_the_same(self):
        connection, catalog = attach(self.server)
        same(connection.execute(f"SELECT * FROM {catalog}.{NAME} ORDER BY order_id").fetchall(), self.rows())

    def duckdb_creates(self):
        connection, catalog = attach(self.server)
        made, copy = f"{catalog}.lakehouse.made", f"{catalog}.lakehouse.copy"
        connection.execute(f"CREATE TABLE {made} (id INTEGER, name VARCHAR)")
        connection.execute(f"INSERT INTO {made} VALUES (1, 'a'), (2, 'b')")
        connection.execute(f"CREATE TABLE {copy} AS SELECT * FROM {made} WHERE id = 2")
        same(connection.execute(f"SELECT * FROM {made} ORDER BY id").fetchall(), [(1, "a"), (2, "b")])
        same(connection.execute(f"SELECT * FROM {copy}").fetchall(), [(2, "b")])
        same(self.catalog.load_table("lakehouse.copy").scan().to_arrow().to_pylist(), [{"id": 2, "name": "b"}])
        connection.execute(f"DROP TABLE {made}")
        connection.execute(f"DROP TABLE {copy}")

    def purge(self):
        location = self.table().location()

        def files():
            # PyArrow puts an empty `folder/` where it deleted a file: no file of the table, and nothing names it.
            return [key for key in self.server.objects(location) if not key.endswith("/")]

        same(any("/metadata/" in key for key in files()), True)
        self.catalog.purge_table(NAME)
        refused(NoSuchTableError, self.table)
        eventually(lambda: same(files(), []))

    def drop_namespace(self):
        self.catalog.drop_namespace("lakehouse")
        same(self.catalog.namespace_exists("lakehouse"), False)

    def steps(self):
        return [
            ("connects with what connect prints, without storage keys", self.connect),
            ("namespace", self.namespace),
            ("create table partitioned by day", self.create),
            ("append, read into pandas", self.append),
            ("overwrite", self.overwrite),
            ("upsert", self.upsert),
            ("delete", self.delete),
            ("add, rename, drop column", self.evolve),
            ("an earlier snapshot reads the earlier rows", self.travel),
            ("a stale writer loses nothing", self.stale_writer),
            ("rename", self.rename),
            ("the printed snippet runs", self.printed_snippet),
            ("writes and reads by remote signing, without keys", self.remote_signing),
            ("duckdb, attached by what connect prints, reads the same rows", self.duckdb_reads_the_same),
            ("duckdb creates, fills and drops tables", self.duckdb_creates),
            ("purge leaves no object", self.purge),
            ("drop namespace", self.drop_namespace),
        ]


def tell(database):
    with Server(database) as server:
        return run(f"pyiceberg on {database}", Story(server).steps())


if __name__ == "__main__":
    close([tell(database) for database in databases(sys.argv[1:])])
