"""Local names that end in digits: gprof lists them or not by what follows in the string table, and so does report -f
gprof."""
import os
import subprocess
import sys
import tempfile

from harness import PROFCTL, Daemon, Tap

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "../oracle"))
from gprof_strtab import give_neighbour  # noqa: E402

SOURCE = r"""
volatile int sink;
static void work(int n) __asm__("work.constprop.0");
static void __attribute__((noinline, used)) work(int n) { for (int i = 0; i < n; i++) { sink += i; } }
static void __attribute__((noinline)) plain(int n) { work(n); }
int main(void) { for (int i = 0; i < 200; i++) { plain(100000); } return 0; }
"""
NAME = "work.constprop.0"


def gprof(exe, *files):
    return subprocess.run(["gprof", "-b", exe, *files], stdout=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"),
                          check=True).stdout.decode()


def main():
    with tempfile.TemporaryDirectory() as folder, Tap() as tap:
        exe, gmon = os.path.join(folder, "exe"), os.path.join(folder, "gmon.out")
        subprocess.run(["gcc", "-pg", "-O1", "-Wl,--build-id", "-x", "c", "-", "-o", exe], input=SOURCE.encode(),
                       check=True)
        subprocess.run([exe], cwd=folder, check=True)
        listings = []
        for neighbour in (b"", b"$"):
            give_neighbour(exe, exe + "-x", neighbour)
            listings.append(gprof(exe + "-x", gmon))
            ours = subprocess.run([PROFCTL, "gprof", "-b", exe + "-x", gmon], stdout=subprocess.PIPE).stdout.decode()
            tap.point(ours == listings[-1], f"profctl gprof with {neighbour!r} behind each name is gprof", ours)
        tap.point(NAME in listings[0] and NAME not in listings[1], f"gprof lists {NAME} by its neighbour")
        os.replace(exe + "-x", exe)
        with Daemon() as d:
            sent = d.ctl("upload", "-e", exe, gmon)
            tap.point(sent.returncode == 0 and d.ctl("report", exe, "-f", "gprof").stdout == listings[1],
                      "report -f gprof is gprof", sent.stderr)


if __name__ == "__main__":
    main()
