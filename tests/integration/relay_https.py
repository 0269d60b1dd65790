#!/usr/bin/python3
"""profd-relay over HTTPS, through the real nginx: whatever a proxy answers instead of the centre, whatever is cut off
or comes twice, what the centre has counted in the end is what was uploaded, and what the host says of it is true."""
import base64
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

import https_bed
import segment
from harness import BUILD, LONG, Daemon, Tap, profile, programs, run, until
from https_bed import Nginx
from judge import difference, sums
from relaying import BUILDS, Sender, body, equation
from wire import Wire, encoded, field, sender_number

RELAY = os.path.join(BUILD, "profd-relay")


def batch_of(data):
    """field → all its values, of a message without groups."""
    reader, out = segment.Reader(data), {}
    while reader.at < len(data):
        key = reader.number()
        if key & 7 == 0:
            value = reader.number()
        elif key & 7 == 1:
            value = int.from_bytes(data[reader.at:reader.at + 8], "little")
            reader.at += 8
        else:
            size = reader.number()
            value = data[reader.at:reader.at + size]
            reader.at += size
        out.setdefault(key >> 3, []).append(value)
    return out


class Played(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A centre that is played on a Unix socket, for the answers that a real one never gives. It counts each key once.
    twist(answer, batch): changes an answer, or returns bytes that replace it."""

    daemon_threads = True

    def __init__(self, path):
        self.name, self.incarnation, self.number, self.backed_up = os.urandom(16), os.urandom(16), 0, 0
        self.tokens, self.has, self.batches, self.symbols = {"a-token-of-twenty-bytes-or-more"}, {}, [], {}
        self.twist, self.wanted, self.send, self.wait_ms = lambda answer, batch: answer, [], [], 100
        super().__init__(path, Handler)
        os.chmod(path, 0o666)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        request, _ = super().get_request()
        return request, ("local", 0)

    def take(self, data):
        s = segment.read(data)
        key = s["epoch"], s["sequence"]
        outcome = "known"
        if key not in self.has:
            self.number += 1
            self.has[key] = self.number, s
            outcome = "counted"
        return {"sender": key[0].hex(), "sequence": key[1], "outcome": outcome, "number": self.has[key][0],
                "detail": ""}

    def answer(self, data):
        """(status, type, bytes)"""
        batch = batch_of(data)
        self.batches.append(batch)
        if batch.get(1, [self.name])[0] != self.name:
            problem = {"title": "Misdirected", "status": 421, "detail": "the batch is for another centre"}
            return 421, "application/problem+json", json.dumps(problem).encode()
        out = {"centre": self.name.hex(), "incarnation": self.incarnation.hex(), "backed_up": self.backed_up,
               "wait_ms": self.wait_ms, "went_back": False, "number": batch.get(7, [0])[0],
               "uploads": [self.take(u) for u in batch.get(11, [])], "wanted": self.wanted, "send": self.send}
        out = self.twist(out, batch)
        return 200, "application/json", out if isinstance(out, bytes) else json.dumps(out).encode()

    def counted(self):
        """(calls, uploads)"""
        all_counts = [s for _, s in self.has.values() if s["kind"] == "counts"]
        return sum(sum(s["arcs"].values()) for s in all_counts), sum(s["uploads"] for s in all_counts)


class Handler(socketserver.StreamRequestHandler):
    """HTTP/1.1 as nginx sends it to the daemon."""

    def say(self, status, kind, data):
        self.wfile.write(f"HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n".encode()
                         + data)

    def handle(self):
        while line := self.rfile.readline():
            headers = {}
            while (header := self.rfile.readline().decode().strip()):
                key, _, value = header.partition(":")
                headers[key.lower()] = value.strip()
            self.receive(line.decode().split()[1], headers, self.rfile.read(int(headers["content-length"])))

    def receive(self, path, headers, data):
        kind = headers["content-type"]
        if headers.get("authorization", "").removeprefix("Bearer ") not in self.server.tokens:
            self.say(401, "application/problem+json", b'{"title":"x","status":401,"detail":"there is no such token"}')
        elif path == "/api/v1/uploads" and kind == "application/x-protobuf":
            self.say(*self.server.answer(data))
        elif kind == "application/vnd.profd.symbols":
            self.server.symbols[path.split("/")[4]] = data
            self.say(200, "application/json", b"{}")
        else:
            self.say(404, "text/plain", b"")


class Host:
    """A host's daemon and its relay."""

    def __init__(self, url, token, ca, **keys):
        self.d = Daemon("--relay", url, start=False)
        self.token = os.path.join(self.d.folder, "relay.token")
        self.config, self.log = os.path.join(self.d.folder, "relay.conf"), os.path.join(self.d.folder, "relay.log")
        self.keys = {"relay": url, "relay-token": self.token, "relay-ca": ca, "socket": self.d.socket,
                     "relay-interval": "1s", "log-level": "info", **keys}
        self.write_token(token)
        self.write_config()
        self.process, self.sender, self.sent, self.calls = None, sender_number(), 0, 0

    def write_token(self, token, mode=0o600):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.token)
        if token is not None:
            with open(os.open(self.token, os.O_WRONLY | os.O_CREAT, mode), "w") as f:
                f.write(token + "\n")

    def read_token(self):
        return open(self.token).read().strip()

    def write_config(self, **keys):
        self.keys.update(keys)
        with open(self.config, "w") as f:
            f.write("".join(f"{k} = {v}\n" for k, v in self.keys.items() if v is not None))

    def upload(self, n=1, calls=3):
        with Wire(self.d.socket) as w:
            for _ in range(n):
                self.sent += 1
                self.calls += calls
                w.send("UPLOAD", body(self.sender, self.sent, BUILDS[self.sent % 3], self.sent % 7, calls))
                while w.take()[0] != "ACK":
                    pass

    def upload_builds(self, n):
        """One upload of each of n builds: so many segments."""
        with Wire(self.d.socket) as w:
            for i in range(n):
                self.sent += 1
                self.calls += 1
                w.send("UPLOAD", body(sender_number(), 1, f"{i:040x}", 1, 1))
                while w.take()[0] != "ACK":
                    pass

    def upload_big(self):
        """An upload of many arcs."""
        dice = random.Random(1)
        arcs = [(dice.randrange(2**40), dice.randrange(2**40), 1) for i in range(2000)]
        self.sent += 1
        self.calls += len(arcs)
        with Wire(self.d.socket) as w:
            w.send("UPLOAD", field(1, os.urandom(12)) + field(2, 1)
                   + field(6, field(1, "ee" * 20) + field(2, "/bin/big")) + field(8, encoded([], arcs)))
            while w.take()[0] != "ACK":
                pass

    def once(self):
        """(exit status, what was said)"""
        done = run(RELAY, "--config", self.config, "--once")
        return done.returncode, done.stderr

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([RELAY, "--config", self.config], stderr=log, stdin=subprocess.DEVNULL)

    def stop(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(LONG)

    def hurry(self):
        """It tries again within a second."""
        self.process.send_signal(signal.SIGHUP)

    def logged(self):
        return open(self.log, errors="replace").read() if os.path.exists(self.log) else ""

    def ledger(self):
        return self.d.json("status", "--json")["store"]["relay"]

    def has_sent_all(self):
        relay = self.ledger()
        return relay if not relay["open"]["uploads"] and not relay["sealed"]["uploads"] else None

    def __enter__(self):
        self.d.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.d.__exit__()


class Tunnel:
    """An HTTP proxy that knows CONNECT, if it gets the password."""

    def __init__(self, password):
        self.wants, self.targets, self.heads = base64.b64encode(password.encode()), [], b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            s = self.listener.accept()[0]
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += s.recv(1)
        self.heads += head
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        if method != "CONNECT" or b"Proxy-Authorization: Basic " + self.wants not in head:
            s.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            s.close()
            return
        self.targets.append(target)
        other = socket.create_connection(("127.0.0.1", int(target.rpartition(":")[2])))
        s.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=self.pump, args=(other, s), daemon=True).start()
        self.pump(s, other)

    @staticmethod
    def pump(a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def played(**keys):
    """(centre, proxy, host)"""
    folder = tempfile.mkdtemp(prefix="profd-played-")
    os.chmod(folder, 0o755)
    centre = Played(os.path.join(folder, "http.sock"))
    try:
        with Nginx(centre.server_address) as proxy:
            with Host(proxy.at, next(iter(centre.tokens)), proxy.ca, **keys) as host:
                yield centre, proxy, host
    finally:
        centre.shutdown()
        centre.server_close()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def answering(proxy, directives):
    """nginx answers by itself instead of passing on what hosts send."""
    kept = proxy.text
    proxy.stop()
    proxy.text = kept.replace("proxy_pass http://profd-hosts;", directives)
    proxy.start()
    try:
        yield
    finally:
        proxy.stop()
        proxy.text = kept
        proxy.start()


def simple(tap):
    with played() as (centre, proxy, host):
        host.upload(30)
        status, said = host.once()
        tap.point(status == 0 and centre.counted() == (host.calls, 30), "what is uploaded arrives", (said, centre.has))
        relay = host.ledger()
        tap.point(relay["acknowledged"]["uploads"] == 30 and equation(relay), "and the host knows", relay)
        heads = [(1 in b, len(b.get(11, []))) for b in centre.batches]
        tap.point(heads[0] == (False, 0) and heads[1][0] and sum(n for _, n in heads) == len(centre.has),
                  "the first request is empty and for any centre, the next ones are for the one that answered", heads)
        first = centre.batches[0]
        tap.point(first[10][0] and len(first[5][0]) == 32 and abs(first[6][0] - time.time_ns()) < 6 * 10**10
                  and first[7][0] >= 30 and 3 not in first, "a batch says what it is of", first)
        host.write_config(**{"relay-host": "node-7"})
        host.once()
        tap.point(centre.batches[-1][3] == [b"node-7"], "a host of a group says its name", centre.batches[-1])
        host.write_config(**{"relay-ca": None})
        status, said = host.once()
        tap.point(status == 77 and "certificate" in said, "a certificate that the system does not know is refused",
                  (status, said))
        host.write_config(relay=proxy.at.replace("localhost", "127.0.0.2"), **{"relay-ca": proxy.ca})
        status, said = host.once()
        tap.point(status in (69, 77), "so is one for another name, or there is no centre", (status, said))


def answers(tap):
    """What a proxy answers instead of the centre acknowledges nothing, is said, and does not stay."""
    cases = (("return 502;", 69, "answers 502 (text/html): this is not the answer of a centre"),
             ("return 504;", 69, "answers 504 (text/html)"), ("return 421;", 69, "answers 421 (text/html)"),
             ("return 401;", 77, "answers 401 (text/html)"), ("return 404;", 69, "answers 404"),
             ("return 503;", 75, "answers 503"), ("return 413;", 65, "answers 413"),
             ("return 302 https://elsewhere.invalid/;", 69, "answers 302"),
             ('default_type text/html; return 200 "<html>It works!</html>";', 76, "which acknowledges nothing"),
             ('default_type application/json; return 200 "{}";', 76, "is not that of a centre"))
    with played() as (centre, proxy, host):
        host.upload(3)
        host.once()
        host.start()
        for directives, status, sentence in cases:
            with answering(proxy, directives):
                host.upload(2)
                known = host.ledger()["acknowledged"]["uploads"]
                host.hurry()
                relay = until(lambda: (r := host.ledger())["error"] and sentence in r["error"] and r)
                once = host.once()
                tap.point(relay and relay["acknowledged"]["uploads"] == known and equation(relay)
                          and once[0] == status and sentence in once[1],
                          f"{directives[-40:]} acknowledges nothing, and is said", (relay, once, host.logged()[-500:]))
            host.hurry()
            relay = until(host.has_sent_all)
            tap.point(relay and relay["error"] is None and centre.counted() == (host.calls, host.sent),
                      "then everything arrives once", (relay, centre.counted(), host.calls, host.sent))
        host.stop()
        said = [[line.partition("warning")[2] for line in part.splitlines() if "warning" in line]
                for part in host.logged().split("the centre answers again")]
        tap.point(len(cases) < len(said) <= 2 * len(cases) and all(len(part) == len(set(part)) for part in said),
                  "until the centre answers again, the log has each reason once", said)


def disturbed(tap):
    """nginx is killed; the centre's answer is cut off, and not what was asked for."""
    def cut(answer, _):
        return json.dumps(answer).encode()[:-7]

    def short(answer, _):
        return dict(answer, uploads=answer["uploads"][1:])

    def foreign(answer, _):
        return dict(answer, uploads=[dict(u, sequence=u["sequence"] + 1) for u in answer["uploads"]])

    with played() as (centre, proxy, host):
        host.start()
        host.upload(4)
        until(host.has_sent_all)
        for twist in (cut, short, foreign):
            centre.twist = lambda a, b: twist(a, b) if a["uploads"] else a
            host.upload(3)
            known = host.ledger()["acknowledged"]["uploads"]
            host.hurry()
            relay = until(lambda: (r := host.ledger())["error"] and r)
            tap.point(relay and relay["acknowledged"]["uploads"] == known
                      and "the answer is not that" in relay["error"],
                      f"an answer that is {twist.__name__} acknowledges nothing", relay)
            centre.twist = lambda a, b: a
            host.hurry()
            tap.point(until(host.has_sent_all) and centre.counted() == (host.calls, host.sent),
                      "it is sent again, and counted once", (centre.counted(), host.calls, host.sent))
        proxy.stop(signal.SIGKILL)
        host.upload(3)
        host.hurry()
        # A round that was under way says that its connection broke; the next one cannot connect.
        said = until(lambda: ("Failed to connect" in (s := host.d.ctl("status").stdout) or "refused" in s) and s)
        tap.point(said, "profctl status says that nginx is gone", host.d.ctl("status").stdout)
        proxy.start()
        host.hurry()
        relay = until(host.has_sent_all)
        tap.point(relay and relay["error"] is None and centre.counted() == (host.calls, host.sent),
                  "when it is back, everything arrives once", (relay, centre.counted()))
        host.stop(signal.SIGKILL)


def outcomes(tap):
    """A centre puts aside, refuses, and has another upload with an id: the others are counted."""
    with played() as (centre, _, host):
        host.upload(9)
        kinds = iter(("put-aside", "conflict", "refused"))

        def twist(answer, _):
            return dict(answer, uploads=[dict(u, outcome=next(kinds, u["outcome"]), detail="said so")
                                         for u in answer["uploads"]])
        centre.twist = twist
        first = host.once()
        epoch = {key[0] for key in centre.has}
        relay = host.has_sent_all()
        tap.point(first[0] == 0 and first[1].count("said so") >= 1 and relay and equation(relay)
                  and relay["not_counted"]["uploads"] == 9, "what is not counted is known at the host", (first, relay))
        host.upload(1)
        host.once()
        tap.point(len({key[0] for key in centre.has} - epoch) == 1, "after a conflict, the host has another epoch",
                  (epoch, centre.has))


def tokens(tap):
    """Exchanged, removed and returned while the relay runs."""
    with played() as (centre, _, host):
        old, new = host.read_token(), "another-token-of-twenty-bytes"
        host.start()
        host.upload(3)
        until(host.has_sent_all)
        centre.tokens = {new}
        host.upload(3)
        host.hurry()
        relay = until(lambda: (r := host.ledger())["error"] and r)
        tap.point("401: there is no such token" in relay["error"] and not host.has_sent_all(),
                  "a token that was removed", relay)
        host.write_token(new)
        host.hurry()
        tap.point(until(host.has_sent_all), "the next one is taken without a restart", host.logged())
        for what, change, sentence in (("no file", lambda: host.write_token(None), "cannot read the token file"),
                                       ("others may read it", lambda: host.write_token(new, 0o644), "mode 0644"),
                                       ("no token", lambda: host.write_token("none"), "no token in")):
            change()
            host.upload(1)
            status, said = host.once()
            tap.point(status == 78 and sentence in said, f"a token file: {what}", (status, said))
        host.write_token(new)
        host.hurry()
        tap.point(until(host.has_sent_all) and centre.counted() == (host.calls, host.sent), "everything arrives once",
                  centre.counted())
        texts = host.logged() + host.d.logged() + host.d.ctl("status", "--json").stdout
        tap.point(old not in texts and new not in texts, "no token is in a log", texts)


def too_large(tap):
    """A proxy that takes less than a batch: halves are sent; what is too large alone is reported, and waits."""
    with played() as (centre, proxy, host):
        host.once()
        host.upload_builds(40)
        host.upload_big()
        kept, proxy.text = proxy.text, proxy.text.replace("client_max_body_size 20m;", "client_max_body_size 4k;")
        proxy.stop()
        proxy.start()
        before = len(centre.batches)
        status, said = host.once()
        sent = [len(b.get(11, [])) for b in centre.batches[before:]]
        relay = host.ledger()
        tap.point(status == 65 and "is too large to be sent" in said and relay["outgoing_sealed"] == 1
                  and relay["sealed"]["uploads"] == 1 and relay["error"] in said,
                  "what is too large alone waits, and is said", (status, said, relay))
        tap.point(sum(sent) == len(centre.has) == 40 and max(sent) < 40, "the others arrive in smaller batches", sent)
        proxy.stop()
        proxy.text = kept
        proxy.start()
        status, said = host.once()
        tap.point(status == 0 and host.has_sent_all() and centre.counted() == (host.calls, host.sent),
                  "and it arrives when there is a way", (said, centre.counted()))


def many(tap):
    """More than a batch: no more than 512 uploads in one, over one connection."""
    with played() as (centre, proxy, host):
        host.upload_builds(1100)
        status, said = host.once()
        sizes = [len(b.get(11, [])) for b in centre.batches]
        tap.point(status == 0 and centre.counted() == (host.calls, 1100) and sizes[1:3] == [512, 512]
                  and max(sizes) == 512, "1,100 segments go in batches of 512", (said, sizes, centre.counted()))
        proxy.stop()
        accesses = [line for line in proxy.accesses().splitlines() if "/api/v1/uploads" in line]
        tap.point(len(accesses) == len(sizes), "each once", accesses[:5])


def other_centre(tap):
    """The name leads to another centre: nothing is sent to it until the operator says so."""
    with played() as (centre, _, host):
        host.upload(6)
        host.once()
        first, old = centre.name, dict(centre.has)
        host.upload(4)
        centre.name, centre.incarnation, centre.has = os.urandom(16), os.urandom(16), {}
        status, said = host.once()
        status_again, _ = host.once()
        text = host.d.ctl("status").stdout
        sentence = "another centre answers at the URL of relay; profctl relay move moves the host to it"
        tap.point(status == status_again == 65 and sentence in said and sentence in text and not centre.has,
                  "another centre gets nothing, and that is said", (status, said, text))
        tap.point(all(b[1] == [first] and 11 not in b for b in centre.batches[-2:]), "not even uploads that it refuses",
                  centre.batches[-2:])
        centre.twist = lambda a, b: dict(a, centre=os.urandom(16).hex()) # one that does not know 421
        keep, centre.name = centre.name, first
        status, said = host.once()
        centre.twist, centre.name = lambda a, b: a, keep
        tap.point(status == 65 and sentence in said, "nor does one that answers for itself", said)
        moved = host.d.ctl("relay", "move")
        status, said = host.once()
        relay = host.has_sent_all()
        tap.point(moved.returncode == 0 and "0 uploads" in moved.stdout and status == 0
                  and centre.counted()[1] == 4 and not set(centre.has) & set(old),
                  "relay move: the other centre gets what the first never saw", (moved, said, centre.counted()))
        tap.point(relay and relay["acknowledged"]["uploads"] == 10 and equation(relay)
                  and host.d.ctl("verify").returncode == 0, "and the ledger agrees", relay)

        def lost(answer, batch):
            return b"" if 11 in batch else answer
        host.upload(2)
        centre.twist = lost
        host.once()
        had = dict(centre.has)
        centre.name, centre.incarnation, centre.has, centre.twist = os.urandom(16), os.urandom(16), {}, lambda a, b: a
        host.upload(5)
        moved = host.d.json("relay", "move", "--json")
        host.once()
        relay, marks = host.has_sent_all(), [s["kind"] for _, s in centre.has.values() if s["kind"] != "counts"]
        tap.point(moved == {"withdrawn": 2} and relay["withdrawn"]["uploads"] == 2 and equation(relay)
                  and centre.counted()[1] == 5 and marks and set(marks) == {"withdrawn"} and had,
                  "what the centre before may have is withdrawn, and its hours are marked", (moved, relay, marks))


def restored_centre(tap):
    """The centre has another incarnation: what it may lack is sent again."""
    with played() as (centre, _, host):
        for _ in range(3):
            host.upload(4)
            host.once()
        centre.incarnation, centre.number = os.urandom(16), 1000
        lost = sorted(centre.has)[1:]
        for key in lost:
            del centre.has[key]
        status, said = host.once()
        relay = host.has_sent_all()
        tap.point(status == 0 and relay and equation(relay) and centre.counted() == (host.calls, host.sent),
                  "a restored centre gets again what it has lost", (said, lost, centre.counted(), host.calls))
        tap.point(host.d.logged().count("was restored from a backup") == 1, "and the host says so", host.d.logged())
        host.start()
        host.upload(4)
        until(host.has_sent_all)
        centre.incarnation, centre.has = os.urandom(16), {}
        host.upload(2)
        host.hurry()
        tap.point(until(lambda: centre.counted() == (host.calls, host.sent)), "so does one that is restored meanwhile",
                  (centre.counted(), host.calls, host.sent))


def tunnel(tap):
    with played() as (centre, proxy, host):
        way = Tunnel("me:secret")
        host.upload(3)
        host.write_config(**{"relay-proxy": f"http://127.0.0.1:{way.port}"})
        status, said = host.once()
        tap.point(status == 69 and "the proxy refuses the connection: status 407" in said,
                  "a proxy that wants a password", (status, said))
        host.write_config(**{"relay-proxy": f"http://me:secret@127.0.0.1:{way.port}"})
        status, said = host.once()
        tap.point(status == 0 and centre.counted() == (host.calls, 3) and len(way.targets) == 1
                  and way.targets[0] == f"localhost:{proxy.port}", "with it, all goes through one tunnel",
                  (status, said, way.targets))
        tap.point(host.read_token().encode() not in way.heads and b"Authorization: Bearer" not in way.heads,
                  "which does not see the token", way.heads)


def symbols(tap):
    """The centre asks for what a host has parsed, by its hash, and then for the symbols."""
    with played() as (centre, _, host):
        folder = programs(os.path.join(host.d.folder, "programs"))
        exe = os.path.join(folder, "calc")
        host.d.ctl("upload", "-e", exe, profile(host.d.folder, exe, ["7"], 0))
        build = next(r["build_id"] for r in host.d.json("builds", "--json")["rows"])
        centre.wanted = [build, "ab" * 20]
        status, said = host.once()
        offers = [batch_of(o) for b in centre.batches for o in b.get(12, [])]
        tap.point(status == 0 and [o[1][0].decode() for o in offers] == centre.wanted and len(offers[0][2][0]) == 32
                  and offers[0][3][0] > 100 and 2 not in offers[1], "what is wanted is offered once, by its hash",
                  (said, offers))
        centre.wanted, centre.send = [], [build, "cd" * 20]
        status, said = host.once()
        sent = centre.symbols.get(build, b"")
        tap.point(status == 0 and list(centre.symbols) == [build] and hashlib.sha256(sent).digest() == offers[0][2][0]
                  and len(sent) == offers[0][3][0], "what is asked for is put", (said, list(centre.symbols), len(sent)))


class Bed:
    """A real centre behind nginx, and hosts."""

    def __init__(self):
        self.centre, self.hosts = Daemon(*https_bed.proxied()), []
        self.proxy = Nginx(self.centre).start()

    def token(self, name, centre=None):
        return (centre or self.centre).json("token", "add", name, "--write", "--json")["token"]

    def host(self, name):
        host = Host(self.proxy.at, self.token(name), self.proxy.ca)
        host.d.start()
        self.hosts.append(host)
        return host

    def settle(self):
        """Until the centre has all. Returns what differs then between the centre's reports and those of the hosts."""
        for host in self.hosts:
            until(lambda: host.once()[0] == 0 and host.has_sent_all())
        return difference(sums(*(h.d for h in self.hosts)), sums(self.centre))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            host.__exit__()
        self.proxy.__exit__()
        self.centre.__exit__()


def fleet(tap):
    """Two hosts, a centre and nginx, each killed while programs upload."""
    with Bed() as bed:
        dice = random.Random(2)
        for name in ("web-1", "web-2"):
            bed.host(name).upload(5)
        wrong = bed.settle()
        tap.point(not wrong, "a centre has what its hosts have", wrong)
        senders = [Sender(h.d, random.Random(i), pause=0.01) for i, h in enumerate(bed.hosts)]
        for h, s in zip(bed.hosts, senders):
            h.start()
            s.start()
        for kill in range(12):
            until(lambda: sum(s.uploads for s in senders) >= 5 * kill)
            time.sleep(dice.random() * 0.3)
            victim = (bed.centre, bed.hosts[0].d, bed.proxy, bed.hosts[1])[kill % 4]
            victim.stop(signal.SIGKILL)
            time.sleep(dice.random() * 0.2)
            victim.start()
            for h in bed.hosts:
                h.hurry()
        for s in senders:
            s.ended = True
        for h, s in zip(bed.hosts, senders):
            s.join(LONG)
            h.stop()
        wrong, counted = bed.settle(), sum(s.uploads for s in senders)
        relays = [h.ledger() for h in bed.hosts]
        tap.point(not wrong and counted > 50, f"12 kills, {counted} uploads: nothing lost, nothing doubled", wrong)
        tap.point(all(equation(r) and r["acknowledged"]["uploads"] == r["accepted"]["uploads"] for r in relays)
                  and bed.centre.ctl("verify").returncode == 0, "and the ledgers agree", relays)


def restores(tap):
    with Bed() as bed:
        host, copy = bed.host("web-1"), os.path.join(bed.centre.folder, "copy")
        host.upload(4)
        bed.settle()
        bed.centre.ctl("backup", copy)
        host.upload(5)
        bed.settle()
        bed.centre.stop()
        done = run(*bed.centre.command(), "--restore", copy)
        bed.centre.start()
        before = difference(sums(host.d), sums(bed.centre))
        wrong = bed.settle()
        tap.point(done.returncode == 0 and before and not wrong, "a restored centre gets again what it has lost",
                  (done.stderr, before, wrong))
        host.d.ctl("backup", copy + "-of-host")
        kept = sums(bed.centre)
        host.upload(3)
        bed.settle()
        host.d.stop()
        done = run(*host.d.command(), "--restore", copy + "-of-host")
        host.d.start()
        whole = sums(bed.centre)
        status, said = host.once()
        tap.point(done.returncode == 0 and status == 0 and kept != whole and not difference(whole, sums(bed.centre)),
                  "a restored host sends nothing twice", (said, difference(whole, sums(bed.centre))))
        host.sender = sender_number()
        host.sent = 0
        host.upload(2, calls=1)
        host.once()
        added = {k: v[0] - whole[k][0] for k, v in sums(bed.centre).items()}
        tap.point(sum(added.values()) == 2 and host.has_sent_all(), "and goes on", (added, host.ledger()))


def moves(tap):
    """Another centre behind the name."""
    with Bed() as bed, Daemon(*https_bed.proxied()) as other:
        host = bed.host("web-1")
        host.upload(4)
        bed.settle()
        bed.proxy.change(bed.centre.http, other.http)
        bed.proxy.stop()
        bed.proxy.start()
        host.write_token(bed.token("web-1", other))
        host.upload(3)
        status, said = host.once()
        tap.point(status == 65 and "profctl relay move moves the host to it" in said and not sums(other),
                  "another centre gets nothing", (status, said))
        host.d.ctl("relay", "move")
        status, said = host.once()
        relay, got = host.has_sent_all(), sums(other)
        tap.point(status == 0 and relay and equation(relay) and relay["withdrawn"]["uploads"] == 0
                  and not difference(sums(host.d), sums(bed.centre, other)), "until relay move, then what is new",
                  (said, relay, got))


def main():
    with Tap() as tap:
        why = https_bed.why_not()
        if why:
            tap.skip("profd-relay over HTTPS", why)
            return
        for part in (simple, answers, disturbed, outcomes, tokens, too_large, many, other_centre, restored_centre,
                     tunnel, symbols, fleet, restores, moves):
            if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
                part(tap)


if __name__ == "__main__":
    main()
