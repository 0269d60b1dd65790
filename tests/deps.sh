#!/bin/sh
# Installs the Debian packages that are missing for: build | demo | demo-fleet | check | lint | nspawn | deb | image |
# image-check, and for check and lint the modules of tests/browser and tests/tier/package-lock.json below build. Prints
# what to install where it cannot. check-first installs what `make check` compiles all with, and then compiles while
# check installs the rest.
set -eu
build="gcc make pkg-config libc6-dev libevent-dev libsqlite3-dev libjansson-dev libelf-dev libcapstone-dev
libcurl4-openssl-dev libdebuginfod-dev libdw-dev libprotobuf-c-dev protobuf-c-compiler libzstd-dev
libdeflate-dev libpcre2-dev nettle-dev g++ node-dagre-layout esbuild"
demo="gfortran binutils procps"
check="$demo dwz libcriterion-dev libssl-dev clang python3-clang-14 libclang-rt-14-dev gcc-aarch64-linux-gnu
libc6-dev-arm64-cross qemu-user python3 python3-jsonschema
golang-1.19-go libgoogle-perftools4 graphviz valgrind mandoc crun openssl sqlite3 curl util-linux strace
git e2fsprogs mount faketime jq zstd musl-tools wrk linux-perf chromium zsh fish less systemd clang-format
prometheus nginx-light haproxy redis-server clickhouse-server zookeeper
python3-yaml python3-kubernetes bash elfutils debuginfod lld llvm cppcheck liblua5.4-dev"
# A Node.js that is there stays: Debian's npm would replace that of another source.
command -v node >/dev/null 2>&1 || check="$check nodejs"
command -v npm >/dev/null 2>&1 || check="$check npm"
lint="clang-tidy cppcheck codespell"
image="python3 openssl skopeo"
image_check="crun umoci golang-github-containers-common iproute2 nginx-light procps python3-yaml util-linux"
deb="debhelper dpkg-dev lintian"
nspawn="$demo debootstrap systemd-container python3 openssl"
case ${1:-build} in
build) wanted=$build ;;
demo | check-first) wanted="$build $demo" ;;
check) wanted="$build $check $deb" ;;
lint) wanted="$build $check $lint $deb" ;;
demo-fleet) wanted="$build $demo python3 openssl nginx-light" ;;
nspawn) wanted="$build $nspawn" ;;
deb) wanted="$build $deb" ;;
image) wanted="$build $image" ;;
image-check) wanted="$build $image $image_check" ;;
*) echo "deps.sh: unknown set '$1'; the sets are named at the beginning of deps.sh" >&2; exit 64 ;;
esac
[ "${1:-}" != check-first ] || cat >&2 <<'END'
make check builds profd with all its tests and runs them: about 15 minutes on two cores, longer if packages are missing.
It installs what is missing: Debian packages with apt-get, as root, among them compilers, Chromium, Go, Node.js, npm,
and servers (Redis, nginx, HAProxy, Prometheus, ClickHouse, ZooKeeper and others, named below); and modules of npm below
build/browser and, 178 MB to load and 560 MB there, ClickHouse of today as a library below build/tier.
END
missing=
if command -v dpkg-query >/dev/null 2>&1; then
    there=" $(dpkg-query -W -f='${Package}:${db:Status-Status} ' $wanted 2>/dev/null || true)"
    for package in $wanted; do
        case $there in *" $package:installed "*) ;; *) missing="$missing $package" ;; esac
    done
else
    echo "This system has no dpkg. Install the equivalents of these Debian packages, then run make again:" >&2
    echo $wanted >&2
    command -v protoc-c >/dev/null 2>&1 && exit 0 # taken as installed by hand
    exit 69
fi
# modules FOLDER NAMES: the modules of tests/FOLDER/package-lock.json, below build/FOLDER.
modules() {
    cmp -s "tests/$1/package-lock.json" "build/$1/package-lock.json" &&
        [ -e "build/$1/node_modules/.package-lock.json" ] && return 0
    mkdir -p "build/$1"
    cp "tests/$1/package.json" "tests/$1/package-lock.json" "build/$1/"
    echo "Installing: $2 (npm, below build/$1)" >&2
    if npm ci --prefix "build/$1" --cache "build/$1/cache" --ignore-scripts \
        --no-audit --no-fund --loglevel=error >&2; then
        rm -rf "build/$1/cache"
    else
        rm -rf "build/$1"
        echo "npm could not install the modules of tests/$1/package.json: what needs them is skipped" >&2
    fi
}
all_modules() {
    case $wanted in *chromium*) ;; *) return 0 ;; esac
    modules browser "playwright-core axe-core speedscope typescript @grafana/schema, and clients of Pyroscope"
    [ "$(uname -m)" != x86_64 ] || modules tier "@chdb/lib-linux-x64-gnu, of 178 MB"
}
[ -n "$missing" ] || { all_modules; exit 0; }
command -v apt-get >/dev/null 2>&1 || { echo "Please install:$missing" >&2; exit 69; }
root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "Please install as root: apt-get install$missing" >&2; exit 69; }
    root=sudo
fi
echo "Installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
install() { $root apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 $missing >/dev/null; }
# The package lists of a fresh system may be absent or old.
install 2>/dev/null || { $root apt-get update -qq && install; }
all_modules
