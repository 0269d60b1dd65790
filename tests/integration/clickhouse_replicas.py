#!/usr/bin/python3
"""A centre in ClickHouse with two replicas of one shard, and ZooKeeper: what is acknowledged is on both, a replica that
is away or behind neither takes nor answers, and both have the same when it is back, after retention and a delete, too.
Debian's 18.16 and ZooKeeper."""
import contextlib
import os
import signal
import time

from clickhouse_bed import PROGRAM, Bed, Zookeeper, cluster
from clickhouse_centre import (BUSY, Fleet, compare, days, delivered, is_503, judge, limit, paths, refuses)
from clickhouse_hostile import Between
from harness import LONG, PROFCTL, Tap, run, until
from judge import calls_of
from relaying import BUILDS

MACROS = ("<zookeeper><node><host>127.0.0.1</host><port>{port}</port></node></zookeeper>"
          "<macros><shard>1</shard><replica>r{replica}</replica></macros>")


def counts(server):
    """Segments and uploads that a replica itself has."""
    return server.query("SELECT uniqExact(epoch, sequence), sum(head * uploads) FROM profd.segment_group_local FINAL")


def replicas(tap, bed, url, keeper):
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
        keeperless(tap, fleet, keeper)
        retained(tap, fleet, bed, url)
        deleted(tap, fleet, bed)


def keeperless(tap, fleet, keeper):
    """ZooKeeper is gone for a while: nothing is taken or answered; then all of it counts."""
    fleet.upload(10)
    keeper.stop()
    got = refuses(tap, fleet, "ZooKeeper is gone")
    tap.point(is_503(got, "ClickHouse"), "ZooKeeper is gone: reports say so", got)
    keeper.start()
    tap.point(until(lambda: delivered(fleet)[0] == "ACKNOWLEDGE"), "it is back: what hosts kept counts")
    fleet.settle()
    compare(tap, fleet, paths([0, 3, 5]), "after ZooKeeper was gone")


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


class Watched(Between):
    """Calls `then`, and answers nothing, when a server has run the statement in which `text` is, for the time number
    `times`."""

    text, times, then = None, 0, None

    def ask(self, head, data):
        reply = super().ask(head, data)
        with self.lock:
            self.times -= self.text in data
            end = self.text in data and self.times == 0
        if end:
            self.then()
            raise OSError("the daemon is dead")
        return reply


def ends(fleet, options):
    """Starts the centre anew."""
    fleet.kept.stop()
    fleet.kept.options = ["--gate", *options]
    fleet.kept.start()


def left(tap, fleet, bed, url, name):
    """All days before today are gone, from both replicas, and both are read."""
    gone = until(lambda: all(n <= 1 for have in days(bed) for n in have))
    tap.point(gone, f"{name}: days before today are gone", (days(bed), fleet.kept.logged()))
    ends(fleet, ["--store", url])
    equal(tap, bed, name)
    tap.point(refuses_to_read(bed) == [], f"{name}: each replica reads what a quorum has", refuses_to_read(bed))
    judge(tap, fleet, int(time.time()) // 86400 * 86400, name)


def refuses_to_read(bed):
    """What the servers say of which the table of changes cannot be read."""
    refused = []
    for s in bed.servers:
        try:
            s.query("SELECT count() FROM profd.change", select_sequential_consistency=1)
        except RuntimeError as e:
            refused.append(str(e))
    return refused


def retained(tap, fleet, bed, url):
    """Days before today go; what comes later for one of them goes again; and once the daemon is killed after the last
    day was dropped on the servers: ClickHouse does not read the table then, until the next daemon has mended it. The
    rest of the day goes when the lock of the dead daemon has ended."""
    a = bed.servers[0]
    before = days(bed)
    limit(fleet, bed, url)
    left(tap, fleet, bed, url, "retention")
    fleet.upload(10, (0, 30, 80))
    fleet.settle()
    again = days(bed)
    tap.point(all(n > 1 for have in before + again for n in have), "there were days to remove, twice", (before, again))
    between = Watched(a.http)
    between.text, between.times = b"ALTER TABLE change DROP PARTITION", again[0][0] - 1
    between.then = lambda: fleet.kept.process.send_signal(signal.SIGKILL)
    ends(fleet, ["--store", url.replace(str(a.http), str(between.http), 1), "--keep-bytes", "1M"])
    fleet.kept.process.wait(LONG)
    refused = refuses_to_read(bed)
    tap.point(len(refused) == 2 and all("Code: 289" in r for r in refused),
              "killed behind DROP PARTITION: the servers do not read the table", refused)
    fleet.kept.options = ["--gate", "--store", url, "--keep-bytes", "1M"]
    fleet.kept.start()
    tap.point(until(lambda: refuses_to_read(bed) == []), "and do so again when a daemon runs", refuses_to_read(bed))
    left(tap, fleet, bed, url, "killed behind DROP PARTITION")


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
    judge(tap, fleet, int(time.time()) // 86400 * 86400, "a delete")


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
                replicas(tap, bed, url, keeper)
        finally:
            keeper.stop()


if __name__ == "__main__":
    main()
