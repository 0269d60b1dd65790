#!/bin/sh
# sysroot.sh ARCHITECTURE FOLDER: libraries of Debian for a cross compiler in FOLDER/root. apt has lists and a cache of
# its own in FOLDER; this system's packages stay as they are.
set -eu
architecture=${1:?usage: sysroot.sh ARCHITECTURE FOLDER}
mkdir -p "${2:?usage: sysroot.sh ARCHITECTURE FOLDER}"
folder=$(cd "$2" && pwd)
packages="libc6-dev libevent-dev libsqlite3-dev libjansson-dev libelf-dev libcapstone-dev libcurl4-openssl-dev
libdebuginfod-dev libdw-dev libprotobuf-c-dev libzstd-dev libdeflate-dev libpcre2-dev nettle-dev libstdc++-12-dev"
[ ! -e "$folder/ready" ] || exit 0
rm -rf "$folder/root"
mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/parts" "$folder/root"
: >"$folder/empty"
. /etc/os-release
# The first mirror of this release that this system knows.
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ ! -e $keyring ] || signed=" signed-by=$keyring"
apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
    awk -v options="arch=$architecture${signed-}" -v suite="${VERSION_CODENAME:?}" \
        '($2 == suite || $2 == "stable") && $3 == "main" { printf "deb [%s] %s %s main\n", options, $1, suite; exit }' \
        >"$folder/parts/mirror.list"
[ -s "$folder/parts/mirror.list" ] || { echo "sysroot.sh: no mirror of $VERSION_CODENAME is configured" >&2; exit 69; }
apt() {
    apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/parts" \
        -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder/cache" -o Dir::State::status="$folder/empty" \
        -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User=root "$@"
}
apt update
apt install -y --no-install-recommends --download-only $packages
for deb in "$folder"/cache/archives/*.deb; do
    dpkg -x "$deb" "$folder/root"
done
touch "$folder/ready"
