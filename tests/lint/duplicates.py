"""Places of the product that share six lines or more: the same code, whatever its white space and comments. Those that
are there already stand in the file `twice` beside this one, which may only shrink."""
import os
import re
from tree import point, strip

LEAST = 6
TWICE = "tests/lint/twice"


def lines_of(tree, path):
    """(number, text) of the lines that hold a word and are not of the preprocessor; one blank stands for many."""
    for number, line in enumerate(strip(tree.text(path), strings=False).splitlines(), 1):
        line = re.sub(r"\s+", " ", line).strip(" \\")
        if re.search(r"\w", line) and not line.startswith(("#include", "#if", "#endif", "#undef")):
            yield number, line


def duplicates(tree):
    """[(lines, path, number, path, number)]: maximal runs of equal lines in two places, longest first."""
    files = {f: list(lines_of(tree, f)) for f in tree.product}
    places = {}
    for f, lines in files.items():
        for i in range(len(lines) - LEAST + 1):
            key = "\n".join(text for _, text in lines[i:i + LEAST])
            places.setdefault(key, []).append((f, i))
    found = []
    for at in places.values():
        for n, (f, i) in enumerate(at):
            for g, k in at[n + 1:]:
                a, b = files[f], files[g]
                if i and k and a[i - 1][1] == b[k - 1][1]:
                    continue  # the run began before
                length = LEAST
                while i + length < len(a) and k + length < len(b) and a[i + length][1] == b[k + length][1]:
                    length += 1
                if f != g or i + length <= k:
                    found.append((length, f, a[i][0], g, b[k][0]))
    return sorted(found, reverse=True)


def read_twice():
    """{(path, path): (lines, reason)}: a line `LINES PATH PATH  reason`."""
    known = {}
    if os.path.exists(TWICE):
        with open(TWICE, encoding="utf-8") as f:
            for line in f:
                if line.strip() and not line.startswith("#"):
                    lines, a, b, *reason = line.split()
                    known[a, b] = (int(lines), " ".join(reason))
    return known


def write_twice(known, shared):
    with open(TWICE, encoding="utf-8") as f:
        head = [line for line in f if line.startswith("#")]
    with open(TWICE, "w", encoding="utf-8") as f:
        f.writelines(head)
        for (a, b), (lines, reason) in sorted(known.items()):
            if (a, b) in shared:
                f.write(f"{min(lines, shared[a, b])} {a} {b}  {reason}".rstrip() + "\n")


def check_duplicates(tree, shrink=False):
    """Counts the lines that two files share in runs of six or more; moving code within a file changes nothing."""
    shared, where, known, bad = {}, {}, read_twice(), []
    for lines, f, i, g, k in duplicates(tree):
        pair = tuple(sorted((f, g)))
        shared[pair] = shared.get(pair, 0) + lines
        where.setdefault(pair, []).append(f"{f}:{i} and {g}:{k} share {lines} lines")
    if shrink:
        write_twice(known, shared)
        return
    for pair, lines in sorted(shared.items()):
        if lines > known.get(pair, (0, ""))[0]:
            bad += where[pair]
    for pair, (lines, _) in sorted(known.items()):
        if lines > shared.get(pair, 0):
            bad.append(f"{TWICE}: {pair[0]} and {pair[1]} share {shared.get(pair, 0)} lines, not {lines}: "
                       "run structure.py --shrink")
    point(not bad, f"no two places of the product share {LEAST} lines or more, but {len(known)} known", bad)
