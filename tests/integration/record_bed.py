# not a test
"""What the tests of profctl record share: what it says of its samples, and what is stored of a program."""
import re

ACCOUNT = re.compile(r"(\d+) samples: (\d+) in functions, (\d+) in the kernel, (\d+) outside, (\d+) lost, (\d+) of "
                     r"processes under the collector; (\d+) whole stacks; uploads: (\d+)")
NAMES = ("samples", "functions", "kernel", "outside", "lost", "elsewhere", "whole", "uploads")


def account(text):
    found = ACCOUNT.search(text)
    return dict(zip(NAMES, map(int, found.groups()))) if found else {}


def adds_up(a):
    return bool(a) and a["samples"] == sum(a[n] for n in ("functions", "kernel", "outside", "lost", "elsewhere"))


def stored(d, program):
    """The report of a program and the row of its build; None if there is none."""
    rows = [r for r in d.json("builds", "--json")["rows"] if r["name"] == program]
    return (d.json("report", rows[0]["build_id"], "--json"), rows[0]) if rows else (None, None)
