#!/usr/bin/python3
"""profctl cycles on a program that has one cycle, with a rare way back."""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
from harness import Daemon, Tap, run, until  # noqa: E402

SOURCE = """#define OWN __attribute__((noinline))
static volatile int n;
OWN void loop(int depth);
OWN void parse(int i) { n += i; }
OWN void handle(int i, int depth) { parse(i); parse(i); if (i == 7 && depth == 0) loop(1); }
OWN void loop(int depth) { for (int i = 0; i < 10; i++) handle(i, depth); }
int main(void) { loop(0); return 0; }
"""

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
    tap.point("cycle 1: 2 functions" in text and "without this 1 arc (1 call) it is no cycle" in text
              and "handle -> loop" in text and re.search(r", (<0\.01|\d+\.\d\d) seconds in it and ", text), "as text",
              text)
    tap.point(d.ctl("cycles", exe, "-l", "host=nowhere").returncode == 1, "of nothing")
