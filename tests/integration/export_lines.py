#!/usr/bin/python3
"""Addresses and lines in exports, read by their own tools: ticks of pprof -disasm and -list, and of callgrind_annotate,
are those that the daemon has for the addresses. An export that is imported again gives the same sums."""
import glob
import json
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
from harness import Daemon, Gmon, Tap, bounds, run, symbols, until  # noqa: E402

SOURCE = """static volatile int n;
static inline __attribute__((always_inline)) int inner(int k)
{
    for (int i = 0; i < k; i++)
        n += i;
    return n;
}
static inline __attribute__((always_inline)) int middle(int k) { return inner(k) + 1; }
__attribute__((noinline)) void leaf(void) { n++; }
__attribute__((noinline)) int outer(int k)
{
    for (int i = 0; i < 3; i++)
        leaf();
    return middle(k) * 2;
}
int main(void)
{
    for (int i = 0; i < 300; i++)
        outer(2000000);
    return 0;
}
"""
PPROF = next(iter(glob.glob("/usr/lib/go-1.*/pkg/tool/*/pprof")), None)


def build(folder, name, *options):
    source, exe = os.path.join(folder, f"{name}.c"), os.path.join(folder, name)
    with open(source, "w") as f:
        f.write(SOURCE)
    done = run("gcc", "-g", "-pg", *options, "-o", exe, source)
    assert done.returncode == 0, done.stderr
    return exe, source


def truth(d, exe, function):
    """address → ticks, as the daemon counts them."""
    at = symbols(exe)[function][0]
    build_id = d.json("report", exe, "--json")["build_id"]
    rows = json.loads(d.get(f"/api/v1/builds/{build_id}/functions/0x{at:x}/addresses")[2])["rows"]
    ticks = {}
    for r in rows:
        assert not r["shared"], r
        ticks[int(r["address"], 16)] = ticks.get(int(r["address"], 16), 0) + r["ticks"]
    return ticks


def lines_of(exe, addresses):
    """address → (file, line) by addr2line, an independent reader."""
    words = [hex(a) for a in addresses]
    said = run("addr2line", "-e", exe, *words).stdout.splitlines()
    return {a: int(re.sub(r"\D.*", "", s.split(":")[-1]) or 0) for a, s in zip(addresses, said)}


def by_line(exe, ticks):
    lines, out = lines_of(exe, list(ticks)), {}
    for address, n in ticks.items():
        out[lines[address]] = out.get(lines[address], 0) + n
    return out


def pprof(d, *arguments):
    done = run(PPROF, *arguments, env=dict(os.environ, HOME=d.folder, PPROF_TMPDIR=d.folder))
    return done.stdout if done.returncode == 0 else done.stderr


def export(d, exe, form, server=()):
    path = os.path.join(d.folder, f"{os.path.basename(exe)}.{form}")
    done = d.ctl("report", exe, "-f", form, "-o", path, *server)
    assert done.returncode == 0, done.stderr
    return path


def test_pprof(tap, d, exe, source, ticks):
    if PPROF is None:
        return tap.skip("pprof", "no pprof tool here")
    path = export(d, exe, "pprof")
    text = pprof(d, "-sample_index=samples", "-disasm=outer", exe, path)
    said = {int(m.group(2), 16): int(m.group(1)) for m in
            re.finditer(r"^\s*(\d+)\s+\d+\s+([0-9a-f]+):", text, re.M)}
    tap.point(said == ticks, f"pprof -disasm: {sum(ticks.values())} ticks at the right instructions", f"{said}\n{text}")
    raw = pprof(d, "-raw", "-symbolize=none", path)
    tap.point(re.search(rf"0x0/0xffffffffffffffff/0x0 {re.escape(exe)} \S+ \[FN\]\s*$", raw, re.M)
              and "lines: the first of each function" in raw, "the export has functions, and says so", raw[-600:])
    by_itself = ("-symbolize=local:force", "-sample_index=samples")
    text = pprof(d, *by_itself, "-list=^outer$", path)
    said = {int(m.group(2)): int(m.group(1)) for m in re.finditer(r"^\s*(\d+)\s+\d+\s+(\d+):", text, re.M)}
    want = {line: n for line, n in by_line(exe, ticks).items() if n}
    tap.point(want and said == want, f"pprof -symbolize=local:force: ticks at lines of inlined code {want}",
              f"{said}\n{text}")
    tap.point("n += i;" in text, "with its source")


def test_callgrind(tap, d, exe, source, ticks, rate):
    path = export(d, exe, "callgrind")
    if shutil.which("callgrind_annotate") is None:
        return tap.skip("callgrind_annotate", "it is not here")
    done = run("callgrind_annotate", "--auto=yes", "--threshold=100", "--show-percs=no", path)
    shown = {}
    for i, line in enumerate(SOURCE.splitlines(), 1):
        m = re.search(rf"^\s*([\d,]+)  {re.escape(line)}$", done.stdout, re.M)
        if m and line.strip():
            shown[i] = int(m.group(1).replace(",", ""))
    want = {line: n * 10**9 // rate for line, n in by_line(exe, ticks).items() if n}
    tap.point(want and all(abs(shown.get(line, 0) - n) <= 9 for line, n in want.items()),
              "callgrind_annotate --auto=yes prints source lines with their ticks", f"{want}\n{shown}\n{done.stdout}")
    total = round(d.json("report", exe, "--json")["totals"]["seconds"] * 1e9)
    m = re.search(r"^\s*([\d,]+)\s+PROGRAM TOTALS", done.stdout, re.M)
    tap.point(m and abs(int(m.group(1).replace(",", "")) - total) <= 9, "the sum is that of the report",
              done.stdout[:800])
    with open(path) as f:
        text = f.read()
    number, costs, inside = re.search(r"fn=\((\d+)\) outer$", text, re.M).group(1), {}, False
    for line in text.splitlines():
        if line.startswith(("fn=", "cfn=")):
            inside = line.startswith(f"fn=({number})")
        elif inside and line.startswith("0x"):
            address, _, cost = line.split()
            costs[int(address, 16)] = costs.get(int(address, 16), 0) + int(cost)
    own = {a: n * 10**9 // rate for a, n in ticks.items() if n}
    tap.point(all(abs(costs.get(a, 0) - n) <= 1 for a, n in own.items()), "costs stand at the addresses of the ticks",
              f"{own}\n{costs}")


def test_import(tap, d, exe, form):
    """The same sums come back, also where the executable is not there."""
    path = export(d, exe, form)
    with Daemon() as other:
        done = other.ctl("upload", "-e", exe, path)
        mine, theirs = (x.json("report", exe, "--json") for x in (d, other)) if done.returncode == 0 else ({}, {})
        rows = [{f["name"]: (f["ticks"], f["calls"]) for f in r.get("functions", [])
                 if f["ticks"] or f["calls"]} for r in (mine, theirs)]
        tap.point(rows[0] and rows[0] == rows[1], f"{form}: read again, every function has its ticks and calls",
                  f"{done}\n{rows[0]}\n{rows[1]}")


def test_shared(tap, d):
    """A gmon.out of 4-byte bins: no tick is lost, and the export says how wide bins are."""
    exe, _ = build(d.folder, "gmon", "-O0")
    low, high = bounds(exe)
    g = Gmon(low, high, bins=(high - low) // 4)
    at, size = symbols(exe)["outer"]
    for i, address in enumerate(range(at, at + size, 4)):
        g.tick(address, 3 + i)
    g.arc(symbols(exe)["main"][0] + 16, at, 7)
    assert d.ctl("upload", "-e", exe, g.write(os.path.join(d.folder, "g.out"))).returncode == 0
    total = d.json("report", exe, "--json")["totals"]["ticks"]
    if PPROF is not None:
        raw = pprof(d, "-raw", export(d, exe, "pprof"))
        said = sum(int(m) for m in re.findall(r"^\s+(\d+)\s+\d+\s+\d+: ", raw, re.M))
        tap.point(said == total and "bins of up to 4 bytes" in raw, "bins of 4 bytes: all ticks, and the width is said",
                  f"{said} {total}\n{raw[-800:]}")


with Tap() as tap, Daemon() as d:
    exe, source = build(d.folder, "t", "-O1")
    assert d.ctl("run", "--rate", "250", "--", exe).returncode == 0
    until(lambda: d.ctl("report", exe).returncode == 0 and truth(d, exe, "outer"))
    ticks = truth(d, exe, "outer")
    test_pprof(tap, d, exe, source, ticks)
    test_callgrind(tap, d, exe, source, ticks, 250)
    for form in ("pprof", "callgrind"):
        test_import(tap, d, exe, form)
    test_shared(tap, d)
