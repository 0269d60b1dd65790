#!/usr/bin/python3
"""profctl record --unwind table on Debian's own binaries, which have no frame pointers: how many stacks are complete;
and stacks of stopped processes, each address beside eu-stack's. `whole.py perf` also prints how many stacks of perf
record --call-graph dwarf are complete."""
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import BUILD, LONG, Daemon, Tap, perf_lock, run, until  # noqa: E402

UNWINDER = os.path.join(BUILD, "tests", "unwinder")
RATE = "499"
ASKED = 0.95  # of all stacks
LOOP = "with recursive c(x) as (select 1 union all select x+1 from c where x<%d) select sum(x) from c"
CALLS = "def f(n): return sum(f(n-1) for _ in range(3)) if n else 1\nfor _ in range(%d): f(6)\n"
PROGRAMS = [("sqlite3", "sqlite3", ":memory:", LOOP % 1000000),
            ("python3", "/usr/bin/python3", "-c", CALLS % 1500),
            ("bash", "bash", "-c", "for ((i = 0; i < 100000; i++)); do x=$((i * 3)); done"),
            ("openssl", "openssl", "speed", "-seconds", "1", "-bytes", "16384", "sha256"),
            ("xz", "sh", "-c", "exec xz -T2 -2 -k -c \"$0\" > /dev/null", "INPUT"),
            ("sort", "sh", "-c", "exec sort -n \"$0\" > /dev/null", "INPUT"),
            ("redis-server and its benchmark", "sh", "-c", "redis-server --port 0 --unixsocket \"$0.s\" --save '' "
             "--logfile /dev/null & while ! [ -S \"$0.s\" ]; do sleep 0.05; done; "
             "redis-benchmark -s \"$0.s\" -n 20000 -q -t set,get,lpush,lrange_100 > /dev/null; kill $!; wait", "INPUT")]
OUTERMOST = ("_start", "clone", "clone3", "__clone", "__clone3", "thread_start", "_dl_start_user")


def entry_of(path, known={}):
    if path not in known:
        found = re.search(r"Entry point address:\s+0x([0-9a-f]+)", run("readelf", "-h", path).stdout)
        low = re.findall(r"LOAD\s+0x0*\s0x([0-9a-f]+)", run("readelf", "-lW", path).stdout)
        known[path] = int(found.group(1), 16) - (int(low[0], 16) if low else 0) if found else None
    return known[path]


def is_whole(frame):
    """Says whether a line of perf script is a frame without a caller: by its name, or by the program's entry point."""
    found = re.match(r"\s*([0-9a-f]+) (.*?) \((.*)\)$", frame)
    if not found:
        return False
    address, name, path = int(found.group(1), 16), found.group(2).split("+")[0], found.group(3)
    if name in OUTERMOST:
        return True
    entry = entry_of(path) if path.startswith("/") else None
    return entry is not None and any(0 <= address - base - entry < 64 for base in (0, 0x400000))


def perf_stacks(folder, arguments):
    """Samples with user frames and those of them that are complete, or what perf said."""
    data = os.path.join(folder, "perf.data")
    with perf_lock():
        done = run("perf", "record", "-q", "-e", "cpu-clock", "-F", RATE, "--call-graph", "dwarf,32768", "-o", data,
                   "--", *arguments, timeout=LONG)
    if done.returncode != 0:
        return done.stderr.strip().replace("\n", " ")[:100]
    text = run("perf", "script", "-i", data, "-F", "ip,sym,symoff,dso", timeout=LONG).stdout
    user = [[f for f in stack.splitlines() if "[kernel" not in f and "(inlined)" not in f]
            for stack in text.split("\n\n")]
    user = [stack for stack in user if stack]
    return f"{sum(is_whole(stack[-1]) for stack in user)} of {len(user)}"


def record_stacks(d, *arguments):
    done = d.ctl("record", "--verbose", "--rate", RATE, "--unwind", "table", *arguments, timeout=LONG)
    found = re.search(r"(\d+) in functions, (\d+) in the kernel, .* (\d+) whole stacks", done.stderr)
    return (int(found.group(1)) + int(found.group(2)), int(found.group(3))) if found else (0, 0)


def sampled(tap):
    total, whole = 0, 0
    with tempfile.TemporaryDirectory() as folder, Daemon() as d:
        source = os.path.join(folder, "input")
        with open(source, "w", encoding="utf-8") as f:
            f.writelines(f"{i * 7919 % 1000003} line {i}\n" for i in range(400000))
        for name, *command in PROGRAMS:
            arguments = [source if word == "INPUT" else word for word in command]
            mine = record_stacks(d, "--", *arguments)
            print(f"# {name}: {mine[1]} of {mine[0]} stacks are complete ({100 * mine[1] / max(mine[0], 1):.1f} %)")
            if sys.argv[1:] == ["perf"]:
                print(f"# perf's: {perf_stacks(folder, arguments)}")
            tap.point(mine[0] >= 10, f"{name}: sampled", mine)
            total, whole = total + mine[0], whole + mine[1]
    tap.point(whole >= ASKED * total, f"{100 * whole / max(total, 1):.1f} % of {total} stacks are complete", whole)


def addresses(text):
    return [int(a, 16) for a in re.findall(r"^#\d+\s+0x([0-9a-f]+)", text, re.M)]


# A signal's handler that spins, in a function that libc's qsort calls through a pointer.
HANDLER = r"""
#include <signal.h>
#include <stdlib.h>
static volatile unsigned long sink;
static void on_signal(int number) { for (;;) { sink += (unsigned long)number; } }
static int compare(const void *a, const void *b) { raise(SIGUSR1); return *(const int *)a - *(const int *)b; }
int main(void)
{
    int numbers[] = {3, 2, 1};
    signal(SIGUSR1, on_signal);
    qsort(numbers, 3, sizeof *numbers, compare);
    return numbers[0];
}
"""


def build_handler(folder):
    source, program = os.path.join(folder, "handler.c"), os.path.join(folder, "handler")
    with open(source, "w", encoding="utf-8") as f:
        f.write(HANDLER)
    done = run("gcc", "-O2", "-fomit-frame-pointer", "-o", program, source)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return program


def stopped(tap, folder):
    """Each process is stopped a few times, wherever it is."""
    for name, command in (("a signal's handler", (build_handler(folder),)),
                          ("sqlite3", ("sqlite3", ":memory:", LOOP % 1000000000)),
                          ("python3", ("/usr/bin/python3", "-c", CALLS % 100000000)),
                          ("bash", ("bash", "-c", "while :; do x=$((x + 1)); done"))):
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            same, all_, deepest, wrong = 0, 0, 0, []
            for _ in range(12):
                before = cpu_ticks(p.pid)
                until(lambda: cpu_ticks(p.pid) > before + 3)
                p.send_signal(signal.SIGSTOP)
                until(lambda: state(p.pid) == "T")
                theirs = addresses(run("eu-stack", "-1", "-p", str(p.pid), timeout=LONG).stdout)
                lines = run(UNWINDER, "stop", str(p.pid), timeout=LONG).stdout.split()
                p.send_signal(signal.SIGCONT)
                mine = [int(a, 16) for a in lines[:-1]]
                all_ += 1
                same += mine == theirs and lines[-1] == "complete"
                deepest = max(deepest, len(mine))
                if mine != theirs:
                    wrong.append(f"{[hex(a) for a in mine]} {lines[-1:]}, and eu-stack: {[hex(a) for a in theirs]}")
            tap.point(same == all_, f"{name}: {same} of {all_} stacks (of up to {deepest} frames) are eu-stack's",
                      "\n".join(wrong[:3]))
        finally:
            p.kill()
            p.wait()


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return int(f.read().rpartition(")")[2].split()[11])


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rpartition(")")[2].split()[0]


with Tap() as tap:
    with tempfile.TemporaryDirectory() as programs:
        stopped(tap, programs)
    sampled(tap)
