"""profctl clickhouse init on real servers of ClickHouse: the tables count a segment once, however often and wherever it
is inserted; init may be repeated and killed; what is refused is said in a sentence; what only claims to be ClickHouse
harms nothing."""
import json
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

from clickhouse_bed import PASSWORD, PROGRAM, Bed
from harness import LONG, PROFCTL, Tap, free_port, run
from tls_bed import Authority

SEGMENT = "sent,program,epoch,sequence,grp,number,series,uploads,ticks,calls"


def init(*urls, **options):
    return run(PROFCTL, "clickhouse", "init", *urls, **options)


def fine(done, *words):
    return done.returncode == 0 and done.stderr == "" and all(w in done.stdout for w in words)


def refused(tap, name, done, status, *words):
    tap.point(done.returncode == status and done.stdout == "" and len(done.stderr.splitlines()) == 1
              and all(w in done.stderr for w in words), name, done)


def rows(first, last, number=1):
    """Segments first … last − 1 of an epoch, each with one upload, one tick and two calls."""
    return "\n".join("\t".join(map(str, (
        f"2026-11-{1 + s % 3:02} {s % 24:02}:00:00", f"{s % 5:02}ab", "epoch-aaaaaa", s, s % 16, number,
        "0123456789abcdef", 1, 1, 2))) for s in range(first, last)).encode()


def put(server, database, data):
    server.query(f"INSERT INTO {database}.segment_group ({SEGMENT}) FORMAT TabSeparated", data,
                 insert_distributed_sync=1)


def schema():
    """The names of the tables."""
    with open("schema/clickhouse/001_store.sql") as f:
        return sorted(re.findall(r"CREATE TABLE IF NOT EXISTS \$(?:local|copied)\((\w+)\)", f.read()))


def tables(server, database, condition):
    return server.query(f"SELECT name FROM system.tables WHERE database = '{database}' AND {condition} "
                        "ORDER BY name").split()


def sums(server, database):
    return [int(n) for n in server.query(f"SELECT count(), sum(uploads), sum(ticks), sum(calls) "
                                         f"FROM {database}.segment_group FINAL").split()]


def one_server(tap, server):
    done = init(server.url())
    tap.point(fine(done, "profd now have version 1, before 0", "18.16.1"), "init makes the tables", done)
    tap.point(tables(server, "profd", "engine = 'ReplacingMergeTree'") == schema()
              and tables(server, "profd", "engine != 'ReplacingMergeTree'") == ["migration"],
              "on a server without a cluster each table is one table")
    state = server.query("SELECT name, length(value) FROM profd.state ORDER BY name")
    tap.point(state == "incarnation\t16\nsalt\t8\n", "the data has an identity and a salt", state)
    done = init(server.url())
    tap.point(fine(done, "already have version 1"), "init may be repeated", done)
    done = run(PROFCTL, "clickhouse", "init", "--json", server.url())
    tap.point(json.loads(done.stdout) == {"rows": [{"host": "127.0.0.1", "port": server.http, "database": "profd",
                                                    "server_version": "18.16.1", "before": 1, "after": 1}]},
              "--json", done)
    for number in (1, 2, 1):
        put(server, "profd", rows(0, 100, number))
    tap.point(sums(server, "profd") == [100, 100, 100, 200], "segments that come three times count once",
              sums(server, "profd"))
    tap.point(server.query("SELECT DISTINCT partition FROM system.parts WHERE table = 'segment_group' "
                           "AND database = 'profd' AND active ORDER BY partition") == "20261101\n20261102\n20261103\n",
              "a partition is a day of UTC, whatever the server's time zone")


def in_cluster(tap, bed):
    a, b = bed.servers
    refused(tap, "a cluster of which not all servers are named", init(a.url("fleet", cluster="shards")), 65,
            "has 2 servers, and 1 get tables")
    done = init(bed.url("fleet", cluster="shards"))
    tap.point(fine(done, "now have version 1") and len(done.stdout.splitlines()) == 2,
              "init makes the tables on each server of a cluster", done)
    kept = [s.query("SELECT name, hex(value) FROM fleet.state ORDER BY name") for s in bed.servers]
    tap.point(kept[0] == kept[1] and kept[0].count("\n") == 2, "which have one identity and salt", kept)
    tap.point(fine(init(*(s.url("fleet", cluster="shards") for s in bed.servers)), "already have version 1")
              and a.query("SELECT name, hex(value) FROM fleet.state ORDER BY name") == kept[0],
              "that stay when init is repeated", kept)
    put(a, "fleet", rows(0, 300))
    put(b, "fleet", rows(200, 400))
    put(a, "fleet", rows(100, 400, 2))
    got = [sums(s, "fleet") for s in bed.servers]
    tap.point(got == [[400, 400, 400, 800]] * 2, "segments that come through several servers count once", got)
    parts = [int(s.query("SELECT count() FROM fleet.segment_group_local FINAL")) for s in bed.servers]
    tap.point(sum(parts) == 400 and min(parts) > 100, "and are spread over the shards", parts)


def layouts(tap, bed):
    a = bed.servers[0]
    refused(tap, "a cluster that the server does not know", init(a.url("x", cluster="other")), 65, 'no cluster "other"')
    refused(tap, "a cluster with replicas, without replicated", init(a.url("x", cluster="pair")), 65, "2 replicas",
            "replicated=1")
    refused(tap, "replicated on a server without ZooKeeper", init(bed.url("x", cluster="pair", replicated=1)),
            65, "no zookeeper")
    tap.point(a.query("EXISTS TABLE x.migration") == "0\n"
              and "x" not in a.query("SHOW DATABASES").split(), "nothing was made of these")
    refused(tap, "tables that were made for another layout", init(a.url("fleet")), 65, "cluster=shards", "one server")
    a.query("CREATE DATABASE theirs")
    a.query("CREATE TABLE theirs.segment (x UInt8) ENGINE = MergeTree ORDER BY x")
    refused(tap, "a database with other tables", init(a.url("theirs")), 65, '"theirs" has 1 tables')
    tap.point(a.query("SHOW TABLES FROM theirs") == "segment\n", "which stays as it is")
    for number in (3, 4):  # 4 without 3, then both
        tap.point(fine(init(a.url(f"later{number}"))), "tables of this version")
        a.query(f"INSERT INTO later{number}.migration (number, layout, profd) VALUES ({number}, 'one server', '9')")
        refused(tap, f"a migration {number}, of a newer profd", init(a.url(f"later{number}")), 78, f"version {number}")
    tap.point(fine(init(a.url("before"))), "tables of a database")
    a.query("ALTER TABLE before.segment_group DROP COLUMN arcs")
    refused(tap, "tables of a form before the first release", init(a.url("before")), 65, "before its release")
    a.query("CREATE TABLE theirs.migration AS later3.migration ENGINE = MergeTree ORDER BY number")
    a.query("INSERT INTO theirs.migration (number, layout, profd) VALUES (0, 'one server', '9')")
    refused(tap, "a record that is none of profd's", init(a.url("theirs")), 74, "of the 0 migrations", "1 are")


def users(tap, bed, folder):
    a = bed.servers[0]
    path = os.path.join(folder, "password")

    def write(text, mode=0o600):
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
    write(PASSWORD + "\n")
    done = init(a.url("own", user="writer"), "--password-file", path)
    tap.point(fine(done, "now have version 1"), "the password comes from a file", done)
    refused(tap, "no password", init(a.url("own", user="writer")), 77, "writer")
    refused(tap, "a user that is not there", init(a.url("own", user="nobody")), 77, "nobody")
    refused(tap, "a user who may only read", init(a.url("own", user="reader")), 77, "readonly")
    write("wrong\n")
    refused(tap, "a wrong password", init(a.url("own", user="writer"), "--password-file", path), 77, "writer")
    write("")
    refused(tap, "an empty file", init(a.url(), "--password-file", path), 78, "1 to 256 bytes")
    write("x" * 257)
    refused(tap, "a password that is too long", init(a.url(), "--password-file", path), 78, "1 to 256 bytes")
    write("a\tb\n")
    refused(tap, "a password with a control character", init(a.url(), "--password-file", path), 78, "printable")
    write("x", 0o644)
    refused(tap, "a file that every user may read", init(a.url(), "--password-file", path), 78, "mode 644")
    refused(tap, "a file that is not there", init(a.url(), "--password-file", path + "x"), 66, path + "x")
    write("x")
    refused(tap, "a password that would leave the machine without TLS",
            init("clickhouse://centre.example/profd", "--password-file", path), 78, "centre.example", "tls=1")


def tls(tap, bed, authority):
    a = bed.servers[0]
    url = f"clickhouse://localhost:{a.https}/own?tls=1"
    done = init(url, "--cacert", authority.ca)
    tap.point(fine(done, "localhost"), "over TLS", done)
    refused(tap, "a CA that is not trusted", init(url), 77, "certificate")
    refused(tap, "a certificate for another name",
            init(f"clickhouse://127.0.0.1:{a.https}/own?tls=1", "--cacert", authority.ca), 77, "certificate")
    refused(tap, "a file without certificates", init(url, "--cacert", "/dev/null"), 66, "certificates of the CAs")
    done = init("--timeout", "2", f"clickhouse://localhost:{a.http}/own?tls=1", "--cacert", authority.ca)
    refused(tap, "TLS where there is none", done, done.returncode if done.returncode in (69, 75) else None,
            f"https://localhost:{a.http}")  # a server without TLS waits for the end of a line, or closes


class Pretender:
    """A listener that answers every request with these bytes, again and again if endless, and closes; None: nothing."""

    def __init__(self, reply, endless=False):
        self.listener, self.reply, self.endless = socket.create_server(("127.0.0.1", 0)), reply, endless
        self.url = f"clickhouse://127.0.0.1:{self.listener.getsockname()[1]}/profd"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        kept = []
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            if self.reply is None:
                kept.append(s)
                continue
            try:
                request = b""
                while b"SELECT version()" not in request and (piece := s.recv(65536)):
                    request += piece
                s.sendall(self.reply)
                while self.endless:
                    s.sendall(b"1" * 65536)
            except OSError:
                pass
            s.close()

    def close(self):
        self.listener.close()


def pretenders(tap):
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: "
    for name, reply, endless, status, words in (
            ("a page of HTML", ok + b"14\r\n\r\n<html></html>\n", False, 76, ("not ClickHouse",)),
            ("an empty reply", ok + b"0\r\n\r\n", False, 76, ("not ClickHouse",)),
            ("a reply that ends too soon", ok + b"99\r\n\r\n18.16", False, 69, ("cannot ask",)),
            ("a reply that never ends", b"HTTP/1.1 200 OK\r\n\r\n", True, 65, ("more than 65536 bytes",)),
            ("a redirection", b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
             False, 76, ("HTTP status 302",)),
            ("what is not HTTP", b"SSH-2.0-OpenSSH_9.2\r\n", False, 76, ("HTTP",)),
            ("nothing but the end", b"", False, 69, ("cannot ask",)),
            ("an error of a newer server", b"HTTP/1.1 403 Forbidden\r\nContent-Length: 97\r\n\r\n"
             b"Code: 516. DB::Exception: default: Authentication failed. (AUTHENTICATION_FAILED) (version 14.8)\n",
             False, 77, ("default: Authentication failed", "code 516"))):
        p = Pretender(reply, endless)
        refused(tap, name, init(p.url), status, *words)
        p.close()
    p = Pretender(None)
    refused(tap, "no answer", init("--timeout", "1", p.url), 75, "does not answer")
    p.close()
    port = free_port()
    refused(tap, "no listener", init(f"clickhouse://127.0.0.1:{port}/profd"), 69, str(port))


def state(tap, server):
    """What the tables say of the centre."""
    def read():
        return dict(line.split("\t") for line in server.query(
            "SELECT name, hex(value) FROM profd.state FINAL").splitlines())
    before = read()
    done = run(PROFCTL, "clickhouse", "backed-up", server.url(), "1700000000")
    after = read()
    tap.point(done.returncode == 0 and after.pop("backup") == struct.pack("<Q", 1700000000 * 10**9).hex().upper()
              and after == before, "a backup is noted", (done, after))
    done = run(PROFCTL, "clickhouse", "restored", server.url())
    new = read()
    tap.point(done.returncode == 0 and new["incarnation"] != before["incarnation"] and new["salt"] != before["salt"],
              "after a restore the data has another identity and salt", (done, before, new))
    refused(tap, "a backup without a time", run(PROFCTL, "clickhouse", "backed-up", server.url()), 64, "seconds since")
    refused(tap, "a time that is none", run(PROFCTL, "clickhouse", "backed-up", server.url(), "today"), 64, '"today"')


def arguments(tap):
    refused(tap, "another word than init", run(PROFCTL, "clickhouse", "drop", "clickhouse://h"), 64, '"drop"')
    refused(tap, "a URL that is wrong stops all", init("clickhouse://127.0.0.1:1", "clickhouse://h:0"), 64, '"0"')
    for seconds in ("0", "3601", "1m", "-1", ""):
        refused(tap, f"--timeout {seconds}", init("--timeout", seconds, "clickhouse://h"), 64, "1 to 3600")


def killed(tap, bed, rounds=12):
    """The server is killed while tables are made; the next init completes them."""
    a, lost = bed.servers[0], []
    random.seed(1)
    for n in range(rounds):
        p = subprocess.Popen([PROFCTL, "clickhouse", "init", a.url(f"k{n}")], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        time.sleep(random.random() * 0.06)
        a.stop()
        p.wait(LONG)
        a.start()
        done = init(a.url(f"k{n}"))
        if not fine(done, "have version 1") or tables(a, f"k{n}", "name != 'migration'") != schema():
            lost.append(done)
    tap.point(not lost, f"init completes what {rounds} killed servers left", lost)
    got = sums(a, "profd")
    tap.point(got == [100, 100, 100, 200], "and what was stored before is still there", got)


def main():
    with Tap() as tap:
        arguments(tap)
        pretenders(tap)
        if not PROGRAM:
            tap.skip("servers of ClickHouse", "clickhouse-server is not installed")
            return
        folder = tempfile.mkdtemp(prefix="profd-test-")
        authority = Authority(folder)
        with Bed(2, authority.issue("localhost", ("DNS:localhost",))) as bed:
            one_server(tap, bed.servers[0])
            state(tap, bed.servers[0])
            in_cluster(tap, bed)
            layouts(tap, bed)
            users(tap, bed, folder)
            tls(tap, bed, authority)
            killed(tap, bed)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
