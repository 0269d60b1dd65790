#!/usr/bin/python3
"""Random executables, gmon.out files and options: `profctl gprof` against the installed gprof: standard output,
messages, exit status and gmon.sum, byte for byte.

test_gprof_random.py [CASES [FIRST_SEED [PROFCTL]]]

Each seed is one executable with up to four files and random options. Prints TAP, one line for 50 seeds. Without a
program the one in $PROFD_BUILD is taken, and some more seeds go through the one with sanitizers where that is built.
Left out: what gprof answers from memory it does not own (a last symbol without anything behind it; a call to a label in
front of all functions; -c outside .text; the unit of endless calls), the usage text, and the lines of explanation
without -b, which are our own."""
import os
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gprof_elf import AARCH64, Executable  # noqa: E402
from gprof_gmon import Geometry, damage, make_bsd, make_gmon  # noqa: E402

FLAT = re.compile(rb"\n %         the percentage of the total.*?notice and this notice are preserved\.\n", re.S)
GRAPH = re.compile(rb"\n This table describes the call tree.*?notice and this notice are preserved\.\n", re.S)
OLD_FLAT = re.compile(rb"\n\n\nflat profile:\n\n %         the percentage.*?notice and this notice are preserved\.\n",
                      re.S)
OLD_GRAPH = re.compile(rb"\n\n\ncall graph profile:\n.*?notice and this notice are preserved\.\n", re.S)
OURS_FLAT = re.compile(rb"(?:\n\n\nflat profile:\n)?\nHow to read the flat.*?\(End of the flat profile's "
                       rb"explanation\.\)\n", re.S)
OURS_GRAPH = re.compile(rb"(?:\n\n\ncall graph profile:\n)?\nHow to read the call.*?\(End of the call graph's "
                        rb"explanation\.\)\n", re.S)


def make_side(r, exe):
    """A symspec without arc."""
    names = [s[0] for s in exe.symbols]
    kind = r.random()
    if kind < 0.6:
        return r.choice(names)
    if kind < 0.7:
        return ":" + r.choice(names)
    files = [os.path.basename(f) for f in exe.file_names()]
    if kind < 0.78:
        return r.choice(files)
    if kind < 0.86:
        return r.choice(files) + ":" + r.choice(names + [str(r.randrange(40))])
    if kind < 0.92:
        return str(r.randrange(30))
    return r.choice(["", ":", "nobody", "none.c", "none.c:main", "9x", "a:b:c", "main.c:"])


def make_spec(r, exe, arc):
    if arc:
        return make_side(r, exe) + "/" + make_side(r, exe)
    return make_side(r, exe) if r.random() < 0.97 else make_side(r, exe) + "/" + make_side(r, exe)


LONG = {"p": "--flat-profile", "P": "--no-flat-profile", "q": "--graph", "Q": "--no-graph", "C": "--exec-counts",
        "Z": "--no-exec-counts",
        "n": "--time", "N": "--no-time"}


def make_style(r, exe):
    letter = r.choice("pPqQCZpqC")
    spec = make_spec(r, exe, letter in "qQ" and r.random() < 0.4) if r.random() < 0.45 else None
    if r.random() < 0.8:
        return ["-" + letter + (spec or "")]
    return [LONG[letter] + ("" if spec is None else "=" + spec)]


def make_option(r, exe):
    kind = r.random()
    if kind < 0.4:
        return make_style(r, exe)
    if kind < 0.55:
        letter = r.choice("kkeEfFnN")
        spec = make_spec(r, exe, letter == "k" and r.random() < 0.95)
        return r.choice([["-" + letter + spec] if spec else ["-" + letter, spec], ["-" + letter, spec]])
    if kind < 0.62:
        return ["-w", str(r.choice([1, 0, -5, 40, 61, 132, 250]))]
    options = ["-z", "-z", "-T", "-a", "-D", "-B", "-L", "-i", "--inline-file-names", "--no-demangle", "--demangle",
               "--demangle=auto",
               "--demangle=gnu-v3", "--demangle=none", "--demangle=rust", "--display-unused", "--no-static", "--tradit"]
    if exe.scannable and exe.has_end:
        options += ["-c", "-c", "--static-call-graph"]
    if exe.has_end:
        options += ["-s", "-l"]
    return [r.choice(options)]


def make_options(r, exe):
    options = ["-b"] if r.random() < 0.85 else []
    if r.random() < 0.01:
        return (options + [r.choice(["-g", "-G", "--nonsense", "--d", "--no-", "-w", "--demangle=klingon", "--time",
                                     "--line=3"])])
    for _ in range(r.choice([0, 1, 1, 2, 3, 5])):
        options += make_option(r, exe)
    return options


def make_files(r, exe, folder):
    geometry = Geometry(r, exe)
    hot = r.sample(exe.addresses(), min(len(exe.addresses()), r.choice([2, 5, 20, 300])))
    bsd = r.choice([1, 2]) if r.random() < 0.04 else 0
    names, damaged = [], False
    for i in range(r.choice([1, 1, 1, 2, 4])):
        names.append("g%d" % i)
        if r.random() < 0.03 and not bsd:
            geometry.rate = (geometry.rate + 1) % 2 ** 32
        data = make_bsd(r, exe, geometry, hot, bsd == 1) if bsd else make_gmon(r, exe, geometry, hot)
        if r.random() < 0.04:
            data, damaged = damage(r, data), True
        with open(os.path.join(folder, names[-1]), "wb") as f:
            f.write(data)
    return names, damaged


def run(command, folder, program, given):
    """Exit status, output, messages with the program's name normalised and without the usage text, gmon.sum."""
    total = os.path.join(folder, "gmon.sum")
    if os.path.exists(total):
        os.unlink(total)
    stdin = open(os.path.join(folder, given), "rb") if given else subprocess.DEVNULL
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=stdin, cwd=folder,
                       env=dict(os.environ, LC_ALL="C"))
    if given:
        stdin.close()
    messages = p.stderr.replace(program.encode() + b":", b"gprof:")
    messages = re.sub(rb"(?ms)^[Uu]sage: .*", b"USAGE", messages)
    out = FLAT.sub(b"FLAT", GRAPH.sub(b"GRAPH", OLD_FLAT.sub(b"FLAT", OLD_GRAPH.sub(b"GRAPH", p.stdout))))
    out = OURS_FLAT.sub(b"FLAT", OURS_GRAPH.sub(b"GRAPH", out))
    summed = b""
    if os.path.exists(total):
        with open(total, "rb") as f:
            summed = f.read()
        summed = summed[:8] + summed[20:]  # gprof leaves the spare bytes to chance
    return p.returncode, out, messages, summed


def first_difference(a, b):
    a, b = a.split(b"\n"), b.split(b"\n")
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return "line %d: gprof %r, we %r" % (at + 1, a[at:at + 1], b[at:at + 1])


def option_kinds(options):
    """The options of a command line as the table names them: "-p", "-p S" with a symspec, "-w N", long ones by their
    whole name."""
    kinds, words = set(), list(options)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word[:2] == "--":
            letter = next((k for k, v in LONG.items() if v == name), None)
            kinds.add(name if letter is None and name != "--demangle" else word if letter is None
                      else name + ("=S" if equals else ""))
            continue
        kind, rest = word[:2], word[2:]
        if kind[1:] in "kewEfFnN" and not rest and words:
            rest = words.pop(0)
        if kind[1:] == "w":
            kind += " N"
        elif kind[1:] in "keEfFnNpPqQCZ" and rest:
            kind += " S/S" if "/" in rest else " S"
        kinds.add(kind)
    return kinds


def one_case(program, seed, folder):
    """Returns None, or what went wrong; the second value tells what kind of case it was, the third which options."""
    r = random.Random(seed)
    exe = Executable(r)
    exe.write(os.path.join(folder, "exe"))
    names, damaged = make_files(r, exe, folder)
    options = make_options(r, exe)
    used = option_kinds(options)
    given = names[0] if r.random() < 0.05 else None
    arguments = options + ["exe"] + (["-"] + names[1:] if given else names)
    gprof = "aarch64-linux-gnu-gprof" if exe.machine == AARCH64 else "gprof"
    # It takes 4 bytes for every bin that a broken header claims: up to 16 GiB.
    theirs = run((["prlimit", "--as=1000000000"] if damaged else []) + [gprof] + arguments, folder, gprof, given)
    ours = run([program, "gprof"] + arguments, folder, "profctl gprof", given)
    shown = " ".join(repr(a) if a == "" else a for a in arguments)
    if b"out of memory" in theirs[2]:
        return None, "too large for gprof", used
    if theirs[0] < 0:
        return "gprof died of signal %d: %s" % (-theirs[0], shown), "died", used
    # a call takes too long for any unit: what follows in memory
    if re.search(rb"   calls  (?![TGMKmunpfa ]./call)", theirs[1]):
        return None, "undefined", used
    kind = "refused" if theirs[0] else "printed" if theirs[1] else "empty"
    if ours[0] == 65 and b"do not support basic-block records" in ours[2]:
        return None, "blocks", used
    for i, what in enumerate(("exit status", "output", "messages", "gmon.sum")):
        if theirs[i] != ours[i]:
            why = "%r, %r" % (theirs[i], ours[i]) if i != 1 else first_difference(theirs[1], ours[1])
            return "%s: %s: %s%s" % (shown, what, why[:600], " | we: %r" % ours[2][:300] if i == 0 else ""), kind, used
    return None, kind, used


def tally_add(tally, used, kind, same):
    """Cases that gprof itself could answer."""
    for name in used if kind in ("printed", "refused", "empty") else ():
        cases, identical = tally.get(name, (0, 0))
        tally[name] = cases + 1, identical + same


def run_blocks(program, label, first, cases, number, folder, tally):
    """Returns the number of the last TAP line and whether all cases were right."""
    right = True
    for start in range(first, first + cases, 50):
        kinds, bad = {}, []
        block = range(start, min(start + 50, first + cases))
        for seed in block:
            problem, kind, used = one_case(program, seed, folder)
            tally_add(tally, used, kind, problem is None)
            kinds[kind] = kinds.get(kind, 0) + 1
            if problem:
                bad.append((seed, problem))
        number += 1
        what = ", ".join("%d %s" % (kinds[k], k) for k in sorted(kinds))
        print("%s %d - %s, seeds %d to %d: %s" % ("not ok" if bad else "ok", number, label, block[0], block[-1], what))
        for seed, problem in bad:
            print("# seed %d: %s" % (seed, problem))
        sys.stdout.flush()
        right = right and not bad
    return number, right


def main():
    build = os.environ.get("PROFD_BUILD", "build/plain")
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1982
    program = os.path.abspath(sys.argv[3] if len(sys.argv) > 3 else build + "/profctl")
    checked = os.path.abspath(build + "-asan/profctl")
    tally = {}
    with tempfile.TemporaryDirectory() as folder:
        number, right = run_blocks(program, "random executables", first, cases, 0, folder, tally)
        if len(sys.argv) <= 3 and os.path.exists(checked):
            number, right_too = run_blocks(checked, "with sanitizers", first + cases, 50, number, folder, tally)
            right = right and right_too
    for name in sorted(tally, key=str.lower) if len(sys.argv) > 3 else ():
        print("# option %s: %d cases, %d identical" % (name, *tally[name]))
    print("1..%d" % number)
    sys.exit(0 if right else 1)


main()
