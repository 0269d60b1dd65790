#!/usr/bin/python3
"""Function names at a centre that never sees an executable: the first host names functions for all of them, and what
another host has is kept out and shown as disputed. Real hosts: profd and profd-relay, over TLS to profd-gate."""
import hashlib
import json
import os
import shutil
import subprocess
import tempfile

from harness import Daemon, Tap, run, until
from tls_bed import Bed, TlsWire, relay_once
from wire import Wire, field

ID = "ab" * 20
SOURCE = """
volatile long sink;
__attribute__((noinline)) void NAME(long n) { sink += n; }
int main(void) { for (long i = 0; i < 1000; i++) { NAME(i); } return 0; }
"""


def program(folder, name):
    """Executables of one build-id, which differ in the name of their function."""
    path = os.path.join(folder, name)
    subprocess.run(["gcc", "-O1", "-pg", "-fno-inline", f"-DNAME={name}", "-x", "c", "-", f"-Wl,--build-id=0x{ID}",
                    "-o", path], input=SOURCE.encode(), check=True)
    return path


class Host:
    def __init__(self, bed, name, path):
        self.daemon, self.name, self.path = Daemon("--relay", f"tls://localhost:{bed.port}").__enter__(), name, path
        self.pair = bed.authority.host(f"{name}.example")
        self.relay = bed.relay(self.daemon, name, self.pair)

    def work(self):
        """Runs the program once, and sends what it counted and what names it."""
        done = self.daemon.ctl("run", self.path, env=self.daemon.env)
        until(lambda: report(self.daemon)[0])  # its executable is parsed
        sent = relay_once(self.relay)
        if done.returncode or sent.returncode:
            raise RuntimeError(done.stderr + sent.stderr)
        return sent.stderr


def report(centre, host=None):
    """(names, why the build is disputed or None) of the report over all hosts, or over one."""
    with Wire(centre.socket) as w:
        narrow = f"?label.host={host}.example" if host else ""
        status, text = w.query(f"/api/v1/builds/{ID}/report{narrow}")[:2]
    document = json.loads(text)
    if status != 200:
        raise RuntimeError(text)
    build = next(b for b in document["builds"] if b["build_id"] == ID)
    return {f["name"] for f in document["functions"]} & {"honest", "liar"}, build.get("disputed")


def centre_counts(centre):
    return centre.json("status", "--json")["store"]["centre"]


DISPUTE = ("its names are those of host a.example, which sent them first; host d.example has another content under "
           "this build-id")


def first(tap, centre, hosts):
    a, b, c, d = hosts
    said = a.work()
    tap.point(report(centre) == ({"honest"}, None), "one host names functions", (report(centre), said, centre.logged()))
    objects = centre_counts(centre)["objects"]
    b.work()
    tap.point(report(centre) == ({"honest"}, None) and centre_counts(centre)["objects"] == objects > 0,
              "another one has the same: its parsed objects do not travel", (report(centre), centre_counts(centre)))
    text = centre.ctl("report", ID).stdout + centre.ctl("status").stdout
    tap.point("isputed" not in text and centre_counts(centre)["disputed_builds"] == 0, "nothing is said of a dispute",
              text)
    d.work()
    tap.point(report(centre) == ({"honest"}, DISPUTE), "another content is kept out, and both hosts are named",
              report(centre))
    tap.point(report(centre, "d")[0] == {"honest"} and centre_counts(centre)["objects"] == objects,
              "its names are not even those of its own counts", (report(centre, "d"), centre_counts(centre)))
    text = centre.ctl("report", ID).stdout
    tap.point("Disputed  " in text and DISPUTE in text, "the text says so", text)
    n, text = centre_counts(centre), centre.ctl("status").stdout
    tap.point(n["disputed_builds"] == 1 and "\ndisputed 1 build:" in text, "status counts the disputed builds",
              (n, text))
    c.work()
    tap.point(report(centre) == ({"honest"}, DISPUTE), "more hosts do not change that", report(centre))
    metrics = centre.get("/metrics")[2].decode()
    tap.point(f'\nprofd_centre_objects_total{{result="stored"}} {objects}\n' in metrics, "the metrics count objects",
              [line for line in metrics.splitlines() if line.startswith("profd_centre")])


def lies(tap, bed, centre, host):
    """What a host with a good certificate may not say. It is the first one, which may replace what it has sent."""
    before = report(centre), centre_counts(centre)["objects"]
    honest = hashlib.sha256(b"hello").digest()

    def ask(w, kind, *fields):
        w.send(kind, b"".join(fields), tag=5)
        answer = w.take()
        return answer[0], answer[3].get(1, 0), answer[3].get(4, b"")

    with TlsWire(bed, host.pair) as w:
        w.send("ARRIVE", field(5, 1) + field(6, 1))
        w.take()

        def attest(build, hash_, size):
            return ask(w, "ATTEST", field(2, build), field(3, hash_), field(4, size))

        def send(hash_, offset, data):
            return ask(w, "OBJECT_BYTES", field(2, ID), field(3, hash_), field(4, offset), field(5, data))

        got = attest("cd" * 20, honest, 5)
        tap.point(got[:2] == ("ATTESTED", 0), "a build of which it has sent nothing", got)
        got = attest(ID, honest, 2**40)
        tap.point(got[:2] == ("ATTESTED", 0), "an object of 2^40 bytes", got)
        got = attest(ID, b"short", 5)
        tap.point(got[:2] == ("NACK", 1) and b"5 bytes, not 32" in got[2], "a hash of five bytes", got)
        got = send(honest, 0, b"hello")
        tap.point(got[:2] == ("NACK", 6) and b"is not awaited from this host" in got[2], "bytes not asked for", got)
        got = attest(ID, honest, 5), send(honest, 3, b"lo")
        tap.point(got[0][:2] == ("ATTESTED", 1) and got[1][:2] == ("NACK", 1), "a piece that does not follow", got)
        got = attest(ID, honest, 5), send(honest, 0, b"hello")
        tap.point(got[1][0] == "NACK" and b"what a host said about" in got[1][2], "bytes that are no object",
                  got)
    tap.point((report(centre), centre_counts(centre)["objects"]) == before, "nothing of this was stored",
              (before, report(centre), centre_counts(centre)))


def again(tap, centre, hosts, copy):
    """What the centre loses comes again."""
    want = report(centre)
    centre.stop()
    done = run(*centre.command(), "--restore", copy)
    centre.start()
    until(lambda: all(relay_once(h.relay).returncode == 0 for h in hosts))
    tap.point(done.returncode == 0 and report(centre) == want,
              "a restored centre gets again what names functions", (done.stderr, report(centre)))
    done = centre.ctl("delete", "--yes", ID)
    hosts[0].work()
    tap.point(done.returncode == 0 and report(centre) == ({"honest"}, None),
              "a deleted program has names when it comes again, and no dispute", (done.stderr, report(centre)))
    tap.point(centre.ctl("verify").returncode == 0, "verification finds nothing")


def main():
    folder, hosts = tempfile.mkdtemp(prefix="profd-symbols-"), []
    try:
        with Tap() as tap, Daemon("--gate", "--relay-interval", "1s") as centre, Bed(centre.socket) as bed:
            honest, liar = program(folder, "honest"), program(folder, "liar")
            tap.point(bed.start(), "profd-gate listens", bed.gate.logged())
            copy = os.path.join(folder, "copy")
            centre.ctl("backup", copy)
            for name in "abcd":
                hosts.append(Host(bed, name, liar if name == "d" else honest))
            first(tap, centre, hosts)
            lies(tap, bed, centre, hosts[0])
            again(tap, centre, hosts, copy)
    finally:
        for h in hosts:
            h.daemon.__exit__()
        shutil.rmtree(folder, ignore_errors=True)


main()
