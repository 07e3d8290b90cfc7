# What every script here starts with: strict mode, the folders, how to complain. Sourced, not run.

set -euo pipefail
shopt -s inherit_errexit # else `x=$(f)` carries on after a failed command inside f

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scripts=$repo/tests/scripts

# The two folders that scripts write to, besides throwaway ones under TMPDIR.
build_dir=$(realpath -m -- "${COMMITQ_BUILD_DIR:-$repo/build}")
cache=$(realpath -m -- "${COMMITQ_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/commitq}")

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

fail() {
  say "$@"
  exit 1
}

# Exit 2, as for a command called wrongly.
misuse() {
  say "$*; see --help"
  exit 2
}

# Prints the comment at the top of the running script, which is its help.
help_text() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

# build_once FOLDER COMMAND ARG...: makes FOLDER unless it is there, by running COMMAND ARG... PARTIAL, where PARTIAL is an
# empty folder that becomes FOLDER only when COMMAND has succeeded. Callers that come at the same time wait for the first.
# Not for use in a condition (`if`, `||`): bash would then ignore failures inside COMMAND.
build_once() {
  local folder=$1 partial
  shift
  [[ -d $folder ]] && return
  mkdir -p "$(dirname "$folder")"
  (
    flock 9
    [[ -d $folder ]] && exit
    rm -rf "$folder".partial.* # left by a builder that was killed: none lives while the lock is ours
    partial=$(mktemp -d "$folder.partial.XXXXXX")
    "$@" "$partial"
    mv -T "$partial" "$folder"
  ) 9>"$folder.lock"
}
