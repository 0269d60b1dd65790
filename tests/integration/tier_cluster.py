"""The tier on clusters of Debian's ClickHouse 18.16: two shards, and two shards of two replicas with ZooKeeper. init
makes local tables and tables over all shards; what is inserted through one server is on every replica of its shard, and
is read through every server; with a shard or a replica away, init does not say that all is well.
Reports of days that were moved there have the bytes of SQLite's, or are refused."""
import struct

from harness import Daemon, Tap, until
from tier import Bed, daemon, differing, fill, sealed
from tier_bed import Fleet, Old, Zookeeper
from tier_life import life
from windows import settled

TABLES = ["layout",
          *(t + part for t in ("manifest", "mark", "series", "sum", "tombstone") for part in ("", "_local"))]
SERIES = "INSERT INTO profd.series (series, tenant, program, builds, names, labels) FORMAT RowBinary"
SAFE = {"insert_distributed_sync": 1}
QUORUM = {"insert_quorum": 2, "select_sequential_consistency": 1}


def init(url):
    with Daemon("--tier", url) as d:
        return d.ctl("tier", "init")


def fine(done, words, servers):
    lines = done.stdout.splitlines()
    return done.returncode == 0 and done.stderr == "" and len(lines) == servers and all(words in x for x in lines)


def refused(tap, name, done, status, *words):
    tap.point(done.returncode == status and done.stdout == "" and len(done.stderr.splitlines()) == 1
              and all(w in done.stderr for w in words), name, done)


def rows(n):
    """Series of a tenant; the key is the number."""
    return b"".join(struct.pack("<QQ", i * 0x9E3779B97F4A7C15 % 2**64, i) + b"\1t\2ab\0\0\0" for i in range(n))


def counts(servers, table, **settings):
    return [int(s.query(f"SELECT count() FROM profd.{table}", **settings)) for s in servers]


def days(tap, name, fleet):
    """Past days are moved there; then the last server is away for a while."""
    away = fleet.servers[-1]
    with Daemon("--raw-age", "1s") as plain, daemon(fleet, start=False) as d:
        bed = Bed()
        bodies = bed.uploads(60)
        for each in (plain, d.start()):
            fill(each, bed, bodies)
        fine_sums, before = settled(plain) and settled(d), bed.ask(plain)
        tap.point(fine_sums and sealed(d), f"{name}: past days are moved", d.ctl("tier", "status").stdout)
        said = d.ctl("tier", "status")
        tap.point(said.returncode == 0 and f"tier     {fleet.url()}\nsealed   " in said.stdout
                  and "\nwaiting  0 days\n" in said.stdout, f"{name}: profctl tier status says so", said)
        bad = differing(before, bed.ask(d))
        tap.point(not bad and len(before) > 50, f"{name}: {len(before)} answers have the bytes of SQLite's", bad)
        away.stop()
        d.stop()  # it keeps answers
        d.start()
        bad = differing(before, bed.ask(d))
        halves = fleet.keeper is None
        tap.point(bool(bad) == halves and all(x[2] == 503 and b"ClickHouse" in x[4] for x in bad),
                  f"{name}: with a server away, {len(bad)} questions are refused, the others answered", bad)
        away.start()
        tap.point(until(lambda: not differing(before, bed.ask(d))), f"{name}: when it is back, all is answered")


def shards(tap):
    with Fleet() as fleet:
        a, b = fleet.servers
        refused(tap, "not all servers of the cluster are named", init(fleet.url(servers=[a])), 65,
                "has 2 servers", "names 1")
        refused(tap, "several servers without a cluster", init(fleet.url().split("?")[0]), 65, "add cluster=NAME")
        b.stop()
        refused(tap, "a shard is away", init(fleet.url()), 69, f"127.0.0.1:{b.http}")
        b.start()
        done = init(fleet.url())
        tap.point(fine(done, "were made", 2), "init makes the tables on both shards", done)
        done = init(fleet.url())
        tap.point(fine(done, "were there", 2), "and may be repeated", done)
        there = [sorted(s.query("SHOW TABLES FROM profd").split()) for s in fleet.servers]
        tap.point(there == [sorted(TABLES)] * 2, "each has its own tables and those over all shards", there)
        a.query(SERIES, rows(100), **SAFE)
        parts = counts(fleet.servers, "series_local")
        tap.point(counts(fleet.servers, "series") == [100, 100] and sum(parts) == 100 and min(parts) > 20,
                  "rows are spread, and read through each server", parts)
        b.query("DROP TABLE profd.series_local")
        b.query("DROP TABLE profd.series")
        tap.point(fine(init(fleet.url()), "were there", 2), "tables that are missing are made again")
        days(tap, "two shards", fleet)
        refused(tap, "tables of a cluster, and a URL of one server", init(a.url()), 65, "cluster=fleet", "one server")


def replicas(tap):
    with Zookeeper() as keeper, Fleet(replicas=2, keeper=keeper) as fleet:
        plain = fleet.url().replace("&replicated=1", "")
        refused(tap, "a cluster with replicas, without replicated", init(plain), 65, "2 replicas", "replicated=1")
        done = init(fleet.url())
        tap.point(fine(done, "were made", 4), "init makes replicated tables on two shards of two replicas", done)
        done = init(fleet.url())
        tap.point(fine(done, "were there", 4), "and may be repeated", done)
        engines = {s.query("SELECT DISTINCT engine FROM system.tables WHERE database = 'profd' AND name LIKE '%_local'")
                   for s in fleet.servers}
        tap.point(engines == {"ReplicatedMergeTree\n"}, "all of them replicate", engines)
        first = fleet.servers[0]
        first.query(SERIES, rows(100), **SAFE, **QUORUM)
        parts = [counts(shard, "series_local", **QUORUM) for shard in fleet.shards]
        tap.point(all(p[0] == p[1] > 20 for p in parts) and sum(p[0] for p in parts) == 100,
                  "what is acknowledged is on both replicas of its shard", parts)
        fleet.shards[1][1].stop()
        refused(tap, "a replica is away: init does not say that all is well", init(fleet.url()), 69, "cannot ask")
        tap.point(counts(fleet.servers[:3], "series") == [100] * 3, "and the others answer for it")
        fleet.shards[1][1].start()
        tap.point(until(lambda: fine(init(fleet.url()), "were there", 4)), "it is back")
        keeper.stop()
        done = init(fleet.url())
        refused(tap, "ZooKeeper is away", done, 75, "(code ")
        keeper.start()
        tap.point(until(lambda: fine(init(fleet.url()), "were there", 4)), "it is back, too")
        days(tap, "two shards of two replicas", fleet)
        life(tap, "two shards of two replicas", fleet)


def main():
    with Tap() as tap:
        for name, why_not, test in (("shards", Old.why_not, shards),
                                    ("replicas", Old.why_not or Zookeeper.why_not, replicas)):
            if why_not:
                tap.skip(f"{name} of ClickHouse", why_not)
            else:
                test(tap)


if __name__ == "__main__":
    main()
