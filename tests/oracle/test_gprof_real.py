#!/usr/bin/python3
"""Real profiles of the programs in tests/programs: our listing against the installed gprof's, byte for byte.

    test_gprof_real.py [GPROF_LOCAL]

Builds the programs with and without debug information (with it gprof's index names the files of static functions), runs each
several times, and compares single files, sums and options. Prints TAP.
"""
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
OPTIONS = [[], ["-z"], ["-P"], ["-Q"], ["-w", "132"], ["-z", "-w", "30"]]


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


def output(command):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"))
    return p.returncode, p.stdout, p.stderr.decode("latin-1")


def difference(theirs, ours):
    if theirs[0] != 0 or ours[0] != 0:
        return "gprof exited with %d %r, we with %d %r" % (theirs[0], theirs[2], ours[0], ours[2])
    a, b = theirs[1].split(b"\n"), ours[1].split(b"\n")
    for i, (x, y) in enumerate(zip(a, b), 1):
        if x != y:
            return "line %d\ngprof %r\nours  %r" % (i, x, y)
    return "" if a == b else "gprof printed %d lines, we %d" % (len(a), len(b))


def run_program(exe, runs, folder):
    """Runs it and returns its gmon.out files."""
    files = []
    for i, arguments in enumerate(runs):
        place = os.path.join(folder, "%s-%d" % (os.path.basename(exe), i))
        os.makedirs(place)
        subprocess.run([exe] + arguments, cwd=place, stdout=subprocess.DEVNULL, check=True, timeout=120)
        files.append(os.path.join(place, "gmon.out"))
    return files


def compare(tap, program, exe, files, label):
    sets = [[f] for f in files] + [files, files[::-1], files * 3]
    for options in OPTIONS:
        problems = []
        for chosen in sets:
            why = difference(output(["gprof", "-b"] + options + [exe] + chosen), output([program] + options + [exe] + chosen))
            if why:
                problems.append("%d files: %s" % (len(chosen), why))
        name = "%s %s%s: %d sets of gmon.out" % (os.path.basename(exe), label, "".join(" " + o for o in options), len(sets))
        tap.point(not problems, name, "\n".join(problems))


def main():
    build = os.environ.get("PROFD_BUILD", "build/plain")
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else build + "/tests/gprof-local")
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        for label, flag in (("without debug information", ""), ("with debug information", " -g")):
            place = os.path.join(folder, "programs" + flag.strip())
            compilers = {"PROGRAM_CC": "gcc" + flag, "PROGRAM_CXX": "g++" + flag}
            if shutil.which("gfortran"):
                compilers["PROGRAM_FC"] = "gfortran"
            done = subprocess.run(["sh", os.path.join(HERE, "../programs/build.sh"), place], env=dict(os.environ, **compilers),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode != 0:
                tap.point(False, "tests/programs/build.sh " + label, done.stdout.decode("latin-1"))
                continue
            for name in sorted(RUNS):
                exe = os.path.join(place, name)
                if name == "heat" and not os.path.exists(exe):
                    print("ok %d - heat %s # SKIP no Fortran compiler" % (tap.number + 1, label))
                    tap.number += 1
                    continue
                compare(tap, program, exe, run_program(exe, RUNS[name], os.path.join(folder, "runs" + flag.strip())), label)
    print("1..%d" % tap.number)
    sys.exit(0 if tap.right else 1)


main()
