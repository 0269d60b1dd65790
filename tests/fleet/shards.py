#!/usr/bin/python3
"""A centre in ClickHouse on two shards: two daemons take segments, each behind a gate of its own, and a third answers.
The hosts' relays reach the gates through proxies, which choose a gate for each connection and disturb every second one.
Shards, daemons, gates, hosts and relays are killed while programs upload for hours that are over, so that some are
rolled up meanwhile. Judge: what the programs counted = Σ of the hosts' reports = the report of each daemon, by build
and arc; the ledgers; verification. Prints TAP. shards.py [hosts=3] [kills=3] [seed=1]: so many kills of shards, as
many of the daemons that take segments, and a quarter as many of gates, of hosts and of relays."""
import contextlib
import random
import sys
import time
from collections import Counter

from bed import (ARCS, PROFCTL, Bed, Daemon, Host, Machine, Servers, Tap, calls_of, certificate, difference, run,
                 until)
from clickhouse_bed import PROGRAM
from kills import judge, judge_stacks, restart, restart_gate, settle

HOUR = 3600
HOURS, EACH = 5, 40  # programs upload for one of so many hours, and after EACH seconds for the next
CLUSTER = {"cluster": "shards"}


class Course:
    """What is killed: [(what, act)], in an order that follows from the seed."""

    def __init__(self, seed, count, takers, beds, servers, hosts):
        self.dice = random.Random(f"{seed}/course")
        self.began, self.kills, self.waited = time.monotonic(), Counter(), 0.0
        some = max(1, count // 4)
        targets = {"shard": [lambda s=s: restart(s) for s in servers],
                   "daemon": [t.kill for t in takers],
                   "gate": [lambda b=b: restart_gate(b) for b in beds],
                   "host": [h.daemon.kill for h in hosts],
                   "relay": [lambda h=h: restart(h.relay) for h in hosts]}
        names = ["shard", "daemon"] * count + ["gate", "host", "relay"] * some
        self.dice.shuffle(names)
        self.plan = [(name, self.dice.choice(targets[name])) for name in names]

    def end(self):
        """When an upload that is made now shall have ended."""
        now = time.time()
        at = int(time.monotonic() - self.began) // EACH % HOURS
        return now // HOUR * HOUR - (at + 1) * HOUR + now % 60

    def run(self, hosts):
        """Each kill comes while segments are under way: some were acknowledged since the one before."""
        for name, act in self.plan:
            before = acknowledged(hosts)
            until(lambda: acknowledged(hosts) > before)
            time.sleep(self.dice.random() * 0.5)
            act()
            self.kills[name] += 1


def acknowledged(hosts):
    """Uploads of which hosts know that they are at the centre."""
    return sum(h.ledger()["acknowledged"]["uploads"] for h in hosts)


def campaign(tap, servers, hosts, takers, beds, reader, count, seed):
    course = Course(seed, count, takers, beds, servers.servers, hosts)
    for h in hosts:
        h.sender.end = course.end
        h.proxy.targets = [b.port for b in beds]
        h.relay.start()
        h.sender.start()
    course.run(hosts)
    faults = sum((h.proxy.counts for h in hosts), Counter())
    settle(tap, hosts)
    hours = servers.servers[0].query("SELECT uniqExact(series, hour) FROM profd.rollup").strip()
    judge(tap, takers[0], hosts, f"{len(hosts)} hosts, seed {seed}, {time.monotonic() - course.began:.0f} s: kills "
          f"{sum(course.kills.values())} {dict(sorted(course.kills.items()))}, {dict(sorted(faults.items()))}, "
          f"hours rolled up {hours}")
    judge_stacks(tap, reader, hosts, "")
    want, got = calls_of(takers[0]), [calls_of(d) for d in (takers[1], reader)]
    tap.point(all(x == want for x in got), "the other daemon that takes segments says the same, and so does the reader",
              [difference(want, x) for x in got])


def main():
    wishes = {"hosts": 3, "kills": 3, "seed": 1, **{k: int(v) for k, _, v in (a.partition("=") for a in sys.argv[1:])}}
    with Tap() as tap, contextlib.ExitStack() as stack:
        print(f"# seed={wishes['seed']}", flush=True)
        if not PROGRAM:
            tap.skip("servers of ClickHouse", "clickhouse-server is not installed")
            return
        enter = stack.enter_context
        servers = enter(Servers(2))
        url = servers.url("profd", **CLUSTER)
        done = run(PROFCTL, "clickhouse", "init", url)
        tap.point(done.returncode == 0, "ClickHouse has the tables", done)
        takers = [enter(Machine("--gate", "--relay-interval", "1s", "--store", url)) for _ in range(2)]
        reader = enter(Daemon("--store", url))
        beds = [enter(Bed(takers[0].socket))]
        beds.append(enter(Bed(takers[1].socket, authority=beds[0].authority)))
        tap.point(all([b.start() for b in beds]), "two gates listen", [b.gate.logged() for b in beds])
        hosts = []
        for i in range(wishes["hosts"]):
            hosts.append(Host(beds[0], f"host-{i}", certificate(beds[0], f"host-{i}.example"), wishes["seed"] + i,
                              pause=0.05, builds=ARCS[:6], start=False))
            stack.callback(hosts[-1].end)
        campaign(tap, servers, hosts, takers, beds, reader, wishes["kills"], wishes["seed"])


if __name__ == "__main__":
    main()
