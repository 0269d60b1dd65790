"""make bench: the HTTP server under wrk on the same cores: a repeated question with its ETag, and its flat rows."""
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import graphs  # noqa: E402
from harness import Daemon  # noqa: E402

ROUNDS, SECONDS = int(os.environ.get("ROUNDS", "5")), os.environ.get("WRK_SECONDS", "3")


def ticks(d):
    fields = open(f"/proc/{d.process.pid}/stat").read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def wrk(d, url, *headers):
    """(requests a second, microseconds of the daemon's processor time each); every answer must be a good one."""
    before = ticks(d)
    command = ["wrk", "-t1", "-c32", f"-d{SECONDS}s", *[a for h in headers for a in ("-H", h)], url]
    out = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    assert "Non-2xx" not in out, out
    requests = int(re.search(r"(\d+) requests in", out).group(1))
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)), (ticks(d)
            - before) / os.sysconf("SC_CLK_TCK") * 1e6 / requests


def line(what, rates, asked, note=""):
    print(f"{what:<66}           – {statistics.median(r for r, _ in rates):9.0f}/s  asked ≥ {asked:,}/s  "
          f"{statistics.median(c for _, c in rates):.0f} µs of the daemon's CPU each  {note}", flush=True)


def first_question(d, build):
    """Call graph of 20 functions: the first question after a start, and the same again; seconds, medians, and bytes."""
    target, first, again, cpu = f"/api/v1/builds/{build}/report?limit=20", [], [], []
    for _ in range(ROUNDS):
        d.stop()
        d.start()
        before = ticks(d)
        for times in (first, again):
            began = time.perf_counter()
            size = len(d.get(target)[2])
            times.append(time.perf_counter() - began)
        cpu.append((ticks(d) - before) / os.sysconf("SC_CLK_TCK"))
    print(f"one cycle of 20,000, call graph of 20: daemon just started / again              – "
          f"{statistics.median(first):.3f} s / "
          f"{statistics.median(again) * 1e3:.1f} ms  asked ≤ 0.12 s / 10 ms  {size / 1e3:.0f} KB, asked ≤ 200  "
          f"{statistics.median(cpu):.2f} s of the daemon's CPU",
          flush=True)


def main():
    if not shutil.which("wrk"):
        print("# wrk is not installed: no rates of the HTTP server")
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with Daemon("--http", f"127.0.0.1:{port}", "--http-open") as d:
        exe, first = graphs.executable(d.folder, 20000)
        big = graphs.giant_cycle(os.path.join(d.folder, "big.gmon"), exe, first, 20000, 160000)
        assert d.ctl("upload", "-e", exe, big).returncode == 0
        build = d.json("report", exe, "--json", "--limit", "1")["build_id"]
        first_question(d, build)
        flat = f"/api/v1/builds/{build}/report?view=flat&limit=200&sort=self"
        _, headers, body = d.get(flat)
        url = f"http://127.0.0.1:{port}{flat}"
        line("repeated question with its ETag: 304 (HTTP, keep-alive, wrk)",
             [wrk(d, url, f"If-None-Match: {headers['etag']}") for _ in range(ROUNDS)], 20000)
        line(f"the same without: 200 flat rows, {len(body):,} bytes", [wrk(d, url) for _ in range(ROUNDS)], 3000)
        line("the same, gzip", [wrk(d, url, "Accept-Encoding: gzip") for _ in range(ROUNDS)], 3000,
             f"{len(d.get(flat, Accept_Encoding='gzip')[2]):,} bytes")
        whole = f"/api/v1/builds/{build}/report?view=flat&limit=0"
        body = d.get(whole)[2]
        line(f"all 20,000 functions as columns, {len(body) / 1e6:.1f} MB",
             [wrk(d, f"http://127.0.0.1:{port}{whole}") for _ in range(ROUNDS)], 1)
        line("the same, zstd", [wrk(d, f"http://127.0.0.1:{port}{whole}", "Accept-Encoding: zstd")
                                for _ in range(ROUNDS)], 1,
             f"{len(d.get(whole, Accept_Encoding='zstd')[2]) / 1e6:.2f} MB")


main()
