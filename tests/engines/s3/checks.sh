#!/usr/bin/env bash
# The S3 conformance checks that versitygw's client carries, against fresh servers: see checks.py for how they are run,
# checks_passed.txt for those that must pass, and checks_failed.tsv for those that do not, each with its reason.
#   tests/engines/s3/checks.sh [REGEX]      only the checks that match; the lists are then not held complete
# CHECKS_WRITE=1   writes checks_passed.txt anew from what passed
# Needs Go once, to build the client, and a built server (TIDEWATER_BIN, default the debug build).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../support/tools.sh"
VERSITYGW=$(go_tool versitygw github.com/versity/versitygw/cmd/versitygw v1.8.0) || exit 1
bin=$(python_env engines "$here/../requirements.txt") || exit 1
export VERSITYGW PYTHONPATH=$here/../lib PYTHONDONTWRITEBYTECODE=1
exec "$bin/python" "$here/checks.py" "$@"
