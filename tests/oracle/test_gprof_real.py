#!/usr/bin/python3
"""Real profiles of the programs in tests/programs: `profctl gprof` against the installed gprof, byte for byte.

test_gprof_real.py [PROFCTL]

Builds the programs without and with debug information of DWARF 5 and 4 (with it gprof knows files and lines),
position-independent, not so, and static; runs each several times, and compares single files and sums under many
options. Without PROFCTL each program gets each option in one way of building at least, and each way with two programs
at least; with PROFCTL all get all, as in make oracle. Prints TAP."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = {
    "cycle": [["20"], ["60"], ["5"]],
    "calc": [["-s", "1", "-n", "3000"], ["-s", "7", "-n", "20000"], ["(1+2)*3", "4-5"]],
    "shapes": [["2000"], ["60000"], ["1"]],
    "heat": [["20"], ["100"]],
    "twins": [["100"], ["2000"]],
    "mandel": [["100", "200"], ["200", "500"]],
    "uselib": [["3"], ["20"]],
    "sorter": [["20000", "3"], ["300000", "1"]],
    "threads": [["2", "100"], ["4", "400"]],
}
OPTIONS = [[], ["-z"], ["-P"], ["-Q"], ["-w", "132"], ["-z", "-w", "30"], ["-T"], ["-T", "-z"], ["-C"], ["-C", "-z"],
           ["-a"], ["-D"],
           ["-a", "-D", "-z"], ["-i"], ["-B"], ["-L", "-z"], ["--inline-file-names"],
           ["--inline-file-names", "-L", "-T"],
           ["--no-demangle"], ["--demangle=gnu-v3"], ["-pmain"], ["-Pmain"], ["-qmain"], ["-Qmain"], ["-q/main"],
           ["-kmain/"],
           ["-Zmain", "-z"], ["-emain"], ["-Emain"], ["-fmain"], ["-Fmain"], ["-nmain"], ["-Nmain"],
           ["-p", "-q", "-C"], ["-p:main"],
           ["-Ccalc.c", "-Cshapes.cc", "-Ctwins.c"], ["-qsorter.c"], ["-s"]]
# By line: with debug information only, because gprof asks for every address without, which takes it seconds.
LINE_OPTIONS = [["-l"], ["-l", "-z"], ["-l", "-T", "-p", "-q"], ["-l", "-C", "-pmain"], ["-s", "-z", "-p", "-q", "-C"],
                ["-l", "-qsorter.c", "-L"]]
KINDS = [("plain", ""), ("with -g", "-g"), ("with -gdwarf-4 -O2", "-gdwarf-4 -O2"),
         ("not position-independent", "-no-pie"),
         ("static", "-static")]


class Tap:
    def __init__(self):
        self.number, self.right = 0, True

    def point(self, good, name, why=""):
        self.number += 1
        self.right = self.right and good
        print("%s %d - %s" % ("ok" if good else "not ok", self.number, name))
        if not good:
            print("# " + why.replace("\n", "\n# "))
        sys.stdout.flush()


def output(command, folder):
    total = os.path.join(folder, "gmon.sum")
    if os.path.exists(total):
        os.unlink(total)
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                       env=dict(os.environ, LC_ALL="C"))
    summed = b""
    if os.path.exists(total):
        with open(total, "rb") as f:
            summed = f.read()
    return p.returncode, p.stdout, p.stderr.decode("latin-1").replace("profctl gprof:",
            "gprof:"), summed[:8] + summed[20:]


def difference(theirs, ours):
    if "somebody miscounted" in theirs[2]:  # gprof -s on C++ with -g: it gives up on itself
        return "" if ours[0] == 0 else "gprof miscounted, we exited with %d %r" % (ours[0], ours[2])
    if theirs[0] != ours[0] or theirs[2] != ours[2]:
        return "gprof exited with %d %r, we with %d %r" % (theirs[0], theirs[2], ours[0], ours[2])
    a, b = theirs[1].split(b"\n"), ours[1].split(b"\n")
    for i, (x, y) in enumerate(zip(a, b), 1):
        if x != y:
            return "line %d\ngprof %r\nours  %r" % (i, x, y)
    if a != b:
        return "gprof printed %d lines, we %d" % (len(a), len(b))
    return "" if theirs[3] == ours[3] else "gmon.sum differs: %d and %d bytes" % (len(theirs[3]), len(ours[3]))


def run_program(exe, runs, folder):
    """Runs it and returns its gmon.out files."""
    files = []
    for i, arguments in enumerate(runs):
        place = os.path.join(folder, "%s-%d" % (os.path.basename(exe), i))
        os.makedirs(place)
        subprocess.run([exe] + arguments, cwd=place, stdout=subprocess.DEVNULL, check=True, timeout=120)
        files.append(os.path.join(place, "gmon.out"))
    return files


def compare(tap, program, exe, files, label, folder, turn):
    """Compares what both print under all options, or, with a turn, under those whose turn it is."""
    sets = [[f] for f in files] + [files[::-1] + files]
    lines = LINE_OPTIONS if "-g" in label else []
    wanted = [o for among, every in ((OPTIONS, 3), (lines, 2)) for i, o in enumerate(among)
              if turn is None or o == [] or (i + turn) % every == 0]
    problems = []
    for options in wanted:
        for chosen in sets if options == [] else sets[-1:]:
            arguments = ["-b"] + options + [exe] + chosen
            why = difference(output(["gprof"] + arguments, folder), output([program, "gprof"] + arguments, folder))
            if why:
                problems.append("%s, %d files: %s" % (" ".join(options), len(chosen), why))
    tap.point(not problems, "%s %s: %d sets of options" % (os.path.basename(exe), label, len(wanted)),
              "\n".join(problems))


def build(place, flag):
    tools = {"PROGRAM_CC": "gcc " + flag, "PROGRAM_CXX": "g++ " + flag}
    if shutil.which("gfortran"):
        tools["PROGRAM_FC"] = "gfortran"
    return subprocess.run(["sh", os.path.join(HERE, "../programs/build.sh"), place], env=dict(os.environ, **tools),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main():
    folder_of_build = os.environ.get("PROFD_BUILD", "build/plain")
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else folder_of_build + "/profctl")
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        for kind, (label, flag) in enumerate(KINDS):
            place = os.path.join(folder, "programs%d" % kind)
            done = build(place, flag)
            if done.returncode != 0 and flag != "-static":
                tap.point(False, "tests/programs/build.sh " + label, done.stdout.decode("latin-1"))
                continue
            for number, name in enumerate(sorted(RUNS)):
                exe = os.path.join(place, name)
                if name == "uselib" and flag == "-static":
                    continue  # it is there for its shared library
                if not os.path.exists(exe):
                    print("ok %d - %s %s # SKIP not built" % (tap.number + 1, name, label))
                    tap.number += 1
                    continue
                files = run_program(exe, RUNS[name], os.path.join(folder, "runs%d" % kind))
                compare(tap, program, exe, files, label, folder, None if len(sys.argv) > 1 else kind + number)
    print("1..%d" % tap.number)
    sys.exit(0 if tap.right else 1)


main()
