#!/usr/bin/python3
"""Function names at a centre that never sees an executable: the first host names functions for all of them, and what
another host has is kept out and shown as disputed. Real hosts: profd and profd-relay, through nginx."""
import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile

import https_bed
import relay_https
from harness import Daemon, Tap, run, until
from https_bed import Nginx, proxied
from uploads import batch, connect, finish, post, request
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
    def __init__(self, centre, proxy, name, path):
        self.token, self.path = centre.token(f"{name}.example", "--write"), path
        self.relay = relay_https.Host(proxy.at, self.token, proxy.ca).__enter__()
        self.daemon = self.relay.d

    def work(self):
        """Runs the program once, and sends what it counted and what names it."""
        done = self.daemon.ctl("run", self.path, env=self.daemon.env)
        until(lambda: report(self.daemon)[0])  # its executable is parsed
        status, said = self.relay.once()
        if done.returncode or status:
            raise RuntimeError(done.stderr + said)
        return said


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


def stored(centre):
    """How many objects of the program the centre has. Ticks in a library may bring one of that library at any time."""
    with contextlib.closing(sqlite3.connect(os.path.join(centre.state, "profd.db"))) as db:
        question = "SELECT count(*) FROM object o JOIN build b ON b.id=o.build WHERE b.build_id=?"
        return db.execute(question, (ID,)).fetchone()[0]


DISPUTE = ("its names are those of host a.example, which sent them first; host d.example has another content under "
           "this build-id")


def first(tap, centre, hosts):
    a, b, c, d = hosts
    said = a.work()
    tap.point(report(centre) == ({"honest"}, None), "one host names functions", (report(centre), said, centre.logged()))
    objects = stored(centre)
    b.work()
    tap.point(report(centre) == ({"honest"}, None) and stored(centre) == objects > 0,
              "another one has the same: its parsed objects do not travel", (report(centre), stored(centre)))
    text = centre.ctl("report", ID).stdout + centre.ctl("status").stdout
    tap.point("isputed" not in text and centre_counts(centre)["disputed_builds"] == 0, "nothing is said of a dispute",
              text)
    d.work()
    tap.point(report(centre) == ({"honest"}, DISPUTE), "another content is kept out, and both hosts are named",
              report(centre))
    tap.point(report(centre, "d")[0] == {"honest"} and stored(centre) == objects,
              "its names are not even those of its own counts", (report(centre, "d"), stored(centre)))
    text = centre.ctl("report", ID).stdout
    tap.point("Disputed  " in text and DISPUTE in text, "the text says so", text)
    n, text = centre_counts(centre), centre.ctl("status").stdout
    tap.point(n["disputed_builds"] == 1 and "\ndisputed 1 build:" in text, "status counts the disputed builds",
              (n, text))
    c.work()
    tap.point(report(centre) == ({"honest"}, DISPUTE), "more hosts do not change that", report(centre))
    metrics = centre.get("/metrics")[2].decode()
    received = centre_counts(centre)["objects"]
    tap.point(received >= objects and f'\nprofd_centre_objects_total{{result="stored"}} {received}\n' in metrics,
              "the metrics count objects", [line for line in metrics.splitlines() if line.startswith("profd_centre")])


def lies(tap, centre, host):
    """What a host with a token may not say. It is the first one, which may replace what it has sent."""
    before = report(centre), centre_counts(centre)["objects"]
    honest, version = hashlib.sha256(b"hello").digest(), centre.json("hosts", "--json")["rows"][0]["version"]

    def offer(build, hash_, size):
        offered = field(12, field(1, build) + field(2, hash_) + field(3, size))
        status, answer = post(centre, host.token, batch(number=2**40, version=version) + offered)
        return status, answer["send"]

    def put(data):
        s = connect(centre)
        head = request(host.token, data, Connection="close", Content_Type="application/vnd.profd.symbols")
        s.sendall(head.replace(b"POST /api/v1/uploads", f"PUT /api/v1/builds/{ID}/symbols".encode(), 1))
        return finish(s)

    for what, arguments in (("a build of which it has sent nothing", ("cd" * 20, honest, 5)),
                            ("symbols of 2^40 bytes", (ID, honest, 2**40)),
                            ("a hash of five bytes", (ID, b"short", 5))):
        got = offer(*arguments)
        tap.point(got == (200, []), f"it offers {what}: they are not asked for", got)
    got = put(b"hello")
    tap.point(400 <= got[0] < 500, "bytes that it has not offered", got)
    got = offer(ID, honest, 5), put(b"hello")
    tap.point(got[0] == (200, [ID]) and 400 <= got[1][0] < 500, "bytes that are no symbols", got)
    tap.point((report(centre), centre_counts(centre)["objects"]) == before, "nothing of this was stored",
              (before, report(centre), centre_counts(centre)))


def again(tap, centre, hosts, copy):
    """What the centre loses comes again."""
    want = report(centre)
    centre.stop()
    done = run(*centre.command(), "--restore", copy)
    centre.start()
    until(lambda: all(h.relay.once()[0] == 0 for h in hosts))
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
        with Tap() as tap:
            if why := https_bed.why_not():
                tap.skip("names at a centre", why)
                return
            with Daemon("--relay-interval", "1s", *proxied()) as centre, Nginx(centre) as proxy:
                honest, liar = program(folder, "honest"), program(folder, "liar")
                for name in "abcd":
                    hosts.append(Host(centre, proxy, name, liar if name == "d" else honest))
                copy = os.path.join(folder, "copy")
                centre.ctl("backup", copy)  # with the tokens
                first(tap, centre, hosts)
                lies(tap, centre, hosts[0])
                again(tap, centre, hosts, copy)
    finally:
        for h in hosts:
            h.relay.__exit__()
        shutil.rmtree(folder, ignore_errors=True)


main()
