#!/usr/bin/env bash
# Usage: guarantees.sh GUARANTEES_MD BUILD_DIR
#
# Each row of the first table of docs/guarantees.md names tests, in patterns as ctest -R takes them, and none in vain.
set -euo pipefail

tests=$(ctest --test-dir "$2" -N | sed -nE 's/^ *Test +#[0-9]+: //p')
rows=$(sed -n '/^| guarantee/,/^$/p' "$1" | sed -e '1,2d' -e '/^$/d')
failed=0
say() { echo "guarantees: $*" >&2 && failed=1; }

[[ $rows ]] || say "no table in $1"
while IFS='|' read -r _ guarantee _ named _; do
  patterns=$(grep -oE '`[^`]+`' <<<"$named" | tr -d '`') || say "no test is named for:$guarantee"
  for pattern in $patterns; do
    grep -qE -- "$pattern" <<<"$tests" || say "there is no test $pattern"
  done
done <<<"$rows"
exit "$failed"
