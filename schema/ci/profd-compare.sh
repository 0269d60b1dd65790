#!/bin/sh
# Fails a pipeline if a program needs more CPU time than its version before: builds two source trees, runs the program
# of each many times under profctl run, and compares the two with profctl diff. profctl-diff(1) has an example.
#
# usage: profd-compare.sh OLD-TREE NEW-TREE PROGRAM [ARGUMENT...]
#   PROGRAM is a path below each tree; it runs in its tree, with these arguments, without input, its output discarded.
# Variables, with their defaults:
#   BUILD="make CFLAGS='-O2 -g -pg' LDFLAGS=-pg"    builds a tree; without -pg, no calls are counted
#   RUNS=60 RATE=250                                processes of each version, their ticks a second
#   FAIL_ON="time-per-process>2%"                   as for profctl diff --fail-on
#   REPORT=.                                        folder for profd-diff.md and profd-diff.xml (JUnit)
#   PROFD=profd PROFCTL=profctl                     the programs
# Exit status: 0, 1 if the program certainly needs more than FAIL_ON, 2 if a tree, the benchmark or REPORT failed, and
# otherwise that of profctl diff.
set -eu
[ $# -ge 3 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 64; }

fail() {
    echo "profd-compare.sh: $1" >&2
    exit 2
}

for tree in "$1" "$2"; do
    [ -d "$tree" ] || fail "there is no tree '$tree'"
done
old=$(cd "$1" && pwd) new=$(cd "$2" && pwd) program=$3
shift 3
build=${BUILD:-"make CFLAGS='-O2 -g -pg' LDFLAGS=-pg"} profctl=${PROFCTL:-profctl} name=$(basename "$program")

for tree in "$old" "$new"; do
    (cd "$tree" && sh -c "$build") >&2 || fail "BUILD failed in $tree"
done

# A daemon of its own: the comparison sees only these processes.
state=$(mktemp -d) || fail "no folder for the state of profd"
export PROFD_SOCKET="$state/socket"
"${PROFD:-profd}" --state-dir "$state" --socket "$PROFD_SOCKET" 2>"$state/log" &
daemon=$!
trap 'kill $daemon 2>/dev/null || true; wait $daemon || true; rm -rf "$state"' EXIT
trap 'exit 130' INT TERM
until "$profctl" status >/dev/null 2>&1; do
    kill -0 $daemon 2>/dev/null || fail "profd did not start: $(tail -n 1 "$state/log")"
    sleep 0.1
done

# The versions take turns, and the pairs have labels, so that a machine that becomes slower makes both slower. PWD would
# move the stack of a process, and with it the speed of some programs, by the length of the tree's name.
run=0
while [ $run -lt "${RUNS:-60}" ]; do
    run=$((run + 1))
    order="old new"
    [ $((run % 2)) = 0 ] || order="new old"
    for version in $order; do
        tree=$old
        [ $version = old ] || tree=$new
        (
            cd "$tree" && unset PWD OLDPWD
            exec "$profctl" run --require-daemon --rate "${RATE:-250}" -l version=$version \
                -l compare_pair=$run -- "./$program" "$@"
        ) </dev/null >/dev/null || fail "the benchmark failed in $tree"
    done
done

compare() {
    "$profctl" diff "$name@version=old" "$name@version=new" --paired --fail-on "${FAIL_ON:-time-per-process>2%}" "$@"
}
mkdir -p "${REPORT:=.}" || fail "REPORT=$REPORT cannot be made"
status=0
compare || status=$?
[ $status -le 1 ] || exit $status
compare -f markdown >"$REPORT/profd-diff.md" || [ $? = $status ] || fail "$REPORT/profd-diff.md cannot be written"
compare -f junit >"$REPORT/profd-diff.xml" || [ $? = $status ] || fail "$REPORT/profd-diff.xml cannot be written"
exit $status
