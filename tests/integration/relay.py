#!/usr/bin/python3
"""What a host forwards, with a relay and a centre that are played here: whatever is killed when, what the centre has
counted in the end is what was uploaded, and what profd says of it is true. `relay.py SECONDS SEED` goes on longer."""
import os
import random
import signal
import sys
import time

import segment
from harness import NOBODY, Daemon, Tap, as_user, run
from relaying import BUILDS, Sender, acknowledge, body, equation, fetch
from wire import Wire, field, sender_number

FIRST, SECOND = b"first incarnation"[:16], b"next incarnation"[:16]


class Centre:
    """Counts each key once, whatever comes how often. A restore forgets what a backup does not have."""

    def __init__(self, incarnation):
        self.incarnation, self.backup, self.number = incarnation, 0, 0
        self.has, self.conflicts, self.copies = {}, [], 0

    def commit(self, data):
        """(number, outcome)"""
        s = segment.read(data)
        key = s["epoch"], s["sequence"]
        if key in self.has:
            self.copies += 1
            if s["kind"] == "counts" and self.has[key][1]["digest"] != s["digest"]:
                self.conflicts.append(key)
                return self.number, 2
        else:
            self.number += 1
            self.has[key] = self.number, s
        return self.has[key][0], 0

    def restore(self, upto, incarnation):
        self.has = {k: v for k, v in self.has.items() if v[0] <= upto}
        self.incarnation, self.number, self.backup = incarnation, upto + 1000, upto

    def counted(self):
        """((build, callee) → calls, uploads, ticks)"""
        calls, uploads, ticks = {}, 0, 0
        for _, s in self.has.values():
            if s["kind"] != "counts":
                continue
            uploads += s["uploads"]
            ticks += sum(sum(h["ticks"].values()) for h in s["histograms"])
            for (_, _, build, to), n in s["arcs"].items():
                key = s["builds"][build][0], to
                calls[key] = calls.get(key, 0) + n
        return calls, uploads, ticks


def flush(d, centre, lose=lambda: False):
    """One round of a relay. lose(): break off here. Returns how many were acknowledged."""
    after = through = done = 0
    with Wire(d.socket) as w:
        while True:
            kind, _, _, m = fetch(w, centre, after, through)
            if kind != "SEGMENT":
                raise RuntimeError(m.get(4))
            through = m.get(5, 0)
            if not m.get(1):
                return done
            if lose():
                return done
            number, outcome = centre.commit(m[4])
            if lose():
                return done
            if acknowledge(w, centre, m[2], m[3], number, outcome)[0] != "ACK":
                raise RuntimeError("no ACK")
            done += 1
            after = 0


def settle(d, centre):
    """Until everything is acknowledged."""
    while flush(d, centre):
        pass
    return d.json("status", "--json")["store"]["relay"]


def simple(tap):
    with Daemon("--relay", "https://centre.example") as d:
        centre, sender = Centre(FIRST), sender_number()
        with Wire(d.socket) as w:
            for i in range(1, 31):
                w.send("UPLOAD", body(sender, i, BUILDS[i % 3], i % 7, i))
                while w.take()[0] != "ACK":
                    pass
            relay = d.json("status", "--json")["store"]["relay"]
            tap.point(relay["accepted"]["uploads"] == relay["open"]["uploads"] == 30 and equation(relay)
                      and relay["outgoing_open"] in (3, 6), "what is accepted is in open segments", relay)
            text = d.ctl("status").stdout
            tap.point("relay    to https://centre.example: accepted uploads 30 = acknowledged 0 + sealed 0 + open 30"
                      in text and "profd-relay has not connected" in text, "profctl status says so", text)
            fetch(w, None, error="connection refused")
            text = d.ctl("status").stdout
            tap.point("connection refused" in text and "open 30" in text, "and why the centre is not reached", text)
        with Wire(d.socket) as w:
            numbers = [fetch(w, None)[3].get(6, 0), fetch(w, centre)[3].get(6, 0)]
        tap.point(numbers[0] == numbers[1] >= 30, "each answer to FETCH has the number of the database", numbers)
        relay = settle(d, centre)
        calls, uploads, ticks = centre.counted()
        tap.point(uploads == 30 and ticks == sum(calls.values()) == sum(range(1, 31)) == relay["acknowledged"]["calls"],
                  "the centre gets it all", (uploads, ticks))
        tap.point(relay["outgoing_open"] == relay["outgoing_sealed"] == 0 and relay["oldest_time"] is None
                  and equation(relay), "and profd knows", relay)
        one = next(iter(centre.has.values()))[1]
        tap.point(one["uid"] == os.getuid() and one["builds"][0][1] == "/bin/made-up" and sum(one["processes"]) <= 1
                  and one["first"] <= one["last"], "a segment says what it is of", one)
        tap.point(d.ctl("verify").returncode == 0, "verification finds nothing")


def refused(tap):
    with Daemon() as d, Wire(d.socket) as w:
        kind, _, _, m = fetch(w, None)
        tap.point(kind == "NACK" and b"relay is not configured" in m[4], "without a centre there are no segments", m)
        tap.point(d.json("status", "--json")["store"]["relay"] is None, "and status says nothing of them")
    for wrong in ("centre:7655", "tls://centre:1", "https://centre:99999", "http://centre:1", "https://:1"):
        with Daemon("--relay", wrong, start=False) as d:
            done = run(*d.command())
            tap.point(done.returncode == 78 and "not https://HOST[:PORT]" in done.stderr, f"relay = {wrong} is refused",
                      done.stderr)
    with Daemon("--relay", "https://[::1]:7655") as d:
        with Wire(d.socket) as w:
            bad = {"incarnation": ("FETCH", field(1, b"short")), "number": ("FETCH", field(3, 2**63)),
                   "epoch": ("ACKNOWLEDGE", field(1, b"x") + field(2, 1) + field(3, FIRST) + field(4, 1)),
                   "sequence": ("ACKNOWLEDGE", field(1, b"x" * 12) + field(3, FIRST) + field(4, 1)),
                   "outcome": ("ACKNOWLEDGE", field(1, b"x" * 12) + field(2, 1) + field(3, FIRST) + field(4, 1)
                               + field(5, 3))}
            for word, (kind, payload) in bad.items():
                w.send(kind, payload)
                answer = w.take()
                tap.point(answer[0] == "NACK" and answer[3][1] == 1 and word in answer[3][4].decode(),
                          f"{kind} with a wrong {word} is refused", answer)
        def strange():
            with Wire(d.socket) as w:
                w.send("FETCH")
                fetched = w.take()
                w.send("ACKNOWLEDGE")
                return [(a[0], a[3].get(1)) for a in (fetched, w.take())]
        if os.getuid() == 0:
            got = as_user(NOBODY, strange)
            tap.point(got == [["NACK", 12]] * 2, "another user may neither fetch nor acknowledge", got)
        else:
            tap.skip("another user may neither fetch nor acknowledge", "needs root")


def restored(tap):
    """The centre is restored from a backup: what it has lost comes again, what it kept is not counted twice."""
    with Daemon("--relay", "https://centre") as d:
        centre, sender = Centre(FIRST), sender_number()
        for i in range(1, 13):
            with Wire(d.socket) as w:
                w.send("UPLOAD", body(sender, i, BUILDS[i % 3], 1, i))
                while w.take()[0] != "ACK":
                    pass
            if i % 4 == 0:
                settle(d, centre)
        centre.restore(4, SECOND)
        before = centre.counted()[1]
        relay = settle(d, centre)
        calls, uploads, _ = centre.counted()
        tap.point(before < uploads == 12 and sum(calls.values()) == sum(range(1, 13)) and not centre.conflicts,
                  "a restored centre gets again what it has lost", (before, uploads))
        tap.point(relay["acknowledged"]["uploads"] == 12 and equation(relay) and d.ctl("verify").returncode == 0,
                  "and the host's ledger agrees", relay)


def rolled_back(tap):
    """The host is restored from a backup: the centre learns in which hours something may be missing."""
    with Daemon("--relay", "https://centre") as d:
        centre, sender, copy = Centre(FIRST), sender_number(), os.path.join(d.folder, "copy")
        for i in range(1, 4):
            with Wire(d.socket) as w:
                w.send("UPLOAD", body(sender, i, BUILDS[0], 1, i))
                while w.take()[0] != "ACK":
                    pass
            if i == 1:
                d.ctl("backup", copy)
        first = time.time_ns() // segment.HOUR
        settle(d, centre)
        d.stop()
        done = run(*d.command(), "--restore", copy)
        d.start()
        relay = settle(d, centre)
        hours = [s["hour"] for _, s in centre.has.values() if s["kind"] == "dropped"]
        tap.point(done.returncode == 0 and hours and set(range(first, max(hours) + 1)) == set(hours)
                  and max(hours) <= time.time_ns() // segment.HOUR,
                  "a restored host tells the centre each hour since the backup", (done.stderr, hours, first))
        tap.point(equation(relay) and relay["accepted"]["uploads"] == relay["acknowledged"]["uploads"] == 1
                  and d.ctl("verify").returncode == 0, "and its ledger agrees", relay)


def conflicts(tap):
    """Another machine sends as this host, with its epoch: a copy of a running machine."""
    def sends(i):
        with Wire(d.socket) as u:
            u.send("UPLOAD", body(sender, i, BUILDS[0], 1, 1))
            while u.take()[0] != "ACK":
                pass
        return fetch(w, centre)[3]

    said = "another machine has sent uploads as this host"
    with Daemon("--relay", "https://centre") as d, Wire(d.socket) as w:
        centre, sender = Centre(FIRST), sender_number()
        first = sends(1)
        acknowledge(w, centre, first[2], first[3], 1, 2)
        second = sends(2)
        tap.point(first[2] != second[2] and second[3] == 1 and d.logged().count(said) == 1,
                  "a segment conflicts with another machine's: what follows has another epoch, and that is said",
                  (first, second, d.logged()))
        acknowledge(w, centre, second[2], second[3], 2, 0)
        third = sends(3)
        tap.point(third[2] == second[2] and third[3] == 2 and d.logged().count(said) == 1,
                  "then it keeps its epoch", (third, d.logged()))
        relay = d.json("status", "--json")["store"]["relay"]
        tap.point(equation(relay) and relay["not_counted"]["uploads"] == 1 and d.ctl("verify").returncode == 0,
                  "the ledger has the one that was not counted", relay)


def killed(tap, seconds, seed):
    """Both ends are killed at random points, connections break between delivery and acknowledgement."""
    dice = random.Random(seed)
    with Daemon("--relay", "https://centre") as d:
        centre, senders, kills, lost = Centre(FIRST), [Sender(d, random.Random(seed + i)) for i in range(2)], 0, 0
        for s in senders:
            s.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end or kills < 5:
            time.sleep(dice.random() * 0.1)
            if dice.random() < 0.3:
                d.stop(signal.SIGKILL)
                kills += 1
                d.start()
            try:
                flush(d, centre, lambda: dice.random() < 0.1)
            except (OSError, RuntimeError, TypeError):
                lost += 1
        for s in senders:
            s.ended = True
        for s in senders:
            s.join(60)
        relay = settle(d, centre)
        want = {}
        for s in senders:
            for key, n in s.sent.items():
                want[key] = want.get(key, 0) + n
        calls, uploads, ticks = centre.counted()
        tap.point(calls == want, f"{kills} kills of profd, seed {seed}: the centre has what was uploaded, by arc",
                  {k: (want.get(k), calls.get(k)) for k in set(want) | set(calls) if want.get(k) != calls.get(k)})
        tap.point(uploads == sum(s.uploads for s in senders) and ticks == sum(want.values()),
                  f"uploads {uploads}, segments {len(centre.has)}, sent again {centre.copies}: none lost, none doubled",
                  (uploads, sum(s.uploads for s in senders)))
        tap.point(not centre.conflicts, "no key has two contents", centre.conflicts)
        tap.point(relay["acknowledged"]["uploads"] == relay["accepted"]["uploads"] == uploads and equation(relay),
                  "the host's ledger says the same", relay)
        done = d.ctl("verify")
        tap.point(done.returncode == 0, "verification finds nothing", done.stdout)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 4
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with Tap() as tap:
        simple(tap)
        refused(tap)
        restored(tap)
        rolled_back(tap)
        conflicts(tap)
        killed(tap, seconds, seed)


if __name__ == "__main__":
    main()
