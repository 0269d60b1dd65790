#!/usr/bin/env python3
"""Structure and style of the tree. Prints TAP.

structure.py [--build DIR] [--root DIR]     the objects of --build (build/plain) say who calls whom"""
import argparse
import os
import re
import subprocess
import sys
sys.dont_write_bytecode = True
from callers import check_callers  # noqa: E402
from circles import check_circles  # noqa: E402
from duplicates import check_duplicates  # noqa: E402
from house import check_house  # noqa: E402
from manuals import check_manuals  # noqa: E402
from once import check_once  # noqa: E402
from shape import check_arguments, check_braces, check_format, check_sizes, check_width  # noqa: E402
from size import check_budgets  # noqa: E402
from symbols import Symbols  # noqa: E402
from tree import Tree, point, points  # noqa: E402

TOP = {"Makefile", "README.md", "LICENSE", "daemon", "client", "proto", "schema", "tests", "systemd"}
SYSTEM = ("sys/", "linux/", "netinet/", "arpa/", "asm/", "bits/", "net/")
LIBC = set("""assert ctype errno fcntl float getopt grp inttypes limits link locale math poll search pwd sched semaphore
signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib string strings syslog time threads unistd
wchar endian byteswap dirent fnmatch glob malloc netdb dlfcn setjmp""".split())


def rules_of(folder):
    """Allowed prefixes, forbidden headers, and exceptions by file-name prefix."""
    allowed, forbidden, special = [], [], []
    for line in open(f"{folder}/.may_include", encoding="utf-8"):
        line = line.split("#")[0].strip()
        if not line:
            continue
        if ":" in line:
            name, what = line.split(":", 1)
            special += [(name.strip(), w) for w in what.split()]
        else:
            for word in line.split():
                (forbidden if word.startswith("!") else allowed).append(word.lstrip("!"))
    return allowed, forbidden, special


def matches(include, rule):
    """A rule is a prefix; one of a library ends with > behind it."""
    return include.startswith(rule[:-1] if rule.startswith("<") else rule)


def is_system(include):
    return include.startswith("<") and (include[1:].startswith(SYSTEM) or include[1:-3] in LIBC)


def check_includes(tree):
    bad, cache = [], {}
    for f in tree.product:
        folder = os.path.dirname(f)
        if not os.path.exists(f"{folder}/.may_include"):
            bad.append(f"{folder}: no .may_include")
            continue
        allowed, forbidden, special = cache.setdefault(folder, rules_of(folder))
        base = os.path.basename(f)
        mine = allowed + [w for name, w in special if base.startswith(name)]
        for include in tree.includes(f):
            if include in forbidden and base not in ("buffer.c", "arena.c", "buffer_number.c"):
                bad.append(f"{f}: {include} is forbidden in this directory")
            elif not is_system(include) and not any(matches(include, rule) for rule in mine):
                bad.append(f"{f}: may not include {include}")
    point(not bad, "includes follow .may_include", bad)


def check_calls(tree):
    banned = re.compile(r"\b(strcpy|strcat|sprintf|gets|alloca|strtok|atoi|atol|system|popen|tmpnam|mktemp)\s*\(")
    bad = [f"{f}:{n}: {m.group(1)}" for f in tree.product for n, line in enumerate(tree.code(f).splitlines(), 1)
           for m in [banned.search(line)] if m]
    point(not bad, "no unbounded or locale-bound calls", bad)
    bad = [f for f in tree.product if re.search(r"(^|/)(utils?|common|misc|helpers?)\.[ch]$", f)]
    point(not bad, "no utils.c, no common.h", bad)
    bad = [f for f in tree.product if f.endswith(".h") and "#ifndef PROFD_" not in tree.text(f)
           and os.path.basename(f) != "profd.h"]
    point(not bad, "headers have include guards", bad)


def check_tests(tree):
    """Tests mirror the tree; a file that the Makefile would not find is worse than none."""
    places = {os.path.basename(os.path.dirname(f)) for f in tree.product} | {"client"}
    bad = []
    for f in tree.all:
        match = re.match(r"tests/(unit|property|contract|golden)/(.*)$", f)
        if match and f.endswith((".c", ".h")):
            folder = os.path.dirname(match.group(2))
            if folder not in places:
                bad.append(f"{f}: belongs into tests/{match.group(1)}/DIRECTORY/, named as a directory of the product")
    point(not bad, "tests mirror the tree: tests/unit/DIRECTORY/SUBJECT.c", bad)
    bad = [f"{f}: begins without a comment" for f in tree.all
           if re.match(r"tests/(unit|property|contract|golden|fuzz)/.*\.c$", f) and not tree.text(f).startswith("/*")]
    bad += [f"{f}: begins without a docstring" for f in tree.all
            if re.match(r"tests/.*\.py$", f) and not re.match(r'(#!.*\n)?(# .*\n)*r?"""', tree.text(f))]
    point(not bad, "each test says at its head what it protects", bad)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--build", default=os.environ.get("PROFD_BUILD", "build/plain"))
    arguments.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    given = arguments.parse_args()
    os.chdir(given.root)
    tree = Tree()
    symbols = Symbols(tree, given.build)
    extra = {f.split("/")[0] for f in tree.all} - TOP
    extra = {e for e in extra if not e.startswith(".")}
    point(not extra, "the top level is closed", sorted(extra))
    point(not symbols.missing, "every source of the product has an object (make all tests makes them)", symbols.missing)
    check_includes(tree)
    check_circles(tree, symbols)
    check_callers(tree, symbols)
    check_duplicates(tree)
    check_width(tree)
    check_arguments(tree)
    check_sizes(tree)
    check_budgets(tree)
    check_braces(tree)
    check_format(tree)
    check_calls(tree)
    check_tests(tree)
    check_house(tree)
    check_once(tree)
    check_manuals(tree)
    print(f"1..{len(points)}")
    return 0 if all(points) else 1


if __name__ == "__main__":
    sys.exit(main())
