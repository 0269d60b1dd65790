#!/usr/bin/python3
"""Simulated hosts, thousands of them, with real TLS, a real gate and a real centre: what the centre acknowledges, it
counts once. Prints how many segments a second are stored, beside the handshakes a second of openssl s_time with the
same gate, how long a herd takes after the centre was killed, and memory. herd.py [hosts=N] [connections=M] [seconds=T]
[segments=K] [arcs=A] [interval=T]: the hosts' interval"""
import os
import re
import signal
import subprocess
import sys
import threading
import time

from bed import BUILD, LONG, Bed, Daemon, Tap, certificate, run

SIMULATE = os.path.join(BUILD, "tests", "simulate")
FLEET = {"hosts": 300, "connections": 100, "seconds": 3, "segments": 20, "arcs": 100, "interval": 2}


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


def simulate(bed, w, **more):
    """What it printed: name → number."""
    options = [f"{k}={v}" for k, v in {**{k: w[k] for k in ("hosts", "connections", "segments", "arcs")},
                                       **more}.items()]
    done = run(SIMULATE, bed.port, bed.authority.ca, bed.authority.key, *options, timeout=10 * LONG)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}, done.stderr.strip()


def handshakes(bed, seconds):
    """Of openssl's client, one after the other, with a certificate, a second."""
    pair = certificate(bed, "yardstick.example")
    done = run("openssl", "s_time", "-connect", f"localhost:{bed.port}", "-CAfile", bed.authority.ca, "-cert", pair[0],
               "-key", pair[1], "-new", "-time", seconds)
    found = re.search(r"(\d+) connections in (\d+) real seconds", done.stdout)
    return int(found[1]) / int(found[2]) if found else 0.0


def counted(centre):
    return centre.json("status", "--json")["store"]["centre"]["counted"]["uploads"]


def settled(centre):
    """What is counted when the last segments of closed connections are, too: the number stays for two seconds."""
    last, since = counted(centre), time.monotonic()
    while time.monotonic() < since + 2:
        time.sleep(0.1)
        now = counted(centre)
        if now != last:
            last, since = now, time.monotonic()
    return last


def sustained(tap, w, centre, bed):
    yardstick = handshakes(bed, max(1, w["seconds"] // 3))
    watch, before = Watch(gate=bed.gate.process, centre=centre.process), counted(centre)
    cpu = cpu_of(centre.process.pid), cpu_of(bed.gate.process.pid)
    got, said = simulate(bed, w, seconds=w["seconds"])
    cpu = cpu_of(centre.process.pid) - cpu[0], cpu_of(bed.gate.process.pid) - cpu[1]
    stored = counted(centre) - before
    tap.point(got["segments"] <= stored <= got["segments"] + 8 * w["connections"] and got["segments"] > 0,
              f"{got['segments']:.0f} segments in {got['seconds']:.1f} s, {w['segments']} a connection: "
              f"{got['segments_per_second']:.0f}/s; openssl s_time {yardstick:.0f} handshakes/s: "
              f"{got['segments_per_second'] / max(yardstick, 1):.1f} ×; CPU of centre {cpu[0]:.1f} s, gate "
              f"{cpu[1]:.1f} s, simulator {got['cpu']:.1f} s; "
              f"refused {got['refused']:.0f}, broken {got['failed']:.0f}; "
              f"{watch.stop()}", (got, said, stored))


def herd(tap, w, centre, bed):
    centre.stop(signal.SIGKILL)
    options = [f"{k}={w[k]}" for k in ("hosts", "segments", "arcs", "interval")] + [f"connections={w['hosts']}"]
    with subprocess.Popen([SIMULATE, str(bed.port), bed.authority.ca, bed.authority.key, *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as herd_of:
        time.sleep(1)
        centre.start()
        began, before = time.monotonic(), counted(centre)
        watch, gate = Watch(gate=bed.gate.process, centre=centre.process), cpu_of(bed.gate.process.pid)
        out, err = herd_of.communicate(timeout=10 * LONG)
        took = time.monotonic() - began
    if herd_of.returncode:
        raise RuntimeError(f"simulate: {herd_of.returncode} {err}")
    got = dict(line.split() for line in out.splitlines())
    stored, want = counted(centre), w["hosts"] * w["segments"]
    tap.point(herd_of.returncode == 0 and int(got["segments"]) == want and stored - before <= want,
              f"{w['hosts']} hosts with {w['segments']} segments each reach a centre that was killed: all {want} are "
              f"acknowledged {took:.1f} s after its start; CPU of centre {cpu_of(centre.process.pid):.1f} s, gate "
              f"{cpu_of(bed.gate.process.pid) - gate:.1f} s, simulator {got['cpu']} s; {got['refused']} refused, "
              f"{got['failed']} broken; "
              f"{watch.stop()}", (got, err, stored, before))


def main():
    w = dict(FLEET)
    for argument in sys.argv[1:]:
        name, _, value = argument.partition("=")
        w[name] = int(value)
    with Tap() as tap, Daemon("--gate") as centre, Bed(centre.socket) as bed:
        if tap.point(bed.start(), "profd-gate listens", bed.gate.logged()):
            sustained(tap, w, centre, bed)
            before = settled(centre)
            herd(tap, w, centre, bed)
            tap.point(counted(centre) == before + w["hosts"] * w["segments"] and centre.ctl("verify").returncode == 0,
                      "each segment is counted once", (before, counted(centre)))


if __name__ == "__main__":
    main()
