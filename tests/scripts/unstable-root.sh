# A Debian unstable system in a folder, for building and testing with the newest of everything. Needs root. Sourced after
# base.sh, packages.sh and debian-mirror.sh.

unstable_packages=(g++ clang cmake ninja-build pkgconf libmysqlclient-dev mysql-server-core mysql-client-core libfmt-dev
  libspdlog-dev libgtest-dev libgmock-dev openssl)

# Made anew each month, and when it is to hold other packages.
unstable_root=$cache/unstable-$(date -u +%Y-%m)-$(cksum <<<"${unstable_packages[*]}" | cut -d ' ' -f 1)

need_unstable_root() {
  ((EUID == 0)) || fail "a Debian unstable root can only be made and entered by root"
  need_packages debootstrap
  local old
  for old in "$cache"/unstable-*/; do
    [[ ! -d $old || $old == "$unstable_root/" ]] || rm -rf --one-file-system "$old"
  done
  build_once "$unstable_root" make_unstable_root
}

make_unstable_root() {
  local root=$1 mirror
  mirror=$(debian_mirror)
  say "making a Debian unstable root, once a month, in $unstable_root"
  chmod 755 "$root"
  # In a mount namespace of its own, what debootstrap mounts is gone with it, also when it is killed. A root that a crash
  # could damage is never used, so dpkg needn't wait for the disk.
  if ! DPKG_FORCE=unsafe-io unshare --mount debootstrap --variant=minbase --keyring="$debian_keyring" \
    --include="$(IFS=,; echo "${unstable_packages[*]}")" unstable "$root" "$mirror" </dev/null >"$root.log" 2>&1; then
    tail -n 40 "$root.log" "$root/debootstrap/debootstrap.log" >&2
    fail "no Debian unstable root could be made"
  fi
  rm -rf "$root.log" "$root"/var/cache/apt/archives/*.deb
}

# in_unstable_root [VARIABLE=VALUE...] COMMAND ARG...: runs COMMAND, relative to the repository, in the root. There /checkout
# is the repository, which can't be written to, and /builds and /tmp are in a folder beside the build folder. All processes
# and mounts are gone when COMMAND ends.
in_unstable_root() {
  local folder=$build_dir-unstable
  rm -rf "$folder/tmp" # where servers had their data, if they were killed together with their keepers
  mkdir -p "$folder/builds" "$folder/tmp"
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child "$scripts/enter-root" \
    "$unstable_root" "$repo" "$folder" "$@"
}
