#!/usr/bin/python3
"""profctl never-called on a program whose dead code is known: exact runs bound how often it runs, a gmon.out does
not."""
import csv
import io
import json
import os
import sys

sys.dont_write_bytecode = True
from harness import Daemon, Tap, run, symbols, until  # noqa: E402

SOURCE = """#include <stdlib.h>
static volatile int n;
#define OWN __attribute__((noinline))
OWN void used(void) { n++; }
OWN void dead(void) { for (int i = 0; i < n; i++) n += i * n; used(); }
OWN void rare(void) { n--; }
OWN static int buried(int i) { return i ? buried(i - 1) * n : n; }
int main(int argc, char **argv)
{
    used();
    if (argc > 1) rare();
    if (argc > 2) { dead(); n = buried(argc); }
    return argv[0] == NULL;
}
"""
RUNS = 4
# both is inlined, and its own copy is never entered.
INLINED = """static volatile int n;
int both(int x) { return n += x; }
__attribute__((noinline)) int dead(int x) { while (x-- > n) n += both(x) * 2; return n; }
int main(int argc, char **argv) { (void)argv; return argc > 5 ? dead(argc) : both(argc) > 100; }
"""


def listed(d, exe, *options):
    done = d.ctl("never-called", exe, "--json", *options)
    return json.loads(done.stdout) if done.returncode == 0 else {"rows": [], "error": done.stderr}


def names(answer):
    return [r["function"] for r in answer["rows"]]


def libraries(tap, d):
    """Of a build without names, and of one that counts no calls, nothing is known, also if a library has and does."""
    files = "lib.c", "use.c", "libcounted.so", "uses", "stripped", "libbare.so", "barely"
    paths = [os.path.join(d.folder, name) for name in files]
    for path, text in zip(paths, ("int helped(int x) { return x + 1; } int dead(int x) { return x * 3; }\n",
                                  "int helped(int); int main(void) { return helped(1) != 2; }\n")):
        with open(path, "w") as f:
            f.write(text)
    for options in (["-pg", "-shared", "-fPIC", "-o", paths[2], paths[0]], ["-o", paths[3], paths[1], paths[2]],
                    ["-pg", "-s", "-o", paths[4], paths[1], paths[2]],
                    ["-pg", "-s", "-shared", "-fPIC", "-o", paths[5], paths[0]], ["-o", paths[6], paths[1], paths[5]]):
        done = run("gcc", "-O1", f"-Wl,-rpath,{d.folder}", *options)
        assert done.returncode == 0, done.stderr
    for exe, sentence in ((paths[3], "unknown: no function of this build counts its calls (gcc -pg)"),
                          (paths[4], "unknown: no function of this build that counts its calls has a name; profctl "
                                     "symbols sends its executable or debug file")):
        assert d.ctl("run", exe).returncode == 0
        until(lambda: listed(d, exe).get("processes_started") == 1)
        text = d.ctl("never-called", exe).stdout
        tap.point(text == sentence + "\n" and listed(d, exe)["rows"] == [], sentence, text)
    for form in ("symbol-order", "exclude-list"):
        done = d.ctl("report", paths[4], "-f", form)
        tap.point(done.returncode == 64 and f"--format {form} needs names, and the functions of build " in done.stderr
                  and done.stderr.count("\n") == 1, f"{form} of a build without names", done.stderr)
    names_of = [r["function"] for r in listed(d, paths[2], "--scope", "everywhere")["rows"]]
    tap.point(names_of == ["dead"], "of the library something is", names_of)
    assert d.ctl("run", paths[6]).returncode == 0
    until(lambda: listed(d, paths[5], "--scope", "everywhere").get("processes_started") == 1)
    text = d.ctl("never-called", paths[5], "--scope", "everywhere").stdout
    tap.point("Only exported functions have names, and only these are known" in text and " dead\n" in text,
              "of a stripped library, what it exports", text)
    whole = os.path.join(d.folder, "whole")
    assert run("gcc", "-O1", "-pg", "-s", "-static", "-o", whole, paths[0], paths[1]).returncode == 0
    assert run(whole, cwd=d.folder).returncode == 0
    done = d.ctl("upload", "-e", whole, os.path.join(d.folder, "gmon.out"))
    assert done.returncode == 0, done.stderr
    text = d.ctl("diff", paths[3], whole, "--metric", "self").stdout
    tap.point("Seen only in B: " in text and "  A function without a name is found on the other side by its code only, "
              "if at all: profctl symbols sends names.\n" in text, "a comparison says that names are missing", text)


def inlined(tap, d):
    """A report counts each copy, never-called functions: the text says why the numbers differ."""
    source, exe = os.path.join(d.folder, "inlined.c"), os.path.join(d.folder, "inlined")
    with open(source, "w") as f:
        f.write(INLINED)
    assert run("gcc", "-pg", "-O2", "-g", "-o", exe, source).returncode == 0
    assert d.ctl("run", exe).returncode == 0
    until(lambda: listed(d, exe).get("processes_started") == 1)
    answer, text, report = listed(d, exe), d.ctl("never-called", exe).stdout, d.ctl("report", exe, "-v").stdout
    tap.point(answer["functions"] == 1 and answer["not_called"] == 2 and "Not called 2 of " in report
              and "A report says 2 not called: " in text, "a report's number is explained where it differs", text)


def linked(tap, d):
    """What the compiler inlines when it links has run, although no file of its own says that it was inlined."""
    sources = []
    for name, text in (("a", "extern volatile int n; int tiny(int i) { return n += 3 * i; }"),
                       ("b", "volatile int n; int tiny(int i); int (*volatile kept)(int) = tiny;\n"
                        "int main(int argc, char **argv) { for (int i = 0; i < 9; i++) tiny(i);"
                        " return argc > 9 ? kept(1) : 0; }")):
        sources.append(os.path.join(d.folder, f"lto-{name}.c"))
        with open(sources[-1], "w") as f:
            f.write(text)
    exe = os.path.join(d.folder, "lto")
    done = run("gcc", "-pg", "-g", "-O2", "-flto", "-o", exe, *sources)
    assert done.returncode == 0, done.stderr
    assert d.ctl("run", exe).returncode == 0
    until(lambda: listed(d, exe).get("processes_started") == 1)
    answer = listed(d, exe)
    tap.point([(r["function"], r["inlined"]) for r in answer["rows"]] == [("tiny", True)] and answer["functions"] == 0,
              "a function that was inlined at link time is not said to have not run", answer)


with Tap() as tap, Daemon() as d:
    source, exe = os.path.join(d.folder, "p.c"), os.path.join(d.folder, "p")
    with open(source, "w") as f:
        f.write(SOURCE)
    done = run("gcc", "-pg", "-O1", "-fno-inline", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    for _ in range(RUNS):
        done = d.ctl("run", exe)
        assert done.returncode == 0, done.stderr
    until(lambda: listed(d, exe).get("processes_started") == RUNS)
    linked(tap, d)
    answer, table = listed(d, exe), symbols(exe)
    tap.point(sorted(names(answer)) == ["buried", "dead", "rare"] and answer["functions"] == 3,
              "what no run entered, and no start-up code", answer)
    sizes = [r["bytes"] for r in answer["rows"]]
    tap.point(sizes == sorted(sizes, reverse=True) and all(r["bytes"] == table[r["raw_name"]][1]
              for r in answer["rows"]) and answer["bytes"] == sum(sizes), "by bytes, those of the symbols", answer)
    tap.point(answer["calls_exact"] and abs(answer["bound"] - 3 / RUNS) < 1e-12,
              f"{RUNS} exact runs: fewer than 3/{RUNS} of processes", answer)
    text = d.ctl("never-called", exe).stdout
    tap.point("3 functions" in text and f"none of {RUNS} processes: fewer than 75%" in text and "dead" in text,
              "as a table", text)
    table = list(csv.DictReader(io.StringIO(d.ctl("never-called", exe, "-f", "csv").stdout, newline="")))
    tap.point([(r["function"], int(r["bytes"]), r["inlined"]) for r in table]
              == [(r["function"], r["bytes"], "0") for r in answer["rows"]]
              and d.ctl("never-called", exe, "-f", "json").stdout == d.ctl("never-called", exe, "--json").stdout,
              "as CSV, and -f json", table)
    assert d.ctl("run", exe, "now").returncode == 0
    until(lambda: listed(d, exe).get("processes_started") == RUNS + 1)
    tap.point(sorted(names(listed(d, exe))) == ["buried", "dead"], "a function that one process entered is not listed")
    tap.point(len(listed(d, exe, "--limit", "1")["rows"]) == 1 and listed(d, exe, "--limit", "1")["row_count"] == 2,
              "with a limit")
    done = d.ctl("never-called", exe, "-l", "host=nowhere")
    tap.point(done.returncode == 1, "of nothing", done.stderr)
    assert run(exe, cwd=d.folder).returncode == 0
    assert d.ctl("upload", "-e", exe, os.path.join(d.folder, "gmon.out")).returncode == 0
    answer, text = listed(d, exe), d.ctl("never-called", exe).stdout
    tap.point(answer["bound"] is None and not answer["calls_exact"] and "calls may be missing" in text,
              "with a gmon.out among them nothing is bounded", text)
    plain = os.path.join(d.folder, "plain")
    done = run("gcc", "-O1", "-o", plain, source)
    assert done.returncode == 0, done.stderr
    assert d.ctl("run", plain).returncode == 0
    until(lambda: listed(d, plain).get("processes_started") == 1)
    text = d.ctl("never-called", plain).stdout
    tap.point(text == "unknown: no function of this build counts its calls (gcc -pg)\n",
              "of a build that counts no calls nothing is known", text)
    inlined(tap, d)
    libraries(tap, d)
