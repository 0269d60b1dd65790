"""The collector's counters and samples of several dimensions, sent as a relay would, asked of two daemons: one keeps
single uploads, the other has rolled them up. Coverage is what the words say, no tick is one of theirs, every answer is
the same, and all of it adds up."""
import json
import os
import random
import struct
import subprocess
import time

from harness import ROOT, Daemon, Tap, bounds, run, symbols, until
from wire import Wire, encoded, field, sender_number, varint, words

SECOND, HOUR = 10**9, 3600 * 10**9


class Fleet:
    def __init__(self, exe, build):
        self.draw, self.sender, self.build, self.exe, self.sums, self.cycles = random.Random(
                7), sender_number(), build, exe, {}, 0
        self.low, self.high = bounds(exe)
        table = symbols(exe)
        self.functions = [table[name] for name in ("main", "a", "b", "c", "d") if name in table and table[name][1] > 1]
        self.ticks = self.calls = 0

    def body(self, sequence, end, counts, inexact=0, sender=0):
        out = (field(1, struct.pack("<QI", self.sender + sender, 7)) + field(2, sequence)
               + field(6, field(1, self.build) + field(2, self.exe)))
        out += field(7, field(1, "host") + field(2, f"db{self.draw.randrange(2)}"))
        out += varint(3 << 3 | 1) + struct.pack("<Q", end - 30 * SECOND) + varint(4 << 3 | 1) + struct.pack("<Q", end)
        return out + field(8, counts) + (field(9, inexact) if inexact else b"") + field(10, 1) + field(11, "a" * 32)

    def upload(self, n, end):
        draw, spans = self.draw, (self.low, self.high, (self.high - self.low) // 4)
        bins = {(f[0] - self.low) // 4 + draw.randrange(2): draw.randrange(1, 99) for f in self.functions}
        arcs = [(f[0] + draw.randrange(1, f[1]), g[0], draw.randrange(9)) for f in self.functions
                for g in self.functions if draw.random() < 0.5]
        histograms = [(0, *spans, 100, "seconds", "s", bins)]
        self.ticks += sum(bins.values())
        self.calls += sum(a[2] for a in arcs)
        if draw.randrange(3) == 0:
            histograms.append((0, *spans, 1, "cycles", "y", bins))
            self.cycles += sum(bins.values())
        if draw.randrange(4):
            sampled = sum(bins.values()) * SECOND // 100
            some = {"processes": 1, "sampled_seconds": sampled + 6 * 10**7, "cpu_seconds": sampled + 10**8,
                    "collector_seconds": 3 * 10**7,
                    "blocked_seconds": 10**7, "outside_seconds": 2 * 10**7, "calls_lost": draw.randrange(3),
                    "of a later version": 5}
            histograms.insert(draw.randrange(len(histograms) + 1), words(some))
            for key, value in some.items():
                self.sums[key] = self.sums.get(key, 0) + value
        return self.body(n, end, encoded(histograms, arcs), sender=draw.randrange(3))


def send(d, bodies):
    with Wire(d.socket) as w:
        for body in bodies:
            w.send("UPLOAD", body, 9)
            while (answer := w.take())[:2] != ("ACK", 9):
                assert answer[0] != "NACK", answer


def refusal(d, body):
    with Wire(d.socket) as w:
        w.send("UPLOAD", body, 9)
        while (answer := w.take())[0] not in ("ACK", "NACK"):
            pass
    return answer


def settled(d):
    until(lambda: json.loads(d.get("/api/v1/status")[2])["raw_uploads"] == 0)
    return json.loads(d.get("/api/v1/status")[2])["raw_uploads"] == 0


def sums(tap, d, exe, fleet):
    report = d.json("report", exe, "--json")
    told, want = report["collector"], {k: v / SECOND if k.endswith("_seconds") else v for k,
                                       v in fleet.sums.items() if k in report["collector"]}
    tap.point(all(abs(told[k] - v) < 1e-9 for k, v in want.items()) and len(want) == 7,
              "words add up over uploads, hours and days", (told, want))
    attributed = ((fleet.sums["sampled_seconds"] - fleet.sums["collector_seconds"] - fleet.sums["blocked_seconds"]
                   - fleet.sums["outside_seconds"]) / SECOND)
    tap.point(abs(told["attributed_seconds"] - attributed) < 1e-9
              and abs(told["coverage"] - attributed / (want["cpu_seconds"] - want["collector_seconds"])) < 1e-12
              and abs(told["overhead"] - want["collector_seconds"] / want["sampled_seconds"]) < 1e-12,
              "coverage is what functions have of the program's own CPU time, overhead what counting took", told)
    totals = report["totals"]
    ticks = fleet.ticks + fleet.sums["outside_seconds"] * 100 // SECOND
    tap.point((totals["ticks"], totals["calls"]) == (ticks, fleet.calls) and totals["dimension"] == "seconds"
              and totals["other_dimensions"] == [{"dimension": "cycles", "ticks": fleet.cycles}],
              "no tick is a word but those outside of all builds, nor of another dimension", totals)
    cycles = d.json("report", exe, "--json", "--dimension", "cycles")
    tap.point(cycles["totals"]["ticks"] == fleet.cycles and cycles["collector"] == told,
              "the other dimension is a step away", cycles["totals"])
    text = d.ctl("report", exe, "--verbose").stdout
    tap.point(f"Coverage  {100 * told['coverage']:.2f}% of the CPU time outside the collector is in known "
              "objects: " in text
              and f"Overhead  {100 * told['overhead']:.2f}% of the ticks were inside the collector" in text
              and f"{fleet.sums['calls_lost']} calls lost for lack of memory\n" in text
              and f"{told['collector_seconds']:.2f}  [collector] (not in the total)" in text
              and f"Left out  cycles ({fleet.cycles} ticks)" in text,
              "the text says the same", text[:1500])


def same(tap, raw, rolled, exe, edge):
    stamp = lambda ns: str(ns // SECOND)
    windows = [(), ("--since", stamp(edge(50))), ("--since", stamp(edge(70)), "--until", stamp(edge(3))),
               ("-l", "host=db1")]
    asked = [("report", "--json"), ("report",), ("report", "-f", "gprof", "--geometry", "2"),
             ("report", "--json", "--scope", "build"), ("report", "--scope", "everywhere"),
             ("report", "--json", "--dimension", "cycles"), ("report", "-f", "callgrind"),
             ("export", "-o", "-", "--geometry", "2"), ("groups", "--by", "host", "--json"),
             ("groups", "--step", "1d", "--dimension", "cycles", "--json")]
    for ask in asked:
        other, some = [], 0
        for window in windows:
            call = (ask[0], exe, *ask[1:], *window)
            x, y = raw.ctl(*call, binary=True), rolled.ctl(*call, binary=True)
            some += x.returncode == 0 and len(x.stdout) > 50
            if (x.returncode, x.stdout, x.stderr) != (y.returncode, y.stdout, y.stderr):
                other.append((call, x.stdout[:400], y.stdout[:400], x.stderr, y.stderr))
        tap.point(not other and some == len(windows), f"{' '.join(ask)}: {some} answers are the same from sums",
                  other[:2])


def refusals(tap, d, fleet, now):
    bad = [({"rate": 2}, "rate 2"), ({"bins": 32}, "32 bins"), ({"low": 4}, "0x4-0x40"), ({"high": 128}, "0x0-0x80"),
           ({"short": "s"}, "'s'")]
    for change, word in bad:
        answer = refusal(d, fleet.body(90000, now, encoded([words({"processes": 1}, **change)])))
        tap.point(answer[0] == "NACK" and b"of dimension collector" in answer[3][4] and word.encode() in answer[3][4],
                  f"refused: words with {word}", answer)
    answer = refusal(d, fleet.body(90000, now, encoded([words({"processes": 1}), words({"processes": 1})])))
    tap.point(answer[0] == "NACK" and b"at most one is" in answer[3][4], "refused: words twice", answer)
    done = d.ctl("report", fleet.exe, "--dimension", "misses")
    tap.point(done.returncode == 64 and done.stderr.count("\n") == 1 and "cycles, seconds" in done.stderr,
              "refused: a dimension that is not there", done.stderr)
    done = d.ctl("groups", fleet.exe, "--by", "host", "--dimension", "misses")
    tap.point(done.returncode == 64 and "cycles, seconds" in done.stderr, "and for groups", done.stderr)


def schemas(tap, d):
    file = os.path.join(d.folder, "answer.json")
    for target in ("", "?view=flat", "?scope=everywhere&dimension=cycles", "?limit=1"):
        with open(file, "wb") as f:
            f.write(d.get(f"/api/v1/builds/{d.build}/report{target}")[2])
        check = run("/usr/bin/python3", os.path.join(ROOT, "tests/integration/schema_check.py"), file)
        tap.point(check.returncode == 0, f"report{target} is what the schema says", check.stdout + check.stderr)
    with open(file, "wb") as f:
        f.write(d.get(f"/api/v1/builds/{d.build}/groups?by=host")[2])
    check = run("/usr/bin/python3", os.path.join(ROOT, "tests/integration/openapi_check.py"),
                "/api/v1/builds/{id}/groups", file)
    tap.point(check.returncode == 0, "groups are what openapi.json says", check.stdout + check.stderr)


def sampled(tap, d, exe, fleet, now):
    """Pairs that were sampled: the same arcs, but nobody takes them for counts."""
    arc = [(fleet.functions[0][0] + 1, fleet.functions[1][0], 5)]
    send(d, [fleet.body(80000, now, encoded([words({"processes": 1, "ends_not_seen": 1})], arc), inexact=128 | 64)])
    report = d.json("report", exe, "--json")
    reasons = report["provenance"]
    tap.point(reasons["inexact_reasons"] == ["end-not-seen", "sampled", "shared-bins"] and not reasons["calls_exact"]
              and not reasons["ticks_exact"]
              and report["collector"]["ends_not_seen"] == 1, "sampled calls and an end not seen are reasons", reasons)
    text = d.ctl("report", exe).stdout
    meaning = "          end-not-seen     the end of a process was not seen: its last counts are missing\n"
    tap.point(f"Exact     no: end-not-seen, sampled, shared-bins\n{meaning}          shared-bins " in text
              and "\n~calls    sampled, at least in part: " in text
              and (" ~calls " in text or " ~calls+self " in text) and " ~called " in text
              and "1 process that ended unseen" in text, "sampled calls are marked in the text",
              text[:1500])
    dot = d.ctl("report", exe, "-f", "dot").stdout
    tap.point('label="~' in dot and "calls were sampled" in dot, "and in pictures", dot[:400])


def gprof_agrees(tap, d, exe):
    """The exported sum has samples of two dimensions, which gprof would not add up; of one it is what the real gprof
    prints."""
    out = os.path.join(d.folder, "gmon.sum")
    refused = d.ctl("export", exe, "-o", out)
    tap.point(refused.returncode != 0 and "units differ" in refused.stderr and "collector" not in refused.stderr,
              "two dimensions want a choice", refused.stderr)
    done = d.ctl("export", exe, "-o", out, "--geometry", "2")
    listing = d.ctl("report", exe, "-f", "gprof", "--geometry", "2")
    theirs = subprocess.run(["gprof", "-b", exe, out], capture_output=True, text=True, check=False)
    tap.point(done.returncode == 0 and theirs.returncode == 0 and listing.stdout == theirs.stdout
              and " main" in theirs.stdout,
              "words are in no gmon.out: gprof prints what we print",
              (done.stderr, listing.stderr, theirs.stderr, theirs.stdout[:300]))


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
        bodies = [fleet.upload(n, start - fleet.draw.randrange(80 * 3600) * SECOND - SECOND) for n in range(1, 121)]
        for part in (bodies[:80], bodies[80:]):  # the second into hours and days that are sums already
            send(raw, part)
            send(rolled, part)
            tap.point(settled(rolled), "one daemon rolled its uploads up")
        for d in (raw, rolled):
            sums(tap, d, exe, fleet)
        same(tap, raw, rolled, exe, lambda h: start - h * HOUR)
        gprof_agrees(tap, raw, exe)
        refusals(tap, raw, fleet, now)
        schemas(tap, rolled)
        sampled(tap, rolled, exe, fleet, now)
        for d in (raw, rolled):
            tap.point(d.ctl("verify").returncode == 0, "all of it adds up")


main()
