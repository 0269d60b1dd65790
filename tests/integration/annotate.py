#!/usr/bin/python3
"""profctl annotate: calls at each call site against known numbers, ticks of a made-up gmon.out at known lines, inlined
calls, and sources that are elsewhere, changed or missing."""
import csv
import io
import json
import math
import os
import shutil
import sys

sys.dont_write_bytecode = True
from harness import Daemon, Gmon, Tap, bounds, run, symbols, until  # noqa: E402

SOURCE = """#include <stdio.h>
static volatile int n;
static inline __attribute__((always_inline)) int inner(int k)
{
    for (int i = 0; i < k; i++)
        n += i;
    return n;
}
static inline __attribute__((always_inline)) int middle(int k) { return inner(k) + 1; }
__attribute__((noinline)) void leaf(void) { n++; }
__attribute__((noinline)) void other(void) { n--; }
__attribute__((noinline)) int outer(int k)
{
    leaf();
    for (int i = 0; i < 3; i++)
        leaf();
    if (k % 2 == 0)
        other();
    int r = middle(k);
    n += r;
    return r * 2;
}
int main(void)
{
    for (int i = 0; i < 400; i++)
        outer(i < 200 ? i : 2000000);
    return 0;
}
"""
LEAF, LOOP, OTHER, INNER = 14, 16, 18, 6  # lines


def build(d, name, compiler, *options, counts=True):
    folder = os.path.join(d.folder, name)
    os.mkdir(folder)
    source, exe = os.path.join(folder, "t.c"), os.path.join(folder, name)
    with open(source, "w") as f:
        f.write(SOURCE)
    done = run(compiler, "-g", *(["-pg"] if counts else []), *options, "-o", exe, source)
    assert done.returncode == 0, done.stderr
    return exe, source


def answer(d, *arguments):
    done = d.ctl("annotate", *arguments, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else {"rows": [], "error": done.stderr}


def own(said):
    """Lines of the function itself, by number."""
    return {r["line"]: r for r in said["rows"] if r["inlined"] == "" and r["file"].endswith("t.c")}


def counted(tap, d):
    exe, _ = build(d, "counted", "gcc", "-O1")
    assert d.ctl("run", "--rate", "250", "--", exe).returncode == 0
    until(lambda: answer(d, exe, "outer").get("ticks", 0) > 0)
    said = answer(d, exe, "outer")
    lines = own(said)
    calls = {n: r["calls"] for n, r in lines.items() if r["calls"]}
    tap.point(calls == {LEAF: 400, LOOP: 1200, OTHER: 300}, "the exact number of calls at each call site", calls)
    report = d.json("report", exe, "--json")
    self = next(f["ticks"] for f in report["functions"] if f["name"] == "outer")
    tap.point(sum(r["ticks"] for r in said["rows"]) == said["ticks"] == self and said["shared_ticks"] == 0,
              "the ticks of the lines are those of the function", (said["ticks"], self))
    # A tick stands at the instruction that is next: after the sum, at the loop's end.
    inlined = [r for r in said["rows"] if r["line"] in (INNER - 1, INNER)]
    tap.point(inlined and all(r["inlined"] == "inner, inlined at t.c:9 (middle), at t.c:19 (outer)" for r in inlined)
              and sum(r["ticks"] for r in inlined) > 0.3 * said["ticks"], "what was inlined, with the chain of calls",
              said["rows"])
    tap.point(all(r["low"] <= r["ticks"] <= r["high"] for r in said["rows"])
              and not any(r["estimated"] for r in said["rows"]), "with intervals; exact addresses need no estimate",
              said["rows"])
    tap.point(lines[LEAF]["source"].strip() == "leaf();", "with the source text", lines[LEAF])
    text = d.ctl("annotate", exe, "outer").stdout
    tap.point("leaf();" in text and "n += i;" in text and "400 calls by others\n" in text and " 1200 " in text,
              "as text", text)
    steps = answer(d, exe, "outer", "--asm")["rows"]
    tap.point(sum(r["calls"] for r in steps) == 1900 and all("call" in r["instruction"] for r in steps if r["calls"])
              and sum(r["ticks"] for r in steps) == self, "by instruction", steps)
    shown = {(r["low"], r["high"]) for r in said["rows"] if r["ticks"] > 0}
    tap.point(all(f"{math.floor(low)} to {math.ceil(high)} " in text for low, high in shown),
              "intervals are not rounded to narrower ones", (shown, text))
    table = list(csv.DictReader(io.StringIO(d.ctl("annotate", exe, "outer", "--asm", "-f", "csv").stdout)))
    tap.point([r["address"] for r in table] == [r["address"] for r in steps]
              and [float(r["ticks"]) for r in table] == [r["ticks"] for r in steps], "as CSV", table[:2])
    text = d.ctl("annotate", exe, "outer", "--asm").stdout
    tap.point("push" in text and "/t.c:14" in text, "as text, with the lines between", text)
    refused(tap, d, exe)
    stored(tap, d, exe, steps)


def foreign(tap, d):
    """A program of AArch64, which qemu has run."""
    exe, _ = build(d, "foreign", "aarch64-linux-gnu-gcc", "-O1")
    assert run("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", exe, cwd=d.folder).returncode == 0
    assert d.ctl("upload", "-e", exe, os.path.join(d.folder, "gmon.out")).returncode == 0
    assert d.ctl("symbols", "--code", exe).returncode == 0
    report = d.json("report", exe, "--json")
    ticks = next(f["ticks"] for f in report["functions"] if f["name"] == "outer")
    lines, steps = (answer(d, exe, "outer", *more)["rows"] for more in ((), ("--asm",)))
    path = f"/api/v1/builds/{report['build_id']}/functions/outer/addresses"
    rows = json.loads(d.get(path)[2])["instructions"]
    tap.point(0 < ticks == sum(r["ticks"] for r in lines) == sum(r["ticks"] for r in steps)
              and "inner, inlined at t.c:9 (middle), at t.c:19 (outer)" in {r["inlined"] for r in lines if r["ticks"]},
              "AArch64: the ticks of a function by line and by instruction", (ticks, lines, steps))
    calls = [[(r["address"], "bl") for r in them if r[text].startswith("bl ")] for them, text in
             ((steps, "instruction"), (rows, "text"))]
    tap.point([r["address"] for r in rows] == [r["address"] for r in steps] and calls[0] == calls[1] != [],
              "the daemon has the instructions of objdump", (steps, rows))
    done = d.ctl("annotate", exe, "outer", env=dict(d.env, PATH=d.folder))
    tap.point(done.returncode != 0 and "the package binutils-aarch64-linux-gnu has it" in done.stderr,
              "no objdump for it", done.stderr)


def stored(tap, d, exe, steps):
    """The instructions that the daemon has, for readers without the executable."""
    path = f"/api/v1/builds/{d.json('report', exe, '--json')['build_id']}/functions/outer/addresses"
    _, head, before = d.get(path)
    assert d.ctl("symbols", "--code", exe).returncode == 0
    _, changed, body = d.get(path, If_None_Match=head["etag"])
    rows = json.loads(body)["instructions"]
    tap.point(json.loads(before)["instructions"] == [] and changed["etag"] != head["etag"]
              and [r["address"] for r in rows] == [r["address"] for r in steps], "stored by symbols --code: those of "
              "objdump, and another ETag", (rows[:3], steps[:3]))
    ends = [(int(r["address"], 16) + r["bytes"]) for r in rows[:-1]]
    named = [(r["text"].split()[0], r["target_name"]) for r in rows if r.get("target_name") in ("leaf", "other")]
    tap.point(ends == [int(r["address"], 16) for r in rows[1:]] and ("callq", "leaf") in named
              and all(r["text"].endswith(r["target"]) for r in rows if "target" in r),
              "they have no gaps; branches name their targets", rows)
    stripped = exe + ".stripped"
    assert run("strip", "-o", stripped, exe).returncode == 0
    assert d.ctl("symbols", exe).returncode == 0 and d.ctl("symbols", stripped).returncode == 0
    after = json.loads(d.get(path)[2])
    tap.point(after["instructions"] == rows and after["lines"] == json.loads(before)["lines"],
              "neither the file without --code nor a stripped copy takes instructions or lines away",
              (len(after["instructions"]), len(after["lines"])))


def refused(tap, d, exe):
    both = d.ctl("annotate", exe, "outer", "--asm", "--source")
    tap.point(both.returncode == 64 and both.stderr.count("\n") == 1, "--asm and --source", both.stderr)
    wrong = d.ctl("annotate", exe, "outer", "--exe", "/bin/true")
    tap.point(wrong.returncode != 0 and "not a readable file of build" in wrong.stderr, "another executable",
              wrong.stderr)
    bare = d.ctl("annotate", exe, "outer", env=dict(d.env, PATH=d.folder))
    tap.point(bare.returncode != 0 and "objdump is not in PATH" in bare.stderr, "no objdump", bare.stderr)
    moved = exe + ".moved"
    os.rename(exe, moved)
    name = os.path.basename(exe)
    gone = d.ctl("annotate", name, "outer")
    tap.point(gone.returncode != 0 and "--exe names another path" in gone.stderr, "the executable is gone",
              gone.stderr)
    tap.point(own(answer(d, name, "outer", "--exe", moved))[LEAF]["calls"] == 400, "--exe says where it is")
    os.rename(moved, exe)


def made_up(tap, d):
    """A gmon.out whose ticks are at known addresses: 4 bytes a bin, callers rounded to 16."""
    exe, _ = build(d, "gmon", "gcc", "-O0")
    at, size = symbols(exe)["outer"]
    g = Gmon(*bounds(exe), bins=(bounds(exe)[1] - bounds(exe)[0]) // 4)
    truth, first = {}, at + (-at) % 16
    for i, address in enumerate(range(first + 16, at + size - 16, 8)):
        g.tick(address, 10 + i)
        truth[address - address % 4] = 10 + i
    g.arc(symbols(exe)["main"][0] + 16, at, 7)
    g.arc(first + 16, symbols(exe)["leaf"][0], 21)
    path = g.write(os.path.join(d.folder, "made.out"))
    assert d.ctl("upload", "-e", exe, path).returncode == 0
    said, text = answer(d, exe, "outer"), d.ctl("annotate", exe, "outer").stdout
    tap.point(abs(sum(r["ticks"] for r in said["rows"]) - sum(truth.values())) < 1e-6 and said["ticks"] ==
              sum(truth.values()), "no tick of a gmon.out is lost", (said["ticks"], sum(truth.values())))
    tap.point(not said["call_sites"] and said["calls_without_site"] == 21 and not any(r["calls"] for r in said["rows"])
              and "at least 7 calls by others" in text
              and "rounds the addresses of callers: 21 calls from here have no line" in text,
              "callers of a gmon.out are rounded, and have no line", text)
    table = line_table(exe)
    expected, shared = {}, set()
    code = sorted(a for a in table if at <= a < at + size)
    for low, ticks in truth.items():
        lines = {table[a] for a in code if low <= a < low + 4} | {table[max(a for a in code if a <= low)]}
        if len(lines) > 1:
            shared |= lines
        for line in lines:
            expected.setdefault(line, [0, 0])
            expected[line][0] += ticks if len(lines) == 1 else 0
            expected[line][1] += ticks
    got = {}
    for r in said["rows"]:
        got.setdefault(r["line"], []).append(r)
    tap.point(shared and {n for n, rs in got.items() if any(r["estimated"] for r in rs)} == shared
              and "~" in text, "lines that share a bin are marked", (shared, text))
    tap.point(all(sum(r["low"] for r in got[n]) <= least + 1e-9 and sum(r["high"] for r in got[n]) >= most - 1e-9
                  and least - 1e-9 <= sum(r["ticks"] for r in got[n]) <= most + 1e-9
                  for n, (least, most) in expected.items()),
              "their ticks lie between what is surely theirs and what may be", (expected, said["rows"]))
    steps = answer(d, exe, "outer", "--asm")["rows"]
    tap.point(any(r["bin_instructions"] > 1 for r in steps)
              and "a bin of the histogram holds several instructions" in
              d.ctl("annotate", exe, "outer", "--asm").stdout, "no false precision by instruction", steps)


def sampled(tap, d):
    """A program that counts nothing: of its calls is known how often ticks found the callee below its caller."""
    exe, _ = build(d, "sampled", "gcc", "-O1", "-fno-omit-frame-pointer", counts=False)
    until(lambda: d.ctl("run", "--rate", "500", "--", exe).returncode == 0
          and answer(d, exe, "outer").get("function", {}).get("calls", 0) > 0)
    said, text = answer(d, exe, "outer"), d.ctl("annotate", exe, "outer").stdout
    calls = said["function"]["calls"]
    tap.point(not said["calls_exact"] and "sampled" in said["inexact_reasons"]
              and f" ticks, ~{calls} calls by others\n~: sampled" in text and "called" not in text,
              "calls of a program that counts none are marked as sampled", text)
    line = next(r for r in answer(d, exe, "main")["rows"] if r["calls"] > 0)
    tap.point(f" ~{line['calls']} " in d.ctl("annotate", exe, "main").stdout, "and those of a call site", line)
    row = json.loads(d.ctl("callers", exe, "outer", "--json").stdout)["rows"][0]
    text = d.ctl("callers", exe, "outer").stdout
    tap.point(row["calls"] == calls and row["calls_per_caller_call"] is None and f" ~{calls} " in text
              and f", ~{calls} calls by others\n~: sampled" in text, "callers marks them, and divides them by nothing",
              (row, text))


def two_rates(tap, d):
    """Uploads of one program that were sampled at two rates."""
    exe, _ = build(d, "rates", "gcc", "-O0")
    at = symbols(exe)["outer"][0] + 16
    for rate, ticks in ((100, 3), (250, 5)):
        path = Gmon(*bounds(exe), rate=rate).tick(at, ticks).write(os.path.join(d.folder, f"rate{rate}.out"))
        assert d.ctl("upload", "-e", exe, path).returncode == 0
    build_id = d.json("report", exe, "--json")["build_id"]
    path = f"/api/v1/builds/{build_id}/functions/{symbols(exe)['outer'][0]:#x}/addresses"
    text = d.ctl("annotate", exe, "outer").stdout
    tap.point(": 8 of 8 ticks, no call by others was counted\n" in text, "without calls, none is claimed", text)
    rows = json.loads(d.get(path)[2])["rows"]
    tap.point([r["ticks"] for r in rows] == [8] and abs(rows[0]["seconds"] - 0.05) < 1e-9,
              "two rates: an address has one row, with the ticks and seconds of both", rows)


def line_table(exe):
    """Address → line of each instruction, as addr2line has it."""
    words = [line.split(":")[0].strip() for line in
             run("objdump", "-d", "--no-show-raw-insn", exe).stdout.splitlines() if ":\t" in line]
    lines = run("addr2line", "-e", exe, *words).stdout.splitlines()
    return {int(a, 16): int("".join(c for c in line.split(" ")[0].rpartition(":")[2] if c.isdigit()) or 0)
            for a, line in zip(words, lines)}


JUMPS = """static volatile int n;
__attribute__((noinline)) void last(void) { n++; }
__attribute__((noinline)) void first(void) { n--; last(); }
__attribute__((noinline)) int both(void (*f)(void)) {
    first();
    f();
    return n;
}
int main(void) { int k = 0; for (int i = 0; i < 500; i++) k += both(i % 2 ? first : last); return k == 123456789; }
"""


def jumps(tap, d):
    """A callee that ends in a jump: the function behind the jump returns to the same call site, which made one call."""
    source, exe = os.path.join(d.folder, "jumps.c"), os.path.join(d.folder, "jumps")
    with open(source, "w") as f:
        f.write(JUMPS)
    for compiler in ("gcc", "clang"):
        done = run(compiler, "-pg", "-O2", "-g", "-o", exe, source)
        assert done.returncode == 0, done.stderr
        assert d.ctl("run", "--", exe).returncode == 0
        until(lambda: answer(d, exe, "both").get("rows"))
        said = answer(d, exe, "both")
        lines = {r["line"]: r["calls"] for r in said["rows"]}
        jumped = "jmp" in run("objdump", "-d", "--disassemble=first", exe).stdout
        tap.point(lines[5] == 500 and said["calls_without_site"] == (500 if jumped else 0),
                  f"{compiler}: a call is counted once, also if the callee jumps on", said)
        text = d.ctl("annotate", exe, "both").stdout
        tap.point(jumped == ("500 calls have no call instruction here: a jump at the end of a function counts as a "
                             "call by its caller." in text), "and the text tells of the jumps", text)


def relative(tap, d):
    """Compilers record the path that they were given, which is relative to their directory; profctl runs elsewhere."""
    for name, compiler, version in (("gcc5", "gcc", 5), ("gcc4", "gcc", 4), ("clang5", "clang", 5),
                                    ("clang4", "clang", 4)):
        folder = os.path.join(d.folder, name)
        os.makedirs(os.path.join(folder, "src"))
        os.mkdir(os.path.join(folder, "obj"))
        with open(os.path.join(folder, "src", "t.c"), "w") as f:
            f.write(SOURCE)
        done = run(compiler, f"-gdwarf-{version}", "-O1", "-o", "exe", "../src/t.c", cwd=os.path.join(folder, "obj"))
        assert done.returncode == 0, done.stderr
        exe = os.path.join(folder, "obj", "exe")
        assert d.ctl("run", "--rate", "250", "--", exe).returncode == 0
        until(lambda: answer(d, exe, "outer")["rows"])
        said = answer(d, exe, "outer")
        tap.point((own(said)[LEAF]["source"] or "").strip() == "leaf();" and not said["notes"]
                  and all(r["file"].startswith("/") for r in said["rows"]),
                  f"{compiler}, DWARF {version}: a relative path is below the compilation directory", said)


def sources(tap, d):
    exe, source = build(d, "elsewhere", "gcc", "-O1")
    assert d.ctl("run", "--", exe).returncode == 0
    until(lambda: answer(d, exe, "outer")["rows"])
    elsewhere = os.path.join(d.folder, "src")
    os.mkdir(elsewhere)
    shutil.move(source, os.path.join(elsewhere, "t.c"))
    said = answer(d, exe, "outer")
    tap.point(own(said)[LEAF]["source"] is None and any("--source-path" in n for n in said["notes"])
              and own(said)[LEAF]["calls"] == 400, "without the source there are numbers", said["notes"])
    said = answer(d, exe, "outer", "--source-path", d.folder + "/none", "--source-path", elsewhere)
    tap.point(own(said)[LEAF]["source"].strip() == "leaf();" and not said["notes"], "--source-path", said["notes"])
    os.utime(os.path.join(elsewhere, "t.c"), (2e9, 2e9))
    said = answer(d, exe, "outer", "--source-path", elsewhere)
    tap.point(own(said)[LEAF]["source"] and all("is newer than the executable" in n for n in said["notes"])
              and said["notes"], "without MD5, a newer source is shown with a note", said["notes"])
    exe, source = build(d, "checked", "clang", "-O1", "-gdwarf-5")
    assert d.ctl("run", "--", exe).returncode == 0
    until(lambda: answer(d, exe, "outer")["rows"])
    os.utime(source, (2e9, 2e9))
    said = answer(d, exe, "outer")
    tap.point(own(said)[LEAF]["source"].strip() == "leaf();" and not said["notes"],
              "with the MD5 of DWARF 5, a newer source of the same content", said["notes"])
    with open(source, "a") as f:
        f.write("/* changed */\n")
    said, text = answer(d, exe, "outer"), d.ctl("annotate", exe, "outer").stdout
    tap.point(all(r["source"] is None for r in said["rows"]) and "leaf();" not in text
              and "differs from the file that was compiled: its MD5 is not that of the line table" in text,
              "a source that differs is refused, in words", text)


with Tap() as tap, Daemon() as d:
    counted(tap, d)
    foreign(tap, d)
    made_up(tap, d)
    two_rates(tap, d)
    sampled(tap, d)
    jumps(tap, d)
    relative(tap, d)
    sources(tap, d)
