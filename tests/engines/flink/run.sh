#!/usr/bin/env bash
# Real Flink, in one process, against a fresh server: the steps are in Sales.java.
#   tests/engines/flink/run.sh [sqlite|postgres ...]      default: both
# Needs a built server (TIDEWATER_BIN, default the debug build) and, for Postgres, TIDEWATER_TEST_POSTGRES_URL.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../support/tools.sh"
JAVA_HOME=$(java_home 17) || exit 1
need python3 python3
FLINK_CLASSPATH=$(maven_classpath "$here/pom.xml") || exit 1
export JAVA_HOME FLINK_CLASSPATH PYTHONPATH=$here/../lib PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/sales.py" "$@"
