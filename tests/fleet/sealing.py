# not a test
"""A centre whose past days are in ClickHouse, on two shards. Hosts that were cut off for one to three weeks of their
clocks deliver, while the centre, one server and all servers are killed at random moments: days are sealed, read, and
get late uploads. Every hour of every program must have what was counted in it, at the host and at the centre; where it
has not, the report must say so."""
import json
import random
import signal
import threading
import time
from collections import Counter

from absence import Absent, calls_in
from bed import MARKS, Centre, until
from clocks import FAKETIME
from tier_bed import Fleet, Old
from wire import Wire

SHARDS, HOSTS_LEAST = 2, 3
EACH = 40  # kills with one centre
LATER = 3 * 86400  # seconds: by then every day may have another block


class Mortal(Centre):
    """A centre that is not killed while it makes a token: hosts would wait for the token for ever."""

    def __init__(self, *a, **more):
        self.busy = threading.Lock()
        super().__init__(*a, **more)

    def token(self, *a):
        with self.busy:
            return super().token(*a)


class Killer(threading.Thread):
    """Kills until there were so many kills."""

    def __init__(self, centre, engine, number, seed):
        super().__init__(daemon=True)
        self.centre, self.engine, self.number, self.dice = centre, engine, number, random.Random(f"{seed}/tier")
        self.kills, self.seen, self.error = Counter(), Counter(), None

    def victims(self):
        one = self.dice.choice(self.engine.servers)
        return self.dice.choice((("centre", [self.centre]), ("server", [one]), ("all servers", self.engine.servers),
                                 ("centre and server", [self.centre, one])))

    def run(self):
        try:
            while sum(self.kills.values()) < self.number:
                time.sleep(self.dice.random())
                what, victims = self.victims()
                with self.centre.busy:
                    for v in victims:
                        v.stop(signal.SIGKILL)
                    time.sleep(self.dice.random() * 0.3)
                    for v in victims:
                        v.start()
                self.kills[what] += 1
                self.seen[tier_of(self.centre)["days_sealed"]] += 1
        except Exception as e:  # the judge tells
            self.error = e


def tier_of(centre):
    return centre.json("status", "--json")["store"]["tier"]


def sealed(centre):
    """Every day was moved, also what came after its day had been."""
    return is_well(centre) and tier_of(centre)["days_waiting"] == 0


def is_well(centre):
    return tier_of(centre)["days_sealed"] and tier_of(centre)["error"] is None


def is_silent(centre, build, hour):
    """A report of the hour is answered, and does not say that something of hosts is missing."""
    stamp = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(h * 3600)) for h in (hour, hour + 1)]
    with Wire(centre.socket) as w:
        status, data = w.query(f"/api/v1/builds/{build}/report?since={stamp[0]}&until={stamp[1]}")
    return status == 200 and not set(json.loads(data)["provenance"]["inexact_reasons"]) & MARKS


def judge(centre, absent, counts):
    """What is wrong, in words. A report that is refused counts as a loss that is said."""
    out = []
    for a in absent:
        for (build, hour), n in a.truth.items():
            got = calls_in(centre, build, hour)[0]
            counts.update(calls=n, lost=max(0, n - got), doubled=max(0, got - n), hours=1)
            if got != n:
                counts["unmarked"] += max(0, n - got) * is_silent(centre, build, hour)
                out.append(f"{build} in hour {hour}: {n} calls were made, the centre says {got}")
        out += a.judge(centre)
    done = centre.ctl("verify")
    return out + ([] if done.returncode == 0 else ["verification of the centre: " + done.stdout])


def deliver(centre, seed, killer, absent, wrong):
    """Hosts deliver one after the other, until there were enough kills."""
    while len(absent) < HOSTS_LEAST or killer.is_alive():
        a = Absent(centre, len(absent), f"{seed}/{len(absent)}")
        absent.append(a)
        if not a.run(f"{centre.folder}/clock-{len(absent)}"):
            wrong.append(f"{a.name}: not acknowledged: {a.host.relay.logged()[-300:]}")
    killer.join()


def sealings(tap, number, seed):
    why = Old.why_not or ("" if FAKETIME else "libfaketime is not installed")
    if number and why:
        tap.skip("a centre with ClickHouse", why)
        return
    for i, first in enumerate(range(0, number, EACH)):
        one(tap, min(EACH, number - first), f"{seed}/{i}")


def one(tap, number, seed):
    """These kills, with a centre and servers of their own."""
    began, wrong, absent = time.monotonic(), [], []
    with Fleet(SHARDS) as engine:
        ahead = engine.servers[0].folder + "/ahead"
        set_clock(ahead, 0)
        with Mortal(seed, options=("--raw-age", "1s", "--tier", engine.url()), clock=ahead) as centre:
            done = centre.ctl("tier", "init")
            tap.point(done.returncode == 0, "tables are made on every shard", done.stdout + done.stderr)
            killer = Killer(centre, engine, number, seed)
            killer.start()
            try:
                deliver(centre, seed, killer, absent, wrong)
                tap.point(not killer.error and not wrong, "every process starts again, and hosts' uploads are accepted",
                          (killer.error, wrong))
                what = (f"{len(absent)} hosts, seed {seed}, {time.monotonic() - began:.0f} s: kills "
                        f"{sum(killer.kills.values())} {dict(sorted(killer.kills.items()))} with "
                        f"{min(killer.seen)} to {max(killer.seen)} sealed days")
                compare(tap, centre, absent, what, lambda: is_well(centre))
                set_clock(ahead, LATER)
                until(lambda: centre.json("status", "--json")["store"]["clock_ahead_seconds"] > 0)
                centre.ctl("retention", "--confirm-clock")
                compare(tap, centre, absent, "when what came late has been sealed, too", lambda: sealed(centre))
                control(tap, engine, centre, absent)
            finally:
                for a in absent:
                    if a.host:
                        a.host.end()


def set_clock(path, seconds):
    with open(path, "w", encoding="ascii") as f:
        f.write(f"{seconds:+d}")


def compare(tap, centre, absent, what, reached):
    counts = Counter()
    done = until(reached)
    faults = judge(centre, absent, counts)
    tap.point(done and not faults and not counts["lost"] + counts["doubled"] + counts["unmarked"],
              f"{what}: {tier_of(centre)['days_sealed']} days in ClickHouse, {counts['hours']} sums of a program and "
              f"hour, calls {counts['calls']}, lost {counts['lost']}, doubled {counts['doubled']}, unmarked "
              f"{counts['unmarked']}", (tier_of(centre), "\n".join(faults)))


def control(tap, engine, centre, absent):
    """The judge must find what somebody removed from one shard."""
    counts, table = Counter(), engine.servers[0].query(
        "SELECT name FROM system.tables WHERE database='profd' AND engine LIKE '%MergeTree' AND name LIKE 'sum%'")
    engine.servers[0].query(f"TRUNCATE TABLE profd.{table.strip()}")
    centre.stop()
    centre.start()
    faults = judge(centre, absent, counts)
    tap.point(faults and counts["lost"] and not counts["doubled"] + counts["unmarked"],
              f"control: without the rows of a shard {len(faults)} faults are found, lost {counts['lost']} in reports "
              f"that are refused, unmarked {counts['unmarked']}", faults[:5])
