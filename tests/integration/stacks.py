"""Measured times: a program that knows the CPU time of its paths runs under the collector, without -pg. Its callers
have their times in the report, in every format real stacks are marked as such, and time= chooses."""
import collections
import csv
import io
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# "openapi" and others there are no modules of the validator's
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != HERE]
from jsonschema import Draft202012Validator  # noqa: E402
sys.path.insert(0, HERE)
from harness import ROOT, Daemon, Tap, run, run_until  # noqa: E402

REPORT = Draft202012Validator(json.load(open(os.path.join(ROOT, "schema/report.schema.json"), encoding="utf-8")))
CALLERS = ("tiny", "small", "large", "huge")
SECONDS = 2


def truth_of(output):
    """CALLER CALLS SECONDS → {caller: (calls, seconds)}"""
    rows = [line.split() for line in output.splitlines()]
    return {name: (int(calls), float(seconds)) for name, calls, seconds in rows}


def report(d, exe, *options):
    return json.loads(d.ctl("report", exe, "--json", *options).stdout)


def by_name(said):
    return {f["name"]: f for f in said["functions"]}


def counted(d, exe, flags, field):
    """Builds and runs the program until each caller of callee has the field: a run has some 5 ticks below tiny, so one
    in 150 has none. Returns the executable, what the program said and the report."""
    def all_have(path, _):
        rows = {r["name"]: r for r in by_name(report(d, path))["callee"]["callers"]}
        return all(rows.get(name, {}).get(field) for name in CALLERS)

    path, done = run_until(all_have, d, exe, ["-O2", *flags, os.path.join(ROOT, "tests/programs/callers.c")],
                           "run", "--rate", "250", "--", (SECONDS, "7"))
    return path, truth_of(done.stdout), report(d, path)


def check_times(tap, said, truth):
    functions, stacks = by_name(said), said.get("stacks")
    faults = [e.message for e in REPORT.iter_errors(said)]
    tap.point(not faults, "the report follows its schema", faults[:5])
    tap.point(stacks is not None and stacks["coverage"] >= 0.95 and said["time"] == "measured",
              "nearly every tick has a stack, and measured times are the default", stacks)
    wrong = {n: (functions[n]["measured_total"], truth[n][1]) for n in CALLERS
             if abs(functions[n]["measured_total"] - truth[n][1]) > 0.2 * SECONDS}
    tap.point(not wrong, "the time of each caller is about what the program's clock says", wrong)
    callee = functions["callee"]
    rows = {r["name"]: r for r in callee["callers"]}
    total = sum(r["measured_total"] for r in rows.values())
    tap.point(set(CALLERS) <= set(rows) and abs(total - callee["measured_total"]) < 1e-9,
              "the rows of its callers add up to the callee's time", (list(rows), total, callee["measured_total"]))
    tap.point(all(r["measured_low"] <= r["measured_total"] <= r["measured_high"] for r in rows.values()),
              "each row has an interval", rows)


def check_choice(tap, d, exe, said):
    calls = report(d, exe, "--time", "calls")
    pairs = [(by_name(said)[n], f) for n, f in by_name(calls).items()]
    fields = ("self_seconds", "children_seconds", "percent", "measured_total")
    tap.point(calls["time"] == "calls" and all(a[k] == b[k] for a, b in pairs for k in fields),
              "time=calls changes the order, not the fields", calls["time"])
    order = [f["measured_total"] for f in said["functions"]]
    tap.point(order == sorted(order, reverse=True), "measured times sort by default", order)
    text = d.ctl("report", exe, "--verbose").stdout
    tap.point("measured times" in text and "Stacks " in text, "the heading says which times are shown", text[:1500])
    text = d.ctl("report", exe, "--time", "calls").stdout
    tap.point("by numbers of calls" in text, "and which are not", text[:1500])
    bad = d.ctl("report", exe, "--time", "guessed")
    tap.point(bad.returncode != 0 and "guessed" in bad.stderr, "another word is refused", bad.stderr)


def check_formats(tap, d, exe):
    def shown(form, *options):
        return d.ctl("report", exe, "-f", form, *options).stdout

    folded = shown("folded")
    tap.point("synthetic" not in folded and ";main;" in folded and ";huge;callee " in folded, "folded: real stacks",
              folded)
    tap.point(shown("folded", "--time", "calls").startswith("[synthetic stacks]"), "folded: derived ones are marked")
    name = json.loads(shown("speedscope"))["profiles"][0]["name"]
    tap.point(name == "stacks", "speedscope: the profile's name says so", name)
    raw = d.ctl("report", exe, "-f", "pprof", binary=True).stdout
    tap.point(b"stacks are those that ticks found" in raw and b"synthetic" not in raw, "pprof: a comment says so")
    tap.point("Inclusive times: measured" in shown("callgrind"), "callgrind: a line says so")
    graph = json.loads(shown("graph"))
    arcs = [r for f in report(d, exe)["functions"] for r in f["callees"] if "measured_low" in r]
    said = {tuple(round(e[k], 9) for k in ("total_seconds", "low", "high", "stacks"))
            for e in graph["edges"] if "low" in e}
    want = {tuple(round(r[f"measured_{k}"], 9) for k in ("total", "low", "high", "samples")) for r in arcs}
    tap.point(said and graph["time"] == "measured" and said == want,
              "graph: edges have measured times and intervals", (said, want))
    graph = json.loads(shown("graph", "--time", "calls"))
    tap.point(graph["time"] == "calls" and graph["stacks"]["count"] > 0
              and not any("low" in e for e in graph["edges"] + graph["nodes"]),
              "graph: none where times are by calls", graph["edges"][:3])
    rows = list(csv.DictReader(io.StringIO(shown("csv"))))
    tap.point(all(float(r["measured_low"]) <= float(r["measured_total"]) for r in rows),
              "csv: columns beside the others", rows[:2])


def check_series(tap, d, said):
    """A step of a day, or two around midnight, beside the report of all."""
    callee = by_name(said)["callee"]
    path = f"/api/v1/builds/{said['build_id']}/functions/{callee['address']}/series?step=1d"
    rows, calls = ([r for r in json.loads(d.get(path + time)[2])["rows"]] for time in ("", "&time=calls"))
    total = sum(r["measured_total"] for r in rows)
    tap.point(abs(total - callee["measured_total"]) < 1e-9 and {r["time_shown"] for r in rows} == {"measured"},
              "series: measured times are shown", rows)
    tap.point({r["time_shown"] for r in calls} == {"calls"}
              and [{**r, "time_shown": 0} for r in calls] == [{**r, "time_shown": 0} for r in rows],
              "series: with time=calls the others, and both are there", calls)
    tap.point(rows[0]["measured_low"] <= rows[0]["measured_total"] <= rows[0]["measured_high"],
              "series: with the interval", rows[0])
    status, _, body = d.get(path + "&time=guessed")
    tap.point(status == 400 and b"guessed" in body, "series: another word is refused", body)


def check_again(tap, d, exe, what, most=1.0):
    """An export read by another daemon. most: of all ticks, those whose outer callers may be unknown."""
    def named(text):  # the other daemon has no names of the vDSO
        return re.sub(r"\[unknown [0-9a-f]+\]|__vdso_\w+", "[vdso]", text)

    path, before = exe + ".pb", json.loads(named(d.ctl("report", exe, "--json").stdout))
    paths = named(d.ctl("report", exe, "-f", "folded").stdout)
    saved = d.ctl("report", exe, "-f", "pprof", "-o", path)
    with Daemon() as other:
        done = other.ctl("upload", path)
        after, again = (named(other.ctl("report", exe, *o).stdout) for o in (["--json"], ["-f", "folded"]))
        after = json.loads(after)
    def ticks(folded):  # of each path: two addresses of the vDSO have one name
        found = collections.Counter()
        for line in folded.splitlines():
            names, count = line.rsplit(" ", 1)
            found[names] += float(count)
        return {names: round(count, 6) for names, count in found.items()}

    tap.point(saved.returncode == done.returncode == 0 and ticks(paths) == ticks(again),
              f"{what}: a pprof export, read again: the same stacks with the same ticks",
              (done.stderr, paths[:900], again[:900]))
    counts = [{k: r["stacks"][k] for k in ("count", "incomplete")} for r in (before, after)]
    tap.point(counts[0] == counts[1] and counts[0]["incomplete"] <= most * counts[0]["count"],
              f"{what}: as many of them without their outer callers", counts)
    # A tick that met no stack is in the report's ticks, and not in an export of stacks.
    alone = round(before["stacks"]["count"] / before["stacks"]["coverage"]) - before["stacks"]["count"]
    shown = [[f for f in r["functions"] if f["measured_total"] and f["name"] != "[vdso]"] for r in (before, after)]
    own = [{f["name"]: f["ticks"] for f in functions} for functions in shown]
    more = [own[0][name] - own[1].get(name, 0) for name in own[0]]
    times = [{f["name"]: f["measured_total"] for f in functions} for functions in shown]
    arcs = [{(row["name"], f["name"]): row["measured_total"] for f in r["functions"] for row in f["callers"]
             if row.get("measured_total") and "[vdso]" not in (row["name"], f["name"])} for r in (before, after)]
    tap.point(times[0] == times[1] and arcs[0] == arcs[1] and arcs[0] and min(more) >= 0 and sum(more) <= alone,
              f"{what}: the same measured times",
              (times, own, alone, {k: (arcs[0].get(k), arcs[1].get(k)) for k in set(arcs[0]) | set(arcs[1])
                                   if arcs[0].get(k) != arcs[1].get(k)}))


def check_interrupted(tap, d):
    """Stacks that begin in [incomplete], because a signal's handler is on top of what it interrupted."""
    def found(path, done):
        """A tick found a handler, and each tick has its stack: exports have no others."""
        seen = {} if done.returncode else report(d, path)["stacks"]
        return not seen or seen["incomplete"] > 0 and seen["coverage"] == 1

    exe, done = run_until(found, d, "interrupted", ["-O2", os.path.join(ROOT, "tests/programs/interrupted.c")],
                          "run", "--rate", "250", "--", ("20",))
    tap.point(done.returncode == 0 and report(d, exe)["stacks"]["incomplete"] > 0,
              "stacks of a signal's handler are marked", done.stderr)
    check_again(tap, d, exe, "interrupted")


BEFORE_LAST_CALL = """#include <stdlib.h>
volatile unsigned sink, never;
__attribute__((noinline)) void leaf(unsigned n) { for (unsigned i = 0; i < n; i++) sink += i; }
__attribute__((noinline, noreturn)) void refuse(void) { sink--; abort(); }
__attribute__((noinline)) void jumps(unsigned n) { never++; leaf(n + 100000000); }
int main(void) { if (never) refuse(); for (int i = 0; i < 4; i++) jumps(i); return 0; }
"""


def check_before(tap, d):
    """A function that a tick's stack has by its jump only, and that stands behind a call that does not return."""
    source, exe = os.path.join(d.folder, "jumps.c"), os.path.join(d.folder, "jumps")
    with open(source, "w") as f:
        f.write(BEFORE_LAST_CALL)
    built = run("gcc", "-Os", "-foptimize-sibling-calls", "-fno-toplevel-reorder", "-fno-reorder-functions", "-o", exe,
                source)
    done = d.ctl("run", "--rate", "250", "--", exe)
    folded = d.ctl("report", exe, "-f", "folded").stdout
    tap.point(built.returncode == done.returncode == 0 and ";main;jumps;leaf " in folded, "a jump is inferred", folded)
    check_again(tap, d, exe, "jumps")


def check_tree(tap, d, exe, said):
    tree = json.loads(d.ctl("report", exe, "-f", "tree").stdout)
    n = tree["nodes"]
    columns = [len(tree[k]) for k in ("parent", "frame", "self_seconds", "cut", "inferred")]
    tap.point(not tree["synthetic"] and columns == [n] * 5 and all(p < i for i, p in enumerate(tree["parent"])),
              "tree: columns of one length, parents first", (n, columns))
    tap.point(abs(sum(tree["self_seconds"]) - tree["total_seconds"]) < 1e-9 and tree["left_out"]["nodes"] == 0,
              "tree: self times add up to the whole", (sum(tree["self_seconds"]), tree["total_seconds"]))
    few = json.loads(d.ctl("report", exe, "-f", "tree", "--limit", "3").stdout)
    tap.point(few["nodes"] == 3 and abs(sum(few["self_seconds"]) - tree["total_seconds"]) < 1e-9 and
              few["left_out"]["nodes"] == n - 3 and abs(sum(few["cut"]) - few["left_out"]["seconds"]) < 1e-9,
              "tree: what a limit cuts is counted above it", few)
    derived = json.loads(d.ctl("report", exe, "-f", "tree", "--time", "calls").stdout)
    tap.point(derived["synthetic"], "tree: derived where times are by calls")


def check_calls(tap, d):
    """With -pg calls are exact: a call from each caller has a measured time, and gprof's rule is marked as wrong."""
    exe, truth, said = counted(d, "counted", ["-pg"], "measured_per_call")
    rows = {r["name"]: r for r in by_name(said)["callee"]["callers"] if r["name"] in CALLERS}
    tap.point({n: r["calls"] for n, r in rows.items()} == {n: calls for n, (calls, _) in truth.items()},
              "calls are exact", rows)
    tap.point(all(abs(r["measured_per_call"] * r["calls"] - r["measured_total"]) < 1e-9 for r in rows.values()) and
              rows["huge"]["measured_per_call"] > 100 * rows["tiny"]["measured_per_call"],
              "a call from each caller has a time of its own", rows)
    tap.point(rows["huge"]["measured_differs"], "the time by numbers of calls is marked", rows["huge"])
    text = d.ctl("report", exe, "--graph").stdout
    tap.point(" calls/call per call\n" in text and "\n*         marks a measured time; " in text,
              "the text has both", text[:2500])


def main():
    with Tap() as tap, Daemon() as d:
        exe, truth, said = counted(d, "callers", ["-fno-omit-frame-pointer"], "measured_total")
        check_times(tap, said, truth)
        check_choice(tap, d, exe, said)
        check_formats(tap, d, exe)
        check_series(tap, d, said)
        check_tree(tap, d, exe, said)
        check_again(tap, d, exe, "callers", 0.05)
        check_interrupted(tap, d)
        check_before(tap, d)
        check_calls(tap, d)


main()
