#!/usr/bin/env python3
"""Code lines of the product by directory, beside their budgets.

size.py [--root DIR]             prints the table; fails if a directory has more lines than its budget
size.py --commit COMMIT          prints the table of another commit, without budgets
size.py --lower                  lowers each budget to what the directory has, and drops directories that are gone

A code line is a line of a .c or .h file below daemon, client or proto that has more than blanks and comments.
A budget falls freely. It rises only by hand, in a commit that says who asked for it."""
import argparse
import os
import subprocess
import sys
sys.dont_write_bytecode = True
from tree import PRODUCT, Tree, point, strip  # noqa: E402

BUDGETS = "tests/lint/budgets"


def code_lines(text):
    return sum(1 for line in strip(text).splitlines() if line.strip())


def sizes_of(files):
    """Code lines by directory; files yields paths with their texts."""
    sizes = {}
    for path, text in files:
        folder = os.path.dirname(path)
        sizes[folder] = sizes.get(folder, 0) + code_lines(text)
    return sizes


def committed(commit):
    """The product's files as they are in a commit."""
    listed = subprocess.run(["git", "ls-tree", "-r", "--name-only", commit], capture_output=True, text=True, check=True)
    for path in listed.stdout.splitlines():
        if PRODUCT.match(path):
            shown = subprocess.run(["git", "show", f"{commit}:{path}"], capture_output=True, text=True, check=True)
            yield path, shown.stdout


def read_budgets():
    with open(BUDGETS, encoding="utf-8") as f:
        words = [line.split() for line in f if line.strip() and not line.startswith("#")]
    return {folder: int(lines) for folder, lines in words}


def lower(sizes):
    """Rewrites the list with the smaller of budget and size; a directory without a budget gets none."""
    budgets = read_budgets()
    with open(BUDGETS, encoding="utf-8") as f:
        head = [line for line in f if line.startswith("#")]
    with open(BUDGETS, "w", encoding="utf-8") as f:
        f.writelines(head)
        for folder in sorted(budgets):
            if folder in sizes:
                f.write(f"{folder:<20} {min(budgets[folder], sizes[folder]):>7}\n")


def over(sizes, budgets):
    """What breaks the rule, one sentence each."""
    bad = []
    for folder in sorted(sizes):
        if folder not in budgets:
            bad.append(f"{folder}: no budget; add a line to {BUDGETS}")
        elif sizes[folder] > budgets[folder]:
            bad.append(f"{folder}: {sizes[folder]} code lines, at most {budgets[folder]}")
    return bad + [f"{folder}: has a budget but no code; run tests/lint/size.py --lower"
                  for folder in sorted(budgets) if folder not in sizes]


def table(sizes, budgets):
    rows = [(folder, sizes[folder], budgets.get(folder)) for folder in sorted(sizes)]
    rows.append(("total", sum(sizes.values()), sum(budgets.values()) or None))
    yield f"{'directory':<20} {'lines':>8} {'budget':>8}"
    for folder, lines, budget in rows:
        yield f"{folder:<20} {lines:>8,}" + (f" {budget:>8,}" if budget is not None else "")


def check_budgets(tree):
    sizes, budgets = sizes_of((f, tree.text(f)) for f in tree.product), read_budgets()
    for line in table(sizes, budgets):
        print(f"# {line}")
    bad = over(sizes, budgets)
    point(not bad, "code lines of each directory are within its budget", bad)


def main():
    arguments = argparse.ArgumentParser(usage=__doc__)
    arguments.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    arguments.add_argument("--commit")
    arguments.add_argument("--lower", action="store_true")
    given = arguments.parse_args()
    os.chdir(given.root)
    if given.commit:
        print("\n".join(table(sizes_of(committed(given.commit)), {})))
        return 0
    tree = Tree()
    sizes = sizes_of((f, tree.text(f)) for f in tree.product)
    if given.lower:
        lower(sizes)
    budgets = read_budgets()
    print("\n".join(table(sizes, budgets)))
    bad = over(sizes, budgets)
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
