#!/bin/bash
# Runs every test and counts. Usage: run.sh BUILD-FOLDER [part…]; parts: lint criterion sanitize tsan fuzz script daemons crash.
# Everything speaks TAP; a program that prints a sanitizer's report, or that dies, counts as a failure.
set -uo pipefail
shopt -s nullglob
B=${1:?usage: run.sh BUILD-FOLDER [part...]}
shift
parts=${*:-lint criterion sanitize tsan fuzz script daemons crash}
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PROFD_BUILD=$B

# count NAME TAP-FILE OUTPUT-FILE STATUS: adds up one program's points.
count() {
    local ok bad skip
    ok=$(grep -cE '^ok ' "$2")
    skip=$(grep -ciE '^ok .*# *skip' "$2")
    bad=$(grep -cE '^not ok ' "$2")
    ok=$((ok - skip))
    if grep -qE 'ERROR: (Address|Leak|Thread|Memory)Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$2" "$3"; then
        echo "# $1: a sanitizer reported something" && bad=$((bad + 1))
        grep -hE -A12 'Sanitizer|runtime error:' "$2" "$3" | head -40
    elif [ "$4" != 0 ] && [ "$bad" = 0 ]; then
        echo "# $1: exit status $4 without a failed point" && bad=1 && tail -15 "$3"
    elif [ $((ok + bad + skip)) = 0 ]; then
        echo "# $1: ran no test" && bad=1
    fi
    [ "$bad" = 0 ] || { grep -B6 -A6 -E '^not ok' "$2" | head -60; tail -25 "$3"; }
    printf '%-44s %4d passed %3d failed %3d skipped  %ss\n' "$1" "$ok" "$bad" "$skip" "$((SECONDS - began))"
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

criterion() { # NAME PROGRAM
    began=$SECONDS
    "$2" --tap="$work/tap" >"$work/out" 2>&1
    count "$1" "$work/tap" "$work/out" $?
}

script() { # NAME COMMAND…
    local name=$1
    shift
    began=$SECONDS
    timeout -k 10 900 bash -c '"$@"' run "$@" >"$work/tap" 2>"$work/out" </dev/null
    count "$name" "$work/tap" "$work/out" $?
}

replay() { # PROGRAM CORPUS: every stored input once
    local n
    n=$(find "$2" -type f 2>/dev/null | wc -l)
    [ "$n" -gt 0 ] || { echo "not ok 1 - $2 holds no inputs"; return 1; }
    if "$1" "$2" >&2; then echo "ok 1 - $n inputs"; else echo "not ok 1 - an input of $2 failed"; return 1; fi
}
export -f replay

for part in $parts; do
    case $part in
    criterion)
        for t in "$B"/tests/{unit,property,contract,golden}-*; do [ -x "$t" ] && criterion "${t##*/}" "$t"; done ;;
    sanitize)
        export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
        for t in "$B"-asan/tests/{unit,property,contract,golden}-*; do [ -x "$t" ] && criterion "asan ${t##*/}" "$t"; done ;;
    tsan)
        for t in "$B"-tsan/tests/tsan-*; do [ -x "$t" ] && script "${t##*/}" "$t"; done ;;
    fuzz)
        for t in "$B"-asan/tests/replay-*; do
            script "asan ${t##*/}" replay "$t" "tests/fuzz/corpus/$(basename "$t" | sed 's/^replay-//')"
        done ;;
    script)
        for t in tests/oracle/*.sh tests/oracle/test_*.py tests/integration/*.sh tests/integration/*.py tests/collect/*.py; do
            grep -q '^# not a test' "$t" && continue
            case $t in *.sh) script "$t" bash "$t" ;; *) script "$t" /usr/bin/python3 "$t" ;; esac
        done ;;
    daemons) # whole programs under the sanitizers; what they report lands in the daemon's log, which the harness shows
        for t in example profctl daemon refused rights upkeep http http_hostile attach attach_hostile; do
            script "asan $t.py" env ATTACH_KILLS=5 PROFD_BUILD="$B-asan" /usr/bin/python3 "tests/integration/$t.py"
        done
        for t in example daemon upkeep http attach; do
            script "tsan $t.py" env ATTACH_KILLS=5 PROFD_BUILD="$B-tsan" /usr/bin/python3 "tests/integration/$t.py"
        done ;;
    crash) # `make crash` does more of it
        script crash "$B/tests/crash-campaign" "$B/profd" "$B/tests/crash-fault.so" tests/crash/version1.sql \
            kills=200 cuts=50 eio=3 points=97 soak=6
        script disk.py /usr/bin/python3 tests/crash/disk.py ;;
    lint)
        script lint /usr/bin/python3 tests/lint/structure.py ;;
    esac
done
summary="$passed passed, $failed failed"
[ "$skipped" = 0 ] || summary="$summary, $skipped skipped"
echo "$summary"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
