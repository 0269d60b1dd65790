"""make bench: profd beside its peer in the same run. Medians; the ratio is what counts, the seconds are this
machine's."""
import os
import shutil
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import graphs  # noqa: E402
from harness import Daemon, programs, run  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "5"))


def timed(rounds, action):
    """Median seconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def line(what, peer, ours, note=""):
    ratio = f"{peer / ours:8.1f} ×" if peer else "         –"
    print(f"{what:<66} {f'{peer:9.3f} s' if peer else '        –  '} {ours:9.4f} s {ratio}  {note}", flush=True)


def check(done):
    assert done.returncode == 0, done.stderr
    return done


def main():
    c = dict(os.environ, LC_ALL="C")
    print(f"{'what':<66} {'gprof':>11} {'profd':>11} {'ratio':>10}")
    with Daemon() as d:
        folder = d.folder
        exe, first = graphs.executable(folder, 20000)
        big = graphs.giant_cycle(os.path.join(folder, "big.gmon"), exe, first, 20000, 160000)
        began = time.perf_counter()
        check(d.ctl("upload", "-e", exe, big))
        line("durable upload of 160,000 arcs, symbols included", 0, time.perf_counter() - began)
        peer = timed(1, lambda: check(run("gprof", "-b", exe, big, env=c, timeout=300, binary=True)))
        line("full text report, 20,000 functions, 160,000 arcs, one cycle", peer,
             timed(ROUNDS, lambda: check(d.ctl("report", exe, "-o", "/dev/null", timeout=300, binary=True))))
        line("the same, gprof's own bytes (-f gprof)", peer,
             timed(ROUNDS, lambda: check(d.ctl("report", exe, "-f", "gprof", timeout=300, binary=True))))
        line("the same, without a daemon (profctl gprof -b)", peer,
             timed(ROUNDS, lambda: check(d.ctl("gprof", "-b", exe, big, timeout=300, binary=True))))
        line("the same, JSON, top 200 functions", peer,
             timed(ROUNDS, lambda: check(d.ctl("report", exe, "--json", "--limit", "200", binary=True))))
        _, headers, _ = d.get(f"/api/v1/builds/{build_id(d, exe)}/report?limit=200")
        target = f"/api/v1/builds/{build_id(d, exe)}/report?limit=200"
        line("the same again with its ETag (HTTP)", 0, timed(51, lambda: d.get(target, If_None_Match=headers["etag"])),
             "304")
    with Daemon() as d:
        exe, first = graphs.executable(d.folder, 3600)
        files = [graphs.lua_sized(os.path.join(d.folder, f"{n}.gmon"), exe, first, 3600, seed=n % 20)
                 for n in range(1000)]
        peer = timed(1, lambda: check(run("gprof", "-s", exe, *files, cwd=d.folder, env=c, timeout=300)))
        began = time.perf_counter()
        check(d.ctl("upload", "-e", exe, *files, timeout=300))
        upload = time.perf_counter() - began
        line("1,000 profiles of a busy interpreter: delivered durably (profctl)", peer, upload,
             f"{1000 / upload:.0f}/s; gprof -s: {1000 / peer:.0f}/s, not durable")
        line("1,000 profiles: merged and reported", peer, timed(ROUNDS,
                lambda: check(d.ctl("report", exe, "-f", "json", "--limit", "200", binary=True))))
        d.stop()
        stored = sum(os.path.getsize(os.path.join(d.state, f)) for f in os.listdir(d.state))
        print(f"{'bytes stored for one such profile':<66} {os.path.getsize(files[0]):9} B {stored / 1000:9.0f} B "
              f"{os.path.getsize(files[0]) * 1000 / stored:8.1f} ×")


def lost_calls():
    """What an imported gmon.out of a threaded program lacks: calls of step() that glibc counted, of those made."""
    with Daemon() as d:
        exe = os.path.join(programs(os.path.join(d.folder, "programs")), "threads")
        check(run(exe, "4", "2000", cwd=d.folder))
        check(d.ctl("upload", "-e", exe, os.path.join(d.folder, "gmon.out")))
        counted = next(f["calls"] for f in d.json("report", exe, "--json")["functions"] if f["name"] == "step")
        print(f"{'calls lost by glibc with 4 threads (and so by any gmon.out)':<66} {100 - counted / 80000:9.0f} %   "
              f"of 8,000,000")


def build_id(d, exe):
    return d.json("report", exe, "--json", "--limit", "1")["build_id"]


main()
lost_calls()
