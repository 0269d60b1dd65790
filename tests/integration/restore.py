"""What --restore refuses, and that a refusal changes nothing: an empty file, another file, a damaged one, one of a
newer version."""
import hashlib
import os
import shutil
import sqlite3

from harness import PROFD, Daemon, Tap, run
from wire import Wire, sender_number, upload

HERE = os.path.dirname(os.path.abspath(__file__))
A = "ab" * 20


def put(d, ticks):
    with Wire(d.socket) as w:
        w.send("UPLOAD", upload(sender_number(), 1, ticks=ticks, build_id=A), 7)
        while (answer := w.take())[0] == "WANT_OBJECT":
            pass
        return answer[0]


def ticks(d):
    return d.json("report", A, "--json")["totals"]["seconds"]


def content(folder):
    """Names and hashes of all files of the state directory but the lock's."""
    return {n: hashlib.sha256(open(os.path.join(folder, n), "rb").read()).hexdigest()
            for n in sorted(os.listdir(folder)) if n != "lock"}


def copy_with(copy, name, sql):
    path = os.path.join(os.path.dirname(copy), name)
    shutil.copy(copy, path)
    with sqlite3.connect(path) as db:
        db.executescript(sql)
    db.close()
    return path


# A structure that is not that of the version which the file claims.
STRUCTURES = (("claims-0", "PRAGMA user_version=0", "schema version 0"),
              ("more", "ALTER TABLE ledger ADD COLUMN more INTEGER", "ledger"),
              ("other-type", "DROP TABLE deletion; CREATE TABLE deletion (build_id, before)", "deletion"),
              ("no-index", "DROP INDEX upload_by_series", "upload_by_series"),
              ("view", "ALTER TABLE user_bytes RENAME TO kept; CREATE VIEW user_bytes AS SELECT * FROM kept",
               "user_bytes"))


def candidates(d, copy):
    """(path, exit status, what the sentence names)."""
    def at(name):
        return os.path.join(d.folder, name)
    data = open(copy, "rb").read()
    for name, content in (("empty", b""), ("byte", b"S"), ("text", b"this is no database\n" * 300),
                          ("zeros", bytes(8192)),
                          ("header", data[:100]), ("page", data[:4096]), ("half", data[:len(data) // 2]),
                          ("short", data[:-1]),
                          ("tail", data[4096:]), ("flipped", data[:8192] + bytes(200) + data[8392:])):
        with open(at(name), "wb") as f:
            f.write(content)
    os.mkfifo(at("fifo"))
    huge = 1 << 40  # bytes, all but a few of them in holes
    for name, content in (("sparse", b""), ("grown", data),
                          ("claims", data[:28] + (huge // 4096).to_bytes(4, "big") + data[32:])):
        with open(at(name), "wb") as f:
            f.write(content)
            f.truncate(huge)
    with sqlite3.connect(at("foreign")) as db:
        db.execute("CREATE TABLE address (name)")
    db.close()
    shutil.copy(copy, at("hot"))
    with open(at("hot-wal"), "wb") as f:
        f.write(b"frames")
    return [(at("empty"), 65, "is empty"), (at("byte"), 65, "not a profd database"),
            (at("text"), 65, "not a profd database"), (at("zeros"), 65, "not a profd database"),
            (at("header"), 65, "not restored"), (at("page"), 65, "not restored"), (at("half"), 65, "not restored"),
            (at("short"), 65, "not restored"),
            (at("tail"), 65, "not a profd database"), (at("flipped"), 65, "not restored"),
            (at("foreign"), 65, "not a profd database"), (PROFD, 65, "not a profd database"),
            (at("fifo"), 65, "not a file"), ("/dev/null", 65, "not a file"), (d.folder, 65, "not a file"),
            (at("hot"), 65, "write-ahead log"),
            (at("sparse"), 65, "not a profd database"), (at("grown"), 65, "its header says"),
            (at("claims"), 65, "not restored"),
            (at("nowhere"), 66, "nowhere"),
            (copy_with(copy, "newer", "PRAGMA user_version=99"), 78, "99"),
            (copy_with(copy, "tick", "UPDATE ledger SET ticks=ticks+1"), 65, "not restored"),
            (copy_with(copy, "bytes", "UPDATE user_bytes SET bytes=bytes+1"), 65, "not restored"),
            (copy_with(copy, "no-table", "DROP TABLE ledger"), 65, "not restored"),
            (copy_with(copy, "no-column", "ALTER TABLE ledger DROP COLUMN inexact"), 65, "not restored"),
            (copy_with(copy, "no-state", "DELETE FROM state"), 65, "not restored"),
            *[(copy_with(copy, name, sql), 65, word) for name, sql, word in STRUCTURES]]


def main():
    with Tap() as tap, Daemon() as d:
        put(d, 100)
        copy = os.path.join(d.folder, "copy.db")
        tap.point(d.ctl("backup", copy).returncode == 0, "a backup")
        put(d, 23)
        shown = ticks(d)
        d.stop()
        before = content(d.state)
        for path, status, word in candidates(d, copy):
            done = run(PROFD, "--state-dir", d.state, "--restore", path)
            tap.point(done.returncode == status and word in done.stderr and path in done.stderr,
                      f"{os.path.basename(path)} is not restored", (done.returncode, done.stderr))
            now = content(d.state)
            if now != before:
                tap.point(False, "and nothing has changed", (before, now))
                before = now
        d.start()
        tap.point(ticks(d) == shown, "everything is there", (shown, d.logged()[-300:]))
        d.stop()


main()
