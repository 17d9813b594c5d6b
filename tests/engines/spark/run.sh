#!/usr/bin/env bash
# Real Spark (PySpark with the Iceberg runtime) against a fresh server: the steps are in sales.py.
#   tests/engines/spark/run.sh [sqlite|postgres ...]      default: both
# Needs a built server (TIDEWATER_BIN, default the debug build) and, for Postgres, TIDEWATER_TEST_POSTGRES_URL.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../support/tools.sh"
JAVA_HOME=$(java_home) || exit 1
bin=$(python_env engines "$here/../requirements.txt") || exit 1
export JAVA_HOME PATH=$bin:$PATH PYTHONPATH=$here/../lib PYTHONDONTWRITEBYTECODE=1
exec "$bin/python" "$here/sales.py" "$@"
