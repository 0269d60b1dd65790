#!/usr/bin/python3
# not a test
"""Programs of Debian source packages, built by packages.sh: `profctl gprof` beside the installed gprof, byte for byte.

packages.py FOLDER [package…]        with PROFD_BUILD naming the build folder of profctl and profd

Every program is run on several inputs; every option set is compared on one file, on all files, and on all in the other
order: standard output, exit status, messages (program name aside), and files written. Then the same files go to a real
profd, whose `report -f gprof` must be gprof's text and whose true-mode report must follow the schema and add up. Prints
TAP and a table."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../integration"))
from harness import PROFCTL, Daemon, Tap  # noqa: E402
import gprof_strtab  # noqa: E402
import package_runs  # noqa: E402

# {f} {g} {h}: functions that were called much; {r}: a caller, {e}: one it calls; {c}: a source file; {l}: a line of it.
OPTIONS = """-b | | -b -z | -b -p | -b -P | -b -q | -b -Q | -b -B | -b -P -Q | -b -p -P | -b -q -Q | -b -p -q -C
-b -C | -b -Z | -b -C -z | -b -C -L | -b -C -a | -b -C{f} | -b -Z{f} | -b -i | -b -i -p | -b -s | -b -s -q | -b -s -z -C
-b -T | -b -T -z | -b -T -p | -b -T -C | -b -T -c -z | -T | -b -a | -b -a -z | -b -D | -b -D -z | -b -a -D -z | -b -c
-b -c -z
-b -c -a | -b -c -k {r}/{e} | -b -k {r}/{e} | -b -k /{e} | -b -k {r}/ | -b -w 132 | -b -w 1 -z | -b -w 0 | -b -w 40 -T
-b -p{f} | -b -P{f} | -b -p{f} -p{g} -P{h} | -b -q{r} | -b -Q{f} | -b -q{f} -Q{g} | -b -q{r}/{e} | -b -Q{r}/{e}
-b -q{r}/ | -b -Q/{e}
-b -e {f} | -b -E {f} | -b -f {r} | -b -F {r} | -b -n {f} | -b -N {f} | -b -e {f} -E {g} -f {r} | -b -F {r} -z -c
-b -n {f} -n {g} -N {h}
-b -e{f} -p -T | -b -L | -b --inline-file-names | -b -L --inline-file-names -z | -b -T --inline-file-names
-b --no-demangle
-b --no-demangle -z | -b --demangle | -b --demangle=auto | -b --demangle=gnu-v3 | -b --demangle=rust
-b --demangle=none -C
-b --demangle=nonsense | -b -p{c} | -b -P{c} -q | -b -q{c} | -b -C{c} | -b -p{c}:{f} | -b -p{c}:{l} | -b -p{l}
-b -E {c} -k {c}:{r}/{e}
-b -p:{f} | -b -pno_such_function | -b -qno_such_function | -b --flat-profile={f} --no-graph | -b --no-flat --graph={r}
-b --brief --width=100 --static-call-graph --display-unused-functions | -b --sum | -b --file-info --exec-counts
-b -l | -b -l -p -q -C -z | -b -l -T -z | -b -l -L -p{f} | -b -l -P{f} -z | -b -l -p{c}:{l} | -b -l -q{f}
-b -l -q{c} | -b -l -C{c}:{f}
-b -l -p{l} -C{l} | -b -l -Q{c} | -b -l -a -z | -b -l -D -z | -b -l -k {r}/{e} | -b -l -E {f} -z | -b -l -F {c}
-b -l -n {c}:{l} | -b -l -i -w 132
-b -s -p -q -z --inline-file-names | -b -s -C -p{c} | -b -s -T -q | --line -q -z --no-demangle | -b -A | -b -x
-b -t 5 -A | -b -m 2 -A | -b -y -A | -b -I / -A | -b -r | -b -R /dev/null | -b -S /dev/null | -b -O bsd | -g"""
OPTION_SETS = [o.split() for o in re.split(r"[|\n]", OPTIONS)]
REFUSED = re.compile(rb"option (\S+) of gprof is not supported")
ENVIRONMENT = dict(os.environ, LC_ALL="C")
GPROF, OURS = ["gprof"], [PROFCTL, "gprof"]


class Answer:
    """What one program printed, and the file it wrote."""

    def __init__(self, program, arguments, place, given=None, links=()):
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        for name, path in links:
            os.symlink(path, os.path.join(place, name))
        began = time.monotonic()
        done = subprocess.run(program + arguments, cwd=place, env=ENVIRONMENT,
                              input=given if given is not None else b"",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        self.seconds = time.monotonic() - began
        self.status, self.out = done.returncode, done.stdout
        self.err = re.sub(rb"(?m)^(\S*gprof|\S*profctl gprof|\S*profctl): ", b"", done.stderr)
        if b"nvalid option" in self.err: # what follows is the usage: GNU's there, our own here
            self.err = self.err.split(b"\n")[0]
        self.wrote = {}
        for name in sorted(n for n in os.listdir(place) if not os.path.islink(os.path.join(place, n))):
            with open(os.path.join(place, name), "rb") as f:
                data = f.read()
            # gprof leaves what its stack held in the 12 spare bytes of a header.
            self.wrote[name] = data[:8] + data[20:] if data[:4] == b"gmon" else data


def first_difference(theirs, ours):
    a, b = theirs.split(b"\n"), ours.split(b"\n")
    for n, (x, y) in enumerate(zip(a, b), 1):
        if x != y:
            return f"line {n}\ngprof {x.decode('latin-1')!r}\nours  {y.decode('latin-1')!r}"
    return f"gprof printed {len(a)} lines, we {len(b)}"


def without_prose(answer, brief):
    """The listing's lines of an answer given without -b: those of the same program's brief one, which must all be
    there. The explanations are FSF text, ours are our own; blank lines around them and the words "(explanation
    follows)" go with them."""
    listing, n = [line.strip() for line in brief.split(b"\n") if line.strip()], 0
    for line in answer.split(b"\n"):
        if n < len(listing) and re.sub(rb"\s*\(explanation follows\)", b"", line).strip() == listing[n]:
            n += 1
    return b"\n".join(listing if n == len(listing) else listing[:n]
                      + [b"(without -b this line is missing: " + listing[n] + b")"])


def disagreement(theirs, ours):
    """"" or the first thing in which two answers differ."""
    if theirs.status != ours.status:
        return f"gprof exits with {theirs.status} {theirs.err!r}, we with {ours.status} {ours.err!r}"
    if theirs.out != ours.out:
        return first_difference(theirs.out, ours.out)
    if theirs.err != ours.err:
        return f"gprof says {theirs.err!r}, we {ours.err!r}"
    for name in {**theirs.wrote, **ours.wrote}:
        a, b = theirs.wrote.get(name), ours.wrote.get(name)
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a or b"", b or b"")) if x != y),
                      min(len(a or b""), len(b or b"")))
            return f"{name}: gprof wrote {a and len(a)} bytes, we {b and len(b)}; the first that differs is {at}"
    return ""


def names_of(exe, files):
    """Functions to fill the option sets with, by their raw names, from gprof's own graph; a source file and a line of
    the table."""
    text = subprocess.run(["gprof", "-b", "-q", "--no-demangle", exe, *files], stdout=subprocess.PIPE,
                          env=ENVIRONMENT).stdout.decode("latin-1")
    primary, pairs, called = None, [], []
    for line in text.split("\n"):
        line = re.sub(r" <cycle \d+>", "", line)
        words = line.split()
        if line.startswith("[") and "as a whole>" not in line:
            primary = words[-2] if len(words) > 5 else None
            called += [primary] if primary else []
        elif line.startswith("-----"):
            primary = None
        elif primary and re.match(r"\s+\d+\.\d\d\s+\d+\.\d\d\s+\d+/\d+\s+(\S+) \[\d+\]$", line):
            pairs.append((primary, words[3]))
    dotted = lambda name: ":" + name if "." in name else name  # noqa: E731
    counts = subprocess.run(["gprof", "-b", "-C", exe, *files], stdout=subprocess.PIPE,
                            env=ENVIRONMENT).stdout.decode("latin-1")
    lines = [m for m in re.findall(r"(?m)^(.+):(\d+): \((\S+):0x", counts) if m[0] != "<unknown>"]
    of = {n: (os.path.basename(c), l) for c, l, n in lines}
    caller, callee = pairs[len(pairs) // 3] if pairs else (called[0], called[-1])
    f = next((n for n in called[1:] if n in of), called[min(2, len(called) - 1)])
    source, line = of.get(f, ("none.c", "10"))
    middle = called[len(called) // 2]
    return ({k: dotted(v) for k, v in (("f", f), ("g", called[-1]), ("h", middle), ("r", caller), ("e", callee))}
            | {"c": source, "l": line})


class Package:
    def __init__(self, tap, name, folder):
        self.tap, self.name, self.folder = tap, name, folder
        self.exe = os.path.join(folder, "exe")
        self.sets = self.right = self.skipped = 0
        self.theirs = self.ours = 0.0
        self.refused = set()
        self.read_past = gprof_strtab.read_past(self.exe)

    def ask(self, arguments, given=None):
        """Both answers, timed."""
        theirs = Answer(GPROF, arguments, os.path.join(self.folder, "theirs"), given)
        ours = Answer(OURS, arguments, os.path.join(self.folder, "ours"), given)
        refused = REFUSED.search(ours.err)
        if refused:
            self.refused.add(refused.group(1).decode())
            return theirs, None
        self.theirs, self.ours = self.theirs + theirs.seconds, self.ours + ours.seconds
        return theirs, ours

    def compare(self, options, files):
        """None: refused by us; "": the same; else the difference."""
        theirs, ours = self.ask(options + [self.exe] + files)
        if ours is None:
            return None
        if "-b" not in options:
            for answer, program in ((theirs, GPROF), (ours, OURS)):
                brief = Answer(program, ["-b"] + options + [self.exe] + files, os.path.join(self.folder, "brief")).out
                answer.out = without_prose(answer.out, brief)
        return disagreement(theirs, ours)

    def compare_sets(self, files):
        names = names_of(self.exe, files)
        choices = [files[:1], files, files[::-1]]
        for template in OPTION_SETS:
            options = [re.sub(r"\{(\w)\}", lambda m: names[m.group(1)], word) for word in template]
            label = f"{self.name}: gprof {' '.join(options)}"
            problems = []
            for chosen in choices:
                why = self.compare(options, chosen)
                if why is None:
                    break
                problems += [f"{len(chosen)} files: {why}"] if why else []
            self.sets += 1
            if why is None:
                self.skipped += 1
                self.tap.skip(label, "refused by name today")
            else:
                self.right += self.tap.point(not problems, label, "\n".join(problems))

    def compare_odd_files(self, files):
        """Standard input, what is missing, cut, or not a profile; the sum of sums."""
        with open(files[0], "rb") as f:
            data = f.read()
        cut = package_runs.write(self.folder, "cut", data[:len(data) - 7])
        text = package_runs.write(self.folder, "text", b"not a profile\n" * 50)
        for label, arguments, given in (
                ("the profile on standard input", ["-b", self.exe, "-"], data),
                ("a file and standard input", ["-b", self.exe, files[-1], "-"], data),
                ("a missing profile", ["-b", self.exe, "missing"], None),
                ("the default profile, missing", ["-b", self.exe], None),
                ("a cut profile", ["-b", self.exe, cut], None),
                ("a good profile before a cut one", ["-b", self.exe, files[0], cut], None),
                ("an empty profile", ["-b", self.exe, "/dev/null"], None),
                ("a text as the profile", ["-b", self.exe, text], None),
                ("a text as the program", ["-b", text, files[0]], None),
                ("a missing program", ["-b", "missing", files[0]], None),
                ("nine times the same", ["-b", self.exe] + files[:1] * 9, None)):
            theirs, ours = self.ask(arguments, given)
            self.sets += 1
            why = "refused" if ours is None else disagreement(theirs, ours)
            self.right += self.tap.point(not why, f"{self.name}: {label}", why)
        # Called as gprof, with the default names and a response file.
        links = [("a.out", self.exe), ("gmon.out", files[0]),
                 ("words", package_runs.write(self.folder, "words", "-b\n-z '-p'\n")), ("gprof", PROFCTL)]
        theirs = Answer(GPROF, ["@words"], os.path.join(self.folder, "theirs"), links=links)
        ours = Answer(["./gprof"], ["@words"], os.path.join(self.folder, "ours"), links=links)
        why = disagreement(theirs, ours) or ("" if theirs.status == 0 and theirs.out else "gprof printed nothing")
        self.sets += 1
        self.right += self.tap.point(not why, f"{self.name}: called as gprof, with default files and a file of "
                                              f"options", why)

    def compare_overrun(self, files):
        """The same with other neighbours of each name in the string table: gprof then lists all names that it reads
        past, or none."""
        listings = []
        for neighbour in (b"", b"$") if self.read_past else ():
            exe = gprof_strtab.give_neighbour(self.exe, os.path.join(self.folder, "exe-neighbours"), neighbour)
            theirs, ours = self.ask(["-b", "-z", exe] + files)
            listings.append(theirs.out)
            why = disagreement(theirs, ours)
            self.sets += 1
            self.right += self.tap.point(not why, f"{self.name}: {neighbour!r} behind each name", why)
        if listings:
            self.tap.point(listings[0] != listings[1], f"{self.name}: gprof reads past {len(self.read_past)} names: "
                                                       f"{' '.join(self.read_past)[:60]}")

    def compare_stored(self, daemon, files):
        """The daemon's answers about the same files."""
        sent = daemon.ctl("upload", "-e", self.exe, "-l", f"service={self.name}", *files)
        if not self.tap.point(sent.returncode == 0, f"{self.name}: uploaded to profd", sent.stderr):
            return
        theirs = subprocess.run(["gprof", "-b", self.exe, *files], stdout=subprocess.PIPE, env=ENVIRONMENT).stdout
        ours = daemon.ctl("report", self.exe, "-f", "gprof", binary=True)
        self.tap.point(ours.stdout == theirs and ours.returncode == 0,
                       f"{self.name}: profctl report -f gprof is gprof's text",
                       first_difference(theirs, ours.stdout) + ours.stderr.decode())
        sum_of_all = os.path.join(self.folder, "all.out")
        exported = daemon.ctl("export", self.exe, "-o", sum_of_all)
        again = subprocess.run(["gprof", "-b", self.exe, sum_of_all], stdout=subprocess.PIPE, env=ENVIRONMENT).stdout
        self.tap.point(exported.returncode == 0 and again == theirs,
                       f"{self.name}: gprof on profctl export is gprof's text",
                       first_difference(theirs, again) + exported.stderr)
        report = daemon.ctl("report", self.exe, "-f", "json")
        path = package_runs.write(self.folder, "report.json", report.stdout)
        check = subprocess.run(["/usr/bin/python3", os.path.join(HERE, "../integration/schema_check.py"), path],
                               stderr=subprocess.PIPE)
        self.tap.point(report.returncode == 0 and check.returncode == 0,
                       f"{self.name}: the true report follows the schema",
                       report.stderr + check.stderr.decode())
        if report.returncode == 0:
            answer = json.loads(report.stdout)
            total, parts = answer["totals"]["seconds"], sum(f["self_seconds"] for f in answer["functions"])
            ticks = sum(self.ticks(f) for f in files)
            self.tap.point(total > 0 and abs(parts - total) <= 1e-9 * total and answer["totals"]["ticks"] == ticks,
                           f"{self.name}: the self times of the true report add up to the files' {ticks} ticks",
                           (parts, answer["totals"]))

    @staticmethod
    def ticks(path):
        """Sum of the bins of a file of glibc's: one histogram, first."""
        with open(path, "rb") as f:
            data = f.read()
        bins = int.from_bytes(data[37:41], "little")
        return sum(int.from_bytes(data[61 + 2 * i:63 + 2 * i], "little") for i in range(bins))

    def row(self):
        ratio = f"{self.theirs / self.ours:9.1f}" if self.ours else "        -"
        return (f"# {self.name:<12} {self.sets:6} {self.right:10} {self.sets - self.right - self.skipped:9} "
                f"{self.skipped:8} {self.theirs:9.2f} {self.ours:9.2f} {ratio}")


def main(work, packages):
    rows = []
    with Tap() as tap, Daemon() as daemon:
        for name in packages:
            folder = os.path.join(os.path.abspath(work), name)
            if not tap.point(os.access(os.path.join(folder, "exe"), os.X_OK), f"{name}: built"):
                continue
            files = package_runs.run_all(name, folder)
            package = Package(tap, name, folder)
            package.compare_sets(files)
            package.compare_odd_files(files)
            package.compare_overrun(files)
            package.compare_stored(daemon, files)
            rows.append(package)
        print(f"# {'package':<12} {'sets':>6} {'identical':>10} {'different':>9} {'skipped':>8} {'gprof s':>9} "
              f"{'ours s':>9} {'times as fast':>9}")
        for package in rows:
            print(package.row())
        refused = sorted(set().union(*(p.refused for p in rows))) if rows else []
        print(f"# options refused by name: {' '.join(refused) or 'none'}")


main(sys.argv[1], sys.argv[2:] or [p for p in package_runs.RUNS])
