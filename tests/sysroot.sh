#!/bin/sh
# sysroot.sh ARCHITECTURE FOLDER: libraries of Debian for a cross compiler in FOLDER/root, and in FOLDER/dpkg what
# dpkg-shlibdeps asks about them. apt has lists and a cache of its own in FOLDER; this system's packages stay as they
# are.
set -eu
architecture=${1:?usage: sysroot.sh ARCHITECTURE FOLDER}
mkdir -p "${2:?usage: sysroot.sh ARCHITECTURE FOLDER}"
folder=$(cd "$2" && pwd)
packages="libc6-dev libevent-dev libsqlite3-dev libjansson-dev libelf-dev libcapstone-dev libcurl4-openssl-dev
libdebuginfod-dev libdw-dev libprotobuf-c-dev libzstd-dev libdeflate-dev libpcre2-dev nettle-dev libstdc++-12-dev"
[ ! -e "$folder/dpkg/ready" ] || exit 0
rm -rf "$folder/root" "$folder/dpkg"
mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/parts" "$folder/root" "$folder/dpkg/info" \
    "$folder/dpkg/updates"
: >"$folder/empty"
echo 1 >"$folder/dpkg/info/format"
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
    name=$(dpkg-deb -f "$deb" Package)
    [ "$(dpkg-deb -f "$deb" Multi-Arch)" != same ] || name=$name:$architecture
    dpkg-deb -e "$deb" "$folder/control"
    for part in symbols shlibs; do
        [ ! -e "$folder/control/$part" ] || cp "$folder/control/$part" "$folder/dpkg/info/$name.$part"
    done
    dpkg-deb --fsys-tarfile "$deb" | tar -t |
        sed -n "s|^\./\(.*[^/]\)$|$folder/root/\1|p" >"$folder/dpkg/info/$name.list"
    dpkg-deb -f "$deb" | sed '1a\
Status: install ok installed' >>"$folder/dpkg/status"
    echo >>"$folder/dpkg/status"
    rm -rf "$folder/control"
done
touch "$folder/dpkg/ready"
