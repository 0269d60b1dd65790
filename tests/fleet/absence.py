# not a test
"""Hosts that cannot reach the centre for more than a week, by their own clocks (libfaketime), while programs upload and
the host is killed. Afterwards everything is at the centre, and in the hour in which it was counted."""
import json
import random
import time
from collections import Counter

from bed import Centre, Host, equation, until
from clocks import FAKETIME
from relaying import body
from segment import HOUR
from wire import Wire, sender_number

STEPS = 12
EACH = 50  # absences with one centre


def calls_in(d, build, hour):
    """Calls, and ticks that have a stack, of a report that is narrowed to an hour; 0 if there is nothing."""
    stamp = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(h * 3600)) for h in (hour, hour + 1)]
    with Wire(d.socket) as w:
        status, data = w.query(f"/api/v1/builds/{build}/report?since={stamp[0]}&until={stamp[1]}")
    report = json.loads(data) if status == 200 else {"totals": {"calls": 0}}
    return report["totals"]["calls"], report.get("stacks", {}).get("count", 0)


class Absent:
    """One host, and its absence."""

    def __init__(self, centre, number, seed):
        self.dice, self.truth, self.uploads, self.kills = random.Random(seed), Counter(), 0, 0
        self.builds = [f"{2 * number + i + 1:04x}" * 10 for i in range(2)]
        self.begin = -self.dice.randrange(7 * 24 + 1, 21 * 24)  # hours
        self.host = None
        self.centre, self.name, self.seed = centre, f"absent-{number}", seed

    def set_clock(self, path, hours):
        """To the middle of an hour that lies so many hours before or behind now; 0: the true time."""
        now = time.time()
        with open(path, "w") as f:
            f.write("+0" if hours == 0 else f"{int(hours * 3600 + 1800 - now % 3600):+d}")
        return int(now // 3600) + hours

    def run(self, path):
        sender, sequence = sender_number(), 0
        self.set_clock(path, self.begin)
        self.host = h = Host(self.centre, self.name, self.seed, builds=(), clock=path)
        h.proxy.refuses = True
        for hours in sorted(self.dice.sample(range(self.begin, 0), STEPS)):
            hour = self.set_clock(path, hours)
            if self.dice.random() < 0.2:
                h.daemon.kill()
                self.kills += 1
            for _ in range(self.dice.randrange(1, 5)):
                sequence += 1
                build, calls = self.dice.choice(self.builds), self.dice.randrange(1, 1000)
                with Wire(h.daemon.socket) as w:
                    w.send("UPLOAD", body(sender, sequence, build, 0, calls))
                    while w.take()[0] != "ACK":
                        pass
                self.truth[build, hour] += calls
                self.uploads += 1
            if self.dice.random() < 0.2:
                h.flush()
        self.set_clock(path, 0)
        h.proxy.refuses = False
        return until(lambda: h.flush() == 0 and h.settled())

    def judge(self, centre):
        out = []
        for (build, hour), n in self.truth.items():
            got = calls_in(self.host.daemon, build, hour), calls_in(centre, build, hour)
            if got != ((n, n), (n, n)):
                out.append(f"{build} in hour {hour}: {n} calls and as many ticks with a stack were made; the host says "
                           f"{got[0]}, the centre {got[1]}")
        for build in self.builds:
            total = sum(n for (b, _), n in self.truth.items() if b == build)
            with Wire(centre.socket) as w:
                status, data = w.query(f"/api/v1/builds/{build}/report")
            got = json.loads(data)["totals"]["calls"] if status == 200 else 0
            if got != total:
                out.append(f"{build}: {total} calls were made, the centre says {got}")
        if not equation(self.host.ledger()) or self.host.daemon.ctl("verify").returncode:
            out.append(f"{self.name}: the ledger does not agree")
        return out


def batch(numbers, seed, counts, wrong):
    with Centre(seed, rate=0.3) as centre:
        for i in numbers:
            a = Absent(centre, i, f"{seed}/{i}")
            try:
                settled = a.run(f"{centre.folder}/clock-{i}")
                wrong += a.judge(centre) if settled else [f"{a.name}: not acknowledged: {a.host.relay.logged()[-300:]}"]
                counts.update(hours=len(a.truth), uploads=a.uploads, kills=a.kills, days=-a.begin // 24,
                              refused=a.host.proxy.counts["refused"])
            finally:
                if a.host:
                    a.host.end()
        if centre.ctl("verify").returncode:
            wrong.append("verification of the centre finds something")


def absences(tap, number, seed):
    began, counts, wrong = time.monotonic(), Counter(), []
    if number and not FAKETIME:
        tap.skip("absences", "libfaketime is not installed")
        return
    for first in range(0, number, EACH):
        batch(range(first, min(number, first + EACH)), seed, counts, wrong)
    if number:
        took = time.monotonic() - began
        tap.point(not wrong, f"absences {number}, seed {seed}, {took:.0f} s: {counts['days']} days, "
                  f"{counts['uploads']} uploads, {counts['kills']} kills, {counts['refused']} refused connections; "
                  f"{counts['hours']} sums of a program and hour: exact, in the right hours", "\n".join(wrong))
