"""Local names that end in digits: gprof lists them or not by what follows in the string table, and so does report -f
gprof. Symbols that an older daemon stored do not say it: the listing does, and the executable is asked for again."""
import ctypes
import os
import sqlite3
import subprocess
import sys
import tempfile

import wire
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


class Reader:
    """Of an encoded object."""

    def __init__(self, encoded):
        self.encoded, self.at = encoded, 4  # behind magic and version

    def numbers(self, count):
        for _ in range(count):
            while self.encoded[self.at] >= 128:
                self.at += 1
            self.at += 1

    def count(self):
        value = shift = 0
        while True:
            byte = self.encoded[self.at]
            value |= (byte & 127) << shift
            self.at, shift = self.at + 1, shift + 7
            if byte < 128:
                return value

    def text(self):
        size = self.count()
        self.at += size


def without_later(encoded):
    """What version 1 has: identity, names, symbols, ranges, entries of the plt, static arcs."""
    r = Reader(encoded)
    r.text()
    r.text()
    r.numbers(5)
    r.text()
    r.text()
    for numbers_each in (7, 3, 3, 3):
        r.numbers(numbers_each * r.count())
    return encoded[:r.at]


def make_old(path):
    """The one object of the database as version 1 had it, without gprof's answers."""
    zstd = ctypes.CDLL("libzstd.so.1")
    with sqlite3.connect(path) as db:
        (number, size, packed), = db.execute("SELECT id, size, encoded FROM object").fetchall()
        plain = ctypes.create_string_buffer(size)
        zstd.ZSTD_decompress(plain, ctypes.c_size_t(size), packed, ctypes.c_size_t(len(packed)))
        encoded = plain.raw
        # A local function in code: bind | type << 2 | flags << 5, with and without the flag of value 8.
        unlisted, listed = b"\xa8\x02", b"\x28"
        found = encoded.count(unlisted)
        old = encoded[:3] + b"\x01" + without_later(encoded)[4:].replace(unlisted, listed)
        db.execute("UPDATE object SET outdated=1, size=?, encoded=? WHERE id=?", (len(old), wire.zstd(old), number))
    return found


def stored(d):
    with sqlite3.connect(f"file:{d.state}/profd.db?mode=ro", uri=True) as db:
        return db.execute("SELECT outdated FROM object").fetchall()


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
            d.stop()
            tap.point(make_old(os.path.join(d.state, "profd.db")) > 0, "made old")
            d.start()
            old = d.ctl("report", exe, "-f", "gprof").stdout
            lines = old.rstrip("\n").split("\n")
            tap.point(NAME in old and lines[-1].startswith("Note: gprof may leave out 1 of these functions"),
                      "symbols of version 1: the listing says it", lines[-1])
            sent = d.ctl("upload", "-e", exe, gmon)
            now = d.ctl("report", exe, "-f", "gprof").stdout
            tap.point(sent.returncode == 0 and now == gprof(exe, gmon, gmon),
                      "with the next upload the executable is asked for again",
                      sent.stderr + now[-300:])
            tap.point(stored(d) == [(0,)], "and replaces the old symbols", stored(d))


if __name__ == "__main__":
    main()
