"""make deb: lintian finds nothing that is not explained, and the packages hold exactly the files of make install."""
import glob
import os
import re
import shutil
import tempfile

from harness import BUILD, ROOT, Tap, run

PACKAGES = {"profd", "profd-relay", "profd-record", "profctl", "profd-collect", "libprofd0", "libprofd-dev"}
DEB = os.path.join(ROOT, "build/deb-of-check")
FROM = {"./usr/share/doc/profd/LICENSE"}  # Debian has /usr/share/doc/PACKAGE/copyright instead


def contents(deb):
    """Files and links of a package, without the directories."""
    return {line.split()[5] for line in run("dpkg-deb", "-c", deb).stdout.splitlines() if not line.startswith("d")}


def debian_only(path):
    """What packages have beside the files that are installed."""
    return re.match(r"\./usr/share/(doc/[^/]+/(copyright|changelog(\.Debian)?\.gz)$|lintian/)", path)


def main():
    with Tap() as tap:
        shutil.rmtree(DEB, ignore_errors=True)  # the packages are made of what is built already
        shutil.copytree(BUILD, f"{DEB}/tree/obj", ignore=shutil.ignore_patterns("tests"))
        done = run("make", "-s", "-C", ROOT, "deb", f"DEB={DEB}", timeout=1700)
        tap.point(done.returncode == 0, "make deb builds the packages, and lintian has no error and no unexplained "
                                        "warning", done.stdout + done.stderr)
        debs = {os.path.basename(d).split("_")[0]: d for d in glob.glob(os.path.join(DEB, "*.deb"))}
        tap.point(set(debs) == PACKAGES, "these are the packages", debs)
        triplet = run("gcc", "-dumpmachine").stdout.strip().replace("-pc-", "-")
        with tempfile.TemporaryDirectory() as folder:
            done = run("make", "-s", "-C", ROOT, "install", f"B={BUILD}", f"DESTDIR={folder}", "prefix=/usr",
                       f"libdir=/usr/lib/{triplet}", "unitdir=/lib/systemd/system")
            installed = {"./" + os.path.relpath(os.path.join(where, name), folder)
                         for where, _, names in os.walk(folder) for name in names}
        packed = [re.sub(r"^(\./usr/share/man/.*)\.gz$|^(\./usr/share/doc/profd/README\.md)\.gz$",
                         lambda m: m.group(1) or m.group(2), path)
                  for deb in debs.values() for path in contents(deb) if not debian_only(path)]
        tap.point(done.returncode == 0 and len(packed) == len(set(packed)) and set(packed) == installed - FROM,
                  "make install and the packages have the same files, each in one package",
                  (done.stderr, sorted(set(packed) ^ (installed - FROM))))
        for name in sorted(debs):
            scripts = run("dpkg-deb", "--ctrl-tarfile", debs[name], binary=True).stdout
            tap.point(b"systemctl enable" not in scripts and b"deb-systemd-invoke start" not in scripts,
                      f"{name} starts and enables nothing")


main()
