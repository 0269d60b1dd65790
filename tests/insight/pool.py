# not a test
"""Pools of real profiles, one a process, and comparisons of samples from them by a real daemon.

A pool is gathered once and kept. A comparison uploads each process of its sample anew, under a new identity and so in
a new random group, with a label of its own; then /api/v1/diff answers."""
import concurrent.futures
import json
import os
import pickle
import random
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Daemon, run, symbols, until  # noqa: E402
from wire import Wire, encoded, field, sender_number, varint  # noqa: E402

IN_FLIGHT = 64
UPLOADS_KEPT = 60000  # then a new daemon begins with an empty database


def gather(program, variants, count, rate):
    """{variant: [encoded counts of a process]}; the variants take turns, so that a busy machine is busy for all."""
    path, pool = os.path.join(program.folder, "pool"), {v: [] for v in variants}
    if os.path.exists(path):
        with open(path, "rb") as f:
            pool = pickle.load(f)
    with tempfile.TemporaryDirectory() as where, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        for first in range(min(len(p) for p in pool.values()), count, 50):
            todo = [(v, s) for s in range(first, min(first + 50, count)) for v in variants]
            done = threads.map(lambda x: program.run(x[0], 10 * x[1] + variants.index(x[0]), where), todo)
            for (variant, _), (low, high, used, bins, arcs) in zip(todo, done):
                pool[variant].append((encoded([(0, low, high, bins, rate, "seconds", "s", used)], arcs), low, used))
            with open(path + ".new", "wb") as f:
                pickle.dump(pool, f)
            os.replace(path + ".new", path)
    return {v: p[:count] for v, p in pool.items()}


def build_id(exe):
    return run("readelf", "-n", exe).stdout.split("Build ID: ")[1].split()[0]


def ticks_of(exe, name, processes):
    """Ticks of one function, by its bins that hold nothing else."""
    start, size = symbols(exe)[name]
    return sum(n for _, low, used in processes for i, n in used.items()
               if start <= low + 4 * i and low + 4 * i + 4 <= start + size)


class Comparer:
    """exes: {variant: executable}."""

    def __init__(self, exes, seed):
        self.exes, self.ids = exes, {v: build_id(e) for v, e in exes.items()}
        self.draw, self.daemon, self.label = random.Random(seed), None, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.daemon:
            self.daemon.__exit__()

    def restart(self):
        self.__exit__()
        self.daemon, self.uploads = Daemon(), 0
        for exe in self.exes.values():
            done = self.daemon.ctl("symbols", exe)
            assert done.returncode == 0, done.stderr

    def send(self, wire, variant, processes, side):
        now = int(time.time())
        labels = field(7, field(1, "side") + field(2, side)) + field(7, field(1, "c") + field(2, str(self.label)))
        head = field(2, 1) + field(6, field(1, self.ids[variant]) + field(2, "/srv/program")) + labels
        times = varint(3 << 3 | 1) + struct.pack("<Q", (now - 1) * 10**9) + varint(4 << 3 | 1)
        times += struct.pack("<Q", now * 10**9)
        waiting = 0
        for counts, _, _ in processes:
            identity = field(12, self.draw.getrandbits(128).to_bytes(16, "little"))
            wire.send("UPLOAD", field(1, struct.pack("<QI", sender_number(), 7)) + head + times + field(8, counts)
                      + field(10, 1) + field(11, "ab" * 16) + identity)
            waiting += 1
            while waiting > IN_FLIGHT:
                waiting -= self.take(wire)
        while waiting:
            waiting -= self.take(wire)

    def take(self, wire):
        answer = wire.take()
        assert answer[0] in ("ACK", "WANT_OBJECT"), answer
        return answer[0] == "ACK"

    def compare(self, a, b, parameters=""):
        """a, b: (variant, processes). The answer of /api/v1/diff."""
        if self.daemon is None or self.uploads > UPLOADS_KEPT:
            self.restart()
        self.label += 1
        with Wire(self.daemon.socket) as wire:
            self.send(wire, *a, "a")
            self.send(wire, *b, "b")
        self.uploads += len(a[1]) + len(b[1])
        target = (f"/api/v1/diff?a={self.ids[a[0]]}&b={self.ids[b[0]]}&label.c={self.label}&a.label.side=a"
                  f"&b.label.side=b&limit=100000{parameters}")
        answer = until(lambda: (got := self.daemon.get(target))[0] not in (503, 504) and got)  # of a busy machine
        assert answer and answer[0] == 200, answer
        return json.loads(answer[2])
