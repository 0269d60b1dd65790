#!/usr/bin/python3
# not a test
"""What profctl diff and never-called are worth, measured on real programs.

insight.py FOLDER SOURCES [processes=700] [splits=300] [comparisons=1000] [power=40] [only=lua,sqlite] [peers=yes]

SOURCES is that of tests/oracle/packages.sh. FOLDER keeps the pools of profiles, and the raw results as *.tsv."""
import os
import random
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import programs  # noqa: E402
import tables  # noqa: E402
from pool import Comparer, gather, run  # noqa: E402

SLOWER = ("base", "2", "5", "10")


def percent(part, of):
    return f"{100 * part / of:5.1f} %" if of else "      –"


def show_equal(program, pools, splits, folder):
    with open(os.path.join(folder, f"{program.name}-equal.tsv"), "w") as raw:
        raw.write("split\tmetric\tfunction\tticks_a\tticks_b\tp\tq\tverdict\n")
        out = tables.equal_sides(program, pools, splits, raw)
    print(f"\n{program.name}: {splits} random halves of {len(pools['base'])} processes, which are equal\n"
          f"  {'metric':18} {'tests':>7}  {'p < .05':>8}  splits with a discovery")
    for metric, (tests, below, found) in out.items():
        print(f"  {metric:18} {tests:7}  {percent(below, tests):>8}  {percent(found, splits)}")


def show_slower(program, pools, comparisons, power, folder):
    with open(os.path.join(folder, f"{program.name}-slower.tsv"), "w") as raw:
        raw.write("comparison\tvariant\tmetric\tprocesses\tticks_a\tticks_b\ttruth\tpools\tchange\tlow\thigh\tp\tq\n")
        s = tables.Slower(program, pools, raw, 2)
        with s.comparer:
            found = s.intervals(comparisons)
            powers = s.power(power, (10, 5)) if power else []
    print(f"\n{program.name}: {s.function} ({100 * s.share:.0f} % of the time) made slower; 95 % intervals of "
          f"{comparisons} comparisons\n  {'metric':14} {'truth':>8} {'pools':>8} {'tests':>6}  hold the truth  "
          "hold the pools' change")
    for variant, metric, truth, whole, tests, holds, holds_pool in sorted(found, key=lambda f: (f[1], f[2])):
        print(f"  {metric:14} {100 * truth:+7.2f}% {100 * whole:+7.2f}% {tests:6}  {percent(holds, tests):>14}  "
              f"{percent(holds_pool, tests):>22}")
    tests = [sum(f[i] for f in found) for i in (4, 5, 6)]
    print(f"  {'all':31}  {tests[0]:6}  {percent(tests[1], tests[0]):>14}  {percent(tests[2], tests[0]):>22}")
    for slower, count, ticks, single, several in powers:
        print(f"  +{slower} % with {count} processes a side ({ticks} ticks of it, as the rule asks): found by p < .05 "
              f"in {100 * single:.0f} %, among all functions in {100 * several:.0f} % of {power}")


def show_one_more(folder, processes=50):
    """Returns (the arc's row, how many other rows changed)."""
    exes, sides = {}, {}
    for name, more in (("base", False), ("more", True)):
        source, exe = os.path.join(folder, f"request-{name}.c"), os.path.join(folder, f"request-{name}")
        with open(source, "w") as f:
            f.write(tables.request_source(more))
        done = run("gcc", "-pg", "-O1", "-o", exe, source)
        assert done.returncode == 0, done.stderr
        exes[name] = exe
        sides[name] = [one_request(exe, folder, seed, name == "more") for seed in range(processes)]
    with Comparer(exes, 3) as c:
        diff = c.compare(("base", sides["base"]), ("more", sides["more"]), "&metric=calls-per-parent")
    rows = tables.rows_of(diff, "calls-per-parent")
    row = next(r for r in rows if r["function"] == "f137" and r["caller"] == "request")
    others = [r for r in rows if r is not row and r["verdict"] not in ("not-significant", "constant", "too-few")]
    print(f"\none more call per request of 1 in 200 functions, {processes} processes a side: {row['caller']} calls "
          f"{row['function']} {row['a']:.3f} -> {row['b']:.3f} times, {100 * row['change']:+.1f} % "
          f"[{100 * row['low']:+.1f}, {100 * row['high']:+.1f}], {row['verdict']}, q {row['q']}; {len(others)} others")
    return row, others


def one_request(exe, folder, seed, more):
    done = run(exe, 1000 * seed + more, cwd=folder)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(folder, "gmon.out"), "rb") as f:
        low, high, used, bins, arcs = programs.read_gmon(f.read())
    return tables.encoded([(0, low, high, bins, 100, "seconds", "s", used)], arcs), low, used


def main(folder, sources, **options):
    sys.stdout.reconfigure(line_buffering=True)
    processes, splits = int(options.get("processes", 700)), int(options.get("splits", 300))
    os.makedirs(folder, exist_ok=True)
    show_one_more(folder)
    for program in programs.real(sources):
        if program.name not in options.get("only", "lua,sqlite").split(","):
            continue
        program.build(folder, HERE)
        pools = gather(program, SLOWER, processes, programs.RATE)
        show_equal(program, pools, splits, folder)
        show_slower(program, pools, int(options.get("comparisons", 1000)), int(options.get("power", 40)), folder)
        if options.get("peers", "yes") == "yes":
            draw = random.Random(4)
            with Comparer({v: program.exes[v] for v in ("base", "10")}, 4) as c:
                lines = tables.peers(program, c, tables.sample(draw, pools["base"], len(pools["base"])),
                                     tables.sample(draw, pools["10"], len(pools["10"])), folder)
            print("\n" + "\n".join("  " + line for line in lines))


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), **dict(a.split("=", 1) for a in sys.argv[3:]))
