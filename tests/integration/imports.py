#!/usr/bin/env python3
"""Profiles of other tools by `profctl upload`: callgrind counts what the program says it did, call by call; a profile
that profd exported comes back with the same numbers; CPU profiles of gperftools through the pprof tool, and perf's
text, have their samples on the functions that ran. Bad files get one sentence and leave nothing."""
import gzip
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from harness import LONG, PROFCTL, Daemon, Gmon, Tap, bounds, run, symbols

PPROF = next((p for p in ("/usr/lib/go-1.19/pkg/tool/linux_amd64/pprof", "/usr/lib/go-1.19/pkg/tool/linux_arm64/pprof")
              if os.path.exists(p)), None)
PROFILER = next((os.path.join(f, "libprofiler.so.0") for f in ("/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu")
                 if os.path.exists(os.path.join(f, "libprofiler.so.0"))), None)

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
BUSY = r"""
#include <stdio.h>
double __attribute__((noinline)) heavy(int n)
{ volatile double s = 0; for (int i = 0; i < n; i++) s += i * 0.5; return s; }
double __attribute__((noinline)) light(int n)
{ volatile double s = 0; for (int i = 0; i < n / 10; i++) s += i * 0.5; return s; }
double __attribute__((noinline)) middle(int n) { return heavy(n) + light(n) + 1; }
int main(void) { double r = 0; for (int i = 0; i < 150; i++) r += middle(1000000); printf("%f\n", r); return 0; }
"""

GO = r"""
package main
import ("fmt"; "os"; "runtime/pprof")
//go:noinline
func heavy(n int) float64 { s := 0.0; for i := 0; i < n; i++ { s += float64(i) * 0.5 }; return s }
//go:noinline
func middle(n int) float64 { return heavy(n) + 1 }
func main() {
    f, _ := os.Create(os.Args[1])
    pprof.StartCPUProfile(f)
    r := 0.0
    for i := 0; i < 500; i++ { r += middle(1000000) }
    pprof.StopCPUProfile()
    f.Close()
    fmt.Println(r)
}
"""


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "wb" if isinstance(text, bytes) else "w") as f:
        f.write(text)
    return path


def build(folder, name, *flags):
    """The program with its library, one of the ways people build; sources only on first use."""
    for file, text in (("main.c", MAIN), ("other.c", OTHER), ("library.c", LIBRARY), ("truth.h", HEADER),
                       ("busy.c", BUSY)):
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


def report(d, exe, *more):
    return d.json("report", exe, "-f", "json", *more)


def counted(r):
    """(caller, callee) → calls by name; and under (\"*\", callee) those of all callers."""
    out = {}
    for f in r["functions"]:
        for row in f["callers"]:
            for caller in (row["name"], "*"):
                out[caller, f["name"]] = out.get((caller, f["name"]), 0) + row["calls"]
    return out


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
    functions = {(f["raw_name"], f["build_id"], f["address"]): (f["calls"], f["self_calls"], round(f["self"], 6))
                 for f in r["functions"]}
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
    """Instructions and sampled calls come back as what they were, and stay apart from seconds."""
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
        assert d.ctl("report", exe, "-f", "callgrind", "-o", os.path.join(folder, "mixed.out")).returncode == 0
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
    with Daemon() as d:
        done = d.ctl("upload", os.path.join(folder, "mixed.out"))
        tap.point(done.returncode == 0 and "sampled" in report(d, exe)["provenance"]["inexact_reasons"],
                  "sampled calls stay sampled", done)


def busy(folder):
    exe = os.path.join(folder, "busy")
    done = run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id", "-o",
               exe, os.path.join(folder, "busy.c"))
    assert done.returncode == 0, done.stderr
    return exe


def sampled(tap, what, d, exe, samples):
    """The report of a sampled busy program: most in heavy, each sample on middle's account."""
    r = report(d, exe)
    rows = {f["name"]: f for f in r["functions"]}
    got = {n: (rows[n]["ticks"], rows[n]["calls"]) for n in ("heavy", "light", "middle", "main") if n in rows}
    tap.point(len(got) == 4 and got["heavy"][0] > 2 * got["light"][0]
              and got["heavy"][0] + got["light"][0] >= 0.8 * samples,
              f"{what}: the samples are where the time went", (got, samples))
    calls = counted(r) # a sample in a function's first instructions has its caller's caller
    tap.point(len(got) == 4 and got["middle"][1] >= 0.8 * samples
              and calls.get(("middle", "heavy"), 0) >= 0.8 * got["heavy"][1],
              f"{what}: and come from their callers", (got, calls))
    tap.point(r["provenance"]["inexact_reasons"] in (["sampled"], ["sampled", "ticks-outside"])
              and not r["provenance"]["exact"], f"{what}: pairs are said to be sampled",
              r["provenance"])
    return r


def gperftools(tap, folder):
    exe = busy(folder)
    if not PPROF or not PROFILER:
        return tap.skip("a CPU profile of gperftools", "no pprof tool, or no libprofiler.so.0")
    legacy, path = os.path.join(folder, "cpu.prof"), os.path.join(folder, "cpu.pb.gz")
    done = run(exe, env=dict(os.environ, LD_PRELOAD=PROFILER, CPUPROFILE=legacy, CPUPROFILE_FREQUENCY="1000"))
    assert done.returncode == 0, done.stderr
    done = run(PPROF, "-proto", "-output", path, exe, legacy, env=dict(os.environ, HOME=folder))
    assert done.returncode == 0, done.stderr
    raw = run(PPROF, "-raw", path, env=dict(os.environ, HOME=folder)).stdout
    samples = sum(int(n) for n in re.findall(r"^ +(\d+) +\d+: ", raw, re.M))
    with Daemon() as d:
        done = d.ctl("upload", "--json", path)
        said = json.loads(done.stdout or "{}")
        tap.point(done.returncode == 0 and said.get("ticks") == samples, "gperftools: every sample is read",
                  (done.stdout, done.stderr, samples))
        r = sampled(tap, "gperftools", d, exe, samples)
        tap.point(r["totals"]["dimension"] == "seconds" and r["totals"]["rates"] == [1000],
                  "gperftools: ticks of its frequency", r["totals"])
        moved = os.path.join(folder, "moved")
        os.rename(exe, moved)
        gone = d.ctl("upload", path)
        tap.point(gone.returncode == 66 and exe in gone.stderr and len(gone.stderr.splitlines()) == 1,
                  "without the file its mapping has no build", gone)
        given = d.ctl("upload", "-e", moved, path)
        tap.point(given.returncode == 0 and report(d, moved)["totals"]["ticks"] == 2 * r["totals"]["ticks"],
                  "-e says where it is", given)
        root = os.path.join(folder, "root")
        os.makedirs(root + folder)
        shutil.copy2(moved, root + exe)
        os.makedirs(root + "/usr/lib", exist_ok=True)
        libc = re.search(r"(/\S*/libc\.so\.6)", raw)
        if libc:
            os.makedirs(root + os.path.dirname(libc.group(1)), exist_ok=True)
            shutil.copy2(libc.group(1), root + libc.group(1))
        below = d.ctl("upload", "--root", root, path)
        tap.point(below.returncode == 0 and report(d, moved)["totals"]["ticks"] == 3 * r["totals"]["ticks"],
                  "--root says where all of them are", below)
        os.rename(moved, exe)


def go(tap, folder):
    """A program without a build-id, whose runtime writes pprof by itself."""
    tool = next((t for t in ("/usr/lib/go-1.19/bin/go", shutil.which("go")) if t and os.path.exists(t)), None)
    if not tool or not PPROF:
        return tap.skip("a CPU profile of a Go program", "no go")
    exe, path = os.path.join(folder, "goprog"), os.path.join(folder, "go.pb.gz")
    env = dict(os.environ, HOME=folder, GOCACHE=os.path.join(folder, "cache"), GO111MODULE="off", GOFLAGS="",
               CGO_ENABLED="0")
    write(folder, "goprog.go", GO)
    for command in ([tool, "build", "-o", exe, "goprog.go"], [exe, path]):
        done = run(*command, cwd=folder, env=env)
        assert done.returncode == 0, done.stderr
    raw = run(PPROF, "-raw", path, env=env).stdout
    stacks = re.findall(r"^ +(\d+) +\d+: ([\d ]+)$", raw, re.M)
    samples, where = sum(int(n) for n, _ in stacks), dict(re.findall(r"^ +(\d+): \S+ M=\d+ (\S+)", raw, re.M))
    through = sum(int(n) for n, ids in stacks if "main.middle" in [where.get(i) for i in ids.split()])
    with Daemon() as d:
        done = d.ctl("upload", path)
        r = report(d, exe)
        rows = {f["raw_name"]: f for f in r["functions"]}
        tap.point(done.returncode == 0 and r["build_id"].startswith("sha256-") and r["totals"]["ticks"] == samples
                  and r["totals"]["rates"] == [100],
                  "a Go program's profile: the build is the file's", (done, r["totals"], samples))
        tap.point(rows["main.middle"]["calls"] == through and rows["main.middle"]["callers"][0]["name"] == "main.main",
                  "a Go program's profile: pairs as often as its stacks have them", (rows["main.middle"], through))
    os.chmod(exe, 0o755)
    os.utime(exe)
    with Daemon() as d:
        done = d.ctl("upload", path)
        tap.point(done.returncode == 65 and "newer than the profile" in done.stderr,
                  "a program that was built anew since is not what ran", done)


def perf_text(exe, bias, leaf, callers, time_stamp, pid="77/77", comm="busy", period=1003009):
    """One sample as perf script prints it; leaf and callers are (symbol, offset)."""
    at = symbols(exe)
    lines = [f"{comm} {pid} {time_stamp}: {period:10d} cpu-clock:ppp: "]
    for name, offset in [leaf, *callers]:
        lines.append(f"\t{at[name][0] + offset + bias:16x} {name}+{offset:#x} ({exe})")
    return "\n".join(lines) + "\n\n"


def perf_written(tap, folder):
    """Text in the documented form, as newer and older perf write it."""
    exe = os.path.join(folder, "busy")
    bias = 0x55d0c0de1000 & ~0xfff
    text = "# ========\n# captured on    : a day\n#\n"
    text += perf_text(exe, bias, ("heavy", 9), [("middle", 14), ("main", 20)], "100.000000") * 40
    text += perf_text(exe, bias, ("light", 9), [("middle", 28), ("main", 20)], "101.500000") * 4
    unnamed = symbols(exe)["heavy"][0] + 5 + bias
    text += f"busy 77/78 102.0:  1003009 cpu-clock:ppp: \n\t{unnamed:16x} [unknown] ({exe})\n\n"
    text += "busy 77/77 102.0:  1003009 cpu-clock:ppp: \n\tffffffff81690489 slab+0x149 ([kernel.kallsyms])\n" + \
            f"\t{symbols(exe)['main'][0] + 4 + bias:16x} main+0x4 ({exe})\n\n"
    text += "swapper 0/0 102.1:  1003009 cpu-clock:ppp: \n\tffffffff81690489 idle+0x149 ([kernel.kallsyms])\n\n"
    text += "busy 77/77 102.2:  5 page-faults: \n\t7ffe00000000 [unknown] ([stack])\n\n"
    path = write(folder, "perf.txt", text)
    with Daemon() as d:
        done = d.ctl("upload", path)
        r = report(d, exe)
        rows = {f["name"]: f for f in r["functions"]}
        tap.point(done.returncode == 0 and (rows["heavy"]["ticks"], rows["light"]["ticks"], r["totals"]["ticks"])
                  == (41, 4, 45),
                  "perf script: each sample on its function, those without a name too", (done, r["totals"]))
        calls = counted(r)
        tap.point((calls["middle", "heavy"], calls["middle", "light"], calls["main", "middle"]) == (40, 4, 44),
                  "perf script: pairs as often as seen", calls)
        tap.point("1 of 46 ticks" in done.stdout and "1 process was entirely in the kernel" in done.stdout
                  and "1 samples of events other than cpu-clock" in done.stderr,
                  "perf script: what was left out is said", done)
        tap.point(r["totals"]["rates"] == [997] and r["provenance"]["processes_started"] == 1,
                  "perf script: a process, its clock's rate", r["totals"])
        first, last = r["provenance"]["first"], r["provenance"]["last"]
        tap.point(first < last, "perf script: its window is as long as its time stamps", (first, last))
    bare = os.path.join(folder, "bare")
    assert run("strip", "-o", bare, exe).returncode == 0
    code = [symbols(exe)[name][0] + 3 for name in ("heavy", "light", "light")]
    text = "".join(f"bare 7/7 1.{i}:  1003009 cpu-clock:ppp: \n\t{at:16x} [unknown] ({bare})\n\n" for i,
                   at in enumerate(code))
    with Daemon() as d:
        done = d.ctl("upload", write(folder, "bare.txt", text))
        rows = {int(f["address"], 16): f["ticks"] for f in report(d, bare)["functions"]} if done.returncode == 0 else {}
        tap.point(sum(rows.values()) == 3, "perf script: a stripped program's samples by their places in the file",
                  (done, rows))
        done = d.ctl("upload", write(folder, "wild.txt", text.replace(f"{code[0]:16x}", f"{0x7fffdead0000:16x}")))
        tap.point(done.returncode == 65 and "not the file that ran" in done.stderr,
                  "perf script: but not if they are not in its code", done)
    with Daemon() as d, open(path) as f:
        piped = subprocess.run([PROFCTL, "upload", "-"], stdin=f, capture_output=True, text=True, env=d.env,
                               timeout=LONG)
        tap.point(piped.returncode == 0 and report(d, exe)["totals"]["ticks"] == 45, "perf script from standard input",
                  piped)
        lists = [d.ctl("builds").stdout, d.ctl("groups", exe, "--step", "1d").stdout]
        tap.point(all(re.search(r" ~\d+ ", text) for text in lists), "lists mark sampled calls, too", lists)
        other = d.ctl("upload", "--event", "page-faults", path)
        tap.point(other.returncode == 65 and len(other.stderr.splitlines()) <= 2, "an event all outside is refused",
                  other)


def perf_recorded(tap, folder):
    exe = os.path.join(folder, "busy")
    data = os.path.join(folder, "perf.data")
    if not shutil.which("perf") or run("perf", "record", "-q", "-e", "cpu-clock", "-c", "500000", "--call-graph", "fp",
                                       "-o", data, exe).returncode != 0:
        return tap.skip("a recording of perf", "perf cannot record here")
    text = run("perf", "script", "-i", data, "-F", "comm,pid,tid,time,event,period,ip,sym,dso").stdout
    path = write(folder, "recorded.txt", text)
    samples = len(re.findall(r"^\S.*cpu-clock", text, re.M))
    inside = len(re.findall(r"cpu-clock\S* *\n\t *[0-9a-f]+ (?:heavy|light)", text))
    with Daemon() as d:
        done = d.ctl("upload", "--json", path)
        said = json.loads(done.stdout or "{}")
        tap.point(done.returncode == 0 and said.get("stored") == 1 and samples > 20,
                  "perf record: a recording is taken", (done, samples))
        rows = {f["name"]: f["ticks"] for f in report(d, exe)["functions"]}
        per = said["ticks"] // samples
        tap.point((rows["heavy"] + rows["light"]) // per == inside, "perf record: as many samples as the text has",
                  (rows, inside, per))
        sampled(tap, "perf record", d, exe, rows["heavy"] + rows["light"])


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
        ("an executable of another build", out, ["-e", os.path.join(folder, "busy")], 65,
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
        for part in (exact_counts, round_trips, ambiguous_names, other_dimensions, gperftools, go, perf_written,
                     perf_recorded, refused):
            began = time.monotonic()
            part(tap, folder)
            print(f"# {part.__name__}: {time.monotonic() - began:.1f} s", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
