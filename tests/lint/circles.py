"""Circles between files, by calls and by includes, and between directories, by both together. A call is any reference
of one file to a function or an object of another, so tables of functions count."""
import os
import re
from tree import point

KINDS = ("calls", "includes", "directories")


def module(path):
    """x.c, x.h and x_MACHINE.S are one, and x_internal.h is a part of x; x_part.c is another."""
    return re.sub(r"(_internal)?\.[ch]$|_(x86_64|aarch64)\.S$", "", path)


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


def check_circles(tree, symbols):
    edges = all_edges(tree, symbols)
    for kind in KINDS:
        bad = []
        for circle in components(edges[kind]):
            bad.append(f"circle of {len(circle)}: {' '.join(sorted(circle))}")
            bad += [f"    {why}" for (a, b), why in sorted(edges[kind].items()) if a in circle and b in circle]
        if kind != "includes":  # which are read from the sources
            bad = symbols.judged(bad)
        point(not bad, f"{kind}: no circles", bad)
