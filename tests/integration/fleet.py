"""Every program of tests/programs, really run, uploaded and reported: `report -f gprof` equals `gprof -b EXE gmon…`
byte for byte, JSON answers satisfy the published schema, and no time is lost on the way."""
import json
import os
import re
import shutil

from harness import ROOT, Daemon, Tap, profile, programs, run

RUNS = {
    "cycle": [["60"], ["90"], ["30"]],
    "calc": [["-s", "1", "-n", "9000"], ["-s", "7", "-n", "6000"], ["1+2*(3-4)^2"]],
    "shapes": [["20000"], ["50000"]],
    "heat": [["200"], ["500"]],
    "twins": [["1500"], ["2500"]],
    "mandel": [["300", "900"], ["500", "1500"], ["50", "50"]],
    "uselib": [["10"], ["3"]],
    "sorter": [["300000", "1"], ["100000", "9"]],
    "threads": [["2", "900"], ["5", "500"]],
}


def main():
    with Tap() as tap, Daemon() as d:
        folder = programs(os.path.join(d.folder, "programs"))
        for name, runs in RUNS.items():
            exe = os.path.join(folder, name)
            if not os.path.exists(exe):
                tap.skip(name, "no Fortran compiler")
                continue
            files = [profile(d.folder, exe, arguments, n) for n, arguments in enumerate(runs)]
            up = d.ctl("upload", "-e", exe, "-l", f"service={name}", *files)
            tap.point(up.returncode == 0, f"{name}: {len(files)} processes uploaded", up.stderr)
            peer = run("gprof", "-b", exe, *files, binary=True, env=dict(os.environ, LC_ALL="C"))
            ours = d.ctl("report", exe, "-f", "gprof", binary=True)
            tap.point(ours.stdout == peer.stdout and len(peer.stdout) > 100, f"{name}: report -f gprof equals gprof -b",
                      first_difference(peer.stdout, ours.stdout) + ours.stderr.decode())
            report = d.json("report", exe, "--json")
            path = os.path.join(d.folder, f"{name}.json")
            with open(path, "w") as f:
                json.dump(report, f)
            check = run("/usr/bin/python3", os.path.join(ROOT, "tests/integration/schema_check.py"), path)
            tap.point(check.returncode == 0, f"{name}: the JSON report satisfies its schema",
                      check.stdout + check.stderr)
            total = report["totals"]["seconds"]
            lost = abs(sum(f["self_seconds"] for f in report["functions"]) - total)
            tap.point(lost <= 1e-9 * max(total, 1), f"{name}: the sum of self is the total", (lost, total))
            tap.point(report["provenance"]["exact"] is False, f"{name}: an imported gmon.out is never called exact")
            static = sum(len(f["static_callers"]) + len(f["static_callees"]) for f in report["functions"])
            zero = [line for line in d.ctl("report", exe).stdout.splitlines() if " 0/0 " in line or "mcount" in line]
            tap.point(static == 0 and not zero, f"{name}: no row of count 0 and no call of mcount without --static",
                      zero)
            basis, never = report["not_called_basis"], {f["address"] for f in report["not_called"]}
            idle = counting(exe) - {f["address"] for f in report["functions"]}
            tap.point(never == idle and basis["not_called"] == len(never)
                      and basis["counted_functions"] == len(counting(exe)),
                      f"{name}: not_called is what calls mcount, has no call and no tick, and gprof -z prints",
                      (basis, sorted(never ^ idle)))
            text = d.ctl("report", exe, "--not-called").stdout.split("\nNot called:\n\n")[1].splitlines()
            names = [f["name"] for f in report["not_called"]]
            tap.point(len(text) == len(names) and all(line.startswith(name) for line, name in zip(text, names)),
                      f"{name}: the text lists them", (text[:9], names[:9]))
            listed = run("gprof", "-b", "-z", "-p", exe, *files, env=dict(os.environ, LC_ALL="C", CXXFILT="")).stdout
            unlisted = [f["name"] for f in report["not_called"] if f["name"] not in listed]
            tap.point(not unlisted, f"{name}: gprof -z prints all of not_called", unlisted)
            both = d.json("report", exe, "--static", "--json")
            zero = [r["name"] for f in both["functions"] for r in f["static_callees"] if "mcount" in r["name"]]
            tap.point(not zero, f"{name}: nor any call of mcount with --static", zero)
            tap.point(abs(both["totals"]["seconds"] - total) < 1e-9, f"{name}: --static moves no time of its own")
            text = d.ctl("report", exe)
            tap.point(text.returncode == 0 and "index % time" in text.stdout, f"{name}: text report", text.stderr)
            tap.point(d.ctl("report", exe).stdout == text.stdout, f"{name}: the same query gives the same bytes")
        rows = d.json("builds", "--json")["rows"]
        names = {os.path.basename(r["name"]) for r in rows}
        tap.point(set(RUNS) - {"heat"} <= names, "builds lists every program", names)
        tap.point(all(r["symbols"] for r in rows), "every build has its symbols", [r for r in rows if not r["symbols"]])
        twins = d.json("report", os.path.join(folder, "twins"), "--json")
        mixes = [f for f in twins["functions"] if f["name"].startswith("mix")]
        tap.point(len(mixes) == 2 and mixes[0]["address"] != mixes[1]["address"], "two functions named mix stay two",
                  mixes)
        shutil.rmtree(folder)
        tap.point(len(d.json("report", rows[0]["build_id"], "--json")["functions"]) > 0,
                  "reports do not need the executable any more")


def counting(exe):
    """Addresses of the functions whose machine code calls mcount, by objdump."""
    found, address = set(), None
    for line in run("objdump", "-d", "--no-show-raw-insn", exe).stdout.splitlines():
        start = re.match(r"([0-9a-f]+) <(.*)>:$", line)
        if start:
            address = (None if ".cold" in start.group(2) or "mcount" in start.group(2)
                       else f"0x{int(start.group(1), 16):x}")
        elif address and re.search(r"\bcall\b.*<(mcount|_mcount)@", line):
            found.add(address)
    return found


def first_difference(a, b):
    for n, (x, y) in enumerate(zip(a.splitlines(), b.splitlines()), 1):
        if x != y:
            return f"line {n}\n gprof: {x!r}\n profd: {y!r}\n"
    return f"{len(a)} and {len(b)} bytes\n"


main()
