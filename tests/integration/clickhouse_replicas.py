#!/usr/bin/python3
"""A centre in ClickHouse with two replicas of one shard, and ZooKeeper: what is acknowledged is on both, a replica that
is away or behind neither takes nor answers, and both have the same when it is back, after a delete, too. Debian's 18.16
and ZooKeeper."""
import contextlib
import os
import signal

from clickhouse_bed import PROGRAM, Bed, Zookeeper, cluster
from clickhouse_centre import BUSY, Fleet, compare, days, delivered, judge, limit, paths
from harness import PROFCTL, Tap, run, until
from judge import calls_of
from relaying import BUILDS

YEAR_2020 = 1577836800
MACROS = ("<zookeeper><node><host>127.0.0.1</host><port>{port}</port></node></zookeeper>"
          "<macros><shard>1</shard><replica>r{replica}</replica></macros>")


def counts(server):
    """Segments and uploads that a replica itself has."""
    return server.query("SELECT uniqExact(epoch, sequence), sum(head * uploads) FROM profd.segment_group_local FINAL")


def replicas(tap, bed, url):
    a, b = bed.servers
    with Fleet(url) as fleet:
        fleet.upload(20, (0, 4, 30, 80))
        fleet.settle()
        have = counts(a), counts(b)
        tap.point(have[0] == have[1] and have[0].split()[1] == "40", "what is acknowledged is on both", have)
        compare(tap, fleet, paths([0, 3, 5]), "two replicas")
        fleet.upload(10)
        b.stop()
        kind, m = delivered(fleet)
        tap.point(kind == "NACK" and m[1] == BUSY, "a replica is away: hosts are told to come again", (kind, m))
        b.start()
        tap.point(until(lambda: delivered(fleet)[0] == "ACKNOWLEDGE"), "it is back: what they kept counts")
        fleet.settle()
        tap.point(until(lambda: counts(a) == counts(b)), "and both have the same", (counts(a), counts(b)))
        fleet.kept.stop(signal.SIGKILL)
        fleet.kept.start()
        compare(tap, fleet, paths([0, 3, 5]), "after a kill")
        retained(tap, fleet, bed, url)
        deleted(tap, fleet, bed)


def contents(server):
    """What a replica itself has: {table: rows, and a sum over them}."""
    tables = server.query("SELECT name FROM system.tables WHERE database = 'profd' AND engine LIKE 'Replicated%'")
    return {t: server.query(f"SELECT count(), sum(cityHash64(*)) FROM profd.{t} FINAL") for t in tables.split()}


def equal(tap, bed, name):
    a, b = bed.servers
    same = until(lambda: contents(a) == contents(b))
    x, y = contents(a), contents(b)
    tap.point(same and len(x) > 20, f"{name}: each table has the same rows on both",
              {t: (x[t], y.get(t)) for t in x if x[t] != y.get(t)} or x)


def retained(tap, fleet, bed, url):
    """No partition of a replicated table is dropped: ClickHouse would refuse to read the table. Days stay, and profd
    says so."""
    before = days(bed)
    limit(fleet, bed, url)
    tap.point(until(lambda: "stays although it is to be removed" in fleet.kept.logged()) and days(bed) == before,
              "retention: days stay, and the log says so", (before, days(bed), fleet.kept.logged()))
    fleet.kept.stop()
    fleet.kept.options = ["--gate", "--store", url]
    fleet.kept.start()
    equal(tap, bed, "retention")
    judge(tap, fleet, YEAR_2020, "retention")


def deleted(tap, fleet, bed):
    bed.servers[1].stop()
    done = fleet.kept.ctl("delete", BUILDS[0], "--yes")
    tap.point(done.returncode == 75 and BUILDS[0] in calls_of(fleet.plain), "a replica is away: a delete is refused",
              done)
    bed.servers[1].start()
    tap.point(until(lambda: fleet.kept.ctl("delete", BUILDS[0], "--yes").returncode == 0), "it is back: it is deleted")
    fleet.plain.ctl("delete", BUILDS[0], "--yes")
    got = calls_of(fleet.kept)
    tap.point(set(got) <= set(BUILDS[1:]) and got, "a deleted program is gone", got)
    equal(tap, bed, "a delete")
    judge(tap, fleet, YEAR_2020, "a delete")


def sees_keeper(server):
    """A server connects to ZooKeeper when it first needs it; on a busy machine the first handshakes can fail."""
    with contextlib.suppress(RuntimeError):
        return bool(server.query("SELECT count() FROM system.zookeeper WHERE path = '/'"))
    return False


def main():
    with Tap() as tap:
        if not PROGRAM or not os.path.exists("/usr/share/java/zookeeper.jar"):
            tap.skip("replicas of ClickHouse", "clickhouse-server or zookeeper is not installed")
            return
        bed = Bed(2)
        keeper = Zookeeper(os.path.join(bed.folder, "zookeeper"))
        try:
            for i, s in enumerate(bed.servers):
                s.configure(cluster("pair", [bed.servers]), MACROS.format(port=keeper.port, replica=i))
            with bed:
                if not all(until(lambda s=s: sees_keeper(s)) for s in bed.servers):
                    raise RuntimeError("a server does not reach ZooKeeper")
                url = bed.url("profd", cluster="pair", replicated=1)
                done = run(PROFCTL, "clickhouse", "init", url)
                tap.point(done.returncode == 0, "init makes replicated tables", done)
                replicas(tap, bed, url)
        finally:
            keeper.stop()


if __name__ == "__main__":
    main()
