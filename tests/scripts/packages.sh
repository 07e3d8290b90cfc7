# Debian and Ubuntu packages. Sourced after base.sh.

as_root=()
((EUID == 0)) || as_root=(sudo -n)

# Commands for servers and administration are in the sbin folders, which an ordinary user's PATH may lack.
PATH=$PATH:/usr/sbin:/sbin

have_rights() { ((EUID == 0)) || sudo -n true 2>/dev/null; }

# What apt and dpkg have to say is only of interest if they fail.
apt_get() {
  local output
  output=$("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null 2>&1) ||
    { echo "$output" >&2 && return 1; }
}

apt_install() { apt_get install --no-install-recommends "$@"; }

# A fresh container has no package lists at all, and apt then finds nothing.
apt_has_lists() {
  local list
  while read -r list; do
    [[ -e $list ]] && return
  done < <(apt-get indextargets --format '$(FILENAME)' 'Created-By: Packages')
  return 1
}

# missing_packages NAME...: prints those that are not installed.
missing_packages() {
  local name installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for name; do
    grep -qxF "installed $name" <<<"$installed" || echo "$name"
  done
}

# need_packages NAME...: installs those that are missing; without the rights, says which they are and exits 1.
need_packages() {
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  have_rights || fail "these packages are missing, and installing them needs root or sudo: ${missing[*]}"
  say "installing ${missing[*]}"
  apt_has_lists || apt_get update
  # Lists of last month name files that the mirror no longer has, so a failure is worth one fresh try.
  apt_install "${missing[@]}" || { apt_get update && apt_install "${missing[@]}"; } ||
    fail "could not install ${missing[*]}"
}

# newest_package REGEX: prints the newest name, by version number in the name, that apt can install; nothing if there is none.
newest_package() {
  local name
  ! have_rights || apt_has_lists || apt_get update
  while read -r name; do
    [[ $(LC_ALL=C apt-cache policy "$name") =~ Candidate:\ [^\(] ]] && echo "$name" && return
  done < <(apt-cache pkgnames | grep -Ex "$1" | sort -rV)
  return 0
}
