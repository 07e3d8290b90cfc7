#!/usr/bin/env bash
# Usage: layers.sh SRC_DIR
#
# The arrow between the folders of src goes down only, and only src/mysql includes the client library's header.
set -euo pipefail
script=$(realpath "$0")
cd "$1"

failed=0
# allow FOLDER OTHER...: the files of FOLDER include their own, the public headers, and those of OTHER.
allow() {
  local folder=$1 others
  others=$(IFS='|' && echo "$*")
  [[ -d $folder ]] || { echo "layers: no folder $folder" >&2 && failed=1; }
  if grep -rnE '#include [<"](core|mysql|store|queue|worker|reaper|schema|testing|cli)/' "$folder" |
    grep -vE "#include [<\"]($others)/" >&2; then
    echo "layers: $folder may include only $*" >&2
    failed=1
  fi
}

allow core
allow mysql core
allow store core mysql
allow queue core mysql store
allow reaper core mysql store
allow schema core mysql store
allow testing core mysql store
allow worker core mysql store queue
allow cli

if grep -rnE '#include [<"](mysql|mariadb|errmsg)[^/]*\.h[>"]' --exclude-dir=mysql . >&2; then
  echo "layers: only src/mysql includes the client library" >&2
  failed=1
fi
for folder in */; do
  [[ $folder == cmake/ ]] || grep -q "^allow ${folder%/}\b" "$script" || {
    echo "layers: say here what $folder may include" >&2
    failed=1
  }
done
exit "$failed"
