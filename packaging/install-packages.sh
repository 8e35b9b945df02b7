#!/bin/sh
# Installs what packages.txt lists and is missing, through apt, with sudo where the caller is not root.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
missing=
# shellcheck disable=SC2013  # one word a line
for p in $(sed 's/#.*//' "$here/packages.txt"); do
  dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
done
if [ -z "$missing" ]; then
  echo "all packages are there"
  exit 0
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "missing:$missing; install them as root, or install sudo" >&2; exit 1; }
  sudo=sudo
fi
echo "installing:$missing"
$sudo apt-get update -qq
# shellcheck disable=SC2086  # a list of names
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
