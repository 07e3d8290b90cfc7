#!/usr/bin/env bash
# Usage: headers.sh INCLUDE_DIR
#
# What holds for the public headers as texts: few, short, and with nothing in them that their users need not have.
set -euo pipefail
cd "$1"

failed=0
complain() {
  echo "headers: $*" >&2
  failed=1
}

mapfile -t headers < <(find . -name '*.h' -printf '%P\n' | sort)
((${#headers[@]} > 0)) || complain "there are none"
((${#headers[@]} <= 25)) || complain "${#headers[@]} public headers, more than 25"
for header in "${headers[@]}"; do
  lines=$(wc -l <"$header")
  ((lines < 250)) || complain "$header has $lines lines, 250 or more"
  if [[ $header != commitq/interop/mysql.h ]]; then
    ! grep -nE '^ *# *include *[<"]((mysql|mariadb)/)?(mysql|mariadb)[^/]*\.h[>"]' "$header" >&2 ||
      complain "$header includes the client library"
  fi
  ! grep -nE '^ *# *include *[<"](spdlog|fmt)/' "$header" >&2 || complain "$header includes spdlog or fmt"
  ! grep -nE '^ *# *include *"' "$header" >&2 || complain "$header includes by a path relative to itself"
  ! grep -nE '^ *# *define +' "$header" | grep -vE 'define +COMMITQ_' >&2 || complain "$header defines a macro not ours"
done
exit "$failed"
