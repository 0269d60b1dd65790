#!/usr/bin/python3
"""Function names at a centre that never sees an executable: hosts attest what they parsed, a quorum names functions for
all of them, fewer hosts only what they sent themselves, and what is not attested as it is sent is refused. Real hosts:
profd and profd-relay, over TLS to profd-gate."""
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


def quorum(tap, centre, hosts):
    a, b, c, d = hosts
    said = a.work()
    names, disputed = report(centre)
    tap.point(names == {"honest"} and "rest on 1 host" in (disputed or ""), "one host names what it has sent",
              (names, disputed, said, centre.logged()))
    objects = centre_counts(centre)["objects"]
    b.work()
    names, disputed = report(centre)
    tap.point(names == {"honest"} and "rest on 2 hosts" in (disputed or ""), "so do two that attest the same",
              (names, disputed))
    tap.point(centre_counts(centre)["objects"] == objects > 0, "their parsed objects travelled once",
              centre_counts(centre))
    text = centre.ctl("report", ID).stdout
    tap.point("Disputed  " in text and "a quorum is 3 hosts" in text, "the text says so", text)
    d.work()
    names, disputed = report(centre)
    tap.point(not names and "no quorum" in (disputed or ""), "two hosts against one name nothing together",
              (names, disputed))
    n, text = centre_counts(centre), centre.ctl("status").stdout
    tap.point(n["attested_builds"] > 1 and n["disputed_builds"] == 1
              and f"names    of {n['attested_builds']} " in text and "; for 1, none did\n" in text,
              "status says how many builds are disputed", (n, text))
    tap.point(report(centre, "a")[0] == {"honest"} and report(centre, "d")[0] == {"liar"},
              "each of them names its own", (report(centre, "a"), report(centre, "d")))
    c.work()
    names, disputed = report(centre)
    tap.point(names == {"honest"} and disputed is None, "three of four hosts are a quorum", (names, disputed))
    left = centre_counts(centre)
    tap.point(left["disputed_builds"] == 0, "the build is not disputed any more", (n, left))
    names, disputed = report(centre, "d")
    tap.point(names == {"honest"} and disputed is None, "which names functions of the fourth, too", (names, disputed))
    metrics = centre.get("/metrics")[2].decode()
    n = centre_counts(centre)
    tap.point(f'\nprofd_centre_objects_total{{result="stored"}} {n["objects"]}\n' in metrics
              and f'\nprofd_centre_attestations_total{{result="accepted"}} {n["attestations"]}\n' in metrics
              and n["objects"] > objects, "the metrics count them",
              (n, [line for line in metrics.splitlines() if line.startswith("profd_centre")]))


def lies(tap, bed, centre, host):
    """What a host with a good certificate may not say."""
    host.work()
    before = report(centre), centre_counts(centre)["objects"]
    honest, other = hashlib.sha256(b"hello").digest(), hashlib.sha256(b"other").digest()

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
        tap.point(got[:2] == ("NACK", 6) and b"no segment of this host names build" in got[2],
                  "a build of which it has sent nothing", got)
        got = attest(ID, honest, 2**40)
        tap.point(got[:2] == ("NACK", 2) and b"one may have 1 to" in got[2], "an object of 2^40 bytes", got)
        got = attest(ID, b"short", 5)
        tap.point(got[:2] == ("NACK", 1) and b"5 bytes, not 32" in got[2], "a hash of five bytes", got)
        got = send(honest, 0, b"hello")
        tap.point(got[:2] == ("NACK", 6) and b"is not awaited from this host" in got[2], "bytes not asked for", got)
        got = attest(ID, other, 5), send(other, 0, b"hel"), send(other, 3, b"lo")
        tap.point(got[0][:2] == ("ATTESTED", 1) and got[1][:2] == ("ATTESTED", 1) and got[2][:2] == ("NACK", 6)
                  and b"has another hash than its host attests" in got[2][2], "a lying hash", got)
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
    names, disputed = report(centre)
    tap.point(done.returncode == 0 and names == {"honest"} and "rest on 1 host" in (disputed or ""),
              "a deleted program has names when it comes again", (done.stderr, names, disputed))
    tap.point(centre.ctl("verify").returncode == 0, "verification finds nothing")


def main():
    folder, hosts = tempfile.mkdtemp(prefix="profd-symbols-"), []
    try:
        with Tap() as tap, Daemon("--gate", "--relay-interval", "1s") as centre, Bed(centre.socket) as bed:
            honest, liar = program(folder, "honest"), program(folder, "liar")
            tap.point(bed.start(), "profd-gate listens", bed.gate.logged())
            copy = os.path.join(folder, "copy")
            centre.ctl("backup", copy)
            for name in "abcde":
                hosts.append(Host(bed, name, liar if name == "d" else honest))
            quorum(tap, centre, hosts[:4])
            lies(tap, bed, centre, hosts[4])
            again(tap, centre, hosts[:4], copy)
    finally:
        for h in hosts:
            h.daemon.__exit__()
        shutil.rmtree(folder, ignore_errors=True)


main()
