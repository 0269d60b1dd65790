#!/usr/bin/python3
"""profctl cycles on a program that has one cycle, with a rare way back."""
import csv
import json
import os
import re
import sys

sys.dont_write_bytecode = True
from harness import Daemon, Tap, run, until  # noqa: E402
from shop import PAIRS, TANGLED, build_id, send_tangle  # noqa: E402

SOURCE = """#define OWN __attribute__((noinline))
static volatile int n;
OWN void loop(int depth);
OWN void parse(int i) { n += i; }
OWN void handle(int i, int depth) { parse(i); parse(i); if (i == 7 && depth == 0) loop(1); }
OWN void loop(int depth) { for (int i = 0; i < 10; i++) handle(i, depth); }
int main(int n, char **unused) { (void)unused; loop(n > 1); return 0; }
"""
# By numbers of calls nearly all time of spin is that of other; by stacks it is the cycle's.
SPINS = """#include <time.h>
#define OWN __attribute__((noinline))
static volatile int n;
OWN void spin(int k) { for (int i = 0; i < k; i++) n += i; }
OWN void a(int depth);
OWN void b(int depth) { spin(90000); if (depth > 0) a(depth - 1); n++; }
OWN void a(int depth) { spin(90000); if (depth > 0) b(depth - 1); n++; }
OWN void other(void) { for (int i = 0; i < 400; i++) spin(1); n++; }
int main(void) { while (clock() < 3 * CLOCKS_PER_SEC / 10) { a(6); other(); } return 0; }
"""


def measured(tap, d):
    """Where stacks cover the ticks, a cycle's time is measured, as that of its members is."""
    source, exe = os.path.join(d.folder, "spins.c"), os.path.join(d.folder, "spins")
    with open(source, "w") as f:
        f.write(SPINS)
    done = run("gcc", "-pg", "-O1", "-fno-inline", "-fno-omit-frame-pointer", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    done = d.ctl("run", "--rate", "250", exe)
    assert done.returncode == 0, done.stderr
    until(lambda: d.ctl("cycles", exe).returncode == 0)
    said, report = (json.loads(d.ctl(*what, exe, "--json").stdout) for what in (["cycles"], ["report"]))
    whole = [c["self_seconds"] + c["children_seconds"] for c in said["rows"]]
    members = {f["name"]: f["measured_total"] for f in report["functions"] if f["name"] in ("a", "b")}
    tap.point(said["time"] == report["time"] == "measured" and len(whole) == 1 and len(members) == 2
              and max(members.values()) > 0 and whole[0] >= max(members.values()) - 1e-9,
              "a cycle's measured time is not less than a member's", (said, members))
    text = d.ctl("cycles", exe).stdout
    tap.point("% of the time (measured), " in text, "as the text says", text)


def sampled(tap, d):
    """Without -pg, calls are how often ticks found a member below another one: they are marked."""
    exe = os.path.join(d.folder, "guessed")
    done = run("gcc", "-O1", "-fno-inline", "-fno-omit-frame-pointer", "-o", exe, os.path.join(d.folder, "spins.c"))
    assert done.returncode == 0, done.stderr
    until(lambda: d.ctl("run", "--rate", "250", exe).returncode == 0
          and len(json.loads(d.ctl("cycles", exe, "--json").stdout or '{"rows":[]}')["rows"]) > 0)
    text = d.ctl("cycles", exe).stdout
    table = list(csv.DictReader(d.ctl("cycles", exe, "-f", "csv").stdout.splitlines()))
    inside = [int(r["calls_inside"]) for r in table if r["row"] == "arc"]
    tap.point(inside and all(re.search(rf"\n +~{n}  [ab] -> ", text) for n in inside)
              and re.search(r" below; ~\d+ calls from outside, ~\d+ inside\n", text)
              and re.search(r" \(~\d+ calls?\):\n", text) and "\n~: sampled, at least in part" in text
              and text.startswith("not exact: ") and "sampled" in text.split("\n")[0]
              and all(r["calls_sampled"] == "1" for r in table), "sampled calls are marked", (text, table))
    text = d.ctl("functions", "--name", "spin").stdout
    tap.point(re.search(r" started\nnot exact: .*sampled.*\n", text), "and so is the list of functions", text)
    for verb in (["callers", exe, "spin"], ["report", exe], ["functions", "--name", "spin"]):
        rows = list(csv.DictReader(d.ctl(*verb, "-f", "csv").stdout.splitlines()))
        tap.point(rows and all(r["calls_sampled"] == "1" for r in rows), f"{verb[0]} -f csv says it, too", rows)

def limited(tap, d):
    """Every list is limited, and says so."""
    exe = send_tangle(d)
    wide = TANGLED * (TANGLED - 1)
    said = json.loads(d.get(f"/api/v1/builds/{build_id(exe)}/cycles?limit=7")[2])
    first = said["rows"][0]
    tap.point((said["count"], len(said["rows"])) == (1 + PAIRS, 7) and first["member_count"] == TANGLED,
              "the cycles with the most time, as many as asked for", said)
    tap.point([len(first[k]) for k in ("members", "arcs", "break")] == [7, 7, 7]
              and (first["arc_count"], first["break_count"], first["break_calls"]) == (wide, wide // 2, wide // 2),
              "with as many members, arcs and arcs to remove; numbers are of all", first)
    text = d.ctl("cycles", exe).stdout
    tap.point(f" {TANGLED - 20} more; --limit shows them\n" in text and f" {wide - 20} more; --limit" in text
              and f" {wide // 2 - 20} more; --limit" in text
              and f"\n{1 + PAIRS - 20} cycles with less time; --limit shows them\n" in text, "so the text says", text)


def narrowed(tap, d, exe):
    """Processes that never go back are in the cycle of all stored time; their report says that it is not theirs."""
    assert d.ctl("run", "-l", "way=forth", exe, "forth").returncode == 0
    report, whole = (d.json("report", exe, *narrow, "--json") for narrow in (["-l", "way=forth"], []))
    texts = [d.ctl("report", exe, *narrow).stdout for narrow in (["-l", "way=forth"], [])]
    (cycle,) = report["cycles"]
    tap.point(cycle["closed"] is False and cycle["calls_inside"] == 10 and report["totals"]["open_cycles"] == 1
              and whole["cycles"][0]["closed"] is True and whole["totals"]["open_cycles"] == 0,
              "a cycle that is closed by others only says so", (cycle, report["totals"]))
    line = "\nCycles    are those of all stored time: the calls of this report alone do not close 1 of 1\n"
    tap.point(line in texts[0] and "\nCycles " not in texts[1], "as text, too", texts)


with Tap() as tap, Daemon() as d:
    source, exe = os.path.join(d.folder, "p.c"), os.path.join(d.folder, "p")
    with open(source, "w") as f:
        f.write(SOURCE)
    done = run("gcc", "-pg", "-O1", "-fno-inline", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    done = d.ctl("run", exe)
    assert done.returncode == 0, done.stderr
    until(lambda: d.ctl("cycles", exe).returncode == 0)
    done = d.ctl("cycles", exe, "--json")
    rows = json.loads(done.stdout)["rows"] if done.returncode == 0 else []
    tap.point(len(rows) == 1 and sorted(m["name"] for m in rows[0]["members"]) == ["handle", "loop"],
              "one cycle of two functions", done.stderr + str(rows))
    cycle = rows[0]
    tap.point([(a["caller"], a["callee"], a["calls"]) for a in cycle["arcs"]]
              == [("loop", "handle", 20), ("handle", "loop", 1)], "calls inside, the most first", cycle)
    tap.point([(a["caller"], a["callee"]) for a in cycle["break"]] == [("handle", "loop")]
              and cycle["break_count"] == cycle["break_calls"] == 1, "the rare way back breaks it", cycle)
    text = d.ctl("cycles", exe).stdout
    tap.point("cycle 1: 2 functions" in text and "to break it, remove this arc (1 call):" in text
              and "handle -> loop" in text and re.search(r", (<0\.01|\d+\.\d\d) seconds in it and ", text), "as text",
              text)
    table = d.ctl("cycles", exe, "-f", "csv").stdout.splitlines()
    tap.point(table[0] == "cycle,row,caller,function,calls_inside,calls_outside,self_seconds,calls_sampled"
              and [line.split(",")[1:5] for line in table[3:]]
              == [["arc", '"loop"', '"handle"', "20"], ["arc", '"handle"', '"loop"', "1"],
                  ["remove", '"handle"', '"loop"', "1"]]
              and sorted(line.split(",")[1:4] for line in table[1:3])
              == [["member", "", '"handle"'], ["member", "", '"loop"']], "as CSV", table)
    tap.point(d.ctl("cycles", exe, "-f", "json").stdout == d.ctl("cycles", exe, "--json").stdout, "-f json is --json")
    tap.point(d.ctl("cycles", exe, "-l", "host=nowhere").returncode == 1, "of nothing")
    narrowed(tap, d, exe)
    measured(tap, d)
    sampled(tap, d)
    limited(tap, d)
