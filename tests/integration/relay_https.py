#!/usr/bin/python3
"""profd-relay over HTTPS, through the real nginx: whatever a proxy answers instead of the centre, whatever is cut off
or comes twice, what the centre has counted in the end is what was uploaded, and what the host says of it is true."""
import contextlib
import json
import os
import shutil
import signal
import socketserver
import subprocess
import threading
import time

import https_bed
import segment
from harness import BUILD, Daemon, Tap, run, until
from https_bed import Nginx
from relaying import BUILDS, body, equation
from wire import Wire, sender_number

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
            self.process.wait(60)

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


@contextlib.contextmanager
def played(changes=()):
    """(centre, proxy, host)"""
    folder = os.path.join("/tmp", f"profd-played-{os.getpid()}")
    os.mkdir(folder)
    try:
        centre = Played(os.path.join(folder, "http.sock"))
        with Nginx(centre.server_address, changes) as proxy:
            token = next(iter(centre.tokens))
            with Host(proxy.at, token, proxy.ca) as host:
                yield centre, proxy, host
        centre.shutdown()
        centre.server_close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def simple(tap):
    with played() as (centre, _, host):
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
                  and first[7][0] >= 30, "a batch says what it is of", first)


def main():
    with Tap() as tap:
        why = https_bed.why_not()
        if why:
            tap.skip("profd-relay over HTTPS", why)
            return
        simple(tap)


if __name__ == "__main__":
    main()
