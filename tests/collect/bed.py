# not a test
"""What the collector's tests share: programs built with counting compilers, the harvester, names for addresses, and the
truth."""
import bisect
import collections
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
from harness import BUILD, LONG, ROOT, Tap, readable_copy, run  # noqa: E402,F401

COLLECT = os.path.join(BUILD, "libprofd-collect.so")
COLLECT_STATIC = os.path.join(BUILD, "libprofd-collect.a")
HARVESTER = os.path.join(BUILD, "tests", "harvester")
NAMES = ["leaf", "middle", "outer", "handler", "worker", "compare", "child", "plugin_a", "plugin_b", "late"]
THREADS, FUNCTIONS = 2048, 16
ARCS, SAMPLES, STACKS = 4, 5, 6
OUTSIDE = 65535


def symbols(path, cache={}):
    """Sorted (address, size, name) of the functions of an ELF file."""
    key = (path, os.stat(path).st_mtime_ns)
    if key not in cache:
        found = {}
        for option in ("-S", "-SD"):
            for line in run(os.environ.get("NM", "nm"), option, path).stdout.splitlines():
                words = line.split()
                if len(words) == 4 and words[2] in "TtWwi" and words[3] not in found:
                    found[words[3].split("@")[0]] = (int(words[0], 16), int(words[1], 16))
        cache[key] = sorted((a, s, n) for n, (a, s) in found.items())
    return cache[key]


def name_at(path, address):
    try:
        table = symbols(path)
    except OSError:
        return f"{os.path.basename(path)}+{address:#x}"
    i = bisect.bisect(table, (address, 1 << 62, "")) - 1
    if i >= 0 and table[i][0] <= address < table[i][0] + table[i][1]:
        return table[i][2]
    return f"{os.path.basename(path)}+{address:#x}"


class Process:
    """One attached process as a dump shows it."""

    def __init__(self, raw):
        self.raw = raw
        self.failed = raw["failed"]
        self.pid = raw.get("pid")

    def __getitem__(self, key):
        return self.raw[key]

    def module(self, number):
        return self.raw["modules"].get(str(number))

    def name(self, number, address):
        m = self.module(number)
        return name_at(m["name"], address) if m else "?"

    def calls(self):
        """By callee."""
        total = collections.Counter()
        for kind, _, _, module, address, count in self.raw["counts"]:
            if kind == ARCS:
                total[self.name(module, address)] += count
        return total

    def pairs(self):
        """Counted calls."""
        total = collections.Counter()
        for k, from_module, from_address, module, address, count in self.raw["counts"]:
            if k == ARCS:
                caller = self.name(from_module, from_address - 1) if self.module(from_module) else "?"
                total[caller, self.name(module, address)] += count
        return total

    def paths(self):
        """[(frames, count)] of each node that counts; a frame is (incomplete, module, address, begin, is a PC), the
        outermost first."""
        nodes = {number: (parent, (incomplete, module, address, begin, kind == 1), count)
                 for number, parent, kind, incomplete, module, address, begin, count in self.raw["stacks"]}
        found = []
        for number, (_, _, count) in nodes.items():
            frames = []
            while count and number:
                number, frame, _ = nodes[number]
                frames.append(frame)
            if count:
                found.append((frames[::-1], count))
        return found

    def frame_name(self, frame):
        incomplete, module, address, _, is_pc = frame
        return "[incomplete]" if incomplete else "[outside]" if module == OUTSIDE else self.name(
            module, address - (not is_pc))

    def stacks(self):
        """By the names on the path, the outermost first."""
        total = collections.Counter()
        for frames, count in self.paths():
            total[tuple(self.frame_name(f) for f in frames)] += count
        return total

    def sampled(self):
        """Caller and callee by unwind information, each pair once a stack: what the daemon takes for arcs."""
        total = collections.Counter()
        for frames, count in self.paths():
            total.update({(self.frame_name(a), self.name(b[1], b[3])): count
                          for a, b in zip(frames, frames[1:]) if OUTSIDE not in (a[1], b[1]) and b[3] >= 0})
        return total

    def ticks(self):
        total = collections.Counter()
        for kind, _, _, module, address, count in self.raw["counts"]:
            if kind == SAMPLES:
                total[self.name(module, address)] += count
        return total


class Bed:
    """A temporary folder, the harvester, and programs."""

    def __init__(self, harvester=True):
        self.folder = tempfile.mkdtemp(prefix="profd-collect-")
        self.socket = os.path.join(self.folder, "s")
        self.process = None
        if harvester:
            self.start()

    def start(self):
        self.process = subprocess.Popen([HARVESTER, self.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        assert self.process.stdout.readline() == "ready\n"

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close(), self.process.stdout.close()
            self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def dump(self):
        self.say("dump")
        return [Process(p) for p in json.loads(self.process.stdout.readline())]

    def build(self, source, *options, name=None, compiler="gcc", libraries=("-ldl", "-pthread")):
        out = os.path.join(self.folder, name or os.path.splitext(os.path.basename(source))[0])
        path = source if source.startswith("/") else os.path.join(HERE, "programs", source)
        done = run(compiler, "-O2", "-fno-optimize-sibling-calls", "-I", os.path.join(HERE, "programs"), *options,
                   "-o", out, path, *libraries)
        assert done.returncode == 0, done.stderr
        return out

    def env(self, preload=True, **more):
        e = dict(os.environ, PROFD_SOCKET=self.socket, TRUTH=os.path.join(self.folder, "truth"), PLUGINS=self.folder,
                 LC_ALL="C")
        for key in list(e):
            if key.startswith(("PROFD_LABEL_", "PROFD_RATE", "PROFD_CLOCK", "LD_PRELOAD")):
                del e[key]
        if preload:
            e["LD_PRELOAD"] = COLLECT
        e.update({k: str(v) for k, v in more.items()})
        return e

    def run(self, *command, preload=True, env=None, **options):
        """Runs to its end; the new process of that program as the harvester has it."""
        before = {p["instance"] for p in self.dump() if "instance" in p.raw}
        p = subprocess.Popen([str(c) for c in command], env=env or self.env(preload), cwd=self.folder,
                             stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        try:
            out, err = p.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
        self.returncode, self.out, self.err, self.pid = p.returncode, out, err, p.pid
        return [q for q in self.dump() if q.raw.get("instance") not in before]

    def truth(self, pid):
        """The program's own counts, by function."""
        data = open(os.path.join(self.folder, f"truth.{pid}"), "rb").read()
        total = collections.Counter()
        for i, n in enumerate(struct.unpack(f"<{THREADS * FUNCTIONS}Q", data)):
            if n:
                total[NAMES[i % FUNCTIONS]] += n
        return total

    def forget_truth(self):
        for path in glob.glob(os.path.join(self.folder, "truth.*")):
            os.unlink(path)


def difference(truth, calls):
    """{function: (true, counted)} where they differ."""
    return {f: (n, calls[f]) for f, n in truth.items() if calls[f] != n}


def wait_until(what, seconds=LONG):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = what()
        if got:
            return got
        time.sleep(0.05)
    return what()
