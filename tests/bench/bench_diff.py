"""Two builds of 20,000 functions and 160,000 arcs compared, with intervals from all 16 random groups: JSON of the 50
rows of each table, from the store. Each round starts a daemon: its first request, and then two that no answer of before
can serve. Medians of ROUNDS rounds. Beside it pprof -diff_base and perf diff of the same ticks, which have no intervals
and no calls (PEERS=0: not).

Making the data takes most of the time. KEEP=FOLDER keeps it there and uses it again; PROFDS=PROFD… measures these
daemons in turn instead of the build's."""
import collections
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
import perf_data  # noqa: E402
import shapes  # noqa: E402
import harness  # noqa: E402
from harness import Daemon, until  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "5"))
FUNCTIONS, ARCS, PROCESSES = (int(os.environ.get(name, usual)) for name, usual in
                              (("FUNCTIONS", "20000"), ("ARCS", "160000"), ("PROCESSES", "64")))
KEEP, PEERS = os.environ.get("KEEP"), os.environ.get("PEERS", "1") != "0"
PROFDS = os.environ.get("PROFDS", harness.PROFD).split()


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


def make(folder):
    """The builds, and a database with the sums of their processes."""
    builds = [version(folder, n) for n in range(2)]
    with Daemon("--raw-age", "1s") as d:
        for exe, files, _ in builds:
            sent = d.ctl("upload", "-e", exe, *files, timeout=600)
            assert sent.returncode == 0, sent.stderr
        rolled = until(lambda: json.loads(d.get("/api/v1/status")[2])["raw_uploads"] == 0, 3600)
        assert rolled, d.get("/api/v1/status")
        assert d.stop() == 0, d.logged()
        shutil.copytree(d.state, os.path.join(folder, "db"))
    with open(os.path.join(folder, "samples.json"), "w") as f:
        json.dump([sorted(samples.items()) for _, _, samples in builds], f)


def peers(folder, exes):
    """Seconds of pprof and of perf."""
    files, data = [], []
    with open(os.path.join(folder, "samples.json")) as f:
        all_samples = json.load(f)
    with started(folder, harness.PROFD) as d:
        for side, (exe, samples) in enumerate(zip(exes, all_samples)):
            files.append(os.path.join(d.folder, f"{side}.pb.gz"))
            done = d.ctl("report", exe, "-f", "pprof", "-o", files[-1], timeout=300)
            assert done.returncode == 0, done.stderr
            data.append(perf_data.write(os.path.join(d.folder, f"{side}.data"), exe, shapes.TEXT,
                                        shapes.SIZE * (FUNCTIONS + 1), 0x1000, dict(samples)))
        return (timed(["go", "tool", "pprof", "-top", "-nodecount=50", "-sample_index=cpu", "-diff_base", *files],
                      "flat%"),
                timed(["perf", "diff", "-q", "-s", "sym", *data], "f0000100"))


def started(folder, program):
    """A daemon on a copy of the database."""
    d = Daemon(start=False)
    d.program = program
    shutil.copytree(os.path.join(folder, "db"), d.state)
    return d.start()


def spent(pid):
    """Seconds of processor time that all threads of a process have used, and of these in the kernel; page faults."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return [sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK"), int(fields[12]) / os.sysconf("SC_CLK_TCK"),
            int(fields[7])]


def measured(folder, exes, program):
    """Of the first request of a daemon, and of the mean of two more: seconds, of the processor, of the kernel, faults;
    then the most memory in MiB, and the answers."""
    requests, answers = [], []
    with started(folder, program) as d:
        for number in range(3):
            before, began = spent(d.process.pid), time.perf_counter()
            done = d.ctl("diff", *exes[::-1 if number == 2 else 1], "--json", "--limit", str(50 + number), timeout=300)
            took = time.perf_counter() - began
            assert done.returncode == 0, done.stderr
            requests.append([took, *(y - x for x, y in zip(before, spent(d.process.pid)))])
            answers.append(done.stdout)
        with open(f"/proc/{d.process.pid}/status") as f:
            most = int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) / 1024
    return [*requests[0], *(sum(two) / 2 for two in zip(*requests[1:])), most], answers


def main():
    folder = KEEP or tempfile.mkdtemp(prefix="profd-bench-")
    try:
        if not os.path.exists(os.path.join(folder, "samples.json")):
            os.makedirs(folder, exist_ok=True)
            make(folder)
        exes = [os.path.join(folder, str(n), f"shape{FUNCTIONS}") for n in range(2)]
        rounds = [[measured(folder, exes, program) for program in PROFDS] for _ in range(ROUNDS)]
        assert all(answers == rounds[0][0][1] for each in rounds for _, answers in each), "the answers differ"
        title = f"two builds of {FUNCTIONS:,} functions, {ARCS:,} arcs compared, 16 groups"
        for program, of_one in zip(PROFDS, zip(*rounds)):
            m = [statistics.median(column) for column in zip(*(numbers for numbers, _ in of_one))]
            print(f"{title:<66} {'–':>11} {m[0]:>9.3f} s  asked ≤ 0.5 s; first request of a daemon: {m[1]:.2f} s of "
                  f"the processor, of it {m[2]:.2f} in the kernel, {m[3]:,.0f} page faults; again {m[4]:.3f} s, "
                  f"{m[5]:.2f} s, {m[6]:.2f}, {m[7]:,.0f}; {m[8]:.0f} MiB at most"
                  f"{' ' + program if len(PROFDS) > 1 else ''}", flush=True)
        if PEERS:
            pprof, perf = peers(folder, exes)
            title = "  of the same ticks, without intervals and calls"
            print(f"{title:<66} {'–':>11} {pprof:>9.3f} s  pprof -diff_base; perf diff {perf:.3f} s", flush=True)
    finally:
        if not KEEP:
            shutil.rmtree(folder, ignore_errors=True)


main()
