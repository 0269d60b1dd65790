"""Two builds of 20,000 functions and 160,000 arcs compared, with intervals from all 16 random groups: JSON of the 50
rows of each table, from the store. Median of ROUNDS runs of a daemon that keeps no answers of before. Beside it pprof
-diff_base and perf diff of the same ticks, which have no intervals and no calls."""
import collections
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
import perf_data  # noqa: E402
import shapes  # noqa: E402
from harness import Daemon, until  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "5"))
FUNCTIONS, ARCS, PROCESSES = (int(os.environ.get(name, usual)) for name, usual in
                              (("FUNCTIONS", "20000"), ("ARCS", "160000"), ("PROCESSES", "64")))


def version(folder, number):
    """An executable, a gmon.out of each process, and the ticks of all; in the second version each 100th function is a
    tenth slower."""
    where = os.path.join(folder, str(number))
    os.mkdir(where)
    exe = shapes.executable(where, FUNCTIONS)
    with open(exe, "r+b") as f:  # another build-id
        head = f.read(0x1000)
        f.seek(head.index(b"GNU\0") + 4)
        f.write(bytes([number]))
    callers, callees, calls, ticks = shapes.layered(FUNCTIONS, ARCS)
    files, samples = [], collections.Counter()
    for process in range(PROCESSES):
        draw = random.Random(number * 1000 + process)
        work = 1 + draw.randrange(4)
        own = [int(t * work * (1.1 if number and i % 100 == 0 else 1) + draw.random()) for i, t in enumerate(ticks)]
        samples.update({shapes.address(i): n for i, n in enumerate(own) if n})
        files.append(shapes.profile(os.path.join(where, f"{process}.gmon"), FUNCTIONS, callers, callees,
                                    [n * work for n in calls], own))
        os.utime(files[-1], (time.time() - 90000,) * 2)
    return exe, files, samples


def timed(command, out):
    """Median of ROUNDS runs; their output must hold this text."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, HOME=os.path.dirname(
            command[-1]), PATH=os.environ["PATH"] + ":/usr/lib/go-1.19/bin"))
        times.append(time.perf_counter() - began)
        assert out in done.stdout, (command, done.stdout[-300:], done.stderr[-300:])
    return sorted(times)[len(times) // 2]


def peers(d, folder, builds):
    """Seconds of pprof and of perf."""
    files, data = [], []
    for side, (exe, _, samples) in enumerate(builds):
        files.append(os.path.join(folder, f"{side}.pb.gz"))
        done = d.ctl("report", exe, "-f", "pprof", "-o", files[-1], timeout=300)
        assert done.returncode == 0, done.stderr
        data.append(perf_data.write(os.path.join(folder, f"{side}.data"), exe, shapes.TEXT,
                                    shapes.SIZE * (FUNCTIONS + 1), 0x1000, samples))
    return (timed(["go", "tool", "pprof", "-top", "-nodecount=50", "-sample_index=cpu", "-diff_base", *files], "flat%"),
            timed(["perf", "diff", "-q", "-s", "sym", *data], "f0000100"))


def cpu(d):
    """Seconds of processor time that the daemon has used."""
    with open(f"/proc/{d.process.pid}/stat") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def main():
    folder = tempfile.mkdtemp(prefix="profd-bench-")
    try:
        builds = [version(folder, n) for n in range(2)]
        with Daemon("--raw-age", "1s") as d:
            for exe, files, _ in builds:
                sent = d.ctl("upload", "-e", exe, *files, timeout=600)
                assert sent.returncode == 0, sent.stderr
            rolled = until(lambda: json.loads(d.get("/api/v1/status")[2])["raw_uploads"] == 0, 600)
            assert rolled, d.get("/api/v1/status")
            times, used = [], cpu(d)
            for round in range(ROUNDS):
                began = time.perf_counter()
                done = d.ctl("diff", builds[0][0], builds[1][0], "--json", "--limit", str(50 + round), timeout=300)
                times.append(time.perf_counter() - began)
                assert done.returncode == 0, done.stderr
            used = (cpu(d) - used) / ROUNDS
            pprof, perf = peers(d, folder, builds)
            print(f"{f'two builds of {FUNCTIONS:,} functions, {ARCS:,} arcs compared, 16 groups':<66} {'–':>11} "
                  f"{sorted(times)[len(times) // 2]:>9.3f} s  asked ≤ 0.5 s, {used:.3f} s of processor time; of the "
                  f"same ticks, without intervals and calls: pprof -diff_base {pprof:.3f} s, perf diff {perf:.3f} s")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
