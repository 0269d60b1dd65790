#!/usr/bin/python3
"""profctl clickhouse import moves a centre from its SQLite database to ClickHouse: answers have the same bytes as those
of the centre with SQLite, at once, after another import, after the hosts have sent everything again, and after they
have sent more to both. On two shards of Debian's 18.16."""
import contextlib
import json
import os
import random
import struct
import time

from centre import Gate
from clickhouse_bed import PROGRAM, Bed
from clickhouse_centre import answers, init, paths, shown
from harness import PROFCTL, Daemon, Tap, run
from judge import calls_of, difference, sums
from relaying import BUILDS, body
from wire import Wire, sender_number, field, varint

HOURS = [0, 3, 26, 50]


def upload(hosts, dice, count):
    """Each host stores uploads whose windows end in one of the hours."""
    now = int(time.time())
    for h in hosts:
        sender = sender_number()
        with Wire(h.socket) as w:
            for sequence in range(1, count + 1):
                end = (now - dice.choice(HOURS) * 3600 - dice.randrange(60)) * 10**9
                w.send("UPLOAD", body(sender, sequence, dice.choice(BUILDS), dice.randrange(50), dice.randrange(1, 9))
                       + b"".join(varint(n << 3 | 1) + struct.pack("<Q", t) for n, t in ((3, end - 10**9), (4, end)))
                       + field(12, b"%d" % dice.randrange(40)))
                while w.take()[0] != "ACK":
                    pass


def settle(gates):
    """Delivers what is sealed until nothing is left: [(gate, segment)]."""
    sent = []
    for g in gates:
        while g.round():
            sent += [(g, s) for s in g.sent if (g, s) not in sent]
    return sent


def deliver(gates, sent, first):
    """Segments that were delivered to another centre: the outcomes."""
    kinds = set()
    for g, copy in zip(first, gates):
        with Wire(copy.centre.socket) as w:
            copy.arrive(w)
            for s in [s for of, s in sent if of is g]:
                copy.deliver(w, *s)
                kinds.add(w.take()[0])
    return kinds


def compare(tap, old, new, hosts, name):
    asked = paths(HOURS)
    x, y = answers(new, asked), answers(old, asked)
    different = {p: shown(x[p], y[p]) for p in asked if x[p] != y[p]}
    good = [p for p in asked if y[p][0] == 200]
    tap.point(not different and len(good) > len(asked) // 2, f"{name}: {len(asked)} answers have the bytes of SQLite",
              different or [y[p] for p in asked if p not in good])
    want, got = sums(*hosts), calls_of(new)
    tap.point(want == got and len(got) == len(BUILDS), f"{name}: reports are the sum of the hosts'",
              difference(want, got))
    done = new.ctl("verify")
    tap.point(done.returncode == 0, f"{name}: verification finds nothing", done.stdout + done.stderr)


def load(url, d):
    done = run(PROFCTL, "clickhouse", "import", "--json", url, os.path.join(d.state, "profd.db"))
    return done, json.loads(done.stdout) if done.returncode == 0 else {}


def moved(tap, bed):
    init(bed, cluster="shards")
    url, dice = bed.url(cluster="shards"), random.Random(23)
    with contextlib.ExitStack() as stack:
        start = stack.enter_context
        hosts = [start(Daemon("--relay", "tls://c:1")) for _ in range(2)]
        old = start(Daemon("--gate"))
        names = ("a.example", "b.example")
        gates = [Gate(h, old, name) for h, name in zip(hosts, names)]
        for i in range(3):
            upload(hosts, dice, 30)
            sent = settle(gates) if i == 0 else sent + settle(gates)
        tap.point(old.ctl("reader", "add", "alice", "--tenant", "red").returncode == 0, "the centre has a reader")
        done, counts = load(url, old)
        tap.point(counts.get("uploads") == 180 and counts.get("hosts") == 2 and counts.get("readers") == 1,
                  "the database of a running centre is moved", done)
        new = start(Daemon("--gate", "--store", url))
        compare(tap, old, new, hosts, "moved")
        tap.point(old.ctl("reader", "list").stdout == new.ctl("reader", "list").stdout != "", "readers are the same")
        again, counts_again = load(url, old)
        tap.point(counts_again == counts, "another import moves the same", again)
        copies = [Gate(h, new, name) for h, name in zip(hosts, names)]
        kinds = deliver(copies, sent, gates)
        tap.point(kinds == {"ACKNOWLEDGE"}, "hosts send everything again", kinds)
        compare(tap, old, new, hosts, "again")
        upload(hosts, dice, 20)
        kinds = deliver(copies, settle(gates), gates)
        tap.point(kinds == {"ACKNOWLEDGE"}, "hosts send more", kinds)
        compare(tap, old, new, hosts, "more")
    refused = run(PROFCTL, "clickhouse", "import", url, "/nonexistent/profd.db")
    tap.point(refused.returncode != 0 and "/nonexistent/profd.db" in refused.stderr, "no database", refused)


def main():
    with Tap() as tap:
        if not PROGRAM:
            tap.skip("servers of ClickHouse", "clickhouse-server is not installed")
            return
        with Bed(2) as bed:
            moved(tap, bed)


if __name__ == "__main__":
    main()
