#!/usr/bin/env bash
# Iceberg's REST compatibility kit against a fresh server: how it is run is in Kit.java, what must come out in kit.py.
#   tests/engines/rck/run.sh [sqlite|postgres ...]      default: both
# RCK_TESTS   only the kit's tests whose method names match this regular expression; the numbers are then not checked
# Needs a built server (TIDEWATER_BIN, default the debug build) and, for Postgres, TIDEWATER_TEST_POSTGRES_URL.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../support/tools.sh"
JAVA_HOME=$(java_home 17) || exit 1
need python3 python3
RCK_CLASSPATH=$(maven_classpath "$here/pom.xml") || exit 1
export JAVA_HOME RCK_CLASSPATH PYTHONPATH=$here/../lib PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/kit.py" "$@"
