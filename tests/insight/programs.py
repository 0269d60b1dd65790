# not a test
"""Real programs of which one function can be made slower by a known part, and what they are run on.

A slower function does its whole work once more in one of EVERY calls: its time grows by 1/EVERY, whatever the machine.
Every variant has the same code; a constant differs."""
import concurrent.futures
import os
import random
import re
import struct
import subprocess

RATE = 250  # ticks a second: the kernel's own, above which ticks come in bundles
NEVER = 0xffffffff
# again: the same code, another build-id
VARIANTS = {"base": NEVER, "again": NEVER, "2": 50, "5": 20, "10": 10, "100": 1}

LUA = """local seed = tonumber(arg[1])
math.randomseed(seed)
local text, n = ("abcdefghijklmnopqrstuvwxyz0123456789"):rep(60), 0
local function fib(i) if i < 2 then return i end return fib(i - 1) + fib(i - 2) end
local strings, words, numbers, calls = math.random(14, 34), math.random(1, 3), math.random(1, 2), math.random(1, 4)
for round = 1, 24 do
  for k = 1, strings do
    for i = 1, 2000 do local s = text:sub(i, i + 30 + (i * k) % 10); n = n + #s end
  end
  for k = 1, words do
    local s = text:gsub('(%d)(%a)', '%2%1'):upper()
    for w in s:gmatch('%u+') do n = n + #w end
  end
  for k = 1, numbers do
    local t = {}
    for i = 1, 2000 do t[i] = (i * 7919 + seed) % 10007 end
    table.sort(t, function(a, b) return a > b end)
    n = n + #table.concat(t, ' ', 1, 500)
  end
  for k = 1, calls do n = n + fib(15) end
end
print(n)
"""
SQL = """CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL, d INT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%(rows)d)
INSERT INTO t SELECT i, printf('%%d.%%014d', i*7919%%65521, i*1234567891%%99999999999), i*1.5/7, i%%97 FROM n;
CREATE INDEX td ON t(d,c);
"""
PARTS = ("SELECT sum(CAST(b AS REAL)), sum(b+1) FROM t;", "SELECT d, count(*), avg(c), max(b) FROM t GROUP BY d;",
         "SELECT count(*) FROM t x JOIN t y ON x.d=y.a WHERE x.b LIKE '%7%1';", "UPDATE t SET c=c+1 WHERE a%5=0;",
         "SELECT count(*) FROM (SELECT b FROM t ORDER BY b LIMIT 500);")


def lua_arguments(folder, seed):
    script = os.path.join(folder, "work.lua")
    if not os.path.exists(script):
        with open(script, "w") as f:
            f.write(LUA)
    return [script, str(seed)], b""


def sql_arguments(folder, seed):
    draw = random.Random(seed)
    text = SQL % {"rows": draw.randint(3000, 6000)}
    for part, most in zip(PARTS, (150, 30, 10, 15, 20)):
        text += part * draw.randint(most // 2, most)
    return ["-batch", ":memory:"], text.encode()


# Wraps a function's body: the whole of it again in one of variant_every calls.
TWICE = """static inline __attribute__((always_inline)) %(result)s %(name)s_work(%(parameters)s)%(body)s
extern const volatile unsigned variant_every;
__attribute__((noinline)) %(result)s %(name)s(%(parameters)s)
{
    static unsigned variant_calls;
    unsigned again = ++variant_calls >= variant_every;
    variant_calls = again ? 0 : variant_calls;
    %(result)s answer;
    do {
        __asm__ volatile("" ::: "memory");
        answer = %(name)s_work(%(arguments)s);
        __asm__ volatile("" : "+r"(answer));
    } while (again-- > 0);
    return answer;
}
"""


def twice(source, name):
    """The source text with the function wrapped."""
    found = re.search(r"^(?:SQLITE_PRIVATE )?((?:unsigned )?int) %s ?\(([^)]*)\)\s?(\{.*?^\})" % name, source,
                      re.M | re.S)
    arguments = ", ".join(re.split(r"[ *]+", p.strip())[-1] for p in found[2].split(","))
    code = TWICE % {"result": found[1], "name": name, "parameters": found[2], "body": found[3], "arguments": arguments}
    return source[:found.start()] + code + source[found.end():]


class Program:
    """slower: (source file, function); its parts are compiled once, and linked to each variant."""

    def __init__(self, name, tree, sources, slower, flags, libraries, arguments):
        self.name, self.tree, self.sources, self.slower = name, tree, sources, slower
        self.flags, self.libraries, self.arguments = flags, libraries, arguments

    def build(self, folder, here):
        """{variant: executable}"""
        self.folder = os.path.join(folder, self.name)
        os.makedirs(self.folder, exist_ok=True)
        objects, commands = [], []
        for source in self.sources:
            path, out = os.path.join(self.tree, source), os.path.join(self.folder, os.path.basename(source) + ".o")
            objects.append(out)
            if source == self.slower[0]:
                with open(path, errors="replace") as f:
                    text = twice(f.read(), self.slower[1])
                path = os.path.join(self.folder, os.path.basename(source))
                with open(path, "w") as f:
                    f.write(text)
            if not os.path.exists(out):
                commands.append(["gcc", "-pg", "-O2", "-g", *self.flags, "-I" + os.path.dirname(os.path.join(self.tree,
                                 source)), "-c", "-o", out, path])
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda c: subprocess.run(c, check=True, capture_output=True), commands))
        self.exes = {}
        for variant, every in VARIANTS.items():
            exe = self.exes[variant] = os.path.join(self.folder, f"{self.name}-{variant}")
            subprocess.run(["gcc", "-pg", "-O2", "-g", f"-DEVERY={every}u", f'-DNAME="{variant}"', f"-DRATE={RATE}",
                            "-o", exe, os.path.join(here, "variant.c"), *objects, *self.libraries], check=True)
        return self.exes

    def run(self, variant, seed, where):
        """One process; its gmon.out as (low, high, {bin: ticks}, bins, [(caller, callee, calls)])."""
        arguments, given = self.arguments(self.folder, seed)
        prefix = os.path.join(where, f"{variant}-{seed}")
        process = subprocess.Popen([self.exes[variant], *arguments], cwd=where, stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, env={"LC_ALL": "C", "GMON_OUT_PREFIX": prefix})
        process.communicate(given, timeout=300)
        with open(f"{prefix}.{process.pid}", "rb") as f:
            data = f.read()
        os.unlink(f"{prefix}.{process.pid}")
        return read_gmon(data)


def read_gmon(data):
    at, arcs, used, low, high, bins = 20, [], {}, 0, 0, 0
    while at < len(data):
        tag = data[at]
        at += 1
        if tag == 0:
            low, high, bins = struct.unpack_from("<QQI", data, at)
            at += 40
            counts = struct.unpack_from(f"<{bins}H", data, at)
            used = {i: n for i, n in enumerate(counts) if n}
            at += 2 * bins
        else:
            caller, callee, calls = struct.unpack_from("<QQI", data, at)
            at += 20
            arcs.append((caller, callee, calls))
    return low, high, used, bins, arcs


def real(sources):
    """The programs of Debian's source packages, which packages.sh has fetched."""
    lua, sqlite = os.path.join(sources, "lua5.4/tree"), os.path.join(sources, "sqlite3/tree")
    parts = ["src/" + f for f in sorted(os.listdir(os.path.join(lua, "src"))) if f.endswith(".c") and f != "luac.c"]
    return [Program("lua", lua, parts, ("src/lstring.c", "luaS_hash"), ["-DLUA_USE_POSIX"], ["-lm"], lua_arguments),
            Program("sqlite", sqlite, ["pg/sqlite3.c", "pg/shell.c"], ("pg/sqlite3.c", "sqlite3AtoF"),
                    ["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION"], ["-lm"], sql_arguments)]
