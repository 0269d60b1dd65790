"""Certificates and time: renewal at two thirds, what an expired certificate may do, a host or a site whose clock is
wrong, a CA that has expired, and a clone. Clocks are moved by libfaketime."""
import os
import shutil
import tempfile
import time

from clocks import FAKETIME, clock, moved_as
from enrol_bed import ARRIVE, DAY, PROFCTL, Fleet, check
from harness import LONG, Daemon, Tap, run, until
from tls_bed import Bed, openssl
from wire import field

WRONG = ("@1970-01-02 00:00:00", "@2038-01-20 00:00:00", "@2099-06-01 00:00:00")


def certificate(fleet, name):
    return openssl("x509", "-in", fleet.host(name, "relay.crt"), "-noout", "-serial", "-pubkey", "-enddate")


def renews_in_time(tap, fleet):
    """One host, through a month of which the two machines know by their clocks alone."""
    fleet.enroll("web-1", fleet.token())
    first = certificate(fleet, "web-1")
    with fleet.daemon() as d:
        fleet.sends(d, "web-1")
        fleet.move(19 * DAY)
        until(lambda: fleet.flush(d, "web-1", clock(19 * DAY)).returncode == 0)
        check(tap, "19 days old, a certificate of 30 days is not renewed", certificate(fleet, "web-1") == first)
        fleet.move(21 * DAY)
        until(lambda: fleet.flush(d, "web-1", clock(21 * DAY)).returncode == 0)
        second = certificate(fleet, "web-1")
        end = fleet.hosts()["web-1"]["certificate_end"]
        key = lambda text: text[text.index("-----BEGIN"):text.index("-----END")]
        check(tap, "21 days old, it is, for the same key; hosts has its end", second.split()[0] != first.split()[0] and
              key(second) == key(first) and os.stat(fleet.host("web-1", "relay.crt")).st_mode & 0o777 == 0o644 and
              openssl("x509", "-in", fleet.host("web-1", "relay.crt"), "-noout", "-checkend",
                      str(50 * DAY)).strip() == "Certificate will not expire", (first, second, end))
        check(tap, "and the host sends with it", fleet.sends(d, "web-1", clock(21 * DAY)))


def renews_late(tap, fleet):
    fleet.move(99 * DAY)
    with fleet.daemon() as d:
        before = fleet.counted()
        arrived, enrolled = fleet.arrive("web-1"), fleet.ask("web-1", "ENROLL", field(1, b"x") + field(4, "x"))
        delivered = fleet.ask("web-1", "DELIVER", field(2, b"e" * 12) + field(3, 1) + field(4, b"x"))
        check(tap, "an enrolled key whose certificate has expired may only renew it",
              all("may only send RENEW" in a for a in (arrived, enrolled, delivered)) and fleet.counted() == before,
              (arrived, enrolled, delivered))
        before = certificate(fleet, "web-1")
        check(tap, "it renews it, and sends again", fleet.sends(d, "web-1", clock(99 * DAY)) and
              certificate(fleet, "web-1") != before)
    fleet.enroll("gone", fleet.token())
    fleet.profctl("hosts", "revoke", "gone")
    fleet.move(199 * DAY)
    check(tap, "an expired and revoked one may not", *fleet.refuses_revoked("gone"))


def expires_while_connected(tap, fleet):
    """By the gate's clock, a certificate of now is valid for some seconds more."""
    fleet.enroll("brief", fleet.token())
    fleet.gate.stop()
    until(lambda: not fleet.reaches())
    fleet.gate.start(env=clock(30 * DAY - 6))
    until(fleet.reaches)
    answers = []

    def lives():
        with fleet.wire("brief") as w:
            w.send("RENEW", field(3, "1"))
            answers.append(w.take())
            if not answers[-1] or answers[-1][0] != "ENROLLED":
                return False
            with open(fleet.host("brief", "relay.crt"), "wb") as f:
                f.write(answers[-1][3][1])
        with fleet.wire("brief") as w:
            w.send("ARRIVE", ARRIVE)
            answers.append(w.take())
            while answers[-1] and answers[-1][0] in ("ADMIT", "ACKNOWLEDGE"):
                time.sleep(0.3)
                w.send("DELIVER", field(2, b"brief-lived!") + field(3, len(answers)) + field(4, b"no segment"))
                answers.append(w.take())
        return "since this connection began" in str(answers[-1])
    check(tap, "a certificate that expires while the host is connected: what follows is refused", until(lives) and
          any(a[0] == "ACKNOWLEDGE" for a in answers if a), answers)
    fleet.move(0)


def other_clocks(tap, fleet):
    """profd's own CA: the host's clock decides nothing."""
    token = fleet.token("--uses", "9")
    for when in WRONG:
        name = "at-" + when[1:5]
        done = fleet.enroll(name, token, env=clock(when))
        with fleet.daemon() as d:
            sent = fleet.sends(d, name, clock(when))
        check(tap, f"a host whose clock says {when[1:11]} enrols and sends, under profd's own CA", done.returncode == 0
              and sent, done.stderr)


def site_clocks(tap):
    """A site's PKI: the dates of the centre's certificate count, by the host's clock."""
    with Daemon("--gate") as centre, Bed(centre.socket) as bed, Daemon("--relay", f"tls://localhost:{bed.port}") as d:
        bed.start()
        r = bed.relay(d, "relay", bed.authority.host("site.example"))
        flush = lambda env=None: run(r.program, "--config", r.file, "--once", timeout=LONG, env=env)
        check(tap, "under a site's PKI, a host sends", until(lambda: flush().returncode == 0))
        for when, words in zip(WRONG, ("not yet valid", "has expired", "has expired")):
            done = flush(clock(when))
            check(tap, f"one whose clock says {when[1:11]} does not accept the centre's certificate, and says why",
                  done.returncode == 77 and words in done.stderr, done.stderr)


def expired_authorities(tap, fleet):
    fleet.enroll("old", fleet.token())
    fleet.move(3651 * DAY)
    answer = fleet.ask("old", "HELLO", field(1, 1))
    token = fleet.token()
    with fleet.daemon() as d:
        late = fleet.flush(d, "old", clock(3651 * DAY))
    check(tap, "ten years later the CA has expired: a host is refused and says that a certificate has",
          late.returncode != 0 and "expired" in late.stderr and "ADMIT" not in answer, (late.stderr, answer))
    done = fleet.enroll("young", token)
    check(tap, "nothing is signed with it, and the sentence says what to do", done.returncode != 0 and
          "ca roll" in done.stderr, done.stderr)
    rolled = run(PROFCTL, "ca", "roll", "--dir", fleet.ca, env=clock(3651 * DAY))
    done = until(lambda: (e := fleet.enroll("young", token)).returncode == 0 and e)
    check(tap, "after ca roll, hosts enrol again", rolled.returncode == 0 and done and done.returncode == 0,
          rolled.stderr)


def clones(tap, fleet):
    """A copy of a host's disk runs beside it, with the same machine-id."""
    fleet.enroll("original", fleet.token())
    shutil.copytree(fleet.host("original"), fleet.host("copy"))
    file = os.path.join(fleet.folder, "ahead")
    open(file, "w").write("+0")
    with fleet.daemon(start=False) as a, fleet.daemon() as b:
        a.env.update(moved_as(file))
        a.start()
        fleet.sends(a, "original")
        fleet.sends(b, "copy")
        once = fleet.hosts()["original"]
        fleet.move(DAY)
        with open(file, "w") as f:
            f.write(f"+{DAY}")
        fleet.sends(a, "original", clock(DAY))
        row = fleet.hosts()["original"]
    check(tap, "a clone with the same machine-id is shown: two machines ran at a time", not once["two_machines"] and
          row["two_machines"] and row["two_machines_seen"] > once["last_seen"], (once, row))


def main():
    folder = tempfile.mkdtemp(prefix="profd-enrol-")
    try:
        with Tap() as tap:
            if not FAKETIME:
                tap.skip("certificates and time", "libfaketime is not installed")
                return
            with Fleet(os.path.join(folder, "month")) as fleet:
                renews_in_time(tap, fleet)
                renews_late(tap, fleet)
            with Fleet(os.path.join(folder, "clocks")) as fleet:
                expires_while_connected(tap, fleet)
                other_clocks(tap, fleet)
                clones(tap, fleet)
                expired_authorities(tap, fleet)
            site_clocks(tap)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
