#!/usr/bin/env python3
"""Samples of other tools by `profctl upload`: CPU profiles of gperftools through the pprof tool, of Go programs, and
perf's text have their samples on the functions that ran, and on the callers that their stacks have. No number of
samples is taken for a number of calls."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from harness import LONG, PROFCTL, Daemon, Tap, perf_lock, run, symbols
from import_bed import PPROF, busy, counted, perf_text, report, write
from wire import field

PROFILER = next((os.path.join(f, "libprofiler.so.0") for f in ("/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu")
                 if os.path.exists(os.path.join(f, "libprofiler.so.0"))), None)

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

SKIPPED = r"""
static volatile unsigned long sink;
__attribute__((noinline)) void work(unsigned long n) { for (unsigned long i = 0; i < n * 1000000; i++) sink += i; }
__attribute__((noinline)) void dear(void) { work(30); __asm__ volatile(""); }
__attribute__((noinline)) void cheap(void) { work(10); __asm__ volatile(""); }
int main(void) { for (int i = 0; i < 12; i++) { dear(); cheap(); } return 0; }
"""


def measured(r):
    """(caller, callee) → stacks in which the one called the other."""
    return {(row["name"], f["name"]): row["measured_samples"] for f in r["functions"] for row in f["callers"]}


def sampled(tap, what, d, exe, samples):
    """The report of a sampled busy program: most in heavy, each sample below middle."""
    r = report(d, exe)
    rows = {f["name"]: f for f in r["functions"]}
    got = {n: rows[n]["ticks"] for n in ("heavy", "light", "middle", "main") if n in rows}
    arcs = measured(r)
    tap.point(len(got) == 4 and got["heavy"] > 2 * got["light"] and got["heavy"] + got["light"] >= 0.8 * samples,
              f"{what}: the samples are where the time went", (got, samples))
    # a sample in a function's first instructions has its caller's caller
    tap.point(len(got) == 4 and arcs.get(("middle", "heavy"), 0) >= 0.8 * got["heavy"]
              and arcs.get(("main", "middle"), 0) >= 0.8 * samples,
              f"{what}: and come from their callers", (got, arcs))
    tap.point(r["provenance"]["inexact_reasons"] in ([], ["ticks-outside"]) and not any(counted(r).values()),
              f"{what}: no calls were counted", r["provenance"])
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
        for library in set(re.findall(r"^\d+: 0x\S+ (/\S+)", raw, re.M)) - {exe}:  # a tick may be in each of them
            os.makedirs(root + os.path.dirname(library), exist_ok=True)
            shutil.copy2(library, root + library)
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
    # A function that the runtime's signal interrupted did not call what runs then.
    through = sum(int(n) for n, ids in stacks if {"main.middle", "runtime.asyncPreempt"} &
                  {where.get(i) for i in ids.split()} == {"main.middle"})
    with Daemon() as d:
        done = d.ctl("upload", path)
        r = report(d, exe)
        tap.point(done.returncode == 0 and r["build_id"].startswith("sha256-") and r["totals"]["ticks"] == samples
                  and r["totals"]["rates"] == [100],
                  "a Go program's profile: the build is the file's", (done, r["totals"], samples))
        arcs = measured(r)
        tap.point(arcs.get(("main.main", "main.middle"), 0) == through,
                  "a Go program's profile: an arc has its stacks", (arcs, through))
    os.chmod(exe, 0o755)
    os.utime(exe)
    with Daemon() as d:
        done = d.ctl("upload", path)
        tap.point(done.returncode == 65 and "newer than the profile" in done.stderr,
                  "a program that was built anew since is not what ran", done)


def typed(exe, types, values):
    """A profile of pprof with one sample, in heavy."""
    texts = ["", exe, *(word for pair in types for word in pair)]
    out = b"".join(field(1, field(1, texts.index(t)) + field(2, texts.index(unit))) for t, unit in types)
    out += field(2, field(1, 1) + b"".join(field(2, v) for v in values))
    out += field(3, field(1, 1) + field(3, 1 << 40) + field(5, 1))
    out += field(4, field(1, 1) + field(2, 1) + field(3, symbols(exe)["heavy"][0] + 5))
    return out + b"".join(field(6, t.encode()) for t in texts)


def named_types(tap, folder):
    """What a report takes for time, or for the counters of a collector, is that: by any way into profd."""
    exe = busy(folder)

    def totals(d, dimension):
        found = d.ctl("report", exe, "--json", "--dimension", dimension)
        return json.loads(found.stdout)["totals"] if found.returncode == 0 else {"seconds": None, "ticks": None}

    cases = (("seconds", "count", "seconds_", 3), ("collector", "count", "collector_", 3),
             ("wall", "count", "wall_", 3), ("wall", "milliseconds", "wall", 0.003),
             ("cpu", "microseconds", "seconds", 3e-06), ("delay", "microseconds", "delay", 3000),
             ("alloc_in_new_tlab_bytes", "bytes", "alloc_in_n~e868", 3))
    for name, unit, dimension, amount in cases:
        path = write(folder, "typed.pb", typed(exe, (("samples", "count"), (name, unit)), (1, 3)))
        with Daemon() as d:
            done = d.ctl("upload", "--event", name, path)
            got = totals(d, dimension)
            tap.point(done.returncode == 0 and got["seconds"] == amount,
                      f"the sample type {name} in {unit} is {dimension}", (done, got))
    for event in ("collector", "wall"):
        text = f"version: 1\nevents: {event}\nob={exe}\nfn=heavy\n1 3\n"
        with Daemon() as d:
            done = d.ctl("upload", write(folder, "typed.out", text))
            got = totals(d, event + "_")
            tap.point(done.returncode == 0 and got["ticks"] == 3,
                      f"an event of callgrind with the name {event} is a dimension of its own", (done, got))


def after_call(exe, caller, callee):
    """Offset of the return address of the first direct call."""
    code = run("objdump", "-d", "--no-show-raw-insn", f"--disassemble={caller}", exe).stdout
    found = re.search(rf"call\w*\s+[0-9a-f]+ <{callee}>\n\s+([0-9a-f]+):", code)
    return int(found.group(1), 16) - symbols(exe)[caller][0]


def perf_written(tap, folder):
    """Text in the documented form, as newer and older perf write it."""
    exe = os.path.join(folder, "busy")
    bias = 0x55d0c0de1000 & ~0xfff
    text = "# ========\n# captured on    : a day\n#\n"
    outer = ("main", after_call(exe, "main", "middle"))
    text += perf_text(exe, bias, ("heavy", 9), [("middle", after_call(exe, "middle", "heavy")), outer],
                      "100.000000") * 400
    text += perf_text(exe, bias, ("light", 9), [("middle", after_call(exe, "middle", "light")), outer],
                      "101.500000") * 40
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
                  == (401, 40, 441),
                  "perf script: each sample on its function, those without a name too", (done, r["totals"]))
        arcs = measured(r)
        tap.point([arcs.get(arc) for arc in (("middle", "heavy"), ("middle", "light"), ("main", "middle"))]
                  == [400, 40, 440], "perf script: an arc has its stacks", arcs)
        tap.point("1 of 442 ticks" in done.stdout and "1 process was entirely in the kernel" in done.stdout
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
        tap.point(piped.returncode == 0 and report(d, exe)["totals"]["ticks"] == 441, "perf script from standard input",
                  piped)
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


def skipped(tap, folder):
    """perf record -g does not see the caller of a function without a frame: its call says what was called."""
    source, exe, data = (os.path.join(folder, name) for name in ("skipped.c", "skipped", "skipped.data"))
    write(folder, "skipped.c", SKIPPED)
    done = run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-momit-leaf-frame-pointer",
               "-fno-optimize-sibling-calls", "-Wl,--build-id", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    if not shutil.which("perf") or run("perf", "record", "-q", "-e", "cpu-clock", "-F", "499", "-g", "-o", data,
                                       exe).returncode != 0:
        return tap.skip("a recording of perf with skipped frames", "perf cannot record here")
    text = run("perf", "script", "-i", data, "-F", "+pid").stdout
    chains = text.count("work+")
    with Daemon() as d:
        done = d.ctl("upload", write(folder, "skipped.txt", text))
        arcs = measured(report(d, exe))
        tap.point(done.returncode == 0 and chains > 50 and text.count("dear+") + text.count("cheap+") < chains / 10,
                  "perf record -g: chains do not have the callers of the innermost function", (done, text[:400]))
        tap.point(("main", "work") not in arcs and {("main", "dear"), ("main", "cheap"), ("dear", "work"),
                                                    ("cheap", "work")} <= set(arcs),
                  "main did not call work: it called dear and cheap, and they did", arcs)
        dear, cheap = arcs.get(("main", "dear"), 0), arcs.get(("main", "cheap"), 0)
        tap.point(dear > cheap > 0 and abs(dear - arcs.get(("dear", "work"), 0)) < 0.2 * dear
                  and dear + cheap >= 0.9 * chains, "and each has its time", (arcs, chains))
        before, again = report(d, exe), os.path.join(folder, "skipped.pb")
        assert d.ctl("report", exe, "-f", "pprof", "-o", again).returncode == 0
    with Daemon() as d:
        done = d.ctl("upload", again)
        after = report(d, exe)
        ticks = [{f["name"]: f["ticks"] for f in r["functions"] if f["ticks"]} for r in (before, after)]
        tap.point(done.returncode == 0 and ticks[0] == ticks[1] and not any(counted(after).values()),
                  "an export of these stacks, read again: its ticks come back, and no call is counted", (done, ticks))
        tap.point(measured(before) == measured(after)
                  and after["stacks"]["inferred"] == 0 < before["stacks"]["inferred"],
                  "and its callers, of which nothing says any more that they were inferred",
                  (measured(before), measured(after), before["stacks"], after["stacks"]))


def unwound(tap, folder):
    """perf record --call-graph dwarf prints the last byte of a call, not the return address: no caller is cut, with
    names or without."""
    source, exe, data = (os.path.join(folder, name) for name in ("skipped.c", "unwound", "unwound.data"))
    write(folder, "skipped.c", SKIPPED)
    for strip in ((), ("-s",)):
        done = run("gcc", "-O1", *strip, "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id", "-o",
                   exe, source)
        assert done.returncode == 0, done.stderr
        if not shutil.which("perf") or run("perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "--call-graph",
                                           "dwarf", "-o", data, exe).returncode != 0:
            return tap.skip("a recording of perf by unwind information", "perf cannot record here")
        text = run("perf", "script", "-i", data, "-F", "+pid").stdout
        with Daemon() as d:
            done = d.ctl("upload", write(folder, "unwound.txt", text))
            r = report(d, exe)
            tap.point(done.returncode == 0 and r["stacks"]["count"] > 20 and r["stacks"]["cut"] == 0,
                      f"perf record --call-graph dwarf {strip}: no caller is cut", (done, r.get("stacks"), text[:2000]))
            if not strip:
                arcs = measured(r)
                tap.point({("main", "dear"), ("main", "cheap"), ("dear", "work"), ("cheap", "work")} <= set(arcs)
                          and ("main", "work") not in arcs, "and each time is its caller's", arcs)
                text = d.ctl("callers", exe, "work").stdout
                tap.point("no call by others was counted" in text and re.search(r" - +stacks +dear$", text, re.M),
                          "callers: calls that are not counted are no 0", text)


with Tap() as tap:
    folder = os.path.realpath(tempfile.mkdtemp(prefix="profd-imports-"))
    os.chmod(folder, 0o755)
    try:
        for part in (gperftools, go, named_types, perf_written, perf_recorded, skipped, unwound):
            began = time.monotonic()
            with perf_lock() if part in (perf_recorded, skipped, unwound) else contextlib.nullcontext():
                part(tap, folder)
            print(f"# {part.__name__}: {time.monotonic() - began:.1f} s", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
