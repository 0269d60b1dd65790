#!/usr/bin/python3
"""make bench-leave-out: how much of the CPU time of Debian's Lua goes into counting, and how much is left when its
cheap hot functions are left out as report -f exclude-list says. bench_leave_out.py FOLDER: that of
tests/oracle/packages.sh, with lua5.4. The runs have another input than the one that the list is made from."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
from harness import Daemon, until  # noqa: E402

GOAL = 20  # % of the ticks
WORK = """local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local size, t, s, n = tonumber(arg[1]), {}, {}, 0
for i = 1, size * 3 do t[i] = (i * 7919) % 10007 end
table.sort(t)
for i = 1, size do s[#s + 1] = tostring(i):rep(2):gsub("1", "x") end
for _, v in pairs(s) do n = n + #v end
for i = 1, size do t[i] = { i, tostring(i), x = i % 7 } end
print(fib(27), n, #table.concat(s), select("#", table.unpack(t, 1, 100)))
"""


def measure(d, exe, script, name, *options, size):
    """(share of the ticks inside the collector in %, ticks, CPU seconds, calls by function, provenance) of three
    runs."""
    for _ in range(3):
        done = d.ctl("run", "-l", f"run={name}", *options, exe, script, size)
        assert done.returncode == 0, done.stderr
    until(lambda: d.ctl("report", exe, "-l", f"run={name}").returncode == 0
          and d.json("report", exe, "--json", "-l", f"run={name}")["provenance"]["processes_started"] == 3)
    report = d.json("report", exe, "--json", "-l", f"run={name}")
    ticks = round(report["collector"]["sampled_seconds"] * 99)
    return (100 * report["collector"]["overhead"], ticks, report["collector"]["cpu_seconds"] / 3,
            {(f["build_id"], f["address"]): f["calls"] + f["self_calls"] for f in report["functions"]},
            report["provenance"])


def listed_keys(names):
    return {(words[0], words[1]) for words in names}


def show(name, result):
    share, ticks, cpu, _, _ = result
    print(f"{f'Lua, {name}: ticks inside the collector':<60} {share:5.1f} % of {ticks}; {cpu:.2f} s of CPU a run",
          flush=True)


def main():
    exe = os.path.join(os.path.abspath(sys.argv[1]), "lua5.4", "exe")
    with Daemon() as d:
        script, path = os.path.join(d.folder, "work.lua"), os.path.join(d.folder, "list")
        with open(script, "w") as f:
            f.write(WORK)
        show("all counted", measure(d, exe, script, "plain", size=150000))
        done = d.ctl("report", exe, "-f", "exclude-list", "-l", "run=plain")
        assert done.returncode == 0, done.stderr
        with open(path, "w") as f:
            f.write(done.stdout)
        rewritten = measure(d, exe, script, "rewritten", "--rewrite", size=170000)
        again = measure(d, exe, script, "again", "--rewrite", size=170000)
        left = measure(d, exe, script, "left", "--leave-out", path, size=170000)
        names = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
        show("all counted, --rewrite", rewritten)
        show(f"{len(names)} functions left out", left)
        print(f"{'goal':<60} {GOAL:5.1f} %{'' if left[0] <= GOAL else ': above it'}")
        others = {key for key in rewritten[3] if key[0] == names[0][0]} - listed_keys(names)
        lost = [key for key in others if rewritten[3][key] != left[3].get(key, 0)]
        chance = [key for key in others if rewritten[3][key] != again[3].get(key, 0)]
        print(f"other functions with counts that differ from those of the runs that count all: {len(lost)} of "
              f"{len(others)}; between two sets of runs that count all: {len(chance)} (Lua's hashes are random)")
        print(f"calls exact, says the report: {json.dumps(left[4]['calls_exact'])}, "
              f"{', '.join(left[4]['inexact_reasons'])}")
        without = sum(calls for key, calls in left[3].items() if key[0] == names[0][0])
        print(f"calls that are counted: {100 * without / sum(rewritten[3].values()):.1f} %")


main()
