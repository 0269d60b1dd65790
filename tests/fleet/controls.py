#!/usr/bin/python3
"""What the judge of the fleet's campaign must find: segments that are acknowledged before they are committed, one epoch
for ever, segments that are numbered when they are sealed, and counts without their stacks. Something between the
programs makes these mistakes; the same course of events without them is found to be right."""
import os
import signal

from bed import (ARCS, Centre, Host, Tap, calls, calls_of, excess, stacks, stacks_of, sums, truth_of, until, why_not)
from between import Early
from relaying import body
from shim import Keys, OneEpoch, WhenSealed
from wire import Wire


def upload(h, build, n, stacked=True):
    """The program counts it when it is acknowledged."""
    s = h.sender
    s.sequence += 1
    with Wire(h.daemon.socket) as w:
        w.send("UPLOAD", body(s.number, s.sequence, build, 0, n, stacked))
        while w.take()[0] != "ACK":
            pass
    s.sent[build, 0] = s.sent.get((build, 0), 0) + n
    s.uploads += 1


def settle(h):
    return until(lambda: h.flush() == 0 and h.settled())


def judge(h, centre):
    """(what the host has and the centre lacks, what is at the centre more often than it was counted)"""
    truth, host, got = truth_of([h]), calls(sums(h.daemon)), calls(calls_of(centre))
    return excess(host, got), excess(got, truth)


def quiet_host(centre):
    return Host(centre, "control", 0, rate=0, builds=())


def early(tap, mistake):
    """The centre is killed after an acknowledgement."""
    with Centre(between=Early) as centre:
        centre.between.early = mistake
        h = quiet_host(centre)
        try:
            upload(h, ARCS[0], 5)
            settle(h)
            centre.stop(signal.SIGKILL)
            centre.between.early = False
            centre.start()
            upload(h, ARCS[1], 7)
            settle(h)
            lacks, doubled = judge(h, centre)
        finally:
            h.end()
    want = 5 if mistake else 0
    tap.point((lacks, doubled) == (want, 0), f"acknowledged {'before' if mistake else 'after'} the commit: {lacks} "
              f"calls are found lost, {doubled} doubled", (lacks, doubled))


def rolled_back(tap, kind, what, want):
    """A host is restored from a backup that has an open segment, after that one and others were sent."""
    with Centre() as centre:
        h = quiet_host(centre)
        try:
            shim = kind(os.path.join(h.daemon.folder, "shim"), h.daemon.socket)
            h.relay.configure(socket=shim.path)
            upload(h, ARCS[0], 3)
            h.daemon.back_up()
            shim.save()
            for build in ARCS[1:10]:
                upload(h, build, 20)
            settle(h)
            h.daemon.restore(h.daemon.backups[0])
            shim.restore()
            for build in ARCS[10:14]:
                upload(h, build, 100)
            settle(h)
            lacks, doubled = judge(h, centre)
        finally:
            h.end()
    tap.point((lacks > 0, doubled > 0) == want,
              f"{what}, the host is restored: {lacks} calls are found lost, {doubled} doubled", (lacks, doubled))


def stackless(tap, mistake):
    """All calls arrive, and no stacks."""
    with Centre() as centre:
        h = quiet_host(centre)
        try:
            for build in ARCS[:5]:
                upload(h, build, 20, not mistake)
            settle(h)
            wrong = judge(h, centre)
            truth, got = stacks_of([h]), stacks(calls_of(centre))
        finally:
            h.end()
    lost = excess(truth, got)
    tap.point(wrong == (0, 0) and lost == (100 if mistake else 0) and not excess(got, truth),
              f"{'without' if mistake else 'with'} their stacks: no calls and {lost} ticks of stacks are found lost",
              (wrong, truth, got))


def main():
    with Tap() as tap:
        if why_not():
            tap.skip("the judge of a fleet", why_not())
            return
        stackless(tap, False)
        stackless(tap, True)
        early(tap, False)
        early(tap, True)
        rolled_back(tap, Keys, "numbered when opened, an epoch for each start", (False, False))
        rolled_back(tap, OneEpoch, "one epoch for ever", (True, False))
        rolled_back(tap, WhenSealed, "numbered when sealed", (False, True))


if __name__ == "__main__":
    main()
