"""make bench: sampling the whole host beside perf record -a -g on busy cores, both at the same time: CPU time at 99 Hz;
ours at 19; and what a minute of redis under load takes in the database: the bytes in use of all its tables and indexes
but those of symbols, as single uploads and when they have become the sum of their hour, which is what remains.
RECORD_SECONDS: of each measurement."""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import PROFCTL, Daemon, free_port, run, until  # noqa: E402

SECONDS = int(os.environ.get("RECORD_SECONDS", "60"))
CORES = len(os.sched_getaffinity(0))
# Deep stacks, with frame pointers.
BUSY = """
static volatile unsigned long sink;
__attribute__((noinline)) void work(int depth)
{
    if (depth > 0) {
        work(depth - 1);
    } else {
        for (int i = 0; i < 100000; i++) { sink += i; }
    }
    __asm__ volatile("");
}
int main(void) { for (;;) { work(25); } }
"""


def line(what, peer, ours, ratio, unit, asked):
    print(f"{what:<66} {peer:10.4f} {ours:10.4f} {unit:<3} {ratio:8.4f}  asked ≤ {asked}", flush=True)


def cpu_times(commands, env, folder):
    """CPU seconds of programs that sample at the same time for SECONDS and are then interrupted."""
    children = [subprocess.Popen(c, env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for c in commands]
    time.sleep(SECONDS)
    used = []
    for child in children:
        child.send_signal(signal.SIGINT)
        usage = os.wait4(child.pid, 0)[2]
        used.append(usage.ru_utime + usage.ru_stime)
    return used


def overhead(d, folder):
    source, exe = os.path.join(folder, "busy.c"), os.path.join(folder, "busy")
    with open(source, "w", encoding="utf-8") as f:
        f.write(BUSY)
    built = run("gcc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", exe, source)
    assert built.returncode == 0, built.stderr
    busy = [subprocess.Popen([exe]) for _ in range(CORES)]
    try:
        perf, ours = cpu_times((["perf", "record", "-a", "-g", "-F", "99", "-o", "perf.data"],
                                [PROFCTL, "record", "-a", "--rate", "99"]), d.env, folder)
        slow, = cpu_times(([PROFCTL, "record", "-a"],), d.env, folder)
    finally:
        for b in busy:
            b.kill()
            b.wait()
    line(f"record -a at 99 Hz, {CORES} busy cores, {SECONDS} s: CPU time", perf, ours, ours / perf, "s", "0.5")
    share = slow / SECONDS / CORES
    print(f"{'record -a at 19 Hz: share of the host':<66}          – {share:10.5f}               asked ≤ 0.003",
          flush=True)


SYMBOLS = ("object", "object_sender", "host_build")


def database_bytes(d):
    """Bytes in use, without free space in pages, of tables and indexes other than those of symbols."""
    with contextlib.closing(sqlite3.connect(f"file:{os.path.join(d.state, 'profd.db')}?mode=ro", uri=True)) as c:
        used = c.execute("SELECT t.tbl_name, sum(s.pgsize - s.unused) FROM dbstat s JOIN sqlite_schema t USING (name) "
                         "GROUP BY 1").fetchall()
    return sum(n for table, n in used if table not in SYMBOLS)


def stopped_bytes(d):
    d.stop()  # what is in the write-ahead log goes to its place
    n = database_bytes(d)
    d.start()
    return n


def redis(d, folder):
    if not shutil.which("redis-server"):
        print("# redis-server is not installed: no figure of its bytes", flush=True)
        return
    port = str(free_port())
    server = subprocess.Popen(["redis-server", "--port", port, "--save", "", "--dir", folder],
                              stdout=subprocess.DEVNULL)
    load = None
    try:
        until(lambda: run("redis-cli", "-p", port, "ping").stdout.strip() == "PONG")
        load = subprocess.Popen(["redis-benchmark", "-p", port, "-q", "-l", "-P", "32", "-t",
                                 "set,get,lpush,sadd,hset"],
                                stdout=subprocess.DEVNULL)
        record = [PROFCTL, "record", "--rate", "99", "-p", str(server.pid)]
        empty = stopped_bytes(d)
        run("timeout", "-s", "INT", "5", *record, env=d.env)  # names of builds and labels are there
        before = stopped_bytes(d)
        cpu_times((["perf", "record", "-g", "-F", "99", "-p", str(server.pid), "-o", "redis.data"], record), d.env,
                  folder)
        single = stopped_bytes(d) - before
        d.stop()
        d.options = ("--raw-age", "1s")
        d.start()
        until(lambda: json.loads(d.get("/api/v1/status")[2])["raw_uploads"] == 0)
        summed = stopped_bytes(d) - empty
        perf = os.path.getsize(os.path.join(folder, "redis.data"))
        line(f"redis under load, {SECONDS} s at 99 Hz: single uploads", perf / 1e6, single / 1e6, single / perf, "MB",
             "0.02")
        line("the same as a sum, with 5 s before, builds and labels", perf / 1e6, summed / 1e6, summed / perf, "MB",
             "0.02")
    finally:
        for p in (load, server):
            if p:
                p.kill()
                p.wait()


def main():
    print(f"{'':<66} {'perf':>10} {'profd':>10}        ratio")
    if run("perf", "record", "-a", "-o", "/dev/null", "true").returncode != 0:
        print("# perf may not sample this host: nothing to compare with")
        return
    for measure in (overhead, redis):
        with Daemon() as d, tempfile.TemporaryDirectory() as folder:
            measure(d, folder)


main()
