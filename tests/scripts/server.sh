# Finds the database server of a kind, installing or fetching it where it has to. Sourced after base.sh and packages.sh.

. "$scripts/debian-mirror.sh"
. "$scripts/mysql-unstable.sh"

# find_server mysql|mariadb sets these.
server=()        # the command that runs the server, with the options that tell it where its own files are
server_client=() # the same for the command-line client; empty if there is none
server_options=()

run_as=()
((EUID == 0)) && run_as=(--user=root)

# Debian's MariaDB also calls itself mysqld.
real_mysqld() { command -v mysqld >/dev/null && [[ $(mysqld --version 2>/dev/null) != *MariaDB* ]]; }

find_mysql() {
  local package
  if ! real_mysqld && [[ ! -d $mysql_unstable ]]; then
    package=$(newest_package 'mysql-server-core(-[0-9.]+)?')
    if [[ $package ]]; then
      need_packages "$package"
    else
      need_mysql_unstable
    fi
  fi
  if real_mysqld; then
    server=(mysqld --no-defaults)
    ! command -v mysql >/dev/null || server_client=(mysql --no-defaults)
  else
    local root=$mysql_unstable/usr
    local -a loaded
    mysql_unstable_program sbin/mysqld
    server=("${loaded[@]}" --no-defaults --basedir="$root" --lc-messages-dir="$root/share/mysql"
      --character-sets-dir="$root/share/mysql/charsets" --plugin-dir="$root/lib/mysql/plugin")
    mysql_unstable_program bin/mysql
    server_client=("${loaded[@]}" --no-defaults --character-sets-dir="$root/share/mysql/charsets")
  fi
  server_options=(--mysqlx=OFF)
}

find_mariadb() {
  local package
  # Making a data folder takes a program that comes with the client.
  if ! { command -v mariadbd && command -v my_print_defaults; } >/dev/null; then
    package=$(newest_package 'mariadb-server-core(-[0-9.]+)?')
    [[ $package ]] || fail "apt on this machine has no MariaDB server"
    need_packages "$package" "${package/server/client}"
  fi
  server=(mariadbd --no-defaults)
  ! command -v mariadb >/dev/null || server_client=(mariadb --no-defaults)
  # As durable as MySQL is by default, and as much to see.
  server_options=(--log-bin --binlog-format=ROW --sync-binlog=1 --innodb-flush-log-at-trx-commit=1 --performance-schema=ON)
}

find_server() {
  local kind=$1
  "find_$kind"
  server+=("${run_as[@]}")
  server_options+=(--character-set-server=utf8mb4 --secure-file-priv= --skip-name-resolve --max-connections=600)
}

initialise_mysql() {
  local folder=$1
  "${server[@]}" --mysqlx=OFF --initialize-insecure --datadir="$folder" >"$folder.log" 2>&1
}

# Without --skip-test-db there would be an anonymous local user, who takes precedence over `commitq`@`%`.
initialise_mariadb() {
  local folder=$1
  mariadb-install-db --no-defaults "${run_as[@]}" --datadir="$folder" --skip-test-db \
    --auth-root-authentication-method=normal >"$folder.log" 2>&1
}

initialise_template() {
  local kind=$1 folder=$2
  if ! "initialise_$kind" "$folder"; then
    tail -n 40 "$folder.log" >&2
    fail "the $kind server could not make a data folder"
  fi
  rm "$folder.log"
  rm -f "$folder/auto.cnf" # the server's identity, which each copy has to make for itself
}

# need_template KIND sets `template` to a data folder that is ready to be copied: a copy is far quicker than making one.
need_template() {
  local kind=$1 version
  version=$("${server[@]}" --version | sed -E 's/.*Ver ([^ ]+).*/\1/; s/[^A-Za-z0-9.+-]/_/g')
  template=$cache/data/$kind-$version
  build_once "$template" initialise_template "$kind"
}
