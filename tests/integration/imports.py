#!/usr/bin/env python3
"""Profiles of other tools by `profctl upload`: callgrind counts what the program says it did, call by call; a profile
that profd exported comes back with the same numbers. Bad files get one sentence and leave nothing."""
import gzip
import json
import os
import re
import shutil
import tempfile
import time

from harness import Daemon, Gmon, Tap, bounds, run, symbols
from import_bed import PPROF, busy, counted, perf_text, report, write

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include "truth.h"
long truth[EDGES];
static int twin(int x) { truth[TWIN]++; return x * 3 + 1; }
int __attribute__((noinline)) fib(int n)
{ return n < 2 ? n : (CALL(FIB_FIB), fib(n - 1)) + (CALL(FIB_FIB), fib(n - 2)); }
int compare(const void *a, const void *b) { truth[COMPARE]++; return *(const int *)a - *(const int *)b; }
int odd(int n);
int __attribute__((noinline)) even(int n) { return n == 0 ? 1 : (CALL(EVEN_ODD), odd(n - 1)) + 0; }
int __attribute__((noinline)) odd(int n) { return n == 0 ? 0 : (CALL(ODD_EVEN), even(n - 1)) + 0; }
int main(int argc, char **argv)
{
    int items[200], sum = argc + (argv[0] != 0), (*volatile indirect)(int) = twin;
    for (int i = 0; i < 200; i++)
        items[i] = i * 7919 % 200;
    for (int i = 0; i < 7; i++)
        sum += indirect(i);
    qsort(items, 200, sizeof *items, compare);
    CALL(MAIN_FIB);
    sum += fib(11);
    CALL(MAIN_EVEN);
    sum += even(40);
    for (int i = 0; i < 5; i++) {
        CALL(MAIN_OTHER);
        sum += other(i);
    }
    for (int i = 0; i < 9; i++) {
        CALL(MAIN_LIBRARY);
        sum += library(i);
    }
    static const char *const names[] = {NAMES};
    for (int i = 0; i < EDGES; i++)
        printf("%s %ld\n", names[i], truth[i]);
    printf("sum %d\n", sum);
    return 0;
}
"""
OTHER = r"""
#include "truth.h"
static int __attribute__((noinline)) twin(int x) { truth[OTHER_TWIN]++; return x * 5 + 2; }
int __attribute__((noinline)) other(int x) { int s = 0; for (int i = 0; i < 4; i++) s += twin(x + i); return s; }
"""
LIBRARY = r"""
#include "truth.h"
static int __attribute__((noinline)) step(int x) { truth[LIBRARY_STEP]++; return x * x + 1; }
int library(int x) { int s = 0; for (int i = 0; i < 6; i++) s += step(x + i); return s; }
"""
HEADER = r"""
enum { TWIN, FIB_FIB, COMPARE, EVEN_ODD, ODD_EVEN, MAIN_FIB, MAIN_EVEN, MAIN_OTHER, MAIN_LIBRARY,
       OTHER_TWIN, LIBRARY_STEP, EDGES };
#define NAMES "main.twin", "fib.fib", "*.compare", "even.odd", "odd.even", "main.fib", "main.even", "main.other", \
              "main.library", "other.twin", "library.step"
extern long truth[EDGES];
#define CALL(edge) truth[edge]++
int other(int x);
int library(int x);
"""


def build(folder, name, *flags):
    """The program with its library, one of the ways people build; sources only on first use."""
    for file, text in (("main.c", MAIN), ("other.c", OTHER), ("library.c", LIBRARY), ("truth.h", HEADER)):
        if not os.path.exists(os.path.join(folder, file)):
            write(folder, file, text)
    exe, lib = os.path.join(folder, name), os.path.join(folder, f"lib{name}.so")
    for command in (["gcc", "-O1", *[f for f in flags if "pie" not in f], "-shared", "-fPIC", "-Wl,--build-id", "-o",
                     lib, "library.c"],
                    ["gcc", "-O1", "-fno-optimize-sibling-calls", *flags, "-rdynamic", "-Wl,--build-id", "-o", exe,
                     "main.c", "other.c", lib,
                     f"-Wl,-rpath,{folder}"]):
        done = run(*command, cwd=folder)
        assert done.returncode == 0, done.stderr
    return exe


def truth_of(text):
    return {line.split()[0]: int(line.split()[1]) for line in text.splitlines() if "." in line.split()[0]}


def callgrind(folder, exe, *options):
    out = os.path.join(folder, f"callgrind.out.{os.path.basename(exe)}{''.join(options)}")
    done = run("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *options, exe)
    assert done.returncode == 0, done.stderr
    return out, truth_of(done.stdout)


def exact_counts(tap, folder):
    for name, flags, options in (("plain", ["-g"], []), ("lines", ["-g", "-no-pie"],
            ["--dump-line=yes", "--compress-strings=no", "--compress-pos=no"]),
                                 ("instr", ["-g"], ["--dump-instr=yes", "--collect-jumps=yes"]),
                                 ("nodebug", [], ["--dump-instr=yes", "--dump-line=no"])):
        exe = build(folder, name, *flags)
        out, truth = callgrind(folder, exe, *options)
        with Daemon() as d:
            done = d.ctl("upload", "--json", "-l", "service=truth", out)
            said = json.loads(done.stdout or "{}")
            r = report(d, exe)
            calls = counted(r)
            got = {edge: calls.get(tuple(edge.split(".")), 0) for edge in truth}
            tap.point(done.returncode == 0 and said.get("stored") == 1 and got == truth,
                      f"callgrind, {name}: every call that the program counted",
                      (got, truth, done.stdout, done.stderr))
            twins = sorted(f["calls"] for f in r["functions"] if f["raw_name"] == "twin")
            tap.point(twins == [truth["main.twin"], truth["other.twin"]],
                      f"{name}: two static functions of one name stay two", twins)
            outside = ["ticks-outside"] if said["ticks_outside"] else []
            outside += ["ambiguous-names"] if said["ambiguous"] else []
            tap.point(r["provenance"]["calls_exact"] is (said["ambiguous"] == 0)
                      and r["provenance"]["inexact_reasons"] == outside
                      and r["totals"]["dimension"] == "instructions" and r["totals"]["rates"] == [1],
                      f"{name}: the calls are exact unless names are ambiguous, the costs are instructions",
                      (r["provenance"], r["totals"]))
            total = int(re.search(r"^(?:summary|totals): (\d+)", open(out).read(), re.M).group(1))
            tap.point(said["ticks"] == total and r["totals"]["ticks"] == total - said["ticks_outside"]
                      and said["ticks_outside"] * 1000 <= total,
                      f"{name}: every instruction is counted, and what is outside is said", (total, said, r["totals"]))
            rows = d.json("builds", "--json", "-a")["rows"]
            names = {os.path.basename(row["name"]) for row in rows}
            tap.point({name, f"lib{name}.so", "libc.so.6"} <= names
                      and all(row["symbols"] for row in rows if row["name"].startswith(folder)),
                      f"{name}: libraries are builds of their own, and have names", rows)
            labels = d.json("labels", "--json")
            tap.point(any(row.get("label", row.get("name")) == "service" for row in labels["rows"]),
                      f"{name}: labels arrived", labels)


def shape(r):
    """What must come back from an export: calls and self by function, calls by arc."""
    functions = {(f["raw_name"], f["build_id"], f["address"]):
                 (f["calls"], f["self_calls"], round(f["self_seconds"], 6)) for f in r["functions"]}
    arcs = {(f["address"], f["build_id"], row["name"]): row["calls"] for f in r["functions"] for row in f["callees"]
            if row["calls"]}
    return functions, arcs


def small_gmon(folder, exe):
    """A gmon.out for a program: ticks and calls in every function of it, many of them beyond 32 bits together."""
    gmon = Gmon(*bounds(exe))
    places = {n: symbols(exe)[n][0] for n in ("main", "fib", "even", "odd", "other", "compare")}
    for n, (name, address) in enumerate(places.items()):
        gmon.tick((address + 7) & ~3, 100 * n + 3)
    gmon.arc(places["main"] + 8, places["fib"], 3).arc(places["fib"] + 8, places["fib"], 4000000000)
    gmon.arc(places["main"] + 16, places["other"], 5).arc(places["even"] + 8, places["odd"], 70).arc(places["odd"] + 8,
            places["even"], 71)
    gmon.arc(places["main"] + 24, places["even"], 2)
    # Stacks divide times among callers: by thirds and sevenths, whose roundings may not add up in another function.
    gmon.arc(places["main"] + 32, places["compare"], 1).arc(places["other"] + 8, places["compare"], 2)
    gmon.arc(places["other"] + 16, places["fib"], 4)
    return gmon.write(os.path.join(folder, "gmon.out"))


def round_trips(tap, folder):
    exe = build(folder, "trip", "-g", "-pg")
    gmon = small_gmon(folder, exe)
    exports = {}
    with Daemon() as d:
        tap.point(d.ctl("upload", "-e", exe, gmon).returncode == 0, "gmon.out is taken as before")
        tap.point(d.ctl("upload", "-e", exe, "--format", "gmon", gmon).returncode == 0,
                  "and where it is said to be one")
        before = report(d, exe)
        for form in ("callgrind", "pprof"):
            exports[form] = os.path.join(folder, f"export.{form}")
            assert d.ctl("report", exe, "-f", form, "-o", exports[form]).returncode == 0
        tap.point(before["provenance"]["processes_started"] == 2, "two uploads are of two processes",
                  before["provenance"])
    exports["gzip"] = write(folder, "export.pb.gz", gzip.compress(open(exports["pprof"], "rb").read()))
    if PPROF:
        exports["the pprof tool's"] = os.path.join(folder, "tool.pb.gz")
        done = run(PPROF, "-proto", "-symbolize=none", "-output", exports["the pprof tool's"], exports["pprof"],
                   env=dict(os.environ, HOME=folder))
        tap.point(done.returncode == 0, "the pprof tool writes our export again", done.stderr)
    for form, path in exports.items():
        with Daemon() as d:
            done = d.ctl("upload", path)
            after = report(d, exe)
            tap.point(done.returncode == 0 and shape(after) == shape(before),
                      f"profd's own export as {form} comes back with the same numbers",
                      (done.stdout + done.stderr, [x for x in zip(shape(before)[0].items(), shape(after)[0].items())
                                                   if x[0] != x[1]][:5]))
            tap.point(after["totals"]["ticks"] == before["totals"]["ticks"]
                      and after["totals"]["rates"] == before["totals"]["rates"]
                      and after["totals"]["calls"] == before["totals"]["calls"]
                      and after["provenance"]["inexact_reasons"] == before["provenance"]["inexact_reasons"],
                      f"{form}: ticks and their rate, exact calls, and the reasons why the rest is not exact",
                      (before["totals"], after["totals"], after["provenance"]))
            tap.point(after["provenance"]["processes_started"] == 2, f"{form}: an export states how many processes it "
                      f"is of", after["provenance"])


def ambiguous_names(tap, folder):
    """Counts of functions that only their name tells: what may stand at the wrong one is not called exact."""
    exe = build(folder, "namesakes")
    text = (f"version: 1\ncmd: {exe}\npositions: line\nevents: Ir\nob={exe}\nfl=???\nfn=main\n0 5\n"
            "cfn=%s\ncalls=3 0\n0 9\nfn=%s\n0 9\n")
    for name, reasons in (("compare", []), ("twin", ["ambiguous-names"])):
        with Daemon() as d:
            done = d.ctl("upload", write(folder, f"{name}.out", text % (name, name)))
            r = report(d, exe)["provenance"]
            heading = d.ctl("report", exe).stdout
            tap.point(done.returncode == 0 and r["inexact_reasons"] == reasons
                      and r["calls_exact"] is r["ticks_exact"] is (not reasons)
                      and ("ambiguous" in done.stdout) is bool(reasons)
                      and ("the first of them got the counts of all" in heading) is bool(reasons),
                      f"{name}: {' '.join(reasons) or 'exact'}", (done, r, heading))


def other_dimensions(tap, folder):
    """Instructions come back as what they were, and stay apart from seconds."""
    exe = os.path.join(folder, "plain")
    with Daemon() as d:
        assert d.ctl("upload", os.path.join(folder, "callgrind.out.plain")).returncode == 0
        before = report(d, exe)
        assert d.ctl("report", exe, "-f", "callgrind", "-o", os.path.join(folder, "again.out")).returncode == 0
        assert d.ctl("report", exe, "-f", "pprof", "-o", os.path.join(folder, "again.pb")).returncode == 0
        twice = perf_text(exe, 0x7f0000000000, ("fib", 2), [("main", 9)], "1.000000", comm="plain")
        assert d.ctl("upload", write(folder, "mixed.txt", twice)).returncode == 0
        mixed, chosen = report(d, exe), report(d, exe, "--dimension", "instructions")
        tap.point(mixed["totals"]["dimension"] == "seconds" and mixed["totals"]["ticks"] == 1
                  and chosen["totals"]["ticks"] == before["totals"]["ticks"],
                  "seconds and instructions of one program stay apart", (mixed["totals"], chosen["totals"]))
    with Daemon() as d:
        done = d.ctl("upload", os.path.join(folder, "again.out"))
        after = report(d, exe)
        tap.point(done.returncode == 0 and shape(after) == shape(before)
                  and after["totals"]["dimension"] == "instructions",
                  "instructions come back from a callgrind export, to the last one",
                  (done, before["totals"], after["totals"]))
    with Daemon() as d:
        done = d.ctl("upload", os.path.join(folder, "again.pb"))
        after = report(d, exe)
        tap.point(done.returncode == 0 and shape(after)[1] == shape(before)[1]
                  and after["totals"]["dimension"] == "instructions"
                  and abs(after["totals"]["ticks"] - before["totals"]["ticks"]) <= 5,
                  "and from a pprof export, with the same calls",
                  (done, before["totals"], after["totals"]))


def refused(tap, folder):
    """One sentence with the file, what is wrong and where; nothing stored."""
    exe = os.path.join(folder, "plain")
    out = os.path.join(folder, "callgrind.out.plain")
    good = open(out).read()
    names = ["", "samples", "count", "java.lang.Thread.run"]
    field = lambda n, b: bytes([n << 3 | 2, len(b)]) + b
    symbolized = (field(1, b"\x08\x01\x10\x02") + field(4, b"\x08\x01") + b"".join(field(6, n.encode()) for n in names)
                  + field(2, b"\x08\x01\x10\x05"))
    later = write(folder, "later.out", good)
    os.utime(later, (1000000000, 1000000000))
    cases = (
        ("a cut name", write(folder, "a.out1", good.replace("fn=(", "fn=(99999", 1).replace(") ", ")\n#", 1)), [], 65,
         "not defined|neither|line"),
        ("a cut callgrind.out", write(folder, "b.out", good[:good.index("calls=") + 8] + "\n"), [], 65, "line|calls="),
        ("an executable of another build", out, ["-e", busy(folder)], 65,
         "only [0-9]+ of the [0-9]+ functions"),
        ("a profile older than its program", later, [], 65, "newer than the profile"),
        ("a profile of names alone", write(folder, "names.pb", symbolized), [], 65,
         "none of its 1 locations has an address"),
        ("perf.data itself", write(folder, "perf.raw", b"PERFILE2" + bytes(100)), [], 65, "perf script"),
        ("an executable as a profile", exe, [], 65, "executable"),
        ("something else", write(folder, "noise", b"\xff\xfe\x00\x01" * 30), [], 65, "neither"),
        ("an event that is not there", out, ["--event", "Bcm"], 65, "Bcm"),
        ("a format that is another", out, ["--format", "perf"], 65, "line [0-9]"),
        ("gzip that is cut", write(folder, "cut.gz", gzip.compress(symbolized)[:-9]), [], 65, "gzip"),
        ("a program that is gone", write(folder, "gone.out", good.replace(exe, exe + ".gone")), [], 66, "plain.gone"),
    )
    with Daemon() as d:
        for what, path, options, status, words in cases:
            done = d.ctl("upload", *options, path)
            lines = done.stderr.strip().splitlines()
            tap.point(done.returncode == status and len(lines) == 1 and os.path.basename(path) in lines[0]
                      and re.search(words, lines[0]),
                      f"{what} is refused", (done.returncode, done.stdout, done.stderr))
        tap.point(d.json("builds", "--json", "-a")["rows"] == [], "and nothing is stored")
        usage = d.ctl("upload", "--format", "jfr", out)
        tap.point(usage.returncode == 64 and "jfr" in usage.stderr, "an unknown format is bad usage", usage)
        d.stop()
        waits = d.ctl("upload", out)
        tap.point(waits.returncode == 0 and "spool" in waits.stderr, "without a daemon an import waits in the spool",
                  waits)
        d.start()
        tap.point(d.ctl("upload", out).returncode == 0 and report(d, exe)["provenance"]["uploads"] == 2,
                  "and goes with the next")


with Tap() as tap:
    folder = os.path.realpath(tempfile.mkdtemp(prefix="profd-imports-"))
    os.chmod(folder, 0o755)
    try:
        for part in (exact_counts, round_trips, ambiguous_names, other_dimensions, refused):
            began = time.monotonic()
            part(tap, folder)
            print(f"# {part.__name__}: {time.monotonic() - began:.1f} s", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
