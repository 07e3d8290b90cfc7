# Debian unstable, from the mirror that this machine already uses. Sourced after base.sh.

debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The archives that apt is set up with: release, component, label, address. The label is known once apt has fetched lists, so
# all archives follow a second time without it.
apt_archives() {
  apt-get indextargets --format '$(RELEASE)|$(COMPONENT)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages'
  apt-get indextargets --no-release-info --format '$(RELEASE)|$(COMPONENT)||$(REPO_URI)' 'Created-By: Packages'
}

# Prints the address of the machine's Debian mirror. apt itself is asked, so both kinds of sources files count.
debian_mirror() {
  local codename release component label address best=''
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
  while IFS='|' read -r release component label address; do
    [[ $component == main && $release =~ ^("$codename"|stable|testing|unstable|sid)$ ]] || continue
    # Without the label, the usual last folder tells Debian from others who use its release names.
    [[ $label == Debian || (-z $label && $address =~ /debian/?$) ]] && best=$address && break
  done < <(apt_archives)
  # Cloud images list their mirrors in a file. Its first one serves, as debootstrap knows no such lists.
  if [[ $best == mirror+file:* ]]; then
    best=${best#mirror+file:}
    best=$(awk '!/^#/ && NF { print $1; exit }' "${best%/}")
  fi
  [[ $best ]] || fail "apt on this machine has no Debian mirror to take packages of Debian unstable from"
  echo "$best"
}
