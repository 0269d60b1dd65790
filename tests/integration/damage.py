"""A database that is damaged when the daemon starts: kept under a dated name, and uploads are accepted into a new one.
What is not ours, newer, or merely unreadable is left alone."""
import glob
import hashlib
import os
import re
import shutil
import sqlite3

from harness import PROFD, Daemon, Tap, run
from wire import Wire, sender_number, upload

A = "ab" * 20
NAME = re.compile(r"profd\.db\.damaged-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(\.\d+)?")


def put(d, n=1):
    said = []
    with Wire(d.socket) as w:
        for _ in range(n):
            w.send("UPLOAD", upload(sender_number(), 1, ticks=1, build_id=A), 7)
            while (answer := w.take())[0] == "WANT_OBJECT":
                pass
            said.append(answer[0])
    return said


def ticks(d):
    done = d.ctl("report", A, "--json")
    return 0 if done.returncode == 66 else round(100 * d.json("report", A, "--json")["totals"]["seconds"])


def content(path):
    return hashlib.sha256(open(path, "rb").read()).hexdigest()


def aside(d):
    return sorted(n for n in os.listdir(d.state) if n.startswith("profd.db.damaged-") and not n.endswith("-wal"))


def write(path, at, data):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)


def sql(text):
    def act(path):
        with sqlite3.connect(path) as db:
            db.executescript(text)
        db.close()
    return act


PAGE = "a page in the middle"
OURS = (("page 1 overwritten", lambda p: write(p, 0, b"\x5a" * 4096)),
        ("only zeros", lambda p: write(p, 0, bytes(os.path.getsize(p)))),
        ("the header's first bytes", lambda p: write(p, 0, b"\xff" * 16)),
        ("the application id", lambda p: write(p, 68, b"\x12\x34\x56\x78")),
        (PAGE, lambda p: write(p, 4096 * 4, b"\x5a" * 4096)),
        ("cut to a half", lambda p: os.truncate(p, os.path.getsize(p) // 2)),
        ("cut to 50 bytes", lambda p: os.truncate(p, 50)), ("a missing table", sql("DROP TABLE ledger")),
        ("no version", sql("PRAGMA user_version=0")),
        ("another table in its place", sql("DROP TABLE deletion; CREATE TABLE deletion (build_id, before)")),
        ("an empty state", sql("DELETE FROM state")))


def ours(tap):
    with Daemon(start=False) as d:
        path, kept = os.path.join(d.state, "profd.db"), 0
        for name, act in OURS:
            d.start()
            put(d, 5)
            d.stop()
            act(path)
            before = content(path)
            try:
                d.start()
                if name == PAGE:
                    tap.point(len(aside(d)) == kept and put(d) == ["NACK"],
                              f"{name}: the file keeps its place until an upload needs the page", d.logged()[-500:])
                    d.stop()
                    before = content(path)  # upkeep may have written to other pages meanwhile
                    d.start()
            except RuntimeError as e:
                tap.point(False, f"{name}: the daemon starts", e)
                os.unlink(path)
                os.unlink(os.path.join(d.state, "lock"))
                continue
            names = aside(d)
            kept += 1
            tap.point(len(names) == kept and all(NAME.fullmatch(n) for n in names)
                      and before in [content(os.path.join(d.state, n)) for n in names],
                      f"{name}: the file is kept as it was", (names, kept))
            tap.point(put(d) == ["ACK"] and ticks(d) == 1, f"{name}: uploads go into a new database", d.logged()[-500:])
            ready, status, metrics = d.get("/readyz"), d.json("status",
                    "--json")["store"], d.get("/metrics")[2].decode()
            said = (ready[0] == 200 and b'"degraded"' in ready[2] and any(n.encode() in ready[2] for n in names),
                    status["damaged_databases"] == kept,
                    f"profd_damaged_databases {kept}" in metrics, "DEGRADED" in d.ctl("status").stdout,
                    "the database is damaged" in d.logged())
            tap.point(all(said), f"{name}: /readyz, status, metrics, profctl and log say so", (said, ready, status))
            d.stop()
            os.unlink(path)
            os.unlink(os.path.join(d.state, "lock"))  # which says that there was a database
        d.start()
        tap.point(b'"degraded"' in d.get("/readyz")[2], "another start says it still")
        for n in glob.glob(os.path.join(d.state, "profd.db.damaged-*")):
            os.unlink(n)
        d.stop()
        d.start()
        tap.point(b'"ready"' in d.get("/readyz")[2] and "DEGRADED" not in d.ctl("status").stdout,
                  "when the files are gone all is well")


def with_log(tap):
    """The log goes with its database, and what can be read of the two can be recovered."""
    with Daemon() as d:
        put(d, 5)
        d.stop(how=9)
        path = os.path.join(d.state, "profd.db")
        log = content(path + "-wal")
        write(path, 0, b"\x5a" * 100)
        d.start()
        names = aside(d)
        tap.point(len(names) == 1 and content(os.path.join(d.state, names[0] + "-wal")) == log and ticks(d) == 0,
                  "the log is kept with it", os.listdir(d.state))


def not_ours(tap):
    """Refused, and nothing is changed."""
    text = b"a file of somebody else\n" * 400

    def foreign(p):
        sql("CREATE TABLE address (name)")(p)

    def newer(p):
        shutil.copy(model, p)
        sql("PRAGMA user_version=99")(p)
    with Daemon() as d:
        put(d)
        d.stop()
        model = os.path.join(d.folder, "model")
        shutil.move(os.path.join(d.state, "profd.db"), model)
        os.unlink(os.path.join(d.state, "lock"))
        path = os.path.join(d.state, "profd.db")
        for name, act, status in (("a text", lambda p: open(p, "wb").write(text), (65, 74)),
                                  ("another program's database", foreign, (65, 74)),
                                  ("a newer version", newer, (78,)), ("a directory", os.mkdir, (78,))):
            act(path)
            before = None if os.path.isdir(path) else content(path)
            done = run(PROFD, "--state-dir", d.state, "--socket", d.socket, "--http-socket", "none")
            tap.point(done.returncode in status and not aside(d)
                      and (os.path.isdir(path) if before is None else content(path) == before),
                      f"{name} is refused and stays as it is", (done.returncode, done.stderr, os.listdir(d.state)))
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def met_in_use(tap):
    """Damage that is met while the daemon runs ends writing; the next start reads the whole file and puts it aside."""
    with Daemon("--raw-bytes", "1M") as d:
        put(d, 300)
        d.stop()
        path = os.path.join(d.state, "profd.db")
        with sqlite3.connect(path) as db:
            # a larger file is not read through when it is opened
            db.executescript("CREATE TABLE filler (bytes); INSERT INTO filler VALUES (zeroblob(70000000))")
            page, = db.execute("SELECT rootpage FROM sqlite_schema WHERE name='sender'").fetchone()
        db.close()
        write(path, 4096 * (page - 1), b"\x5a" * 4096)  # only storing reads it
        d.start()
        said = []
        for _ in range(50):
            said += put(d)
            if said[-1] == "NACK":
                break
        tap.point(said[-1] == "NACK" and d.get("/readyz")[0] == 503, "damage met in use ends writing",
                  (said, d.logged()[-300:]))
        tap.point("damaged" in open(os.path.join(d.state, "lock")).read(), "it is noted",
                  open(os.path.join(d.state, "lock")).read())
        said = [line for line in d.logged().splitlines() if "the store failed" in line]
        tap.point(len(said) == 1 and said[0].count("nothing is written any more") == 1 and path in said[0]
                  and "start profd again" in said[0], "one line of the log names the file and says what to do", said)
        d.stop()
        d.start()
        tap.point(len(aside(d)) == 1 and put(d) == ["ACK"], "the next start puts the file aside", d.logged()[-500:])


def clean_stop(d):
    d.stop()


def crash(d):
    d.stop(how=9)


def other_log(d):
    """The log of another database, which SQLite would copy into this one."""
    with Daemon() as other:
        put(other, 20)
        other.stop(how=9)
        log = os.path.join(other.state, "profd.db-wal")
        shutil.copy(log, os.path.join(d.folder, "other-wal"))
    os.unlink(os.path.join(d.state, "profd.db-wal"))
    shutil.move(os.path.join(d.folder, "other-wal"), os.path.join(d.state, "profd.db-wal"))


def older_copy(d):
    shutil.copy(os.path.join(d.folder, "copy.db"), os.path.join(d.state, "profd.db"))


def emptied(name):
    return lambda d: os.truncate(os.path.join(d.state, name), 0)


def new_and_empty(d):
    os.unlink(os.path.join(d.state, "profd.db"))
    open(os.path.join(d.state, "profd.db"), "w").close()


def removed(*names):
    def act(d):
        for name in names:
            os.unlink(os.path.join(d.state, name))
    return act


LOST = (("a database of 0 bytes", clean_stop, emptied("profd.db"), "is empty"),
        ("no database", clean_stop, removed("profd.db"), "is missing"),
        ("no database after a crash", crash, removed("profd.db"), "is missing"),
        ("neither database nor log after a crash", crash, removed("profd.db", "profd.db-wal"), "is missing"),
        ("a new file of 0 bytes", clean_stop, new_and_empty, "is empty"),
        ("0 bytes after a crash", crash, emptied("profd.db"), "is empty"),
        ("no log after a crash", crash, lambda d: os.unlink(os.path.join(d.state, "profd.db-wal")), "is missing"),
        ("an empty log after a crash", crash, emptied("profd.db-wal"), "is empty"),
        ("another log after a crash", crash, other_log, "is another file"),
        ("an older copy", clean_stop, older_copy, "is older"))


def lost(tap):
    """What was acknowledged and is not there any more is said, also where SQLite finds nothing wrong."""
    for name, end, act, word in LOST:
        with Daemon() as d:
            put(d, 3)
            d.ctl("backup", os.path.join(d.folder, "copy.db"))
            put(d, 2)
            end(d)
            act(d)
            d.start()
            had, found, page = word in d.logged(), ticks(d), d.get("/readyz")
            tap.point(had and found < 5 and page[0] == 200 and b'"degraded"' in page[2] and d.state in d.logged(),
                      f"{name}: the log and /readyz say it", (found, page, d.logged()[-500:]))
            tap.point("DEGRADED" in d.ctl("status").stdout and put(d) == ["ACK"] and ticks(d) == found + 1
                      and d.ctl("verify").returncode == 0, f"{name}: status, too, and uploads go on",
                      d.ctl("status").stdout)
            d.stop()
            for n in glob.glob(os.path.join(d.state, "profd.db.*-*")):
                os.unlink(n)
            d.start()
            tap.point(b'"ready"' in d.get("/readyz")[2] and ticks(d) == found + 1, f"{name}: until the note is removed",
                      d.logged()[-500:])
    for end in (clean_stop, crash):
        with Daemon() as d:
            for n in range(3):
                put(d, 2)
                end(d)
                d.start()
            tap.point(ticks(d) == 6 and b'"ready"' in d.get("/readyz")[2] and "error" not in d.logged(),
                      f"{end.__name__}: nothing is said where nothing is lost", d.logged())


def emptied_and_asked(tap):
    """A query meets the log that was emptied under a running profd: the next start still knows that there was one."""
    for end in (clean_stop, crash):
        with Daemon() as d:
            put(d, 3)
            emptied("profd.db-wal")(d)
            done, stored = d.ctl("report", A), put(d)
            end(d)
            d.start()
            aside = b"profd.db.damaged-" in d.get("/readyz")[2]  # what was written from the empty log broke a page
            lost = "what was stored before is missing from every report" if aside else "committed last"
            tap.point(stored == ["NACK"] and b'"degraded"' in d.get("/readyz")[2]
                      and "DEGRADED" in d.ctl("status").stdout and lost in d.logged(),
                      f"a log emptied in use, then {end.__name__}: log, status and /readyz say what is lost",
                      (done.returncode, stored, d.get("/readyz"), d.logged()[-700:]))


def log_kept(tap):
    """The log of a database that was removed holds what was committed last: it is kept, and goes with its database when
    that comes back."""
    with Daemon() as d:
        put(d, 3)
        d.stop(how=9)
        path = os.path.join(d.state, "profd.db")
        log = content(path + "-wal")
        os.rename(path, os.path.join(d.folder, "away"))
        d.start()
        kept = [n for n in os.listdir(d.state) if n.startswith("profd.db.lost-") and n.endswith("-wal")]
        tap.point(len(kept) == 1 and content(os.path.join(d.state, kept[0])) == log and kept[0] in d.logged()
                  and put(d) == ["ACK"], "the log of a database that was removed is kept, and its name is logged",
                  (os.listdir(d.state), d.logged()[-700:]))
        d.stop()
        os.rename(os.path.join(d.folder, "away"), path)
        os.rename(os.path.join(d.state, kept[0]), path + "-wal")
        for name in ("profd.db-shm", kept[0][:-len("-wal")]):
            if os.path.exists(os.path.join(d.state, name)):
                os.unlink(os.path.join(d.state, name))
        d.start()
        tap.point(ticks(d) == 3 and d.ctl("verify").returncode == 0 and b'"ready"' in d.get("/readyz")[2],
                  "the two put back as profd(8) says are whole", d.logged()[-700:])


def alone(tap):
    """A log, and no record that it belongs to profd: nothing is touched."""
    with Daemon() as d:
        put(d, 3)
        d.stop(how=9)
        for name in ("profd.db", "profd.db-shm", "lock"):
            os.unlink(os.path.join(d.state, name))
        log = content(os.path.join(d.state, "profd.db-wal"))
        done = run(PROFD, "--state-dir", d.state, "--socket", d.socket, "--http-socket", "none")
        tap.point(done.returncode == 78 and content(os.path.join(d.state, "profd.db-wal")) == log
                  and os.path.join(d.state, "profd.db-wal") in done.stderr and "start profd again" in done.stderr,
                  "a log without a database and without a record of one is refused, with what to do", done)


def interrupted(tap):
    """profd was killed after it had renamed the damaged database, and before its log."""
    with Daemon() as d:
        put(d, 3)
        d.stop(how=9)
        log, name = content(os.path.join(d.state, "profd.db-wal")), "profd.db.damaged-2026-01-01T00-00-00Z"
        os.rename(os.path.join(d.state, "profd.db"), os.path.join(d.state, name))
        try:
            d.start()
        except RuntimeError as e:
            tap.point(False, "the daemon goes on where it was killed", e)
            return
        tap.point(content(os.path.join(d.state, name + "-wal")) == log and put(d) == ["ACK"] and aside(d) == [name],
                  "the daemon goes on where it was killed", os.listdir(d.state))


def met_by_readers(tap):
    """Damage that only a query meets: it is said, uploads go on, and the next start reads the whole file."""
    with Daemon() as d:
        put(d, 3)
        d.stop()
        path = os.path.join(d.state, "profd.db")
        sql("UPDATE upload SET counts=zeroblob(length(counts))")(path)
        d.start()
        tap.point(b'"ready"' in d.get("/readyz")[2], "nobody has met it yet")
        done = d.ctl("report", A)
        ready, status = d.get("/readyz"), d.ctl("status").stdout
        tap.point(done.returncode != 0 and ready[0] == 200 and b'"degraded"' in ready[2] and "DEGRADED" in status
                  and f"could not read {path}: " in d.logged() and "start profd again" in d.logged(),
                  "damage met by a query: /readyz, status and log say so", (done, ready, status, d.logged()[-300:]))
        tap.point(put(d) == ["ACK"] and "damaged" in open(os.path.join(d.state, "lock")).read(),
                  "uploads go on, and it is noted for the next start")
        d.stop()
        tap.point("damaged" in open(os.path.join(d.state, "lock")).read(), "a clean stop keeps the note")


def main():
    with Tap() as tap:
        met_by_readers(tap)
        lost(tap)
        emptied_and_asked(tap)
        log_kept(tap)
        alone(tap)
        interrupted(tap)
        ours(tap)
        with_log(tap)
        not_ours(tap)
        met_in_use(tap)


main()
