"""Live processes while profd is being started again: what was not read is said, what can be read again is, and nothing
counts twice."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import harness
from harness import ROOT, Daemon, Tap
from memory import Attached, Memory
from wire import field, header

sys.path.insert(0, os.path.join(ROOT, "tests", "collect"))
from bed import Bed  # noqa: E402
from attach import Kept, calls, get, processes, sync, total, wait_for  # noqa: E402

RUNS = {"SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}


class Program:
    """tests/collect/programs/idle.c under the collector: idle but for what it is told."""

    def __init__(self, bed, d, *before, **env):
        exe = os.path.join(bed.folder, "idle")
        self.exe = exe if os.path.exists(exe) else bed.build("idle.c", "-pg")
        self.process = subprocess.Popen([*before, self.exe], env=bed.env(PROFD_SOCKET=d.socket, **env), cwd=bed.folder,
                                        stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pid, self.made = self.process.pid, 0

    def tell(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        if line not in ("kill", "away"):
            assert self.process.stdout.readline() == "done\n"

    def call(self, n):
        self.tell(n)
        self.made += n

    def cpu(self):
        """Seconds."""
        words = open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close(), self.process.stdout.close()


def said(d, exe):
    """(calls of leaf, reasons, whether it is not read since some time) as the report says. On a busy machine ticks come
    late, or find the program in code whose calls are not counted: such a reason is not in the list if the report's
    counters, or its stacks, bear it out."""
    done = d.ctl("report", exe, "--json")
    if done.returncode:
        return None, done.stderr, None
    report = json.loads(done.stdout)
    p = report["provenance"]
    leaf = sum(f["calls"] + f["self_calls"] for f in report["functions"] if f["name"] == "leaf")
    late = any(report["collector"].get(f"{k}_seconds") for k in ("blocked", "undelivered"))
    borne_out = {"ticks-lost": late, "sampled": report.get("stacks", {}).get("count")}
    reasons = [r for r in p["inexact_reasons"] if not borne_out.get(r)]
    return leaf, reasons, p["not_read"] > 0 and p["not_read_since"] is not None


def begin(d, bed, *before):
    """A program whose first thousand calls are stored, and its names."""
    p = Program(bed, d, *before)
    p.call(1000)
    assert d.ctl("symbols", p.exe).returncode == 0
    wait_for(lambda: said(d, p.exe)[0] == p.made)
    return p


def ended_away(tap, name, how):
    """It ends while no daemon runs."""
    with Daemon("--harvest-interval", "1s", "--log-level", "info") as d, Bed(harvester=False) as bed:
        p = begin(d, bed)
        try:
            tap.point(said(d, p.exe) == (p.made, [], False), f"{name}: before, the report is exact", said(d, p.exe))
            d.stop(how)
            p.call(700)
            p.tell("kill")
            p.process.wait()
            d.start()
            first = said(d, p.exe)
            last = wait_for(lambda: (s := said(d, p.exe))[1] == ["end-not-seen"] and s)
            tap.point("not-read" in first[1] or "end-not-seen" in first[1],
                      f"{name}: ended meanwhile: at no time is the report exact", first)
            tap.point(bool(last) and last[0] == 1000 and not last[2], f"{name}: and in the end it says end-not-seen",
                      said(d, p.exe))
        finally:
            p.end()


def found(tap, name, how):
    """It lives, and is idle: its memory is found in /proc."""
    with Daemon("--harvest-interval", "1s", "--log-level", "info") as d, Bed(harvester=False) as bed:
        p = begin(d, bed)
        try:
            for n in range(2):
                d.stop(how)
                p.call(700)
                d.start()
                again = wait_for(lambda: said(d, p.exe) == (p.made, [], False))
                tap.point(bool(again), f"{name}, time {n + 1}: an idle process is read again, every call of it, and "
                                       f"the report is exact", (p.made, said(d, p.exe), d.logged()))
            p.call(3)
            p.tell("kill")
            p.process.wait()
            tap.point(sync(d) == "ACK" and said(d, p.exe) == (p.made, [], False), f"{name}: its end is seen",
                      (p.made, said(d, p.exe), d.logged()))
            tap.point(d.ctl("verify").returncode == 0, f"{name}: what is stored adds up")
        finally:
            p.end()


def hidden(tap, name, how):
    """It lives, and nobody can find it: it closed its descriptors."""
    with Daemon("--harvest-interval", "1s", "--log-level", "info") as d, Bed(harvester=False) as bed:
        p = begin(d, bed)
        try:
            p.tell("close")
            build = next(r["build_id"] for r in d.json("builds", "--json")["rows"] if r["name"] == p.exe)
            pages = [f"/api/v1/builds/{build}/report", "/api/v1/builds", f"/api/v1/builds/{build}"]
            tags = [get(d, page)[1].get("etag") for page in pages]
            d.stop(how)
            p.call(700)
            d.start()
            tap.point(said(d, p.exe) == (1000, ["not-read"], True),
                      f"{name}: not found again: the report says since when it was not read", said(d, p.exe))
            text = d.ctl("report", p.exe).stdout
            tap.point("Exact     no: not-read\n" in text and "\nNot read  1 process since 2" in text,
                      f"{name}: so does the text", text[:1500])
            rows = [r for r in d.json("builds", "--json")["rows"] if r["name"] == p.exe]
            tap.point(rows[0]["exact"] is False and rows[0]["inexact_reasons"] == ["not-read"],
                      f"{name}: and the list of builds", rows)
            done = d.ctl("report", p.exe, "--since", "2100-01-01")
            tap.point(done.returncode == 1 and "nothing matches yet: of 1 live process what was counted since 2"
                      in done.stderr,
                      f"{name}: and the answer where nothing is stored", done)
            again = [d.get(page, If_None_Match=tag)[0] for page, tag in zip(pages, tags) if tag]
            tap.point(again and 304 not in again, f"{name}: what a client kept from before is not confirmed",
                      (again, tags))
            late = d.get(f"/api/v1/builds/{build}/report?since=now-1s")
            late = json.loads(late[2])["provenance"] if late[0] == 200 else late
            tap.point(late["exact"] is False, f"{name}: one of a time without any row is not exact either", late)
            p.tell("kill")
            p.process.wait()
            d.stop(how)
            d.start()
            last = wait_for(lambda: (s := said(d, p.exe))[1] == ["end-not-seen"] and s)
            tap.point(bool(last) and not last[2], f"{name}: when it is gone, end-not-seen stays", said(d, p.exe))
        finally:
            p.end()


def at_once(tap):
    """Acknowledged, and never read again: the store knows."""
    with Daemon("--harvest-interval", "1h") as d:
        m = Memory(name="/bin/at-once")
        a = Attached(d.socket, m)
        d.stop(signal.SIGKILL)
        m.call(5)
        d.start()
        rows = [r for r in d.json("builds", "--json")["rows"] if r["name"] == "/bin/at-once"]
        tap.point(a.answer[0] == "ACK" and rows and rows[0]["inexact_reasons"] == ["not-read"]
                  and rows[0]["processes_started"] == 1,
                  "the daemon dies right after the ACK: the process is known, and not read", rows)
        b = Attached(d.socket, m)
        good = wait_for(lambda: total(d, "/bin/at-once") == 5
                        and [r for r in d.json("builds", "--json")["rows"] if r["exact"]
                             and r["name"] == "/bin/at-once"])
        tap.point(bool(good), "it attaches again: read, and exact", d.json("builds", "--json")["rows"])
        b.close(), a.close(), m.close()


def refused(tap):
    """What is not read any more, although it lives, is not exact."""
    with Daemon("--harvest-interval", "1s") as d:
        m = Memory(name="/bin/liar")
        a = Attached(d.socket, m)
        m.call(5)
        wait_for(lambda: total(d, "/bin/liar") == 5)
        m.write_header(instance=bytes(range(16)))
        row = wait_for(lambda: [r for r in d.json("builds", "--json")["rows"] if r["name"] == "/bin/liar"
                                and r["inexact_reasons"] == ["end-not-seen"]])
        tap.point(bool(row), "a process that is not read any more, although it lives: end-not-seen",
                  (d.json("builds", "--json")["rows"], d.logged()))
        a.close(), m.close()


def wall_clock(tap):
    """A process with little CPU time attaches again."""
    with Daemon("--harvest-interval", "1s", "--log-level", "info") as d, Bed(harvester=False) as bed:
        p = begin(d, bed)
        try:
            d.stop(signal.SIGKILL)
            d.start()
            before = p.cpu()

            def counting():
                p.tell("spin 2")
                return (p.cpu() > before + 0.7 or [r for r in processes(d) if r["pid"] == p.pid
                                                   and r["state"] == "counting"])
            back = wait_for(counting, 300)
            tap.point(isinstance(back, list), "a process attaches again long before it has used a second of CPU time",
                      (p.cpu() - before, processes(d)))
        finally:
            p.end()


def others(tap):
    """A daemon of root does not look into other users' processes."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        tap.skip("another user's process", "wants root and setpriv")
        return
    with Daemon("--harvest-interval", "1s", "--log-level", "info") as d, Bed(harvester=False) as bed:
        os.chmod(bed.folder, 0o755)
        library = shutil.copy(bed.env()["LD_PRELOAD"], bed.folder)
        bed.build("idle.c", "-pg")
        p = Program(bed, d, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", LD_PRELOAD=library)
        try:
            p.call(1000)
            wait_for(lambda: total(d, p.exe) == 1000)
            d.stop(signal.SIGKILL)
            p.call(700)
            d.start()
            # The first look has been when a process of root's own has been found again; so wait for one that is looked
            # for in the same way.
            wait_for(lambda: "previous run finished" in d.logged())
            rows = [r for r in d.json("builds", "--json")["rows"] if r["name"] == p.exe]
            tap.point(processes(d) == [] and total(d, p.exe) == 1000 and rows[0]["inexact_reasons"] == ["not-read"],
                      "another user's process is not looked into: not read", (processes(d), rows, d.logged()))
            p.tell("spin 1200")
            back = wait_for(lambda: p.tell("spin 20") or total(d, p.exe) == 1700)
            tap.point(bool(back), "it comes by itself", (processes(d), d.logged()))
        finally:
            p.end()


def forged(tap):
    """A process of the same user shows a memory that is not sealed, and one with another name."""
    code = """
import os, sys, time
sys.path.insert(0, %r)
from memory import Attached, Memory
m = Memory(name="/bin/forger")
a = Attached(sys.argv[1], m)
m.call(10)
fd = os.memfd_create("profd-collect", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
os.write(fd, os.pread(m.fd, 1 << 20, 0))
fifo = os.memfd_create("profd-collect", os.MFD_CLOEXEC)
print("ready", flush=True)
sys.stdin.read()
""" % os.path.dirname(os.path.abspath(harness.__file__))
    with Daemon("--harvest-interval", "1s", "--log-level", "info") as d:
        p = subprocess.Popen([sys.executable, "-c", code, d.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True)
        try:
            assert p.stdout.readline() == "ready\n"
            wait_for(lambda: total(d, "/bin/forger") == 10)
            d.stop(signal.SIGKILL)
            d.start()
            wait_for(lambda: "previous run finished" in d.logged())
            rows = [r for r in d.json("builds", "--json")["rows"] if r["name"] == "/bin/forger"]
            tap.point(processes(d) == [] and rows[0]["inexact_reasons"] == ["not-read"],
                      "memories without seals, or of another name, are left alone",
                      (processes(d), rows, d.logged()))
        finally:
            p.stdin.close()
            p.wait()
            p.stdout.close()


def kept(tap):
    """With a manager that keeps descriptors a clean stop loses nothing either."""
    with Kept("--harvest-interval", "1s", start=False).prepare() as d, Bed(harvester=False) as bed:
        d.start()
        p = begin(d, bed)
        try:
            names = wait_for(lambda: len(d.listen()) == 1 and list(d.stored))
            d.stop()
            d.listen()
            tap.point(list(d.stored) == names, "a clean stop leaves the memory with the manager", d.stored)
            p.call(700)
            p.tell("kill")
            p.process.wait()
            d.start_with(names)
            again = wait_for(lambda: said(d, p.exe) == (p.made, [], False))
            tap.point(bool(again), "it ended while no daemon ran: every call of it, and exact",
                      (p.made, said(d, p.exe), d.logged()))
        finally:
            p.end()


def stopping(tap):
    """A daemon that is stopping says so to each process that connects: a process comes back each second, not more
    often, and the next daemon has it."""
    with Daemon("--harvest-interval", "1s", start=False) as d, Bed(harvester=False) as bed:
        os.makedirs(os.path.dirname(d.socket), exist_ok=True)
        listener, came, began = socket.socket(socket.AF_UNIX), [], time.monotonic()
        listener.bind(d.socket)
        listener.listen()
        p = Program(bed, d)
        spins = threading.Thread(target=p.tell, args=("spin 3000",))
        spins.start()
        listener.settimeout(0.1)
        while spins.is_alive():
            with contextlib.suppress(OSError):
                s, _ = listener.accept()
                came.append(s)
                s.sendall(header("NACK", 1, 2) + field(1, 30))
        took = time.monotonic() - began
        for s in (*came, listener):
            s.close()
        os.unlink(d.socket)
        try:
            tap.point(2 <= len(came) <= took + 2,
                      "a daemon that is stopping is asked again each second, not more often", (len(came), took))
            p.call(1000)
            d.start()
            p.tell("spin 2000")
            assert d.ctl("symbols", p.exe).returncode == 0
            again = wait_for(lambda: said(d, p.exe)[0] == p.made)
            tap.point(bool(again), "the next daemon has every call of it", (p.made, said(d, p.exe), d.logged()))
        finally:
            p.end()


def main():
    with Tap() as tap:
        for name, how in RUNS.items():
            for part in (ended_away, found, hidden):
                part(tap, name, how)
        for part in (at_once, refused, wall_clock, others, forged, kept, stopping):
            part(tap)


if __name__ == "__main__":
    main()
