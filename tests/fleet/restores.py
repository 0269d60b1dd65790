# not a test
"""A host, the centre, or both are restored from backups that were made at random moments. What a host has is at the
centre, except for what its live processes counted while the centre could have it already; nothing is there twice; and
where something that a program counted is not at the centre, the centre's report says so."""
import json
import random
import time
from collections import Counter

from bed import ARCS, LONG, MARKS, Centre, Host, calls, calls_of, equation, excess, sums, truth_of, until
from wire import Wire

STEPS = 12


def reasons_of(d, build):
    with Wire(d.socket) as w:
        status, data = w.query(f"/api/v1/builds/{build}/report")
    return set(json.loads(data)["provenance"]["inexact_reasons"]) if status == 200 else set()


def unmarked(truth, centre, hosts):
    """Builds of which the centre has less than the programs counted, and whose report does not say so. Of a program
    that the centre does not know there is no report: those of the host's other programs must say it."""
    got, out = calls(calls_of(centre)), {}
    for h in hosts:
        known = [b for b in h.builds if b in got]
        lacks = {b: (truth[b], got.get(b, 0)) for b in h.builds if got.get(b, 0) < truth.get(b, 0)}
        asked = known if set(lacks) - set(known) else lacks
        if any(not reasons_of(centre, b) & MARKS for b in asked):
            out.update(lacks)
    return out


class Round:
    """A fleet of two hosts, of which each has its own programs, and a process that lives all the time."""

    def __init__(self, seed):
        self.dice, self.counts = random.Random(seed), Counter()
        self.centre, self.hosts = Centre(seed, rate=0.3), []
        for i in range(2):
            self.hosts.append(Host(self.centre, f"host-{i}", f"{seed}/{i}", builds=ARCS[10 * i:10 * i + 9],
                                   live=ARCS[10 * i + 9:10 * i + 10], pause=0.02))

    def step(self):
        h = self.dice.choice(self.hosts)
        act = self.dice.choice((h.flush, h.flush, h.flush, h.daemon.back_up, self.centre.back_up, h.daemon.kill,
                                self.centre.kill, lambda: time.sleep(self.dice.random())))
        act()

    def restore(self, kind):
        machines = [self.centre] if kind in ("centre", "both") else []
        if kind in ("host", "both"):
            machines.append(self.dice.choice(self.hosts).daemon)
        for m in machines:
            m.restore(self.dice.choice(m.backups))

    def run(self, kind):
        for m in (self.centre, *(h.daemon for h in self.hosts)):
            m.back_up()
        for _ in range(self.dice.randrange(STEPS)):
            self.step()
        self.restore(kind)
        for _ in range(self.dice.randrange(STEPS)):
            self.step()
        self.centre.between.rate = 0
        for h in self.hosts:
            h.sender.ended = True
            h.proxy.rate = 0
        for h in self.hosts:
            h.sender.join(LONG)
            h.end_live()
        return until(lambda: all(h.flush() == 0 and h.settled() for h in self.hosts))

    def judge(self, kind):
        """What is wrong, in words."""
        truth, hosts = truth_of(self.hosts), calls(sums(*(h.daemon for h in self.hosts)))
        reports, out = calls_of(self.centre), []
        centre = calls(reports)
        lost, doubled = excess(truth, centre), excess(centre, truth)
        self.counts.update(calls=sum(truth.values()), lost=lost, doubled=doubled, on_hosts=excess(truth, hosts))
        if doubled or excess(hosts, truth):
            out.append(f"{doubled} calls are doubled")
        live = set() if kind == "centre" else {b for h in self.hosts for b in h.counted}
        lacks = excess({b: n for b, n in hosts.items() if b not in live}, centre)
        if lacks:
            out.append(f"{lacks} calls of the hosts are not at the centre")
        if kind == "centre" and lost:
            out.append(f"{lost} calls are lost though no host was restored")
        living = {b for h in self.hosts for b in h.counted}
        apart = {b: n for b, n in reports.items() if b not in living and n[2] != n[0]}
        self.counts["stacks"] += sum(n[2] for n in reports.values())
        if apart:
            out.append(f"each call has a tick with a stack, but of calls and stacks there are {apart}")
        silent = unmarked(truth, self.centre, self.hosts)
        self.counts["unmarked"] += sum(a - b for a, b in silent.values())
        if silent:
            out.append(f"the loss is not marked: {silent}")
        if not all(equation(h.ledger()) for h in self.hosts):
            out.append("a ledger does not agree")
        out += [v.stdout for v in (m.ctl("verify") for m in (self.centre, *(h.daemon for h in self.hosts)))
                if v.returncode]
        return out

    def end(self):
        for h in self.hosts:
            h.end()
        self.centre.__exit__()


def restores(tap, number, seed):
    began = time.monotonic()
    counts, done, wrong = Counter(), Counter(), []
    for i in range(number):
        kind = ("host", "centre", "both")[i % 3]
        r = Round(f"{seed}/{i}")
        try:
            settled = r.run(kind)
            faults = r.judge(kind) if settled else ["segments are not acknowledged"]
        finally:
            r.end()
        wrong += [f"round {i} ({kind}): {f}" for f in faults]
        counts.update(r.counts)
        done[kind] += 1
        done["backups"] += sum(len(m.backups) for m in (r.centre, *(h.daemon for h in r.hosts)))
        if faults:
            print(f"# round {i}, {kind}: {faults}", flush=True)
    if number:
        tap.point(not wrong, f"restores {number}, seed {seed}, {time.monotonic() - began:.0f} s: "
                  f"{dict(sorted(done.items()))}, calls {counts['calls']}, ticks with a stack {counts['stacks']}, "
                  f"doubled {counts['doubled']}, lost with a host's timeline {counts['lost']}, of these unmarked "
                  f"{counts['unmarked']}", "\n".join(wrong))
