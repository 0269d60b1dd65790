#!/usr/bin/python3
"""Cheap and hot functions that are left out of counting: report -f exclude-list finds them, profctl run --leave-out
does not count them, and every report of such data says so. Counts of the other functions stay as they are."""
import os
import sys

sys.dont_write_bytecode = True
from harness import Daemon, Tap, run, symbols, until  # noqa: E402

SOURCE = """#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN __attribute__((noinline))
static volatile long n;
OWN LEFT void tiny(void) { n++; }
OWN void work(void) { for (int i = 0; i < 20000; i++) tiny(); }
OWN void outer(long rounds) { for (long i = 0; i < rounds; i++) work(); }
int main(int argc, char **argv)
{
    outer(argc > 1 ? atol(argv[1]) : 3);
    if (argc > 2) {
        int status = 1;
        if (fork() == 0) { work(); exit(0); }
        wait(&status);
        return status;
    }
    return 0;
}
"""
ROUNDS = 30000


def build(d, name, *options, compiler="gcc"):
    exe, source = os.path.join(d.folder, name), os.path.join(d.folder, name + ".c")
    with open(source, "w") as f:
        f.write(SOURCE)
    done = run(compiler, "-pg", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", *options, "-o", exe, source)
    assert done.returncode == 0, done.stderr
    return exe


def calls(report):
    return {f["name"]: f["calls"] for f in report["functions"] if f["name"] in ("tiny", "work", "outer", "main")}


def counted(d, exe, label, *arguments, processes=1):
    """Report of a run with that label."""
    done = d.ctl("run", "-l", f"run={label}", *arguments)
    assert done.returncode == 0, done.stderr
    until(lambda: d.ctl("report", exe, "-l", f"run={label}").returncode == 0
          and d.json("report", exe, "--json", "-l", f"run={label}")["provenance"]["processes_started"] == processes)
    return d.json("report", exe, "--json", "-l", f"run={label}")


def entries(text):
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


def test_list(tap, d, exe):
    report = counted(d, exe, "all", "--rate", "250", exe, ROUNDS)  # the list needs 100 samples, also on a fast machine
    tap.point(calls(report) == {"tiny": 20000 * ROUNDS, "work": ROUNDS, "outer": 1, "main": 1}
              and report["provenance"]["calls_exact"], "all are counted", calls(report))
    done = d.ctl("report", exe, "-f", "exclude-list")
    at, size = symbols(exe)["tiny"]
    tap.point(entries(done.stdout) == [[report["build_id"], hex(at), hex(size), "tiny"]],
              "the list has the cheap and hot function, and no other", done)
    tap.point("# Without them: 0.0 % of the calls are counted" in done.stdout, "and what is counted without it",
              done.stdout)
    path = os.path.join(d.folder, "list")
    with open(path, "w") as f:
        f.write(done.stdout)
    return path


def test_left(tap, d, exe, path):
    report = counted(d, exe, "left", "--leave-out", path, exe, ROUNDS)
    seen, from_where = calls(report), report["provenance"]
    tap.point(seen.get("tiny", 0) == 0 and seen["work"] == ROUNDS and seen["outer"] == 1, "it is not counted, others "
              "are", seen)
    tap.point("left-out" in from_where["inexact_reasons"] and not from_where["calls_exact"]
              and from_where["ticks_exact"] and report["collector"]["functions_left_out"] == 1
              and report["collector"]["overlaps"] == 0, "the report says so, and calls no count exact",
              (from_where, report["collector"]))
    text = d.ctl("report", exe, "-l", "run=left").stdout
    tap.point("left-out" in text and "1 function left out of counting on request" in text
              and "some were left out of counting" in text, "in words, too", text[:1500])
    both = d.json("report", exe, "--json")
    tap.point(not both["provenance"]["calls_exact"] and "left-out" in both["provenance"]["inexact_reasons"],
              "and so does a report over this run and others", both["provenance"])
    never = d.json("never-called", exe, "--json", "-l", "run=left")
    tap.point(never["bound"] is None and not never["calls_exact"], "no bound is derived from it", never)
    done = d.ctl("report", exe, "-f", "exclude-list", "-l", "run=left")
    tap.point(done.returncode == 64 and "some were left out" in done.stderr, "no list is made from it", done)


def test_children(tap, d, exe, path):
    report = counted(d, exe, "fork", "--leave-out", path, exe, 5, "fork", processes=2)
    seen = calls(report)
    tap.point(seen.get("tiny", 0) == 0 and seen["work"] == 6 and report["collector"]["functions_left_out"] == 2
              and not report["provenance"]["calls_exact"], "a child of fork() leaves it out, and says so", report)


def test_lists(tap, d, exe, path):
    with open(path) as f:
        good = f.read()
    wrong = os.path.join(d.folder, "wrong")
    build_id = entries(good)[0][0]
    cases = {"another build": good.replace(build_id, "00" * 20), "no list": "tiny\n" + good, "empty": "",
             "too large": good + "# " + "x" * (1 << 20), "no function": f"{build_id} 0x1 0x1 x\n",
             "huge numbers": f"{build_id} 0x{'f' * 16} 0x{'f' * 16} x\n", "cut": " ".join(entries(good)[0])[:-6]}
    for number, (name, text) in enumerate(cases.items()):
        with open(wrong, "w") as f:
            f.write(text)
        report = counted(d, exe, f"wrong{number}", "--leave-out", wrong, exe)
        tap.point(calls(report)["tiny"] == 3 * 20000 and report["provenance"]["calls_exact"],
                  f"{name}: all are counted, exactly", (calls(report), report["provenance"]))
    done = d.ctl("run", "--leave-out", wrong + "-gone", exe)
    tap.point(done.returncode == 66 and "--leave-out" in done.stderr and "No such file" in done.stderr, "no file", done)
    done = d.ctl("report", exe, "-f", "exclude-list", "-l", "run=wrong0")
    tap.point(done.returncode == 64 and "needs 100 samples" in done.stderr, "no list is made from a few ticks", done)


def test_attribute(tap, d):
    for compiler in ("gcc", "clang"):
        exe = build(d, compiler, "-DLEFT=__attribute__((no_instrument_function))", compiler=compiler)
        report = counted(d, exe, compiler, exe)
        tap.point(calls(report).get("tiny", 0) == 0 and calls(report)["work"] == 3
                  and report["provenance"]["calls_exact"],
                  f"{compiler} -pg: a function with no_instrument_function is not counted", report)
    counted(d, exe, "few", "--rate", "250", exe, ROUNDS)
    done = d.ctl("report", exe, "-f", "exclude-list", "-l", "run=few")
    tap.point(done.returncode == 0 and not entries(done.stdout) and "# No function is listed: " in done.stdout
              and "15 % may be\n" in done.stdout and "Without them" not in done.stdout,
              "where counting takes little time, no function is listed, and the list says why", done)


with Tap() as tap, Daemon() as d:
    exe = build(d, "p", "-DLEFT=")
    path = test_list(tap, d, exe)
    test_left(tap, d, exe, path)
    test_children(tap, d, exe, path)
    test_lists(tap, d, exe, path)
    test_attribute(tap, d)
