"""Files of the state directory that are removed or replaced under a running daemon: nothing is acknowledged into
nothing."""
import os
import re
import shutil
import signal
import socket
import sqlite3
import threading

from harness import PROFD, Daemon, Tap, run, until
from wire import Wire, sender_number, upload

A = "ab" * 20


def put(d, sender, number=1, socket_path=None):
    """("ACK", "") or ("NACK", sentence)."""
    with Wire(socket_path or d.socket) as w:
        w.send("UPLOAD", upload(sender, number, ticks=1, build_id=A), 7)
        while (answer := w.take())[0] == "WANT_OBJECT":
            pass
        return answer[0], answer[3].get(4, b"").decode() if answer[0] == "NACK" else ""


def seconds(d):
    done = d.ctl("report", A, "--json")
    return 0 if done.returncode == 66 else round(100 * d.json("report", A, "--json")["totals"]["seconds"])


def remove(*names):
    def act(d):
        for name in names:
            os.unlink(os.path.join(d.state, name))
    return act


def replace_by_another(d):
    with Daemon() as other:
        put(other, sender_number())
        other.stop()
        shutil.move(os.path.join(other.state, "profd.db"), os.path.join(d.state, "profd.db"))


def replace_by_itself(d):
    path = os.path.join(d.state, "profd.db")
    shutil.copy(path, path + ".copy")
    os.rename(path + ".copy", path)


def move_directory(d):
    os.rename(d.state, d.state + ".moved")


def cut(name, size):
    """Outside of a transaction that writes, whose next pages would fill the gap unseen."""
    def act(d):
        def alone():
            d.process.send_signal(signal.SIGSTOP)
            until(lambda: open(f"/proc/{d.process.pid}/stat").read().rpartition(")")[2].split()[0] == "T")
            db = sqlite3.connect(os.path.join(d.state, "profd.db"), timeout=0, isolation_level=None)
            try:
                db.execute("BEGIN IMMEDIATE")
                os.truncate(os.path.join(d.state, name), size)
                db.execute("ROLLBACK")
                return True
            except sqlite3.OperationalError:  # the daemon has the lock
                return False
            finally:
                db.close()
                d.process.send_signal(signal.SIGCONT)
        assert until(alone)
    return act


CASES = (("all of the database", remove("profd.db", "profd.db-wal", "profd.db-shm"), "profd.db", 0),
         ("the database alone", remove("profd.db"), "profd.db", 0),
         ("its log", remove("profd.db-wal"), "profd.db-wal", 3),
         ("its index", remove("profd.db-shm"), "profd.db-shm", 3),
         ("the lock", remove("lock"), "lock", 3),
         ("the state directory (moved)", move_directory, "profd.db", None),
         ("the database (replaced by another one)", replace_by_another, "profd.db", None),
         ("the database (replaced by a copy)", replace_by_itself, "profd.db", 3),
         ("all of the log (truncated)", cut("profd.db-wal", 0), "profd.db-wal", None),
         ("the end of the log (truncated)", cut("profd.db-wal", 4096), "profd.db-wal", None),
         ("the end of the database (truncated)", cut("profd.db", 4096), "profd.db", None),
         ("the content of the database (truncated)", cut("profd.db", 0), "profd.db", None))


def one(tap, name, act, word, left, idle, restarted=False):
    """left: uploads that the next start finds; None: that is not asked. restarted: nothing is in the log."""
    with Daemon() as d:
        for _ in range(3):
            put(d, sender_number())
        if restarted:
            d.stop()
            d.start()
        act(d)
        if not idle:
            said = put(d, sender_number())
            tap.point(said[0] == "NACK" and word in said[1], f"without {name} no upload is acknowledged", said)
        ready = until(lambda: d.get("/readyz")[0] == 503)
        if restarted:  # what reads by itself finds nothing in a cache
            until(lambda: "could not read" in d.logged())
        page = d.get("/readyz")[2].decode()
        tap.point(ready and word in page and "start profd again" in page,
                  f"without {name} an {'idle' if idle else 'active'} daemon is not ready", page)
        health, live = d.ctl("health"), d.ctl("health", "--live")
        tap.point(health.returncode == 74 and word in health.stderr and (live.returncode, live.stdout) == (0, "ok\n"),
                  f"without {name} profctl health fails, and succeeds with --live", (health, live))
        status = d.ctl("status")
        said = status.stdout + status.stderr  # a database that cannot be read has no status: that is said instead
        tap.point(word in said and word in d.logged(), "status and log name the file",
                  said + d.logged()[-500:])
        lines = [line for line in d.logged().splitlines() if re.search("error|warning", line)]
        tap.point(lines and all(word in line and "start profd again" in line
                                and line.count("nothing is written any more") <= 1 for line in lines),
                  "every line of the log names the file, says what to do, and says it once", lines)
        tap.point(put(d, sender_number())[0] == "NACK", "it stays so")
        d.stop()
        if left is None:
            return
        d.start()
        found = seconds(d)
        tap.point(found == left and put(d, sender_number())[0] == "ACK", f"the next start finds {left} uploads",
                  (found, d.logged()[-500:]))


def index_cut(tap):
    """SQLite maps the index of the log: it is read beyond the end of the file, which ends the process. It says why."""
    with Daemon() as d:
        for _ in range(3):
            put(d, sender_number())
        os.truncate(os.path.join(d.state, "profd.db-shm"), 0)
        try:
            said = put(d, sender_number())[0]
        except (OSError, TypeError):
            said = "closed"
        ended = until(lambda: d.process.poll() is not None)
        last = d.logged().splitlines()[-1]
        tap.point(ended and said != "ACK" and d.process.returncode == 74 and "profd.db-shm" in last and "start" in last,
                  "the index of the log was truncated: profd ends with 74 and a sentence",
                  (said, d.process.returncode, last))
        d.start()
        found = seconds(d)
        tap.point(found == 3 and put(d, sender_number())[0] == "ACK" and d.ctl("verify").returncode == 0,
                  "nothing acknowledged is lost", (found, d.logged()[-500:]))


def second_daemon(tap):
    with Daemon() as d:
        put(d, sender_number())
        os.unlink(os.path.join(d.state, "lock"))
        done = run(PROFD, "--state-dir", d.state, "--socket", os.path.join(d.folder, "second.sock"), "--http-socket",
                   "none")
        tap.point(done.returncode == 75, "no second daemon starts when the lock was removed",
                  (done.returncode, done.stderr))


def while_uploading(tap):
    """Uploads that are sent when the files are gone: none is acknowledged. Those acknowledged before are in the
    files."""
    with Daemon() as d:
        acked, gone, late = [], threading.Event(), []

        def load():
            n = 0
            while len(late) < 50 and n < 100000:
                n += 1
                after = gone.is_set()
                try:
                    kind, _ = put(d, sender_number())
                except OSError:
                    kind = "closed"
                (late if after else acked).append(kind)
        threads = [threading.Thread(target=load) for _ in range(4)]
        for t in threads:
            t.start()
        until(lambda: acked.count("ACK") > 30)
        os.rename(os.path.join(d.state, "profd.db-wal"), os.path.join(d.folder, "kept-wal"))
        os.rename(os.path.join(d.state, "profd.db"), os.path.join(d.folder, "kept"))
        gone.set()
        for t in threads:
            t.join()
        tap.point(late and "ACK" not in late and acked.count("ACK") > 30,
                  "while uploads come, none is acknowledged after the files are gone",
                  (late.count("ACK"), acked.count("ACK")))
        sent = acked.count("ACK")
        d.stop()
        for name in os.listdir(d.state):
            os.unlink(os.path.join(d.state, name))
        os.rename(os.path.join(d.folder, "kept"), os.path.join(d.state, "profd.db"))
        os.rename(os.path.join(d.folder, "kept-wal"), os.path.join(d.state, "profd.db-wal"))
        d.start()
        found = seconds(d)
        tap.point(found >= sent and d.ctl("verify").returncode == 0,
                  "what was acknowledged is in the files that were moved away", (found, sent))


def supervised(tap):
    """Under a service manager the process ends, as after an input/output error."""
    with Daemon(start=False) as d:
        path = os.path.join(d.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            d.env["NOTIFY_SOCKET"] = path
            d.start()
            put(d, sender_number())
            remove("profd.db", "profd.db-wal", "profd.db-shm")(d)
            ended = until(lambda: d.process.poll() is not None)
            tap.point(ended is True and d.process.returncode == 74, "under a service manager it exits with 74",
                      (d.process.returncode, d.logged()[-500:]))


def main():
    with Tap() as tap:
        for name, act, word, left in CASES:
            one(tap, name, act, word, left, False)
        one(tap, *CASES[0], True)
        one(tap, *CASES[4], True)
        one(tap, *CASES[8], True)
        one(tap, *CASES[10], True)
        one(tap, *CASES[10], True, True)
        index_cut(tap)
        second_daemon(tap)
        while_uploading(tap)
        supervised(tap)


main()
