#!/usr/bin/python3
"""Simulated hosts, thousands of them, over HTTPS through the real nginx to a real centre: what the centre acknowledges,
it counts once. Prints how many uploads a second are stored, beside the handshakes a second of openssl s_time with the
same nginx, how long a herd takes after the centre was killed, and memory. herd.py [hosts=N] [connections=M] [seconds=T]
[uploads=K] [batches=B] [arcs=A] [proxy=nginx|haproxy]: K uploads in a batch, B batches on a connection."""
import hashlib
import os
import re
import secrets
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from bed import BUILD, LONG, Daemon, Tap, proxied, run, why_not
from https_bed import Haproxy, Nginx

SIMULATE = os.path.join(BUILD, "tests", "simulate")
FLEET = {"hosts": 300, "connections": 100, "seconds": 3, "uploads": 20, "batches": 5, "arcs": 100, "proxy": "nginx"}


def family(pid):
    """A process and its children."""
    out = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as f:
            for child in f.read().split():
                out += family(int(child))
    return out


def status_of(pid, key):
    total = 0
    for p in family(pid):
        with open(f"/proc/{p}/status") as f:
            total += int((re.search(rf"^{key}:\s+(\d+)", f.read(), re.M) or [0, 0])[1])
    return total


def cpu_of(pid):
    """Seconds."""
    total = 0
    for p in family(pid):
        with open(f"/proc/{p}/stat") as f:
            total += sum(int(n) for n in f.read().rpartition(")")[2].split()[11:13])
    return total / os.sysconf("SC_CLK_TCK")


class Watch(threading.Thread):
    """The most anonymous memory of processes, in MB."""

    def __init__(self, **processes):
        super().__init__(daemon=True)
        self.processes, self.most, self.ended = processes, dict.fromkeys(processes, 0.0), False
        self.start()

    def run(self):
        while not self.ended:
            for name, process in self.processes.items():
                try:
                    self.most[name] = max(self.most[name], status_of(process.pid, "RssAnon") / 1024)
                except OSError:
                    pass
            time.sleep(0.1)

    def stop(self):
        self.ended = True
        self.join()
        return ", ".join(f"RssAnon of the {name} {most:.0f} MB" for name, most in self.most.items())


def make_tokens(centre, hosts):
    """The path of a file with a token for each host. One is made by profctl, the others by SQL: there are thousands."""
    centre.token("simulated", "--write")
    centre.stop()
    texts = ["profd_" + secrets.token_urlsafe(32) for _ in range(hosts)]
    with sqlite3.connect(os.path.join(centre.state, "profd.db")) as db:
        db.executemany("INSERT INTO token (name, rights, tenant, hosts, hash, expires, created) SELECT ?, rights, "
                       "tenant, hosts, ?, expires, created FROM token WHERE name='simulated'",
                       [(f"simulated-{i}", hashlib.sha256(t.encode()).digest()) for i, t in enumerate(texts)])
    db.close()
    centre.start()
    path = os.path.join(centre.folder, "tokens")
    with open(path, "w") as f:
        f.write("\n".join(texts) + "\n")
    return path


class Herd:
    def __init__(self, tap, w, centre, proxy, tokens):
        self.tap, self.w, self.centre, self.proxy, self.tokens, self.centre_name = tap, w, centre, proxy, tokens, ""

    def command(self, **more):
        options = {**{k: self.w[k] for k in ("hosts", "connections", "uploads", "batches", "arcs")}, **more}
        return [SIMULATE, str(self.proxy.port), self.proxy.ca, self.tokens, *(f"{k}={v}" for k, v in options.items())]

    def handshakes(self, seconds):
        """Of openssl's client, one after the other, a second."""
        done = run("openssl", "s_time", "-connect", f"localhost:{self.proxy.port}", "-CAfile", self.proxy.ca, "-new",
                   "-time", seconds)
        found = re.search(r"(\d+) connections in (\d+) real seconds", done.stdout)
        return int(found[1]) / int(found[2]) if found else 0.0

    def counted(self):
        centre = self.centre.json("status", "--json")["store"]["centre"]
        return centre["counted"]["uploads"] if centre else 0  # before the first batch it is no centre

    def settled(self):
        """What is counted when the last batches of closed connections are, too: the number stays for two seconds."""
        last, since = self.counted(), time.monotonic()
        while time.monotonic() < since + 2:
            time.sleep(0.1)
            now = self.counted()
            if now != last:
                last, since = now, time.monotonic()
        return last

    def simulate(self, process):
        """What it printed, name → number, with the CPU seconds of the centre and of the proxy; and what it said."""
        watch = Watch(proxy=self.proxy.process, centre=self.centre.process)
        cpu = cpu_of(self.centre.process.pid), cpu_of(self.proxy.process.pid)
        out, err = process.communicate(timeout=10 * LONG)
        if process.returncode:
            raise RuntimeError(err)
        got = dict(line.split() for line in out.splitlines())
        self.centre_name = got.pop("centre")
        got = {name: float(number) for name, number in got.items()}
        got["figures"] = (f"{got['requests']:.0f} requests, {got['handshakes']:.0f} handshakes, {got['refused']:.0f} "
                          f"refused, {got['failed']:.0f} broken, of these {got['unopened']:.0f} in the handshake; "
                          f"CPU of centre "
                          f"{cpu_of(self.centre.process.pid) - cpu[0]:.1f} s, {self.w['proxy']} "
                          f"{cpu_of(self.proxy.process.pid) - cpu[1]:.1f} s, simulator {got['cpu']:.1f} s; "
                          f"{watch.stop()}")
        if err:
            print(f"# {err.strip()[:500]}", flush=True)
        return got, err.strip()

    def start(self, **more):
        return subprocess.Popen(self.command(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def sustained(self):
        w, yardstick, before = self.w, self.handshakes(max(1, self.w["seconds"] // 6)), self.counted()
        got, said = self.simulate(self.start(seconds=w["seconds"]))
        stored = self.settled() - before
        more = w["uploads"] * w["connections"]
        self.tap.point(0 < got["uploads"] <= stored <= got["uploads"] + more,
                       f"{got['uploads']:.0f} uploads in {got['seconds']:.1f} s, {w['uploads']} in a batch, "
                       f"{w['batches']} batches on a connection: {got['uploads_per_second']:.0f}/s; openssl s_time "
                       f"{yardstick:.0f} handshakes/s; {got['figures']}", (got, said, stored))

    def herd(self):
        w, before, want = self.w, self.settled(), self.w["hosts"] * self.w["uploads"]
        self.centre.stop(signal.SIGKILL)
        herd = self.start(herd=1, connections=w["hosts"], centre=self.centre_name)
        time.sleep(1)
        self.centre.start()
        began = time.monotonic()
        got, said = self.simulate(herd)
        took = time.monotonic() - began
        self.tap.point(int(got["uploads"]) == want,
                       f"{w['hosts']} hosts with {w['uploads']} uploads each reach a centre that was killed: all "
                       f"{want} are acknowledged {took:.1f} s after its start; {got['figures']}",
                       (got, said))
        self.tap.point(self.counted() == before + want and self.centre.ctl("verify").returncode == 0,
                       "each upload is counted once", (before, want, self.counted()))


def main():
    w = dict(FLEET)
    for argument in sys.argv[1:]:
        name, _, value = argument.partition("=")
        w[name] = value if name == "proxy" else int(value)
    with Tap() as tap:
        if why_not():
            tap.skip("a herd", why_not())
            return
        with Daemon(*proxied()) as centre:
            tokens = make_tokens(centre, w["hosts"])
            with (Haproxy if w["proxy"] == "haproxy" else Nginx)(centre) as proxy:
                h = Herd(tap, w, centre, proxy, tokens)
                h.sustained()
                h.herd()


if __name__ == "__main__":
    main()
