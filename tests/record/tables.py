#!/usr/bin/python3
"""Unwind tables of Debian's own binaries, row by row beside those that readelf prints."""
import bisect
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import BUILD, Tap, run  # noqa: E402

UNWINDER = os.path.join(BUILD, "tests", "unwinder")
ROWS = 60000  # at most, of a file
X86_64, AARCH64 = ("rbp", "ra"), ("x29", "ra")
FILES = [("libc", "/lib/x86_64-linux-gnu/libc.so.6", X86_64),
         ("libstdc++", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", X86_64),
         ("redis-server", "/usr/bin/redis-server", X86_64),
         ("sqlite3", "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", X86_64),
         ("bash", "/bin/bash", X86_64),
         ("python3", "/usr/bin/python3", X86_64),
         ("libcrypto", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", X86_64),
         ("libc of AArch64", "/usr/aarch64-linux-gnu/lib/libc.so.6", AARCH64)]


def entries_of(path):
    """(begin, end, [(address, {column: rule})]) of each entry, as readelf interprets it."""
    commons, entry, columns, common_at = {}, None, [], None
    out = subprocess.Popen(["readelf", "--debug-dump=frames-interp", path], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True)
    for line in out.stdout:
        words = re.sub(r"r\d+ \(\w+\)", "reg", line).split()
        if len(words) > 3 and words[3] == "CIE":
            entry, common_at, columns = None, words[0], []
        elif len(words) > 3 and words[3] == "FDE":
            if entry:
                yield entry
            begin, end = re.search(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", line).groups()
            entry = (int(begin, 16), int(end, 16), [])
            rule = commons.get(re.search(r"cie=([0-9a-f]+)", line).group(1), {})
            entry[2].append((entry[0], rule))
        elif words and words[0] == "LOC":
            columns = words[1:]
        elif columns and len(words) == len(columns) + 1 and words[1] != "ZERO":
            rule = dict(zip(columns, words[1:]))
            if entry is None:
                commons[common_at] = rule
            elif entry[2][-1][0] == int(words[0], 16):
                entry[2][-1] = (entry[2][-1][0], rule)
            else:
                entry[2].append((int(words[0], 16), rule))
    if entry:
        yield entry
    out.stdout.close()
    out.wait()


def table_of(path):
    done = run(UNWINDER, "rows", path)
    rows = [line.split() for line in done.stdout.splitlines()]
    return [int(r[0], 16) for r in rows], [r[1:] for r in rows]


def agrees(ours, theirs, names):
    """Says whether a row of the table is readelf's. readelf prints u for a register without a rule, too."""
    if ours[0] == "gap":
        return False
    known = theirs["CFA"].startswith(("rsp", "rbp", "sp", "x29"))
    cfa = ours[0] == theirs["CFA"] if known else ours[0] == ("exp" if ours[0] == "exp" else "none")
    if not cfa:
        return False
    for column, mine in ((names[0], ours[1]), (names[1], ours[2])):
        its = theirs.get(column, "u")
        no_rule = its == "u" and (column != "ra" or names == AARCH64)
        if not (mine == its or (mine == "s" and no_rule) or
                (mine == "lost" and (no_rule or its.startswith(("exp", "v", "reg"))))):
            return False
    return True


def compare(tap, name, path, names):
    at, rows = table_of(path)
    seen, wrong, none = 0, [], 0
    for begin, end, theirs in entries_of(path):
        for i, (address, rule) in enumerate(theirs):
            until = theirs[i + 1][0] if i + 1 < len(theirs) else end
            for place in (address, until - 1):
                found = bisect.bisect_right(at, place) - 1
                ours = rows[found] if found >= 0 else ["gap"]
                if not agrees(ours, rule, names):
                    wrong.append(f"{place:x}: {' '.join(ours)}, and readelf: {rule}")
            none += ours[0] == "none"
            seen += 1
        if seen >= ROWS:
            break
    print(f"# {name}: {seen} rows compared, {len(at)} in the table, {none} with a CFA that is not supported")
    tap.point(seen > 1000 and not wrong, f"the table of {name} is readelf's, row by row", "\n".join(wrong[:10]))


with Tap() as tap:
    for name, path, names in FILES:
        if os.path.exists(path):
            compare(tap, name, path, names)
        else:
            tap.skip(f"the table of {name}", f"{path} is not there")
