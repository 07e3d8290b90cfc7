# For the legs: runs the steps of one, each with a banner, its duration and its ctest summary. Sourced first.

. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../tests/scripts/base.sh"
. "$scripts/packages.sh"

leg=${0##*/}
export COMMITQ_CMAKE_ARGS=-DCOMMITQ_WERROR=ON
# Several files compiled as one: half the time. Leg a compiles each alone, which shows what one forgot to include.
unity=' -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=6'

# step NAME COMMAND ARG...: COMMAND may fail; the next step runs all the same. CI_STEPS gets a line for it: leg, name, ok or
# FAILED, seconds, tests passed, tests failed.
step() {
  local name=$1 log started=$SECONDS status=0 result=ok
  shift
  printf '\n==== %s: %s\n' "$leg" "$name"
  log=$(mktemp)
  # Not as part of a condition, in which bash would ignore failures inside COMMAND.
  set +e
  (set -e; "$@") </dev/null 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  set -e
  ((status == 0)) || result=FAILED
  printf -- '---- %s: %s: %s after %d s\n' "$leg" "$name" "$result" "$((SECONDS - started))"
  sed -nE 's/.*tests passed, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/p' "$log" |
    awk -v line="$leg|$name|$result|$((SECONDS - started))" \
      '{ failed += $1; all += $2 } END { printf "%s|%d|%d\n", line, all - failed, failed }' >>"${CI_STEPS:-/dev/null}"
  rm "$log"
}
