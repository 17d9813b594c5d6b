#!/usr/bin/env bash
# A throw-away Postgres cluster for tests: its own folder, port and socket, run by an unprivileged user.
#
#   postgres.sh start DIR [--no-fsync]        starts (or finds running) the cluster in DIR, prints its superuser URL
#   postgres.sh stop DIR                      stops it; the folder stays
#   postgres.sh run [--no-fsync] CMD ARG…     starts one in a temporary folder, runs CMD with
#                                             TIDEWATER_TEST_POSTGRES_URL set, stops and removes it, also on failure
#
# Installs Debian's `postgresql` when no server is found under /usr/lib/postgresql.
set -euo pipefail

CONNECTIONS_MAX=200

say() { echo "postgres.sh: $*" >&2; }

usage() {
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

# The newest installed server's folder of programs.
find_bin() { find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1; }

need_server() {
    bin=$(find_bin)
    if [[ -z $bin || ! -x $bin/initdb ]]; then
        say "no Postgres server found: installing Debian's package postgresql"
        local sudo=()
        [[ $(id -u) -eq 0 ]] || sudo=(sudo)
        # The package's own cluster is neither wanted nor needed.
        "${sudo[@]}" mkdir -p /etc/postgresql-common
        [[ -e /etc/postgresql-common/createcluster.conf ]] ||
            echo 'create_main_cluster = false' | "${sudo[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >&2
        bin=$(find_bin)
    fi
    [[ -n $bin ]] || { say "still no Postgres server under /usr/lib/postgresql"; exit 1; }
}

# Postgres refuses to run as root.
choose_user() {
    if [[ $(id -u) -ne 0 ]]; then user=$(id -un)
    elif id postgres >/dev/null 2>&1; then user=postgres
    else user=nobody
    fi
}

as_user() {
    if [[ $(id -un) == "$user" ]]; then "$@"; else (cd / && setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$@"); fi
}

# A port nobody listens on. Another process may take it before the server does: `start` then tries another.
free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}

url() { echo "postgres://tidewater@127.0.0.1:$(cat "$dir/port")/postgres"; }

running() { [[ -f $dir/port ]] && as_user "$bin/pg_ctl" -D "$dir/data" status >/dev/null 2>&1; }

make_cluster() {
    mkdir -p "$dir"
    chown "$user" "$dir"
    chmod 700 "$dir"
    as_user "$bin/initdb" -D "$dir/data" -U tidewater --auth=trust --encoding=UTF8 --locale=C.UTF-8 >"$dir/initdb.log" 2>&1 ||
        { say "initdb failed:"; cat "$dir/initdb.log" >&2; exit 1; }
}

# A socket's path may have 107 bytes: a long DIR does without one.
socket_dir() { if [[ ${#dir} -le 80 ]]; then echo "$dir"; fi; }

start() {
    [[ -f $dir/data/PG_VERSION ]] || make_cluster
    running && { url; return; }
    for _ in 1 2 3 4 5; do
        local port
        port=$(free_port)
        if as_user "$bin/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w -t 60 start -o "-p $port \
            -c listen_addresses=127.0.0.1 -c unix_socket_directories='$(socket_dir)' -c fsync=$fsync \
            -c max_connections=$CONNECTIONS_MAX -c shared_buffers=128MB" >/dev/null 2>&1
        then
            echo "$port" >"$dir/port"
            url
            return
        fi
    done
    say "the server does not start:"
    tail -n 20 "$dir/server.log" >&2
    exit 1
}

stop() { if running; then as_user "$bin/pg_ctl" -D "$dir/data" -w -m immediate stop >/dev/null; fi; }

command=${1:-}
[[ -n $command ]] && shift
fsync=on
arguments=()
while [[ $# -gt 0 ]]; do
    # What follows a command to run belongs to it.
    if [[ $1 == --no-fsync ]]; then fsync=off; shift
    elif [[ $command == run ]]; then arguments=("$@"); break
    else arguments+=("$1"); shift
    fi
done
[[ ${#arguments[@]} -gt 0 ]] || usage
umask 077

case $command in
start | stop)
    dir=$(realpath -m "${arguments[0]}")
    need_server
    choose_user
    "$command"
    ;;
run)
    dir=$(mktemp -d "${TMPDIR:-/tmp}/tidewater-postgres.XXXXXX")
    need_server
    choose_user
    trap 'stop || true; rm -rf "$dir"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    TIDEWATER_TEST_POSTGRES_URL=$(start)
    export TIDEWATER_TEST_POSTGRES_URL
    "${arguments[@]}"
    ;;
*) usage ;;
esac
