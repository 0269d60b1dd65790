#!/usr/bin/env python3
"""Static functions that are called once: pieces of one thought, unless they name a concept of their own.

once.py [DIRECTORY…]     lists them, with their lengths; without an argument, the share of each directory"""
import collections
import os
import re
import sys
sys.dont_write_bytecode = True
from tree import Tree, point  # noqa: E402

ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s")
HEAD = re.compile(r"^(?!typedef)([A-Za-z_][\w \*\n]*?[ \*\n])(\w+)\(([^;{}]*?)\)\s*\n\{\n", re.M)
MOST = 0.2  # of all functions


def functions(tree, path):
    """(name, line, lines, called once) of each function that a source defines; of static ones the last may be true."""
    code = ATTRIBUTE.sub(lambda m: "\n" * m.group(0).count("\n"), tree.code(path))
    # One mention is the definition, one is a call. A name without parentheses behind it is an address.
    mentions, calls = (collections.Counter(re.findall(mark, code)) for mark in (r"\w+", r"(\w+)\s*\("))
    for m in HEAD.finditer(code):
        end = code.find("\n}", m.end())
        static = "static" in m.group(1).split()
        yield (m.group(2), code.count("\n", 0, m.start()) + 1, code.count("\n", m.end(), end) + 1,
               static and mentions[m.group(2)] == 2 and calls[m.group(2)] == 2)


def shares(tree):
    """{directory: (functions, of these static and called once)} of the product."""
    found = {}
    for f in tree.product:
        if f.endswith(".c"):
            once = [one for *_, one in functions(tree, f)]
            both = found.setdefault(os.path.dirname(f), [0, 0])
            both[0] += len(once)
            both[1] += sum(once)
    return found


def check_once(tree):
    found = shares(tree)
    every, once = (sum(both[i] for both in found.values()) for i in (0, 1))
    point(once <= MOST * every, f"at most {MOST:.1%} of functions are static and called once",
          [f"{once} of {every} functions: {once / every:.1%}"])


if __name__ == "__main__":
    sources = Tree()
    if len(sys.argv) > 1:
        for f in sources.product:
            if f.endswith(".c") and any(f.startswith(d.rstrip("/") + "/") or f == d for d in sys.argv[1:]):
                for name, line, size, one in functions(sources, f):
                    if one:
                        print(f"{f}:{line}: {name}, {size} lines")
    else:
        every, once = 0, 0
        for folder, (n, m) in sorted(shares(sources).items()):
            print(f"{folder:24}{m:6} of {n:5}  {m / max(n, 1):6.1%}")
            every, once = every + n, once + m
        print(f"{'all':24}{once:6} of {every:5}  {once / every:6.1%}")
