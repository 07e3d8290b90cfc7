# MySQL from Debian unstable, unpacked into a folder: nothing is installed. Sourced after base.sh and debian-mirror.sh.

mysql_unstable=$cache/mysql-unstable

# With state, lists and cache of its own, apt neither reads nor changes what this machine has installed; as nothing counts
# as installed, it also brings the C library that the server needs.
private_apt() {
  local folder=$1
  shift
  apt-get -qq -y -o Dir::State="$folder/state" -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache" \
    -o Dir::Etc::sourcelist="$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User=root "$@" </dev/null >&2
}

unpack_mysql_unstable() {
  local root=$1 apt mirror
  apt=$root/apt
  mirror=$(debian_mirror)
  say "fetching MySQL from Debian unstable, once, into $mysql_unstable"
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial}
  touch "$apt/status"
  echo "deb [signed-by=$debian_keyring] $mirror unstable main" >"$apt/sources.list"
  private_apt "$apt" update
  private_apt "$apt" install --download-only --no-install-recommends mysql-server-core mysql-client-core
  find "$apt/cache/archives" -name '*.deb' -print0 | xargs -0 -P "$(nproc)" -I '{}' dpkg-deb -x '{}' "$root"
  rm -rf "$apt" "$root"/usr/share/{doc,man,locale}
}

# Sets the array `loaded` to the command that runs PROGRAM (such as sbin/mysqld) with the unpacked libraries.
mysql_unstable_program() {
  local root=$mysql_unstable/usr
  local -a loader=("$root"/lib*/ld-linux*.so.*) libraries=("$root"/lib/*-linux-gnu*)
  loaded=("${loader[0]}" --library-path "${libraries[0]}" "$root/$1")
}

need_mysql_unstable() { build_once "$mysql_unstable" unpack_mysql_unstable; }
