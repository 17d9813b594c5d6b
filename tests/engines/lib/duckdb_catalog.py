"""DuckDB attached by the statements that `tidewater connect duckdb` prints.

DuckDB's own INSTALL downloads extensions; here they come as Python packages and are loaded from there, the rest is run as
printed.
"""

import importlib.util
import os
import pathlib
import re

import duckdb


def attach(server):
    """A connection with the catalog attached, and the catalog's name in it."""
    os.chdir(server.folder)  # the extension makes a folder `data` where it runs
    printed = server.connect("duckdb")
    statements = re.sub(r"^INSTALL \w+;\n", "", printed, flags=re.MULTILINE)
    statements = re.sub(r"^LOAD (\w+);", lambda load: f"LOAD '{extension(load[1])}';", statements, flags=re.MULTILINE)
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute(statements)
    return connection, re.search(r"^ATTACH .* AS (\w+)", printed, re.MULTILINE)[1]


def extension(name):
    package = pathlib.Path(importlib.util.find_spec(f"duckdb_extension_{name}").origin).parent
    (path,) = package.glob("extensions/*/*.duckdb_extension")
    return path
