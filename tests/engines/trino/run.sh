#!/usr/bin/env bash
# Real Trino against a fresh server: the steps are in sales.py.
#   tests/engines/trino/run.sh [sqlite|postgres ...]      default: both
# Needs a built server (TIDEWATER_BIN, default the debug build) and, for Postgres, TIDEWATER_TEST_POSTGRES_URL.
# 476 is the newest Trino whose server archive is published as a Maven artifact. It runs on Java 24 or newer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../support/tools.sh"
TRINO=476
JAVA_HOME=$(java_home 24) || exit 1
bin=$(python_env trino "$here/requirements.txt") || exit 1

TRINO_HOME=$TOOLS_CACHE/trino-server-$TRINO
if [ ! -f "$TRINO_HOME/.unpacked" ]; then
  archive=$(maven_artifact "io.trino:trino-server:$TRINO:tar.gz") || exit 1
  say "unpacking Trino $TRINO into $TRINO_HOME"
  rm -rf "$TRINO_HOME"
  # Whole, then pruned: its jars are hard links of each other.
  tar xzf "$archive" -C "$TOOLS_CACHE"
  find "$TRINO_HOME/plugin" -mindepth 1 -maxdepth 1 ! -name iceberg -exec rm -rf {} +
  rm -f "$archive"
  touch "$TRINO_HOME/.unpacked"
fi
export JAVA_HOME TRINO_HOME PATH=$JAVA_HOME/bin:$PATH PYTHONPATH=$here/../lib PYTHONDONTWRITEBYTECODE=1
exec "$bin/python" "$here/sales.py" "$@"
