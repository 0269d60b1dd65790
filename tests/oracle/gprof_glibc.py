#!/usr/bin/python3
"""glibc's own tests of gmon, with `profctl gprof -C` in gprof's place: dynamic, position-independent, static,
static-pie.

gprof_glibc.py [PROFCTL]      (make oracle-glibc)

Fetches Debian's source package of glibc from where this system's packages come from, builds its tst-gmon*.c with the
installed libc, runs them, and lets glibc's scripts judge. Prints TAP. Needs the network: no part of `make check`."""
import glob
import os
import re
import subprocess
import sys
import tempfile

# Program, how it is linked, the script that judges.
CASES = [("tst-gmon", ["-fno-pie", "-no-pie"], "tst-gmon-gprof.sh"),
         ("tst-gmon-pie", ["-fPIE", "-pie"], "tst-gmon-gprof.sh"),
         ("tst-gmon-static", ["-fno-pie", "-static", "-no-pie"], "tst-gmon-static-gprof.sh"),
         ("tst-gmon-static-pie", ["-fPIE", "-static-pie"], "tst-gmon-static-gprof.sh")]


def source_lists(folder):
    """The system's enabled sources, as sources of source packages."""
    os.makedirs(folder)
    for path in ["/etc/apt/sources.list"] + sorted(glob.glob("/etc/apt/sources.list.d/*")):
        if not os.path.isfile(path) or not path.endswith((".list", ".sources")):
            continue
        with open(path, encoding="utf-8") as f:
            text = f.read()
        text = (re.sub(r"(?m)^Types:.*", "Types: deb-src", text) if path.endswith(".sources")
                else re.sub(r"(?m)^deb\s", "deb-src ", text))
        with open(os.path.join(folder, os.path.basename(path)), "w", encoding="utf-8") as f:
            f.write(text)


def fetch(folder):
    """glibc's source in folder/source. Its text is read here, and kept nowhere."""
    parts, lists = folder + "/parts", folder + "/lists"
    source_lists(parts)
    os.makedirs(lists + "/partial")
    apt = ["apt-get", "-qq", "-o", "Dir::Etc::SourceList=/dev/null", "-o", "Dir::Etc::SourceParts=" + parts,
           "-o", "Dir::State::Lists=" + lists, "-o", "APT::Sandbox::User=root"]
    subprocess.run(apt + ["update"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(apt + ["source", "--download-only", "glibc"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    archive = glob.glob(folder + "/glibc_*.orig.tar.*")[0]
    os.makedirs(folder + "/source")
    subprocess.run(["tar", "xf", archive, "-C", folder + "/source", "--strip-components=1", "--wildcards", "*/gmon/*"],
                   check=True)
    return folder + "/source/gmon"


def one_case(number, name, flags, script, gmon, folder, gprof):
    exe, data = os.path.join(folder, name), os.path.join(folder, name + ".data")
    built = subprocess.run(["gcc", "-pg", "-O2", "-g"] + flags + ["-o", exe, os.path.join(gmon, name + ".c")],
                           stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    said = built.stdout
    good = built.returncode == 0
    if good:
        subprocess.run([exe], check=True, cwd=folder, env=dict(os.environ, GMON_OUT_PREFIX=data))
        files = glob.glob(data + ".*")
        judged = subprocess.run(["sh", os.path.join(gmon, script), gprof, exe] + files, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        said = judged.stdout
        good = judged.returncode == 0 and b"PASS" in said
    print("%s %d - glibc's %s" % ("ok" if good else "not ok", number, name))
    if not good:
        print("# " + said.decode("latin-1").replace("\n", "\n# "))
    return good


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1
                              else os.environ.get("PROFD_BUILD", "build/plain") + "/profctl")
    with tempfile.TemporaryDirectory() as folder:
        gprof = os.path.join(folder, "gprof")
        os.symlink(program, gprof)
        gmon = fetch(folder)
        right = [one_case(i, *case, gmon, folder, gprof) for i, case in enumerate(CASES, 1)]
    print("1..%d" % len(right))
    sys.exit(0 if all(right) else 1)


main()
