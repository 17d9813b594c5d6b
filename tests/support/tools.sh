# Sourced by the scripts that need tools: finds them, or says what is missing and installs it.
#
# TOOLS_CACHE   where everything downloaded or built for the tests lands (default: ~/.cache/tidewater)
# Debian packages are installed with apt-get when running as root; otherwise the command to type is printed.
# No registry is named anywhere: pip, cargo and Spark's own resolver are used as this machine has them set up.
: "${TOOLS_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/tidewater}"
export TOOLS_CACHE
mkdir -p "$TOOLS_CACHE"

say() { printf '== %s\n' "$*" >&2; }
die() { printf '!! %s\n' "$*" >&2; exit 1; }

# need COMMAND PACKAGE: makes sure COMMAND can be run, from the Debian package PACKAGE if it must be.
need() {
  command -v "$1" >/dev/null 2>&1 && return 0
  apt_install "$2" || die "needs '$1': install it (Debian: apt-get install $2) and run this again"
  command -v "$1" >/dev/null 2>&1 || die "'$1' is still missing after installing $2"
}

# apt_install PACKAGE: false when this is not root on a Debian machine.
apt_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
  say "installing the Debian package $1"
  [ -n "${APT_UPDATED:-}" ] || { apt-get update -qq >&2 && APT_UPDATED=1; } || return 1
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >&2
}

# need_cc: Rust itself links with cc, and a few dependencies compile C.
need_cc() {
  need cargo cargo
  command -v cc >/dev/null 2>&1 || apt_install build-essential || die "needs a C compiler (Debian: apt-get install build-essential)"
}

# python_env NAME REQUIREMENTS: prints the bin folder of a virtual environment that holds what the file lists.
python_env() {
  local env=$TOOLS_CACHE/python-$1 wanted
  need python3 python3
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || die "needs Python 3.10 or newer, found $(python3 --version)"
  wanted=$(cat "$2")
  if [ "$(cat "$env/.installed" 2>/dev/null)" != "$wanted" ]; then
    say "installing into $env: $(echo "$wanted" | grep -v '^#' | tr '\n' ' ')"
    python3 -c 'import venv, ensurepip' 2>/dev/null || apt_install python3-venv || die "needs Python's venv (Debian: apt-get install python3-venv)"
    rm -rf "$env"
    python3 -m venv "$env" && "$env/bin/pip" install --quiet --disable-pip-version-check -r "$2" >&2 || die "pip could not install $2"
    printf '%s\n' "$wanted" > "$env/.installed"
  fi
  echo "$env/bin"
}

# java_home: prints the home of a Java 17 or newer (the oldest such, which is what engines are tested with).
java_home() {
  local home
  home=$(find_java)
  if [ -z "$home" ]; then
    apt_install openjdk-17-jre-headless || apt_install default-jre-headless || die "needs Java 17 or newer: set JAVA_HOME"
    home=$(find_java)
  fi
  [ -n "$home" ] || die "needs Java 17 or newer: set JAVA_HOME"
  echo "$home"
}

find_java() {
  local home version
  for home in ${JAVA_HOME:-} /usr/lib/jvm/*; do
    [ -x "$home/bin/java" ] || continue
    version=$("$home/bin/java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 17 ] && echo "$version $home"
  done | sort -n | head -n 1 | cut -d' ' -f2-
}

# cargo_tool NAME VERSION: prints the path of a cargo tool, built once into the cache.
cargo_tool() {
  local root=$TOOLS_CACHE/cargo-tools
  local tool=$root/bin/$1
  if [ "$("$tool" --version 2>/dev/null | awk '{print $NF}')" != "$2" ]; then
    say "building $1 $2 (once, into $root)"
    env -u CARGO_TARGET_DIR -u RUSTFLAGS cargo install --quiet --locked --root "$root" "$1@$2" >&2 || die "could not build $1"
  fi
  echo "$tool"
}
