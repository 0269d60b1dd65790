#!/usr/bin/python3
"""The daemon's word to a live process, by its page: pause, rate, and what becomes of them when daemons come and go;
processes without ticks; the last look at the end."""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import LONG, Bed, Tap, difference, wait_until  # noqa: E402


class Live:
    """A program under the collector that goes on until it is told to end."""

    def __init__(self, bed, *command, **env):
        self.bed = bed
        self.process = subprocess.Popen([str(c) for c in command], env=bed.env(**env), cwd=bed.folder,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.process.stdout.readline()

    def seen(self):
        """As the latest of the harvester's clients of that pid has it."""
        found = [p for p in self.bed.dump() if p.pid == self.pid]
        return found[-1] if found else None

    def wait(self, what):
        return wait_until(lambda: (p := self.seen()) and what(p) and p)

    def truth(self):
        return sum(self.bed.truth(self.pid).values())

    def stands_still(self):
        """Nothing is counted while the program itself makes 200,000 calls and more; None if it does not come to
        that."""
        calls = self.truth()
        if not wait_until(lambda: self.truth() > calls + 100):  # a tick came in the middle of a call: that one is made
            return None
        first, calls = self.seen(), self.truth()
        if not wait_until(lambda: self.truth() > calls + 200000):
            return None
        last = self.seen()
        return first.calls() == last.calls() and first["TICKS"] == last["TICKS"]

    def goes_on(self):
        first = sum(self.seen().calls().values())
        return bool(self.wait(lambda p: sum(p.calls().values()) > first + 200000))

    def page(self, paused, rate=0):
        self.bed.say(f"page {self.pid} {paused} {rate}")

    def has_page(self):
        return wait_until(lambda: [line for line in open(f"/proc/{self.pid}/maps") if "/memfd:page" in line])

    def numbers(self):
        return sorted(int(n) for n in os.listdir(f"/proc/{self.pid}/fd"))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close(), self.process.stdout.close()


def pauses(tap, bed, exe):
    p = Live(bed, exe, "spin", PROFD_RATE=200)
    tap.point(p.wait(lambda q: q["TICKS"] > 5) and p.goes_on(), "it counts")
    mapped = p.has_page()
    tap.point(len(mapped) == 1 and " r--s " in mapped[0], "the daemon's page is mapped, and can only be read", mapped)
    tap.point([n for n in p.numbers() if n < 512] == [0, 1, 2], "its descriptor and the surplus one are closed",
              p.numbers())
    p.page(1)
    tap.point(p.wait(lambda q: q["PAUSES"] == 1) and p.stands_still(), "paused: neither calls nor ticks")
    p.page(0)
    tap.point(p.goes_on() and p.seen()["PAUSES"] == 1, "and on again; one pause is one")
    os.kill(p.pid, signal.SIGUSR1)
    tap.point(p.wait(lambda q: q["PAUSES"] == 2) and p.stands_still(), "moncontrol(0) is the program's own")
    p.page(1)
    p.page(0)
    tap.point(p.stands_still() and p.seen()["PAUSES"] == 2, "the daemon's resuming does not overrule it")
    p.page(1)
    os.kill(p.pid, signal.SIGUSR2)
    tap.point(wait_until(p.stands_still), "nor does moncontrol(1) overrule the daemon's pause")
    p.page(0)
    tap.point(p.goes_on(), "both allow it: it counts")
    p.page(1)
    before = p.seen()["PAUSES"]
    tap.point(p.wait(lambda q: q["PAUSES"] == before + 1) and p.stands_still(), "paused once more")
    os.kill(p.pid, signal.SIGHUP)
    child = wait_until(lambda: [q for q in bed.dump() if q.raw.get("parent") == p.seen()["instance"]
                                and q["pid"] != p.pid])
    pid = child[0].pid
    tap.point(wait_until(lambda: [q for q in bed.dump() if q.pid == pid and q.calls()["leaf"] > 1000
                                  and q["PAUSES"] == 0]),
              "a child of a paused process counts: nobody has paused that one")
    tap.point(p.stands_still(), "its parent does not")
    os.kill(pid, signal.SIGKILL)
    bed.stop()
    tap.point(os.path.exists(f"/proc/{p.pid}"), "the daemon goes away")
    bed.start()
    tap.point(p.wait(lambda q: not q.failed) and p.goes_on(), "the next one has not paused it, so it counts")
    p.page(1)
    tap.point(p.wait(lambda q: q["PAUSES"] > before + 1) and p.stands_still(), "and is obeyed")
    p.end()
    bed.forget_truth()


def rates(tap, bed, exe):
    p = Live(bed, exe, "spin", PROFD_RATE=300)
    tap.point(p.wait(lambda q: q["TICKS"] > 10) and p.has_page(), "ticks at 300 Hz")
    p.page(0, 99)
    set_at = p.seen()["TICKS"]
    first = p.wait(lambda q: q["TICKS"] > set_at + 20)  # the tick that finds the page is still one of 300 Hz
    last = p.wait(lambda q: q["TICKS"] > first["TICKS"] + 100)
    tap.point(last and (last["TICKS"] - first["TICKS"]) % 4 == 0 and last["rate"] == 300,
              "at 99 Hz of 300 each tick weighs four, and the rate stays true",
              (first["TICKS"], last and last["TICKS"]))
    p.page(0, 1)
    first = p.wait(lambda q: q["TICKS"] >= last["TICKS"] + 300)

    def placed(q):
        return q["TICKS"] == sum(q.ticks().values()) + q["TICKS_INSIDE"] + q["TICKS_BLOCKED"]
    last = p.wait(lambda q: q["TICKS"] > first["TICKS"] and placed(q))
    tap.point((last["TICKS"] - first["TICKS"]) % 300 == 0, "1 Hz: three hundred", (first["TICKS"], last["TICKS"]))
    seconds = time.clock_gettime(~p.pid << 3 | 2)  # clock_getcpuclockid(3)
    tap.point(last["TICKS"] <= 300 * seconds + 310 and placed(last),
              "ticks are never more than CPU time × rate, and each has its place", (last["TICKS"], seconds))
    p.page(0, 5000)
    first = p.wait(lambda q: q["TICKS"] > last["TICKS"] + 300)
    tap.point(p.wait(lambda q: (q["TICKS"] - first["TICKS"]) % 4), "more than it was started with is as much as that")
    p.end()
    bed.forget_truth()


def no_ticks(tap, bed, exe):
    bed.stop()
    os.unlink(bed.socket)
    p, still = Live(bed, exe, "spin", PROFD_RATE=0), Live(bed, exe, "exit", PROFD_CLOCK="off")
    late = Live(bed, exe, "_exit", PROFD_RATE=99)
    timers = [open(f"/proc/{q.pid}/timers").read() for q in (p, still)]
    bed.start()
    tap.point(p.wait(lambda q: q.calls()["leaf"] > 0 and q["mode"] == 0),
              "PROFD_RATE=0: a daemon that starts later is found all the same")
    p.page(1)
    tap.point(p.wait(lambda q: q["PAUSES"] == 1) and p.stands_still() and p.seen()["TICKS"] == 0,
              "and may pause it; there are no ticks")
    tap.point(timers[0].count("signal:") == 1 and "signal:" not in timers[1], "PROFD_CLOCK=off: no timer at all",
              timers)
    for q, how in ((still, "exit"), (late, "_exit")):
        q.process.stdin.close()
        status = q.process.wait(LONG)
        found = q.wait(lambda seen: not seen["alive"])
        tap.point(status == 3 and found and found["ENDED"] == 1 and not difference(bed.truth(q.pid), found.calls()),
                  f"never attached, it does so when it ends by {how}: every call is there",
                  (status, found and found.raw))
        q.process.stdout.close()
    p.end()
    bed.forget_truth()


def short_pauses(tap, bed, exe):
    p = [q for q in bed.run("env", "PROFD_RATE=250", exe, "flicker") if q.module(1)["name"] == exe][0]
    tap.point(p["PAUSES"] > 50 and 0.2 * 500 < p["TICKS"] < 0.8 * 500,
              "a program that switches itself off and on every few milliseconds has half of its ticks",
              (p["PAUSES"], p["TICKS"]))
    bed.forget_truth()


def frame(kind, payload=b"", tag=0):
    return struct.pack("<IBBHI", len(payload), 1, kind, 0, tag) + payload


def cpu_seconds(pid):
    words = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def accepted(listener):
    """A connection, and a time at which nobody had asked for it yet: this process may be given no CPU time for long."""
    listener.settimeout(0.005)
    before = first = time.monotonic()
    while before < first + LONG:
        begin = time.monotonic()
        try:
            return listener.accept()[0], before
        except socket.timeout:
            before = begin
    raise TimeoutError("nobody connects")


def refusals(tap, bed, exe):
    """A daemon that says no is asked ever more rarely; one that hangs up is asked again at each look, which is a second
    later. (Asked as rarely as the other it would be asked five times in 57 seconds.)"""
    bed.stop()
    os.unlink(bed.socket)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(bed.socket)
    listener.listen(16)
    for name, answer, least in (("a refusal", frame(5, b"\x08\x0c\x12\x02no", 1), (0, 0.9, 2.9)),
                                ("hanging up", b"", (0, 0, 0, 0, 0, 0))):
        p = subprocess.Popen([exe, "spin"], env=bed.env(), cwd=bed.folder, stdout=subprocess.PIPE)
        times, used = [], []  # of an attempt: a time before it, and one after it
        for _ in least:
            s, before = accepted(listener)
            times.append((before, time.monotonic()))
            used.append(cpu_seconds(p.pid))
            s.settimeout(LONG)
            got = 0
            while got < 37: # HELLO and ATTACH
                got += len(s.recv(37 - got))
            s.sendall(answer)
            s.close()
        gaps, cpu = [b[1] - a[0] for a, b in zip(times, times[1:])], used[-1] - used[0]
        tap.point(all(gap >= wanted for gap, wanted in zip(gaps, least[1:])) and (least[1] or cpu < 25),
                  f"after {name} seconds between attempts", (gaps, cpu))
        p.kill()
        p.wait()
        p.stdout.close()
    queued = []
    try:
        while True: # until the queue of connections is full
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            s.connect(bed.socket)
            queued.append(s)
    except BlockingIOError:
        s.close()
    p = subprocess.run([exe, "exit"], env=bed.env(), cwd=bed.folder, stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=LONG)
    tap.point(p.returncode == 3 and queued, "nor does a daemon that has no time for it hold up a program's end", p)
    for s in queued:
        s.close()
    listener.close()
    bed.forget_truth()


def main():
    with Tap() as tap, Bed() as bed:
        exe = bed.build("steady.c", "-pg")
        pauses(tap, bed, exe)
        rates(tap, bed, exe)
        short_pauses(tap, bed, exe)
        no_ticks(tap, bed, exe)
        refusals(tap, bed, exe)


if __name__ == "__main__":
    main()
