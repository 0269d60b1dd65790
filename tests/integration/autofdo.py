#!/usr/bin/python3
"""profctl export -f autofdo: known ticks at known instructions arrive at their lines, as llvm-symbolizer has them, in
what llvm-profdata reads; clang compiles with the profile and weighs branches by it."""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
from harness import Daemon, Gmon, Tap, bounds, run, symbols  # noqa: E402

SOURCE = """#include <stdlib.h>
static volatile unsigned sink;
__attribute__((noinline)) void rare(unsigned n)
{
    sink ^= n;
}
__attribute__((noinline)) void often(unsigned n)
{
    sink += n;
}
static inline __attribute__((always_inline)) unsigned mix(unsigned k)
{
    k ^= k << 13;
    return k ^ k >> 17;
}
__attribute__((noinline)) unsigned work(unsigned n)
{
    unsigned k = 1;
    for (unsigned i = 0; i < n; i++) {
        k = mix(k + i);
        if (k % 64 == 0)
            rare(k);
        else
            often(n / (k | 1)); /* slow, so that ticks find the line */
    }
    return k;
}
int main(int argc, char **argv)
{
    return argc > 1 ? (int)work((unsigned)atoi(argv[1])) & 1 : 0;
}
"""
RARE, OFTEN, FIRST = 22, 24, 16  # lines


def build(folder):
    source, exe = os.path.join(folder, "w.c"), os.path.join(folder, "w")
    with open(source, "w") as f:
        f.write(SOURCE)
    done = run("clang", "-O1", "-g", "-fdebug-info-for-profiling", "-pg", "-fno-optimize-sibling-calls", "-o", exe,
               source)
    assert done.returncode == 0, done.stderr
    return source, exe


def base(discriminator):
    """The discriminator of the source: the first component of clang's encoding, of 5 bits where it is short."""
    assert discriminator & 0x40 == 0, discriminator
    return 0 if discriminator & 1 else discriminator >> 1 & 0x1f


def instructions(exe, function):
    at, size = symbols(exe)[function]
    text = run("objdump", "-d", f"--start-address={at}", f"--stop-address={at + size}", exe).stdout
    return [int(m, 16) for m in re.findall(r"^ +([0-9a-f]+):\t", text, re.M)]


def places(exe, addresses):
    """address → ((function, offset, discriminator) of each frame, outermost first), by llvm-symbolizer."""
    out = {}
    done = run("llvm-symbolizer", "--output-style=JSON", "--functions=linkage", "-e", exe, *(hex(a) for a in addresses))
    for said in json.loads(done.stdout):
        frames = said["Symbol"]
        if all(f["Line"] and f["StartLine"] for f in frames):
            out[int(said["Address"], 16)] = tuple((f["FunctionName"], f["Line"] - f["StartLine"],
                                                   base(f["Discriminator"])) for f in reversed(frames))
    return out


def parse(text):
    """(rows: path of frames → count, targets: path → callees, heads: function → head) of a profile in text format."""
    rows, targets, heads, path = {}, {}, {}, []
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" "))
        words = line.split()
        del path[depth:]
        if depth == 0:
            name, _, head = line.split(":")
            path, heads[name] = [(name,)], int(head)
            continue
        offset, _, discriminator = words[0].rstrip(":").partition(".")
        at = (int(offset), int(discriminator or 0))
        if words[1].isdigit():
            key = (*path[:-1], (path[-1][0], *at))
            rows[key] = int(words[1])
            targets[key] = {n: int(c) for n, c in (w.split(":") for w in words[2:])}
        else:
            path[-1] = (path[-1][0], *at)
            path.append((words[1].split(":")[0],))
    return rows, targets, heads


def known(tap, d, source, exe):
    low, high = bounds(exe)
    g, want = Gmon(low, high, bins=high - low), {}
    found = places(exe, instructions(exe, "work"))
    for i, (address, path) in enumerate(found.items()):
        line = path[0][1] + FIRST
        ticks = 7 if line == RARE else 900 + i if line == OFTEN else 100 + i
        g.tick(address, ticks)
        want[path] = max(want.get(path, 0), ticks)
    path = g.write(os.path.join(d.folder, "known.out"))
    done = d.ctl("upload", "-e", exe, path)
    assert done.returncode == 0, done.stderr
    text, afdo, back = (os.path.join(d.folder, n) for n in ("p.txt", "p.afdo", "back.txt"))
    done = d.ctl("export", exe, "-f", "autofdo", "-o", text)
    tap.point(done.returncode == 0 and done.stdout == done.stderr == "", "an export", done)
    few = Gmon(low, high, bins=high - low).tick(next(iter(found)), 20).write(os.path.join(d.folder, "few.out"))
    done = d.ctl("upload", "-e", exe, "-l", "few=1", few)
    assert done.returncode == 0, done.stderr
    done = d.ctl("export", exe, "-f", "autofdo", "-l", "few=1", "-o", "-")
    tap.point(done.returncode == 0 and ":20:" in done.stdout and "of 20 ticks may make the program slower; run it until"
              " there are 1000" in done.stderr, "of few ticks, with a warning", done)
    with open(text) as f:
        rows, _, heads = parse(f.read())
    tap.point(want and {k: v for k, v in rows.items() if v} == want
              and any(len(k) == 2 and k[1][0] == "mix" for k in want),
              f"{len(want)} lines, inlined ones too, have the ticks of their hottest instruction", f"{rows}\n{want}")
    tap.point(heads == {"work": rows[(("work", 1, 0),)]}, "the head is that of the first line", heads)
    done = run("llvm-profdata", "merge", "--sample", "-o", afdo, text)
    again = run("llvm-profdata", "merge", "--sample", "--text", "-o", back, afdo)
    with open(back) as f:
        tap.point(done.returncode == again.returncode == 0 and done.stderr == "" and parse(f.read())[0] == rows,
                  "llvm-profdata merge --sample reads the same", f"{done}\n{again}")
    shown = run("llvm-profdata", "show", "--sample", "--function=work", afdo).stdout
    tap.point("Function: work" in shown and "inlined callee: mix" in shown, "and shows it", shown)
    used(tap, source, afdo, rows)
    return path


def used(tap, source, afdo, rows):
    done = run("clang", "-O2", "-g", "-Wall", "-Werror", f"-fprofile-sample-use={afdo}", "-S", "-emit-llvm", "-o", "-",
               source)
    body = re.search(r"^define [^\n]*@work\(.*?^}", done.stdout, re.M | re.S)
    numbers = set(re.findall(r"br i1 .*!prof !(\d+)", body.group(0))) if body else set()
    weights = [tuple(int(n) for n in m.groups()[1:]) for m in
               re.finditer(r"^!(\d+) = !\{!\"branch_weights\", i32 (\d+), i32 (\d+)\}", done.stdout, re.M)
               if m.group(1) in numbers]
    tap.point(done.returncode == 0 and done.stderr == "", "clang -fprofile-sample-use has no objection", done.stderr)
    ratio = max(v for k, v in rows.items() if len(k) == 1 and k[0][1] == OFTEN - FIRST) / 7
    tap.point(any(max(w) / max(1, min(w)) > ratio / 3 for w in weights),
              f"its branch to the rare side has the weights of the ticks, {ratio:.0f} to 1", f"{weights}\n{done.stdout}"
              [:3000])


def counted(tap, d, exe):
    """A real run: the calls of the two call sites are exact. A line without a tick is not listed, nor what it calls:
    the program runs until a tick finds the line of a call."""
    for _ in range(30):
        assert d.ctl("run", "--rate", "250", "-l", "real=1", "--", exe, "60000000").returncode in (0, 1)
        done = d.ctl("export", exe, "-f", "autofdo", "-l", "real=1", "-o", "-")
        rows, targets, _ = parse(done.stdout)
        if any("often" in t for t in targets.values()):
            break
    ticks = d.json("report", exe, "-l", "real=1", "--json")["totals"]["ticks"]
    tap.point(done.returncode == 0 and 0 < sum(rows.values()) <= ticks * 4, "of a run of the collector", done)
    calls = {name for t in targets.values() for name in t}
    tap.point("often" in calls and calls <= {"often", "rare", "work"}, "with callees where calls were counted", targets)


def refused(tap, d, source, exe):
    low, high = bounds(exe)
    g = Gmon(low, high).tick(symbols(exe)["work"][0] + 8, 5)
    done = d.ctl("upload", "-e", exe, "-l", "bins=4", g.write(os.path.join(d.folder, "wide.out")))
    assert done.returncode == 0, done.stderr
    out = os.path.join(d.folder, "none")
    cases = [(["-l", "bins=4"], 65, "needs ticks of single instructions"),
             (["-l", "real=1", "-e", "/bin/true"], 66, "/bin/true is not a readable file of build"),
             (["-f", "docx"], 64, "gmon|autofdo")]
    for options, status, sentence in cases:
        done = d.ctl("export", exe, "-f", "autofdo", *options, "-o", out)
        tap.point(done.returncode == status and done.stderr.count("\n") == 1 and not os.path.exists(out)
                  and all(w in done.stderr for w in sentence.split("|")), f"refused: {sentence}", done)
    bare = os.path.join(d.folder, "bare")
    assert run("strip", "-g", "-o", bare, exe).returncode == 0
    done = d.ctl("export", exe, "-f", "autofdo", "-l", "real=1", "-e", bare, "-o", out)
    tap.point(done.returncode == 66 and "has no debug information; compile with -g" in done.stderr,
              "refused: no debug information", done)


with Tap() as tap, Daemon() as d:
    source, exe = build(d.folder)
    known(tap, d, source, exe)
    counted(tap, d, exe)
    refused(tap, d, source, exe)
