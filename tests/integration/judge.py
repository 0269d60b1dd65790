# not a test
"""What reports of several daemons say of each build, compared."""
import json

from wire import Wire


def calls_of(d):
    """build → calls of its report, ticks, and ticks that have a stack."""
    out = {}
    for row in d.json("builds", "--all", "--json")["rows"]:
        with Wire(d.socket) as w:
            report = json.loads(w.query(f"/api/v1/builds/{row['build_id']}/report")[1])
        totals, stacks = report["totals"], report.get("stacks", {"count": 0})
        out[row["build_id"]] = totals["calls"], totals["ticks"], stacks["count"]
    return out


def sums(*hosts):
    out = {}
    for h in hosts:
        for build, numbers in calls_of(h).items():
            out[build] = tuple(map(sum, zip(numbers, out.get(build, (0, 0, 0)))))
    return out


def difference(want, got):
    return {k: (want.get(k), got.get(k)) for k in set(want) | set(got) if want.get(k) != got.get(k)}
