# not a test
"""Programs of an earlier version at either end. The centre is updated first: a host that is newer than the centre keeps
everything and says why, until the centre has been updated. A program of the earlier version does not touch the database
of a newer one, or reads it as it is."""
from bed import (ARCS, GATE, PROFD, Bed, Host, Machine, calls, calls_of, certificate, difference, sums, truth_of,
                 until)


def old_centre(tap, old):
    """True if hosts of this version can send to a centre of the earlier one."""
    with Machine("--gate", "--relay-interval", "1s", programs=old) as centre, Bed(centre.socket) as bed:
        bed.gate.program = old.gate
        bed.start()
        h = Host(bed, "newer", certificate(bed, "newer.example"), 0, builds=ARCS, pause=0.02, rate=0)
        try:
            until(lambda: h.sender.uploads > 50)
            works = h.flush() == 0
            said = h.daemon.ctl("status").stdout
            if not works:
                tap.point("the centre reads version" in said and h.ledger()["acknowledged"]["uploads"] == 0
                          and not calls_of(centre), "an earlier centre: the host keeps everything, and says why", said)
            centre.stop()
            bed.gate.stop()
            until(lambda: not bed.reaches())
            bed.gate.program, centre.program = GATE, PROFD
            bed.start()
            centre.start()
            h.sender.ended = True
            h.sender.join()
            done = until(lambda: h.flush() == 0 and h.settled())
            truth = truth_of([h])
            tap.point(done and truth == calls(calls_of(centre)) == calls(sums(h.daemon)),
                      "the centre is updated: it gets everything, once",
                      (h.relay.logged()[-300:], centre.logged()[-300:]))
            downgrade(tap, old, (centre, h.daemon))
        finally:
            h.end()
    return works


def downgrade(tap, old, machines):
    for what, m in zip(("centre", "host"), machines):
        before, ok = calls_of(m), False
        m.stop()
        m.program = old.profd
        try:
            m.start()
            got = calls_of(m)
            ok, said = got == before, f"it reads it as it is {difference(before, got)}"
        except RuntimeError as e:
            said = str(e).strip().splitlines()[-1][-160:]
            ok = "newer" in said or "version" in said
        m.stop()
        m.program = PROFD
        m.start()
        tap.point(ok and calls_of(m) == before, f"the earlier profd on the {what}'s database: {said}", said)
