# not a test
"""What the programs of packages.sh are run on: their own sources, their own tests, scripts written here.

run_all(package, folder) runs folder/exe several times, each in a folder of its own, and returns the gmon.out files."""
import os
import shutil
import subprocess

LUA = """local n = tonumber(arg[1])
local function fib(i) if i < 2 then return i end return fib(i - 1) + fib(i - 2) end
local t, words = {}, {}
for i = 1, n * 4000 do t[i] = (i * 7919) % 10007; words[#words + 1] = tostring(t[i]) end
table.sort(t, function(a, b) return a > b end)
local s = table.concat(words, ' ')
local count = 0
for w in s:gmatch('%d+') do if w:find('^[1-4]%d*7') then count = count + 1 end end
s = s:gsub('(%d)(%d)', '%2%1'):upper():rep(2)
local co = coroutine.wrap(function() for i = 1, n * 3000 do coroutine.yield(setmetatable({}, {__index = t})[i]) end end)
for i = 1, n * 3000 do co() end
print(fib(18 + n), count, #s, load('return ' .. ('1+'):rep(100 * n) .. '1')(),
  pcall(error, 'x'), string.format('%5.3f|%q', 1 / n, 'a"b'))
"""
AWK = """{ lines++; for (i = 1; i <= NF; i++) { word = tolower($i)
  gsub(/[^a-z_]/, "", word); if (word ~ /^[a-z_]+$/) seen[word]++ } }
length($0) > 60 { long += index($0, "(") + match($0, /[0-9]+/) }
function deep(n) { return n < 2 ? n : deep(n - 1) + deep(n - 2) }
END { for (w in seen) { if (seen[w] > most) { most = seen[w]; top = w } n++
  s += sqrt(seen[w]) + sin(n) * int(n / 3) % 7 }
  split(sprintf("%s-%d-%.3f", top, most, s), parts, "-")
  printf "%d %d %d %s %s\\n", lines, long, n, substr(parts[1], 1, 20), deep(22) }
"""
SQL = """CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL, d INT);
BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<@)
INSERT INTO t SELECT i, printf('%08x-%s', i*7919%65521, hex(randomblob(4))), i*1.5/7, i%97 FROM n; COMMIT;
CREATE INDEX tb ON t(b); CREATE INDEX td ON t(d,c);
SELECT d, count(*), avg(c), min(b), group_concat(substr(b,1,2)) OVER (ORDER BY d ROWS 1 PRECEDING) FROM t
GROUP BY d HAVING count(*)>3 ORDER BY 3 DESC LIMIT 5;
SELECT count(*) FROM t x JOIN t y ON x.d=y.a WHERE x.b LIKE '%7f%' OR y.c BETWEEN 3 AND 5;
CREATE TABLE u AS SELECT DISTINCT lower(b) k, json_object('a',a,'d',d) j FROM t WHERE a%3=0;
SELECT sum(json_extract(j,'$.d')), length(group_concat(k)) FROM u;
CREATE TRIGGER r AFTER UPDATE ON t WHEN new.d>90 BEGIN DELETE FROM u WHERE k=lower(old.b); END;
UPDATE t SET c=c+1, d=d+1 WHERE a%5=0; DELETE FROM t WHERE b GLOB '*00*';
SELECT t1.d FROM (SELECT d FROM t EXCEPT SELECT a FROM t) t1 UNION SELECT 3 ORDER BY 1 LIMIT 3;
PRAGMA integrity_check; ANALYZE; VACUUM; EXPLAIN QUERY PLAN SELECT * FROM t WHERE b>'5' ORDER BY c;
"""


def sources(folder, limit, endings=(".c", ".h", ".cc", ".f", ".txt", ".1")):
    """Real text: files of the package, and of its neighbours, up to limit bytes."""
    out = bytearray()
    for place in [folder] + sorted(e.path for e in os.scandir(os.path.dirname(folder)) if e.is_dir()):
        for where, folders, names in os.walk(os.path.join(place, "tree")):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(where, name)
                if name.endswith(endings) and os.path.isfile(path):
                    with open(path, "rb") as f:
                        out += f.read()
                if len(out) >= limit:
                    return bytes(out[:limit])
    return bytes(out)


def grammar(rules):
    """Input of a parser generator: an expression grammar with many statements."""
    lines = ["%token NUMBER NAME " + " ".join(f"K{i}" for i in range(rules)), "%left '+' '-'", "%left '*' '/'", "%%",
             "list: | list statement ';' | list error ';' ;", "statement: expression"]
    lines += [f" | K{i} s{i}" for i in range(rules)] + [" ;"]
    lines += [f"s{i}: NAME '(' expression ')' | '{{' K{i} expression ',' s{(i * 7 + 1) % rules} '}}' ;"
              for i in range(rules)]
    lines += ["expression: NUMBER | NAME | '(' expression ')' | '-' expression %prec '*'"]
    lines += [f" | expression '{c}' expression" for c in "+-*/"] + [" ;", "%%"]
    return "\n".join(lines) + "\n"


def manifest(edges):
    lines = ["rule cc", " command = cc -c $in -o $out $flags", " description = CC $out", "rule ld",
             " command = ld $in -o $out", "flags = -O2"]
    for i in range(edges):
        after = f" | gen/h{i // 50}.h" if i >= 50 else ""
        lines += [f"build obj/f{i}.o: cc src/f{i}.c{after}", f"  flags = $flags -DN={i}"]
    lines += [f"build gen/h{i}.h: ld obj/f{i}.o obj/f{i * 50 - 1 if i else 0}.o" for i in range(1, edges // 50)]
    lines += ["build all: phony " + " ".join(f"obj/f{i}.o" for i in range(edges)), "default all"]
    return "\n".join(lines) + "\n"


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    return path


def runs_lua(folder, inputs):
    script = write(inputs, "work.lua", LUA)
    return [([script, str(n)], None) for n in (3, 7, 9)]


def runs_mawk(folder, inputs):
    text, program = write(inputs, "text", sources(folder, 4 << 20)), write(inputs, "count.awk", AWK)
    arrays = ("BEGIN { for (i = 0; i < 300000; i++) { k = i % 1000; a[k] = a[(i * 7) % 1000] i % 10; if (length(a[k]) "
              "> 20) delete a[k] } }")
    return [(["-f", program, text], None), (["-F", ",", "{ s += $2 * length($1); print NR, substr($0, 2, 5) s }",
                                             text], None),
            ([arrays], None)]


def runs_byacc(folder, inputs):
    real = sorted(e.path for e in os.scandir(os.path.join(folder, "tree/test")) if e.name.endswith(".y")
                  and os.path.getsize(e.path) > 4000)
    return ([(["-v", "-d", write(inputs, f"g{n}.y", grammar(n))], None) for n in (60, 250)]
            + [(["-v", "-B", p], None) for p in real[:2]])


def runs_tcc(folder, inputs):
    tree = os.path.join(folder, "tree")
    include = [f"-B{tree}", f"-I{tree}", f"-I{tree}/include"]
    many = "#include <stdio.h>\n" + "".join(
        f"struct s{i} {{ int a; double b[{i % 7 + 1}]; }};\nint f{i}(int x, struct s{i} *p) {{ int k; for (k = 0; k < "
        f"{i}; k++) "
        f"x = x * {i} + (k ? p->a : (int)p->b[0]) - (x >> {i % 8}); switch (x & 3) {{ case 0: return x; default: "
        f"return printf(\"%d\", x); }} }}\n"
        for i in range(20000))
    return [([*include, "-c", "-o", "tcc.o", "-DONE_SOURCE=1", "-DTCC_TARGET_X86_64", f"{tree}/tcc.c"], None),
            ([*include, "-c", "-o", "many.o", write(inputs, "many.c", many)], None),
            ([*include, "-E", "-o", "out.i", f"{tree}/tcc.c"], None)]


def runs_sqlite(folder, inputs):
    return [(["-batch", ":memory:"], SQL.replace("@", "40000").encode()),
            (["-batch", "file.db"], SQL.replace("@", "9000").encode()),
            (["-batch", "-csv", ":memory:"], b"SELECT * FROM nothing;\n.mode json\nSELECT 1 AS a, x'00ff' AS b;\n"
                                             b".schema\n")]


def runs_ninja(folder, inputs):
    small, large = write(inputs, "small.ninja", manifest(2000)), write(inputs, "large.ninja", manifest(40000))
    return [(["-n", "-k0", "-f", small], None), (["-f", large, "-t", "targets", "all"], None),
            (["-f", large, "-t", "query", "all"], None),
            (["-f", small, "-t", "compdb"], None)]


def runs_lapack(folder, inputs):
    with open(os.path.join(folder, "tree/BLAS/TESTING/dblat3.in")) as f:
        lines = f.read().split("\n")
    at = next(i for i, line in enumerate(lines) if "NUMBER OF VALUES OF N" in line)
    out = []
    for values in ("0 1 2 3 5 9", "9 17 31 35", "64 1 40"):
        lines[at:at + 2] = [f"{len(values.split())}                 NUMBER OF VALUES OF N",
                            f"{values}       VALUES OF N"]
        out.append(([], "\n".join(lines).encode()))
    return out


def runs_packer(folder, inputs, pack=("-9", "-c"), unpack=("-d", "-c"), fast=("-1", "-c"), limit=12):
    text = sources(folder, limit << 20)
    made = subprocess.run([os.path.join(folder, "exe"), *pack], input=text, stdout=subprocess.PIPE, cwd=inputs,
                          check=True).stdout
    return [(list(pack), text), (list(fast), text[:5 << 20]), (list(unpack), made * 3)]


def runs_sed(folder, inputs):
    text = write(inputs, "text", sources(folder, 3 << 20))
    return [(["-n", "-E", r"s/([a-z_]+)\(([^,)]*),/\2(\1;/gp; /^#/{N;P;D}; y/abc/xyz/; $=", text], None),
            (["-e", r"s/\(.\)\(.*\)\1/\2/; t; s/^/> /", text], None),
            (["-n", r"H; ${x; s/\n/ /g; p}", write(inputs, "short", sources(folder, 1 << 17))], None)]


RUNS = {"lua5.4": runs_lua, "mawk": runs_mawk, "byacc": runs_byacc, "tcc": runs_tcc, "sqlite3": runs_sqlite,
        "ninja-build": runs_ninja,
        "lzip": lambda folder, inputs: runs_packer(folder, inputs, limit=3), "lapack": runs_lapack, "gzip": runs_packer,
        "bzip2": lambda folder, inputs: runs_packer(folder, inputs, limit=4), "sed": runs_sed,
        "zlib": lambda folder, inputs: runs_packer(folder, inputs, pack=("-9",), unpack=("-d",), fast=("-1",))}


def run_all(package, folder):
    """Every run of a package; the gmon.out files in order. A run that leaves none is an error."""
    inputs, exe, files = os.path.join(folder, "inputs"), os.path.join(folder, "exe"), []
    os.makedirs(inputs, exist_ok=True)
    for n, (arguments, given) in enumerate(RUNS[package](folder, inputs)):
        place = os.path.join(folder, f"run-{n}")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        done = subprocess.run([exe, *arguments], cwd=place, input=given if given is not None else b"",
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=300, env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
        file = os.path.join(place, "gmon.out")
        if not os.path.exists(file):
            raise RuntimeError(f"{package}: run {n} left no gmon.out (exit {done.returncode}): {done.stderr[-300:]!r}")
        files.append(file)
    return files
