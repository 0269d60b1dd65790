"""Several centres on one ClickHouse, each with hosts of its own: an answer of each about past days has the bytes that a
centre without ClickHouse gives which got all uploads; also when one is lost for good, another begins with an empty
database, blocks leave, and processes are killed while they mirror."""
import copy
import json
import os
import random
import shutil
import signal
import time

from harness import Daemon, Tap, run, until
from tier import Bed, daemon, differing, sealed, tier
from tier_bed import Between, Chdb, Old, drop
from uploads import Host
from windows import HOUR, settled, stamp
from wire import field, sender_number

SENT, KILLS = 80, 10  # uploads of each host


class Machine:
    """A host that sends each of its uploads to its centre, and to a centre without ClickHouse."""

    def __init__(self, bed, name, number, *daemons, tenant="default"):
        self.sent = []
        self.hosts = [Host(d, name, "--write", "--tenant", tenant) for d in daemons]
        self.programs = [copy.copy(p) for p in bed.programs]
        for p in self.programs:
            p.sender, p.draw = sender_number(), random.Random(number)
        self.bed = Bed.__new__(Bed)
        self.bed.__dict__.update(bed.__dict__, programs=self.programs, sent=1000 * number)

    def send(self, n=SENT, **hours):
        uploads = self.bed.uploads(n, **hours)
        self.sent += uploads
        for h in self.hosts:
            for k in range(0, n, 40):
                assert {o for o, _ in h.send(*uploads[k:k + 40])} == {"counted"}


def plain(body):
    """An answer without the names of the centres, which only one of the daemons has."""
    try:
        whole = json.loads(body)
    except ValueError:
        return b"\n".join(x for x in body.split(b"\n") if not x.startswith(b"Centres   "))
    for x in (whole, *(whole.get(k) for k in ("a", "b"))) if isinstance(whole, dict) else ():
        if isinstance(x, dict) and isinstance(x.get("provenance"), dict):
            x["provenance"].pop("centres", None)
    return json.dumps(whole).encode()


def ask(bed, d, **headers):
    out = {}
    for q in bed.questions():
        if q != "/api/v1/hosts":  # of this centre alone
            status, _, body = d.get(q, **headers)
            out[q] = status, plain(body)
    return out


def mirrored(d, *others):
    """The blocks that these centres have sealed, and no others, are in d's reports, whose look at them may be older."""
    def look():
        want = sorted((o.centre, s["sealed_to"], s["days_sealed"]) for o in others for s in [tier(o)])
        t = tier(d)
        return ([(c["name"], c["sealed_to"], c["days"]) for c in t["centres"]] == want and not any(
            c["waiting_blocks"] for c in t["centres"]) and not t["centres_error"] and t)
    return until(look)


def verified(tap, d, what):
    done = d.ctl("verify")
    tap.point(done.returncode == 0 and "no mismatch" in done.stdout, f"verification finds nothing: {what}",
              done.stdout + done.stderr)


def same(tap, bed, truth, *daemons):
    """daemons: (daemon, name of the point)."""
    want = ask(bed, truth)
    for d, what in daemons:
        got = ask(bed, d)
        tap.point(got == want, what, differing(want, got)[:3])


def begin(ch, bed, name, **more):
    d = daemon(ch, "--tier-name", name, **more)
    d.centre = name
    return d


def names(d, bed):
    """What a report says of the centres."""
    p = bed.programs[0]
    report = json.loads(d.get(f"/api/v1/builds/{p.build}/report")[2])
    return report["provenance"].get("centres"), d.ctl("report", p.exe, "-f", "text").stdout


def centres(tap, kind):
    with kind() as ch, Daemon("--raw-age", "1s") as truth, begin(ch, None, "eu-1") as a, begin(ch, None, "us-1") as b:
        bed = Bed()
        for d in (truth, a, b):
            for p in bed.programs:
                assert d.ctl("symbols", p.exe).returncode == 0
        machines = [Machine(bed, f"db{i}", i, (a, b)[i % 2], truth) for i in range(4)]
        other = Machine(bed, "else", 9, b, truth, tenant="other")
        for m in (*machines, other):
            m.send(latest=80)
        tap.point(all(map(settled, (truth, a, b))), "hosts have sent to two centres, and all of it to a third")
        assert a.ctl("tier", "init").returncode == 0
        tap.point(sealed(a) and sealed(b), "both have moved their past days", (tier(a), tier(b)))
        t = mirrored(a, b), mirrored(b, a)
        tap.point(all(t), "and each knows the other's", (tier(a), tier(b), a.logged()[-2000:]))
        same(tap, bed, truth, (a, "every answer of the first has the bytes of one that got all"),
             (b, "of the second, too"))
        said, text = names(a, bed)
        until_when = t[0]["centres"][0]["sealed_to"]
        tap.point(said == [{"name": "us-1", "sealed_to": until_when}], "reports name the other centre", (said, t[0]))
        tap.point(f"us-1 to {until_when[:10]}\n" in text, "in text, too", text[:600])
        status = a.ctl("tier", "status").stdout
        tap.point(f"centre   us-1 to {until_when[:10]}: {t[0]['centres'][0]['days']} days" in status,
                  "and so does profctl tier status", status)
        rights(tap, bed, a, truth)
        for d in (a, b):
            verified(tap, d, "two centres")
        leaving(tap, ch, bed, a)
        deleted(tap, bed, a, b, truth)
        lost(tap, ch, bed, a, b, truth)


def marked(tap, kind):
    """What says that the hours of a centre are not exact is said by another's reports, too."""
    with kind() as ch, begin(ch, None, "eu-1") as a, begin(ch, None, "us-1") as b:
        bed = Bed()
        for d in (a, b):
            for p in bed.programs:
                assert d.ctl("symbols", p.exe).returncode == 0
        m = Machine(bed, "db0", 0, a)
        m.send(latest=80)
        # Others with the key of the first upload, if they have its sender, too.
        others = [m.programs[1].upload(1, bed.start - 100 * HOUR) for _ in range(20)]
        outcomes = {o for o, _ in m.hosts[0].send(*others)}
        assert settled(a) and a.ctl("tier", "init").returncode == 0 and sealed(a), (tier(a), a.logged())
        assert mirrored(b, a), (tier(b), b.logged()[-2000:])
        said = [[json.loads(d.get(f"/api/v1/builds/{p.build}/report")[2])["provenance"] for p in bed.programs]
                for d in (a, b)]
        short = [[(x["exact"], x["inexact_reasons"]) for x in s] for s in said]
        tap.point("conflict" in outcomes and any("upload-missing" in r for _, r in short[0]) and short[0] == short[1],
                  "an upload that a centre has refused is missing in the reports of both", (outcomes, short))
        learned(tap, ch, bed, m, a, b)


def learned(tap, ch, bed, m, a, b):
    """What a centre learns of a day after it has sealed it is said by the other, too, also of programs without sums in
    that hour; and by one that begins later."""
    day = (bed.start - 130 * HOUR) // (24 * HOUR) * 24 * HOUR
    window = f"since={stamp(day)}&until={stamp(day + 24 * HOUR)}"

    def reasons(d):
        out = []
        for p in bed.programs:
            status, _, body = d.get(f"/api/v1/builds/{p.build}/report?{window}")
            assert status == 200, body
            out.append(json.loads(body)["provenance"]["inexact_reasons"])
        return out
    before = reasons(a), reasons(b)
    others = [m.programs[1].upload(1, day + 12 * HOUR) for _ in range(20)]
    outcomes = {o for o, _ in m.hosts[0].send(*others)}
    now = reasons(a)
    tap.point("conflict" in outcomes and before[0] == before[1] and not any("upload-missing" in r for r in before[0])
              and all("upload-missing" in r for r in now), "a centre learns of a sealed day that something is missing",
              (outcomes, before, now))
    tap.point(until(lambda: reasons(b) == now), "and soon the other one says so, for every program",
              (reasons(b), b.logged()[-2000:]))
    with begin(ch, bed, "ap-1") as c:
        for p in bed.programs:
            assert c.ctl("symbols", p.exe).returncode == 0
        there, said = mirrored(c, a), reasons(c)
        tap.point(there and said == now, "one that begins later, too", (said, now, tier(c)))


def rights(tap, bed, a, truth):
    """A token sees what its tenant has at any centre, and nothing else."""
    for tenant in ("default", "other"):
        said = [{"authorization": f"Bearer {d.token('reader-' + tenant, '--read', '--tenant', tenant)}"}
                for d in (a, truth)]
        want, got = ({q: v for q, v in ask(bed, d, **h).items()} for d, h in ((truth, said[1]), (a, said[0])))
        good = sum(status == 200 for status, _ in want.values())
        tap.point(got == want and good > 20, f"a token of tenant {tenant} gets what that tenant's hosts have sent",
                  (good, differing(want, got)[:3]))


def deleted(tap, bed, a, b, truth):
    """What is deleted at one centre is deleted at all."""
    build = bed.programs[1].build
    done = [d.ctl("delete", "--yes", build) for d in (a, truth)]
    tap.point(all(x.returncode == 0 for x in done), "a program is deleted at the first centre", done)
    want = ask(bed, truth)
    tap.point(until(lambda: b.get(f"/api/v1/builds/{build}/report")[0] != 200) and until(lambda: ask(bed, b) == want),
              "soon the second does not have it, either, and has the rest", (tier(b), b.logged()[-1000:]))
    got = ask(bed, a)
    tap.point(got == want, "and so does the first", differing(want, got)[:3])
    tap.point(mirrored(a, b) and mirrored(b, a)
              and all(d.ctl("verify").returncode == 0 for d in (a, b)), "verification finds nothing after that")


def covered(tap, kind):
    """A centre seals days before it hears of a deletion, and ClickHouse fails, or the centre is killed, before it has
    recorded that these are covered, too: other centres hear of it all the same."""
    with kind() as ch, Between(ch.http, "tombstone") as gate, begin(ch, None, "us-1", start=False) as b, \
            Daemon("--raw-age", "1s", "--tier-name", "eu-1", "--tier", ch.url(port=gate.http)) as a:
        a.centre = "eu-1"
        bed = Bed()
        m = Machine(bed, "db0", 0, a)
        m.send(latest=80)
        assert settled(a) and a.ctl("tier", "init").returncode == 0 and sealed(a), (tier(a), a.logged())
        newest = ch.query("SELECT max(block) FROM profd.manifest").strip()
        for p, killed in zip(bed.programs[1:], (False, True)):
            gate.damage = drop
            seen = len(gate.seen)
            ch.query("INSERT INTO profd.tombstone SELECT 'default', "
                     f"'{p.build}', centre, 1, {time.time_ns()} FROM profd.manifest LIMIT 1")
            tap.point(until(lambda: len(gate.seen) > seen)
                      and a.get(f"/api/v1/builds/{p.build}/report")[0] == 404,
                      "a centre that hears of a deletion applies it, and records what it had sealed", gate.seen)
            if killed:
                a.stop(signal.SIGKILL)
                a.start()
            gate.damage = None
            tap.point(until(lambda: ch.query("SELECT toString(max(block)) FROM profd.tombstone "
                                             f"WHERE build = '{p.build}'").strip() == newest),
                      f"which is recorded in the end, {'after a kill' if killed else 'after a failure'}",
                      (tier(a), a.logged()[-2000:]))
        b.start()
        tap.point(mirrored(b, a) and [b.get(f"/api/v1/builds/{p.build}/report")[0] for p in bed.programs]
                  == [200, 404, 404], "a centre that begins later does not have what was deleted",
                  [b.get(f"/api/v1/builds/{p.build}/report")[2][:200] for p in bed.programs])


ODD = """it's "odd"\\ \t\u00e9 \x01
Code: 60, e.displayText() = DB::Exception: Table life.sum doesn't exist., e.what() = DB::Exception
"""  # value of a label, which looks like an error behind rows


def odd(tap, kind):
    """Labels with any text are counted at each centre. Rows that the manifest loses are named; what an empty one lacks
    stays in reports."""
    with kind() as ch, Daemon("--raw-age", "1s") as truth, begin(ch, None, "eu-1") as a, begin(ch, None, "us-1") as b:
        bed = Bed()
        for d in (truth, a, b):
            for p in bed.programs:
                assert d.ctl("symbols", p.exe).returncode == 0
        m = Machine(bed, "db0", 0, a, truth)
        uploads = [u + field(7, field(1, "zz") + field(2, ODD)) for u in m.bed.uploads(30, latest=80)]
        for h in m.hosts:
            assert {o for o, _ in h.send(*uploads)} == {"counted"}
        assert settled(truth) and settled(a) and a.ctl("tier", "init").returncode == 0 and sealed(a), tier(a)
        there = mirrored(b, a)
        values = json.loads(b.get("/api/v1/labels/zz/values")[2])
        tap.point(there and ODD in [r["value"] for r in values["rows"]], "a label that looks like an error is there",
                  (values, tier(b)))
        same(tap, bed, truth, (a, "answers of its centre have the bytes of one without ClickHouse"),
             (b, "and so have those of the other one"))
        manifest(tap, ch, bed, truth, a, b)


def manifest(tap, ch, bed, truth, a, b):
    columns = "centre, name, day, block, attempt, state, rows, bytes, checksum, keys, sealed, version"
    ch.query("CREATE TABLE profd.kept ENGINE = MergeTree ORDER BY block AS SELECT * FROM profd.manifest")
    ch.query("TRUNCATE TABLE profd.manifest")
    tap.point(until(lambda: "manifest of ClickHouse is empty" in (tier(b)["centres_error"] or "")),
              "a manifest that lost all rows is named", tier(b))
    tap.point(until(lambda: "lacks block" in (tier(a)["centres_refused"] or "")), "also by the centre that wrote them",
              (tier(a), a.logged()[-1000:]))
    same(tap, bed, truth, (a, "it counts them"), (b, "and so does the other centre"))
    first = ch.query("SELECT min(block) FROM profd.kept").strip()
    ch.query(f"INSERT INTO profd.manifest SELECT {columns} FROM profd.kept WHERE block > {first}")
    tap.point(until(lambda: not tier(b)["centres_error"]) and until(
        lambda: f"lacks block {first} " in (tier(a)["centres_refused"] or "")), "one that lost a row is named",
        (tier(a), tier(b)))
    ch.query(f"INSERT INTO profd.manifest SELECT {columns} FROM profd.kept WHERE block = {first}")
    tap.point(until(lambda: not tier(a)["centres_refused"]) and mirrored(b, a), "until it is there again", tier(a))
    same(tap, bed, truth, (a, "then all is as it was"), (b, "at the other centre, too"))
    for d in (a, truth):
        d.stop()
        d.options = (*d.options, "--keep-age", "60s")
        d.start()
    want = {}
    tap.point(until(lambda: tier(a)["days_sealed"] == 0 and ch.query("SELECT count() FROM profd.sum") == "0\n")
              and mirrored(b), "days that their centre drops leave the other centre", (tier(a), tier(b)))
    tap.point(until(lambda: want.update(ask(bed, truth)) or ask(bed, b) == want), "which has nothing of them",
              differing(ask(bed, truth), ask(bed, b))[:3])
    tap.point(not any(tier(d)["centres_refused"] or tier(d)["centres_error"] for d in (a, b)),
              "and finds no fault in it", (tier(a), tier(b)))


def leaving(tap, ch, bed, a):
    """A block that its centre drops leaves, and one that is false never comes."""
    p = bed.programs[0]
    before = tier(a)["centres"][0]
    question = f"/api/v1/builds/{p.build}/report"
    tag = {k.lower(): v for k, v in a.get(question)[1].items()}["etag"]
    row = ch.query("SELECT hex(centre), name, day, block, attempt, rows, bytes, checksum, sealed, version "
                   "FROM profd.manifest WHERE name = 'us-1' ORDER BY day LIMIT 1").split()

    def put(row, state, version, name="us-1", block=None, rows=None):
        ch.query("INSERT INTO profd.manifest (centre, name, day, block, attempt, state, rows, bytes, checksum, keys, "
                 f"sealed, version) SELECT unhex('{row[0]}'), '{name}', {row[2]}, {block or row[3]}, {row[4]}, "
                 f"{state}, {rows or row[5]}, {row[6]}, {row[7]}, '', {row[8]}, {version}")
    put(row, 2, int(row[9]) + 1)
    tap.point(until(lambda: tier(a)["centres"][0]["days"] == before["days"] - 1), "a block that is dropped leaves",
              tier(a))
    tap.point(a.get(question, if_none_match=tag)[0] == 200, "and the tag of an answer with it is not good any more")
    verified(tap, a, "after it has left")
    put(row, 1, int(row[9]) + 2)
    tap.point(until(lambda: tier(a)["centres"][0] == before), "one that is visible again comes again", tier(a))
    put(row, 1, 1, block=900, rows=int(row[5]) + 1)
    put(row, 1, 1, block=901, name="<b>us</b>")
    tap.point(until(lambda: "of block 90" in (r := tier(a)["centres_refused"] or "") or "block 900" in r),
              "a false one is refused", tier(a))
    said, _ = names(a, bed)
    tap.point(until(lambda: tier(a)["centres"][0]["waiting_blocks"] == 1)
              and names(a, bed)[0][0]["sealed_to"] < before["sealed_to"],
              "and reports say that its day is not there", (said, before))
    put(row, 2, 2, block=900, rows=int(row[5]) + 1)
    tap.point(until(lambda: tier(a)["centres"][0] == before), "until it is gone", tier(a))


def lost(tap, ch, bed, a, b, truth):
    """A centre is lost for good, and one begins with an empty database while it is killed."""
    draw = random.Random(3)
    before = ask(bed, a)
    b.stop(signal.SIGKILL)
    shutil.rmtree(b.state)
    tap.point(ask(bed, a) == before, "what a lost centre has left behind is still counted")
    with begin(ch, bed, "us-1", start=False) as c:
        times = []
        for _ in range(KILLS):
            c.start()
            time.sleep(draw.random() * 0.5)
            c.stop(signal.SIGKILL)
            times.append(time.time())
        c.start()
        for p in bed.programs[:1] + bed.programs[2:]:
            assert c.ctl("symbols", p.exe).returncode == 0
        t = until(lambda: (t := tier(c)) and len(t["centres"]) == 2 and not any(
            x["waiting_blocks"] for x in t["centres"]) and t)
        tap.point(t, f"an empty centre that was killed {KILLS} times knows all of both", (tier(c), c.logged()[-2000:]))
        tap.point(t and "named us-1, too" in (t["centres_named_alike"] or ""),
                  "and says that a centre has its own name already", t)
        verified(tap, c, "after the kills")
        same(tap, bed, truth, (c, "every answer has the bytes of one that got all"))


def restored(tap, kind):
    """A centre is restored from a backup that is older than what it sealed, and its hosts send again what it lacks."""
    with kind() as ch, Daemon("--raw-age", "1s") as truth, begin(ch, None, "eu-1") as a, begin(ch, None, "us-1") as b:
        bed = Bed()
        for d in (truth, a):
            for p in bed.programs:
                assert d.ctl("symbols", p.exe).returncode == 0
        machines = [Machine(bed, f"db{i}", i, a, truth) for i in range(2)]
        backup = os.path.join(truth.folder, "copy")
        for m in machines:
            m.send(30, latest=80)
        settled(a)
        assert a.ctl("backup", backup).returncode == 0
        for m in machines:
            m.send(30, latest=80)
        settled(a)
        assert a.ctl("tier", "init").returncode == 0 and sealed(a)
        days = tier(a)["days_sealed"]
        for m in machines:  # late, and lost
            m.send(10, latest=80)
        settled(a)
        same(tap, bed, truth, (a, "days are sealed, and late uploads are beside them"))
        ch.stop()
        a.stop()
        done = run(*a.command(), "--restore", backup)
        a.start()
        status, answer = machines[0].hosts[0].post(machines[0].sent[:1])
        tap.point(done.returncode == 0 and status == 503 and "restored" in answer["detail"]
                  and until(lambda: tier(a)["adopting"]),
                  "a restored centre accepts no upload of a host before it has asked ClickHouse", (status, answer))
        ch.start()
        tap.point(until(lambda: not tier(a)["adopting"] and tier(a)["days_sealed"] == days and sealed(a)),
                  "then it takes over the days that it had sealed", (tier(a), a.logged()[-2000:]))
        verified(tap, a, "after the days were taken over")
        for m in machines:
            for k in range(0, len(m.sent), 35):
                m.hosts[0].send(*m.sent[k:k + 35])
        tap.point(settled(a), "hosts have sent everything again")
        same(tap, bed, truth, (a, "each upload is counted once"))
        verified(tap, a, "after everything was sent again")
        tap.point(mirrored(b, a) and tier(b)["centres"][0]["days"] == days, "the other centre sees the same days",
                  tier(b))
        a.stop(signal.SIGKILL)
        a.start()
        same(tap, bed, truth, (a, "after a restart, too"))


def main():
    with Tap() as tap:
        # Both kinds of server are asked for the days of another centre; what happens to these is tested with one.
        for kind, part in ((Old, centres), (Chdb, marked), (Chdb, covered), (Chdb, odd), (Chdb, restored)):
            tap.skip(f"{kind.__name__}: {part.__name__}", kind.why_not) if kind.why_not else part(tap, kind)


if __name__ == "__main__":
    main()
