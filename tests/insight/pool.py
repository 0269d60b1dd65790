# not a test
"""Pools of real profiles, one a process, and comparisons of samples from them.

A pool is gathered once and kept. In a comparison each process of a sample has a new identity, and so a new random
group. Linked compares by resample.c, which is linked with the daemon's own code. Comparer compares by a real daemon:
the counts of a group are uploaded as one sum, with the number of its processes and a label of the comparison, and
/api/v1/diff answers. short.py shows that both say the same, and that sums say what single uploads say."""
import collections
import concurrent.futures
import copy
import json
import math
import multiprocessing
import os
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import BUILD, Daemon, run, symbols, until  # noqa: E402,F401
from wire import Wire, encoded, field, sender_number, varint  # noqa: E402

UPLOADS_KEPT = 3000  # then a new daemon begins with an empty database: a comparison reads the arcs of all time
HOST = "ab" * 16
TIMES = ("self", "total", "time-per-call")
WHOLE = ("time-per-process", "all-calls-per-process")
METRICS = (*WHOLE, *TIMES, "calls-per-process", "calls-per-parent")  # as core/diff.h has them
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
    all. A pool of other counts is no beginning of this one: what it lacks of one variant would be gathered at another
    time than the others."""
    variants = sorted(counts)
    path = os.path.join(program.folder, "-".join(["pool", *(str(counts[v]) for v in variants)]))
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
        added = more[number * copies // len(ticks) * len(processes) + at[id(p)]]
        added[place] = added.get(place, 0) + 1
    out = []
    for i, added in enumerate(more):
        out.append(copy.copy(processes[i % len(processes)]))
        out[-1].used = {place: n + added.get(place, 0) for place, n in out[-1].used.items()}
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


def mix_in(value, data):
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


BEFORE_IDENTITY = mix_in(0xcbf29ce484222325, HOST.encode() + struct.pack("<I", os.getuid()))


def random_group(identity):
    """As proto/segment.c: FNV-1a of host, user and identity, mixed."""
    value = mix_in(BEFORE_IDENTITY, identity)
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9 % 2**64
    return ((value ^ value >> 27) * 0x94d049bb133111eb % 2**64) >> 60


def draw_identity(draw):
    return draw.getrandbits(128).to_bytes(16, "little")


def in_parallel(work, parts):
    """[work(part)] in the order of the parts, as many at a time as there are processors; each in a process of its own,
    which has the pools of this one."""
    context, ends = multiprocessing.get_context("fork"), []

    def answer(end, mine):
        end.send([work(part) for part in mine])

    for first in range(min(os.cpu_count(), len(parts))):
        ends.append(context.Pipe())
        context.Process(target=answer, args=(ends[-1][1], parts[first::os.cpu_count()]), daemon=True).start()
        ends[-1][1].close()
    answers = [ours.recv() for ours, _ in ends]
    return [answers[i % len(ends)][i // len(ends)] for i in range(len(parts))]


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
            identity = draw_identity(self.draw)
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

    def compare(self, a, b, metrics=METRICS):
        """a, b: (variant, processes). The answer of /api/v1/diff."""
        if self.daemon is None or self.uploads > UPLOADS_KEPT:
            self.restart()
        self.label += 1
        with Wire(self.daemon.socket) as wire:
            self.send(wire, *a, "a")
            self.send(wire, *b, "b")
        target = (f"/api/v1/diff?a={self.ids[a[0]]}&b={self.ids[b[0]]}&label.c={self.label}&a.label.side=a"
                  f"&b.label.side=b&limit=100000&metric={','.join(metrics)}")
        answer = until(lambda: (got := self.daemon.get(target))[0] not in (503, 504) and got)  # of a busy machine
        assert answer and answer[0] == 200, answer
        return json.loads(answer[2])


class Linked:
    """As Comparer, with another program; of a table it has only what was tested."""

    FIELDS = ("ticks_a", "ticks_b", "a", "b", "change", "low", "high", "p", "q", "needed_alone", "data_needed")
    P = FIELDS.index("p")

    def __init__(self, exes, seed):
        self.variants, self.draw = list(exes), random.Random(seed)
        self.arcs, self.calls, self.processes, self.kept = {}, {}, {}, []
        self.program = subprocess.Popen([os.path.join(BUILD, "tests", "resample"), *exes.values()],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.communicate()
        assert self.program.returncode == 0, self.program.returncode

    def write(self, kind, *words):
        self.program.stdin.write(" ".join([kind, *map(str, words)]) + "\n")

    def number_of(self, process):
        """Of a process that the program knows now; copies share their calls."""
        if id(process) in self.processes:
            return self.processes[id(process)]
        if id(process.calls) not in self.calls:
            for end in process.ends:
                if end not in self.arcs:
                    self.arcs[end] = len(self.arcs)
                    self.write("a", *end)
            self.write("c", *(f"{self.arcs[end]}:{n}" for end, n in zip(process.ends, process.calls)))
            self.calls[id(process.calls)] = len(self.calls)
        self.write("p", self.calls[id(process.calls)], *(f"{place}:{n}" for place, n in process.used.items()))
        self.kept.append(process)
        self.processes[id(process)] = len(self.processes)
        return self.processes[id(process)]

    def side(self, variant, processes):
        members = [f"{self.number_of(p)}:{random_group(draw_identity(self.draw))}" for p in processes]
        first = processes[0]
        return [self.variants.index(variant), first.low, first.high, first.bins, first.rate, *members]

    def plan_for(self, increase):
        """From now on."""
        self.write("t", increase)

    def tests(self, a, b, metrics=METRICS):
        """Fields of what was tested, as resample.c has them: metric, function, caller, verdict and texts of numbers."""
        sides = [*self.side(*a), "/", *self.side(*b)]
        self.write("d", sum(1 << METRICS.index(m) for m in metrics), *sides)
        self.program.stdin.flush()
        for line in iter(self.program.stdout.readline, ".\n"):
            assert line, "resample ended"
            yield line.rstrip("\n").split("\t")

    def compare(self, a, b, metrics=METRICS):
        tables = {m: [] for m in metrics}
        for metric, function, caller, verdict, *numbers in self.tests(a, b, metrics):
            row = dict(zip(self.FIELDS, map(float, numbers)), verdict=verdict)
            row.update(function=function or None, caller=caller or None)
            row.update((k, math.expm1(row[k])) for k in ("change", "low", "high"))
            tables[metric].append(row)
        return {"metrics": [{"metric": m, "rows": rows} for m, rows in tables.items()]}
