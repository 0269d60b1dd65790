#!/usr/bin/python3
"""profctl record beside perf record, which sample the same processes at the same time: of the 20 functions with the
most inclusive time in either, the shares of all samples. What perf recorded is counted here: each address of a stack
belongs to the function of our report that has it, so that only the stacks are compared, and no names. Debian's programs
have no frame pointers: perf copies stacks (--call-graph dwarf), and record uses unwind tables. Of a program that has
them, but is also called by libc, which has none, record by frame pointers may know less than perf, but nothing else.
Perf's stacks lack functions that left by a tail call, which reports take from the call instruction: they are put in
here by code of its own, before the shares are compared."""
import bisect
import math
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import LONG, PROFCTL, Daemon, Tap, free_port, perf_lock, run, until  # noqa: E402

RATE = 199
SAMPLES = int(os.environ.get("BESIDE_SAMPLES", "300"))
TOP = 20
GRAPH = ("--call-graph", "dwarf,65528")  # the most that perf can copy: deep stacks need more than 16 KiB
LEAST = 18 / SAMPLES  # of all samples: of 18 that fall to either alike, all fall to one of the two once in 2^17
WIDTH = 5  # standard errors of a difference: that of none of some hundred functions is larger by chance
UNWINDING = 0.02  # of all samples: stacks that one of the two cannot follow to their end
QUERY = """create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x+1 from c where x<20000)
insert into t select x, hex(x*7919) from c;
with recursive c(x) as (select 1 union all select x+1 from c)
select sum((select count(*) from t where a between x%20000 and x%20000+50 and b like '%3'||(x%10)||'%')) from c;
"""
PYTHON = """
import json
def nested(n): return {"a": [nested(n - 1) for _ in range(3)], "b": str(n)} if n else [1, 2.5, "x"]
while True: json.loads(json.dumps(nested(4)))
"""
LUA = r"""
local function tree(n) if n == 0 then return {} end return {tree(n - 1), tree(n - 1), tostring(n)} end
local function check(t) return t[1] and 1 + check(t[1]) + check(t[2]) or 1 end
while true do
    check(tree(10))
    local words = {}
    for w in string.gmatch(string.rep("some words here ", 200), "%a+") do words[#words + 1] = string.upper(w) end
    table.sort(words)
end
"""
LUA_MAIN = """
#include <lauxlib.h>
#include <lualib.h>
int main(int n, char **arguments)
{
    lua_State *l = luaL_newstate();
    luaL_openlibs(l);
    return n < 2 || luaL_dofile(l, arguments[1]);
}
"""
POINTERS = r"""
#include <stdlib.h>
#include <string.h>
static volatile unsigned long sink;
__attribute__((noinline)) void spin(int n) { for (int i = 0; i < n; i++) { sink += i; } __asm__ volatile(""); }
__attribute__((noinline)) int compare(const void *a, const void *b)
{
    spin(20);
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) void sorted(void)
{
    int numbers[1000];
    for (int i = 0; i < 1000; i++) { numbers[i] = i * 7919 % 1009; }
    qsort(numbers, 1000, sizeof *numbers, compare);
    __asm__ volatile("");
}
__attribute__((noinline)) void deep(int n)
{
    if (n > 0) { deep(n - 1); } else { spin(200000); }
    __asm__ volatile("");
}
__attribute__((noinline)) void odd(int n);
__attribute__((noinline)) void even(int n)
{
    spin(2000);
    if (n > 0) { odd(n - 1); }
    __asm__ volatile("");
}
__attribute__((noinline)) void odd(int n) { spin(1000); if (n > 0) { even(n - 1); } __asm__ volatile(""); }
int main(void) { for (;;) { sorted(); deep(40); even(30); } }
"""


def build(folder, name, text, *options):
    source, program = os.path.join(folder, f"{name}.c"), os.path.join(folder, name)
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    done = run("gcc", "-O2", "-g", "-o", program, source, *options)
    assert done.returncode == 0, done.stderr
    return program


def written(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Files:
    """Finds build and link-time address of an offset in a file, and the target of a call before it."""

    def __init__(self):
        self.files, self.stubs = {}, {}

    def read(self, path):
        text = run("readelf", "-nlW", path).stdout
        found = re.search(r"Build ID: ([0-9a-f]+)", text)
        loads = re.findall(r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", text)
        with open(path, "rb") as f:
            return (found.group(1) if found else None), [tuple(int(n, 16) for n in load) for load in loads], f.read()

    def find(self, path, offset):
        if path not in self.files:
            self.files[path] = self.read(path)
        build_id, loads, _ = self.files[path]
        return next(((build_id, offset - o + a) for o, a, size in loads if o <= offset < o + size), None)

    def call(self, path, offset, functions):
        """The function that a direct call which returns to this offset names, perhaps through the PLT; None: none."""
        place, code = self.find(path, offset), self.files[path][2][offset - 5:offset]
        if not place or os.uname().machine != "x86_64" or code[:1] != b"\xe8":
            return None
        target = place[1] + int.from_bytes(code[1:], "little", signed=True)
        if path not in self.stubs:
            text = run("objdump", "-d", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got", path).stdout
            self.stubs[path] = {int(a, 16): name for a, name in re.findall(r"^(\w+) <(\w+)(?:@\w+)?@plt>:", text, re.M)}
        name = self.stubs[path].get(target)
        return functions.names.get(name) if name else functions.find((place[0], target))


class Functions:
    """Those of a report that have a range of addresses; finds the one that an address belongs to."""

    def __init__(self, report):
        # Perf names no file of the vDSO's code, so it cannot be compared.
        without = {b["build_id"] for b in report["builds"] if b["name"].startswith("[")}
        self.rows = {(f["build_id"], int(f["address"], 16)): f for f in report["functions"]
                     if f["kind"] == "function" and f["build_id"] not in without}
        self.starts = sorted(self.rows)
        self.names = {name.split("@")[0]: key for key, f in self.rows.items()
                      for name in (f["raw_name"], *f["aliases"])}

    def find(self, place):
        at = bisect.bisect_right(self.starts, place) - 1
        key = self.starts[at] if at >= 0 else None
        return key if key and key[0] == place[0] and place[1] < key[1] + self.rows[key]["size"] else None


FRAME = re.compile(r"\s*([0-9a-f]+) .* \((.*)\)$")


def perf_stacks(folder, data):
    """Lists of (file, offset), the innermost first, of the user alone: the place, and what the callers return to."""
    out = os.path.join(folder, "script")
    with open(out, "w", encoding="utf-8") as f:
        done = subprocess.run(["perf", "script", "--no-inline", "-i", data, "-F", "ip,sym,dso"], stdout=f, timeout=LONG,
                              stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with open(out, encoding="utf-8", errors="replace") as f:
        stacks = [[FRAME.match(line) for line in text.splitlines()] for text in f.read().split("\n\n")]
    user = [[(m.group(2), int(m.group(1), 16)) for m in stack if m and m.group(2).startswith("/")] for stack in stacks
            if any(stack)]
    # perf shows return addresses less 1 where it unwinds itself
    return [[(path, offset + (1 if i else 0)) for i, (path, offset) in enumerate(stack)] for stack in user]


def perf_shares(stacks, functions, calls):
    """The share of the samples that have a function somewhere on their stack. calls: also a function that is called
    there, below a known one of the same object: it may have left the stack by a tail call, as reports of profd show it.
    Between two objects there may have been the run-time linker."""
    counts, files = {}, Files()
    for stack in stacks:
        keys = set()
        for i, (path, offset) in enumerate(stack):
            place = files.find(path, offset - (i > 0))
            inner, key = (key if i > 0 else None), functions.find(place) if place else None
            target = files.call(path, offset, functions) if calls and inner else None
            keys |= {key, target if target and target[0] == inner[0] else None}
        for key in keys - {None}:
            counts[key] = counts.get(key, 0) + 1
    return {key: n / len(stacks) for key, n in counts.items()}


def sample(folder, d, pid, unwind):
    """Both at the same time until each has SAMPLES: perf's stacks, and what ours says of its samples."""
    data = os.path.join(folder, "perf.data")
    perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(RATE), *GRAPH, "-o", data, "-p",
                             str(pid)], stderr=subprocess.DEVNULL)
    ours = subprocess.Popen([PROFCTL, "record", "--verbose", "--rate", str(RATE), *unwind, "-p", str(pid)], env=d.env,
                            stderr=subprocess.PIPE, text=True)
    until(lambda: os.path.exists(f"/proc/{ours.pid}/fd/8") and os.path.exists(data))
    begun = cpu_seconds(pid)
    until(lambda: cpu_seconds(pid) >= begun + SAMPLES / RATE)
    for p in (perf, ours):
        p.send_signal(signal.SIGINT)
    said = ours.communicate(timeout=LONG)[1]
    perf.wait(LONG)
    return perf_stacks(folder, data), said


def compare(tap, name, report, stacks, said, whole):
    functions = Functions(report)
    samples, lost = (int(re.search(rf"(\d+) {what}", said).group(1)) for what in ("samples:", "lost"))
    total = samples - lost
    ours = {key: f.get("measured_samples", 0) / total for key, f in functions.rows.items()}
    its, bare = (perf_shares(stacks, functions, calls) for calls in (True, False))
    enough = tap.point(total > SAMPLES / 2 and len(stacks) > SAMPLES / 2, f"{name}: both sample", (total, len(stacks)))
    if not enough:
        return
    top = {key for shares in (ours, its) for key in sorted(shares, key=shares.get, reverse=True)[:TOP]}
    print(f"# {name}: {total} samples, perf {len(stacks)}; share of a function, perf's, standard errors apart, and "
          "perf's without functions that left by a tail call")
    missing, apart = [], []
    for key in sorted(top, key=lambda key: -ours.get(key, 0)):
        a, b = ours.get(key, 0), its.get(key, 0)
        p = (a * total + b * len(stacks)) / (total + len(stacks))
        error = math.sqrt(p * (1 - p) * (1 / total + 1 / len(stacks)))
        line = (f"{100 * a:6.2f} % {100 * b:6.2f} % {(a - b) / error if error else 0:6.1f}  "
                f"{100 * bare.get(key, 0):6.2f} %  {functions.rows[key]['name']}")
        print(f"#   {line}")
        if max(a, b) >= LEAST and min(a, b) == 0:
            missing.append(line)
        if (abs(a - b) if whole else a - b) > WIDTH * error + UNWINDING:
            apart.append(line)
    tap.point(len(top) >= 5, f"{name}: functions are compared", top)
    tap.point(not missing, f"{name}: a function with {100 * LEAST:.0f} % of the samples in one is in the other",
              "\n".join(missing))
    tap.point(not apart, f"{name}: the shares differ by no more than sampling and unwinding explain", "\n".join(apart))


def beside(tap, name, program, pid, unwind):
    with Daemon() as d, tempfile.TemporaryDirectory() as folder:
        with perf_lock():
            stacks, said = sample(folder, d, pid, unwind)
        rows = [r for r in d.json("builds", "--json")["rows"] if r["name"] == os.path.realpath(program)]
        if tap.point(rows, f"{name}: its samples are stored", d.ctl("builds").stdout + said):
            compare(tap, name, d.json("report", rows[0]["build_id"], "--json"), stacks, said, bool(unwind))


def redis(folder):
    """A server and its load."""
    port = str(free_port())
    server = subprocess.Popen(["redis-server", "--port", port, "--save", "", "--dir", folder],
                              stdout=subprocess.DEVNULL)
    until(lambda: run("redis-cli", "-p", port, "ping").stdout.strip() == "PONG")
    load = subprocess.Popen(["redis-benchmark", "-p", port, "-q", "-l", "-P", "8", "-t",
                             "set,get,lpush,lpop,sadd,hset,zadd,lrange_100"], stdout=subprocess.DEVNULL)
    return [server, load]


def one(*command):
    return [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]


def cases(folder):
    lua = build(folder, "lua", LUA_MAIN, "-I/usr/include/lua5.4", "-l:liblua5.4.a", "-lm", "-ldl")
    pointers = build(folder, "pointers", POINTERS, "-O0")
    text = "".join(f"int f{i}(int a, const char *b) {{ int x[{i + 2}] = {{0}}; for (int k = 0; k < a && b[k]; k++) "
                   f"{{ x[k % {i + 1}] += b[k] == '{chr(97 + i % 26)}' ? k : a; }} return x[{i}]; }}\n"
                   for i in range(400))
    checked = [written(folder, f"checked{i}.c", text) for i in range(300)]
    table = ("--unwind", "table")
    return [("with frame pointers", pointers, lambda: one(pointers), ()),
            ("redis-server", "/usr/bin/redis-server", lambda: redis(folder), table),
            ("sqlite3", "/usr/bin/sqlite3",
             lambda: one("sqlite3", ":memory:", f".read {written(folder, 'query', QUERY)}"), table),
            ("Lua", lua, lambda: one(lua, written(folder, "program.lua", LUA)), table),
            ("CPython", "/usr/bin/python3", lambda: one("/usr/bin/python3", "-c", PYTHON), table),
            ("cppcheck", "/usr/bin/cppcheck",
             lambda: one("cppcheck", "--enable=all", "--inconclusive", *checked), table)]


def main():
    with Tap() as tap, tempfile.TemporaryDirectory() as folder:
        with perf_lock():
            tried = run("perf", "record", "-q", "-e", "cpu-clock", "-o", os.path.join(folder, "try"), "true")
        if tried.returncode != 0:
            return tap.skip("beside perf record", "perf may not sample here")
        wanted = sys.argv[1:]
        for name, program, start, unwind in cases(folder):
            if wanted and name not in wanted:
                continue
            processes = start()
            try:
                beside(tap, name, program, processes[0].pid, unwind)
            finally:
                for p in processes:
                    p.kill()
                    p.wait()


main()
