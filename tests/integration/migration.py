"""A database of an older version is brought up to this one while uploads go on and the daemon is killed again and
again. What was stored says the same before and after; upkeep_v3.sql and upkeep_v1.sql are what earlier versions
left."""
import os
import signal
import sqlite3
import threading
import time

from harness import Daemon, Tap, until
from upkeep import A, B, HERE, metric, put, state, ticks
from wire import Wire, sender_number, upload

MANY = 20000  # live processes: more than one slice brings up


def make(path, version, many=0):
    """The database as that version left it."""
    db = sqlite3.connect(path)
    db.executescript(open(os.path.join(HERE, f"upkeep_v{max(version, 3) if version != 1 else 1}.sql"),
                          encoding="utf-8").read())
    if version == 2:
        db.executescript("DROP TABLE instance; DROP TABLE snapshot; PRAGMA user_version=2")
    if many:
        now = time.time_ns()
        db.execute("WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM i WHERE n<?1) "
                   "INSERT INTO instance (uid, name, generation, seen, ended) SELECT 4711, randomblob(16), 1, ?2, 1 "
                   "FROM i", (many, now))
        db.execute("INSERT INTO snapshot SELECT id, x'' FROM instance WHERE uid=4711")
        db.commit()
    sums = (db.execute("SELECT coalesce(sum(ticks), 0), coalesce(sum(calls), 0) FROM series").fetchone() if version > 1
            else None)
    db.close()
    return sums


def totals(d):
    rows = d.json("builds", "--json")["rows"]
    return sum(row["calls"] for row in rows)


class Sender(threading.Thread):
    """Uploads one after the other, over and over the same until it is acknowledged."""

    def __init__(self, d):
        super().__init__(daemon=True)
        self.d, self.number, self.sent, self.ended, self.wrong = d, sender_number(), 0, False, []

    def run(self):
        while not self.ended:
            try:
                with Wire(self.d.socket) as w:
                    while not self.ended:
                        answer = put(w, upload(self.number, self.sent + 1, ticks=1, build_id="ee" * 20,
                                               name="/bin/sender"))
                        if answer in ("new", "again"):
                            self.sent += 1
                        elif "again" not in answer and "busy" not in answer.lower():
                            self.wrong.append(answer)
            except (OSError, ValueError, TypeError):
                time.sleep(0.01)  # it was killed


def migrated(d):
    s = state(d)
    return s["migration_steps"] == 0 and s


def kills(tap):
    with Daemon("--raw-age", "36500d", "--keep-age", "0", start=False) as d:
        os.makedirs(d.state)
        path = os.path.join(d.state, "profd.db")
        _, calls = make(path, 3, MANY)
        sender, seen, deaths = Sender(d), [], 0
        d.start()
        sender.start()
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            s = state(d)
            if s["migration_steps"] == 0:
                break
            if s["migration_rows_done"] > (seen[-1] if seen else 0) or not seen:
                seen.append(s["migration_rows_done"])
                if deaths < 5:
                    d.stop(signal.SIGKILL)
                    deaths += 1
                    d.start()
        tap.point(migrated(d), f"{MANY} rows are brought up while uploads go on and it is killed {deaths} times",
                  state(d))
        tap.point(seen == sorted(seen) and all(n <= MANY + 6 for n in seen), "it goes on where it was", seen)
        before = sender.sent
        tap.point(until(lambda: sender.sent > before + 5), "uploads go on", sender.sent)
        sender.ended = True
        sender.join()
        with Wire(d.socket) as w:
            last = put(w, upload(sender.number, sender.sent + 1, build_id="ee" * 20, name="/bin/sender"))
        tap.point(not sender.wrong and last in ("new", "again"), "and none was refused", sender.wrong[:3])
        tap.point(ticks(d, "ee" * 20) == sender.sent + 1, "each counts once", (ticks(d, "ee" * 20), sender.sent))
        tap.point(totals(d) == calls and (ticks(d, A), ticks(d, B)) == (2675, 2100), "what was there says what it said",
                  (totals(d), calls, ticks(d, A), ticks(d, B)))
        verified = d.ctl("verify")
        tap.point(verified.returncode == 0, "the ledger is right", verified.stdout)
        tap.point(metric(d, "migration_steps") == 0 and "upgrade" not in d.ctl("status").stdout,
                  "nothing is left to do")
        rows = sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute("SELECT width, count(*) FROM slice GROUP BY "
                "width").fetchall()
        tap.point((60, 6) in rows, "the uploads of live processes of before have slices of an hour", rows)


def versions(tap):
    for version, want in ((1, (110, 110)), (2, (2675, 2100)), (3, (2675, 2100))):
        builds = ("ab" * 20, "cd" * 20) if version == 1 else (A, B)
        with Daemon("--raw-age", "36500d", "--keep-age", "0", start=False) as d:
            os.makedirs(d.state)
            make(os.path.join(d.state, "profd.db"), version)
            d.start()
            got = tuple(ticks(d, b) for b in builds)
            tap.point(got == want, f"a file of version {version} is taken over", got)
            tap.point(until(lambda: migrated(d)), "its rows are brought up", state(d))
            got = tuple(ticks(d, b) for b in builds)
            tap.point(got == want and d.ctl("verify").returncode == 0, "and say the same", got)
            copy = os.path.join(d.folder, "copy.db")
            tap.point(d.ctl("backup", copy).returncode == 0, "a backup is made")
            d.stop()
            db = sqlite3.connect(copy)
            version_now = db.execute("PRAGMA user_version").fetchone()[0]
            db.close()
            tap.point(version_now >= 4, "of the newest version", version_now)
            d.options = ("--raw-age", "1s", "--keep-age", "0")
            d.start()
            tap.point(until(lambda: state(d)["raw_uploads"] == 0) and d.ctl("verify").returncode == 0,
                      "single uploads become sums")
            got = tuple(ticks(d, b) for b in builds)
            tap.point(got == want, "which say the same", got)


if __name__ == "__main__":
    with Tap() as tap:
        versions(tap)
        kills(tap)
