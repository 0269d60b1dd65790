"""The numbers that must come out, end to end: gprof's manual's cycle example through profctl, socket, SQLite and JSON;
sums of a thousand uploads; the same ids twice."""
import glob
import os
import re
import shutil

from harness import ROOT, Daemon, Tap, programs
from example_gmon import example


def near(a, b):
    return abs(a - b) < 1e-9


def row(rows, name):
    """The only row of that name."""
    found = [r for r in rows if r["name"] == name]
    assert len(found) == 1, f"{len(found)} rows named {name} in {[r['name'] for r in rows]}"
    return found[0]


def check_cycle(tap, report, times=1):
    f = {x["name"]: x for x in report["functions"]}
    (cycle,) = report["cycles"]
    point = tap.point
    t = times
    point(near(report["totals"]["seconds"], 1.93 * t), "the total is 1.93 s", report["totals"])
    point(near(cycle["self_seconds"], 1.77 * t) and near(cycle["children_seconds"], 0)
          and round(cycle["percent"], 2) == 91.71, "the cycle as a whole: 91.71 %, 1.77, 0", cycle)
    point((cycle["calls_outside"], cycle["calls_inside"]) == (1 * t, 5 * t), "called 1+5", cycle)
    (caller,) = cycle["callers"]
    point((caller["name"], caller["calls"], caller["of_calls"]) == ("main", t, t)
          and near(caller["self_seconds"], 1.77 * t), "its caller: main 1/1", caller)
    members = [(m["name"], m["calls"], round(m["self_seconds"] / t, 9)) for m in cycle["members"]]
    point(members == [("b", 3 * t, 1.02), ("a", 2 * t, 0.75)], "its members: b 1.02 called 3, a 0.75 called 2", members)
    (callee,) = cycle["callees"]
    point((callee["name"], callee["calls"], callee["of_calls"]) == ("c", 6 * t, 6 * t), "below it: c 6/6", callee)
    b, a, main, c = f["b"], f["a"], f["main"], f["c"]
    point(round(b["percent"], 2) == 52.85 and round(a["percent"], 2) == 38.86, "b 52.85 %, a 38.86 %",
          (b["percent"], a["percent"]))
    point((b["calls_outside"], b["calls_inside"]) == (0, 3 * t)
          and (a["calls_outside"], a["calls_inside"]) == (t, 2 * t), "members' calls: b 0+3, a 1+2")
    point(row(b["callers"], "a")["calls"] == 3 * t and row(b["callers"], "a")["inside"],
          "b's caller: a 3, inside the cycle")
    r = row(b["callees"], "c")
    point(row(b["callees"], "a")["calls"] == 2 * t and (r["calls"], r["of_calls"]) == (3 * t, 6 * t),
          "b's callees: a 2, c 3/6", b["callees"])
    r = row(a["callers"], "main")
    point((r["calls"], r["of_calls"]) == (t, t) and near(r["self_seconds"] + r["children_seconds"], 1.77 * t)
          and row(a["callers"], "b")["calls"] == 2 * t, "a's callers: main 1/1 with 1.77, b 2", a["callers"])
    r = row(a["callees"], "c")
    point(row(a["callees"], "b")["calls"] == 3 * t and (r["calls"], r["of_calls"]) == (3 * t, 6 * t),
          "a's callees: b 3, c 3/6", a["callees"])
    point(near(main["self_seconds"], 0.16 * t) and near(main["children_seconds"], 1.77 * t)
          and near(main["percent"], 100), "main 100 %, 0.16, 1.77", main)
    s = f["_start"]
    point(near(s["percent"], 100) and near(s["self_seconds"], 0) and near(s["children_seconds"], 1.93 * t)
          and s["spontaneous"], "start 100 %, 0, 1.93, spontaneous", s)
    point(c["calls"] == 6 * t and sorted((r["name"], r["calls"], r["of_calls"]) for r in c["callers"])
          == [("a", 3 * t, 6 * t), ("b", 3 * t, 6 * t)], "c: 6 calls, 3/6 from each", c["callers"])
    point(near(sum(x["self_seconds"] for x in report["functions"]), report["totals"]["seconds"]),
          "the sum of self is the total")


def check_manual(tap, text):
    """READING A CALL GRAPH in profctl(1) shows this graph."""
    with open(os.path.join(ROOT, "client/profctl.1"), encoding="utf-8") as f:
        section = f.read().split(".Sh READING A CALL GRAPH\n")[1].split("\n.Sh ")[0]
    shown = section.split(".Bd -literal\n")[1].split(".Ed\n")[0]
    printed = text[text.index("index % time"):]
    tap.point(len(shown.splitlines()) > 15 and printed.startswith(shown), "the manual's call graph is profctl's",
              printed)


def check_itself(tap, folder):
    """a also calls itself 4 times: calls from inside for the cycle and for a, and the rows add up; gprof's own listing
    leaves them out."""
    with Daemon() as d:
        exe = os.path.join(folder, "cycle")
        d.ctl("upload", "-e", exe, example(exe, os.path.join(folder, "again.gmon"), again=4))
        report = d.json("report", exe, "--json")
        (cycle,) = report["cycles"]
        f = {x["name"]: x for x in report["functions"]}
        tap.point((cycle["calls_outside"], cycle["calls_inside"]) == (1, 9)
                  and {m["name"]: m["calls"] for m in cycle["members"]} == {"a": 6, "b": 3}
                  and [f["a"][k] for k in ("calls", "calls_outside", "calls_inside", "self_calls")] == [3, 1, 6, 4],
                  "calls of a member by itself are calls from inside", (cycle, f["a"]))
        text = d.ctl("report", exe).stdout
        rows = re.findall(r"(\d+)\+(\d+) +(<cycle 1 as a whole>|[ab] <cycle 1>)", text)
        tap.point(rows == [("1", "9", "<cycle 1 as a whole>"), ("0", "3", "b <cycle 1>"), ("1", "6", "a <cycle 1>")]
                  and re.search(r"\n +0\.75 +0\.00 +6 +a <cycle 1> \[5\]\n", text), "1+9, 0+3 and 1+6", text)
        (said,) = d.json("cycles", exe, "--json")["rows"]
        tap.point(said["calls_inside"] == sum(a["calls"] for a in said["arcs"]) == 9
                  == sum(m["calls_inside"] for m in said["members"])
                  and [(a["caller"], a["callee"]) for a in said["break"]] == [("b", "a")],
                  "profctl cycles: arcs and members add up to the calls inside", said)
        listing = d.ctl("gprof", exe, os.path.join(folder, "again.gmon")).stdout
        tap.point("1+5       <cycle 1 as a whole>" in listing, "gprof's listing has 1+5", listing)


def main():
    with Tap() as tap, Daemon() as d:
        exe = os.path.join(programs(os.path.join(d.folder, "programs")), "cycle")
        one = example(exe, os.path.join(d.folder, "one.gmon"))
        done = d.ctl("upload", "-e", exe, "-l", "service=cycle", one)
        tap.point(done.returncode == 0, "the example is uploaded", done.stdout + done.stderr)
        check_cycle(tap, d.json("report", exe, "--json"))
        text = d.ctl("report", exe).stdout
        for part, name in (("<cycle 1 as a whole>", "the cycle's own entry"), ("1+5", "called 1+5"),
                           ("1+2", "a's own line"),
                           ("0+3", "b's own line"), ("91.7", "91.7 %"), ("<spontaneous>", "a spontaneous caller"),
                           ("3/6", "3/6")):
            tap.point(part in text, f"the text shows {name}", text)
        check_manual(tap, text)
        check_itself(tap, os.path.join(d.folder, "programs"))

        many = d.ctl("upload", "-e", exe, "-l", "service=cycle", *[one] * 999)
        tap.point(many.returncode == 0, "999 more uploads, each with an id of its own", many.stderr)
        check_cycle(tap, d.json("report", exe, "--json"), times=1000)

        # the same ids once more: the spool's files are delivered, put back, and delivered again
        spool = d.env["PROFD_SPOOL"]
        d.stop()
        spooled = d.ctl("upload", "-e", exe, *[one] * 100)
        files = glob.glob(os.path.join(spool, "*"))
        tap.point(len(files) >= 100, "without a daemon 100 uploads go to the spool",
                  f"{len(files)} files: {spooled.stdout}{spooled.stderr}")
        shutil.copytree(spool, spool + ".copy")
        d.start()
        flushed = d.ctl("upload", "-e", exe, one)
        before = d.json("report", exe, "--json")
        tap.point(before["totals"]["calls"] == 13 * 1101, "the spool is delivered with the next upload",
                  (before["totals"], flushed.stderr))
        for f in glob.glob(os.path.join(spool + ".copy", "*")):
            shutil.copy(f, spool)
        d.ctl("upload", "-e", exe, one)
        after = d.json("report", exe, "--json")
        tap.point(after["totals"]["calls"] == 13 * 1102, "100 ids sent twice count once", after["totals"])
        d.stop()
        d.start()
        tap.point(d.json("report", exe, "--json") == after, "a restart changes nothing")


main()
