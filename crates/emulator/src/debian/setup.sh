#!/bin/sh
# Runs as the first program of a guest that has the unpacked files of Debian packages, none of them installed:
# installs them all, and writes the system that this makes to its standard output, as an archive.
# Usage: setup FOLDER, where the packages are, and nothing else.
set -e
packages=$1
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C.UTF-8 PERL_BADLANG=0

# What scripts of packages use before the package that has it is configured.
ln -sf mawk /usr/bin/awk
: >/etc/shells
: >>/var/lib/dpkg/status
install_first() {
  for name; do
    dpkg --force-depends --install "$packages/${name}"_*.deb >&2
  done
}
install_first base-passwd base-files dpkg libc6 perl-base debconf
dpkg --force-depends --unpack "$packages"/*.deb >&2
dpkg --configure --pending >&2

# As the installer leaves it.
echo debian >/etc/hostname
echo '127.0.0.1 localhost debian' >/etc/hosts
rm -rf "$packages"
exec tar --create --file=- --directory=/ --one-file-system --hard-dereference --numeric-owner --sort=name \
  --exclude=./init --exclude=./shiftwork-orders.json --exclude=./setup --exclude=./boot/config-* .
