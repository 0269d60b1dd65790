"""Thousands of builds: lists over all programs do limited work, and say what they left out or where they go on."""
import json
import urllib.parse

from harness import Daemon, Tap
from wire import Wire, sender_number, upload

BUILDS, MOST = 2100, 2000


def fill(d):
    """BUILDS programs, 100 of them with less CPU time; every seventh build has the name of the one before."""
    sender, sent, got = sender_number(), 0, 0
    with Wire(d.socket) as w:
        while got < BUILDS:
            while sent < BUILDS and sent - got < 200:
                sent += 1
                w.send("UPLOAD", upload(sender, sent, 1 if sent % 21 == 0 else 2, f"{sent:040x}",
                                        f"/bin/p{sent - (sent % 7 == 0):05}", [("version", f"v{sent % 3}")]), sent)
            kind, *_ = w.take()
            assert kind in ("ACK", "WANT_OBJECT"), kind
            got += kind == "ACK"


def pages(d, target):
    """All pages of a list."""
    out, cursor = [], ""
    while cursor is not None:
        at = f"{target}&cursor={urllib.parse.quote(cursor)}" if cursor else target
        out.append(json.loads(d.get(at)[2]))
        cursor = out[-1]["next"]
    return out


def main():
    with Tap() as tap, Daemon() as d:
        fill(d)
        for window in ("", "?since=now-1h"):
            answer = json.loads(d.get(f"/api/v1/functions{window}")[2])
            tap.point(answer["programs"] == MOST and answer["not_joined"]["programs"] == BUILDS - MOST
                      and answer["ticks"] == 2 * MOST,
                      f"functions{window}: of the {MOST} programs with the most CPU time, and the others are counted",
                      answer)
        said = d.ctl("functions").stdout
        tap.point("100 programs with less CPU time are left out" in said, "profctl says so", said)
        few = json.loads(d.get("/api/v1/functions?match=version=%22v1%22")[2])
        tap.point(few["programs"] == BUILDS // 3 and few["not_joined"]["programs"] == 0,
                  "labels select before the programs are chosen: none of these is left out", few)
        query = "process_cpu:cpu:nanoseconds:cpu:nanoseconds%7B{}%7D"
        for selector, n, left in (("version=%22v1%22", BUILDS // 3, 0), ("version=~%22v.%22", BUILDS, BUILDS - MOST)):
            status, headers, body = d.get(f"/pyroscope/render?query={query.format(selector)}&from=1")
            ticks = json.loads(body)["flamebearer"]["numTicks"]
            less = sum(i % 3 == 1 for i in range(21, BUILDS + 1, 21)) if left == 0 else 0
            tap.point(status == 200 and ticks == (2 * (n - left) - less) * 10**7
                      and (f"programs-left={left}" in headers["profd-exact"]) == (left > 0),
                      f"{selector}: {left} of {n} programs are left out", (status, ticks, headers["profd-exact"]))
        for limit in (1000, 300, 999):
            got = pages(d, f"/api/v1/versions?limit={limit}")
            rows = [row for page in got for row in page["rows"]]
            order = [row["program"] for row in rows]
            tap.point(all(len(page["rows"]) <= limit for page in got) and len(rows) == BUILDS
                      and len({row["build_id"] for row in rows}) == BUILDS and order == sorted(order),
                      f"versions in pages of {limit}: each build once, by program", [len(page["rows"]) for page in got])
        got = pages(d, "/api/v1/versions?match=version=%22v1%22&limit=1000")
        tap.point(sum(len(page["rows"]) for page in got) == BUILDS // 3 and len(got) == 2,
                  "a page ends after 2,000 builds, whatever matches", [len(page["rows"]) for page in got])
        name = rows[len(rows) // 2]["program"]
        for wanted in (name, name.rpartition("/")[2]):
            got = json.loads(d.get(f"/api/v1/versions?program={wanted}")[2])
            tap.point({row["program"] for row in got["rows"]} == {name} and got["next"] is None,
                      f"the versions of {wanted} alone", got)
        for wanted in ("nobody", "/" + name.rpartition("/")[2], name + "/"):
            tap.point(json.loads(d.get(f"/api/v1/versions?program={wanted}")[2])["rows"] == [], f"none of {wanted}")
        for cursor in ("x", "1", "-1-0", "1-", "1-2x", "99999999999999999999-0"):
            status, _, body = d.get(f"/api/v1/versions?cursor={cursor}")
            tap.point(status == 400 and cursor in json.loads(body)["detail"], f"cursor={cursor} is refused", body)


main()
