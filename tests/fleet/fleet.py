#!/usr/bin/python3
"""make fleet: real programs only. Everything is killed, cut and partitioned while programs upload; then hosts and
centre are restored from backups; then hosts are cut off for more than a week of simulated time. With
engine=clickhouse: a centre with past days on two shards of ClickHouse is killed, and so are the servers. Judge: what
the programs counted = Σ of the hosts' reports = the centre's report, for each build and arc; the ledgers; verification
on every database. Prints TAP. fleet.py [hosts=N] [kills=N] [restores=N] [partitions=N] [seed=S] [engine=clickhouse]"""
import sys

from absence import absences
from bed import Tap, why_not
from kills import kills
from restores import restores
from sealing import sealings


def wishes():
    out = {"hosts": 3, "kills": 40, "restores": 3, "partitions": 2, "seed": 1, "engine": ""}
    for argument in sys.argv[1:]:
        name, _, value = argument.partition("=")
        if name not in out:
            raise SystemExit(f"{argument}: not one of {'=, '.join(out)}=")
        out[name] = int(value or out[name]) if name != "engine" else value
    return out


def main():
    w = wishes()
    if w["engine"] not in ("", "clickhouse"):
        raise SystemExit(f"engine={w['engine']}: the engine is clickhouse, or none is named")
    with Tap() as tap:
        if why_not():
            tap.skip("a fleet", why_not())
            return
        print(f"# seed={w['seed']}", flush=True)
        if w["engine"]:
            sealings(tap, w["kills"], w["seed"])
            return
        kills(tap, w["hosts"], w["kills"], w["seed"])
        restores(tap, w["restores"], w["seed"])
        absences(tap, w["partitions"], w["seed"])


if __name__ == "__main__":
    main()
