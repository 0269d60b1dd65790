"""Circles between files, by calls and by includes, and between directories, by both together. A call is any reference
of one file to a function or an object of another, so tables of functions count. Those that are there already stand in
the file `circles` beside this one, which may only shrink: structure.py --shrink removes what is no longer needed."""
import os
import re
from tree import point

ALLOWED = "tests/lint/circles"


KINDS = ("calls", "includes", "directories")


def module(path):
    """x.c and x.h are one, and x_internal.h is a part of x; x_part.c is another."""
    return re.sub(r"(_internal)?\.[ch]$", "", path)


def all_edges(tree, symbols):
    """{kind: {(a, b): why}}: a calls or includes b."""
    edges, headers = {kind: {} for kind in KINDS}, tree.headers()

    def add(kind, user, target, why):
        if module(user) != module(target):
            edges[kind].setdefault((module(user), module(target)), why)
        if os.path.dirname(user) != os.path.dirname(target):
            edges["directories"].setdefault((os.path.dirname(user), os.path.dirname(target)), why)
    for f in tree.product:
        for include in tree.includes(f):
            beside = os.path.join(os.path.dirname(f), include)
            target = beside if beside in headers else headers.get(include)
            if target:
                add("includes", f, target, f"{f} includes {include}")
    for user, target, name in sorted(symbols.edges()):
        add("calls", user, target, f"{user} uses {name} of {target}")
    return edges


def components(edges):
    """The strongly connected components of two or more nodes: Tarjan's algorithm without recursion."""
    after = {}
    for a, b in sorted(edges):
        after.setdefault(a, []).append(b)
        after.setdefault(b, [])
    index, low, stack, on, found = {}, {}, [], set(), []
    for start in sorted(after):
        if start in index:
            continue
        work = [(start, iter(after[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            node, rest = work[-1]
            for n in rest:
                if n not in index:
                    index[n] = low[n] = len(index)
                    stack.append(n)
                    on.add(n)
                    work.append((n, iter(after[n])))
                    break
                if n in on:
                    low[node] = min(low[node], index[n])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(frozenset(stack[at:]))
                    on.difference_update(stack[at:])
                    del stack[at:]
    return sorted(found, key=lambda c: (-len(c), sorted(c)))


def read_allowed():
    """{kind: [set of names]} of the file of allowances: a line `circle of KIND`, then one name a line."""
    allowed = {kind: [] for kind in KINDS}
    if os.path.exists(ALLOWED):
        with open(ALLOWED, encoding="utf-8") as f:
            for line in f:
                line = line.split("#")[0].strip()
                if line.startswith("circle of "):
                    allowed[line.split()[2]].append(set())
                    into = allowed[line.split()[2]][-1]
                elif line:
                    into.add(line)
    return allowed


def write_allowed(kinds):
    with open(ALLOWED, "w", encoding="utf-8") as f:
        f.write("# Circles that are still there. May only shrink: structure.py --shrink removes what is gone.\n")
        for kind, circles in kinds.items():
            for circle in circles:
                f.write(f"\ncircle of {kind}\n" + "".join(f"    {name}\n" for name in sorted(circle)))


def compare(kind, found, allowed, edges):
    """What the circles have beyond the allowance, or the allowance beyond the circles."""
    bad = []
    for circle in found:
        home = max(allowed, key=lambda a: len(a & circle), default=set())
        extra = sorted(circle - home)
        if extra:
            bad.append(f"circle of {len(circle)}, of which {len(home & circle)} are allowed; new: {' '.join(extra)}")
            for (a, b), why in sorted(edges.items()):
                if a in circle and b in circle and (a in extra or b in extra):
                    bad.append(f"    {why}")
    if not bad and sorted(map(sorted, allowed)) != sorted(map(sorted, found)):
        gone = sorted(set().union(*allowed) - set().union(*found))
        bad.append("the allowance is larger than needed, run tests/lint/structure.py --shrink" +
                   (f": no longer in a circle of {kind}: {' '.join(gone)}" if gone else ""))
    return bad


def check_circles(tree, symbols, shrink=False):
    edges, allowed, kept = all_edges(tree, symbols), read_allowed(), {}
    for kind in KINDS:
        found = components(edges[kind])
        kept[kind] = [c for c in found if any(c <= home for home in allowed[kind])]
        if not shrink:
            bad = compare(kind, found, allowed[kind], edges[kind])
            if kind != "includes":  # which are read from the sources
                bad = symbols.judged(bad)
            known = found if kind == "includes" or not symbols.missing else []
            but = f" but {len(known)}, the largest of {len(known[0])}" if known else ""
            point(not bad, f"{kind}: no circles{but}", bad)
    if shrink:
        write_allowed(kept)
