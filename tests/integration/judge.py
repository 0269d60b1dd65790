# not a test
"""What reports of several daemons say of each build, compared."""
import json

from wire import Wire


def calls_of(d):
    """build → calls of its report, and ticks."""
    out = {}
    for row in d.json("builds", "--all", "--json")["rows"]:
        with Wire(d.socket) as w:
            report = json.loads(w.query(f"/api/v1/builds/{row['build_id']}/report")[1])
        out[row["build_id"]] = report["totals"]["calls"], report["totals"]["ticks"]
    return out


def sums(*hosts):
    out = {}
    for h in hosts:
        for build, (calls, ticks) in calls_of(h).items():
            was = out.get(build, (0, 0))
            out[build] = was[0] + calls, was[1] + ticks
    return out


def difference(want, got):
    return {k: (want.get(k), got.get(k)) for k in set(want) | set(got) if want.get(k) != got.get(k)}
