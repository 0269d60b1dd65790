#!/usr/bin/python3
"""profctl callers against the truth: measured from stacks in a real run, by regression over made-up processes whose
costs are known, by numbers of calls where both are refused, each for its reason."""
import csv
import io
import json
import math
import os
import random
import re
import sys

sys.dont_write_bytecode = True
from harness import ROOT, Daemon, Gmon, Tap, bounds, run, symbols, until  # noqa: E402

COST = {"tiny": 0.00001, "small": 0.001, "large": 0.02, "huge": 0.5}  # ticks a call
PROCESSES = 60


def gmon(at, borders, calls, ticks, path, extra=(), below=0):
    g = Gmon(*borders, bins=(borders[1] - borders[0]) // 4)
    for name, n in calls.items():
        g.arc(at[name] + 16, at["callee"], n)
    for caller, callee, n in extra:
        g.arc(at[caller] + 16, at[callee], n)
    g.tick(at["callee"] + 16, ticks)
    if below:
        g.tick(at["thread_seconds"] + 16, below)
    return g.write(path)


def answer(d, *arguments):
    done = d.ctl("callers", *arguments, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else {"rows": [], "error": done.stderr}


def rows(said):
    return {r["caller"]: r for r in said["rows"]}


def upload(d, exe, label, files):
    done = d.ctl("upload", "-e", exe, "-l", f"set={label}", *files)
    assert done.returncode == 0, done.stderr


def made_up(d, exe, label, draw, n=PROCESSES, extra=()):
    """n processes with these calls; their ticks are those that the costs give, and vary as ticks do. The true ticks."""
    at, borders = {k: a for k, (a, _) in symbols(exe).items()}, bounds(exe)
    chance, truth, files = random.Random(f"callers {label}"), dict.fromkeys(COST, 0), []
    for i in range(n):
        calls = draw(chance, i)
        mean = {k: calls[k] * COST[k] for k in calls}
        for k in mean:
            truth[k] += mean[k]
        ticks = max(0, round(chance.gauss(sum(mean.values()), sum(mean.values()) ** 0.5)))
        files.append(gmon(at, borders, calls, ticks, os.path.join(d.folder, f"{label}{i}"), extra))
    upload(d, exe, label, files)
    return {k: v / 100 for k, v in truth.items()}


def independent(chance, _):
    return {k: 1 + int(chance.random() ** 2 * 100 / COST[k]) for k in COST}


def regression(tap, d, exe):
    truth = made_up(d, exe, "mixed", independent)
    said = answer(d, exe, "callee", "-l", "set=mixed")
    got, fit = rows(said), said["regression"]
    tap.point(said["method"] == "regression" and fit["refused"] is None and fit["equations"] == PROCESSES
              and said["stacks_refused"] == "no stacks were taken" and all(r["method"] == "regression" for r in
                                                                           said["rows"]),
              "without stacks, a regression over processes", said)
    total = sum(truth.values())
    wrong = sum(abs(got[k]["seconds"] - truth[k]) for k in COST) / 2 / total
    by_calls = sum(abs(got[k]["seconds_by_calls"] - truth[k]) for k in COST) / 2 / total
    tap.point(wrong < 0.05 and by_calls > 0.5, f"{100 * wrong:.1f} % of the seconds are on the wrong caller, by "
              f"numbers of calls {100 * by_calls:.0f} %", got)
    tap.point(all(got[k]["low"] <= truth[k] <= got[k]["high"] for k in COST), "the intervals hold the truth", truth)
    tap.point(fit["assumptions"][0].startswith("a call from one caller costs the same")
              and any("missing" in a for a in fit["assumptions"]) and len(fit["assumptions"]) == 2,
              "what it assumes is said", fit)
    text = d.ctl("callers", exe, "callee", "-l", "set=mixed").stdout
    tap.point("Not measured: no stacks were taken." in text and "It assumes: a call" in text
              and text.count("regression ") >= 4 and "at least" in text, "as a table", text)
    table = list(csv.DictReader(io.StringIO(d.ctl("callers", exe, "callee", "-l", "set=mixed", "-f", "csv").stdout)))
    tap.point([r["caller"] for r in table] == [r["caller"] for r in said["rows"]]
              and all(float(r["seconds"]) == got[r["caller"]]["seconds"] and r["method"] == "regression"
                      and int(r["calls"]) == got[r["caller"]]["calls"] for r in table), "as CSV", table)
    said = answer(d, exe, "callee", "-l", "set=mixed", "--method", "calls")
    tap.point(said["method"] == "calls" and said["regression"] is None
              and all(r["seconds"] == r["seconds_by_calls"] and r["low"] is None for r in said["rows"]),
              "by numbers of calls, if asked for", said)
    said = answer(d, exe, "callee", "-l", "set=mixed", "--method", "stacks")
    tap.point(said["method"] == "calls" and said["stacks_refused"] == "no stacks were taken",
              "stacks, where there are none", said)


def together(tap, d, exe):
    """small and tiny are called equally often, as by the start of a program: one fit has both."""
    def draw(chance, i):
        return dict(independent(chance, i), tiny=300, small=300)

    truth = made_up(d, exe, "together", draw)
    said = answer(d, exe, "callee", "-l", "set=together")
    got, fit = rows(said), said["regression"]
    pair = [got[k] for k in ("tiny", "small")]
    tap.point(said["method"] == "regression" and fit["refused"] is None
              and any("keep one proportion" in a and "tiny" in a and "small" in a and "large" not in a
                      for a in fit["assumptions"]), "callers with calls in one proportion are fitted together", fit)
    tap.point(all(got[k]["low"] <= truth[k] <= got[k]["high"] for k in COST)
              and pair[0]["seconds"] == pair[1]["seconds"] and all(r["low"] == 0 for r in pair)
              and pair[0]["high"] == pair[1]["high"] and got["large"]["low"] > 0 and got["huge"]["low"] > 0,
              "each one's interval holds the truth", (got, truth))


def refusals(tap, d, exe):
    made_up(d, exe, "few", independent, n=5)
    made_up(d, exe, "one", independent, n=1)
    made_up(d, exe, "alike", lambda c, i: {k: int((100 + i) / COST[k]) for k in COST})
    made_up(d, exe, "noisy", lambda c, i: {k: int((1 + (c.random() - 0.5) * 0.9) * 0.3 / COST[k]) + 1 for k in COST},
            n=12)
    made_up(d, exe, "lonely", lambda c, i: {"large": 50 + i})
    made_up(d, exe, "single", lambda c, i: {"large": 50 + i * 7 % 13, "huge": 3 if i == 4 else 0})
    made_up(d, exe, "idle", lambda c, i: {"tiny": 1, "small": 2}, n=3)
    for label, why in (("few", "5 processes, minutes or groups of an hour with calls are too few for 4 callers; 12 are "
                               "needed"),
                       ("one", "1 process, minute or group of an hour with calls is too few for 4 callers; 12 are "
                               "needed"),
                       ("alike", "the callers' calls rise and fall together: the condition number is"),
                       ("noisy", "% of the function's time, the limit is 25 %"),
                       ("lonely", "there is one caller, which has all of the time"),
                       ("single", "one process alone decides on a caller"),
                       ("idle", "no tick is of this function or of what it calls")):
        refused(tap, d, exe, label, why)
    lines = [line.split() for line in d.ctl("callers", exe, "callee", "-l", "set=idle").stdout.splitlines()]
    costs = {line[-1]: line[-4] for line in lines if line[-1] in COST}
    tap.point(costs == {"tiny": "-", "small": "-"}, "without a tick, the time of a call is not known", lines)
    said = answer(d, exe, "main", "-l", "set=mixed")
    tap.point(not said["rows"] and "error" in said, "a function without calls or time", said)


def refused(tap, d, exe, label, why):
    said = answer(d, exe, "callee", "-l", f"set={label}")
    text = d.ctl("callers", exe, "callee", "-l", f"set={label}").stdout
    tap.point(said.get("method") == "calls" and why in said["regression"]["refused"]
              and {r["method"] for r in said["rows"]} <= {"calls", "none"} and f"No regression: " in text
              and all(r["low"] is None for r in said["rows"]), f"refused: {why}", said)


def many(tap, d):
    """More callers than a regression takes."""
    source, exe = os.path.join(d.folder, "many.c"), os.path.join(d.folder, "many")
    with open(source, "w") as f:
        f.write("volatile int n; __attribute__((noipa)) void callee(void) { for (int i = 0; i < 9; i++) n += i; }\n")
        for i in range(70):
            f.write(f"__attribute__((noipa)) void from{i}(void) {{ callee(); n++; n *= {i}; }}\n")
        f.write("int main(void) {" + "".join(f"from{i}();" for i in range(70)) + "}\n")
    assert run("gcc", "-pg", "-O1", "-o", exe, source).returncode == 0
    at = {k: a for k, (a, _) in symbols(exe).items()}
    upload(d, exe, "many", [gmon(at, bounds(exe), {f"from{i}": i + 1 for i in range(70)}, 50,
                                 os.path.join(d.folder, "many.out"))])
    said = answer(d, exe, "callee")
    tap.point(said["regression"]["refused"] == "there are more than 64 callers" and said["row_count"] == 70,
              "refused: more than 64 callers", said.get("error"))
    text = d.ctl("callers", exe, "callee").stdout
    tap.point("30 more; --limit shows them" in text, "40 rows unless asked for", text)
    several = d.ctl("callers", exe, "from1")
    tap.point(several.returncode == 0, "an exact name goes before those that begin with it", several.stderr)
    several = d.ctl("callers", exe, "from")
    tap.point(several.returncode != 0 and several.stderr.count("\n") == 1
              and "give the address of one" in several.stderr, "a part of several names", several.stderr)
    tap.point(answer(d, exe, hex(at["callee"]))["function"]["name"] == "callee", "a function by its address")
    tap.point(d.ctl("callers", exe, "nosuch").returncode != 0, "no such function")
    tap.point(answer(d, "callee")["rows"] and len(answer(d, "callee")["rows"]) == 2
              and d.ctl("callers", "callee", "-l", "set=nowhere").returncode != 0, "in every program")


def below(tap, d, exe):
    """What the function calls has other callers, too: its time is shared by calls, which is said."""
    made_up(d, exe, "below", independent, extra=[("callee", "thread_seconds", 5), ("main", "thread_seconds", 5)])
    said = answer(d, exe, "callee", "-l", "set=below")
    tap.point(any("shares its time" in a for a in said["regression"]["assumptions"]), "shared time below is named",
              said["regression"])
    at, borders, chance, files = {k: a for k, (a, _) in symbols(exe).items()}, bounds(exe), random.Random(1), []
    for i in range(20):
        calls = independent(chance, i)
        files.append(gmon(at, borders, calls, 100, os.path.join(d.folder, f"doubt{i}"),
                          [("callee", "thread_seconds", 5), ("main", "thread_seconds", 5)], below=400))
    upload(d, exe, "doubt", files)
    refused(tap, d, exe, "doubt", "which may be wrong by 67 % of the function's time; the limit is 40 %")


def measured(tap, d):
    source = os.path.join(ROOT, "tests/programs/callers.c")
    for n in range(10):  # a process that waits for CPU time most of the time may lose ticks, and says so: another one
        exe = os.path.join(d.folder, f"measured{n}")
        done = run("gcc", "-O2", "-pg", "-fno-omit-frame-pointer", "-Wl,--build-id=uuid", "-o", exe, source)
        assert done.returncode == 0, done.stderr
        done = d.ctl("run", "--rate", "250", "--", exe, "6", "1")  # some 15 ticks below tiny
        assert done.returncode == 0, done.stderr
        truth = {name: (int(calls), float(time)) for name, calls, time in map(str.split, done.stdout.splitlines())}
        until(lambda: len(rows(answer(d, exe, "callee"))) == 4)
        if d.json("report", exe, "--json")["provenance"]["calls_exact"]:
            break
    said = answer(d, exe, "callee")
    got = rows(said)
    tap.point(said["method"] == "stacks" and said["regression"] is None and said["stacks_refused"] is None
              and all(r["method"] == "stacks" and r["low"] <= r["seconds"] <= r["high"] for r in said["rows"]),
              "with stacks, times are measured", said)
    tap.point({k: r["calls"] for k, r in got.items()} == {k: c for k, (c, _) in truth.items()}, "calls are exact", got)
    tap.point(all(r["calls_per_caller_call"] == r["calls"] / (r["calls"] / n)
                  for k, n in (("tiny", 80000), ("small", 20000), ("large", 1200), ("huge", 70)) for r in [got[k]]),
              "calls per call of the caller", got)
    text = d.ctl("callers", exe, "callee").stdout
    each = {line.split()[-1]: line.split()[-4] for line in text.splitlines() if " stacks " in line}
    known = {k: math.floor(math.log10(2 * r["seconds"] / (r["high"] - r["low"]))) + 1 for k, r in got.items()}
    cost = {k: 1e6 * r["seconds_per_call"] for k, r in got.items()}
    tap.point(set(each) == set(got) and all(len(v.replace(".", "").strip("0")) <= max(1, min(4, known[k]))
                                            and abs(float(v) - cost[k]) <= 0.5 * cost[k] for k, v in each.items()),
              "the time of a call has the digits that its interval knows", (text, known))
    total = sum(t for _, t in truth.values())
    scale = total / sum(r["seconds"] for r in said["rows"])
    wrong = sum(abs(got[k]["seconds"] * scale - t) for k, (_, t) in truth.items()) / 2 / total
    tap.point(wrong < 0.25, f"{100 * wrong:.1f} % of the seconds are on the wrong caller", (got, truth))


JUMPS = """#include <time.h>
static volatile unsigned sink;
__attribute__((noipa)) int leaf(int n) { for (int i = 0; i < 500; i++) sink += i; return n; }
__attribute__((noipa)) int middle(int n) { return leaf(n + 1); }
__attribute__((noipa)) int outer(int n) { return middle(n) + 1; }
__attribute__((noipa)) int by_pointer(int (*f)(int), int n) { return f(n) + 1; }
int main(void)
{
    for (int i = 0; i < 7; i++) sink += by_pointer(middle, i);
    while (clock() < CLOCKS_PER_SEC * 6 / 10) for (int i = 0; i < 100; i++) sink += outer(i);
    return 0;
}
"""


def jumps(tap, d):
    """middle ends with a jump to leaf. The call in outer names middle, which so has the calls and the time. A call
    through a pointer names nothing: leaf counts as called by by_pointer, and the row is marked."""
    source, exe = os.path.join(d.folder, "jumps.c"), os.path.join(d.folder, "jumps")
    with open(source, "w") as f:
        f.write(JUMPS)
    done = run("gcc", "-O2", "-pg", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    done = d.ctl("run", "--rate", "250", "--", exe)
    assert done.returncode == 0, done.stderr
    got = until(lambda: (r := rows(answer(d, exe, "leaf"))) and len(r) > 1 and r)
    report, text = d.json("report", exe, "--json"), d.ctl("report", exe).stdout
    f = {x["name"]: x for x in report["functions"]}
    counted = {r["name"]: (r["calls"], r.get("jumped", False)) for r in f["leaf"]["callers"]}
    tap.point(got and set(got) == {"middle", "by_pointer"} and got["middle"]["calls"] == f["outer"]["calls"] > 0
              and got["middle"]["seconds"] > 0 and "has time and no calls" not in d.ctl("callers", exe, "leaf").stdout,
              "calls by a jump: the function that jumped has the calls and the time", got)
    tap.point(counted == {"middle": (f["outer"]["calls"], False), "by_pointer": (7, True)}
              and {r["name"]: r["calls"] for r in f["middle"]["callers"]}
              == {"outer": f["outer"]["calls"], "by_pointer": 7} and f["leaf"]["calls"] == f["middle"]["calls"],
              "only what no call instruction names is counted for the caller of the one that jumped", f["leaf"])
    tap.point(report["totals"]["jumped_functions"] == 1 and "\n^calls    1 function is also entered by jumps" in text
              and re.search(r"\d\^ +7/\d+ .* by_pointer \[", text) and text.count("^") == 3,
              "which the report marks, in both entries", text)
    run("gcc", "-O2", "-pg", "-fno-optimize-sibling-calls", "-o", exe, source)
    d.ctl("run", "--", exe)
    text = d.ctl("report", exe).stdout
    tap.point("^" not in text and "leaf [" in text, "without jumps nothing is marked", text)


def rolled(tap):
    """From hourly sums, 16 groups each."""
    with Daemon("--raw-age", "1s") as d:
        programs(d)
        exe = os.path.join(d.folder, "callers")
        truth = made_up(d, exe, "mixed", independent, n=400)
        until(lambda: json.loads(d.get("/api/v1/status")[2])["raw_uploads"] == 0)
        said = answer(d, exe, "callee")
        got = rows(said)
        tap.point(said["regression"]["equations"] in (16, 32), "a sum of an hour is 16 equations", said["regression"])
        # Groups are drawn at random: an interval of 95 % misses in 1 of 20 runs, one 4 times as wide (8 standard
        # errors, 12 degrees of freedom) in 1 of 100,000.
        width = {k: 4 * max(got[k]["high"] - got[k]["seconds"], got[k]["seconds"] - got[k]["low"])
                 for k in COST if got[k]["low"] is not None}
        tap.point(said["method"] == "calls" or all(abs(got[k]["seconds"] - truth[k]) <= width[k] for k in COST),
                  "4 times their intervals hold the truth, or they are refused", (got, said["regression"], truth))


def programs(d):
    exe = os.path.join(d.folder, "callers")
    done = run("gcc", "-pg", "-O1", "-fno-inline", "-o", exe, os.path.join(ROOT, "tests/programs/callers.c"))
    assert done.returncode == 0, done.stderr
    return exe


with Tap() as tap, Daemon() as d:
    exe = programs(d)
    regression(tap, d, exe)
    together(tap, d, exe)
    refusals(tap, d, exe)
    below(tap, d, exe)
    many(tap, d)
    measured(tap, d)
    jumps(tap, d)
    made_up(d, exe, "round", independent, extra=[("callee", "tiny", 3)])  # last: a cycle is one for all time
    refused(tap, d, exe, "round", "the function is in a cycle; times of its members are not told apart")
    bad = d.get(f"/api/v1/builds/{answer(d, exe, 'callee')['build_id']}/functions/0x1/callers?method=guess")
    tap.point(bad[0] == 400 and b"best, stacks, regression, calls" in bad[2], "another method", bad)
    rolled(tap)
