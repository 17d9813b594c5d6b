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

# java_home [N]: prints the home of a Java N (default 17) or newer: the oldest such, which is what engines are tested with.
java_home() {
  local least=${1:-17} home version
  home=$(find_java "$least")
  for version in 17 21 25; do
    [ -z "$home" ] && [ $version -ge "$least" ] || continue
    apt_install openjdk-$version-jre-headless && home=$(find_java "$least")
  done
  [ -n "$home" ] || die "needs Java $least or newer, and no package of it was found: install one and set JAVA_HOME"
  echo "$home"
}

find_java() {
  local least=$1 home version
  for home in ${JAVA_HOME:-} /usr/lib/jvm/*; do
    [ -x "$home/bin/java" ] || continue
    version=$("$home/bin/java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge "$least" ] && echo "$version $home"
  done | sort -n | head -n 1 | cut -d' ' -f2-
}

# maven_artifact G:A:V:PACKAGING: prints the path of an artifact in the cache.
maven_artifact() {
  local group artifact version packaging
  IFS=: read -r group artifact version packaging <<< "$1"
  local file=$TOOLS_CACHE/jars/$artifact-$version.$packaging
  if [ ! -s "$file" ]; then
    need mvn maven
    say "fetching $1"
    mvn -q -B dependency:copy -Dartifact="$1" -DoutputDirectory="$TOOLS_CACHE/jars" >&2 || die "could not fetch $1"
  fi
  echo "$file"
}

# maven_classpath POM: prints the class path of what a pom depends on, resolved once for its content.
maven_classpath() {
  local file
  file=$TOOLS_CACHE/jars/classpath-$(sha256sum < "$1" | cut -c1-16)
  if [ ! -s "$file" ]; then
    need mvn maven
    mkdir -p "$TOOLS_CACHE/jars"
    say "fetching what $1 depends on"
    mvn -q -B -f "$1" dependency:build-classpath -Dmdep.outputFile="$file.new" >&2 || die "could not fetch it"
    mv "$file.new" "$file"
  fi
  cat "$file"
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

# go_tool NAME PACKAGE VERSION: prints the path of a Go program, built once into the cache from what the module proxy serves.
go_tool() {
  local folder=$TOOLS_CACHE/go-tools/$1-$3
  local tool=$folder/$1
  if [ ! -x "$tool" ]; then
    command -v go >/dev/null 2>&1 || apt_install golang-go ||
      die "needs Go to build $1 (https://go.dev/dl, Debian: apt-get install golang-go): install it and run this again"
    say "building $1 $3 (once, into $folder)"
    GOBIN=$folder go install "$2@$3" >&2 || die "could not build $2@$3 with $(go version): is the Go module proxy within reach?"
  fi
  echo "$tool"
}
