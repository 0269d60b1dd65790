#!/usr/bin/python3
# not a test
"""profctl never-called beside gcov: the same program built once more with --coverage, and run on the same inputs.

dead.py FOLDER SOURCES [lua5.4|sqlite3|cppcheck…]: SOURCES is that of tests/oracle/packages.sh. Of the bytes that
profctl lists, those of functions that gcov saw running are counted. Functions are the same by name and file."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "integration"), os.path.join(HERE, "..", "oracle")]
sys.dont_write_bytecode = True
import package_runs  # noqa: E402
from harness import PROFCTL, Daemon, until  # noqa: E402

REAL = ("lua5.4", "sqlite3", "cppcheck")
MOST = 0.01  # of the listed bytes may have run


def runs_cppcheck(folder, inputs):
    code = os.path.join(folder, "..", "lua5.4", "tree", "src")
    files = [os.path.join(code, f) for f in ("lzio.c", "lmem.c", "linit.c", "lctype.c", "lstring.c")]
    return [(["--enable=all", "--inconclusive", "--xml", *files], None), (["--errorlist"], None), (["--help"], None),
            (["-D", "LUA_USE_POSIX", "--force", "--template=gcc", *files[:2]], None), (["no-such-file.c"], None)]


RUNS = {"made": lambda folder, inputs: [(["1"], None)], "lua5.4": package_runs.runs_lua,
        "sqlite3": package_runs.runs_sqlite, "cppcheck": runs_cppcheck}


def compile_all(folder, sources, flags, libraries, compiler="gcc"):
    """Each source to an object, and the program from them; what is there stays."""
    os.makedirs(folder, exist_ok=True)
    exe, objects, commands = os.path.join(folder, "exe"), [], []
    if os.path.exists(exe):
        return exe
    for source in sources:
        objects.append(os.path.join(folder, os.path.basename(source).rpartition(".")[0] + ".o"))
        if not os.path.exists(objects[-1]):
            commands.append([compiler, *flags, "-I" + os.path.dirname(source), "-c", "-o", objects[-1], source])
    for at in range(0, len(commands), os.cpu_count()):
        for process in [subprocess.Popen(c) for c in commands[at:at + os.cpu_count()]]:
            assert process.wait() == 0, process.args
    subprocess.run([compiler, *flags, "-o", exe, *objects, *libraries], check=True)
    return exe


# What packages.sh defines for them.
DEFINED = {"lua5.4": ["-DLUA_USE_POSIX"], "sqlite3": ["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION"]}
PARTS = {"lua5.4": ("src/*.c",), "sqlite3": ("pg/sqlite3.c", "pg/shell.c"),
         "cppcheck": ("cli/*.cpp", "lib/*.cpp", "externals/*/*.cpp")}


def beside(folder, tree):
    """cppcheck reads its libraries' descriptions from the folder of its program."""
    os.makedirs(folder, exist_ok=True)
    if os.path.isdir(os.path.join(tree, "cfg")) and not os.path.exists(os.path.join(folder, "cfg")):
        os.symlink(os.path.join(tree, "cfg"), os.path.join(folder, "cfg"))


def build_counted(name, folder, sources):
    """The program for gcov, without optimisation: whatever is inlined elsewhere is a function there."""
    flags, tree = ["-O0", "-g1", "-w", "--coverage"], os.path.join(sources, name, "tree")
    if name == "made": # of short.py, in SOURCES itself
        return compile_all(folder, [os.path.join(sources, "made.c")], flags, [])
    files = [f for part in PARTS[name] for f in sorted(glob.glob(os.path.join(tree, part)))
             if not f.endswith("luac.c")]
    if name != "cppcheck":
        return compile_all(folder, files, [*flags, *DEFINED[name]], ["-lm"])
    includes = ["-I" + os.path.join(tree, i) for i in ("lib", "externals/simplecpp", "externals/tinyxml2",
                                                       "externals/picojson", "externals")]
    beside(folder, tree)
    return compile_all(folder, files, [*flags, *includes], [], "g++")


def build_profiled(name, folder, sources):
    """The program of packages.sh."""
    if name == "made":
        return compile_all(folder, [os.path.join(sources, "made.c")], ["-pg", "-O2", "-g"], [])
    beside(folder, os.path.join(sources, name, "tree"))
    exe = os.path.join(folder, "exe")
    shutil.copy2(os.path.join(sources, name, "exe"), exe)
    return exe


def counted_name(name):
    """As gcov has it, without what a compiler appends; constructors and destructors of whole objects (C1, D1) are those
    of bases (C2, D2), which have the same source."""
    return re.sub(r"(?<=[CD])1(?=[EI])", "2", name.split(".")[0])


def ran(folder, name, sources):
    """{(function, base name of its file): how often it ran} by gcov."""
    exe, counts = build_counted(name, folder, sources), {}
    for old in glob.glob(os.path.join(folder, "*.gcda")):
        os.unlink(old)
    for n, (arguments, given) in enumerate(runs(name, folder, sources)):
        execute([exe, *arguments], given, os.path.join(folder, f"run-{n}"))
    for notes in sorted(glob.glob(os.path.join(folder, "*.gcda"))):
        done = subprocess.run(["gcov", "--json-format", "--stdout", "-o", folder, notes], check=True,
                              capture_output=True, cwd=folder)
        for line in done.stdout.splitlines():
            for file in json.loads(line)["files"]:
                for f in file["functions"]:
                    key = counted_name(f["name"]), os.path.basename(file["file"])
                    counts[key] = counts.get(key, 0) + f["execution_count"]
    return counts


def runs(name, folder, sources):
    inputs = os.path.join(folder, "inputs")
    os.makedirs(inputs, exist_ok=True)
    return RUNS[name](os.path.join(sources, name), inputs)


def execute(command, given, where, env=None):
    """As tests/oracle/package_runs.py runs it; a database is not there."""
    os.makedirs(where, exist_ok=True)
    for file in glob.glob(os.path.join(where, "*.db")):
        os.unlink(file)
    subprocess.run(command, cwd=where, input=given if given is not None else b"", stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=1200, env=env or {"PATH": os.environ["PATH"], "LC_ALL": "C"})


def listed(folder, name, sources):
    """The answer of profctl never-called."""
    exe = build_profiled(name, folder, sources)
    with Daemon() as d:
        todo = runs(name, folder, sources)
        for n, (arguments, given) in enumerate(todo):
            execute([PROFCTL, "run", exe, *arguments], given,
                    os.path.join(folder, f"run-{n}"), d.env)
        done = until(lambda: (r := d.ctl("never-called", exe, "--json")).returncode == 0
                     and json.loads(r.stdout)["processes_started"] == len(todo) and r)
        return json.loads(done.stdout) if done else d.json("never-called", exe, "--json")


def compare(name, folder, sources):
    """(the answer, rows of whole functions, those of them that ran)"""
    counts = ran(os.path.join(folder, name + "-gcov"), name, sources)
    answer = listed(os.path.join(folder, name), name, sources)
    rows = [r for r in answer["rows"] if not r["entered_elsewhere"] and not r["inlined"]]
    wrong, by_name = [], {}
    for (function, _), count in counts.items():
        by_name[function] = by_name.get(function, 0) + count
    for r in rows: # the file is known of static functions; others have their names alone
        key = counted_name(r["raw_name"]), os.path.basename(r["file"])
        r["ran"] = counts.get(key) if r["file"] else by_name.get(key[0])
        if r["ran"]:
            wrong.append(r)
    return answer, rows, wrong


def main(folder, sources, names):
    failed = False
    for name in names or REAL:
        answer, rows, wrong = compare(name, folder, sources)
        bad, unknown = sum(r["bytes"] for r in wrong), [r for r in rows if r["ran"] is None]
        known = sum(r["bytes"] for r in rows if r["ran"] is not None)
        with open(os.path.join(folder, f"never-called-{name}.tsv"), "w") as f:
            f.write("function\tfile\tbytes\tran\n")
            f.writelines(f"{r['raw_name']}\t{r['file']}\t{r['bytes']}\t{r['ran']}\n" for r in rows)
        print(f"{name}: {len(rows) - len(unknown)} functions, {known} bytes never called; of them gcov saw "
              f"{len(wrong)} run, {bad} bytes: {100 * bad / known if known else 0:.2f} % (asked: at most 1 %); gcov "
              f"has no counts of {len(unknown)} more, {sum(r['bytes'] for r in unknown)} bytes")
        for r in sorted(wrong, key=lambda r: -r["bytes"])[:20]:
            print(f"    {r['bytes']:6} bytes, ran {r['ran']:9} times  {r['raw_name']}  {os.path.basename(r['file'])}")
        failed = failed or not known or bad > MOST * known
    return failed


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]))
