"""make bench: reports over a month of a large build, from its day sums and the hours at the edges, cold and warm."""
import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import graphs  # noqa: E402
from harness import BUILD, Daemon  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "5"))
FUNCTIONS, ARCS, DAYS = 20000, 160000, 30


def line(what, seconds, asked, note=""):
    print(f"{what:<66}           – {seconds:9.4f} s  asked ≤ {asked:.1f} s  {note}", flush=True)


def report(d, exe, since, *options):
    began = time.perf_counter()
    done = d.ctl("report", exe, "--since", str(since), *options, timeout=300, binary=True)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - began, done.stdout


def without_downtime(answer):
    """The answer without what it says of restarts, which are part of this benchmark."""
    return re.sub(rb'"down_(count|seconds)":[0-9.]+', b"", answer)


def main():
    with Daemon("--raw-age", "1h") as d:
        exe, first = graphs.executable(d.folder, FUNCTIONS)
        big = graphs.giant_cycle(os.path.join(d.folder, "big.gmon"), exe, first, FUNCTIONS, 2000)
        assert d.ctl("upload", "-e", exe, big).returncode == 0
        build = d.json("report", exe, "--json", "--limit", "1")["build_id"]
        d.stop()
        now = int(time.time())
        database = os.path.join(d.state, "profd.db")
        began = time.perf_counter()
        made = subprocess.run([os.path.join(BUILD, "tests", "window"), database, build, f"{first:x}", str(FUNCTIONS),
                               str(ARCS), str(now), str(DAYS)],
                              capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        print(f"# a month of {made.stdout.split()[1]} uploads stored and rolled up in "
              f"{time.perf_counter() - began:.1f} s, "
              f"{os.path.getsize(database) / 1e6:.0f} MB")
        since, cold, answers = now - DAYS * 86400, [], set()
        for _ in range(ROUNDS):
            d.start()
            seconds, answer = report(d, exe, since, "--json", "--limit", "200")
            cold.append(seconds)
            answers.add(without_downtime(answer))
            d.stop()
        d.start()
        report(d, exe, since, "--json", "--limit", "200")
        warm = []
        for _ in range(ROUNDS):
            seconds, answer = report(d, exe, since, "--json", "--limit", "200")
            warm.append(seconds)
            answers.add(without_downtime(answer))
        what = f"{DAYS} days of {FUNCTIONS:,} functions, {ARCS:,} arcs: JSON, top 200"
        line(f"{what}, cold", statistics.median(cold), 0.8, "daemon just started")
        line(f"{what}, warm", statistics.median(warm), 0.3)
        moved = [report(d, exe, since + 60 * (i + 1), "--json", "--limit", "200")[0] for i in range(ROUNDS)]
        line(f"{what}, window moved on", statistics.median(moved), 0.3)
        text = [report(d, exe, since, "-o", "/dev/null")[0] for _ in range(ROUNDS)]
        line(f"{DAYS} days, full text, warm", statistics.median(text), 0.4)
        assert len(answers) == 1, "the cache changed an answer"


main()
