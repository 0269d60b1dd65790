#!/usr/bin/python3
"""A centre under faults of its own machine and of its hosts' clocks: nothing is acknowledged that it does not have, and
what it has acknowledged it reports."""
import os
import time

from centre import ARCS, Relay, upload
from harness import Daemon, Tap, private_mounts, run, until
from judge import calls_of
from space import mount, occupy
from wire import sender_number


def answers(g, found):
    """What the centre answers: the outcome of each segment, or the status of HTTP."""
    status, answer = g.deliver(*(data for _, _, data in found))
    return [u["outcome"] for u in answer["uploads"]] if status == 200 else status


def clocks(tap):
    """Hosts whose clocks are years off, in both directions."""
    year = 365 * 86400 * 10**9
    with Daemon("--relay", "https://c") as host, Daemon() as centre:
        sender, g = sender_number(), Relay(host, centre, "clock.example")
        for i, (what, clock) in enumerate((("in 1970", 1), ("30 years behind", time.time_ns() - 30 * year),
                                           ("200 years ahead", time.time_ns() + 200 * year),
                                           ("at the end of time", 2**63 - 1))):
            upload(host, sender, i + 1, ARCS[i], 7)
            g.arrive()
            status, answer = g.deliver(*(data for _, _, data in g.fetch_all()), clock=clock)
            tap.point(status == 200 and [u["outcome"] for u in answer["uploads"]] == ["counted"],
                      f"a clock {what}: the segment counts", answer)
            tap.point(calls_of(centre).get(ARCS[i], (0, 0))[0] == 7, "and is reported", calls_of(centre))
            g.settle()
        report = centre.json("report", ARCS[0], "--json")
        tap.point("clock" in report["provenance"]["inexact_reasons"], "and marked",
                  report["provenance"]["inexact_reasons"])
        tap.point(centre.ctl("verify").returncode == 0, "verification finds nothing")


def removed(tap):
    """The database of the centre is removed, or another file is put in its place, while segments come."""
    for what in ("removed", "replaced"):
        with Daemon("--relay", "https://c") as host, Daemon() as centre:
            g, sender = Relay(host, centre, "a.example"), sender_number()
            upload(host, sender, 1, ARCS[0], 1)
            g.settle()
            upload(host, sender, 2, ARCS[0], 2)
            found = g.fetch_all()
            path = os.path.join(centre.state, "profd.db")
            kept = path + ".kept"
            os.rename(path, kept)
            if what == "replaced":
                run("cp", kept, path)
            got = answers(g, found)
            tap.point(got == 500, f"the database is {what}: no segment is acknowledged", got)
            os.rename(kept, path)


def full(tap):
    """The disk of the centre is full while segments come: they are refused, and count when there is space again."""
    with Daemon("--relay", "https://c") as host, Daemon(start=False) as centre:
        mount(centre, "64m")
        centre.start()
        g, sender = Relay(host, centre, "a.example"), sender_number()
        upload(host, sender, 1, ARCS[0], 1)
        until(lambda: os.path.exists(os.path.join(centre.state, "reserve")))
        g.settle()
        occupy(centre.state)
        upload(host, sender, 2, ARCS[0], 2)
        found = g.fetch_all()
        got = answers(g, found)
        relay = host.json("status", "--json")["store"]["relay"]
        tap.point(found and got == 507 and relay["sealed"]["uploads"] == 1,
                  "the disk is full: segments are refused", (got, relay))
        os.unlink(os.path.join(centre.state, "foreign"))
        tap.point(until(lambda: answers(g, found) == ["counted"]), "with space again they count")
        g.settle()
        tap.point(calls_of(centre) == calls_of(host) and centre.ctl("verify").returncode == 0,
                  "and the reports agree", (calls_of(centre), calls_of(host)))


def main():
    with Tap() as tap:
        if private_mounts():
            full(tap)
        else:
            tap.skip("a disk that is full", "private mounts are not allowed here")
        clocks(tap)
        removed(tap)


if __name__ == "__main__":
    main()
