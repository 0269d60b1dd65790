"""Past days in ClickHouse: whatever is asked, the answer has the same bytes before a day is moved, after it, after a
restart, and after kills at any moment of it. Without ClickHouse recent days are answered, and uploads go on."""
import json
import os
import random
import signal
import sqlite3
import time

from clocks import FAKETIME, moved_as
from harness import PROFD, ROOT, Daemon, Tap, made_once, run, until
from tier_bed import Chdb, Old
from windows import HOUR, SECOND, Fleet, send, settled, stamp, state

DAY = 24 * HOUR
SINCE, KILLS = 6, int(os.environ.get("PROFD_TIER_KILLS", "8"))
PROGRAMS = (("gcc", "cycle.c"), ("gcc", "calc.c"), ("g++", "shapes.cc"))


class Program(Fleet):
    """Uploads of one program; most call functions of its own."""

    def __init__(self, exe):
        notes = run("readelf", "-n", exe).stdout
        super().__init__(exe, notes.split("Build ID: ")[1].split()[0])
        lines = (line.split() for line in run("nm", "-S", "--defined-only", exe).stdout.splitlines())
        code = sorted((int(w[0], 16), int(w[1], 16)) for w in lines if len(w) == 4 and w[2] in "tT")
        self.functions = [f for f in code if f[1] > 40][:8]


def build(folder):
    for compiler, source in PROGRAMS:
        built = run(compiler, "-pg", "-g", "-no-pie", "-Wl,--build-id", "-o",
                    os.path.join(folder, os.path.splitext(source)[0]), os.path.join(ROOT, "tests/programs", source),
                    "-lm")
        assert built.returncode == 0, built.stderr


class Bed:
    """Programs, and their uploads of the latest days, which two daemons can be given alike."""

    def __init__(self):
        folder = made_once("tier", build)
        self.programs = [Program(os.path.join(folder, os.path.splitext(source)[0])) for _, source in PROGRAMS]
        now = time.time_ns()
        self.start = now - now % HOUR
        self.sent = 0

    def uploads(self, n, oldest=SINCE * 24, latest=1):
        out = []
        for _ in range(n):
            self.sent += 1
            p = self.programs[self.sent % len(self.programs)]
            hours = p.draw.randrange(latest * 3600, oldest * 3600)
            out.append(p.upload(self.sent, self.start - hours * SECOND))
        return out

    def questions(self):
        """What is asked of the API: in all formats, about all days, some, and labels."""
        at = [self.start - h * HOUR for h in (SINCE * 24 + 24, 100, 50, 0)]
        windows = ["", f"&since={stamp(at[0])}&until={stamp(at[1])}", f"&since={stamp(at[1])}&until={stamp(at[2])}",
                   f"&until={stamp(at[3])}&label.service=api"]
        out = []
        for i, p in enumerate(self.programs):
            base = f"/api/v1/builds/{p.build}"
            for k, w in enumerate(windows):
                formats = ("json", "text", "gprof", "callgrind", "pprof", "folded", "csv", "dot")
                some = range(3 - (i + k) % 3, len(formats), 3)
                out += [f"{base}/report?format={formats[n]}{w}" for n in (0, *some)]
                if (i + k) % 2 == 0:
                    out += [f"{base}/groups?by=host&step=1d{w}", f"{base}/groups?step=1h&by=service{w}"]
                    out += [f"{base}/{what}?{w[1:]}" for what in ("counts", "never-called", "cycles", "functions")]
            out.append(f"{base}/functions/{p.functions[1][0]:#x}/series?step=1d&since={stamp(at[0])}")
            out.append(f"/api/v1/diff?a={p.build}&a.until={stamp(at[1])}&b={p.build}&b.since={stamp(at[1])}")
        out += [f"/api/v1/{what}" for what in ("builds", "labels", "labels/host/values", "labels/service/values",
                                               f"functions?since={stamp(at[0])}", "load?by=host&step=1d", "hosts")]
        return out

    def ask(self, d):
        return {q: answer(d, q) for q in self.questions()}


def answer(d, question):
    status, _, body = d.get(question)
    return status, body


def differing(a, b):
    return [(q, a[q][0], b[q][0], a[q][1][:200], b[q][1][:200]) for q in a if a[q] != b[q]]


def daemon(ch, *options, database="profd", **more):
    return Daemon("--raw-age", "1s", "--tier", ch.url(database), *options, **more)


def tier(d):
    return state(d)["tier"]


def sealed(d):
    """Everything that may be moved was moved."""
    return until(lambda: (t := tier(d))["days_waiting"] == 0 and t["days_sealed"] and t["error"] is None)


def fill(d, bed, bodies):
    for p in bed.programs:
        assert d.ctl("symbols", p.exe).returncode == 0
    send(d, bodies)


def same(tap, kind):
    with kind() as ch, Daemon("--raw-age", "1s") as plain, daemon(ch, start=False) as d:
        bed = Bed()
        bodies = bed.uploads(240)
        for each in (plain, d.start()):
            fill(each, bed, bodies)
        tap.point(settled(plain) and settled(d), "two daemons have the same sums")
        before = bed.ask(plain)
        good = sum(status == 200 for status, _ in before.values())
        tap.point(good >= 0.9 * len(before), f"{good} of {len(before)} questions have an answer",
                  [(q, a) for q, a in before.items() if a[0] != 200][:5])
        away = tier(d)
        tap.point(until(lambda: tier(d)["error"]) and tier(d)["days_sealed"] == 0,
                  "without tables nothing is moved, and status says why", away)
        done = d.ctl("tier", "init")
        tap.point(done.returncode == 0, "profctl tier init makes them", done.stdout + done.stderr)
        tap.point(sealed(d), "then past days are moved", (tier(d), d.logged()))
        t = tier(d)
        tap.point(t["days_sealed"] >= SINCE - 3 and t["sums"] > 0 and t["bytes"] > 0, "as status says", t)
        after = bed.ask(d)
        tap.point(after == before, "every answer has the bytes that it had", differing(before, after)[:3])
        d.stop()
        d.start()
        after = bed.ask(d)
        tap.point(after == before, "also after a restart", differing(before, after)[:3])
        done = d.ctl("verify")
        tap.point(done.returncode == 0 and "no mismatch" in done.stdout, "all of it adds up", done.stdout + done.stderr)
        metrics = d.get("/metrics")[2].decode()
        tap.point(f"profd_tier_sealed_days {t['days_sealed']}\n" in metrics
                  and "profd_tier_waiting_days 0\n" in metrics, "/metrics says the same",
                  [line for line in metrics.splitlines() if "tier" in line])
        late(tap, bed, plain, d)
        gone(tap, bed, ch, plain, d)


def late(tap, bed, plain, d):
    bodies = bed.uploads(60, latest=80)
    for each in (plain, d):
        send(each, bodies)
    before, after = bed.ask(plain), bed.ask(d)
    tap.point(after == before, "late uploads into days that were moved are counted at once",
              differing(before, after)[:3])
    tap.point(settled(plain) and settled(d), "and become sums")
    before, after = bed.ask(plain), bed.ask(d)
    tap.point(after == before, "beside those that were moved", differing(before, after)[:3])


def gone(tap, bed, ch, plain, d):
    ch.stop()
    d.stop()
    d.start()
    p = bed.programs[0]
    recent = f"/api/v1/builds/{p.build}/report?since={stamp(bed.start - 20 * HOUR)}"
    tap.point(answer(d, recent) == answer(plain, recent) and answer(d, recent)[0] == 200,
              "without ClickHouse recent days are answered", answer(d, recent))
    status, headers, body = d.get(f"/api/v1/builds/{p.build}/report")
    problem = json.loads(body)
    day = time.strftime("%Y-%m-", time.gmtime(bed.start / 1e9 - 5 * 86400))
    tap.point(status == 503 and "retry-after" in {k.lower() for k in headers} and "ClickHouse" in problem["detail"]
              and day in problem["detail"], "of older ones the sentence names ClickHouse and the days",
              (status, headers, body))
    bodies = bed.uploads(30, oldest=20)
    for each in (plain, d):
        send(each, bodies)
    tap.point(answer(d, recent) == answer(plain, recent), "uploads go on", answer(d, recent)[1][:300])
    ch.start()
    questions = bed.questions()
    tap.point(until(lambda: d.get(questions[0])[0] == 200), "when it is back, all days are answered again")
    before, after = bed.ask(plain), bed.ask(d)
    tap.point(after == before, "with the same bytes", differing(before, after)[:3])


def moments(tap):
    """A clock that is in doubt seals nothing; days that were sealed get a further block each seal-after."""
    with Chdb() as ch, daemon(ch, start=False) as d, Daemon("--raw-age", "1s", start=False) as plain:
        ahead = os.path.join(d.folder, "ahead")
        for each in (plain, d):
            with open(ahead, "w", encoding="ascii") as f:
                f.write("+0")
            each.env = moved_as(ahead) | each.env
            each.start()
        d.ctl("tier", "init")
        bed = Bed()
        bodies = bed.uploads(90)
        for each in (plain, d):
            fill(each, bed, bodies)
        tap.point(settled(d) and settled(plain) and sealed(d), "past days are moved", tier(d))
        first = tier(d)["days_sealed"]
        more = bed.uploads(40, latest=90)
        for each in (plain, d):
            send(each, more)
        settled(d), settled(plain)
        with open(ahead, "w", encoding="ascii") as f:
            f.write(f"+{3 * 86400}")
        tap.point(until(lambda: state(d)["clock_ahead_seconds"] > 0) and tier(d)["days_sealed"] == first,
                  "a clock that has jumped ahead moves nothing", tier(d))
        for each in (plain, d):
            each.ctl("retention", "--confirm-clock")
        tap.point(until(lambda: tier(d)["days_sealed"] > first and tier(d)["days_waiting"] == 0),
                  "when it is confirmed, the days that have ended since are moved", (tier(d), d.logged()))
        d.stop()
        with sqlite3.connect(os.path.join(d.state, "profd.db")) as db:
            blocks = db.execute("SELECT day, count(*) FROM block GROUP BY day").fetchall()
        d.start()
        tap.point(max(n for _, n in blocks) == 2, "late uploads became a further block of their day", blocks)
        before, after = bed.ask(plain), bed.ask(d)
        tap.point(after == before, "every answer has the same bytes", differing(before, after)[:3])
        done = d.ctl("verify")
        tap.point(done.returncode == 0 and "no mismatch" in done.stdout, "all of it adds up", done.stdout + done.stderr)


def killed(tap):
    draw = random.Random(7)
    with Chdb() as ch, Daemon("--raw-age", "1s") as plain, daemon(ch, start=False) as d:
        bed = Bed()
        bodies = bed.uploads(300)
        for each in (plain, d.start()):
            fill(each, bed, bodies)
            settled(each)
        before = bed.ask(plain)
        d.ctl("tier", "init")
        counts = []
        for n in range(KILLS):
            time.sleep(draw.random() * 0.6)
            victims = draw.choice([(d,), (ch,), (d, ch)])
            for v in victims:
                v.stop(signal.SIGKILL)
            time.sleep(draw.random() * 0.2)
            for v in victims:
                v.start()
            counts.append(tier(d)["days_sealed"])
        tap.point(until(lambda: tier(d)["days_waiting"] == 0 and tier(d)["days_sealed"] >= SINCE - 3),
                  f"after {KILLS} kills all past days are moved: {counts}", (tier(d), d.logged()[-2000:]))
        after = bed.ask(d)
        tap.point(after == before, "every answer has the bytes that it had", differing(before, after)[:3])
        done = d.ctl("verify")
        tap.point(done.returncode == 0 and "no mismatch" in done.stdout, "all of it adds up", done.stdout + done.stderr)


def restored(tap):
    """A database that lacks blocks which ClickHouse has takes them over."""
    with Chdb() as ch, Daemon("--raw-age", "1s") as plain, daemon(ch, start=False) as d:
        bed = Bed()
        d.start()
        fill(d, bed, bed.uploads(60))
        settled(d)
        before, copy = bed.ask(d), os.path.join(plain.folder, "backup")
        assert d.ctl("backup", copy).returncode == 0
        d.ctl("tier", "init")
        assert sealed(d)
        d.stop()
        assert run(PROFD, "--state-dir", d.state, "--restore", copy).returncode == 0
        d.start()
        tap.point(until(lambda: not (t := tier(d))["adopting"] and t["days_sealed"] and sealed(d)),
                  "a restored database takes over the days that ClickHouse has", (tier(d), d.logged()[-2000:]))
        totals = [[json.loads(a[f"/api/v1/builds/{p.build}/report?format=json"][1])["totals"] for p in bed.programs]
                  for a in (before, bed.ask(d))]
        tap.point(totals[0] == totals[1], "and reports have what they had", totals)


def main():
    with Tap() as tap:
        for kind in (Chdb, Old):
            tap.skip(kind.__name__, kind.why_not) if kind.why_not else same(tap, kind)
        if Chdb.why_not or not FAKETIME:
            tap.skip("clocks and kills", Chdb.why_not or "no libfaketime here")
        else:
            moments(tap)
            killed(tap)
            restored(tap)


if __name__ == "__main__":
    main()
