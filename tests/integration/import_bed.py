# not a test
"""What the tests of imports share: files, reports, and text of perf script."""
import os

from harness import run, symbols

PPROF = next((p for p in ("/usr/lib/go-1.19/pkg/tool/linux_amd64/pprof", "/usr/lib/go-1.19/pkg/tool/linux_arm64/pprof")
              if os.path.exists(p)), None)

BUSY = r"""
#include <stdio.h>
double __attribute__((noinline)) heavy(int n)
{ volatile double s = 0; for (int i = 0; i < n; i++) s += i * 0.5; return s; }
double __attribute__((noinline)) light(int n)
{ volatile double s = 0; for (int i = 0; i < n / 10; i++) s += i * 0.5; return s; }
double __attribute__((noinline)) middle(int n) { return heavy(n) + light(n) + 1; }
int main(void) { double r = 0; for (int i = 0; i < 150; i++) r += middle(1000000); printf("%f\n", r); return 0; }
"""


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "wb" if isinstance(text, bytes) else "w") as f:
        f.write(text)
    return path


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


def perf_text(exe, bias, leaf, callers, time_stamp, pid="77/77", comm="busy", period=1003009):
    """One sample as perf script prints it; leaf and callers are (symbol, offset)."""
    at = symbols(exe)
    lines = [f"{comm} {pid} {time_stamp}: {period:10d} cpu-clock:ppp: "]
    for name, offset in [leaf, *callers]:
        lines.append(f"\t{at[name][0] + offset + bias:16x} {name}+{offset:#x} ({exe})")
    return "\n".join(lines) + "\n\n"


def busy(folder):
    exe = os.path.join(folder, "busy")
    source = write(folder, "busy.c", BUSY)
    done = run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id", "-o",
               exe, source)
    assert done.returncode == 0, done.stderr
    return exe
