#!/usr/bin/env bash
# Requests made at random from the server's own OpenAPI document: none may fail on the server or be answered with a
# status that the document does not name. See random_requests.py.
#   tests/engines/schemathesis/run.sh [sqlite|postgres ...]      default: both, half of the requests each
# Needs a built server (TIDEWATER_BIN, default the debug build) and, for Postgres, TIDEWATER_TEST_POSTGRES_URL.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../support/tools.sh"
bin=$(python_env schemathesis "$here/requirements.txt") || exit 1
export PATH=$bin:$PATH PYTHONPATH=$here/../lib:$here PYTHONDONTWRITEBYTECODE=1
exec "$bin/python" "$here/random_requests.py" "$@"
