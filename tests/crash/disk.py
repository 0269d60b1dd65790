"""A full disk and one that may not be written: what cannot be stored waits in the sender's spool, questions are
answered, and when there is space again everything arrives once."""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Daemon, Gmon, Tap, bounds, private_mounts, programs, run  # noqa: E402

ARCS = 6000


class Sender:
    """Files of one program, each with arcs of its own; remembers what it sent."""

    def __init__(self, daemon):
        self.daemon, self.sent, self.calls = daemon, 0, 0
        self.exe = os.path.join(programs(os.path.join(daemon.folder, "programs")), "cycle")
        self.low, self.high = bounds(self.exe)
        lines = [line.split() for line in run("nm", "-S", "--defined-only", self.exe).stdout.splitlines()]
        self.functions = [(int(f[0], 16), int(f[1], 16)) for f in lines if len(f) == 4 and f[2] in "Tt"
                          and int(f[1], 16) > 16]

    def send(self):
        self.sent += 1
        g, r = Gmon(self.low, self.high), random.Random(self.sent)
        for _ in range(ARCS):
            calls = r.randrange(1, 1 << 30)
            caller, callee = r.choice(self.functions), r.choice(self.functions)
            g.arc(caller[0] + r.randrange(caller[1]), callee[0], calls)
            self.calls += calls
        return self.daemon.ctl("upload", "-e", self.exe, g.write(os.path.join(self.daemon.folder, f"{self.sent}.gmon")))

    def stored(self):
        row = self.daemon.json("builds", "--json")["rows"][0]
        return row["uploads"], row["calls"]


def spooled(daemon):
    folder = os.path.join(daemon.folder, "spool")
    return len([f for f in os.listdir(folder) if f.endswith(".upload")]) if os.path.isdir(folder) else 0


def full(tap):
    with Daemon("--user-share", "100%", start=False) as d:
        os.mkdir(d.state, 0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", d.state], check=True)
        d.start()
        sender, done = Sender(d), None
        while sender.sent < 200 and not spooled(d) and (not done or done.returncode == 0):
            before = sender.calls
            done = sender.send()
        tap.point(spooled(d) == 1 and "space" in done.stderr,
                  "a full disk: the upload is refused with the reason and kept in the spool",
                  done.stderr)
        tap.point(sender.stored() == (sender.sent - 1, before),
                  "what was acknowledged is there, what was refused is not",
                  (sender.stored(), sender.sent, before))
        tap.point(d.ctl("report", sender.exe).returncode == 0, "reports go on")
        ready = run("curl", "-s", "--unix-socket", d.http, "http://localhost/readyz").stdout
        for _ in range(3):
            sender.send()
        tap.point(spooled(d) >= 1 and sender.stored()[0] + spooled(d) == sender.sent,
                  "every upload is stored or in the spool",
                  (sender.stored(), spooled(d), sender.sent))
        subprocess.run(["mount", "-o", "remount,size=64m", d.state], check=True)
        done = sender.send()
        tap.point(done.returncode == 0 and spooled(d) == 0,
                  "with space again the same process takes it all, the spool first",
                  (done.stdout, done.stderr, spooled(d)))
        tap.point(sender.stored() == (sender.sent, sender.calls), "every call is counted once",
                  (sender.stored(), sender.sent, sender.calls))
        tap.point(d.process.poll() is None and "space" in d.logged(), "and the log says that there was none",
                  ready + d.logged())
        d.stop()
        check = run("sqlite3", os.path.join(d.state, "profd.db"), "PRAGMA integrity_check").stdout.strip()
        tap.point(check == "ok", "the database is whole", check)
        subprocess.run(["umount", d.state])


def read_only(tap):
    with Daemon() as d:
        sender = Sender(d)
        sender.send()
        d.stop()
        subprocess.run(["mount", "--bind", d.state, d.state], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", d.state], check=True)
        before = {f: open(os.path.join(d.state, f), "rb").read() for f in os.listdir(d.state)}
        done = run(*d.command(), env=d.env)
        tap.point(70 <= done.returncode <= 78 and d.state in done.stderr,
                  "a read-only folder: it does not start, and says why",
                  (done.returncode, done.stderr))
        tap.point(before == {f: open(os.path.join(d.state, f), "rb").read() for f in os.listdir(d.state)},
                  "and its files are as before")
        done = sender.send()
        tap.point(spooled(d) == 1, "the next upload waits in the spool", done.stderr)
        subprocess.run(["umount", d.state], check=True)
        d.start()
        sender.send()
        tap.point(spooled(d) == 0 and sender.stored() == (sender.sent, sender.calls),
                  "and arrives once when it may be written again",
                  (sender.stored(), sender.sent, sender.calls))


with Tap() as points:
    if private_mounts():
        full(points)
        read_only(points)
    else:
        points.skip("a full disk and a read-only one", "private mounts are not allowed here")
