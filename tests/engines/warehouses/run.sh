#!/usr/bin/env bash
# PyIceberg on warehouses in other makers' S3 stores: the steps are in other_store.py.
#   tests/engines/warehouses/run.sh [versitygw|minio ...]      default: versitygw (MinIO takes minutes to build)
# Needs a built server (TIDEWATER_BIN, default the debug build) and TIDEWATER_TEST_POSTGRES_URL.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../support/tools.sh"
bin=$(python_env engines "$here/../requirements.txt") || exit 1
programs=()
for store in "${@:-versitygw}"; do
  case $store in
    versitygw) program=$(go_tool versitygw github.com/versity/versitygw/cmd/versitygw v1.8.0) || exit 1 ;;
    minio) program=$(go_tool minio github.com/minio/minio v0.0.0-20260212201848-7aac2a2c5b7c) || exit 1 ;;
    *) die "unknown store: $store (versitygw, minio)" ;;
  esac
  programs+=("$store=$program")
done
export PYTHONPATH=$here/../lib PYTHONDONTWRITEBYTECODE=1
exec "$bin/python" "$here/other_store.py" "${programs[@]}"
