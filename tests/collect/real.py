#!/usr/bin/python3
# not a test
"""Programs of Debian source packages, built with -pg by tests/oracle/packages.sh, under the collector. Every call count
of every instrumented function, of the program, its plugins and its threads, beside valgrind's callgrind: in one and the
same run, and for programs that do the same each time also in runs of their own, without valgrind, and with call sites
rewritten.

real.py FOLDER [package…]        with PROFD_BUILD naming the build folder

Prints TAP and a table."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oracle"))
from bed import Bed, Tap  # noqa: E402
from calls import Functions, callgrind, compare, counted  # noqa: E402
from package_runs import AWK, LUA, grammar, sources, write  # noqa: E402

LPEG = """package.cpath = arg[1]
local lpeg = require 'lpeg'
local space, digits = lpeg.S(' \\n\\t')^0, lpeg.C(lpeg.P('-')^-1 * lpeg.R('09')^1)
local number = digits / tonumber * space
local function token(c) return lpeg.C(lpeg.S(c)) * space end
local function fold(a, op, b) return op == '+' and a + b or op == '-' and a - b
  or op == '*' and a * b or b ~= 0 and a // b or 0 end
local grammar = lpeg.P{'sum', sum = lpeg.Cf(lpeg.V'product' * lpeg.Cg(token'+-' * lpeg.V'product')^0, fold),
  product = lpeg.Cf(lpeg.V'one' * lpeg.Cg(token'*/' * lpeg.V'one')^0, fold),
  one = number + token'(' * lpeg.V'sum' * token')' / function(_, n) return n end}
local words = lpeg.Ct(((lpeg.C(lpeg.R('az', 'AZ')^1) + 1) * space)^0)
local total, text = 0, 'the quick brown fox jumps over the lazy dog '
for i = 1, 150 do
  total = total + grammar:match(('(%d + %d * (%d - 7)) / %d'):format(i, i % 13, i % 29, i % 5 + 1):rep(12, ' + '))
  total = total + #words:match(text:rep(i % 17))
end
print(total)
"""


def runs(package, folder, inputs):
    """[(arguments, standard input)], small: callgrind takes fifty times as long."""
    text = write(inputs, "text", sources(folder, 150000))
    if package == "lua5.4":
        return [([write(inputs, "work.lua", LUA), "2"], None)]
    if package == "lua-lpeg":
        return [([write(inputs, "patterns.lua", LPEG), os.path.join(folder, "lpeg.so")], None)]
    if package == "mawk":
        return [(["-f", write(inputs, "count.awk", AWK.replace("deep(22)", "deep(15)")), text], None)]
    if package == "byacc":
        return [(["-v", "-d", write(inputs, "g.y", grammar(40))], None)]
    if package == "sed":
        return [(["-n", "-E", r"s/([a-z_]+)\(([^,)]*),/\2(\1;/gp; /^#/{N;P;D}; y/abc/xyz/; $=", text], None)]
    if package == "sqlite3":
        sql = ("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, d INT); "
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<1500) INSERT INTO t "
               "SELECT i, printf('%08x', i*7919%65521), i%97 FROM n; CREATE INDEX tb ON t(b); "
               "SELECT d, count(*), min(b) FROM t GROUP BY d ORDER BY 2, 1 LIMIT 9; "
               "UPDATE t SET d=d+1 WHERE a%5=0; DELETE FROM t WHERE b GLOB '*00*'; SELECT count(*), sum(d) FROM t; "
               "PRAGMA integrity_check;\n")
        return [(["-batch", ":memory:"], sql.encode())]
    if package == "pbzip2":
        return [(["-c", "-z", "-k", "-p4", "-b1", "-1", text], None)]
    if package == "libzstd":
        packed = subprocess.run([os.path.join(folder, "exe"), "-1", "-c", *[text] * 40], cwd=inputs,
                                capture_output=True, check=True).stdout
        return [(["-12", "-c", "-T1", text], None), (["-19", "-c", "--single-thread"], open(text, "rb").read()),
                (["-d", "-c", write(inputs, "text.zst", packed)], None)]
    return [(["-9", "-c"], open(text, "rb").read())]


CHANCE = ("lua5.4", "lua-lpeg", "pbzip2") # hashes by address, or threads: no two runs are the same


def watched(bed, exe, run):
    """What run() gives back, and the processes of exe that the collector counted meanwhile."""
    before = {p["instance"] for p in bed.dump() if "instance" in p.raw}
    answer = run()
    return answer, [p for p in bed.dump() if p.raw.get("instance") not in before and not p.failed
                    and p.module(1)["name"] == exe]


def one(tap, bed, root, package, table):
    folder = os.path.join(root, package)
    exe, inputs = os.path.realpath(os.path.join(folder, "exe")), os.path.join(folder, "collect")
    if not tap.point(os.path.exists(exe), f"{package}: its source was fetched and built"):
        return
    os.makedirs(inputs, exist_ok=True)
    for arguments, given in runs(package, folder, inputs):
        plain = {"cwd": inputs, "input": given or b""}
        done, seen = watched(bed, exe, lambda: subprocess.run([exe, *arguments], env=bed.env(PROFD_REWRITE=0),
                capture_output=True, timeout=300, **plain))
        if not tap.point(done.returncode == 0 and len(seen) == 1 and seen[0]["exact"],
                         f"{package}: it runs under the collector, which is exact",
                         (done.returncode, done.stderr[-300:], len(seen))):
            continue
        functions = {m["name"]: Functions(m["name"]) for m in seen[0]["modules"].values()
                     if m["name"].startswith(os.path.realpath(root))}
        (theirs, out), same = watched(bed, exe, lambda: callgrind([exe, *arguments], functions, bed.folder,
                env=bed.env(PROFD_REWRITE=0), **plain))
        n, calls, off = compare(counted(same, functions), theirs, functions)
        tap.point(len(same) == 1 and n > 20 and calls > 1000 and not off and same[0]["exact"] and out == done.stdout,
                  f"{package}: {n} functions of {len(functions)} objects, {calls} calls, none differs",
                  (len(same), dict(list(off.items())[:20])))
        apart = rewritten = None
        if package not in CHANCE:
            _, calls, apart = compare(counted(seen, functions), theirs, functions)
            tap.point(calls > 1000 and not apart, f"{package}: nor without valgrind", dict(list(apart.items())[:20]))
            _, seen = watched(bed, exe, lambda: subprocess.run([exe, *arguments], env=bed.env(PROFD_REWRITE=1),
                    capture_output=True, timeout=300, **plain))
            _, calls, rewritten = compare(counted(seen, functions), theirs, functions)
            tap.point(calls > 1000 and not rewritten, f"{package}: nor with its call sites rewritten",
                      dict(list(rewritten.items())[:20]))
        table.append((package, len(functions), same[0]["THREADS"] if same else 0, n, calls, len(off),
                      *("–" if r is None else len(r) for r in (apart, rewritten))))


PACKAGES = ["lua5.4", "lua-lpeg", "pbzip2", "mawk", "byacc", "gzip", "sed", "sqlite3", "libzstd"]


def main():
    root = os.path.abspath(sys.argv[1])
    table = []
    with Tap() as tap, Bed() as bed:
        for package in sys.argv[2:] or PACKAGES:
            one(tap, bed, root, package, table)
        print(f"# {'package':<10} {'objects':>8} {'threads':>8} {'functions':>10} {'calls':>12} {'differences':>12} "
              f"{'another run':>12} {'rewritten':>10}")
        for row in table:
            print("# {:<10} {:>8} {:>8} {:>10} {:>12} {:>12} {:>12} {:>10}".format(*row))


main()
