#!/bin/bash
# make demo: profd on a temporary folder, a small fleet of real processes, the reports. Nothing outside the folder is
# touched.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${PROFD_BUILD:-build/plain}
work=$(mktemp -d "${TMPDIR:-/tmp}/profd-demo.XXXXXX")
daemon= live=
finish() {
    if [ -n "$live" ]; then kill -9 "$live" 2>/dev/null || true; wait "$live" 2>/dev/null || true; fi
    if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; fi
    rm -rf "$work"
}
trap finish EXIT
say() { printf '\n== %s\n' "$*"; }
export XDG_STATE_HOME=$work/state PROFD_SOCKET=$work/profd.sock PROFD_SPOOL=$work/spool

say "Compiling tests/programs with -pg"
bash tests/programs/build.sh "$work/programs"
ls "$work/programs" | grep -v '\.mod$' | tr '\n' ' '; echo

say "Starting profd on a temporary SQLite file"
for port in 7654 17654 27654 37654; do
    "$B/profd" --state-dir "$work/db" --socket "$PROFD_SOCKET" --http-socket "$work/http.sock" \
        --http "127.0.0.1:$port" \
        --harvest-interval 1s --http-open 2>"$work/profd.log" &
    daemon=$!
    for _ in $(seq 100); do
        [ -S "$PROFD_SOCKET" ] && "$B/profctl" status >/dev/null 2>&1 && break 2
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.05
    done
    wait "$daemon" 2>/dev/null || true
    daemon=
done
[ -n "$daemon" ] || { cat "$work/profd.log" >&2; exit 1; }

# run HOST VERSION PROGRAM ARGUMENT…: one process in a folder of its own, as on a machine of a fleet.
processes=0
run() {
    local host=$1 version=$2 program=$3
    shift 3
    processes=$((processes + 1))
    mkdir -p "$work/runs/$processes"
    (cd "$work/runs/$processes" && "$work/programs/$program" "$@" >/dev/null &&
        "$OLDPWD/$B/profctl" upload -e "$work/programs/$program" -l "host=$host" -l "service=$program" \
            -l "version=$version" gmon.out >upload.txt 2>&1 || { echo failed >failed; cat upload.txt >&2; })
}
say "Running the fleet: every process writes gmon.out and uploads it, two at a time"
began=$(date +%s.%N)
fleet() {
    for i in 1 2 3 4 5 6; do
        echo "run web-$i 1.$((i % 2)) cycle $((120 + 20 * i))"
        echo "run web-$i 1.$((i % 3)) calc -s $i -n $((20000 + 4000 * i))"
        echo "run sim-$i 2.0 shapes $((30000 * i / 2))"
        [ ! -x "$work/programs/heat" ] || echo "run sim-$i 2.1 heat $((400 * i))"
        echo "run web-$i 1.0 twins $((2000 + 800 * i))"
        echo "run img-$i 3.0 mandel $((200 * i)) $((1000 + 100 * i))"
        echo "run job-$i 1.$((i % 2)) sorter $((200000 * i)) $i"
        echo "run job-$i 1.0 threads $i 2000"
        echo "run job-$i 1.0 uselib $((5 * i))"
    done
}
while read -r line; do
    while [ "$(jobs -rp | wc -l)" -ge 3 ]; do wait -n 2>/dev/null || true; done # profd is one of the jobs
    eval "$line" &
    processes=$((processes + 1))
done < <(fleet)
for job in $(jobs -rp); do [ "$job" = "$daemon" ] || wait "$job" || true; done
if ls "$work"/runs/*/failed >/dev/null 2>&1; then echo "an upload failed" >&2; exit 1; fi
programs=$(fleet | awk '{print $4}' | sort -u | wc -l)
printf '%d processes of %d programs in %.1f s\n' "$processes" "$programs" \
    "$(echo "$(date +%s.%N) $began" | awk '{print $1 - $2}')"

say "profctl builds"
"$B/profctl" builds

for program in cycle calc; do
    say "profctl report $program --graph"
    "$B/profctl" report "$work/programs/$program" --graph --limit 12 -o "$work/$program.txt"
    head -n 90 "$work/$program.txt"
done

say "A process that never ends: profctl run shop, profctl ps, kill -9"
cat >"$work/shop.c" <<'END'
#include <pthread.h>
#define QUIET __attribute__((no_instrument_function, noinline))
#define LOUD __attribute__((noinline))
static volatile unsigned long sink;
LOUD unsigned long price(unsigned long n) { return sink += n * n; }
LOUD unsigned long discount(unsigned long n) { return price(n) / 2; }
LOUD void order(unsigned long n) { for (unsigned long i = 0; i < n % 7; i++) discount(i); price(n); }
LOUD void *serve(void *n) { for (unsigned long i = 0; i < 1000000; i++) order(i); return n; }
QUIET int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, serve, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    for (;;) sink++; /* what servers do all day */
}
END
gcc -O2 -pg -fno-optimize-sibling-calls -pthread -o "$work/shop" "$work/shop.c"
"$B/profctl" run -l service=shop "$work/shop" &
live=$!
for _ in $(seq 300); do # 1,000,000 orders of each of 4 threads: order, price and discount
    [ "$("$B/profctl" ps -l service=shop --json | grep -c '"calls":31999980,')" = 0 ] || break
    sleep 0.1
done
"$B/profctl" ps
kill -9 "$(pgrep -P "$live" shop)" && wait "$live" || echo "it was killed: exit status $?"
live=
"$B/profctl" report "$work/shop" --flat
echo "4 threads × 1,000,000 orders: each with one price of its own and 0 to 6 discounts, which ask for a price, too." \
    "None is missing."

id=$("$B/profctl" report "$work/programs/cycle" --json | tr ',' '\n' |
    sed -n 's/.*"build_id": *"\([0-9a-f]*\)".*/\1/p' | head -1)
say "The same as JSON: GET /api/v1/builds/$id/report"
if command -v curl >/dev/null 2>&1; then
    curl -sf "http://127.0.0.1:$port/api/v1/builds/$id/report" | head -c 600 && echo " …"
else
    "$B/profctl" report "$work/programs/cycle" --json | head -c 600 && echo " …"
fi
"$B/profctl" status | sed "/^page /d" # its address is named below, while it can be read
if [ -t 0 ] && [ -t 1 ] && [ -z "${CI:-}" ]; then
    printf '\nThe dashboard is at http://127.0.0.1:%s/ until you press Enter. ' "$port"
    read -r _ || true
else
    echo "On a terminal, make demo would now keep profd running, with its dashboard, until you press Enter."
fi
say "Stopping profd"
kill "$daemon" && wait "$daemon" && echo "profd has stopped; the temporary folder is removed"
daemon=
