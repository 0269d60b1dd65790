# not a test
"""Host, relay, nginx and centre are killed while programs upload. Every second connection to nginx is disturbed, and
every third request behind it."""
import random
import threading
import time
from collections import Counter

from bed import (LONG, Centre, Host, calls, calls_of, difference, equation, excess, stacks, stacks_of, sums, truth_of,
                 until)

PARTITION = 2.0  # seconds at most
HOSTS_EACH = 5   # of a thread that kills


class Killer(threading.Thread):
    """Kills these targets until there were so many kills: (what, kill, place in the fleet that it holds meanwhile)."""

    def __init__(self, targets, count, seed, partition):
        super().__init__(daemon=True)
        self.targets, self.count, self.dice, self.partition = targets, count, random.Random(seed), partition
        self.kills, self.error = Counter(), None

    def run(self):
        try:
            while sum(self.kills.values()) < self.count:
                time.sleep(self.dice.random() * 0.2)
                what, kill = self.dice.choice(self.targets)
                kill()
                self.kills[what] += 1
                if self.dice.random() < 0.1:
                    self.partition(self.dice)
        except Exception as e:  # the judge tells
            self.error = e


def restart(service):
    service.stop()
    service.start()


def split(hosts):
    """A partition of some hosts from the centre."""
    def act(dice):
        some = dice.sample(hosts, dice.randrange(1, len(hosts) + 1))
        for h in some:
            h.proxy.partition(True)
        time.sleep(dice.random() * PARTITION)
        for h in some:
            h.proxy.partition(False)
    return act


def kills(tap, count, number, seed):
    if not number:
        return
    with Centre(seed, rate=0.3) as centre:
        hosts = [Host(centre, f"host-{i}", seed + i, pause=0.02) for i in range(count)]
        try:
            for h in hosts:
                h.relay.start()
            trouble(tap, centre, hosts, number, seed)
            judge_stacks(tap, centre, hosts)
        finally:
            for h in hosts:
                h.end()


def trouble(tap, centre, hosts, number, seed):
    began, repeats = time.monotonic(), Counter()

    def kill_centre():
        repeats["n"] += (centre.json("status", "--json")["store"]["centre"] or {"repeats": 0})["repeats"]
        centre.kill()

    of_centre = [("nginx", centre.restart_proxy), ("centre", kill_centre)]
    groups = max(1, len(hosts) // HOSTS_EACH)
    counts = [number // 3] + [(number - number // 3 + i) // groups for i in range(groups)]
    killers = [Killer(of_centre, counts[0], f"{seed}/centre", lambda dice: None)]
    for i in range(groups):
        some = hosts[i::groups]
        targets = [(k, act) for h in some
                   for k, act in (("host", h.daemon.kill), ("relay", lambda h=h: restart(h.relay)))]
        killers.append(Killer(targets, counts[i + 1], f"{seed}/hosts/{i}", split(some)))
    for k in killers:
        k.start()
    for k in killers:
        k.join()
    errors = [k.error for k in killers if k.error]
    tap.point(not errors and centre.proxy.process.poll() is None, "every process starts again",
              errors or centre.proxy.logged()[-1000:])
    done = sum((k.kills for k in killers), Counter())
    faults = sum((h.proxy.counts for h in hosts), Counter(centre.between.counts))
    settle(tap, centre, hosts)
    repeats["n"] += centre.json("status", "--json")["store"]["centre"]["repeats"]
    judge(tap, centre, hosts, f"{len(hosts)} hosts, seed {seed}, {time.monotonic() - began:.0f} s: "
          f"kills {sum(done.values())} {dict(sorted(done.items()))}, {dict(sorted(faults.items()))}, "
          f"segments sent again {repeats['n']}")


def settle(tap, centre, hosts):
    """Uploads and disturbances end, and all segments arrive."""
    centre.between.rate = 0
    for h in hosts:
        h.sender.ended = True
        h.proxy.rate = 0
    for h in hosts:
        h.sender.join(LONG)

    def settled():
        late = [h for h in hosts if not h.settled()]
        for h in late:
            h.relay.hurry()
        time.sleep(1 if late else 0)
        return not late
    tap.point(until(settled), "every host's segments are acknowledged",
              [(h.ledger(), h.relay.logged()[-500:]) for h in hosts if not h.settled()])


def judge_stacks(tap, centre, hosts):
    truth, there, got = stacks_of(hosts), stacks(sums(*(h.daemon for h in hosts))), stacks(calls_of(centre))
    tap.point(truth == there == got and truth,
              f"stacks: ticks {sum(truth.values())}, lost {excess(truth, got)}, doubled {excess(got, truth)}: "
              f"programs = hosts = centre, by path", (difference(there, got), difference(truth, got)))


def judge(tap, centre, hosts, what):
    truth, daemons = truth_of(hosts), [h.daemon for h in hosts]
    want, got = sums(*daemons), calls_of(centre)
    uploads = sum(h.sender.uploads for h in hosts)
    status = centre.json("status", "--json")["store"]["centre"]
    tap.point(truth == calls(got) and want == got,
              f"{what}: calls {sum(truth.values())}, lost {excess(truth, calls(got))}, "
              f"doubled {excess(calls(got), truth)}: programs = hosts = centre, by arc",
              (difference(want, got), difference(truth, calls(got))))
    tap.point(status["counted"]["uploads"] == uploads and status["hosts"] == len(hosts) and not status["quarantined"],
              f"uploads {uploads}, received by the last centre {status['received'] or 'not counted'}", status)
    tap.point(all(equation(h.ledger()) for h in hosts), "the ledgers of the hosts agree")
    said = [d.ctl("verify") for d in (*daemons, centre)]
    tap.point(all(x.returncode == 0 for x in said), "verification finds nothing", [x.stdout for x in said])
