#!/usr/bin/python3
"""The short form of `make insight`, without packages of a network: one call more in 1 of 200 functions is found, equal
sides are equal, a slower function is slower, and what gcov saw running is not listed as never called."""
import math
import os
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import dead  # noqa: E402
import insight  # noqa: E402
import programs  # noqa: E402
import tables  # noqa: E402
from harness import Tap  # noqa: E402
from pool import Comparer, Linked, gather  # noqa: E402

PROCESSES, SPLITS = 64, 8
SOURCE = """#include <stdlib.h>
#include <time.h>
static volatile int n;
__attribute__((noinline)) void rest(int most) { for (int i = 0; i < most; i++) n += i; }
int mix(int x, int rounds)
{
    for (int i = 0; i < rounds; i++) x = x * 1103515245 + 12345 + n;
    return x;
}
int main(int argc, char **argv)
{
    int seed = atoi(argv[argc - 1]);
    clock_t end = clock() + CLOCKS_PER_SEC / 100 * (10 + seed % 5);
    for (int i = 0; clock() < end; i++) {
        n += mix(i, 3000);
        rest(700 + 60 * (seed % 7));
    }
    return 0;
}
"""
# both is inlined, and its own copy is never entered.
MADE = """static volatile int n;
int both(int x) { return n += x; }
__attribute__((noinline)) int used(int x) { return both(x) * 2; }
__attribute__((noinline)) int dead(int x) { while (x-- > n) n += used(x); return n; }
int main(int argc, char **argv)
{
    (void)argv;
    return argc > 5 ? dead(argc) : used(argc) > 100 ? both(1) : 0;
}
"""


def tested(metrics):
    return {(t["metric"], r["function"], r["caller"]): r for t in metrics for r in t["rows"] if r["p"] is not None}


def alike(a, b, field):
    """The daemon names no amount of data beyond 100 times what there is."""
    if a is None:
        return field == "data_needed" and b > 100
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def equal_and_slower(tap, folder):
    with open(os.path.join(folder, "mix.c"), "w") as f:
        f.write(SOURCE)
    program = programs.Program("mix", folder, ["mix.c"], ("mix.c", "mix"), [], [],
                               lambda where, seed: ([str(seed)], b""))
    program.build(os.path.join(folder, "built"), HERE)
    pools = gather(program, {"base": PROCESSES, "100": PROCESSES}, programs.RATE)
    with open(os.path.join(folder, "raw.tsv"), "w") as raw:
        below, found = tables.equal_sides(program, [pools["base"]], SPLITS, raw)[0]["self"]
        # 6 of 8 that differ, by chance: at most 28 * 0.05 ** 6 = 4e-7
        tap.point(below.tests >= SPLITS // 2 and found.part * SPLITS <= SPLITS - 3,
                  f"{SPLITS} random halves of one variant: they are compared, and seldom differ", below.groups)
        exes = {v: program.exes[v] for v in ("base", "100")}
        answers = []
        for comparer in (Comparer(exes, 7), Comparer(exes, 7, single=True), Linked(exes, 7)):
            with comparer as c:
                answers.append(c.compare(("base", pools["base"]), ("100", pools["100"]))["metrics"])
        tap.point(answers[0] == answers[1], "sums of random groups say what single processes say", answers)
        tests, linked = tested(answers[0]), tested(answers[2])
        tap.point(tests and tests.keys() == linked.keys()
                  and all(alike(tests[k][f], linked[k][f], f) for k in tests
                          for f in Linked.FIELDS if f != "needed_alone")
                  and all(tests[k]["verdict"] == linked[k]["verdict"] for k in tests),
                  "the program that is linked with the daemon's code says what the daemon says", (tests, linked))
        s = tables.Slower(program, pools, raw, 2)
        change, holds = s.whole()["100"], s.intervals(3)[2]
        found = next(s.power("mix", 1, [(100, PROCESSES)]))
    # Some 900 ticks a side: the logarithm of the ratio has a standard error of 0.05.
    tap.point(0.4 < change["time-per-call"]["change"] < 1.8, "a function that does its work twice takes twice as long",
              change)
    tap.point(holds.tests > 0 and found[2].part == found[3].part == 1,
              "intervals of samples are judged by the pools' change; twice the time is found", (holds.groups, found))


with Tap() as tap, tempfile.TemporaryDirectory(prefix="profd-insight-") as folder:
    row, others = insight.show_one_more(folder)
    tap.point(row["verdict"] == "changed" and row["low"] > 0.2 and not others,
              "one call more in 1 of 200 functions is found with 50 processes a side, and nothing else", (row, others))
    equal_and_slower(tap, folder)
    with open(os.path.join(folder, "made.c"), "w") as f:
        f.write(MADE)
    answer, rows, wrong = dead.compare("made", folder, folder)
    tap.point([(r["function"], r["ran"]) for r in rows] == [("dead", 0)] and not wrong
              and [r["function"] for r in answer["rows"] if r["inlined"]] == ["both"],
              "of what is never called, gcov saw nothing run; what was inlined and ran is marked", answer["rows"])
