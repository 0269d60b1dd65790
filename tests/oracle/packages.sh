#!/bin/bash
# not a test
# Debian source packages, built with -pg, for packages.py. Usage: packages.sh FOLDER [package…]
# Fetches each with apt-get source and builds it in FOLDER/package; the profiled program becomes FOLDER/package/exe.
# What is there already is kept. The system's sources and lists stay as they are: deb-src entries are derived from them
# in FOLDER/apt. Prints one line a package; the exit status is 1 when one could not be fetched or built.
set -uo pipefail
recipes="lua5.4 mawk byacc tcc sqlite3 ninja-build lzip lapack gzip bzip2 zlib sed"
work=$(mkdir -p "${1:?usage: packages.sh FOLDER [package...]}" && cd "$1" && pwd) || exit 73
shift
[ $# -gt 0 ] || set -- $recipes
jobs=-j$(nproc)
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

# --- what must be installed -------------------------------------------------------------------------------------------
# tcl: sqlite3's sources are joined by a Tcl script. The rest is what compiles anything.
install_missing() {
    local wanted="gcc g++ gfortran make binutils dpkg-dev patch xz-utils bzip2 libc6-dev python3 python3-jsonschema"
    local package missing=
    case " $* " in *" sqlite3 "*) wanted="$wanted tcl" ;; esac
    for package in $wanted; do
        dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || { echo "# installs nothing: all tools are there"; return 0; }
    echo "# installs:$missing"
    local root=
    [ "$(id -u)" = 0 ] || root=sudo
    install() { $root apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 $missing >/dev/null; }
    install 2>/dev/null || { $root apt-get update -qq && install; }
}

# --- sources ----------------------------------------------------------------------------------------------------------
# One-line entries and deb822 stanzas of the distribution itself (component main, a suite of this release) as deb-src.
derive_sources() { # FOLDER
    local release lists list
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:?}") || return
    shopt -s nullglob
    lists=("$1"/sources.list "$1"/sources.list.d/*.list)
    cat /dev/null "${lists[@]}" 2>/dev/null | awk -v release="$release" '
        /^[ \t]*deb(-src)?[ \t]/ {
            sub(/#.*/, ""); sub(/^[ \t]*deb(-src)?[ \t]+/, "")
            options = ""
            if (match($0, /^\[[^]]*\][ \t]*/)) { options = substr($0, 1, RLENGTH); $0 = substr($0, RLENGTH + 1) }
            main = 0
            for (i = 3; i <= NF; i++) main += $i == "main"
            line = "deb-src " options $1 " " $2 " main"
            if (main && index($2, release) == 1 && !seen[line]++) print line
        }' >"$work/apt/parts/derived.list"
    for list in "$1"/sources.list.d/*.sources; do
        awk -v release="$release" '
            function stanza_end() {
                if (wanted && good && !off) printf "Types: deb-src\nComponents: main\n%s\n", body
                body = ""; wanted = good = off = 0
            }
            /^[ \t]*$/ { stanza_end(); next }
            /^#/ { next }
            /^[^ \t]/ { key = tolower($1) }
            key == "types:" { next }
            key == "enabled:" && tolower($2) ~ /^(no|false|off|0)$/ { off = 1 }
            key == "components:" { for (i = 1; i <= NF; i++) wanted += $i == "main"; next }
            key == "suites:" { for (i = 1; i <= NF; i++) good += index($i, release) == 1 }
            { body = body $0 "\n" }
            END { stanza_end() }' "$list" >"$work/apt/parts/derived-$(basename "$list")"
    done
    grep -q '^\(deb-src\|Types: deb-src\)' "$work"/apt/parts/* && return 0
    echo "packages.sh: no source of release $release is configured" >&2
    return 1
}

# The system's own apt settings (proxies, keys, logins) stay in force; sources, lists and caches are ours.
apt_source() {
    local chosen=(-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/apt/parts"
        -o Dir::State::Lists="$work/apt/lists"
        -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=false)
    apt-get -qq "${chosen[@]}" "$@"
}

apt_ready() {
    [ -e "$work/apt/ready" ] && return 0
    rm -rf "$work/apt"
    mkdir -p "$work/apt/parts" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    derive_sources /etc/apt && apt_source update >"$work/apt/log" 2>&1 && touch "$work/apt/ready" ||
        { tail -5 "$work/apt/log" >&2; return 1; }
}

# The source tree of $1 becomes $1/tree; its patches are applied by dpkg-source.
fetch() {
    [ -d tree ] && return 0
    apt_ready && apt_source source "$1" && for tree in */; do mv "$tree" tree && return 0; done
    return 1
}

# --- recipes: in the folder tree, leave the program as ../exe. They differ in what differs in the world ---------------
# Fixed addresses or PIE, static, optimisation (clones of functions appear at -O2 and -O3), -g, C, C++, Fortran.
# Debian's lua asks for a header that its rules write.
build_lua5_4() {
    echo '#define DEB_HOST_MULTIARCH "none"' >src/lua5.4-deb-multiarch.h &&
        gcc -pg -O2 -g -no-pie -DLUA_USE_POSIX -o ../exe $(ls src/*.c | grep -v luac.c) -lm
}
build_mawk() { ./configure CFLAGS="-O2 -pg" LDFLAGS=-pg && make $jobs mawk && cp mawk ../exe; }
build_byacc() { ./configure CFLAGS="-O1 -g -pg -fno-inline" LDFLAGS=-pg && make $jobs && cp yacc ../exe; }
build_tcc() {
    ./configure --cc=gcc --debug --extra-cflags="-O2 -pg" --extra-ldflags="-pg -no-pie" &&
        make $jobs tcc && cp tcc ../exe && make libtcc1.a
    [ -x ../exe ]
}
build_sqlite3() {
    mkdir -p pg && cd pg && ../configure --disable-tcl --disable-readline --disable-load-extension &&
        make sqlite3.c shell.c &&
        gcc -pg -O2 -g1 -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -o ../../exe shell.c sqlite3.c -lm
}
build_ninja_build() {
    local sources
    sources=$(ls src/*.cc | grep -vE 'test|win32|minidump|getopt|browse|hash_collision|perftest|[.]in[.]cc')
    for s in $sources; do echo "$s"; done | xargs -P"$(nproc)" -I{} \
        sh -c 'g++ -pg -O2 -DNINJA_PYTHON="\"python3\"" -c {} -o {}.o' &&
        g++ -pg -o ../exe $(printf '%s.o ' $sources)
}
build_lzip() { g++ -pg -O1 -static -fno-inline -DPROGVERSION='"0"' -o ../exe *.cc; }
build_lapack() {
    cd BLAS && gfortran -pg -O2 -g -fno-inline -std=legacy -w -o ../../exe SRC/d*.f SRC/idamax.f SRC/lsame.f \
        SRC/xerbla_array.f TESTING/dblat3.f ||
        gfortran -pg -O2 -g -std=legacy -w -o ../../exe $(ls SRC/*.f | grep -v xerbla.f) TESTING/dblat3.f
}
# Patches make its autotools' inputs look newer than what they made.
build_gzip() {
    ./configure ACLOCAL=true AUTOCONF=true AUTOMAKE=true AUTOHEADER=true CFLAGS="-O2 -pg" LDFLAGS=-pg &&
        make $jobs -C lib && make version.c version.h gzip && cp gzip ../exe
}
build_bzip2() {
    gcc -pg -O3 -static-pie -fPIE -o ../exe blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c \
        bzlib.c bzip2.c
}
build_zlib() {
    gcc -pg -O2 -flto -D_LARGEFILE64_SOURCE=1 -DHAVE_UNISTD_H -DHAVE_STDARG_H -I. -o ../exe test/minigzip.c $(ls *.c)
}
# For tests/collect/real.py: a program with a plugin (the interpreter of lua5.4 and a module for it), and one with
# threads (around the library of bzip2); lua5.4 and bzip2 must be there.
build_lua_lpeg() {
    [ -d ../../lua5.4/tree/src ] || return 1
    gcc -pg -O2 -fPIC -shared -I../../lua5.4/tree/src -o ../lpeg.so lp*.c &&
        gcc -pg -O2 -DLUA_USE_LINUX -Wl,-E -o ../exe $(ls ../../lua5.4/tree/src/*.c | grep -v luac.c) -lm -ldl
}
build_pbzip2() {
    local names="blocksort huffman crctable randtable compress decompress bzlib" name parts=
    for name in $names; do gcc -pg -O2 -c -o $name.o ../../bzip2/tree/$name.c &&
        parts="$parts $name.o" || return 1; done
    g++ -pg -O2 -pthread -DUSE_STACKSIZE_CUSTOMIZATION -I../../bzip2/tree -o ../exe *.cpp $parts
}
build_libzstd() {
    gcc -pg -O2 -pthread -DZSTD_MULTITHREAD -DXXH_NAMESPACE=ZSTD_ -Ilib -Ilib/common -o ../exe lib/common/*.c \
        lib/compress/*.c lib/decompress/*.c lib/decompress/*.S lib/dictBuilder/*.c programs/*.c
}
# For tests/bench/collect.py, which builds the library's sources with a program of its own.
# Its autotools' outputs are not in the source package.
build_jansson() {
    sed 's/@json_inline@/inline/; s/@[a-z_]*@/1/' src/jansson_config.h.in >src/jansson_config.h &&
        printf '#define %s\n' "INITIAL_HASHTABLE_ORDER 3" "HAVE_STDINT_H 1" "HAVE_UNISTD_H 1" \
            "HAVE_SYS_TYPES_H 1" >src/jansson_private_config.h &&
        gcc -O2 -DHAVE_CONFIG_H -Isrc -o ../exe test/bin/json_process.c src/*.c
}
build_sed() {
    ./configure --disable-i18n --disable-acl --without-selinux CFLAGS="-O2 -g -pg" LDFLAGS=-pg && make $jobs &&
        cp sed/sed ../exe
}

# For tests/insight: debug information with files and functions only, which compiles faster.
build_cppcheck() { make $jobs CXXFLAGS="-O2 -g1 -pg -w" LDFLAGS=-pg cppcheck && cp cppcheck ../exe; }

one() {
    local recipe=build_${1//[.-]/_} began=$SECONDS
    declare -F "$recipe" >/dev/null || { echo "# $1: no recipe; there are: $recipes"; return 1; }
    mkdir -p "$work/$1" && cd "$work/$1" || return 1
    [ -x exe ] && { echo "# $1: there already"; return 0; }
    fetch "$1" >log 2>&1 </dev/null || { echo "# $1: not fetched: $(tail -1 log)"; return 1; }
    (cd tree && "$recipe") >>log 2>&1 </dev/null ||
        { echo "# $1: not built: $(grep -m1 -iE 'error' log || tail -1 log)"; return 1; }
    echo "# $1: built in $((SECONDS - began)) s: $(size exe | awk 'NR == 2 {print $1}') bytes of text"
}

install_missing "$@" || exit 69
failed=0
for package; do one "$package" || failed=1; done
exit $failed
