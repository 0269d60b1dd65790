#!/bin/sh
# build.sh DIRECTORY VERSION [ARCHITECTURE]: builds the Debian packages in DIRECTORY, below which the sources are linked
# and objects stay for the next time. Run at the top level of the sources. Packages for another architecture are those
# that depend on it.
set -eu
directory=${1:?usage: build.sh DIRECTORY VERSION [ARCHITECTURE]} version=$2 architecture=${3:+"-B -a$3"}
top=$(pwd)
rm -rf "$directory"/*.deb "$directory"/*.changes "$directory"/*.buildinfo "$directory/tree/debian"
mkdir -p "$directory/tree/debian"
for name in Makefile README.md LICENSE daemon client proto schema tests systemd; do
    ln -sfn "$top/$name" "$directory/tree/$name"
done
cp -R systemd/debian/. "$directory/tree/debian"
sed "s/@version@/$version/" systemd/debian/changelog > "$directory/tree/debian/changelog"
cd "$directory/tree"
export SOURCE_DATE_EPOCH="$(dpkg-parsechangelog -S Timestamp)"
# -d: tests/deps.sh has installed what is needed.
dpkg-buildpackage ${architecture:--b} -us -uc -d -nc > ../log 2>&1 || { tail -40 ../log >&2; exit 1; }
