#!/usr/bin/python3
# not a test
"""What profctl diff and never-called are worth, measured on real programs.

insight.py FOLDER SOURCES [processes=500] [splits=3000] [comparisons=1000] [power=60] [only=lua,sqlite] [peers=yes]

SOURCES is that of tests/oracle/packages.sh. FOLDER keeps the profiles: POOLS pools of so many processes that are equal,
and a third as many of each slower variant; and the raw results as *.tsv."""
import math
import os
import random
import statistics
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import programs  # noqa: E402
import tables  # noqa: E402
from pool import Comparer, Linked, Process, gather, run  # noqa: E402

SLOWER = ("2", "5", "10")
POOLS = 2


def show_equal(program, processes, splits, folder):
    """The pools have no process in common: what is true of one only is seen."""
    if not splits:
        return
    pools = [processes[k::POOLS] for k in range(POOLS)]
    with open(os.path.join(folder, f"{program.name}-equal.tsv"), "w") as raw:
        raw.write("\t".join(["pool", "split", "metric", "function", "caller", "verdict", *Linked.FIELDS]) + "\n")
        out = tables.equal_sides(program, pools, math.ceil(splits / POOLS), raw)
    wide = 17 + 7 * POOLS
    print(f"\n{program.name}: random halves of {POOLS} pools of {len(pools[0])} processes, which are equal (± standard "
          f"error, and each pool)\n  {'metric':18} {'splits':>6} {'tests':>8}  {'p < .05 (asked: 4 to 6)':>{wide}}  "
          f"{'a discovery (at most 5)':>{wide}}")
    for metric in out[0]:
        said = []
        for i in (0, 1):
            rate = tables.Rate.of(pool[metric][i] for pool in out)
            said += [f"{rate!s:>16}", "".join(f"{100 * pool[metric][i].part:7.2f}" for pool in out)]
        print(f"  {metric:18} {len(rate.groups):6} {tables.Rate.of(pool[metric][0] for pool in out).tests:8}  "
              f"{said[0]} {said[1]}  {said[2]} {said[3]}")


def show_slower(program, pools, comparisons, power, folder):
    with open(os.path.join(folder, f"{program.name}-slower.tsv"), "w") as raw:
        raw.write("\t".join(["comparison", "variant", "metric", "processes", "ticks_a", "ticks_b", "pools", "change",
                             "low", "high", "p", "q"]) + "\n")
        s = tables.Slower(program, pools, raw, 2)
        count, found, every = s.intervals(comparisons)
    print(f"\n{program.name}: {s.function}, {100 * s.share:.1f} % of the time, does a part of its work twice; 95 % "
          f"intervals of {comparisons} comparisons of {count} processes a side, drawn from the pools\n"
          f"  {'metric':14} {'work added':>11}  {'pools differ by [95 %]':>26}  {'tests':>6}  hold the pools' "
          "difference")
    for metric, change, whole, rate in found:
        pools_say = "{:+.1f} % [{:+.1f}, {:+.1f}]".format(*(100 * whole[k] for k in ("change", "low", "high")))
        print(f"  {metric:14} {100 * change:+9.2f} %  {pools_say:>26}  {rate.tests:6}  {rate}")
    print(f"  {'all':55}  {every.tests:6}  {every}")
    if power:
        show_power(s, power)


def show_power(s, repeats):
    function = s.of_size(tables.SHARE)
    print(f"\n{s.program.name}: {function}, {100 * s.find(function)[1]:.1f} % of the time, with more ticks on one side")
    for (percent, count, alone, among), (ticks, tested, single, several) in zip(
            tables.AT_SIZE, s.power(function, repeats, [size[:2] for size in tables.AT_SIZE])):
        print(f"  +{percent} % with {count} processes a side, {ticks} ticks of it: found alone in {single.part:.2f} ± "
              f"{single.error:.2f}, among {tested} functions in {several.part:.2f} ± {several.error:.2f} of {repeats} "
              f"(asked: {alone:.2f}, {among:.2f})")
    for percent, count in tables.PLANNED:
        for way, (sizes, tested, rate) in zip(("alone", "among all"), s.planned(function, repeats, percent, count)):
            print(f"  +{percent} %, as planned with {count} processes a side: {statistics.median(sizes):.0f} needed "
                  f"[{min(sizes)}, {max(sizes)}]; found {way} ({tested:.0f} tested) in {rate.part:.2f} ± "
                  f"{rate.error:.2f} of {repeats} (asked: 0.80)")


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
        diff = c.compare(("base", sides["base"]), ("more", sides["more"]), ["calls-per-parent"])
    rows = tables.rows_of(diff, "calls-per-parent")
    row = next(r for r in rows if r["function"] == "f137" and r["caller"] == "request")
    unchanged = "uncertain", "not-significant", "constant", "too-few"
    others = [r for r in rows if r is not row and r["verdict"] not in unchanged]
    print(f"\none more call per request of 1 in 200 functions, {processes} processes a side: {row['caller']} calls "
          f"{row['function']} {row['a']:.3f} -> {row['b']:.3f} times, {100 * row['change']:+.1f} % "
          f"[{100 * row['low']:+.1f}, {100 * row['high']:+.1f}], {row['verdict']}, q {row['q']}; {len(others)} others")
    return row, others


def one_request(exe, folder, seed, more):
    done = run(exe, 1000 * seed + more, cwd=folder)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(folder, "gmon.out"), "rb") as f:
        return Process(programs.read_gmon(f.read()), 100)


def main(folder, sources, **options):
    sys.stdout.reconfigure(line_buffering=True)
    processes, splits = int(options.get("processes", 500)), int(options.get("splits", 3000))
    os.makedirs(folder, exist_ok=True)
    show_one_more(folder)
    for program in programs.real(sources):
        if program.name not in options.get("only", "lua,sqlite").split(","):
            continue
        program.build(folder, HERE)
        pools = gather(program, {"base": POOLS * processes, **dict.fromkeys(SLOWER, processes // 3)}, programs.RATE)
        show_equal(program, pools["base"], splits, folder)
        show_slower(program, pools, int(options.get("comparisons", 1000)), int(options.get("power", 60)), folder)
        if options.get("peers", "yes") == "yes":
            draw = random.Random(4)
            with Comparer({v: program.exes[v] for v in ("base", "10")}, 4) as c:
                lines = tables.peers(program, c, tables.sample(draw, pools["base"], len(pools["base"])),
                                     tables.sample(draw, pools["10"], len(pools["10"])), folder)
            print("\n" + "\n".join("  " + line for line in lines))


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), **dict(a.split("=", 1) for a in sys.argv[3:]))
