# not a test
"""A made-up service of two versions, with the counts of 96 processes a side: what a comparison finds is known."""
import functools
import os
import random
import struct
import time

from harness import bounds, run, symbols
from wire import Wire, encoded, field, sender_number, varint, words

SOURCE = """static volatile int n;
%s
__attribute__((noinline)) static int parse(int i) { return n += i; }
__attribute__((noinline)) int render(int i) { return n -= i; }
__attribute__((noinline)) int idle(int i) { return n ^= i; }
__attribute__((noinline)) int step(int i) { return parse(i) + render(i) + idle(i); }
int main(void) { return step(n) %s; }
"""
PROCESSES = 96
NOW = int(time.time())


def build(folder, name, extra, call):
    source, exe = os.path.join(folder, "shop.c"), os.path.join(folder, name)
    with open(source, "w") as f:
        f.write(SOURCE % (extra, call))
    done = run("gcc", "-pg", "-O0", "-g", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    return exe


@functools.cache
def look_up(exe):
    return symbols(exe), bounds(exe)


def build_id(exe):
    return run("readelf", "-n", exe).stdout.split("Build ID: ")[1].split()[0]


def after_call(exe, caller, callee):
    """The return address of a call."""
    lines = run("objdump", "-d", "--no-show-raw-insn", f"--disassemble={caller}", exe).stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith(f"<{callee}>") and "call" in line)
    return int(lines[at + 1].split(":")[0], 16)


def upload(exe, process, ticks, calls, labels, end, stacks=None, program="/srv/shop", dimension="seconds"):
    """The body of an UPLOAD: ticks by function, calls by (caller, callee). stacks: of all ticks, {return address:
    function}; then calls were not counted."""
    table, (low, high) = look_up(exe)
    at = lambda name: table[name][0]  # noqa: E731
    used = {(at(name) + 8 - low) // 4: n for name, n in ticks.items()}
    bins = (high - low) // 4
    h = (0, low, low + 4 * bins, bins, 100, dimension, "s", used)
    arcs = [(at(a) + 12, at(b), n) for (a, b), n in calls.items()]
    found = stacks and {caller: {low + 4 * ((at(name) + 8 - low) // 4): ticks[name]} for caller, name in stacks.items()}
    return (field(1, struct.pack("<QI", sender_number(), 7)) + field(2, 1)
            + field(6, field(1, build_id(exe)) + field(2, program))
            + b"".join(field(7, field(1, k) + field(2, v)) for k, v in labels.items())
            + varint(3 << 3 | 1) + struct.pack("<Q", (end - 1) * 10**9) + varint(4 << 3 | 1)
            + struct.pack("<Q", end * 10**9) + field(8, encoded([h], arcs, stacks=found))
            + (field(9, 128) if stacks else b"") + field(10, 1)
            + field(11, "ab" * 16) + field(12, struct.pack("<QQ", process, 1)))


def send(d, bodies):
    """Sends bodies of UPLOAD; the daemon's answer to each is an ACK."""
    with Wire(d.socket) as w:
        for body in bodies:
            w.send("UPLOAD", body)
            while (answer := w.take())[0] == "WANT_OBJECT":
                pass
            assert answer[0] == "ACK", answer


def fleet(d, exe, seed, label, slower, more, end, fresh=False, labels=lambda process: {},
          also=(), spent=None, seldom=(), program="/srv/shop"):
    """Processes of different work: requests, and ticks that vary by chance. slower: of parse; more: calls of render.
    labels: of a process, beside its version. also: functions that step calls once a request. spent: ticks a request of
    further functions; each process has one at least. seldom: functions with one tick in each of the first six
    processes. program: its path."""
    draw = random.Random(seed)
    bodies = []
    for p in range(PROCESSES):
        requests = draw.randint(10, 30)
        ticks = {name: max(1, round(requests * weight * draw.uniform(0.8, 1.2)))
                 for name, weight in (("parse", 4 * slower), ("render", 5), ("idle", 3), ("step", 2),
                                      *(spent or {}).items())}
        calls = {("main", "step"): requests, ("step", "parse"): requests, ("step", "render"): (2 + more) * requests,
                 ("step", "idle"): requests, **{("step", name): requests for name in also}}
        ticks.update(dict.fromkeys(seldom, 1) if p < 6 else {})
        if fresh:
            ticks["fresh"], calls["step", "fresh"] = requests, requests
        bodies.append(upload(exe, seed * 1000 + p, ticks, calls, {**({"version": label} if label else {}), **labels(p)},
                             end, program=program))
    send(d, bodies)
    assert d.ctl("symbols", exe).returncode == 0


TANGLED, PAIRS = 40, 25


def send_tangle(d):
    """A program with a cycle of 40 functions that all call each other, 5 calls each forward and one back, which has
    all the time, and 25 cycles of two. Its executable."""
    names = [f"t{i}" for i in range(TANGLED)] + [f"p{i}" for i in range(2 * PAIRS)]
    source, exe = os.path.join(d.folder, "tangle.c"), os.path.join(d.folder, "tangle")
    with open(source, "w") as f:
        f.write("static volatile int n;\n" + "".join(f"int {name}(int i) {{ return n += i; }}\n" for name in names)
                + "int main(void) { return n; }\n")
    done = run("gcc", "-pg", "-O0", "-g", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    calls = {(f"t{i}", f"t{k}"): 5 if i < k else 1 for i in range(TANGLED) for k in range(TANGLED) if i != k}
    for i in range(0, 2 * PAIRS, 2):
        calls[f"p{i}", f"p{i + 1}"] = calls[f"p{i + 1}", f"p{i}"] = 2
        calls["main", f"p{i}"] = 1
    calls["main", "t0"] = 1
    send(d, [upload(exe, 1, {"t0": 50}, calls, {"service": "tangle"}, NOW, program="/srv/tangle")])
    assert d.ctl("symbols", exe).returncode == 0
    return exe


def send_sampled(d):
    """A process with a collector whose calls were sampled, in a made-up build: 4 s of seconds, and cycles."""
    told = {"processes": 1, "cpu_seconds": 5 * 10**9, "sampled_seconds": 42 * 10**8, "collector_seconds": 2 * 10**8,
            "calls_lost": 3}
    spans = 0x1000, 0x2000, 1024
    counts = encoded([(0, *spans, 100, "seconds", "s", {4: 100, 80: 300}), (0, *spans, 1, "cycles", "y", {4: 70000}),
                      words(told)],
                     [(0x9012, 0x1140, 12345)], outside=True)
    now = time.time_ns()
    body = (field(1, struct.pack("<QI", sender_number(), 7)) + field(2, 1)
            + field(6, field(1, "5a3d1ed0" * 5) + field(2, "/srv/bin/sampled")))
    body += varint(3 << 3 | 1) + struct.pack("<Q", now - 10**9) + varint(4 << 3 | 1) + struct.pack("<Q", now)
    with Wire(d.socket) as w:
        w.send("UPLOAD", body + field(8, counts) + field(9, 128) + field(10, 1) + field(11, "a" * 32))
        while (answer := w.take())[0] != "ACK":
            assert answer[0] != "NACK", answer
