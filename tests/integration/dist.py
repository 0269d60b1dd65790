#!/usr/bin/python3
"""make dist: the tarball holds what git tracks, and builds without git. make finds all sources there, lint sees the
same files, and make dist there gives the same bytes."""
import os
import re
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
from harness import ROOT, Tap, run  # noqa: E402

LIST = "import sys; sys.path.insert(0, 'tests/lint'); sys.dont_write_bytecode = True; import tree; " \
       "print('\\n'.join(tree.list_files()))"


def make(folder, *words):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return run("make", "-s", "-C", folder, *words, env=dict(env, GIT_DIR="/nonexistent") if folder != ROOT else env)


with Tap() as tap, tempfile.TemporaryDirectory(prefix="profd-dist-") as folder:
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as f:
        name = f"profd-{re.search('^VERSION := (.*)', f.read(), re.M)[1]}"
    first = os.path.join(folder, "first.tar.gz")
    done = make(ROOT, "dist", f"DIST={first}")
    tap.point(done.returncode == 0, "make dist", done.stderr)
    with tarfile.open(first) as tar:
        names = [m.name for m in tar.getmembers()]
        tap.point(all(m.isfile() and m.name.startswith(name + "/") and m.uid == 0 and m.mode in (0o644, 0o755)
                      for m in tar.getmembers()), f"its files are below {name}, of root, with plain modes", names[:5])
        tar.extractall(folder)
    tree = os.path.join(folder, name)
    if os.path.exists(os.path.join(ROOT, ".git")):
        tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True).stdout
        tap.point(sorted(n[len(name) + 1:] for n in names) == sorted(tracked.splitlines()), "they are what git tracks")
    done = run("/usr/bin/python3", "-c", LIST, cwd=tree)
    tap.point(done.stdout.splitlines() == sorted(n[len(name) + 1:] for n in names), "lint reads the same files there",
              done)
    second = os.path.join(folder, "second.tar.gz")
    done = make(tree, "dist", f"DIST={second}")
    with open(first, "rb") as a, open(second, "rb") as b:
        tap.point(done.returncode == 0 and a.read() == b.read(), "make dist there makes the same bytes", done.stderr)
    plans = [[line for line in make(where, "-n", "B=none", "V=1", "all").stdout.splitlines() if " -c " in line]
             for where in (ROOT, tree)]
    tap.point(plans[0] and plans[0] == plans[1], "make all there compiles the same files in the same way",
              (len(plans[0]), len(plans[1])))
