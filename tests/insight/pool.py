# not a test
"""Pools of real profiles, one a process, and comparisons of samples from them by a real daemon.

A pool is gathered once and kept. In a comparison each process of a sample has a new identity, and so a new random
group. The counts of a group are uploaded as one sum, with the number of its processes and a label of the comparison:
the daemon would make the same sum of single uploads (short.py compares both ways). Then /api/v1/diff answers."""
import collections
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
from harness import Daemon, run, symbols, until  # noqa: E402,F401
from wire import Wire, encoded, field, sender_number, varint  # noqa: E402

UPLOADS_KEPT = 3000  # then a new daemon begins with an empty database: a comparison reads the arcs of all time
HOST = "ab" * 16
PARTS = 16  # a pool is written after each
SEEDS = ("base", "2", "5", "10", "again", "100")  # of a variant: 10 · number + place


class Process:
    """One process: what gmon.out says of it. ends: caller and callee of its arcs, one tuple for all processes that have
    the same arcs."""

    ALL_ENDS = {}

    def __init__(self, gmon, rate):
        self.gmon, self.rate = gmon, rate
        self.low, self.high, self.used, self.bins, arcs = gmon
        arcs = sorted(arcs)
        ends = tuple((caller, callee) for caller, callee, _ in arcs)
        self.ends, self.calls = self.ALL_ENDS.setdefault(ends, ends), tuple(n for *_, n in arcs)

    def ticks(self, function):
        """{bin: ticks} of bins that hold nothing else. function: (address, size)"""
        start, end = function[0], sum(function)
        return {i: n for i, n in self.used.items() if start <= self.low + 4 * i and self.low + 4 * i + 4 <= end}


def gather(program, counts, rate):
    """counts: {variant: processes}. {variant: [Process]}; the variants take turns, so that a busy machine is busy for
    all."""
    path, variants = os.path.join(program.folder, "pool"), sorted(counts)
    pool = {v: [] for v in variants}
    if os.path.exists(path):
        with open(path, "rb") as f:
            pool.update(pickle.load(f))
    with tempfile.TemporaryDirectory() as where, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        for part in range(1, PARTS + 1):
            todo = [(v, s) for v in variants for s in range(len(pool[v]), counts[v] * part // PARTS)]
            todo.sort(key=lambda x: x[1] / counts[x[0]])
            done = threads.map(lambda x: program.run(x[0], 10 * x[1] + SEEDS.index(x[0]), where), todo)
            for (variant, _), gmon in zip(todo, done):
                pool[variant].append(gmon)
            if todo:
                with open(path + ".new", "wb") as f:
                    pickle.dump(pool, f)
                os.replace(path + ".new", path)
    return {v: [Process(gmon, rate) for gmon in pool[v][:counts[v]]] for v in variants}


def slower(processes, function, part, copies, draw):
    """Copies of the processes in which a part of all ticks of the function is there twice: chosen at random, and as
    many as the part says, so that the time of all copies together is known. function: (address, size)"""
    ticks = [(p, place) for _ in range(copies) for p in processes for place, n in p.ticks(function).items()
             for _ in range(n)]
    more = [{} for _ in range(copies * len(processes))]
    at = {id(p): i for i, p in enumerate(processes)}
    for number in draw.sample(range(len(ticks)), round(part * len(ticks))):
        p, place = ticks[number]
        copy = more[number * copies // len(ticks) * len(processes) + at[id(p)]]
        copy[place] = copy.get(place, 0) + 1
    out = []
    for i, added in enumerate(more):
        copy = Process(processes[i % len(processes)].gmon, processes[0].rate)
        copy.used = {place: n + added.get(place, 0) for place, n in copy.used.items()}
        out.append(copy)
    return out


def encode_sum(processes):
    """The counts of all together, encoded."""
    used, arcs, first, alike = collections.Counter(), collections.Counter(), processes[0], {}
    for p in processes:
        for place, n in p.used.items():
            used[place] += n
        alike.setdefault(id(p.ends), (p.ends, []))[1].append(p.calls)
    for ends, calls in alike.values():
        for end, n in zip(ends, map(sum, zip(*calls))):
            arcs[end] += n
    return encoded([(0, first.low, first.high, first.bins, first.rate, "seconds", "s", used)],
                   [(*ends, n) for ends, n in arcs.items()])


def random_group(identity):
    """As proto/process_group.c: FNV-1a of host, user and identity, mixed."""
    value = 0xcbf29ce484222325
    for byte in HOST.encode() + struct.pack("<I", os.getuid()) + identity:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9 % 2**64
    return ((value ^ value >> 27) * 0x94d049bb133111eb % 2**64) >> 60


def build_id(exe):
    return run("readelf", "-n", exe).stdout.split("Build ID: ")[1].split()[0]


class Comparer:
    """exes: {variant: executable}. single: each process is an upload of its own."""

    def __init__(self, exes, seed, single=False):
        self.exes, self.ids, self.single = exes, {v: build_id(e) for v, e in exes.items()}, single
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
        groups = collections.defaultdict(list)
        for process in processes:
            identity = self.draw.getrandbits(128).to_bytes(16, "little")
            groups[identity if self.single else random_group(identity)].append((identity, process))
        for members in groups.values():
            wire.send("UPLOAD", field(1, struct.pack("<QI", sender_number(), 7)) + head + times
                      + field(8, encode_sum([p for _, p in members])) + field(10, len(members)) + field(11, HOST)
                      + field(12, members[0][0]))
        for _ in groups:
            while not self.take(wire):
                pass
        self.uploads += len(groups)

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
        target = (f"/api/v1/diff?a={self.ids[a[0]]}&b={self.ids[b[0]]}&label.c={self.label}&a.label.side=a"
                  f"&b.label.side=b&limit=100000{parameters}")
        answer = until(lambda: (got := self.daemon.get(target))[0] not in (503, 504) and got)  # of a busy machine
        assert answer and answer[0] == 200, answer
        return json.loads(answer[2])
