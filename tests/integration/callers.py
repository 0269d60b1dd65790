#!/usr/bin/python3
"""profctl callers against the truth: measured from stacks in a real run, by numbers of calls where no stacks were
taken."""
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


def gmon(at, borders, calls, ticks, path):
    g = Gmon(*borders, bins=(borders[1] - borders[0]) // 4)
    for name, n in calls.items():
        g.arc(at[name] + 16, at["callee"], n)
    g.tick(at["callee"] + 16, ticks)
    return g.write(path)


def answer(d, *arguments):
    done = d.ctl("callers", *arguments, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else {"rows": [], "error": done.stderr}


def rows(said):
    return {r["caller"]: r for r in said["rows"]}


def upload(d, exe, label, files):
    done = d.ctl("upload", "-e", exe, "-l", f"set={label}", *files)
    assert done.returncode == 0, done.stderr


def made_up(d, exe, label, draw, n=60):
    """n processes with these calls; their ticks are those that the costs give, and vary as ticks do."""
    at, borders = {k: a for k, (a, _) in symbols(exe).items()}, bounds(exe)
    chance, files = random.Random(f"callers {label}"), []
    for i in range(n):
        calls = draw(chance, i)
        mean = sum(calls[k] * COST[k] for k in calls)
        ticks = max(0, round(chance.gauss(mean, mean ** 0.5)))
        files.append(gmon(at, borders, calls, ticks, os.path.join(d.folder, f"{label}{i}")))
    upload(d, exe, label, files)


def independent(chance, _):
    return {k: 1 + int(chance.random() ** 2 * 100 / COST[k]) for k in COST}


def by_calls(tap, d, exe):
    made_up(d, exe, "mixed", independent)
    said = answer(d, exe, "callee", "-l", "set=mixed")
    got = rows(said)
    total, calls = sum(r["total_seconds"] for r in said["rows"]), sum(r["calls"] for r in said["rows"])
    tap.point(said["method"] == "calls" and said["stacks_refused"] == "no stacks were taken"
              and all(r["method"] == "calls" and r["low"] is None and r["total_seconds"] == r["seconds_by_calls"]
                      and math.isclose(r["total_seconds"], total * r["calls"] / calls) for r in said["rows"])
              and set(got) == set(COST),
              "without stacks, by numbers of calls", said)
    text = d.ctl("callers", exe, "callee", "-l", "set=mixed").stdout
    tap.point("Not measured: no stacks were taken." in text and "divided by numbers of calls (calls)" in text
              and text.count(" calls  ") >= 4, "as a table", text)
    table = list(csv.DictReader(io.StringIO(d.ctl("callers", exe, "callee", "-l", "set=mixed", "-f", "csv").stdout)))
    tap.point([r["caller"] for r in table] == [r["caller"] for r in said["rows"]]
              and all(float(r["total_seconds"]) == got[r["caller"]]["total_seconds"] and r["method"] == "calls"
                      and int(r["calls"]) == got[r["caller"]]["calls"] for r in table), "as CSV", table)
    for method in ("calls", "stacks"):
        said = answer(d, exe, "callee", "-l", "set=mixed", "--method", method)
        tap.point(said["method"] == "calls" and rows(said) == got
                  and said["stacks_refused"] == ("no stacks were taken" if method == "stacks" else None),
                  f"{method}, if asked for", said)
    made_up(d, exe, "idle", lambda c, i: {"tiny": 1, "small": 2}, n=3)
    lines = [line.split() for line in d.ctl("callers", exe, "callee", "-l", "set=idle").stdout.splitlines()]
    costs = {line[-1]: line[-4] for line in lines if line[-1] in COST}
    tap.point(costs == {"tiny": "-", "small": "-"}, "without a tick, the time of a call is not known", lines)
    said = answer(d, exe, "main", "-l", "set=mixed")
    tap.point(not said["rows"] and "error" in said, "a function without calls or time", said)


def many(tap, d):
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
    tap.point(said["row_count"] == 70 and len(said["rows"]) == 70, "70 callers", said.get("error"))
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
    tap.point(said["method"] == "stacks" and said["stacks_refused"] is None
              and all(r["method"] == "stacks" and r["low"] <= r["total_seconds"] <= r["high"] for r in said["rows"]),
              "with stacks, times are measured", said)
    tap.point({k: r["calls"] for k, r in got.items()} == {k: c for k, (c, _) in truth.items()}, "calls are exact", got)
    tap.point(all(r["calls_per_caller_call"] == r["calls"] / (r["calls"] / n)
                  for k, n in (("tiny", 80000), ("small", 20000), ("large", 1200), ("huge", 70)) for r in [got[k]]),
              "calls per call of the caller", got)
    text = d.ctl("callers", exe, "callee").stdout
    each = {line.split()[-1]: line.split()[-4] for line in text.splitlines() if " stacks " in line}
    known = {k: math.floor(math.log10(2 * r["total_seconds"] / (r["high"] - r["low"]))) + 1 for k, r in got.items()}
    cost = {k: 1e6 * r["seconds_per_call"] for k, r in got.items()}
    tap.point(set(each) == set(got) and all(len(v.replace(".", "").strip("0")) <= max(1, min(4, known[k]))
                                            and abs(float(v) - cost[k]) <= 0.5 * cost[k] for k, v in each.items()),
              "the time of a call has the digits that its interval knows", (text, known))
    total = sum(t for _, t in truth.values())
    scale = total / sum(r["total_seconds"] for r in said["rows"])
    wrong = sum(abs(got[k]["total_seconds"] * scale - t) for k, (_, t) in truth.items()) / 2 / total
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
              and got["middle"]["total_seconds"] > 0
              and "has time and no calls" not in d.ctl("callers", exe, "leaf").stdout,
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


NO_RETURNS = """#include <setjmp.h>
static jmp_buf back;
volatile int sink;
__attribute__((noinline, noreturn)) static void fail(int n) { sink += n; longjmp(back, 1); }
__attribute__((noinline, noreturn)) void refuse(int n) { sink -= n; fail(n + 1); }
__attribute__((noinline)) void innocent(int n) { sink ^= n; }
__attribute__((noinline, noreturn)) void by_pointer(void (*volatile f)(int), int n)
{
    sink -= n;
    f(n + 1);
    __builtin_unreachable();
}
__attribute__((noinline)) void last(int n) { sink ^= n; }
int main(void)
{
    for (volatile int i = 0; i < 70; i++) if (!setjmp(back)) refuse(i);
    for (volatile int i = 0; i < 30; i++) if (!setjmp(back)) by_pointer(fail, i);
    for (int i = 0; i < 7; i++) innocent(i);
    last(1);
    return 0;
}
"""


def no_returns(tap, d):
    """A function may end with a call that does not return. Its return address is the first one of the next function, or
    of padding; the function that calls is the one before."""
    source, exe = os.path.join(d.folder, "returns.c"), os.path.join(d.folder, "returns")
    with open(source, "w") as f:
        f.write(NO_RETURNS)
    for options in (("-Os", "-fno-toplevel-reorder", "-fno-reorder-functions"), ("-O2", "-mfentry")):
        done = run("gcc", "-pg", *options, "-o", exe, source)
        assert done.returncode == 0, done.stderr
        done = d.ctl("run", "--rate", "0", "--", exe)
        assert done.returncode == 0, done.stderr
        report = d.json("report", exe, "--json")
        f = {x["name"]: {r["name"]: r["calls"] for r in x["callers"]} for x in report["functions"]}
        tap.point(f["fail"] == {"refuse": 70, "by_pointer": 30} and f["innocent"] == {"main": 7} and "[gap]" not in f,
                  f"{' '.join(options)}: a call that does not return and stands last is its function's", f)
    run("gcc", "-pg", "-Os", "-fno-toplevel-reorder", "-fno-reorder-functions", "-Wl,--build-id=md5", "-o", exe, source)
    path = os.path.join(d.folder, "returns.callgrind")
    with open(path, "w") as f:
        f.write(f"version: 1\ncmd: {exe}\nevents: Ir\nob={exe}\nfl=returns.c\n"
                "fn=innocent\n1 9\ncfn=fail\ncalls=3 1\n1 8\nfn=refuse\n1 9\ncfn=fail\ncalls=5 1\n1 8\nfn=fail\n1 16\n")
    done = d.ctl("upload", "-e", exe, "-f", "callgrind", path)
    assert done.returncode == 0, done.stderr
    f = {x["name"]: {r["name"]: r["calls"] for r in x["callers"]} for x in d.json("report", exe, "--json")["functions"]}
    tap.point(f["fail"] == {"innocent": 3, "refuse": 5}, "a file that names the caller only means its function", f)


def programs(d):
    exe = os.path.join(d.folder, "callers")
    done = run("gcc", "-pg", "-O1", "-fno-inline", "-o", exe, os.path.join(ROOT, "tests/programs/callers.c"))
    assert done.returncode == 0, done.stderr
    return exe


with Tap() as tap, Daemon() as d:
    exe = programs(d)
    by_calls(tap, d, exe)
    many(tap, d)
    measured(tap, d)
    jumps(tap, d)
    no_returns(tap, d)
    bad = d.get(f"/api/v1/builds/{answer(d, exe, 'callee')['build_id']}/functions/0x1/callers?method=guess")
    tap.point(bad[0] == 400 and b"best, stacks, calls" in bad[2], "another method", bad)
