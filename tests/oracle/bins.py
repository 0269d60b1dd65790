#!/usr/bin/python3
# not a test
"""How far self times from a gmon.out are from the truth.

bins.py [--ticks N] [--packages FOLDER] [PROGRAM…]     with PROFD_BUILD naming the build folder of profd and profctl

A program runs under `profctl run` until it has N ticks: each with its exact address. The same ticks are then counted as
glibc's profil would have counted them, and become a gmon.out. Its self times by profd's report and by the installed
gprof are compared with those of the exact addresses, so that the only difference is what the bins have lost. The error
is the sum of |self - exact self| over all functions, in ticks. `make bins` prints the table; the short form is
tests/integration/bins.py."""
import argparse
import collections
import json
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../integration"))
from harness import PROFCTL, ROOT, Daemon, bounds, run, symbols  # noqa: E402
import package_runs  # noqa: E402

FIB = r"""#include <stdio.h>
#include <stdlib.h>
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(int argc, char **argv) { printf("%d\n", fib(argc > 1 ? atoi(argv[1]) : 32)); return 0; }
"""
RATE = 997
PACKAGES = ("lua5.4", "sqlite3", "sed")


def build(folder, name, *options, source=None):
    """A program compiled with -pg; its path."""
    path = os.path.join(folder, name)
    if source is None:
        source = path + ".c"
        with open(source, "w") as f:
            f.write(FIB)
    done = run("gcc", "-pg", *options, "-o", path, source)
    assert done.returncode == 0, done.stderr
    return path


def programs(folder):
    """name → (executable, [(arguments, standard input)])."""
    calc, parse = os.path.join(ROOT, "tests/programs/calc.c"), [(["-s", "7", "-n", "60000"], None)]
    return {"fib -O0": (build(folder, "fib0", "-O0"), [(["36"], None)]),
            "fib -O2": (build(folder, "fib2", "-O2"), [(["37"], None)]),
            "calc -O2": (build(folder, "calc2", "-O2", source=calc), parse),
            "calc -Os": (build(folder, "calcs", "-Os", source=calc), parse)}


def package(folder, name):
    where = os.path.join(folder, name)
    inputs = os.path.join(where, "inputs")
    os.makedirs(inputs, exist_ok=True)
    return os.path.join(where, "exe"), package_runs.RUNS[name](where, inputs)


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Profil:
    """A histogram as glibc's monstartup lays it out and profil counts into it."""

    def __init__(self, low, high):
        self.low, self.span = low, high - low
        self.size = (self.span // 2 + 7) // 8 * 8
        self.scale = int(single(single(self.size) / single(self.span)) * 65536) if self.size < self.span else 65536
        self.bins = collections.Counter()

    def find(self, address):
        return (address - self.low) // 2 * self.scale // 65536

    def tick(self, address, ticks):
        at = self.find(address)
        if address >= self.low and at < self.size // 2:
            self.bins[at] += ticks

    def write(self, path, arcs):
        """A gmon.out; a bin above 65535 and a count above 2^32-1 take further records. One tick a second: gprof prints
        hundredths of a second, which are then hundredths of a tick."""
        out, left = bytearray(b"gmon" + struct.pack("<I12x", 1)), dict(self.bins)
        while left:
            out += b"\0" + struct.pack("<QQII15sc", self.low, self.low + self.span, self.size // 2, 1, b"seconds", b"s")
            out += struct.pack(f"<{self.size // 2}H", *(min(left.get(i, 0), 65535) for i in range(self.size // 2)))
            left = {i: n - 65535 for i, n in left.items() if n > 65535}
        for caller, callee, calls in arcs:
            while calls > 0:
                out += b"\1" + struct.pack("<QQI", caller, callee, min(calls, 2**32 - 1))
                calls -= 2**32 - 1
        with open(path, "wb") as f:
            f.write(out)


def read_gmon(path):
    """({address: ticks}, [(caller, callee, calls)]) of an export of exact addresses: bins of one byte."""
    with open(path, "rb") as f:
        data = f.read()
    at, ticks, arcs = 20, collections.Counter(), []
    while at < len(data):
        tag, at = data[at], at + 1
        if tag == 0:
            low, high, bins = struct.unpack_from("<QQI", data, at)
            assert high - low == bins, "the export is not of exact addresses"
            at += 40
            for i, n in enumerate(struct.unpack_from(f"<{bins}H", data, at)):
                if n:
                    ticks[low + i] += n
            at += 2 * bins
        else:
            assert tag == 1
            arcs.append(struct.unpack_from("<QQI", data, at))
            at += 20
    return ticks, arcs


def self_ticks(report):
    """{name: ticks} of the functions of the report's own build."""
    out, (rate,) = collections.Counter(), report["totals"]["rates"]
    for f in report["functions"]:
        if f["build_id"] == report["build_id"]:
            out[f["name"]] += f["self_seconds"] * rate
    return out


def marked(report):
    """{name: (least, most)} in ticks of the functions with an estimated self time."""
    (rate,) = report["totals"]["rates"]
    return {f["name"]: (f["self_least"] * rate, f["self_most"] * rate) for f in report["functions"]
            if "self_least" in f}


def gprof_ticks(exe, path):
    out = collections.Counter()
    done = run("gprof", "-b", "-p", "-z", exe, path, env=dict(os.environ, LC_ALL="C"))
    for line in done.stdout.splitlines():
        if m := re.match(r"\s*[\d.]+\s+[\d.]+\s+([\d.]+)\s(?:\s*\d+(?:\s+[\d.]+){2})?\s+(\S.*)$", line):
            out[m.group(2)] += float(m.group(1))
    return out


def distance(a, b):
    return sum(abs(a[name] - b[name]) for name in set(a) | set(b))


Result = collections.namedtuple("Result", "ticks shared exact ours gprof marked reasons text")


def owners_of(exe, histogram):
    """bin → the addresses of the functions that have bytes in it."""
    owners = collections.defaultdict(set)
    for name, (address, size) in symbols(exe).items():
        for at in range(max(address, histogram.low), min(address + size, histogram.low + histogram.span)):
            owners[histogram.find(at)].add(address)
    return owners


def measure(daemon, folder, name, exe, runs, ticks):
    """Runs the program until it has so many ticks of its own; its self times from exact addresses, and from a
    gmon.out."""
    label, exported, binned = re.sub(r"\W", "", name), os.path.join(folder, "exact.gmon"), os.path.join(folder,
            "gmon.out")
    inside, arcs = collections.Counter(), []
    for _ in range(60):
        for arguments, given in runs:
            done = run(PROFCTL, "run", "--rate", RATE, "--wait", 60, "-l", f"of={label}", "-l",
                       "kind=exact", "--", exe,
                       *arguments, env=daemon.env, cwd=folder, timeout=300, binary=True,
                       **({"input": given} if given else {}))
            assert done.returncode in (0, 1), done.stderr
        done = daemon.ctl("export", exe, "-l", f"of={label}", "-l", "kind=exact", "-o", exported)
        assert done.returncode == 0, done.stderr
        inside, arcs = read_gmon(exported)
        if sum(inside.values()) >= ticks:
            break
    histogram = Profil(*bounds(exe))
    for address, n in inside.items():
        histogram.tick(address, n)
    histogram.write(binned, arcs)
    done = daemon.ctl("upload", "-e", exe, "-l", f"of={label}", "-l", "kind=bins", binned)
    assert done.returncode == 0, done.stderr
    exact, ours = (daemon.json("report", exe, "--json", "-l", f"of={label}", "-l", f"kind={kind}")
                   for kind in ("exact", "bins"))
    text = daemon.ctl("report", exe, "--flat", "-l", f"of={label}", "-l", "kind=bins").stdout
    owners = owners_of(exe, histogram)
    shared = sum(n for i, n in histogram.bins.items() if len(owners[i]) > 1)
    return Result(sum(histogram.bins.values()), shared, self_ticks(exact), self_ticks(ours),
                  gprof_ticks(exe, binned), marked(ours), ours["provenance"]["inexact_reasons"], text)


def native(daemon, folder, exe, arguments, ticks):
    """The self times of the program's own gmon.out files, added up until they have so many ticks: no collector took
    part."""
    self = collections.Counter()
    for _ in range(60):
        assert run(exe, *arguments, cwd=folder, timeout=300).returncode == 0
        done = daemon.ctl("upload", "-e", exe, "-l", "kind=glibc", os.path.join(folder, "gmon.out"))
        assert done.returncode == 0, done.stderr
        self = self_ticks(daemon.json("report", exe, "--json", "-l", "kind=glibc"))
        if sum(self.values()) >= ticks:
            break
    return self


def worst(result):
    name = max(set(result.ours) | set(result.exact), key=lambda n: abs(result.ours[n] - result.exact[n]), default="")
    bounds_of = result.marked.get(name)
    return f"{name}: {result.ours[name]:.1f}, exact {result.exact[name]:.0f}" + (
        f", marked: {bounds_of[0]:.0f} to {bounds_of[1]:.0f}" if bounds_of else "")


def unmarked(result):
    """The functions whose self time is wrong by more than a tenth without a mark, or not within the bounds of it."""
    out = []
    for name in set(result.ours) | set(result.exact):
        least, most = result.marked.get(name, (result.ours[name] * 0.9, result.ours[name] * 1.1))
        if not least - 1e-6 <= result.exact[name] <= most + 1e-6:
            out.append((name, result.ours[name], result.exact[name], least, most))
    return sorted(out)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--ticks", type=int, default=2000)
    options.add_argument("--packages")
    options.add_argument("names", nargs="*")
    options = options.parse_args()
    print(f"{'program':12} {'ticks':>8} {'in shared bins':>15} {'gprof error':>12} {'profd error':>12}   largest error "
          f"of profd")
    with Daemon() as daemon:
        wanted = programs(daemon.folder)
        if options.packages:
            wanted.update((name, package(os.path.abspath(options.packages), name)) for name in PACKAGES)
        for name, (exe, runs) in wanted.items():
            if options.names and name not in options.names:
                continue
            if not os.path.exists(exe):
                print(f"{name:12} not built")
                continue
            r = measure(daemon, daemon.folder, name, exe, runs, options.ticks)
            print(f"{name:12} {r.ticks:8d} {r.shared:15d} {distance(r.gprof, r.exact):12.1f} "
                  f"{distance(r.ours, r.exact):12.1f}   {worst(r)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
