#!/usr/bin/python3
"""Every call count of deterministic programs beside valgrind's callgrind on the same binary: C, C++, a shared library,
and clang's."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import Bed, Tap, ROOT, run  # noqa: E402
from calls import Functions, callgrind, compare, counted  # noqa: E402


def main():
    with Tap() as tap, Bed() as bed:
        built = run("bash", os.path.join(ROOT, "tests/programs/build.sh"), os.path.join(bed.folder, "programs"),
                    timeout=240)
        if not tap.point(built.returncode == 0, "tests/programs are built", built.stderr[-800:]):
            return
        for name, arguments, library in (("cycle", ["3"], False), ("calc", ["-s", "2", "-n", "400"], False),
                                         ("shapes", ["300"], False), ("sorter", ["3000", "2"], False),
                                         ("mandel", ["20", "60"], False), ("uselib", ["1"], True)):
            exe = os.path.join(bed.folder, "programs", name)
            seen = bed.run(exe, *arguments)
            objects = {m["name"]: Functions(m["name"]) for m in seen[0]["modules"].values()
                       if m["name"].startswith(bed.folder)}
            theirs, _ = callgrind([exe, *arguments], objects, bed.folder, cwd=bed.folder, env=bed.env(PROFD_REWRITE=0))
            n, calls, off = compare(counted(seen, objects), theirs, objects)
            tap.point(bed.returncode == 0 and n > 3 and calls > 10 and not off and len(objects) == 1 + bool(library)
                      and seen[0]["exact"],
                      f"{name}: {n} functions, {calls} calls as callgrind has them",
                      (bed.returncode, off, list(objects)))


main()
