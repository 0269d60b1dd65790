#!/bin/bash
# Runs every test and counts. Usage: run.sh BUILD-FOLDER [part…]; the parts stand at the end of this file.
#
# Where does a new test belong? Its head says in a sentence what it protects; run.sh and make find it by its name.
#   unit/DIR/SUBJECT.c        one directory of the product, called as its neighbours call it (Criterion)
#   property/DIR/SUBJECT.c    a law over random cases: rounds(n) of rounds.h says how many; the seed is in the message
#   contract/store/…          what store.h promises, on the real database
#   golden/DIR/…              output that is kept byte by byte
#   fuzz/fuzz_DIR_what.c      bytes of a stranger; its corpus is replayed here, `make fuzz` searches
#   integration/NAME.py       the programs from outside, as a user has them: profd, profctl, HTTP, the socket
#   browser/NAME.mjs          the dashboard in Chromium, run by integration/browser.py and browser_answers.py
#   oracle/test_NAME.py       our numbers beside another program's: gprof, binutils, callgrind
#   collect/ record/          the collector in a process, sampling of a host
#   crash/ fleet/ insight/    campaigns: short here, of any length by make (tests/campaigns.mk)
#   lint/                     rules on the sources
# A `# not a test` in the first lines marks what others import; harness.py has a daemon, gmon.out files, waiting.
# The other folders: programs/ is what tests profile, demo/ and bench/ are make demo and bench, nspawn/ and tier/ beds.
#
# Rules: wait for the event (harness.until), never for a time; a busy machine makes a test slow, not red. What may lose
# ticks runs again (harness.run_until). A port comes from harness.free_port, a folder from tempfile.
# All suites of Criterion run under sanitizers. The suites that try more without sanitizers (random cases, faults, a
# sandbox) run without them, too: `make check` builds only these, and of their unit tests it runs those that try more. A
# suite that `make tests` built also runs. Of the scripts, those of `both` and `sanitized` run under sanitizers. All but
# those of `sanitized` run the code as it is installed; those of `both` only what sanitizers leave out, if they can.
#
# PROFD_TEST_JOBS programs run at a time (one more than there are cores), and two more while cores are idle: many wait
# for harvests, servers and browsers. Everything speaks TAP; a program that prints a sanitizer's report, or that
# dies, counts as a failure. What was skipped is named with its reason before the last line.
set -uo pipefail
shopt -s nullglob
B=${1:?usage: run.sh BUILD-FOLDER [part...]}
shift
parts=${*:-compile long lint script disk sanitize daemons tsan fuzz criterion} # the longest first
JOBS=${PROFD_TEST_JOBS:-$(($(nproc) + 1))}
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/shared" # tests put there what others can use, too
export PROFD_TEST_SHARED=$work/shared
# Of freed memory 8 MB are kept away from use, not 256: touching new pages was a third of the sanitizer's time.
export PROFD_BUILD=$B UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=8:malloc_context_size=12

# Criterion starts a process for each test, with libgit2 and its fifteen libraries, to show how two texts differ. An
# empty one in its place halves the time of a start.
git2=$(ldd "$B/tests/unit-core" 2>/dev/null | grep -o 'libgit2\.so[.0-9]*' | head -1)
mkdir "$work/lib"
[ -z "$git2" ] || gcc -w -shared -fPIC -Wl,-soname,"$git2" -o "$work/lib/$git2" -xc - <<'END'
int git_libgit2_init(void) { return 1; }
int git_libgit2_shutdown(void) { return 0; }
int git_diff_buffers(void) { return -1; }
END

long="tests/integration/browser.py tests/integration/browser_answers.py tests/oracle/test_gprof_real.py"
long="$long tests/collect/paths.py tests/collect/rewrite.py tests/collect/run.py tests/integration/siege.py"
sanitized="centre profctl refused upkeep objects tokens daemon http rights" # these run under sanitizers only
both="uploads attach_hostile attach http_hostile" # bounds of memory, and more kills, are tested without

# begun FILE: tests of Criterion that began and did not end.
begun() {
    sed -nE 's/^\[RUN *\] ([^ :]+::[^ :]+).*/\1/p' "$1" | sort >"$work/runs"
    sed -nE 's/^\[(PASS|FAIL|SKIP) *\] ([^ :]+::[^ :]+).*/\2/p' "$1" | sort | comm -23 "$work/runs" - |
        sed 's/^/# not ended: /'
}

# count NAME FOLDER STATUS SECONDS CPU-SECONDS: adds up one program's points.
count() {
    local ok bad skip tap=$2/tap out=$2/out
    ok=$(grep -cE '^ok ' "$tap")
    skip=$(grep -ciE '^ok .*# *skip' "$tap")
    bad=$(grep -cE '^not ok ' "$tap")
    ok=$((ok - skip))
    if grep -qE 'ERROR: (Address|Leak|Thread|Memory)Sanitizer|WARNING: ThreadSanitizer|runtime error:' \
        "$tap" "$out"; then
        echo "# $1: a sanitizer reported something" && bad=$((bad + 1))
        grep -hE -A12 'Sanitizer|runtime error:' "$tap" "$out" | head -40
    elif [ "$3" != 0 ] && [ "$bad" = 0 ]; then
        echo "# $1: exit status $3 without a failed point" && bad=1 && begun "$out" && tail -15 "$out"
    elif [ $((ok + bad + skip)) = 0 ]; then
        echo "# $1: ran no test" && bad=1
    fi
    [ "$bad" = 0 ] || { grep -B6 -A6 -E '^not ok' "$tap" | head -60; tail -25 "$out"; }
    printf '%-44s %4d passed %3d failed %3d skipped  %4ss, CPU %ss\n' "$1" "$ok" "$bad" "$skip" "$4" "$5"
    grep -iE '^ok .*# *skip' "$tap" |
        sed -E "s|^ok *[0-9]* *-? *|$1: |; s/ *# *[Ss][Kk][Ii][Pp](PED)? */: /" >>"$work/skips"
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

declare -A names=() # of the programs that run, by process

mkfifo "$work/ends" && exec 3<>"$work/ends" # each process that ends writes its number there

partial= # what a read that timed out had taken of a line

# Waits until a program has ended, and counts its points; at most as long as read's options say.
reap() {
    local pid folder
    read -r "$@" pid <&3 || { partial+=$pid; return 0; }
    pid=$partial$pid partial=
    folder=$work/$pid
    count "${names[$pid]}" "$folder" "$(cat "$folder/status")" "$(cat "$folder/seconds")" \
        "$(awk -F '[ms ]+' 'NR == 2 { print int($1 * 60 + $2 + $3 * 60 + $4) }' "$folder/times")"
    rm -rf "$folder"
    unset "names[$pid]"
}

# running: prints the number of programs that run; compilers do not count, because they take what the others leave.
running() {
    case " ${names[*]} " in *" compile "*) echo $((${#names[@]} - 1)) ;; *) echo ${#names[@]} ;; esac
}

# Waits until nothing runs but compilers.
reap_all() {
    while [ "$(running)" -gt 0 ]; do reap; done
}

compiled() {
    while [ "$(running)" -lt ${#names[@]} ]; do reap; done
}

looked=0 free=0 # when idle measured last, and what the cores had then been idle for: hundredths of a second

# idle NOW?: true if, for 2 s or longer since the last measurement, a third of a core was idle, or waited for a disk.
idle() {
    local up unused waiting spent before=$free since=$looked
    read -r up _ </proc/uptime
    read -r _ _ _ _ unused waiting _ </proc/stat
    up=${up/./} spent=$((unused + waiting))
    [ $((up - since)) -ge 200 ] || [ $# != 0 ] || return 1
    looked=$up free=$spent
    [ $((3 * (spent - before))) -ge $((up - since)) ]
}

# start NAME PROGRAM ARGUMENT…: runs it in the background when a place is free.
start() {
    local name=$1
    shift
    while [ "$(running)" -ge "$JOBS" ]; do
        reap -t 2
        [ "$(running)" -lt $((JOBS + 2)) ] && idle && break
    done
    (
        folder=$work/$BASHPID
        mkdir -p "$folder"
        : >"$folder/tap"
        "$@" 3>&-
        echo $? >"$folder/status"
        echo $SECONDS >"$folder/seconds"
        times >"$folder/times" # of this shell, and below it of what it ran
        echo $BASHPID >&3
    ) &
    names[$!]=$name
    idle now || true # what it uses shows in the next measurement
}

suites() { # FOLDER: programs of Criterion, the longest first
    local t
    echo "$1"/{unit,contract}-store
    for t in "$1"/{unit,property,contract,golden}-*; do
        case ${t##*/} in unit-store | contract-store) ;; *) echo "$t" ;; esac
    done
}

criterion() { # NAME PROGRAM [FILTER]
    start "$1" taps "$2" "${3:-}"
}
taps() {
    SECONDS=0
    LD_LIBRARY_PATH=$work/lib timeout -k 10 1800 "$1" ${2:+"$2"} --tap="$folder/tap" --verbose >"$folder/out" 2>&1
    local status=$?
    [ -z "$2" ] || sed -i '/^ok .*# SKIP test was skipped$/d' "$folder/tap" # what the filter leaves out
    return $status
}

# more PROGRAM: the filter for a unit suite that runs under sanitizers, too. Without them only those tests run whose
# file tries more then: random cases, faults, the sandbox.
more() {
    local suite=${1##*/} names
    case " $parts " in *" sanitize "*) ;; *) return ;; esac
    case $suite in unit-*) ;; *) return ;; esac
    names=$(grep -lE 'rounds\(|faults_step\(|__SANITIZE_ADDRESS__' tests/unit/"${suite#unit-}"/*.c |
        xargs -r sed -nE 's/^Test\(([a-z0-9_]+),.*/\1/p' | sort -u | paste -sd '|')
    [ -z "$names" ] || echo "--filter=@($names)/*"
}

script() { # NAME COMMAND…
    local name=$1
    shift
    start "$name" prints "$@"
}
prints() {
    SECONDS=0
    timeout -k 10 "${LIMIT:-1800}" bash -c '"$@"' run "$@" >"$folder/tap" 2>"$folder/out" </dev/null
}

replay() { # PROGRAM CORPUS: every stored input once
    local n
    n=$(find "$2" -type f 2>/dev/null | wc -l)
    [ "$n" -gt 0 ] || { echo "not ok 1 - $2 holds no inputs"; return 1; }
    if "$1" "$2" >&2; then echo "ok 1 - $n inputs"; else echo "not ok 1 - an input of $2 failed"; return 1; fi
}
export -f replay

make_idle() { # FOLDER WHAT…: what make makes there, at idle priority
    local b=$1
    shift
    if env -u MAKEFLAGS -u MAKELEVEL chrt -i 0 make --no-print-directory -j"$(nproc)" B="$b" "$@" >&2; then
        echo "ok - $*"
    else
        echo "not ok - $*"
    fi
}
compile() { # BUILD-FOLDER
    local b
    # The address sanitizer finds what object-size finds. It does not find the address of a member of a null pointer.
    # Among so many branches gcc warns of variables that are never unset. lld links in a third of the time.
    make_idle "$1-asan" SANITIZE="address,undefined -fno-sanitize=object-size" OPT="-Og -g1" \
        CFLAGS=-Wno-maybe-uninitialized LDFLAGS=-fuse-ld=lld \
        "$1"-asan/{profd,profd-relay,profctl} "$1"-asan/libprofd{.so,-static.a} tests
    # No program that runs there has threads, but for profd.
    make_idle "$1-tsan" SANITIZE=thread OPT="-O1 -g1" "$1-tsan/profd" tsan
    cp "$1/profctl" "$1-tsan/"
    for b in "$1-asan" "$1-tsan"; do cp "$1"/libprofd-collect.* "$b/"; done # it is compiled without a sanitizer
}
export -f make_idle compile

for part in $parts; do
    case $part in
    compile) LIMIT=7200 script compile compile "$B" ;; # it gets what the tests leave
    long) # they begin early, so that nothing waits for them at the end; `make crash` does more of the first
        script crash "$B/tests/crash-campaign" "$B/profd" "$B/tests/crash-fault.so" \
            kills=12 cuts=3 eio=1 points=399 soak=6 seed=1
        for t in $long; do script "$t" /usr/bin/python3 "$t"; done ;;
    criterion)
        for t in $(suites "$B/tests"); do [ -x "$t" ] && criterion "${t##*/}" "$t" "$(more "$t")"; done ;;
    sanitize)
        compiled
        for t in $(suites "$B-asan/tests"); do [ -x "$t" ] && criterion "asan ${t##*/}" "$t"; done ;;
    tsan)
        compiled
        for t in "$B"-tsan/tests/tsan-*; do [ -x "$t" ] && script "${t##*/}" "$t"; done ;;
    fuzz)
        compiled
        for t in "$B"-asan/tests/replay-*; do
            script "asan ${t##*/}" replay "$t" "tests/fuzz/corpus/$(basename "$t" | sed 's/^replay-//')"
        done ;;
    script)
        for t in tests/oracle/*.sh tests/{oracle,lint}/test_*.py tests/integration/*.sh \
            tests/{integration,collect,record,fleet,insight}/*.py; do
            grep -q '^# not a test' "$t" && continue
            case " $long " in *" $t "*) continue ;; esac
            case " $sanitized " in *" $(basename "$t" .py) "*) continue ;; esac
            rest=
            case " $parts / $both " in *" daemons "*/*" $(basename "$t" .py) "*) rest=1 ;; esac
            case $t in
            *.sh) script "$t" bash "$t" ;;
            *) script "$t" env PROFD_TEST_REST=$rest /usr/bin/python3 "$t" ;;
            esac
        done ;;
    daemons) # whole programs under the sanitizers; what they report lands in the daemon's log, which the harness shows
        compiled
        for t in $both $sanitized; do
            script "asan $t.py" env ATTACH_KILLS=5 PROFD_BUILD="$B-asan" /usr/bin/python3 "tests/integration/$t.py"
        done
        for t in upkeep http attach; do
            script "tsan $t.py" env ATTACH_KILLS=5 PROFD_BUILD="$B-tsan" /usr/bin/python3 "tests/integration/$t.py"
        done ;;
    disk)
        script disk.py /usr/bin/python3 tests/crash/disk.py ;;
    lint)
        script lint /usr/bin/python3 tests/lint/structure.py ;;
    esac
done
reap_all
compiled
[ "$skipped" = 0 ] || { echo "Skipped:"; sort -u "$work/skips" | sed 's/^/  /'; }
summary="$passed passed, $failed failed"
[ "$skipped" = 0 ] || summary="$summary, $skipped skipped"
echo "$summary"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
