"""Stacks over the socket: an upload is stored byte for byte, survives being rolled up, and is refused with the rule if
its stacks cannot be."""
import json
import os
import sqlite3
import struct
import time

from harness import NOBODY, Daemon, Tap, as_user, until
from wire import Wire, counts, encoded, field, sender_number, varint

BUILD, NAME = "5a" * 20, "/bin/stacked"
NOWHERE = None  # a build outside all


def stacked(trees, arcs=()):
    """The stored encoding with stacks. A tree: (rate, nodes); a node: (depth, kind, build, address, ticks)."""
    return encoded([(0, 0x1000, 0x2000, 1024, 99, "seconds", "s", {1: 5, 7: 2})], arcs, clocks=trees)


def upload(sender, sequence, bytes_, end=0):
    return (field(1, struct.pack("<QI", sender + 1, 9)) + field(2, sequence)
            + varint(4 << 3 | 1) + struct.pack("<Q", end) + field(6, field(1, BUILD) + field(2, NAME))
            + field(8, bytes_) + field(10, 1)
            + field(11, "0123456789abcdef" * 2))


class Asking(Wire):
    def ask(self, body, tag=7):
        """(type, fields) of the answer."""
        self.send("UPLOAD", body, tag)
        while True:
            kind, got, _, m = self.take()
            if got == tag and kind in ("ACK", "NACK"):
                return kind, m


TREES = [(99, [(0, 0, 0, 0x1100, 0), (1, 0, 0, 0x1200, 1), (2, 1, 0, 0x1204, 4), (1, 1, 0, 0x1300, 1),
               (0, 0, NOWHERE, 1, 0), (1, 1, 0, 0x1210, 1)])]


def blobs(daemon):
    with sqlite3.connect(f"file:{os.path.join(daemon.state, 'profd.db')}?mode=ro", uri=True) as db:
        return [row[0] for row in db.execute("SELECT counts FROM upload ORDER BY rowid")]


def main(tap):
    with Daemon() as daemon:
        sender, sent = sender_number(), stacked(TREES, [(0x1100, 0x1200, 3)])
        with Asking(daemon.socket) as w:
            tap.point(w.welcome[0] == "WELCOME" and w.welcome[3].get(1) == 1, "the daemon speaks version 1", w.welcome)
            first, again = w.ask(upload(sender, 1, sent)), w.ask(upload(sender, 1, sent))
            tap.point(first[0] == "ACK" and 1 not in first[1], "an upload with stacks is acknowledged", first)
            tap.point(again[0] == "ACK" and again[1].get(1) == 1, "and a repeat as a duplicate", again)
            tap.point(blobs(daemon) == [sent], "what is stored is what was sent", blobs(daemon))
            for name, tree, sentence in (
                    ("a node below a program counter", [(0, 1, 0, 0x1100, 1), (1, 1, 0, 0x1200, 1)],
                     "node 1 of stacks is below a program counter"),
                    ("siblings out of order", [(0, 1, 0, 0x1200, 1), (0, 1, 0, 0x1100, 1)],
                     "node 1 of stacks is not after its sibling 0"),
                    ("a leaf without ticks", [(0, 0, 0, 0x1200, 0)], "node 0 of stacks is a leaf with 0 ticks"),
                    ("a build that the upload does not have", [(0, 1, 1, 0x1200, 1)], "the upload has 1"),
                    ("more ticks than their histograms have", [(0, 1, 0, 0x1100, 5), (0, 1, 0, 0x1200, 3)],
                     "stacks 0 have 8 ticks at 99 a second; the histograms of this clock have 7"),
                    ("an incomplete frame inside", [(0, 0, 0, 0x1200, 0), (1, 0, NOWHERE, 1, 1)],
                     "address 0x1 of no build at depth 1")):
                kind, m = w.ask(upload(sender, 2, stacked([(99, tree)])))
                tap.point(kind == "NACK" and m.get(1) == 1 and sentence in m.get(4, b"").decode(),
                          f"refused: {name}", (kind, m))
            tap.point(w.ask(upload(sender, 2, sent))[0] == "ACK", "the connection goes on")
        done = daemon.ctl("verify")
        tap.point(done.returncode == 0, "verify finds everything in order", done.stdout + done.stderr)
    rolled(tap)
    flood(tap)


def rolled(tap):
    """Old enough for a sum at once."""
    with Daemon("--raw-age", "1s") as daemon:
        now, sender = time.time_ns(), sender_number()
        with Asking(daemon.socket) as w:
            for n in range(1, 4):
                body = upload(sender, n, stacked(TREES), now - 3 * 86400 * 10**9 + n)
                tap.point(w.ask(body)[0] == "ACK", f"upload {n} of three days ago is acknowledged")
        tap.point(until(lambda: not blobs(daemon)), "three uploads became a sum", blobs(daemon))
        done = daemon.ctl("verify")
        tap.point(done.returncode == 0, "which verify finds in order", done.stdout + done.stderr)
        said = json.loads(daemon.ctl("report", BUILD, "--json").stdout).get("stacks", {})
        tap.point(said.get("count") == 3 * 7 and said["coverage"] == 1 and said["incomplete"] == 3,
                  "and its report has the stacks of all three", said)


MOST = 65536  # nodes of an upload


def full(first):
    """As many stacks as fit, of one program counter each, from that address on."""
    return encoded([(0, 0x1000, 0x1000 + (1 << 40), 1024, 99, "seconds", "s", {0: MOST})],
                   clocks=[(99, [(0, 1, 0, first + i, 1) for i in range(MOST)])])


def flood(tap):
    """Each of many uploads has other stacks: reports take bounded memory, and say what was folded."""
    uploads = 24
    with Daemon() as daemon:
        def ask():
            with Asking(daemon.socket) as w:
                sent = [w.ask(upload(sender_number(), 1, full(0x100000 + i * MOST)))[0] for i in range(uploads)]
                return sent, *w.query(f"/api/v1/builds/{BUILD}/report?limit=5")

        def answer():
            sent, status, body = ask()
            return sent, status, body.decode()

        sent, status, body = as_user(NOBODY, answer) if os.geteuid() == 0 else answer()
        tap.point(sent == ["ACK"] * uploads, f"{uploads} uploads with {MOST} other stacks each are acknowledged", sent)
        stacks = json.loads(body).get("stacks", {})
        tap.point(status == 200 and stacks.get("count") == uploads * MOST
                  and stacks["folded"] == (uploads - 1) * MOST + 1, "their report has all, folded to as many as fit",
                  (status, body[:500]))
        done = daemon.ctl("report", BUILD, "--json")
        tap.point(done.returncode == 0 and json.loads(done.stdout)["stacks"] == stacks,
                  "and so has that of all users", done.stderr)


if __name__ == "__main__":
    with Tap() as t:
        main(t)
