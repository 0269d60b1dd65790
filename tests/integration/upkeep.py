"""What the daemon does between uploads and for its operators: sums, retention, delete, verify, backup and restore. What
is shown must stay the same through all of it, or be gone."""
import glob
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import threading
import time

from harness import LONG, PROFD, Daemon, Tap, run, until
from wire import LAST, Wire, encoded, field, sender_number, upload, varint

HERE = os.path.dirname(os.path.abspath(__file__))
SECOND, HOUR, DAY = 10**9, 3600 * 10**9, 86400 * 10**9
A, B, C = "aa" * 20, "bb" * 20, "cc" * 20


def window(start, end):
    return varint(3 << 3 | 1) + struct.pack("<Q", start) + varint(4 << 3 | 1) + struct.pack("<Q", end)


def ago(ns, length=SECOND):
    """A window that ended so long ago."""
    end = time.time_ns() - ns
    return window(end - length, end)


def put(w, body):
    """Sends an upload; "new", "again", or the sentence of its refusal."""
    w.send("UPLOAD", body, 9)
    while True:
        kind, tag, _, m = w.take()
        if tag == 9 and kind == "ACK":
            return "again" if m.get(1) else "new"
        if tag == 9 and kind == "NACK":
            return m.get(4, b"?").decode()


def state(d):
    return json.loads(d.get("/api/v1/status")[2])


def ticks(d, build, *arguments):
    """Ticks of a build in a report; 0 when it is not there."""
    done = d.ctl("report", build, "--json", *arguments)
    return json.loads(done.stdout)["totals"]["ticks"] if done.returncode == 0 else 0


def provenance(d, build, *arguments):
    return json.loads(d.ctl("report", build, "--json", *arguments).stdout)["provenance"]


def metric(d, name):
    body = d.get("/metrics")[2].decode()
    return sum(float(line.split()[1]) for line in body.splitlines() if line.startswith(f"profd_{name} "))


def settled(d):
    """All single uploads became sums."""
    return until(lambda: state(d)["raw_uploads"] == 0)


def sums(tap):
    with Daemon("--raw-age", "1s") as d:
        sender = sender_number()
        with Wire(d.socket) as w:
            answers = [put(w, upload(sender, i, ticks=i, build_id=A, labels=(("service", f"s{i % 3}"),))
                           + ago(i % 40 * HOUR))
                       for i in range(1, 201)]
            before = ticks(d, A)
            tap.point(answers == ["new"] * 200 and before == 20100, "200 uploads of 40 hours are stored", before)
            tap.point(settled(d), "a second later they become sums", state(d))
            s = state(d)
            tap.point(s["uploads"] == s["accepted_uploads"] == 200 and s["rollups"] > 0, "which are 200 uploads still",
                      s)
            tap.point(ticks(d, A) == before, "and no tick was lost", ticks(d, A))
            per = [ticks(d, A, "-l", f"service=s{k}") for k in range(3)]
            tap.point(per == [sum(i for i in range(1, 201) if i % 3 == k) for k in range(3)], "not of any label", per)
            (row,) = d.json("builds", "--json")["rows"]
            tap.point((row["uploads"], row["processes_started"]) == (200, 200), "the list says the same", row)
            tap.point(all(put(w, upload(sender, i, ticks=i, build_id=A)) == "again" for i in range(1, 201)),
                      "a late retry is none the less a repeat")
            put(w, upload(sender, 201, ticks=1000, build_id=A) + ago(30 * HOUR))
            tap.point(ticks(d, A) == before + 1000, "a late upload is counted at once")
            tap.point(settled(d) and ticks(d, A) == before + 1000, "and becomes part of its hour")
            recent = ticks(d, A, "--since", "now-20h")
            tap.point(0 < recent < before, "a range has less", recent)
        done = d.ctl("verify")
        tap.point(done.returncode == 0 and done.stdout == "201 uploads verified, no mismatch\n", "all of it adds up",
                  done.stdout + done.stderr)
        d.stop()
        d.start()
        tap.point(ticks(d, A) == before + 1000 and d.ctl("verify").returncode == 0, "also after a restart")
        text = d.ctl("status").stdout
        tap.point(" 0 single uploads " in text and "verified" in text, "status says so in words", text)
        tap.point(metric(d, "ledger_mismatch_total") == 0 and metric(d, "raw_uploads") == 0
                  and metric(d, "stored_uploads") == 201
                  and metric(d, "accepted_uploads_total") == 201, "and /metrics in numbers")


def retention(tap):
    with Daemon("--raw-age", "1s", "--keep-age", "60s") as d:
        sender, other = sender_number(), sender_number()
        with Wire(d.socket) as w:
            for i in range(1, 21):
                put(w, upload(sender, i, ticks=1, build_id=A) + ago(4 * DAY))
                put(w, upload(other, i, ticks=1, build_id=B))
            tap.point(until(lambda: state(d)["retired_uploads"] == 20), "days that ended too long ago are removed",
                      state(d))
            tap.point(ticks(d, A) == 0 and ticks(d, B) == 20, "and nothing else", (ticks(d, A), ticks(d, B)))
            rows = [r["build_id"] for r in d.json("builds", "--json")["rows"]]
            tap.point(rows == [B], "a build without data is not listed", rows)
            tap.point(put(w, upload(sender, 7, ticks=1, build_id=A)) == "again" and ticks(d, A) == 0,
                      "its ids stay known")
            s = state(d)
            tap.point(s["accepted_uploads"] == 40 == s["uploads"] + s["retired_uploads"],
                      "accepted = stored + removed", s)
        tap.point(d.ctl("verify").returncode == 0, "what is left adds up")


def delete(tap):
    with Daemon() as d:
        sender = sender_number()
        with Wire(d.socket) as w:
            for i in range(1, 31):
                put(w, upload(sender, i, ticks=1, build_id=A))
                put(w, upload(sender + 2, i, ticks=1, build_id=B))
            library = upload(sender + 4, 1, ticks=1, build_id=B) + field(6, field(1, C) + field(2, "/lib/made-up.so"))
            put(w, library)
            refused = d.ctl("delete", A)
            tap.point(refused.returncode == 64 and "30 uploads" in refused.stderr and "--yes" in refused.stderr,
                      "delete asks, and where it cannot wants --yes", refused.stderr)
            tap.point(ticks(d, A) == 30, "before that nothing is deleted")
            done = d.ctl("delete", A[:8], "--yes")
            tap.point(done.returncode == 0 and " 30 uploads" in done.stdout and A in done.stdout,
                      "a prefix is enough to delete", done.stdout + done.stderr)
            tap.point(ticks(d, A) == 0 and d.ctl("report", A).returncode == 66 and ticks(d, B) == 31,
                      "it is gone at once, and nothing else")
            tap.point(put(w, upload(sender, 3, ticks=1, build_id=A)) == "again" and ticks(d, A) == 0,
                      "what comes again is not counted")
            tap.point(put(w, upload(sender, 31, ticks=5, build_id=A)) == "new" and ticks(d, A) == 5, "what is new is")
        missing = d.ctl("delete", "f00f" * 10, "--yes")
        tap.point(missing.returncode == 66 and "f00f" in missing.stderr, "an unknown build", missing.stderr)
        lib = d.ctl("delete", C, "--yes")
        tap.point(lib.returncode == 65 and lib.stderr.count("\n") == 1, "a library is not deleted for itself",
                  lib.stderr)
        ambiguous = d.ctl("delete", "zz", "--yes")
        tap.point(ambiguous.returncode in (64, 65, 66) and "zz" in ambiguous.stderr, "a prefix that is none",
                  ambiguous.stderr)
        as_json = d.ctl("delete", A, "--yes", "--json")
        tap.point(json.loads(as_json.stdout) == {"build_id": A, "uploads": 1}, "--json says what went", as_json.stdout)
        tap.point(until(lambda: state(d)["retired_uploads"] == 31) and d.ctl("verify").returncode == 0,
                  "the ledger knows", state(d))


def heavy(sender, sequence, build):
    """An upload of about 100 KB that does not compress."""
    bins = 20000
    ticks = struct.unpack(f"<{bins}H", os.urandom(2 * bins))
    histogram = (0, 0x1000, 0x1000 + (1 << 22), 1 << 20, 100, "seconds", "s", {i: 1 + n for i, n in enumerate(ticks)})
    builds = field(6, field(1, build) + field(2, "/bin/made-up"))
    return (field(1, struct.pack("<QI", sender + 1, 7)) + field(2, sequence) + builds
            + field(8, encoded([histogram]))
            + field(10, 1) + field(11, "0123456789abcdef" * 2))


class Load(threading.Thread):
    """Uploads without end; counts what was acknowledged."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.sender, self.acked, self.ended = path, sender_number(), 0, False

    def run(self):
        with Wire(self.path) as w:
            while not self.ended:
                self.acked += put(w, upload(self.sender, self.acked + 1, ticks=1, build_id=A)) == "new"

    def finish(self):
        self.ended = True
        self.join(LONG)
        return self.acked


def backup(tap):
    with Daemon("--raw-age", "1s") as d:
        with Wire(d.socket) as w:
            sender = sender_number()
            for i in range(1, 41):
                put(w, heavy(sender, i, B))
            all_b, hour = ticks(d, B), str(time.time_ns() // HOUR * 3600)
            put(w, upload(sender + 9, 1, ticks=1, build_id=C) + ago(30 * HOUR))
            load = Load(d.socket)
            load.start()
            until(lambda: load.acked > 50)
            at_least, copy = load.acked, os.path.join(d.folder, "copy.db")
            done = d.ctl("backup", copy)
            at_most = load.acked + 1
            tap.point(done.returncode == 0 and os.stat(copy).st_mode & 0o777 == 0o600, "a backup under load",
                      done.stdout + done.stderr)
            tap.point(load.acked > at_least, "uploads went on", (at_least, load.acked))
            again = d.ctl("backup", copy)
            tap.point(again.returncode == 73 and "exists" in again.stderr, "it replaces no file", again.stderr)
            tap.point(not glob.glob(copy + ".part") and not glob.glob(os.path.join(d.state, "backup-*")),
                      "and leaves nothing else")
            piped = subprocess.run(f'"{d.command()[0][:-1]}ctl" backup - | wc -c', shell=True, capture_output=True,
                                   text=True, env=d.env)
            tap.point(int(piped.stdout) > 1000000, "- goes to a pipe", piped.stderr)

            # somebody takes his time with the copy: questions and answers go on, and another backup has to wait
            w.send("ADMIN", field(1, "backup"), 6)
            until(lambda: d.ctl("backup", os.path.join(d.folder, "second.db")).returncode == 75)
            second = d.ctl("backup", os.path.join(d.folder, "second.db"))
            tap.point(second.returncode == 75 and "another backup" in second.stderr, "one backup at a time",
                      second.stderr)
            asked = metric(d, 'query_duration_seconds_count{endpoint="builds"}')
            w.send("QUERY", field(1, "/api/v1/builds"), 5)
            tap.point(until(lambda: metric(d, 'query_duration_seconds_count{endpoint="builds"}') > asked),
                      "a question is answered while nobody reads the copy")
            order = []
            while len(order) < 2:
                kind, tag, flags, m = w.take()
                if flags & LAST or kind == "NACK":
                    order.append((tag, kind))
            tap.point(order == [(5, "REPLY"), (6, "REPLY")],
                      "a report does not wait for a backup on the same connection", order)
            w.send("ADMIN", field(1, "backup"), 6)
            w.take()
        third = os.path.join(d.folder, "third.db")
        tap.point(until(lambda: d.ctl("backup", third).returncode == 0), "a client that goes away frees its place")
        acked = load.finish()
        tap.point(ticks(d, A) == acked, "every acknowledged upload is there", (ticks(d, A), acked))
        busy = run(PROFD, "--state-dir", d.state, "--restore", copy)
        tap.point(busy.returncode == 75, "nothing is restored under a running daemon", busy.stderr)
        d.stop()
        restored = run(PROFD, "--state-dir", d.state, "--restore", copy)
        kept = glob.glob(os.path.join(d.state, "profd.db.before-restore-*"))
        tap.point(restored.returncode == 0 and len(kept) == 1 and os.path.basename(kept[0]) in restored.stderr,
                  "offline it is", restored.stderr)
        d.start()
        back = ticks(d, A)
        tap.point(at_least <= back <= at_most and ticks(d, B) == all_b, "the state of the moment is back",
                  (at_least, back, at_most))
        tap.point(d.ctl("verify").returncode == 0, "and adds up")
        said = [(p["exact"], p["inexact_reasons"]) for p in (provenance(d, C), provenance(d, C, "--until", hour))]
        tap.point(said == [(False, ["restored"]), (True, [])],
                  "a report says that counts since the backup may be missing; one of the hours before is exact", said)
        said = d.ctl("report", C).stdout
        tap.point("restored from a backup" in said, "so does its text", said[:2000])
        with Wire(d.socket) as w:
            got = [put(w, upload(load.sender, i, ticks=1, build_id=A)) for i in (1, at_least, acked)]
            tap.point(got[:2] == ["again", "again"] and got[2] in ("new", "again")
                      and (acked > back) == (got[2] == "new"),
                      "ids of before are known, those of the lost part are not", got)
        refuse_restores(tap, d, copy)


def refuse_restores(tap, d, copy):
    d.stop()
    before = open(os.path.join(d.state, "profd.db"), "rb").read()
    bad, cut = os.path.join(d.folder, "bad.db"), os.path.join(d.folder, "cut.db")
    with open(copy, "rb") as f:
        data = f.read()
    with open(cut, "wb") as f:
        f.write(data[:len(data) // 2])
    shutil.copy(copy, bad)
    with sqlite3.connect(bad) as db:
        plant(db)
    db.close()
    newer = os.path.join(d.folder, "newer.db")
    shutil.copy(copy, newer)
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    for path, status, word in ((bad, 65, "not restored"), (cut, 65, "not restored"), (newer, 78, "99"),
                               (d.folder, 65, "not a file"),
                               (os.path.join(d.folder, "nowhere"), 66, "nowhere"), (PROFD, 65, "not a profd database")):
        done = run(PROFD, "--state-dir", d.state, "--restore", path)
        tap.point(done.returncode == status and word in done.stderr, f"{os.path.basename(path)} is not restored",
                  (done.returncode, done.stderr))
    tap.point(open(os.path.join(d.state, "profd.db"), "rb").read() == before
              and not glob.glob(os.path.join(d.state, "*restore[d-]*part*")),
              "nothing has changed")


def plant(db):
    """A tick too many in the ledger."""
    assert db.execute("UPDATE ledger SET ticks = ticks + 1 WHERE (series, hour) = (SELECT series, hour FROM ledger "
                      "LIMIT 1)").rowcount == 1


def mismatch(tap):
    with Daemon("--raw-age", "1s") as d:
        with Wire(d.socket) as w:
            for i in range(1, 11):
                put(w, upload(77, i, ticks=i, build_id=A) + ago(i * HOUR))
        settled(d)
        d.stop()
        with sqlite3.connect(os.path.join(d.state, "profd.db")) as db:
            plant(db)
        db.close()
        d.start()
        done = d.ctl("verify")
        tap.point(done.returncode == 65 and len(done.stdout.splitlines()) >= 1 and "mismatch" in done.stderr,
                  "verify finds a tick too many", done.stdout + done.stderr)
        as_json = d.ctl("verify", "--json")
        found = json.loads(as_json.stdout)
        tap.point(as_json.returncode == 65 and found["mismatches"] == len(found["rows"]) > 0
                  and found["rows"][0]["mismatch"], "also as JSON", as_json.stdout)
        tap.point(metric(d, "ledger_mismatch_total") >= 2
                  and "verification found a difference" in d.logged(), "metric and log say so",
                  d.logged())
        tap.point("DAMAGED" in d.ctl("status").stdout, "and status")
        with Wire(d.socket) as w:
            tap.point(put(w, upload(78, 1, ticks=1, build_id=A)) == "new" and ticks(d, A) > 0,
                      "uploads and questions go on")


def operators(tap):
    with Daemon() as d, Wire(d.socket) as w:
        put(w, upload(1, 1, build_id=A))
        for verb, arguments, code, word in (("pause", (), 25, "no process given"), ("shout", (), 14, "shout"),
                                            ("", (), 14, "known are delete, verify, backup, pause, resume"),
                                            ("delete", (), 25, "takes 1 argument"),
                                            ("delete", ("",), 25, "0 bytes"), ("delete", ("abc",), 6, "abc"),
                                            ("verify", ("x",), 25, "takes 0"),
                                            ("delete", tuple("abcdefghi"), 2, "at most 8")):
            status, sentence, _ = w.admin(verb, *arguments)
            tap.point(status == code and word in sentence, f"\"{verb}\" with {len(arguments)} arguments is refused in "
                      f"words", (status, sentence))
        tap.point(w.admin("verify")[0] == 0 and w.query("/api/v1/builds")[0] == 200, "the connection lives on")
        w.send("ADMIN", b"\xff\xff", 6)
        tap.point(w.take()[0] == "NACK", "a body that is no protobuf is refused")


def stops(tap):
    """Whatever goes on, SIGTERM ends it in time and leaves nothing."""
    with Daemon("--raw-age", "1s") as d:
        sender = sender_number()
        with Wire(d.socket) as w:
            for i in range(1, 61):
                put(w, heavy(sender, i, B) + ago(i * HOUR))
            w.send("ADMIN", field(1, "backup"), 6)
            w.send("ADMIN", field(1, "verify"), 7)
            code = d.stop()
            tap.point(code == 0, "stopped while adding up, copying and verifying", (code, d.logged()))
        left = set(os.listdir(d.state)) - {"profd.db-shm", "profd.db-wal"}
        tap.point(left == {"lock", "profd.db", "reserve", "runs"},
                  "nothing is left", left)
        d.start()
        tap.point(settled(d) and d.ctl("verify").returncode == 0, "and it goes on where it was")
        before = ticks(d, B)
        d.stop()
        os.rename(os.path.join(d.state, "profd.db"), os.path.join(d.state, "profd.db.restored"))
        open(os.path.join(d.state, "backup-9.db"), "w").close()
        d.start()
        tap.point(ticks(d, B) == before and "backup restored" in d.logged(),
                  "the next start finishes a restore that was cut off", d.logged())
        tap.point(not glob.glob(os.path.join(d.state, "backup-*")), "and removes what a killed backup left")


def main():
    with Tap() as tap:
        for part in (sums, retention, delete, backup, mismatch, operators, stops):
            part(tap)


if __name__ == "__main__":
    main()
