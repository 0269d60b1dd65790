#!/usr/bin/python3
# not a test
"""aarch64_packages.py PACKAGES SYSROOT: make deb-arm64. Unpacks the packages for arm64, and runs what is in them with
qemu's user emulation: profd, profctl, and a program that counts its own calls under the collector. Under it profd has
no sandbox for symbols, and nothing can be executed, so that profctl run is not tried."""
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = tempfile.TemporaryDirectory(prefix="profd-arm64-")
os.environ["PROFD_BUILD"] = FOLDER.name
sys.path.insert(0, os.path.join(HERE, "../integration"))
from harness import Daemon, ROOT, Tap, run, until  # noqa: E402


def unpack(packages, sysroot):
    """All of the packages in one root directory, and commands that run their programs. Returns the root."""
    root = os.path.join(FOLDER.name, "root")
    for deb in glob.glob(os.path.join(packages, "*_arm64.deb")):
        assert run("dpkg", "-x", deb, root).returncode == 0, deb
    for name, path in (("profd", "sbin"), ("profctl", "bin"), ("profd-relay", "sbin")):
        command = os.path.join(FOLDER.name, name)
        with open(command, "w") as f:
            f.write(f'#!/bin/sh\nexec qemu-aarch64 -L {sysroot} {root}/usr/{path}/{name} "$@"\n')
        os.chmod(command, 0o755)
    return root


def main(packages, sysroot):
    with Tap() as tap, FOLDER:
        root = unpack(packages, sysroot)
        names = {os.path.basename(d).split("_")[0] for d in glob.glob(os.path.join(packages, "*.deb"))}
        tap.point(names == {"profd", "profd-relay", "profctl", "profd-collect", "libprofd0", "libprofd-dev"},
                  "the packages that depend on the architecture", names)
        for deb in glob.glob(os.path.join(packages, "profd_*.deb")):
            needs = run("dpkg-deb", "-f", deb, "Depends").stdout
            tap.point(all(f"{library} (>= " in needs for library in ("libc6", "libsqlite3-0", "libevent-core-2.1-7")),
                      "profd depends on its libraries, by version", needs)
        done = run("readelf", "-h", *glob.glob(f"{root}/usr/*bin/*"), *glob.glob(f"{root}/usr/lib/*/*.so"))
        tap.point(len(re.findall(r"Machine: +AArch64", done.stdout)) == 5, "programs and libraries of AArch64", done)
        with open(f"{root}/usr/share/bash-completion/completions/profctl") as f:
            tap.point("annotate" in f.read(), "profctl has its completions")
        with Daemon("--harvest-interval", "1s") as d:
            version = d.ctl("--version")
            tap.point(version.returncode == 0 and version.stdout.startswith("profctl "), "profctl says its version",
                      version)
            exe = os.path.join(FOLDER.name, "count")
            done = run("aarch64-linux-gnu-gcc", "-O1", "-pg", "-o", exe, os.path.join(ROOT, "tests/nspawn/count.c"))
            assert done.returncode == 0, done.stderr
            emulated = subprocess.Popen(
                ["qemu-aarch64", "-L", sysroot, "-E",
                 f"LD_PRELOAD={root}/usr/lib/aarch64-linux-gnu/libprofd-collect.so", exe],
                env=dict(d.env, TRUTH=os.path.join(FOLDER.name, "calls"), PROFD_CLOCK="off"))
            until(lambda: any(p["calls"] > 1000 for p in d.json("ps", "--json")["rows"]))
            emulated.terminate()
            emulated.wait()
            truth = [int(open(f).read()) for f in glob.glob(os.path.join(FOLDER.name, "calls.*"))]
            until(lambda: not d.json("ps", "--json")["rows"])
            report = d.json("report", exe, "--json")
            calls = [f["calls"] + f["self_calls"] for f in report["functions"]]  # without names: one function
            tap.point(truth and truth == calls, "the calls of a program are those that it counted itself",
                      (truth, calls, report["provenance"], d.logged()))


main(*sys.argv[1:3])
