#!/usr/bin/python3
"""A cluster gets another shard later, as profd(8) says: no report may lack what the others have. Debian's 18.16."""
from clickhouse_bed import PROGRAM, Bed, cluster
from clickhouse_centre import Fleet, answers, compare, is_503, paths
from harness import PROFCTL, Tap, run
from relaying import BUILDS


def configure(bed, servers):
    """The cluster has these servers, everywhere. A running server reads it anew."""
    for s in bed.servers:
        s.configure(cluster("shards", [[x] for x in servers]))


def url(servers):
    first, *others = servers
    return first.url("profd", cluster="shards").replace("/profd", "".join(f",127.0.0.1:{s.http}" for s in others)
                                                        + "/profd", 1)


def part_of_it(tap, fleet, old, new):
    """The new server has tables, and nothing in them: init was ended in between."""
    new.query("CREATE DATABASE profd")
    names = old.query("SELECT name FROM system.tables WHERE database = 'profd' AND engine != 'Distributed'").split()
    ddl = [old.query(f"SHOW CREATE TABLE profd.{n} FORMAT TabSeparatedRaw") for n in names]
    for statement in ddl + [old.query(f"SHOW CREATE TABLE profd.{n} FORMAT TabSeparatedRaw")
                            for n in ("segment_group", "arrival", "rollup", "host_day")]:
        new.query(statement)
    fleet.kept.start()
    got = answers(fleet.kept, ["/api/v1/builds", f"/api/v1/builds/{BUILDS[0]}/report"])
    tap.point(all(is_503(x, "clickhouse init") for x in got.values()), "a server without the others' data: 503", got)
    fleet.kept.stop()


def main():
    with Tap() as tap:
        if not PROGRAM:
            tap.skip("servers of ClickHouse", "clickhouse-server is not installed")
            return
        bed = Bed(3)
        configure(bed, bed.servers[:2])
        with bed:
            a, b, new = bed.servers
            done = run(PROFCTL, "clickhouse", "init", url([a, b]))
            tap.point(done.returncode == 0, "init makes the tables of two shards", done)
            hours = [0, 3, 5, 26]
            with Fleet(url([a, b])) as fleet:
                for _ in range(2):
                    fleet.upload(20, hours)
                    fleet.settle()
                compare(tap, fleet, paths(hours), "two shards")
                fleet.kept.stop()
                configure(bed, bed.servers)
                for s in bed.servers:
                    s.stop()
                    s.start()
                fleet.kept.options = ["--gate", "--store", url([new, a, b])]
                part_of_it(tap, fleet, a, new)
                done = run(PROFCTL, "clickhouse", "init", url([new, a, b]))
                tap.point(done.returncode == 0, "init makes those of the third", done)
                fleet.kept.start()
                compare(tap, fleet, paths(hours), "the new one is asked first")
                fleet.upload(20, hours)
                fleet.settle()
                asked = [p for p in paths(hours) if "format=text" not in p]  # which says for how long it was down
                compare(tap, fleet, asked, "with more")


if __name__ == "__main__":
    main()
