"""What is between profd and ClickHouse damages, delays, extends and cuts replies: each ends with one sentence, and when
it behaves again, nothing is lost or counted twice. A real server answers; only its replies are changed. Debian's
18.16."""
import contextlib
import json
import random
import socket
import struct
import threading

from centre import Gate
from clickhouse_bed import PROGRAM, Bed
from harness import LONG, PROFCTL, Daemon, Tap, run
from judge import calls_of, difference, sums
from relaying import BUILDS, body
from wire import Wire, sender_number

BUSY = 15  # proto/status.h
MEMORY = 1400 << 10  # KiB that profd may take, of which all replies are at most 768 MiB; its unit gives it 2 GiB
LATE = (b"Code: 241, e.displayText() = DB::Exception: Memory limit (for query) exceeded, "
        b"e.what() = DB::Exception\n")


class Reply:
    """What the server said, taken apart."""

    def __init__(self, data):
        self.data = data
        self.head, _, rest = data.partition(b"\r\n\r\n")
        self.body = b""
        while rest:  # it is chunked
            size, _, rest = rest.partition(b"\r\n")
            self.body += rest[:int(size, 16)]
            rest = rest[int(size, 16) + 2:]

    def with_length(self, body):
        lines = [x for x in self.head.split(b"\r\n") if not x.lower().startswith(b"transfer-encoding")]
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", b""]) + body


class Between:
    """Passes statements to a server, and the replies back: those from the one number `after` on through `damage`, which
    gets the socket and the reply. insert: only those of inserts."""

    def __init__(self, port):
        self.port, self.damage, self.after, self.insert = port, None, 0, False
        self.lock, self.listener = threading.Lock(), socket.create_server(("127.0.0.1", 0))
        self.http = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            s, _ = self.listener.accept()
            threading.Thread(target=self.connection, args=(s,), daemon=True).start()

    def connection(self, s):
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError, ValueError), s:
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    if not (piece := s.recv(65536)):
                        return
                    data += piece
                head, _, data = data.partition(b"\r\n\r\n")
                size = next(int(x[15:]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:"))
                while len(data) < size:
                    data += s.recv(65536)
                reply = self.ask(head, data[:size])
                data = data[size:]
                if self.answer(s, reply, b"query=INSERT" in head.split(b"\r\n")[0]):
                    return

    def ask(self, head, data):
        with socket.create_connection(("127.0.0.1", self.port), LONG) as s:
            s.sendall(head + b"\r\nConnection: close\r\n\r\n" + data)
            reply = b""
            while piece := s.recv(65536):
                reply += piece
        return Reply(reply)

    def answer(self, s, reply, inserts):
        """True: the connection is to be closed."""
        with self.lock:
            damage = self.damage
            if damage and (inserts or not self.insert):
                self.after -= 1
            damage = damage if self.after < 0 and (inserts or not self.insert) else None
        if damage:
            return damage(s, reply)
        s.sendall(reply.data)
        return True  # as the server, of which each connection has one statement


def bytewise(s, reply):
    for i in range(len(reply.data)):
        s.sendall(reply.data[i:i + 1])
    return True


def garbage(s, reply):
    s.sendall(reply.with_length(random.Random(5).randbytes(len(reply.body) + 100)))
    return True


def cut(s, reply):
    s.sendall(reply.data[:-3])
    return True


def half(s, reply):
    s.sendall(reply.data[:len(reply.data) // 2])
    return True


def unframed(s, reply):
    """Until the connection ends, of which nobody knows whether it was the end."""
    s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n" + reply.body[:-1])
    return True


def longer(s, reply):
    s.sendall(reply.with_length(reply.body).replace(b"Connection: close", b"X: y", 1) + b"HTTP/1.1 200 OK\r\n" * 64)
    return False


def late(s, reply):
    s.sendall(reply.with_length(reply.body + LATE))
    return True


def endless(s, reply):
    head = reply.head.split(b"\r\n")
    s.sendall(b"\r\n".join(x for x in head if not x.lower().startswith(b"content-length")) + b"\r\n\r\n")
    piece = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
    while True:
        s.sendall(piece)


def closed(s, _):
    s.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")
    return True


def other(s, reply):
    """Three numbers, which another asked for."""
    s.sendall(reply.with_length(struct.pack("<3Q", 0, 1, 2)))
    return True


def acknowledgement(s, _):
    """That of another's insert."""
    s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Length: 0\r\n\r\n")
    return True


class Centre:
    def __init__(self, tap, server):
        self.tap, self.between, self.sequence, self.sender = tap, Between(server.http), 0, sender_number()
        self.stack = contextlib.ExitStack()
        url = server.url().replace(f":{server.http}/", f":{self.between.http}/")
        self.host = self.stack.enter_context(Daemon("--relay", "tls://c:1"))
        self.centre = self.stack.enter_context(Daemon("--gate", "--store", url))
        self.gate = Gate(self.host, self.centre, "a.example")

    def upload(self):
        with Wire(self.host.socket) as w:
            for i in range(6):
                self.sequence += 1
                w.send("UPLOAD", body(self.sender, self.sequence, BUILDS[i % len(BUILDS)], i, i + 1))
                while w.take()[0] != "ACK":
                    pass

    def deliver(self):
        """What it says to the segments of the host, which sends them all: [(kind, message)]."""
        found = self.gate.fetch_all()
        with Wire(self.centre.socket) as w:
            self.gate.arrive(w)
            for s in found:
                self.gate.deliver(w, *s)
            return [(kind, m) for kind, _, _, m in (w.take() for _ in found)]

    def behaves(self, name):
        self.between.damage = None
        self.gate.settle()
        want, got = calls_of(self.host), calls_of(self.centre)
        done = self.centre.ctl("verify")
        self.tap.point(want == got and done.returncode == 0, f"{name}: then all is there, once",
                       (difference(want, got), done.stdout, done.stderr))

    def attack(self, damage, refused, *places, insert=False):
        """places: the first statement of a delivery that is damaged. refused: words; () if it harms nothing."""
        name = damage.__name__ + (" (inserts)" if insert else "")
        for place in places:
            self.upload()
            with self.between.lock:
                self.between.damage, self.between.after, self.between.insert = damage, place, insert
            said = self.deliver()
            told = [m[4].decode() for kind, m in said if kind == "NACK" and m[1] == BUSY and m.get(2)]
            fine = all("\n" not in t and any(w in t for w in refused) for t in told)
            self.tap.point(said and fine and len(told) == (len(said) if refused else 0) and (
                refused or {kind for kind, _ in said} == {"ACKNOWLEDGE"}),
                f"{name}, from statement {place} on: {', '.join(sorted(set(told)))}", said)
            if not insert:
                with self.between.lock:
                    self.between.after = 0
                with Wire(self.centre.socket) as w:
                    status, text = w.query(f"/api/v1/builds/{BUILDS[0]}/report")[:2]
                told = json.loads(text).get("detail", "")
                self.tap.point(status == (200 if refused == () else 503) and "\n" not in told
                               and (not refused or any(w in told for w in refused)), f"{name}: report: {told}",
                               (status, text))
            self.behaves(name)

    def crowd(self):
        """Many requests are answered without end at the same time: each ends, and all together take bounded memory."""
        said = []

        def ask(build):
            with Wire(self.centre.socket) as w:
                said.append(w.query(f"/api/v1/builds/{build}/report")[:2])
        self.upload()
        with self.between.lock:
            self.between.damage, self.between.after, self.between.insert = endless, 0, False
        threads = [threading.Thread(target=ask, args=(b,)) for b in BUILDS + BUILDS]
        for t in threads:
            t.start()
        told = {m.get(4) for kind, m in self.deliver() if kind == "NACK" and m[1] == BUSY}
        for t in threads:
            t.join()
        ends = (b"more than", b"does not answer", b"too slowly")  # the latter two on a slow machine
        self.tap.point(told and len(said) == len(threads)
                       and all(s == 503 and any(e in t for e in ends) for s, t in said),
                       f"{len(said)} endless replies at once: each request is refused", (told, said))
        self.behaves("endless replies at once")

    def memory(self):
        with open(f"/proc/{self.centre.process.pid}/status") as f:
            return next(int(x.split()[1]) for x in f if x.startswith("VmHWM"))


def main():
    with Tap() as tap:
        if not PROGRAM:
            tap.skip("servers of ClickHouse", "clickhouse-server is not installed")
            return
        with Bed(1) as bed:
            if run(PROFCTL, "clickhouse", "init", bed.servers[0].url()).returncode:
                raise RuntimeError("no tables")
            c = Centre(tap, bed.servers[0])
            with c.stack:
                c.upload()
                c.behaves("before")
                c.attack(bytewise, (), 0)
                c.attack(longer, (), 0)
                c.attack(garbage, ("cut off", "acknowledgement", "is no number"), 0)
                c.attack(cut, ("cannot ask",), 0, 7)
                c.attack(half, ("cannot ask", "where its reply ends"), 0)
                c.attack(unframed, ("where its reply ends",), 0)
                c.attack(late, ("Memory limit",), 0, 6)
                c.attack(other, ("cut off", "is no number"), 0)
                c.attack(acknowledgement, ("instead of rows",), 0)
                c.attack(endless, ("more than",), 0)
                for damage, words in ((closed, ("cannot ask", "where its reply ends")), (late, ("Memory limit",)),
                                      (garbage, ("acknowledgement",)), (endless, ("more than 65536",))):
                    c.attack(damage, words, *((0, 3) if damage is closed else (1,)), insert=True)
                c.crowd()
                tap.point(c.memory() < MEMORY, f"memory stays bounded: {c.memory()} KiB at most")


if __name__ == "__main__":
    main()
