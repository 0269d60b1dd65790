#!/usr/bin/python3
# not a test
"""profctl callers beside callgrind and perf, on SQLite, which does the same in every run: numbers of calls, and how the
time of a function with all that it calls is shared by its callers.

callers.py SOURCES [processes=96] [rows=60000]: SOURCES is that of tests/oracle/packages.sh. The exit status is 1 if a
number of calls differs. callgrind counts instructions, and profd measures time: the two shares agree as far as
instructions of one caller take as long as those of another. Cycles as KCachegrind estimates them, from misses of the
caches and of branch prediction that callgrind simulates, are nearer to time.

profd's time is CPU time, of the kernel too: calls that are the first to touch a page of memory take the time of the
page fault. callgrind sees none of it, perf record only without ":u". So perf stands beside it, with the kernel and
without, and the page faults. perf's stacks below mcount, which counts calls, are left out, as profd does with its own
counting."""
import collections
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
sys.dont_write_bytecode = True
from harness import PROFCTL, Daemon, run, until  # noqa: E402

TICKS = 100      # of a function with all that it calls
SHARE = 0.02     # of its instructions, from a caller that is shown
# KCachegrind's CEst: an instruction is a cycle, a miss of the first caches or of a branch 10, of the last cache 100.
CYCLES = {"Ir": 1, "Bcm": 10, "Bim": 10, "I1mr": 10, "D1mr": 10, "D1mw": 10, "ILmr": 100, "DLmr": 100, "DLmw": 100}
SQL = """CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL, d INT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d)
INSERT INTO t SELECT i, printf('%%08x', i*7919%%65521), i*1.5/7, i%%97 FROM n; CREATE INDEX tb ON t(b);
SELECT d, count(*), min(b), avg(c) FROM t GROUP BY d ORDER BY 2, 1 LIMIT 9;
UPDATE t SET d=d+1, b=b||d WHERE a%%5=0; DELETE FROM t WHERE b GLOB '*00*'; SELECT count(*), sum(d) FROM t;
SELECT count(*) FROM t x JOIN t y ON x.d=y.a WHERE x.b LIKE '%%7f%%' OR y.c BETWEEN 3 AND 5;
SELECT sum(length(k)) FROM (SELECT DISTINCT lower(b) k FROM t);
PRAGMA integrity_check;
"""


def callgrind(path):
    """{(caller, callee): [calls, instructions, cycles of the callee with all that it calls]}, recursion's levels added
    up."""
    arcs, caller, callee, weights = collections.defaultdict(lambda: [0, 0, 0]), None, None, []
    with open(path, errors="replace") as lines:
        for line in lines:
            if line.startswith("events: "):
                weights = [CYCLES.get(event, 0) for event in line.split()[1:]]
            elif line.startswith("fn="):
                caller = re.sub(r"'\d+$", "", line[3:-1])
            elif line.startswith("cfn="):
                callee = re.sub(r"'\d+$", "", line[4:-1])
            elif line.startswith("calls="):
                arc, costs = arcs[caller, callee], list(map(int, next(lines).split()[1:]))
                arc[0] += int(line[6:].split()[0])
                arc[1] += costs[0]
                arc[2] += sum(w * cost for w, cost in zip(weights, costs))
    return arcs


def perf_stacks(folder, exe, processes, sql, options):
    """Stacks of samples, innermost first, as (names, whether the kernel ran); why there are none, otherwise."""
    data, given = os.path.join(folder, "perf.data"), os.path.join(folder, "sql")
    with open(given, "w") as f:
        f.write(sql)
    loop = f"for i in $(seq {processes}); do {exe} -batch :memory: <{given} >/dev/null; done"
    done = run("perf", "record", "-q", *options, "--call-graph", "dwarf,8192", "-o", data, "--", "sh", "-c", loop,
               env=dict(os.environ, GMON_OUT_PREFIX=os.path.join(folder, "gmon")), timeout=3600)
    text = run("perf", "script", "-i", data, "--no-inline", "-F", "comm,ip,sym", timeout=3600).stdout
    out = []
    for sample in text.split("\n\n"):
        frames = re.findall(r"^\s+([0-9a-f]+) (.+?)(?:\+0x[0-9a-f]+)?$", sample, re.M)
        names = [name for _, name in frames]
        if sample.lstrip().startswith("exe") and names and not any("mcount" in name for name in names[:3]):
            out.append((names, int(frames[0][0], 16) >> 63))
    return out, "" if out else done.stderr.strip()[-200:] or "perf recorded nothing"


def perf_shares(stacks, function, callers):
    """{caller: part of the stacks with the function in them, by its outermost frame}; {}: there are none."""
    count = collections.Counter()
    for names, _ in stacks:
        at = len(names) - 1 - names[::-1].index(function) if function in names else len(names)
        count[names[at + 1] if at + 1 < len(names) else ""] += at + 1 < len(names)
    known = {k: count[k] for k in callers}
    return {k: n / sum(known.values()) for k, n in known.items()} if any(known.values()) else {}


def perf_all(folder, exe, processes, sql):
    """{what: stacks}, of which some are samples of the others."""
    both, why = perf_stacks(folder, exe, processes, sql, ["-F", "250", "-e", "cpu-clock"])
    faults, _ = perf_stacks(folder, exe, 1, sql, ["-c", "1", "-e", "page-faults"])
    print(f"  perf: {len(both)} stacks of {processes} processes, {sum(k for _, k in both)} of them in the kernel; "
          f"{len(faults)} page faults of one process; {why or 'those below mcount are left out'}")
    return {"perf": both, "perf :u": [s for s in both if not s[1]], "page faults": faults}


def jumped_to(exe):
    """Functions that another function ends with, by a jump: they return to its caller, which is the one that counts;
    callgrind has the other function as their caller."""
    here, found = None, set()
    for line in run("objdump", "-dw", "--no-show-raw-insn", exe).stdout.splitlines():
        if line.endswith(">:"):
            here = line.split("<")[1][:-2]
        jump = re.search(r"\tj\w+ .*<([^+>]+)>$", line)
        if jump and jump[1] != here:
            found.add(jump[1])
    return found


def gather(d, exe, processes, sql):
    """The processes, and one more under callgrind; what callgrind saw of it."""
    command, out = [exe, "-batch", ":memory:"], os.path.join(d.folder, "callgrind.out")
    for options, what, count in ((["--rate", "250", "-l", "run=plain"], command, processes),
                                (["--clock", "off", "-l", "run=callgrind"],
                                 ["valgrind", "-q", "--tool=callgrind", "--cache-sim=yes", "--branch-sim=yes",
                                 f"--callgrind-out-file={out}", "--compress-strings=no", "--compress-pos=no",
                                 *command], 1)):
        for _ in range(count):
            done = subprocess.run([PROFCTL, "run", *options, "--", *what], input=sql, text=True, capture_output=True,
                                  env=d.env)
            assert done.returncode == 0, done.stderr
    return callgrind(out)


def answers(d, exe, label, functions):
    """{function: rows of profctl callers}"""
    out = {}
    for name in functions:
        done = d.ctl("callers", exe, name, "-l", f"run={label}", "--limit", 0, "--json")
        out[name] = json.loads(done.stdout)["rows"] if done.returncode == 0 else []
    return out


def chosen(report):
    """Functions with several callers and enough ticks, outside of cycles; most time first."""
    return [f["raw_name"] for f in report["functions"]
            if f["measured_samples"] >= TICKS and len(f["callers"]) > 1 and f["cycle"] == 0]


def compare_calls(rows, arcs, times, jumps):
    """(arcs, calls, those whose number of calls differs); of functions in jumps all calls together."""
    count, calls, wrong = 0, 0, []
    for function, callers in rows.items():
        ours = {r["caller"]: r["calls"] for r in callers}
        theirs = {caller: times * n for (caller, callee), (n, *_) in arcs.items() if callee == function}
        if function in jumps:
            ours, theirs = {"all": sum(ours.values())}, {"all": sum(theirs.values())}
        count, calls = count + len(theirs), calls + sum(theirs.values())
        wrong += [(caller, function, ours.get(caller), theirs.get(caller)) for caller in sorted({*ours, *theirs})
                  if ours.get(caller, 0) != theirs.get(caller, 0)]
    return count, calls, wrong


def shares(numbers):
    return {k: n / sum(numbers.values()) for k, n in numbers.items()}


def misplaced(found, true):
    return sum(abs(found[k] - true[k]) for k in true) / 2


class Times:
    """Seconds, and of them those on another caller than callgrind's costs and perf's samples, which have errors of
    their own; intervals, and those that hold that share."""
    TRUTHS = ("instructions", "cycles", "samples of perf")

    def __init__(self):
        self.seconds, self.intervals, self.wrong, self.holds = (collections.Counter() for _ in range(4))

    def add(self, function, callers, arcs, perf):
        """Prints the function's callers."""
        timed = {r["caller"]: r for r in callers if r["method"] == "stacks"}
        seconds = sum(r["total_seconds"] for r in timed.values())
        if len(timed) < 2 or not seconds or not all(arcs[k, function][1] for k in timed):
            return
        true = [shares({k: arcs[k, function][i] for k in timed}) for i in (1, 2)]
        ours, calls = (shares({k: r[what] for k, r in timed.items()}) for what in ("total_seconds", "calls"))
        beside = [perf_shares(stacks, function, timed) for stacks in perf.values()]
        truths = {name: by for name, by in zip(self.TRUTHS, [*true, beside[0]]) if by}
        for name, by in truths.items():
            self.seconds[name] += seconds
            self.wrong[name] += seconds * misplaced(ours, by)
            self.wrong[name + " calls"] += seconds * misplaced(calls, by)
        print(f"  {function}: {seconds:.2f} s")
        for k, r in timed.items():
            low, high = r["low"] / seconds, r["high"] / seconds
            if max(true[0][k], true[1][k]) < SHARE:
                continue
            for name, by in truths.items():
                self.intervals[name] += 1
                self.holds[name] += low <= by[k] <= high
            print(f"    {100 * true[0][k]:6.1f} % {100 * true[1][k]:6.1f} %  {100 * ours[k]:6.1f} % [{100 * low:5.1f}, "
                  f"{100 * high:5.1f}]  {100 * calls[k]:6.1f} %  "
                  + " ".join(f"{100 * b[k]:6.1f} %" if b else "       –" for b in beside) + f"  {r['calls']:>12}  {k}")

    def show(self):
        for name in self.seconds:
            measured, calls = (100 * self.wrong[k] / max(self.seconds[name], 1e-9) for k in (name, name + " calls"))
            print(f"  of {self.seconds[name]:.2f} s, on another caller than the {name}: measured {measured:.1f} %, by "
                  f"numbers of calls {calls:.1f} %; {self.holds[name]} of {self.intervals[name]} intervals hold their "
                  "share")


def main(sources, processes="96", rows="60000"):
    exe, processes = os.path.join(sources, "sqlite3", "exe"), int(processes)
    with Daemon() as d:
        arcs = gather(d, exe, processes, SQL % int(rows))
        assert until(lambda: d.json("report", exe, "--json")["provenance"]["processes_started"] == processes + 1)
        report = d.json("report", exe, "-l", "run=plain", "--json")
        functions = chosen(report)
        plain, same = answers(d, exe, "plain", functions), answers(d, exe, "callgrind", functions)
        perf = perf_all(d.folder, exe, processes, SQL % int(rows))
    print(f"\ncallers of {len(functions)} functions of SQLite, {processes} processes, {report['totals']['ticks']} "
          "ticks, beside callgrind and perf:\n  share of the function's instructions, of its cycles, of its time "
          f"[95 %], of its calls, of {', '.join(perf)}; calls; caller")
    times, jumps = Times(), jumped_to(exe)
    for function, callers in plain.items():
        times.add(function, callers, arcs, perf)
    times.show()
    failed = not times.intervals
    for what, rows, factor in (("the run under callgrind", same, 1), (f"{processes} processes", plain, processes)):
        count, calls, wrong = compare_calls(rows, arcs, factor, jumps)
        print(f"  {what}: {count} arcs, {calls} calls; {len(wrong)} differ from callgrind's {wrong[:5] or ''}")
        failed = failed or wrong or not count
    return failed


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), **dict(a.split("=", 1) for a in sys.argv[2:])) and 1)
