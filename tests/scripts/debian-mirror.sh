# Debian unstable, from the mirror that this machine already uses. Sourced after base.sh.

debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Prints the address of the machine's Debian mirror. apt itself is asked, so both kinds of sources files count.
debian_mirror() {
  local codename label release component address best=
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
  while IFS='|' read -r label release component address; do
    [[ $component == main && $release =~ ^("$codename"|stable|testing|unstable|sid)$ ]] || continue
    # The label is known once apt has fetched lists; before that, the usual last folder tells the main archive from
    # other people's archives that use Debian's release names.
    [[ $label == Debian ]] && best=$address && break
    [[ -z $label && $address =~ /debian/?$ && -z $best ]] && best=$address
  done < <(apt-get indextargets --format '$(LABEL)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages')
  # Cloud images list their mirrors in a file. Its first one serves, as debootstrap knows no such lists.
  [[ $best == mirror+file:* ]] && best=$(awk '!/^#/ && NF {print $1; exit}' "${best#mirror+file:}")
  [[ $best ]] || fail "apt on this machine has no Debian mirror to take packages of Debian unstable from"
  echo "$best"
}
