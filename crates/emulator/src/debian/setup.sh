#!/bin/sh
# Runs as the first program of a guest in which Debian packages are unpacked and none is configured: configures them
# all, and writes the system that this makes to its standard output, as an archive.
set -e
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C.UTF-8 PERL_BADLANG=0

# What scripts of packages use before the package that has it is configured.
ln -sf mawk /usr/bin/awk
: >/etc/shells
dpkg --force-depends --configure base-passwd >&2
dpkg --configure --pending >&2

# As the installer leaves it.
echo debian >/etc/hostname
echo '127.0.0.1 localhost debian' >/etc/hosts
# Nobody reads here, and every boot would have to unpack it; folders stay, for what is installed later.
exec tar --create --file=- --directory=/ --one-file-system --hard-dereference --numeric-owner --sort=name \
  --exclude='./usr/share/doc/*/*' --exclude='./usr/share/man/*/*' --exclude='./usr/share/locale/*' \
  --exclude=./init --exclude=./shiftwork-orders.json --exclude=./setup --exclude='./boot/config-*' .
