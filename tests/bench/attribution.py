#!/usr/bin/env python3
"""attribution.py [RUNS [SECONDS [RATE]]]: which share of a callee's seconds lands on the wrong caller, by measured
times and by gprof's rule. tests/programs/callers.c has four callers of one callee, 12 ns to 14 us a call, and knows the
CPU time of each path: that of the caller itself is taken off, as its own ticks show it (small has 0.2 s of 1.9 s).
Default: 20 runs of 8 s at 250 Hz, which are 2,000 ticks each."""
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
from harness import ROOT, Daemon, run  # noqa: E402

CALLERS = ("tiny", "small", "large", "huge")


def wrong_share(found, truth):
    """Half of Σ |found − truth| of the shares: what moved from one caller to another."""
    a, b = sum(found), sum(truth)
    return sum(abs(x / a - y / b) for x, y in zip(found, truth)) / 2


def measure(d, exe, seconds, rate, seed):
    done = d.ctl("run", "--rate", rate, "-l", f"seed={seed}", "--", exe, seconds, seed)
    rows = (line.split() for line in done.stdout.splitlines())
    truth = {name: (int(calls), float(time)) for name, calls, time in rows}
    said = json.loads(d.ctl("report", exe, "--json", "-l", f"seed={seed}").stdout)
    rows = {r["name"]: r for f in said["functions"] if f["name"] == "callee" for r in f["callers"]}
    own = {f["name"]: f["measured_self"] for f in said["functions"]}
    scale = sum(truth[n][1] for n in CALLERS) / said["totals"]["seconds"]
    times = [truth[n][1] - own.get(n, 0) * scale for n in CALLERS]
    held = sum(rows[n]["measured_low"] * scale <= time <= rows[n]["measured_high"] * scale
               for n, time in zip(CALLERS, times) if n in rows)
    return (wrong_share([rows[n]["measured_total"] if n in rows else 0 for n in CALLERS], times),
            wrong_share([truth[n][0] for n in CALLERS], times), said["totals"]["ticks"], held)


def main():
    runs, seconds, rate = (int(sys.argv[i]) if len(sys.argv) > i else usual for i, usual in ((1, 20), (2, 8), (3, 250)))
    with Daemon() as d:
        exe = os.path.join(d.folder, "callers")
        source = os.path.join(ROOT, "tests/programs/callers.c")
        run("gcc", "-O2", "-fno-omit-frame-pointer", "-o", exe, source, check=True)
        found = [measure(d, exe, seconds, rate, seed) for seed in range(1, runs + 1)]
    measured, rule, ticks, held = zip(*found)
    print(f"seconds on the wrong caller, median of {runs} runs of {statistics.median(ticks):.0f} ticks at {rate} Hz:")
    print(f"  measured from stacks {100 * statistics.median(measured):5.1f} %   (worst {100 * max(measured):.1f} %)")
    print(f"  gprof's rule         {100 * statistics.median(rule):5.1f} %   (worst {100 * max(rule):.1f} %)")
    print(f"  95 % intervals of the four callers that hold the truth: {sum(held)} of {4 * runs}")


main()
