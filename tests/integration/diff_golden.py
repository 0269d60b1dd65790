#!/usr/bin/python3
"""profctl diff, whole: its text and its JSON are those of tests/golden/diff, for two versions of a service with made-up
counts. Build-ids, addresses, times of day and folders are masked; numbers of the JSON agree to 1e-9, because libraries
of mathematics differ in the last digit. With the argument `write` the files are written."""
import json
import math
import os
import re
import sys

sys.dont_write_bytecode = True
from harness import ROOT, Daemon, Tap  # noqa: E402
from shop import NOW, build, build_id, fleet  # noqa: E402

FOLDER = os.path.join(ROOT, "tests/golden/diff")
FRESH = "__attribute__((noinline)) int fresh(int i) { return n ^= i; }"
CASES = (("text", ()), ("plan", ("--all", "--plan")), ("judged", ("--metric", "self", "--fail-on", "self>2%")),
         ("json", ("--json",)))


def masked(text, d, ids):
    for name, value in ids.items():
        text = text.replace(value, name).replace(value[:12], name)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text.replace(d.folder, "FOLDER"))
    return re.sub(r'"0x[0-9a-f]+"', '"ADDRESS"', text)


def same(a, b):
    """The same JSON, numbers to 1e-9."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, (int, float)) and not isinstance(b, bool):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return a == b


with Tap() as tap, Daemon() as d:
    a, b = build(d.folder, "one", "", ""), build(d.folder, "two", FRESH, "+ 1")
    fleet(d, a, 1, "1", 1, 0, NOW - 7200)
    fleet(d, b, 2, "2", 1.3, 1, NOW - 3600, fresh=True)
    ids = {"BUILD-A": build_id(a), "BUILD-B": build_id(b)}
    for name, options in CASES:
        done = d.ctl("diff", a, b, *options)
        got, path = masked(done.stdout, d, ids), os.path.join(FOLDER, f"diff.{name}")
        if name == "json":
            got = json.dumps(json.loads(got), indent=1) + "\n"
        if sys.argv[1:] == ["write"]:
            with open(path, "w") as f:
                f.write(got)
        with open(path) as f:
            wanted = f.read()
        equal = same(json.loads(got), json.loads(wanted)) if name == "json" else got == wanted
        tap.point(equal and done.returncode == (1 if name == "judged" else 0), f"{name}: as in {path[len(ROOT) + 1:]}",
                  (done.returncode, done.stderr, got))
