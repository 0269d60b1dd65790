"""Places of the product that share six lines or more: the same code, whatever its white space and comments."""
import re
from tree import point, strip

LEAST = 6


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


def check_duplicates(tree):
    bad = [f"{f}:{i} and {g}:{k} share {lines} lines" for lines, f, i, g, k in duplicates(tree)]
    point(not bad, f"no two places of the product share {LEAST} lines or more", bad)
