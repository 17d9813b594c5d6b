#!/usr/bin/env bash
# The README's quick start, word for word, in a fresh clone: see quickstart.py. Needs the default ports free.
#   tests/engines/quickstart/run.sh      RELEASE=1: with the real release build (minutes), else with the debug build
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../support/tools.sh"
need_cc
need curl curl
JAVA_HOME=$(java_home) || exit 1
bin=$(python_env engines "$here/../requirements.txt") || exit 1
export JAVA_HOME PATH=$bin:$PATH PYTHONPATH=$here/../lib PYTHONDONTWRITEBYTECODE=1 SPARK_LOCAL_IP=127.0.0.1
exec python "$here/quickstart.py"
