#!/bin/sh
# Makes the directory that tests/nspawn/nspawn.py boots: Debian 12 with systemd and the libraries that profd uses.
# root.sh DIRECTORY. An existing one is used as it is.
set -eu
root=${1:?usage: root.sh DIRECTORY}
[ ! -e "$root/usr/lib/systemd/systemd" ] || exit 0
packages=systemd,systemd-sysv,dbus,procps,python3-minimal
packages=$packages,libevent-core-2.1-7,libsqlite3-0,libjansson4,libelf1,libdw1,libcapstone4
packages=$packages,libprotobuf-c1,libzstd1,libdeflate0,libpcre2-8-0,libnettle8,libssl3,libcurl4
packages=$packages,libdebuginfod1
mkdir -p "$root.part"
debootstrap --variant=minbase --include="$packages" bookworm "$root.part" "${MIRROR:-http://deb.debian.org/debian}" >&2
mv "$root.part" "$root"
