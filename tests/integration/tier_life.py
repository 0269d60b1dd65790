"""What happens to days in ClickHouse: a deletion is recorded there first, or refused; retention drops the days, also
when it is killed; whatever is asked, the answer has the bytes of a daemon without a tier. tier_cluster.py tests the
same with Debian's 18.16."""
import os
import random
import signal
import sqlite3
import time

from harness import Daemon, Tap, until
from tier import Bed, daemon, differing, fill, sealed, tier
from tier_bed import Chdb
from windows import send, settled

KILLS = 4


def servers(ch):
    return getattr(ch, "servers", [ch])


def ask(ch, query):
    return servers(ch)[0].query(query).split()


def both(plain, d, bodies):
    for each in (plain, d):
        send(each, bodies)
    return settled(plain) and settled(d)


def equal(tap, name, bed, plain, d):
    bad = differing(bed.ask(plain), bed.ask(d))
    tap.point(not bad, name, bad[:3])


def soon_equal(tap, name, bed, plain, d):
    want, bad = bed.ask(plain), []

    def look():
        bad[:] = differing(want, bed.ask(d))
        return not bad
    tap.point(until(look), name, bad[:3])


def deleted(tap, name, ch, bed, plain, d):
    build = bed.programs[1].build
    for s in servers(ch):
        s.stop()
    done = d.ctl("delete", "--yes", build)
    tap.point(done.returncode == 69 and len(done.stderr.splitlines()) == 1 and "ClickHouse" in done.stderr
              and build in done.stderr, f"{name}: without ClickHouse a deletion is refused in a sentence", done)
    for s in servers(ch):
        s.start()
    soon_equal(tap, f"{name}: and nothing is deleted", bed, plain, d)
    want, said = plain.ctl("delete", "--yes", build), []
    # Replicas that have just begun accept inserts only after a while. One that failed may have been stored: then the
    # daemon finds it there, and the build is gone before it is deleted again.
    until(lambda: said.append(d.ctl("delete", "--yes", build)) or said[-1].returncode != 69)
    found = len(said) > 1 and said[-1].returncode == 66 and "no profile of build" in said[-1].stderr
    tap.point(want.returncode == 0 and (found or said[-1].returncode == 0 and said[-1].stdout == want.stdout),
              f"{name}: with it, it is done", (want, said))
    there = ask(ch, "SELECT build, uniqExact(tenant), uniqExact(centre), max(block) > 2 FROM life.tombstone "
                    "GROUP BY build")
    tap.point(there == [build, "1", "1", "1"], f"{name}: and recorded there", there)
    equal(tap, f"{name}: the answers are those of SQLite", bed, plain, d)
    again = d.ctl("delete", "--yes", build)
    tap.point(again.returncode != 0 and "no profile of build" in again.stderr
              and ask(ch, "SELECT uniqExact(build) FROM life.tombstone") == ["1"],
              f"{name}: what is not there is not deleted again", again)
    tap.point(both(plain, d, bed.uploads(30)), f"{name}: uploads go on")
    equal(tap, f"{name}: and count, also of the program that was deleted", bed, plain, d)


def retired(tap, name, ch, bed, plain, d):
    """Past days go; a day of another centre stays."""
    draw, path = random.Random(3), os.path.join(d.state, "profd.db")
    with sqlite3.connect(path) as db:
        own = f"hex(centre) = '{db.execute('SELECT hex(name) FROM centre').fetchone()[0]}'"
    days = [int(x) for x in ask(ch, f"SELECT DISTINCT day FROM life.sum WHERE {own} ORDER BY day")]
    servers(ch)[0].query(f"INSERT INTO life.sum (centre, day) VALUES ('another centre..', {days[0]})",
                         insert_distributed_sync=1)
    others = ask(ch, f"SELECT count() FROM life.sum WHERE NOT ({own})")
    servers(ch)[0].query("INSERT INTO life.mark SELECT DISTINCT centre, toInt64(day) * 24 + 3, '', '', toUInt32(4) "
                         "FROM life.sum", insert_distributed_sync=1)
    for each in (plain, d):
        each.stop()
        each.options = (*each.options, "--keep-age", "60s")
        each.start()
    for _ in range(KILLS):
        time.sleep(draw.random())
        d.stop(signal.SIGKILL)
        d.start()

    def blocks():
        with sqlite3.connect(path) as db:
            return db.execute("SELECT number, day, state FROM block").fetchall()

    over = until(lambda: not blocks())
    left = ask(ch, f"SELECT countIf({own} AND day > 0), countIf(NOT ({own})) FROM life.sum")
    tap.point(over and left == ["0", *others],
              f"{name}: after {KILLS} kills, {len(days)} days that are too old are dropped there, too",
              (blocks(), left, tier(d), d.logged()[-1500:]))
    marks = f"SELECT countIf({own}), countIf(NOT ({own})) FROM life.mark"
    tap.point(until(lambda: ask(ch, marks) == ["0", "1"]), f"{name}: and so are the marks of these days",
              (ask(ch, marks), tier(d)))
    dropped = ask(ch, "SELECT uniqExact(day) FROM life.manifest WHERE state = 2 AND " + own)
    tap.point(dropped == [str(len(days))] and tier(d)["error"] is None, f"{name}: no manifest lists them", dropped)
    soon_equal(tap, f"{name}: the answers are those of SQLite again", bed, plain, d)
    done = d.ctl("verify")
    tap.point(done.returncode == 0 and "no mismatch" in done.stdout, f"{name}: all of it adds up", done)


def life(tap, name, ch):
    """In a database of its own: what other centres sealed would be in every answer."""
    with Daemon("--raw-age", "1s") as plain, daemon(ch, database="life", start=False) as d:
        bed = Bed()
        bodies = bed.uploads(90)
        for each in (plain, d.start()):
            fill(each, bed, bodies)
        done = d.ctl("tier", "init")
        tap.point(settled(plain) and settled(d) and sealed(d), f"{name}: past days are moved", (done, tier(d)))
        deleted(tap, name, ch, bed, plain, d)
        retired(tap, name, ch, bed, plain, d)


def main():
    with Tap() as tap:
        if Chdb.why_not:
            tap.skip("what happens to days", Chdb.why_not)
        else:
            with Chdb() as ch:
                life(tap, "Chdb", ch)


if __name__ == "__main__":
    main()
