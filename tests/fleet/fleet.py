#!/usr/bin/python3
"""Real programs only: N hosts with profd and profd-relay, TLS, profd-gate, and the profd of a centre. All are killed at
random points, while programs upload. Judge: what the programs counted = Σ of the hosts' reports = the centre's report,
for each build and arc; the ledgers of the hosts; verification on every database. Prints TAP.
fleet.py [N [SECONDS [SEED]]]"""
import os
import random
import signal
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import LONG, Daemon, Tap, until  # noqa: E402
from judge import calls_of, difference, sums  # noqa: E402
from relaying import Sender, equation  # noqa: E402
from tls_bed import Bed  # noqa: E402

ARCS = [f"{i:02x}" * 20 for i in range(1, 21)]  # builds with one arc each: a report's calls are those of an arc


class Host:
    def __init__(self, bed, number, seed):
        self.daemon = Daemon("--relay", f"tls://localhost:{bed.port}")
        self.relay = bed.relay(self.daemon, f"relay-{number}",
                               bed.authority.host(f"host-{number}.example", uuid.uuid4().int)).start()
        self.sender = Sender(self.daemon, random.Random(seed), ARCS, 1)
        self.sender.start()

    def ledger(self):
        return self.daemon.json("status", "--json")["store"]["relay"]

    def settled(self):
        """True when everything that the host accepted is acknowledged."""
        relay = self.ledger()
        return relay["acknowledged"]["uploads"] == relay["accepted"]["uploads"] == self.sender.uploads


def disturb(dice, bed, centre, hosts, kills):
    """Kills one process, or stops one for a moment, and starts it again."""
    which = dice.choice(("relay", "gate", "host", "centre"))
    host = dice.choice(hosts)
    kills[which] = kills.get(which, 0) + 1
    if which == "relay":
        host.relay.stop()
        host.relay.start()
    elif which == "gate":
        bed.gate.stop()
        bed.gate.start()
    else:
        d = host.daemon if which == "host" else centre
        d.stop(signal.SIGKILL)
        if dice.random() < 0.3:
            time.sleep(dice.random())
        d.start()


def campaign(tap, count, seconds, seed):
    dice, kills = random.Random(seed), {}
    with Daemon("--gate", "--relay-interval", "1s") as centre, Bed(centre.socket) as bed:
        if not tap.point(bed.start(), "profd-gate listens", bed.gate.logged()):
            return
        hosts = [Host(bed, i, seed + i) for i in range(count)]
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end or len(kills) < 4:
                time.sleep(dice.random() * 0.4)
                disturb(dice, bed, centre, hosts, kills)
            for h in hosts:
                h.sender.ended = True
            for h in hosts:
                h.sender.join(LONG)
            tap.point(until(lambda: all(h.settled() for h in hosts)), "every host's segments are acknowledged",
                      [(h.ledger(), h.relay.logged()[-500:]) for h in hosts if not h.settled()])
            judge(tap, centre, hosts, kills, seed)
        finally:
            for h in hosts:
                h.sender.ended = True
                h.relay.stop()
                h.daemon.stop()


def judge(tap, centre, hosts, kills, seed):
    truth = {}
    for h in hosts:
        for (build, _), n in h.sender.sent.items():
            truth[build] = truth.get(build, 0) + n
    daemons = [h.daemon for h in hosts]
    want, got = sums(*daemons), calls_of(centre)
    uploads = sum(h.sender.uploads for h in hosts)
    status = centre.json("status", "--json")["store"]["centre"]
    tap.point(truth == {k: v[0] for k, v in got.items()} and want == got,
              f"{len(hosts)} hosts, seed {seed}, kills {kills}: programs = hosts = centre, by arc",
              (difference(want, got), difference(truth, {k: v[0] for k, v in got.items()})))
    tap.point(status["counted"]["uploads"] == uploads and status["hosts"] == len(hosts) and not status["quarantined"],
              f"uploads {uploads}, segments {status['segments']}, repeats since the last start {status['repeats']}: "
              "none lost, none doubled", status)
    tap.point(all(equation(h.ledger()) for h in hosts), "the ledgers of the hosts agree")
    said = [d.ctl("verify") for d in (*daemons, centre)]
    tap.point(all(x.returncode == 0 for x in said), "verification finds nothing", [x.stdout for x in said])


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)
    with Tap() as tap:
        campaign(tap, count, seconds, seed)


main()
