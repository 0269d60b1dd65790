#!/usr/bin/python3
"""A centre that keeps segments in ClickHouse: the same segments go to it and to a centre with SQLite alone, and both
say the same. Then whatever fails: the server is away, slow, full, read-only, or lacks what it had stored. Kills are
tests/fleet/shards.py's. Debian's 18.16."""
import contextlib
import gzip
import json
import os
import random
import re
import signal
import threading
import time

from centre import Gate
from clickhouse_bed import PROGRAM, Bed
from harness import NOBODY, PROFCTL, Daemon, Tap, private_mounts, run, until
from judge import calls_of, difference, sums
from relaying import BUILDS, body, window
from wire import Wire, field, sender_number

HOUR = 3600
DOWN = re.compile(rb'"down_count":\d+,"down_seconds":[0-9.e-]+')  # of this centre, which is restarted
BUSY, FULL = 15, 16  # proto/status.h
TENANT = 4294967294  # daemon/store/arrivals.h


def init(bed, database="profd", **parameters):
    done = run(PROFCTL, "clickhouse", "init", bed.url(database, **parameters))
    if done.returncode:
        raise RuntimeError(done.stderr)


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Fleet:
    """Two hosts, a centre with ClickHouse and one without. What the hosts send reaches both."""

    def __init__(self, url, *options):
        self.stack = contextlib.ExitStack()
        start = self.stack.enter_context
        self.hosts = [start(Daemon("--relay", "tls://c:1")) for _ in range(2)]
        self.plain = start(Daemon("--gate", *options))
        self.kept = start(Daemon("--gate", "--store", url, *options))
        self.gates, self.copies = ([Gate(h, c, name) for h, name in zip(self.hosts, ("a.example", "b.example"))]
                                   for c in (self.kept, self.plain))
        self.senders, self.sequences = [sender_number(), sender_number()], [0, 0]
        self.dice, self.sent = random.Random(17), []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def upload(self, count, hours=(0,), spread=60):
        """Each host stores uploads; their windows end in one of the hours before now, up to spread seconds earlier."""
        now = int(time.time())
        for k, h in enumerate(self.hosts):
            with Wire(h.socket) as w:
                for _ in range(count):
                    self.sequences[k] += 1
                    end = now - self.dice.choice(hours) * HOUR - self.dice.randrange(spread)
                    w.send("UPLOAD", body(self.senders[k], self.sequences[k], self.dice.choice(BUILDS),
                                          self.dice.randrange(50), self.dice.randrange(1, 9)) + window(end)
                           + field(12, b"%d" % self.dice.randrange(40)))
                    while w.take()[0] != "ACK":
                        pass

    def settle(self):
        """Delivers what is sealed, to the centre with ClickHouse first, until nothing is left."""
        for g, copy in zip(self.gates, self.copies):
            while g.round():
                self.sent += [(g, s) for s in g.sent if (g, s) not in self.sent]
            with Wire(self.plain.socket) as w:
                copy.arrive(w)
                for s in [s for of, s in self.sent if of is g]:
                    copy.deliver(w, *s)
                    kind, _, _, m = w.take()
                    if kind != "ACKNOWLEDGE":
                        raise RuntimeError(m)


def paths(hours):
    """Limits of windows are whole hours: others move by what has been rolled up, which each store does when it can."""
    now = int(time.time()) // HOUR * HOUR
    first, *others = [f"/api/v1/builds/{b}" for b in BUILDS]
    windows = [f"since={at(now - b * HOUR)}&until={at(now - a * HOUR)}" for a, b in zip(hours[1:], hours[2:])]
    midnight = now // 86400 * 86400
    windows += [f"since={at(midnight - 86400)}&until={at(midnight)}", "since=2020-01-01", "until=2020-01-01"]
    return (["/api/v1/builds", "/api/v1/labels", first, first + "/labels", first + "/companions"]
            + [p + "/report" for p in (first, *others)] + [first + "/report?" + w for w in windows]
            + [first + "/report?" + q for q in (
                "time=calls&limit=3", "scope=build", "label.host=a.example", "match=host%3D~%22b.*%22",
                "match=host!%3D%22b.example%22", "format=text", "format=gprof", "format=pprof", "format=collapsed",
                "view=flat", "static=1")]
            + [first + "/groups?" + q for q in ("by=host", "by=host&step=1d", "step=1h", "by=host&" + windows[0])]
            + [first + "/diff?" + q for q in ("other=" + BUILDS[1],)]
            + ["/api/v1/functions?name=unknown"])


def answers(d, asked):
    with Wire(d.socket) as w:
        return {p: (status, DOWN.sub(b"", text)) for p in asked for status, text in (w.query(p)[:2],)}


def shown(x, y):
    """Where two answers begin to differ."""
    at = next((i for i, (a, b) in enumerate(zip(x[1], y[1])) if a != b), 0)
    return [(status, text[max(at - 200, 0):at + 100]) for status, text in (x, y)]


def compare(tap, fleet, asked, name):
    x, y = answers(fleet.kept, asked), answers(fleet.plain, asked)
    good = [p for p in asked if y[p][0] == 200]
    different = {p: shown(x[p], y[p]) for p in asked if x[p] != y[p]}
    tap.point(not different and len(good) > len(asked) // 2, f"{name}: {len(asked)} answers have the bytes of SQLite",
              different or [y[p] for p in asked if p not in good])
    want, got = sums(*fleet.hosts), calls_of(fleet.kept)
    tap.point(want == got and len(got) == len(BUILDS), f"{name}: reports are the sum of the hosts'",
              difference(want, got))
    done = fleet.kept.ctl("verify")
    tap.point(done.returncode == 0, f"{name}: verification finds nothing", done.stdout + done.stderr)


def delivered(fleet):
    """What the centre says to a segment that the first host has sealed: (kind, message)."""
    g = fleet.gates[0]
    found = g.fetch_all()
    with Wire(fleet.kept.socket) as w:
        g.arrive(w)
        g.deliver(w, *found[0])
        kind, _, _, m = w.take()
    return kind, m


def refuses(tap, fleet, name, *words):
    """Neither stores nor answers, and says why."""
    kind, m = delivered(fleet)
    sentence = m.get(4, b"").decode() if kind == "NACK" else ""
    tap.point(kind == "NACK" and m[1] == BUSY and m.get(2) and all(w in sentence for w in words),
              f"{name}: a host is told to come again", (kind, m))
    with Wire(fleet.kept.socket) as w:
        status, text = w.query(f"/api/v1/builds/{BUILDS[0]}/report")[:2]
        lists = w.query("/api/v1/builds")[0], w.query("/api/v1/labels")[0]
    tap.point(lists == (503, 503), f"{name}: no lists", lists)
    return status, text.decode()


def is_503(got, *words):
    return got[0] == 503 and all(w in json.loads(got[1])["detail"] for w in words)


def same(tap, bed):
    init(bed, cluster="shards")
    hours = [0, 3, 5, 26, 50, 75]
    with Fleet(bed.url("profd", cluster="shards")) as fleet:
        for _ in range(4):
            fleet.upload(30, hours)
            fleet.settle()
        compare(tap, fleet, paths(hours), "two shards")
        tags_of_steps(tap, fleet)
        a, b = bed.servers
        keys, groups, heads, uploads = map(int, a.query(
            "SELECT uniqExact(epoch, sequence), count() = uniqExact(epoch, sequence, grp), sum(head), sum(uploads) "
            "FROM profd.segment_group").split())
        shards = [int(s.query("SELECT count() FROM profd.segment_group_local")) for s in bed.servers]
        tap.point(keys == heads == len(fleet.sent) and groups == 1 and uploads == 240 and all(shards),
                  "each group of a segment is a row of a shard",
                  (keys, groups, heads, len(fleet.sent), uploads, shards))
        before = a.query("SELECT sum(number), count() FROM profd.segment_group")
        with Wire(fleet.kept.socket) as w:
            for g, s in fleet.sent:
                g.arrive(w)
                g.deliver(w, *s)
                w.take()
        tap.point(a.query("SELECT sum(number), count() FROM profd.segment_group") == before, "a repeat is not inserted")
        foreign(tap, fleet, bed, hours)
        fleet.kept.stop(signal.SIGKILL)
        fleet.kept.start()
        compare(tap, fleet, paths(hours), "after a kill")
        lacking(tap, fleet, bed)


def foreign(tap, fleet, bed, hours):
    """Rows that are twice on the servers, also on the wrong one."""
    a, b = bed.servers
    for x, y in ((a, b), (b, a)):
        rows = x.raw("SELECT * FROM profd.segment_group_local FORMAT RowBinary")
        for s in (a, b):
            s.query("INSERT INTO profd.segment_group_local FORMAT RowBinary", rows)
    keys, count = map(int, a.query("SELECT uniqExact(epoch, sequence, grp), count() FROM profd.segment_group").split())
    tap.point(count > 2 * keys, "rows are there several times", (keys, count))
    compare(tap, fleet, paths(hours), "rows that are there several times")


def lacking(tap, fleet, bed):
    """What the servers have lost is noticed."""
    for s in bed.servers:
        s.query("DROP TABLE profd.segment_group_local")
    init(bed, "made", cluster="shards")
    for s in bed.servers:
        s.query("CREATE TABLE profd.segment_group_local AS made.segment_group_local ENGINE = "
                "ReplacingMergeTree(number) PARTITION BY toYYYYMMDD(sent) ORDER BY (program, sent, epoch, sequence, "
                "grp)")
    with Wire(fleet.kept.socket) as w:
        got = w.query(f"/api/v1/builds/{BUILDS[0]}/report?limit=1")
    tap.point(got[0] == 503 and b"segments" in got[1], "a report without lost segments is refused", got)
    done = fleet.kept.ctl("verify")
    tap.point(done.returncode == 65 and "segments" in done.stdout + done.stderr, "verification says so",
              (done.returncode, done.stdout, done.stderr))
    status = fleet.kept.json("status", "--json")["store"]
    tap.point(fleet.kept.process.poll() is None and not status.get("failed"), "and the centre goes on", status)


def failing(tap, bed):
    """One server that fails in every way."""
    a = bed.servers[0]
    a.query("CREATE DATABASE IF NOT EXISTS one")
    run(PROFCTL, "clickhouse", "init", a.url("one"))
    with Fleet(a.url("one")) as fleet:
        fleet.upload(20, (0, 4))
        fleet.settle()
        fleet.upload(20, (0, 4))
        a.stop()
        got = refuses(tap, fleet, "the server is away", "cannot ask ClickHouse")
        tap.point(is_503(got, "cannot ask ClickHouse"), "the server is away: reports say why", got)
        done = fleet.kept.ctl("verify")
        tap.point(done.returncode == 75 and "ClickHouse" in done.stderr, "the server is away: verify says why", done)
        a.start()
        a.process.send_signal(signal.SIGSTOP)
        answer = []
        one = [f"/api/v1/builds/{BUILDS[1]}/report"]
        asking = threading.Thread(target=lambda: answer.append(answers(fleet.kept, one)))
        asking.start()
        kind, m = delivered(fleet)
        asking.join()
        a.process.send_signal(signal.SIGCONT)
        tap.point(kind == "NACK" and m[1] == BUSY and b"does not answer" in m[4], "the server hangs: hosts keep",
                  (kind, m))
        got = list(answer[0].values())[0]
        tap.point(is_503(got, "does not answer"), "the server hangs: reports end", got)
        fleet.kept.stop()
        fleet.kept.options = ["--gate", "--store", a.url("one", user="reader")]
        fleet.kept.start()
        kind, m = delivered(fleet)
        tap.point(kind == "NACK" and m[1] == BUSY and b"readonly" in m[4], "a user that may only read: hosts keep",
                  (kind, m))
        fleet.kept.stop()
        fleet.kept.options = ["--gate", "--store", a.url("one")]
        fleet.kept.start()
        fleet.settle()
        compare(tap, fleet, paths([0, 3, 5]), "after all of it")
        deleted(tap, fleet)


def full(tap, bed):
    """The disk of one of two servers is full."""
    b = bed.servers[1]
    data = os.path.join(b.folder, "data")
    b.stop()
    run("mount", "-t", "tmpfs", "-o", f"size=48m,mode=0700,uid={NOBODY},gid={NOBODY}", "tmpfs", data)
    b.start()
    init(bed, "full", cluster="shards")
    with Fleet(bed.url("full", cluster="shards")) as fleet:
        fleet.upload(20)
        fleet.settle()
        fleet.upload(20)
        with contextlib.suppress(OSError), open(os.path.join(data, "foreign"), "wb", buffering=0) as f:
            while True:
                f.write(bytes(4096))
        kind, m = delivered(fleet)
        tap.point(kind == "NACK" and m[1] in (BUSY, FULL) and m.get(2), "a server is full: hosts keep", (kind, m))
        got = answers(fleet.kept, [f"/api/v1/builds/{BUILDS[2]}/report"])
        tap.point([x[0] for x in got.values()] == [200], "a server is full: reports are answered", got)
        os.unlink(os.path.join(data, "foreign"))
        tap.point(until(lambda: delivered(fleet)[0] == "ACKNOWLEDGE"), "with space again it counts")
        fleet.settle()
        compare(tap, fleet, paths([0, 3, 5]), "after that")


def skewed(tap, bed):
    """Clocks of hosts: of one, 2 hours behind, of the other, 26 ahead. Hours are those of the centre, and reports say
    that they were corrected. To the millisecond two centres measure different clocks."""
    init(bed, "skewed", cluster="shards")
    with Fleet(bed.url("skewed", cluster="shards")) as fleet:
        for gates in (fleet.gates, fleet.copies):
            gates[0].ahead, gates[1].ahead = -2 * HOUR * 10**9, 26 * HOUR * 10**9
        fleet.upload(20, (2,))
        fleet.settle()
        asked = [f"/api/v1/builds/{b}/groups?by=host&step=1h" for b in BUILDS]
        x, y = ([json.loads(text)["rows"] for _, text in answers(d, asked).values()] for d in (fleet.kept, fleet.plain))
        for row in (r for rows in (*x, *y) for r in rows):
            del row["first"], row["last"]
        hours = {r["label_host"]: {r["time"][:13]} for rows in x for r in rows}
        tap.point(x == y and all("clock" in r["inexact_reasons"] for rows in x for r in rows) and len(hours) == 2,
                  f"clocks of hosts that are wrong: {hours}", (x, y))
        want, got = sums(*fleet.hosts), calls_of(fleet.kept)
        done = fleet.kept.ctl("verify")
        tap.point(want == got and done.returncode == 0, "clocks of hosts that are wrong: all is there, once",
                  (difference(want, got), done.stdout, done.stderr))
        half_deleted(tap, fleet, bed)


def tag(d, path):
    with Wire(d.socket) as w:
        w.send("QUERY", field(1, path), 5)
        return w.take()[3].get(3)


def half_deleted(tap, fleet, bed):
    """A delete has reached one shard of two, and then its daemon was killed: it counts, whichever server is asked, and
    no tag of before is used again. The operator repeats it."""
    a, b = bed.servers
    path = f"/api/v1/builds/{BUILDS[1]}/report"
    url = a.url("skewed", cluster="shards").replace(f":{a.http}/", f":{b.http},127.0.0.1:{a.http}/")
    with Daemon("--gate", "--store", url) as other:
        before = [tag(d, path) for d in (fleet.kept, other)]
        b.query("INSERT INTO skewed.deletion FORMAT TSV",
                f"{BUILDS[0]}\t{TENANT}\t1\t{time.time_ns()}\n".encode())
        got = [calls_of(d) for d in (fleet.kept, other)]
        tap.point(got[0] == got[1] and set(got[0]) == set(BUILDS[1:]), "half of a delete: both servers say the same",
                  got)
        after = [tag(d, path) for d in (fleet.kept, other)]
        tap.point(before[0] == before[1] and after[0] == after[1] != before[0] and None not in before + after,
                  "half of a delete: tags are new", (before, after))
        done = other.ctl("verify")
        tap.point(done.returncode == 0, "half of a delete: verification finds nothing", done.stdout + done.stderr)


def tags_of_steps(tap, fleet):
    """What is in steps below an hour moves when the hour is rolled up: these answers have no tag."""
    path = f"/api/v1/builds/{BUILDS[0]}/groups?step="
    got = {d: [tag(d, path + step) is None for step in ("10m", "30m", "1h", "1d")] for d in (fleet.kept, fleet.plain)}
    tap.point(all(x == [True, True, False, False] for x in got.values()), "answers of short steps have no tag",
              list(got.values()))


def deleted(tap, fleet):
    """What was deleted stays deleted, although the server still has the rows; what comes later counts."""
    for d in (fleet.kept, fleet.plain, *fleet.hosts):
        done = d.ctl("delete", BUILDS[0], "--yes")
        if done.returncode:
            raise RuntimeError(done.stderr)
    got = calls_of(fleet.kept)
    tap.point(set(got) == set(BUILDS[1:]) and got == calls_of(fleet.plain), "a deleted program is gone", got)
    ended = int(time.time())
    until(lambda: time.time() > ended + 2)  # what ended before the delete stays deleted
    fleet.upload(30, spread=1)
    fleet.settle()
    tap.point(until(lambda: set(calls_of(fleet.kept)) == set(BUILDS)), "what is counted later is shown",
              calls_of(fleet.kept))
    compare(tap, fleet, paths([0, 3, 5]), "after a delete")


def limit(fleet, bed, url):
    """Starts the centre so that days before today are to go: the database, with a table that is not profd's, is larger
    than it may be. By age nothing would go in the first minutes."""
    fleet.kept.stop()
    for s in bed.servers:
        database = url.split("?")[0].rsplit("/", 1)[1]
        s.query(f"CREATE TABLE {database}.other (x String) ENGINE = MergeTree ORDER BY tuple()")
        s.query(f"INSERT INTO {database}.other FORMAT TSV", os.urandom(2 << 20).hex().encode())
    fleet.kept.options = ["--gate", "--store", url, "--keep-bytes", "1M"]
    fleet.kept.start()


def days(bed, database="profd"):
    """How many days each server has hours of, and segments."""
    return [[int(s.query(f"SELECT uniqExact(intDiv(hour, 24)) FROM {database}.{t} WHERE program != ''"))
             for t in ("change", "segment_group")] for s in bed.servers]


def judge(tap, fleet, since, name):
    """What is left since then: SQLite has the same."""
    asked = [f"/api/v1/builds/{b}/{what}since={at(since)}" for b in BUILDS for what in ("report?", "groups?by=host&")]
    x, y = answers(fleet.kept, asked), answers(fleet.plain, asked)
    different = {p: shown(x[p], y[p]) for p in asked if x[p] != y[p]}
    statuses = [got[0] for got in x.values()]
    tap.point(not different and statuses.count(200) >= 4, f"{name}: what is left has the bytes of SQLite",
              different or statuses)
    done = fleet.kept.ctl("verify")
    tap.point(done.returncode == 0, f"{name}: verification finds nothing", done.stdout + done.stderr)


def retained(tap, bed):
    """Days before today go, on all shards."""
    init(bed, "old", cluster="shards")
    url = bed.url("old", cluster="shards")
    with Fleet(url) as fleet:
        fleet.upload(20, (0, 30, 80))
        fleet.settle()
        before = days(bed, "old")
        limit(fleet, bed, url)
        gone = until(lambda: all(n <= 1 for have in days(bed, "old") for n in have))
        tap.point(gone and all(n > 1 for have in before for n in have), "retention: days before today are gone",
                  (before, days(bed, "old"), fleet.kept.logged()))
        fleet.kept.stop()
        fleet.kept.options = ["--gate", "--store", url]
        fleet.kept.start()
        midnight = int(time.time()) // (24 * HOUR) * 24 * HOUR
        fleet.upload(10, spread=1)
        fleet.settle()
        judge(tap, fleet, midnight, "retention")


def refused(tap):
    for words, options in ((("does not begin with clickhouse://",), ("--gate", "--store", "http://h")),
                           (("store and relay",), ("--relay", "tls://c:1", "--store", "clickhouse://h")),
                           (("store-password",), ("--gate", "--store-password", "/etc/passwd")),
                           (("cannot",), ("--gate", "--store", "clickhouse://[::1]", "--store-password", "/nowhere"))):
        with Daemon(*options, start=False) as d:
            done = run(*d.command(), timeout=60)
            tap.point(done.returncode in (66, 78) and all(w in done.stderr for w in words),
                      f"{' '.join(options)} is refused",
                      (done.returncode, done.stderr))


def with_database(tap):
    """Data of before would not be shown."""
    with Daemon("--gate") as d:
        d.stop()
        d.options = ["--gate", "--store", "clickhouse://127.0.0.1:1"]
        done = run(*d.command(), timeout=60)
        tap.point(done.returncode == 78 and "clickhouse import" in done.stderr, "a state directory with a database",
                  (done.returncode, done.stderr))


def beside(tap, bed):
    """Two daemons that take segments and one that only answers, over the same tables: any host may send to any daemon,
    also the same segment to both, and all say the same."""
    init(bed, "beside", cluster="shards")
    url = bed.url("beside", cluster="shards")
    with contextlib.ExitStack() as stack:
        start = stack.enter_context
        hosts = [start(Daemon("--relay", "tls://c:1")) for _ in range(2)]
        takers = [start(Daemon("--gate", "--store", url)) for _ in range(2)]
        reader = start(Daemon("--store", url))
        gates = [[Gate(h, t, n) for t in takers] for h, n in zip(hosts, ("a.example", "b.example"))]
        dice, sequence = random.Random(3), 0
        senders = [sender_number(), sender_number()]
        for _ in range(4):
            for k, h in enumerate(hosts):
                with Wire(h.socket) as w:
                    for _ in range(10):
                        sequence += 1
                        w.send("UPLOAD", body(senders[k], sequence, dice.choice(BUILDS), dice.randrange(50),
                                              dice.randrange(1, 9)))
                        while w.take()[0] != "ACK":
                            pass
                g, other = dice.sample(gates[k], 2)
                while g.round():
                    with Wire(other.centre.socket) as w:  # as if the acknowledgement had been lost
                        for s in g.sent:
                            other.arrive(w)
                            other.deliver(w, *s)
                            w.take()
        want = sums(*hosts)
        got = [calls_of(d) for d in (*takers, reader)]
        tap.point(all(x == want for x in got), "two daemons that take segments and one that answers",
                  [difference(want, x) for x in got])
        asked = paths([0, 3])
        first, *others = [answers(d, asked) for d in (reader, *takers)]
        tap.point(all(x == first for x in others) and sum(x[0] == 200 for x in first.values()) > len(asked) // 2,
                  f"{len(asked)} answers have the same bytes", [{p: shown(x[p], first[p]) for p in asked
                                                                 if x[p] != first[p]} for x in others])
        tags = [tag(d, f"/api/v1/builds/{BUILDS[0]}/report") for d in (reader, *takers)]
        tap.point(len(set(tags)) == 1 and tags[0], "and the same ETags", tags)
        with Wire(hosts[0].socket) as w:
            w.send("UPLOAD", body(senders[0], 999, BUILDS[0], 1, 1))
            while w.take()[0] != "ACK":
                pass
        while gates[0][1].round():
            pass
        tap.point(until(lambda: calls_of(takers[0]) == sums(*hosts)), "what one takes, the others show at once")
        refuses_local(tap, takers[0])


def refuses_local(tap, centre):
    """Uploads and processes of its own machine."""
    with Wire(centre.socket) as w:
        w.send("UPLOAD", body(sender_number(), 1, BUILDS[0], 1, 1))
        while (answer := w.take())[0] not in ("ACK", "NACK"):
            pass
    tap.point(answer[0] == "NACK" and b"ClickHouse" in answer[3].get(4, b""), "a local upload is refused in words",
              answer)


def partial_paths():
    """Everything that takes partial=1."""
    first = f"/api/v1/builds/{BUILDS[0]}"
    return [p + "&partial=1" for p in (
        *(f"{first}/report?format={f}" for f in ("json", "text", "pprof", "callgrind", "folded", "speedscope", "dot",
                                                 "csv", "flamegraph", "nodegraph", "tree")),
        f"{first}/report?view=flat", f"{first}/counts?scope=build", f"{first}/groups?by=host",
        f"{first}/groups?by=host&label.host=none", f"{first}/cycles?limit=9", f"{first}/never-called?limit=9",
        f"{first}/functions?name=x", f"{first}/functions/0?scope=program",
        f"/api/v1/diff?a={BUILDS[0]}&b={BUILDS[1]}", "/api/v1/load?by=host", "/api/v1/functions?name=unknown",
        "/api/v1/versions?limit=9")]


def one_away(tap, bed):
    """One shard of two is down: nothing is answered, or what the other has if that is asked for, and said."""
    init(bed, "away", cluster="shards")
    a, b = bed.servers
    with Fleet(bed.url("away", cluster="shards")) as fleet:
        for _ in range(3):  # segments of each program on each shard
            fleet.upload(40, (0, 3, 5, 26))
            fleet.settle()
        b.stop()
        path = f"/api/v1/builds/{BUILDS[0]}/report"
        with Wire(fleet.kept.socket) as w:
            whole, part = w.query(path)[:2], w.query(path + "?partial=1")
        tap.point(is_503(whole, "ClickHouse"), "a shard is down: a report is refused", whole)
        seen = json.loads(part[1])["provenance"] if part[0] == 200 else {}
        tap.point("shards-missing" in seen.get("inexact_reasons", []) and seen["exact"] is False,
                  "a shard is down: partial=1 answers and says so", part)
        with Wire(fleet.kept.socket) as w:
            groups = w.query(f"/api/v1/builds/{BUILDS[0]}/groups?by=host&step=1h&partial=1")
            builds = w.query("/api/v1/builds?partial=1")
        rows = json.loads(groups[1]).get("rows", [])
        tap.point(rows and all("shards-missing" in r["inexact_reasons"] for r in rows),
                  "a shard is down: each group says so", groups)
        tap.point(builds[0] == 200 and json.loads(builds[1])["partial"] is True,
                  "a shard is down: and the list of builds", builds)
        said = answers(fleet.kept, partial_paths())
        silent = [p for p, (status, text) in said.items() if status != 503 and b"shards-missing" not in (
            gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text)]
        whole = [p for p, (status, _) in said.items() if status == 200]
        tap.point(not silent and 5 < len(whole) < len(said),
                  f"a shard is down: {len(whole)} formats and lists say so, {len(said) - len(whole)} are refused",
                  silent or {p: status for p, (status, _) in said.items()})
        b.start()
        with Wire(fleet.kept.socket) as w:
            again, part = w.query(path), w.query(path + "?partial=1")
        tap.point(again[0] == part[0] == 200 and json.loads(part[1])["provenance"]["exact"] is True
                  and json.loads(part[1])["provenance"] == json.loads(again[1])["provenance"],
                  "it is back: both have everything",
                  (again, part))


def main():
    mounts = private_mounts()
    with Tap() as tap:
        refused(tap)
        with_database(tap)
        if not PROGRAM:
            tap.skip("servers of ClickHouse", "clickhouse-server is not installed")
            return
        with Bed(2) as bed:
            same(tap, bed)
            retained(tap, bed)
            skewed(tap, bed)
            beside(tap, bed)
            one_away(tap, bed)
            failing(tap, bed)
            if mounts:
                full(tap, bed)
            else:
                tap.skip("a server that is full", "private mounts are not allowed here")


if __name__ == "__main__":
    main()
