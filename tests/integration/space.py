"""A file system of fixed size that fills up: what is deleted, retention and verification work on it, uploads come back
by themselves."""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import time

from harness import Daemon, Tap, private_mounts, run, until
from memory import Attached, Memory
from wire import Wire, encoded, field, sender_number, upload

MB = 1 << 20

DAY = 86400 * 10**9


def counts(seed, arcs=4000):
    """About 80 KB that do not compress."""
    r = random.Random(seed)
    return encoded([], [(r.randrange(0x1000, 0x2000), r.randrange(0x1000, 0x2000), r.randrange(1 << 40, 1 << 48))
                        for _ in range(arcs)])


LARGE = counts(1)


def body(build, end=0, content=LARGE, label=""):
    out = field(1, sender_number().to_bytes(12, "little")) + field(2, 1)
    if end:
        out += b"\x19" + struct.pack("<Q", end - 10**9) + b"\x21" + struct.pack("<Q", end)
    out += field(6, field(1, f"{build:040x}") + field(2, f"/tmp/{build}"))
    return out + (field(7, field(1, "k") + field(2, label)) if label else b"") + field(8, content) + field(10, 1)


def send(wire, data):
    """0, or the NACK's sentence."""
    wire.send("UPLOAD", data)
    while True:
        kind, _, _, m = wire.take()
        if kind == "ACK":
            return 0
        if kind == "NACK":
            return m[4].decode()


def fill(wire, data, most=2000):
    """How many are stored until one is refused, and why."""
    for n in range(most):
        if why := send(wire, data(n)):
            return n, why
    return most, ""


def occupy(folder):
    """A foreign file takes all that is left."""
    with open(os.path.join(folder, "foreign"), "ab", buffering=0) as f:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    f.write(bytes(size))
            except OSError:
                pass


def available(folder):
    fs = os.statvfs(folder)
    return fs.f_bavail * fs.f_frsize


def mount(d, size):
    os.makedirs(d.state, 0o700, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", d.state], check=True)


def whole(d):
    return run("sqlite3", os.path.join(d.state, "profd.db"), "PRAGMA integrity_check").stdout.strip()


def deleted(tap, d, build, name):
    done = d.ctl("delete", "--yes", f"{build:040x}")
    tap.point(done.returncode == 0, name, done.stderr)


def ready(d):
    status, _, text = d.get("/readyz")
    return status, json.loads(text).get("reserve", json.loads(text).get("detail"))


def status(d):
    return json.loads(d.get("/api/v1/status")[2])


def full(tap):
    """Filled by uploads and then by somebody else: an operator frees it."""
    with Daemon("--user-share", "100%", start=False) as d:
        mount(d, "64m")
        d.start()
        tap.point(until(lambda: ready(d) == (200, "held")) and os.stat(os.path.join(d.state, "reserve")).st_blocks
                  * 512 == 8 * MB, "an eighth is kept in reserve",
                  (ready(d), status(d)))
        with Wire(d.socket) as w:
            stored, why = fill(w, lambda n: body(1 + n % 4))
        tap.point(stored > 100 and "space" in why, f"64 MB take {stored} uploads, then one is refused for want of "
                                                   f"space", why)
        occupy(d.state)
        tap.point(available(d.state) == 0, "a foreign file takes the rest")
        deleted(tap, d, 1, "a program is deleted on the full disk")
        verify = d.ctl("verify")
        tap.point(verify.returncode == 0, "and verified", verify.stdout + verify.stderr)
        with Wire(d.socket) as w:
            got = until(lambda: send(w, body(9)) == 0)
        tap.point(got and until(lambda: ready(d) == (200, "held")),
                  "uploads come back by themselves, the reserve is held again", (ready(d), d.logged()))
        with Wire(d.socket) as w:
            stored, why = fill(w, lambda n: body(2))
        occupy(d.state)
        for build in (9, 4, 3):
            deleted(tap, d, build, f"full once more, program {build} is deleted")
        os.unlink(os.path.join(d.state, "foreign"))
        with Wire(d.socket) as w:
            got = until(lambda: send(w, body(10)) == 0)
        tap.point(got, "without the foreign file uploads come back, too", d.logged())
        row = d.json("builds", "--json")["rows"]
        tap.point({r["build_id"][-1] for r in row} == set("2a"), "what was deleted is gone, the rest is there", row)
        d.stop()
        tap.point(whole(d) == "ok", "the database is whole", whole(d))


def restarted(tap):
    """Full, and the daemon starts on it with keep-bytes: old days go."""
    with Daemon("--user-share", "100%", start=False) as d:
        mount(d, "64m")
        d.start()
        old = time.time_ns() - 3 * DAY
        with Wire(d.socket) as w:
            # Each is of a program of its own: their sums take as much as they do, so that rolling up frees nothing.
            stored, why = fill(w, lambda n: body(1 + n, old))
        tap.point("space" in why, f"{stored} uploads of three days ago fill 64 MB", why)
        occupy(d.state)
        d.stop(9)
        occupy(d.state)
        tap.point(available(d.state) == 0, "the daemon is killed, the disk is full")
        d.options = ("--user-share", "100%", "--raw-bytes", "1M", "--keep-bytes", "16M")
        d.start()
        made = until(lambda: (s := status(d))["retired_uploads"] and s["reserve"] == "held" and s)
        tap.point(made, "started on it with keep-bytes, retention makes room, and the reserve is held again",
                  d.logged())
        with Wire(d.socket) as w:
            got = until(lambda: send(w, body(9)) == 0)
        tap.point(got, "uploads are taken again", d.logged())
        tap.point(d.ctl("verify").returncode == 0, "what is left adds up")
        d.stop()
        tap.point(whole(d) == "ok", "the database is whole", whole(d))


def child(socket_path, build, most):
    """What this script does when it is started as another user: fills, prints how many were stored and why no more."""
    with Wire(socket_path) as w:
        print(json.dumps(fill(w, lambda n: body(build), most)))


def as_user(d, uid, build, most=2000):
    done = run("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "/usr/bin/python3", "-B", d.copy,
               "child", d.socket, build, most)
    return json.loads(done.stdout) if done.returncode == 0 else (0, done.stderr)


def shares(tap):
    """One user fills its share: only it is refused."""
    with Daemon(start=False) as d:
        d.copy = os.path.join(d.folder, "space.py")
        for name in ("space.py", "wire.py", "harness.py", "memory.py"):
            shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), d.folder)
        mount(d, "64m")
        d.start()
        first, why = as_user(d, 1001, 1)
        tap.point(first > 50 and "user 1001 stores" in why and "user-share, 50%" in why,
                  f"a user may store half: {first} uploads, then a reason", why)
        used = os.path.getsize(os.path.join(d.state, "profd.db"))
        tap.point(24 * MB < used < 40 * MB, f"the database has {used >> 20} MB of 64", used)
        other, why = as_user(d, 1002, 2, 20)
        tap.point(other == 20, "another user stores", (other, why))
        again, why = as_user(d, 1001, 1)
        tap.point(again == 0 and "user 1001" in why, "the first still is not", (again, why))
        rest, why = as_user(d, 1002, 2)
        tap.point(0 < rest < first and "user 1002 stores" in why,
                  f"the other gets half of what is left: {other + rest} uploads", (rest, why))
        tap.point(ready(d) == (200, "held") and not status(d)["no_space"], "the daemon is ready, the disk is not full",
                  (ready(d), status(d)))
        done = d.ctl("backup", os.path.join(d.folder, "copy"))
        tap.point(done.returncode and "are free" in done.stderr and ready(d) == (200, "held")
                  and "backup-" not in str(os.listdir(d.state)),
                  "a backup that finds no room is refused and leaves nothing; uploads are none the worse",
                  (done.stderr, ready(d), os.listdir(d.state)))
        rejected = d.get("/metrics")[2].decode()
        tap.point('profd_uploads_total{result="rejected",reason="full"} 3\n' in rejected,
                  "metrics count what was refused")
        deleted(tap, d, 1, "what it stored is deleted")
        got = until(lambda: as_user(d, 1001, 1, 20)[0] == 20)
        tap.point(got, "then it may store again", d.logged())
        tap.point(d.ctl("verify").returncode == 0, "what is left adds up")
        d.options = ("--user-share", "60%")
        d.stop()
        d.start()
        more, why = as_user(d, 1001, 1)
        tap.point(more > 0 and "user-share, 60%" in why, f"a larger share: {more} more", (more, why))


def shares_of_days(tap):
    """With keep-bytes a user at its share loses its own oldest days, and goes on."""
    with Daemon("--keep-bytes", "24M", "--raw-bytes", "1M", start=False) as d:
        mount(d, "128m")
        d.start()
        now = time.time_ns()
        with Wire(d.socket) as w:
            got = [send(w, body(1, now - 5 * DAY)) for n in range(20)]
            for n in range(180): # arcs of their own: sums of them are as large
                content = counts(n)
                got.append(until(lambda: send(w, body(1, now - (4 - n // 60) * DAY, content)) == 0))
        tap.point(got == [0] * 20 + [True] * 180, "a user alone sends more than its half of keep-bytes: days go, "
                                                  "nothing is refused for good", got)
        tap.point(until(lambda: status(d)["retired_uploads"] >= 20), "the oldest were removed", status(d))


def live_process(tap):
    """Counts of a live process whose user has no room stay in its memory; reports say so."""
    # Not with keep-bytes: at midnight yesterday's uploads would make room.
    with Daemon("--user-share", "2%", "--harvest-interval", "1s", start=False) as d:
        mount(d, "64m")
        d.start()
        memory = Memory(build_id="ab" * 20)
        process = Attached(d.socket, memory)

        def seen():
            """(calls, exact, reasons) of the process' program."""
            done = d.ctl("report", "ab" * 20, "--json")
            if done.returncode:
                return 0, None, done.stderr
            report = json.loads(done.stdout)
            return report["totals"]["calls"], report["provenance"]["exact"], report["provenance"]["inexact_reasons"]

        memory.call(5)
        tap.point(until(lambda: seen()[0] == 5), "a live process is read", seen())
        exact = seen()[1:]
        with Wire(d.socket) as w:
            large, _ = fill(w, lambda n: body(2))
            stored, why = fill(w, lambda n: upload(sender_number(), 1, build_id="cd" * 20))
        for slot in range(16):
            memory.call(1, slot)
        got = until(lambda: "not-read" in str(seen()[2]))
        tap.point("2%" in why and got and seen()[:2] == (5, False),
                  f"{large + stored} uploads later its user has no room: the report says that it is not read",
                  (why, seen(), d.logged()))
        tap.point("stay in its memory" in d.logged(), "and so does the log", d.logged())
        done = d.ctl("delete", "--yes", f"{2:040x}")
        got = until(lambda: seen()[0] == 21)
        tap.point(done.returncode == 0 and got and seen()[1:] == exact,
                  "with room again every call is there, and it is as exact as before",
                  (done.stderr, seen(), exact, d.logged()))
        process.close(), memory.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        sys.exit()
    with Tap() as points:
        if private_mounts():
            live_process(points)
            full(points)
            restarted(points)
            shares_of_days(points)
            if shutil.which("setpriv"):
                shares(points)
            else:
                points.skip("shares of users", "needs setpriv")
        else:
            points.skip("a file system that fills up", "private mounts are not allowed here")
