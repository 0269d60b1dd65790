"""The dashboard in a headless Chromium (tests/browser/dashboard.mjs), where there is one: with the data of real
programs."""
import json
import os
import shutil
import struct
import subprocess
import sys
import time

from formats_hostile import hostile_program
from harness import (BUILD, LONG, NODE_MODULES, PROFCTL, ROOT, Daemon, free_port, profile, programs, run, set_ticks,
                     until)
from shop import send_sampled
from wire import Wire, encoded, field, sender_number, varint
sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import stack_tree  # noqa: E402

CHROMIUM = shutil.which(os.environ.get("CHROMIUM", "chromium"))
RUNS = {"cycle": ["3"], "calc": ["-s", "7", "-n", "20000"], "shapes": ["10000"], "uselib": ["5"],
        "sorter": ["100000", "2"]}


def skip(why):
    print(f"ok 1 - the dashboard in a browser # SKIP {why}\n1..1")
    sys.exit(0)


for name, found in (("chromium", CHROMIUM), ("node", shutil.which("node")),
                    ("playwright-core", os.path.isdir(os.path.join(NODE_MODULES, "playwright-core")))):
    if not found:
        skip(f"{name} is not installed: sh tests/deps.sh check")


def send_named(d):
    """A made-up build whose name, file and labels are markup, and turn the direction of writing."""
    now = time.time_ns()
    body = (field(1, struct.pack("<QI", sender_number(), 9)) + field(2, 1)
            + field(6, field(1, "5a3d1ed1" * 5) + field(2, "/srv/<b>bold</b>\u202egnp.exe")))
    body += varint(3 << 3 | 1) + struct.pack("<Q", now - 10**9) + varint(4 << 3 | 1) + struct.pack("<Q", now)
    counts = encoded([(0, 0x1000, 0x2000, 1024, 100, "seconds", "s", {4: 1})], [(0x9012, 0x1140, 5)], outside=True)
    with Wire(d.socket) as w:
        w.send("UPLOAD", body + field(8, counts) + field(9, 128) + field(10, 1) + field(11, "b" * 32))
        while (answer := w.take())[0] != "ACK":
            assert answer[0] != "NACK", answer


def send_kernel(d):
    """Stacks in the kernel's code, as a recorder sends them."""
    now = time.time_ns()
    body = (field(1, struct.pack("<QI", sender_number(), 11)) + field(2, 1)
            + field(6, field(1, "5a3d1ed2" * 5) + field(2, "[kernel]")))
    body += varint(3 << 3 | 1) + struct.pack("<Q", now - 10**9) + varint(4 << 3 | 1) + struct.pack("<Q", now)
    counts = encoded([(0, 0x1000, 0x2000, 1024, 100, "seconds", "s", {4: 3})], stacks={0x1015: {0x1010: 3}})
    with Wire(d.socket) as w:
        w.send("UPLOAD", body + field(8, counts) + field(9, 128) + field(10, 1) + field(11, "d" * 32))
        while (answer := w.take())[0] != "ACK":
            assert answer[0] != "NACK", answer


def send_library(d):
    """A program that spent its time in a library."""
    now = time.time_ns()
    body = (field(1, struct.pack("<QI", sender_number(), 13)) + field(2, 1)
            + field(6, field(1, "5a3d1ed3" * 5) + field(2, "/srv/bin/parses"))
            + field(6, field(1, "5a3d1ed4" * 5) + field(2, "/srv/lib/libparse.so.1"))
            + field(7, field(1, "service") + field(2, "parses")))
    body += varint(3 << 3 | 1) + struct.pack("<Q", now - 10**9) + varint(4 << 3 | 1) + struct.pack("<Q", now)
    counts = encoded([(1, 0x1000, 0x2000, 1024, 100, "seconds", "s", {4: 7})])
    with Wire(d.socket) as w:
        w.send("UPLOAD", body + field(8, counts) + field(9, 128) + field(10, 1) + field(11, "e" * 32))
        while (answer := w.take())[0] != "ACK":
            assert answer[0] != "NACK", answer


SERVER = """#include <unistd.h>
static volatile int n;
__attribute__((noinline)) void leaf(int i) { n += i; }
__attribute__((noinline)) void middle(int i) { leaf(i); leaf(i); }
int main(void) { for (int i = 0;; i++) { middle(i); usleep(1000); } }
"""


# Names as C++ has them, in a cycle and out of it.
WIDE = """namespace storefront::pricing {
static volatile long total;
template <class Key, class Value, class Comparison> struct LeastRecentlyUsedCache {
    __attribute__((noinline)) long find_or_insert(const Key &key, Value *values, Comparison compare);
    __attribute__((noinline)) long evict_oldest_entries(const Key &key, Value *values, Comparison compare)
    {
        return key > 0 ? find_or_insert(key - 1, values, compare) : compare(key, *values);
    }
};
template <class Key, class Value, class Comparison>
long LeastRecentlyUsedCache<Key, Value, Comparison>::find_or_insert(const Key &key, Value *values, Comparison compare)
{
    for (long i = 0; i < 200; i++) { total += i * key; }
    return evict_oldest_entries(key, values, compare);
}
long handle_what_never_arrives(LeastRecentlyUsedCache<long, long, long (*)(long, long)> *cache, const long *keys)
{
    return cache->find_or_insert(keys[0], nullptr, nullptr);
}
}
int main()
{
    using namespace storefront::pricing;
    LeastRecentlyUsedCache<long, unsigned long long, long (*)(long, unsigned long long)> cache;
    unsigned long long value = 1;
    for (int i = 0; i < 20000; i++) {
        cache.find_or_insert(4, &value, [](long a, unsigned long long b) { return total += a + (long)b; });
    }
}
"""


def upload_wide(d):
    source, exe = os.path.join(d.folder, "wide.cc"), os.path.join(d.folder, "storefront-pricing-service")
    with open(source, "w") as f:
        f.write(WIDE)
    assert run("g++", "-O1", "-g", "-pg", "-std=c++17", "-o", exe, source).returncode == 0
    assert d.ctl("upload", "-e", exe, "-l", "service=storefront", ticked(d.folder, exe, [], 0)).returncode == 0


class Live:
    """A process that goes on counting, where there is a collector."""

    def __init__(self, d):
        source, exe = os.path.join(d.folder, "server.c"), os.path.join(d.folder, "server")
        with open(source, "w") as f:
            f.write(SERVER)
        assert run("gcc", "-pg", "-o", exe, source).returncode == 0
        self.process = None
        if os.path.exists(os.path.join(BUILD, "libprofd-collect.so")):
            self.process = subprocess.Popen([PROFCTL, "run", "-l", "service=server", "-l", "note=<i>x</i>", exe],
                                            env=d.env, cwd=d.folder,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL)
            until(lambda: json.loads(d.get("/api/v1/processes")[2])["rows"]
                  and any(r["name"].endswith("/server") for r in d.json("builds", "--json")["rows"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()  # which it passes on
            self.process.wait(LONG)


def run_measured(d):
    """A program of which the ticks take stacks, without and with exact calls, where there is a collector."""
    if not os.path.exists(os.path.join(BUILD, "libprofd-collect.so")):
        return
    for name, options in (("callers", ["-fno-omit-frame-pointer"]), ("counted", ["-pg"])):
        exe = os.path.join(d.folder, name)
        assert run("gcc", "-O2", *options, "-o", exe, os.path.join(ROOT, "tests/programs/callers.c")).returncode == 0
        assert d.ctl("run", "--rate", "250", "-l", f"service={name}", "--", exe, "1", "7").returncode == 0


def guarded():
    """An empty daemon that wants a token."""
    port = free_port()
    d = Daemon("--http", f"127.0.0.1:{port}")
    return d, f"http://127.0.0.1:{port}/", d.token_file("me")


def ticked(folder, exe, arguments, n):
    """A gmon.out of the n-th run, with ticks in nine functions that were called in calc, and in three elsewhere."""
    most = 9 if exe.endswith("/calc") else 3
    return set_ticks(profile(folder, exe, arguments, n), exe, lambda k: k < most and 40 + 20 * n + (7 - 2 * n) * k)


def fill(d):
    built = programs(os.path.join(d.folder, "programs"))
    for name, arguments in RUNS.items():
        for n in range(2):
            assert d.ctl("upload", "-e", os.path.join(built, name), "-l", f"round={n}", "-l", f"service={name}",
                         "-l", f"version=1.{n}",
                         ticked(d.folder, os.path.join(built, name), arguments, n)).returncode == 0
    again = os.path.join(d.folder, "again", "sorter")  # a second build of one program
    os.makedirs(os.path.dirname(again))
    assert run("gcc", "-pg", "-O1", "-o", again, os.path.join(ROOT, "tests/programs/sorter.c")).returncode == 0
    assert d.ctl("upload", "-e", again, "-l", "service=sorter", "-l", "version=2.0",
                 ticked(os.path.dirname(again), again, RUNS["sorter"], 0)).returncode == 0
    send_sampled(d)
    send_named(d)
    send_kernel(d)
    send_library(d)
    path, build, begin = stack_tree.executable(d.folder, 100)
    assert d.ctl("symbols", path).returncode == 0
    stack_tree.send(d.socket, path, build, begin, 100, 200)
    run_measured(d)
    upload_wide(d)
    exe, gmon = hostile_program(d.folder)
    assert d.ctl("upload", "-e", exe, gmon).returncode == 0


port = free_port()
with Daemon("--http", f"127.0.0.1:{port}", "--http-open", "--harvest-interval", "1s") as d:
    fill(d)
    other, url, token = guarded()
    with other, Live(d):
        done = subprocess.run(["node", os.path.join(os.path.dirname(__file__), "../browser/dashboard.mjs"),
                               os.path.dirname(NODE_MODULES), f"http://127.0.0.1:{port}/",
                               d.socket, PROFCTL, sys.argv[1] if len(sys.argv) > 1 else "", url, token],
                              env=dict(d.env, CHROMIUM=CHROMIUM, HOME=d.folder), timeout=1700)
sys.exit(done.returncode)
