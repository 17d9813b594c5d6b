#!/usr/bin/env bash
# Real S3 clients against a fresh server: the steps are in clients.py.
#   tests/engines/s3/clients.sh [CLIENT ...]      default: boto3 pyarrow s3fs duckdb awscli rclone
# Needs a built server (TIDEWATER_BIN, default the debug build).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../support/tools.sh"
bin=$(python_env engines "$here/../requirements.txt") || exit 1
AWS_CLI=$(python_env awscli "$here/awscli.txt") || exit 1
need rclone rclone
export AWS_CLI=$AWS_CLI/aws PYTHONPATH=$here/../lib PYTHONDONTWRITEBYTECODE=1
exec "$bin/python" "$here/clients.py" "$@"
