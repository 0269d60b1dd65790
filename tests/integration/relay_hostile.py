#!/usr/bin/python3
"""profd-relay against centres and proxies that do not keep the protocol: it says what was wrong, profd's ledger stays
true, and afterwards a good centre gets everything."""
import os
import socket
import ssl
import struct
import threading

from harness import Daemon, Tap, run
from relaying import body, equation
from tls_bed import Bed, openssl, relay_once
from wire import Wire, field, fields, header, sender_number

BUILD = "e7" * 20
INCARNATION = b"0123456789abcdef"
WELCOME = field(1, 1) + field(2, 1 << 20) + field(3, 32) + field(4, "centre")

BOMB = struct.pack("<IBI", 0xFD2FB528, 0xA4, 100000) + struct.pack("<I", 100000 << 3 | 3)[:3] + b"x1234"  # zstd, 100 kB


class Centre:
    """Serves each connection with one function: serve(connection)."""

    def __init__(self, bed):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(bed.keys["gate_certificate"], bed.keys["gate_key"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.serve, self.failed = self.listener.getsockname()[1], None, None
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                with self.context.wrap_socket(self.listener.accept()[0], server_side=True) as s:
                    self.serve(Peer(s))
            except (OSError, EOFError):
                pass


class Peer:
    def __init__(self, s):
        self.socket = s

    def exactly(self, n):
        out = b""
        while len(out) < n:
            data = self.socket.recv(n - len(out))
            if not data:
                raise EOFError
            out += data
        return out

    def take(self):
        """(tag, fields) of the next frame"""
        head = self.exactly(12)
        payload = self.exactly(int.from_bytes(head[:4], "little"))
        return int.from_bytes(head[8:], "little"), fields(payload)

    def put(self, kind, payload, tag=1, flags=0):
        self.socket.sendall(header(kind, tag, len(payload), flags) + payload)

    def welcome(self):
        self.take()
        self.put("WELCOME", WELCOME)

    def admit(self, **more):
        self.welcome()
        self.take()
        self.put("ADMIT", field(1, INCARNATION) + field(2, more.get("backup", 0)) + field(3, more.get("wait", 1000)))

    def rest(self):
        """Until the other side closes."""
        while self.socket.recv(65536):
            pass


def acknowledgement(epoch, sequence, number=1, outcome=0, incarnation=INCARNATION):
    return field(1, epoch) + field(2, sequence) + field(3, incarnation) + field(4, number) + field(5, outcome)


def centres():
    """(what, serve, sentence)"""
    def foreign(p):
        p.admit()
        tag, _ = p.take()
        p.put("ACKNOWLEDGE", acknowledgement(b"another host", 7), tag)
        p.rest()

    def swapped(p):
        p.admit()
        tag, m = p.take()
        p.put("ACKNOWLEDGE", acknowledgement(m[2], m[3] + 1), tag)
        p.rest()

    def twice(p):
        p.admit()
        tag, m = p.take()
        p.take()
        for _ in range(2):
            p.put("ACKNOWLEDGE", acknowledgement(m[2], m[3]), tag)
        p.rest()

    def tagged(p):
        p.admit()
        _, m = p.take()
        p.put("ACKNOWLEDGE", acknowledgement(m[2], m[3]), 4711)
        p.rest()

    def refusing(p):
        p.admit()
        p.take()
        p.put("NACK", field(1, 9) + field(2, 1) + field(3, 2**32 - 1) + field(4, "later"), 4711)
        p.rest()

    def large(p):
        p.take()
        p.socket.sendall(header("WELCOME", 1, 64 << 20))
        p.rest()

    def packed(p):
        p.take()
        p.put("WELCOME", BOMB, flags=2)
        p.rest()

    def escape(p):
        p.welcome()
        p.take()
        p.put("NACK", field(1, 8) + field(4, "away\x1b[2J\n2026 error: forged"))
        p.rest()

    def other(p):
        p.admit()
        p.take()
        p.put("UPLOAD", b"")
        p.rest()

    def descriptor(p):
        p.welcome()
        p.take()
        p.put("ADMIT", field(1, INCARNATION), flags=1 << 8)
        p.rest()

    return [("acknowledges a segment of another host", foreign, "not of a segment that was delivered"),
            ("acknowledges the next segment", swapped, "not of a segment that was delivered"),
            ("acknowledges one segment twice", twice, "not of a segment that was delivered"),
            ("acknowledges under an unknown tag", tagged, "not of a segment that was delivered"),
            ("refuses under an unknown tag", refusing, "not of a segment that was delivered"),
            ("answers with 64 MiB", large, "at most"),
            ("answers compressed", packed, "the limit is 65536"),
            ("sends control characters", escape, "away?[2J?2026 error: forged"),
            ("answers DELIVER with UPLOAD", other, "UPLOAD"),
            ("sends descriptors", descriptor, "descriptors")]


def hostile_centres(tap, bed):
    pair, centre = bed.authority.host("victim.example"), Centre(bed)
    for what, serve, sentence in centres():
        with Daemon("--relay", "tls://c:1") as d:
            with Wire(d.socket) as w:
                for i in range(2):
                    w.send("UPLOAD", body(sender_number(), 1, f"{i + 0xe7:02x}" * 20, 1, 5))
                    while w.take()[0] != "ACK":
                        pass
            centre.serve = serve
            r = bed.relay(d, "hostile", pair, relay=f"tls://127.0.0.1:{centre.port}")
            done = relay_once(r)
            relay, text = d.json("status", "--json")["store"]["relay"], d.ctl("status").stdout
            tap.point(done.returncode not in (0, -9) and sentence in done.stderr and equation(relay)
                      and relay["acknowledged"]["uploads"] <= 1 and "\x1b" not in done.stderr + text
                      and "\n2026" not in done.stderr + text,
                      f"a centre that {what}: {done.stderr.strip()[-110:]}", (done, relay, text))


def answer_connect(listener, answer):
    with listener.accept()[0] as s:
        while not s.recv(65536).endswith(b"\r\n\r\n"):
            pass
        try:
            s.sendall(answer)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except OSError:
            pass


def hostile_proxies(tap, bed):
    pair = bed.authority.host("proxied.example")
    with Daemon("--relay", "tls://c:1") as d, socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for what, answer, sentence in (
                ("never ends its head", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20000, "more than 8192 bytes"),
                ("redirects", b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n", "HTTP/1.1 302 Found"),
                ("forges lines of the log", b"HTTP/1.1 407 no\x1b[2J\n2026 error: forged\r\n\r\n", "407 no?[2J?2026"),
                ("speaks SSH", b"SSH-2.0-x\r\n\r\n", "SSH-2.0-x"),
                ("says yes and closes", b"HTTP/1.1 200 OK\r\n\r\n", "the connection was closed"),
                ("says nothing", b"", "the connection was closed"),
                ("says a NUL", b"\0\r\n\r\n", "the proxy refuses")):
            threading.Thread(target=answer_connect, args=(listener, answer), daemon=True).start()
            r = bed.relay(d, "proxied", pair, relay="tls://127.0.0.1:1", relay_proxy=f"http://127.0.0.1:{port}")
            done, text = relay_once(r), d.ctl("status").stdout
            tap.point(done.returncode not in (0, -9) and sentence in done.stderr and "\x1b" not in done.stderr + text
                      and "\n2026" not in done.stderr + text, f"a proxy that {what}: {done.stderr.strip()[-90:]}",
                      (done, text))


def told_of_conflict(tap, bed):
    """ADMIT states the epoch of a conflict: the relay passes it on, and profd draws another."""
    pair, centre, epochs = bed.authority.host("twin.example"), Centre(bed), []

    def serve(p):
        p.welcome()
        p.take()
        p.put("ADMIT", field(1, INCARNATION) + field(3, 1000) + (field(4, epochs[-1]) if epochs else b""))
        tag, m = p.take()
        epochs.append(m[2])
        p.put("ACKNOWLEDGE", acknowledgement(m[2], m[3], len(epochs)), tag)
        p.rest()

    centre.serve = serve
    with Daemon("--relay", "tls://c:1") as d:
        r = bed.relay(d, "twin", pair, relay=f"tls://127.0.0.1:{centre.port}")
        sender, done = sender_number(), []
        for i in range(3):
            with Wire(d.socket) as w:
                w.send("UPLOAD", body(sender, i + 1, BUILD, 1, 5))
                while w.take()[0] != "ACK":
                    pass
            done.append(relay_once(r))
        tap.point(not any(x.returncode for x in done) and epochs[0] == epochs[1] != epochs[2]
                  and d.logged().count("two machines have the identity") == 1,
                  "a centre that tells of a conflict: profd goes on with a new epoch", (done, epochs, d.logged()))


class Slowly:
    """A socket that sends each byte as a TLS record of its own."""

    def __init__(self, s):
        self.recv, self.one = s.recv, s

    def sendall(self, data):
        for byte in data:
            self.one.sendall(bytes([byte]))


def in_pieces(tap, bed):
    centre = Centre(bed)

    def serve(p):
        p.socket = Slowly(p.socket)
        p.admit()
        tag, m = p.take()
        p.put("ACKNOWLEDGE", acknowledgement(m[2], m[3]), tag)
        p.rest()

    centre.serve = serve
    with Daemon("--relay", "tls://c:1") as d:
        r = bed.relay(d, "patient", bed.authority.host("patient.example"), relay=f"tls://127.0.0.1:{centre.port}")
        with Wire(d.socket) as w:
            w.send("UPLOAD", body(sender_number(), 1, BUILD, 1, 5))
            while w.take()[0] != "ACK":
                pass
        done, relay = relay_once(r), d.json("status", "--json")["store"]["relay"]
        tap.point(done.returncode == 0 and relay["acknowledged"]["uploads"] == 1,
                  "a centre that answers byte by byte: the segment is acknowledged", (done, relay))
        old, request = (os.path.join(bed.folder, n) for n in ("old.crt", "old.csr"))
        openssl("req", "-new", "-key", bed.authority.key, "-subj", "/CN=ca", "-out", request)
        openssl("x509", "-req", "-in", request, "-signkey", bed.authority.key, "-days", "-1", "-out", old)
        r = bed.relay(d, "late", bed.authority.host("late.example"), relay=f"tls://127.0.0.1:{centre.port}",
                      relay_ca=old)
        done = relay_once(r)
        tap.point(done.returncode not in (0, -9) and "expired" in done.stderr,
                  f"the issuer of the centre has expired: {done.stderr.strip()[-90:]}", done)


def main():
    with Tap() as tap, Bed("/nonexistent") as bed:
        in_pieces(tap, bed)
        hostile_centres(tap, bed)
        hostile_proxies(tap, bed)
        told_of_conflict(tap, bed)


if __name__ == "__main__":
    main()
