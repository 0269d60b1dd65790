#!/usr/bin/python3
"""/api/v1/load: the CPU time of all builds by steps, beside what /groups says of each; its pages, ETag and refusals."""
import json
import sys
import time

sys.dont_write_bytecode = True
from harness import Daemon, Tap  # noqa: E402
from shop import NOW, build, fleet  # noqa: E402


def ask(d, query):
    status, headers, body = d.get(f"/api/v1/load?{query}")
    return status, headers, json.loads(body)


def same(d, row, since):
    """Is the row what the groups of the build add up to?"""
    query = f"by=host&by=version&step=1h&since={since}&limit=1000"
    groups = json.loads(d.get(f"/api/v1/builds/{row['build_id']}/groups?{query}")[2])["rows"]
    steps = [0.0] * len(row["seconds"])
    for g in groups:
        at = time.strptime(g["time"], "%Y-%m-%dT%H:%M:%SZ")
        steps[(int(time.mktime(at) - time.timezone) - since) // 3600] += g["seconds"]
    labels = {name: sorted({g[f"label_{name}"] for g in groups} - {""}) for name in ("host", "version")}
    return (all(abs(a - b) < 1e-9 for a, b in zip(steps, row["seconds"])) and sum(steps) > 0
            and row["labels"] == labels and row["hosts"] == max(g["hosts"] for g in groups)
            and all(row[k] == sum(g[k] for g in groups) > 0 for k in ("calls", "processes_started")))


with Tap() as tap, Daemon() as d:
    old, new = build(d.folder, "shop1", "", ""), build(d.folder, "shop2", "int more;", "")
    host = lambda process: {"host": f"db{process % 4 + 1}"}  # noqa: E731
    fleet(d, old, 1, "1.2", 1.0, 0, NOW - 7200, labels=host)
    fleet(d, new, 2, "1.3", 1.3, 0, NOW - 3 * 86400, labels=host)
    fleet(d, new, 3, "1.3", 1.3, 0, NOW, labels=host)
    since = NOW - NOW % 3600 - 23 * 3600
    status, headers, answer = ask(d, f"by=host&by=version&since={since}")
    rows = answer["rows"]
    tap.point(status == 200 and len(rows) == 2 and all(same(d, r, since) for r in rows),
              "every build by steps, as its groups say", answer)
    tap.point(len(rows[0]["seconds"]) in (24, 25) and answer["step"] == 3600, "a step is an hour", answer["step"])
    again = d.get(f"/api/v1/load?by=host&by=version&since={since}&until={NOW + 300}")
    tag = again[1]["etag"]
    tap.point(d.get(f"/api/v1/load?by=host&by=version&since={since}&until={NOW + 300}", If_None_Match=tag)[0] == 304,
              "the same answer is 304", again[:2])
    pages = [ask(d, f"by=version&since={since}&limit=1")[2]]
    pages.append(ask(d, f"by=version&since={since}&limit=1&cursor={pages[0]['next']}")[2])
    tap.point([r["build_id"] for p in pages for r in p["rows"]] == [r["build_id"] for r in rows]
              and pages[1]["next"] is None, "page by page", pages)
    early = ask(d, f"by=version&since={NOW - 4 * 86400}&until={NOW - 2 * 86400}")[2]["rows"]
    tap.point(len(early) == 1 and early[0]["labels"] == {"version": ["1.3"]},
              "only builds with uploads in the window", early)
    usual = ask(d, "by=version")[2]
    tap.point(len(usual["rows"]) == 2 and len(usual["rows"][0]["seconds"]) == 24, "usually 24 steps, until now", usual)
    whole = [json.loads(d.get(f"/api/v1/{path}limit={n}")[2])["rows"] for n in (0, 1000, 5000)
             for path in ("builds?", "load?by=version&", "labels/host/values?")]
    tap.point(whole[:3] == whole[3:6] == whole[6:] and [len(rows) for rows in whole[:3]] == [2, 2, 4],
              "limit=0 and a large limit are all rows, as in reports", whole)
    for query, word in (("by=version&step=5m", "1h"), ("by=9", "by="), ("by=host&since=2020-01-01", "steps"),
                        ("by=host&cursor=x", "cursor"), ("by=host&limit=x", "limit")):
        status, _, problem = ask(d, query)
        tap.point(status == 400 and word in problem["detail"], f"{query} is refused by name", problem)
    fleet(d, new, 4, "1.4", 1.3, 0, NOW, labels=host)
    tap.point(d.get(f"/api/v1/load?by=host&by=version&since={since}&until={NOW + 300}", If_None_Match=tag)[0] == 200,
              "and a new one where there is new data")
    status, _, hosts = d.get("/api/v1/hosts")
    tap.point(status == 200 and json.loads(hosts) == {"rows": [], "next": None}, "a daemon without hosts", hosts)
