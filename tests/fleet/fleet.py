#!/usr/bin/python3
"""make fleet: real programs only. Everything is killed, cut and partitioned while programs upload; then hosts and
centre are restored from backups; then hosts are cut off for more than a week of simulated time. Judge: what the
programs counted = Σ of the hosts' reports = the centre's report, for each build and arc; the ledgers; verification on
every database. Prints TAP. fleet.py [hosts=N] [kills=N] [restores=N] [partitions=N] [seed=S] [old=FOLDER]:
old has the programs of an earlier version, which then run at either end."""
import sys

from absence import absences
from bed import Previous, Tap
from kills import kills
from restores import restores
from upgrades import old_centre


def wishes():
    out = {"hosts": 3, "kills": 40, "restores": 3, "partitions": 2, "seed": 1, "old": ""}
    for argument in sys.argv[1:]:
        name, _, value = argument.partition("=")
        if name not in out:
            raise SystemExit(f"{argument}: not one of {'=, '.join(out)}=")
        out[name] = value if name == "old" else int(value or out[name])
    return out


def main():
    w = wishes()
    with Tap() as tap:
        print(f"# seed={w['seed']}", flush=True)
        ends = [("", None, None)]
        if w["old"]:
            old = Previous(w["old"])
            ends = [("earlier hosts, ", old, None)]
            if old_centre(tap, old):
                ends.append(("earlier centre, ", None, old))
        for what, of_hosts, of_centre in ends:
            kills(tap, w["hosts"], w["kills"], w["seed"], what, of_hosts, of_centre)
            restores(tap, w["restores"], w["seed"], what, of_hosts, of_centre)
        absences(tap, w["partitions"], w["seed"])


if __name__ == "__main__":
    main()
