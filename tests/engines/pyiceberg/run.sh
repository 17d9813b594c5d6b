#!/usr/bin/env bash
# Real PyIceberg against a fresh server: the steps are in sales.py.
#   tests/engines/pyiceberg/run.sh [sqlite|postgres ...]      default: both
# Needs a built server (TIDEWATER_BIN, default the debug build) and, for Postgres, TIDEWATER_TEST_POSTGRES_URL.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../support/tools.sh"
bin=$(python_env engines "$here/../requirements.txt") || exit 1
export PYTHONPATH=$here/../lib PYTHONDONTWRITEBYTECODE=1
exec "$bin/python" "$here/sales.py" "$@"
