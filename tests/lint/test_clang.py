#!/usr/bin/env python3
"""clang has no warning about the product and its tests. One process parses many files: starting clang costs ten times
as much as reading a file of ours."""
import multiprocessing
import os
import shlex
import subprocess
import sys
import tempfile

from clang import cindex

from tree import PRODUCT, list_files

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("PROFD_BUILD", "build/plain")


def commands():
    """What make would run for a build folder that is not there: [arguments of clang] by file. Generated headers are
    those of the build that is."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    said = subprocess.run(["make", "-n", "V=1", "B=none", "CC=clang", "OPT=-O0", "objects"], capture_output=True,
                          text=True, env=environment)
    assert said.returncode == 0, said.stderr
    out = {}
    for words in (shlex.split(line) for line in said.stdout.splitlines() if line.startswith("clang ")):
        at = words.index("-c") + 1
        if words[at].startswith("none/") or words[at].endswith(".S"): # generated: warnings are off
            continue
        left_out = "-MMD", "-MP", "-Werror"
        out[words[at]] = [w.replace("none/", BUILD + "/") for w in words[1:at - 1] if w not in left_out]
    return out


def look(job):
    """The warnings about one file."""
    path, arguments = job
    unit = cindex.Index.create().parse(path, args=arguments)
    return path, [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Warning]


def main():
    os.chdir(ROOT)
    found = commands()
    with multiprocessing.Pool(2) as pool:
        seen = pool.map(look, sorted(found.items()), chunksize=8)
    wrong = [line for _, lines in seen for line in lines]
    wrong += [f"{f}: it is not compiled\n" for f in list_files() if PRODUCT.match(f) and f.endswith(".c")
              and f not in found]
    good = not wrong
    print(f"{'ok' if good else 'not ok'} 1 - clang has no warning about {len(seen)} files")
    print("".join(f"  # {line}\n" for line in wrong[:40]), end="")
    # It must find what is wrong.
    with tempfile.NamedTemporaryFile("w", suffix=".c", encoding="utf-8") as f:
        f.write("int twice(long n);\nint twice(long n)\n{\n    int unused;\n    return n * 2;\n}\n")
        f.flush()
        lines = look((f.name, found["daemon/daemon.c"]))[1]
    good = any("Wconversion" in x or "precision" in x for x in lines) and any("unused" in x for x in lines)
    print(f"{'ok' if good else 'not ok'} 2 - it names an unused variable and a conversion that loses bits\n1..2")
    print("".join(f"  # {line}\n" for line in lines), end="")
    return 0 if good and not wrong else 1


sys.exit(main())
