"""Windows, labels and groups, asked of two daemons that were sent the same: one keeps single uploads, the other has
rolled them up. For windows of whole hours every answer is the same, byte for byte; others say which edges they used."""
import calendar
import json
import os
import random
import struct
import time

from harness import ROOT, Daemon, Tap, bounds, run, symbols, until
from wire import Wire, encoded, field, sender_number, varint

SECOND, HOUR = 10**9, 3600 * 10**9


def counted(low, high, bins, arcs):
    """The stored encoding: bins as (index, ticks), arcs as (caller, callee, calls)."""
    return encoded([(0, low, high, (high - low) // 4, 100, "seconds", "s", dict(bins))], arcs)


class Fleet:
    """Uploads of one program over four days: which hosts and services, and when, is drawn once."""

    def __init__(self, exe, build):
        self.draw, self.sender, self.build, self.exe = random.Random(5), sender_number(), build, exe
        self.low, self.high = bounds(exe)
        table = symbols(exe)
        self.functions = [table[name] for name in ("main", "a", "b", "c", "d") if name in table and table[name][1] > 1]

    def upload(self, n, end):
        draw = self.draw
        arcs = [(f[0] + draw.randrange(1, f[1]), g[0], draw.randrange(1000)) for f in self.functions
                for g in self.functions if draw.random() < 0.6]
        bins = sorted({(f[0] - self.low) // 4 + draw.randrange(2) for f in self.functions})
        labels = (("host", f"db{draw.randrange(3)}"), ("service", draw.choice(["api", "batch", "web front"])))
        body = (field(1, struct.pack("<QI", self.sender + draw.randrange(3), 7)) + field(2, n)
                + field(6, field(1, self.build) + field(2, self.exe)))
        for key, value in labels[:draw.randrange(1, 3)]:
            body += field(7, field(1, key) + field(2, value))
        body += varint(3 << 3 | 1) + struct.pack("<Q", end - 30 * SECOND) + varint(4 << 3 | 1) + struct.pack("<Q", end)
        body += field(8, counted(self.low, self.high, [(i, draw.randrange(1, 99)) for i in bins], arcs))
        return body + field(10, draw.randrange(2)) + field(11, draw.choice("abc") * 32)


def send(d, bodies):
    with Wire(d.socket) as w:
        for body in bodies:
            w.send("UPLOAD", body, 9)
            while (answer := w.take())[:2] != ("ACK", 9):
                assert answer[0] != "NACK", answer


def state(d):
    return json.loads(d.get("/api/v1/status")[2])


def settled(d):
    until(lambda: state(d)["raw_uploads"] == 0)
    return state(d)["raw_uploads"] == 0


def stamp(ns):
    return str(ns // SECOND)


def aligned(tap, raw, rolled, exe, edge):
    """edge(h): the beginning of the hour h hours ago."""
    windows = [(), ("--since", stamp(edge(50))), ("--until", stamp(edge(20))),
               ("--since", stamp(edge(70)), "--until", stamp(edge(3))),
               ("--since", stamp(edge(30)), "--until", stamp(edge(29)))]
    which = [(), ("-l", "host=db1"), ("-m", 'service=~"api|web.*"'), ("-m", 'host!~"db[02]"', "-m", 'service!=""')]
    asked = [("report", "--json"), ("report", "-f", "text"), ("report", "-f", "gprof"),
             ("report", "--json", "--static", "--scope", "everywhere"),
             ("export", "-o", "-"), ("groups", "--by", "host", "--by", "service"), ("groups", "--step", "1h", "--json"),
             ("groups", "--step", "1d", "--by", "service", "--json")]
    for ask in asked:
        same, some = [], 0
        for window in windows:
            for labels in which:
                call = (ask[0], exe, *ask[1:], *window, *labels)
                x, y = raw.ctl(*call, binary=True), rolled.ctl(*call, binary=True)
                some += x.returncode == 0 and len(x.stdout) > 50
                if (x.returncode, x.stdout, x.stderr) != (y.returncode, y.stdout, y.stderr):
                    same.append((call, x.stdout[:400], y.stdout[:400], x.stderr, y.stderr))
        tap.point(not same and some >= 15, f"{' '.join(ask)}: {some} answers are the same from sums", same[:2])


def edges(tap, raw, rolled, exe, edge):
    inside = edge(40) + 17 * 60 * SECOND, edge(10) + 44 * 60 * SECOND
    call = ("--since", stamp(inside[0]), "--until", stamp(inside[1]))
    single, sums = raw.json("report", exe, "--json", *call), rolled.json("report", exe, "--json", *call)
    tap.point(single["window"] == {"since": single["since"], "until": single["until"]},
              "single uploads are cut to the second", single["window"])
    whole = raw.json("report", exe, "--json", "--since", stamp(edge(40)), "--until", stamp(edge(9)))
    tap.point(sums["window"] == {"since": whole["since"], "until": whole["until"]} and sums["since"] == single["since"],
              "sums move edges outward to the hour, and say so", (sums["window"], whole["window"]))
    tap.point(sums["totals"] == whole["totals"] and sums["provenance"] == whole["provenance"]
              and sums["totals"] != single["totals"], "which is what they counted")
    text = rolled.ctl("report", exe, *call).stdout
    tap.point("(requested: " in text and whole["until"] in text, "the text report says so, too", text[:600])
    fine = rolled.json("groups", exe, "--step", "5m", "--json", "--since", stamp(edge(30)), "--until",
                       stamp(edge(28)))["rows"]
    tap.point(fine and all(r["width"] == 3600 and r["time"].endswith(":00:00Z") for r in fine),
              "steps finer than sums are as wide as they", fine)
    fine = raw.json("groups", exe, "--step", "5m", "--json", "--since", stamp(edge(30)), "--until",
                    stamp(edge(28)))["rows"]
    tap.point(fine and all(r["width"] == 300 for r in fine), "and not where uploads are single", fine)


def series(tap, raw, rolled, exe, edge):
    """One function over time, and functions over programs: the same from sums, and each step what a report of it
    says."""
    table = symbols(exe)
    places = [f"{table[name][0]:x}" for name in ("main", "a", "b") if name in table]
    windows = ["", f"&since={stamp(edge(50))}", f"&since={stamp(edge(70))}&until={stamp(edge(3))}",
               f"&until={stamp(edge(20))}&label.host=db1", "&match=service%3D~%22api%7Cweb.*%22"]
    different, some = [], 0
    for window in windows:
        targets = [f"/api/v1/builds/{raw.build}/functions/{at}/series?step={step}{window}" for at in places
                   for step in ("1h", "6h", "1d")]
        joined = f"/api/v1/functions?sort=total{window}"
        for target in targets + [joined, f"{joined}&step=1d"]:
            x, y = raw.get(target), rolled.get(target)
            some += x[0] == 200 and len(json.loads(x[2])["rows"]) > 1
            if x[0] != 200 or x[2] != y[2]:
                different.append((target, x[0], y[0], x[2][:300], y[2][:300]))
    tap.point(not different and some > 30, f"series and joined functions: {some} answers are the same from sums",
              different[:2])
    wrong, looked = [], 0
    whole = json.loads(rolled.get("/api/v1/functions?limit=0&step=6h")[2])
    for k in range(len(whole["rows"][0]["trend"])):
        begin = int(calendar.timegm(time.strptime(whole["trend_since"][:19], "%Y-%m-%dT%H:%M:%S"))) + k * whole["step"]
        target = f"/api/v1/functions?limit=0&since={begin}&until={begin + whole['step']}"
        one = {r["name"]: r["self_seconds"] for r in json.loads(rolled.get(target)[2])["rows"]}
        looked += len(one)
        wrong += [(k, r) for r in whole["rows"] if r["trend"][k] != one.get(r["name"], 0)]
    tap.point(not wrong and looked > 9, f"{looked} steps of functions say what the list of their window says",
              wrong[:2])
    wrong, looked = [], 0
    for at in places:
        rows = json.loads(rolled.get(f"/api/v1/builds/{raw.build}/functions/{at}/series?step=6h")[2])["rows"]
        for row in rows[::3]:
            begin = int(calendar.timegm(time.strptime(row["time"][:19], "%Y-%m-%dT%H:%M:%S")))
            target = f"/api/v1/builds/{raw.build}/functions/{at}?since={begin}&until={begin + 21600}"
            one = json.loads(rolled.get(target)[2])
            f, looked = one["functions"][0], looked + 1
            said = [row[k] for k in ("self_seconds", "children_seconds", "calls", "self_calls", "uploads", "seconds")]
            if said != [f["self_seconds"], f["children_seconds"], f["calls"], f["self_calls"],
                        one["provenance"]["uploads"], one["totals"]["seconds"]]:
                wrong.append((row, f["self_seconds"], f["children_seconds"], f["calls"]))
    tap.point(not wrong and looked > 9, f"{looked} steps say what the report of their window says", wrong[:2])
    target = (f"/api/v1/builds/{raw.build}/functions/{places[0]}/series?step=5m"
              f"&since={stamp(edge(30) + 17 * 60 * SECOND)}&until={stamp(edge(20))}")
    fine = [json.loads(d.get(target)[2])["rows"] for d in (raw, rolled)]
    overlap = [a for a, b in zip(fine[1], fine[1][1:]) if a["time"] >= b["time"]]
    tap.point(all(r["width"] == 300 for r in fine[0]) and all(r["width"] == 3600 and r["time"].endswith(":00:00Z")
            for r in fine[1]) and not overlap and fine[0] and fine[1],
              "steps finer than sums are as wide as they, and none overlaps", fine[1][:3])


def schemas(tap, d):
    for path, target in (("/api/v1/builds/{id}/groups", "groups?by=host&by=zone"),
                         ("/api/v1/builds/{id}/groups", "groups?by=service&step=1h&limit=5"),
                         ("/api/v1/labels", "labels"), ("/api/v1/labels/{name}/values", "values")):
        where = {"labels": f"/api/v1/labels?build_id={d.build}&since=now-2d",
                 "values": f"/api/v1/labels/host/values?build_id={d.build}&until=now"}
        file = os.path.join(d.folder, "answer.json")
        with open(file, "wb") as f:
            f.write(d.get(where.get(target, f"/api/v1/builds/{d.build}/{target}"))[2])
        check = run("/usr/bin/python3", os.path.join(ROOT, "tests/integration/openapi_check.py"), path, file)
        tap.point(check.returncode == 0, f"{target} is what openapi.json says", check.stdout + check.stderr)


def answers(tap, d, exe):
    target = f"/api/v1/builds/{d.build}/groups?by=host&since={stamp(time.time_ns() - 50 * HOUR)[:-4]}0000"
    status, headers, body = d.get(target)
    again = d.get(target, If_None_Match=headers["etag"])
    tap.point(status == 200 and again[0] == 304 and again[2] == b"", "groups have an ETag", (status, again[0]))
    refusals = [(("report", exe, "-m", 'host=~"("'), 64, "offset 1"),
                (("report", exe, "-m", "host=db"), 64, "double quotes"),
                (("groups", exe), 64, "--by LABEL"), (("groups", exe, "--by", "a b"), 64, "a b"),
                (("groups", exe, "--step", "90s"), 64, "90s"),
                (("groups", exe, "--step", "1m"), 64, "2000"), (("groups", "f00f" * 10, "--by", "host"), 66, "f00f")]
    for call, status, word in refusals:
        done = d.ctl(*call)
        tap.point(done.returncode == status and word in done.stderr and done.stderr.count("\n") == 1,
                  f"refused: {' '.join(call[2:]) or call[0]}",
                  (done.returncode, done.stderr))
    table = d.ctl("groups", exe, "--by", "service").stdout.splitlines()
    tap.point(table[0].endswith("service") and any(line.endswith("web front") for line in table)
              and any(line.endswith(" -") for line in table),
              "groups as a table; an absent label is -", table)


def main():
    with Tap() as tap, Daemon() as raw, Daemon("--raw-age", "1s") as rolled:
        exe = os.path.join(raw.folder, "cycle")
        built = run("gcc", "-pg", "-g", "-no-pie", "-Wl,--build-id", "-o", exe,
                    os.path.join(ROOT, "tests/programs/cycle.c"))
        assert built.returncode == 0, built.stderr
        for d in (raw, rolled):
            assert d.ctl("symbols", exe).returncode == 0
        raw.build = rolled.build = build = run("sh", "-c", f"readelf -n {exe} | sed -n 's/.*Build ID: "
                                               f"//p'").stdout.strip()
        fleet, now = Fleet(exe, build), time.time_ns()
        start = now - now % HOUR
        bodies = [fleet.upload(n, start - fleet.draw.randrange(80 * 3600) * SECOND - 1 * SECOND) for n in range(1, 161)]
        send(raw, bodies[:100])
        send(rolled, bodies[:100])
        tap.point(settled(rolled) and state(raw)["raw_uploads"] == 100,
                  "one daemon rolled its uploads up, the other did not", (state(rolled), state(raw)))
        first = rolled.ctl("report", exe, "--json", "--until", stamp(start)).stdout
        send(raw, bodies[100:])
        send(rolled, bodies[100:])  # late ones, into hours and days that are sums already
        tap.point(rolled.ctl("report", exe, "--json", "--until", stamp(start)).stdout != first,
                  "late uploads are in the next answer")
        tap.point(settled(rolled), "and in the sums", state(rolled))
        aligned(tap, raw, rolled, exe, lambda h: start - h * HOUR)
        edges(tap, raw, rolled, exe, lambda h: start - h * HOUR)
        series(tap, raw, rolled, exe, lambda h: start - h * HOUR)
        answers(tap, rolled, exe)
        schemas(tap, rolled)
        tap.point(rolled.ctl("verify").returncode == 0, "all of it adds up")


if __name__ == "__main__":
    main()
