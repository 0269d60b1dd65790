#!/usr/bin/python3
"""profd-gate against clients that do what no relay does. Each attack is bounded; during it or right after it another
host's segments reach the centre."""
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading

from harness import LONG, NOBODY, Daemon, Other, Tap, run, until
from relaying import body
from tls_bed import Bed, TlsWire, openssl, relay_once
from wire import Wire, field, header, sender_number

ARRIVE = field(5, 1) + field(6, 1)


class Witness:
    """A host that behaves. passes(): what it uploads is acknowledged by the centre."""

    def __init__(self, bed, d, name="witness.example"):
        self.d, self.sender, self.sequence = d, sender_number(), 0
        self.relay = bed.relay(d, name, bed.authority.host(name))

    def passes(self):
        self.sequence += 1  # an attempt that failed is made up for by the next
        with Wire(self.d.socket) as w:
            w.send("UPLOAD", body(self.sender, self.sequence, "d1" * 20, 1, 1))
            while w.take()[0] != "ACK":
                pass
        done = relay_once(self.relay)
        relay = self.d.json("status", "--json")["store"]["relay"]
        return done.returncode == 0 and relay["acknowledged"]["uploads"] == self.sequence


def memory(bed):
    """Resident bytes of the gate's processes."""
    pids = [str(bed.gate.process.pid)] + run("pgrep", "-P", bed.gate.process.pid).stdout.split()
    return sum(int(line.split()[1]) * 1024 for pid in pids for line in open(f"/proc/{pid}/status")
               if line.startswith("RssAnon:"))


def held_memory(tap, bed, witness):
    """Headers of large frames whose bodies do not come."""
    pair = bed.authority.host("hoarder.example")
    wires = [TlsWire(bed, pair) for _ in range(3)]
    for w in wires:
        w.send("ARRIVE", ARRIVE)
        w.take()
        w.raw(header("DELIVER", 9, 60 << 20) + b"\x22")
    tap.point(witness.passes(), "frames of 60 MiB are announced and do not come: another host is served")
    answer = wires[0].take()
    tap.point(answer and answer[0] == "NACK" and answer[3][1] == 22 and b"frame" in answer[3][4],
              f"they are ended: {answer and answer[3].get(4, b'').decode()}", answer)
    for w in wires:
        w.close()


class Greedy:
    """As many connections as a host may have, each with as many requests as it may have, all as large as small ones may
    be. They are sent until the gate takes no more."""

    def __init__(self, bed, name):
        pair = bed.authority.host(name)
        self.wires = [TlsWire(bed, pair) for _ in range(8)]
        for w in self.wires:
            w.send("ARRIVE", ARRIVE)
            w.take()

    def begin(self):
        workers = [threading.Thread(target=self.send, args=(w,), daemon=True) for w in self.wires]
        for t in workers:
            t.start()
        return workers

    @staticmethod
    def send(w):
        epoch, data = os.urandom(12), os.urandom(1000 << 10)
        w.socket.settimeout(3)
        try:
            for i in range(32):
                w.send("DELIVER", field(2, epoch) + field(3, i + 1) + field(4, data), i + 1)
        except OSError:
            pass

    def end(self):
        for w in self.wires:
            w.close()


def greedy(tap, bed, centre, witness):
    """The centre stands still, so that nothing that the gate has received goes away."""
    hosts = [Greedy(bed, f"greedy{i}.example") for i in range(3)]
    centre.process.send_signal(signal.SIGSTOP)
    try:
        for t in [t for g in hosts for t in g.begin()]:
            t.join(LONG)
        with TlsWire(bed, bed.authority.host("modest.example")) as w:
            tap.point(w.welcome and w.welcome[0] == "WELCOME",
                      "three hosts send as much as they can while the centre stands still: another is heard", w.welcome)
    finally:
        centre.process.send_signal(signal.SIGCONT)
        for g in hosts:
            g.end()
    tap.point(until(witness.passes), "and served when the centre goes on")


def early_data(tap, bed, witness):
    """A connection that is resumed could send data before its certificate is known."""
    pair, session = bed.authority.host("early.example"), os.path.join(bed.folder, "session")
    client = ["openssl", "s_client", "-connect", f"127.0.0.1:{bed.port}", "-cert", pair[0], "-key", pair[1], "-CAfile",
              bed.authority.ca]
    first = run(*client, "-sess_out", session, stdin=subprocess.DEVNULL, timeout=LONG)
    tap.point("New, TLSv1.3" in first.stdout and "Post-Handshake New Session Ticket" not in first.stdout,
              "no session can be resumed, so that no data comes before the certificate", first.stdout[-600:])
    with open(os.path.join(bed.folder, "data"), "wb") as f:
        f.write(header("HELLO", 0, 4) + b"\x08\x01\x10\x01")
    again = run(*client, *(["-sess_in", session] if os.path.exists(session) else []), "-early_data", f.name,
                stdin=subprocess.DEVNULL, timeout=LONG)
    tap.point("Early data was accepted" not in again.stdout and witness.passes(),
              "early data is not accepted, and another host is served", again.stdout[-600:])


def pieces(tap, bed, centre):
    """Each byte of all frames is a TLS record of its own."""
    before = centre.counts()["quarantined"]
    with TlsWire(bed, bed.authority.host("pieces.example"), hello=False) as w:
        deliver = field(2, os.urandom(12)) + field(3, 1) + field(4, b"no segment")
        for kind, data in (("HELLO", field(1, 1) + field(2, 1) + field(3, "x")), ("ARRIVE", ARRIVE),
                           ("DELIVER", deliver)):
            for byte in header(kind, 7, len(data)) + data:
                w.raw(bytes([byte]))
        answers = [w.take()[0] for _ in range(3)]
    tap.point(answers == ["WELCOME", "ADMIT", "ACKNOWLEDGE"] and centre.counts()["quarantined"] == before + 1,
              "frames that come byte by byte", answers)


def half_closed(tap, bed, witness):
    """The client ends its side right after a request."""
    for what in ("DELIVER", "ARRIVE", "HELLO"):
        with TlsWire(bed, bed.authority.host("half.example"), hello=what != "HELLO") as w:
            if what == "DELIVER":
                w.send("ARRIVE", ARRIVE)
                w.take()
                w.send("DELIVER", field(2, os.urandom(12)) + field(3, 1) + field(4, b"x"))
            elif what == "ARRIVE":
                w.send("ARRIVE", ARRIVE)
            socket.socket(fileno=os.dup(w.socket.fileno())).shutdown(socket.SHUT_WR)
            try:
                ended = w.ended()
            except ssl.SSLError: # an alert, and then the end
                ended = True
            tap.point(ended, f"a connection that is half closed after {what} is ended")
    tap.point(witness.passes(), "and another host is served")


def attest_garbage(tap, bed, witness):
    """ATTEST and OBJECT_BYTES whose fields are not what they should be."""
    pair, dice = bed.authority.host("garbage.example"), random.Random(1)
    answers = {}
    for i in range(60):
        kind = ("ATTEST", "OBJECT_BYTES")[i % 2]
        data = dice.randbytes(dice.randrange(300)) if i % 3 else b"".join(
            field(n, dice.choice((dice.randbytes(40), dice.getrandbits(64), "x" * 200))) for n in range(2, 7))
        with TlsWire(bed, pair) as w:
            w.send("ARRIVE", ARRIVE)
            w.take()
            w.send(kind, data)
            answer = w.take()
            key = answer and answer[0]
            answers[key] = answers.get(key, 0) + 1
    tap.point(set(answers) <= {"NACK", "ATTESTED", None} and answers.get("NACK", 0) > 30,
              "ATTEST and OBJECT_BYTES of nothing that makes sense are refused", answers)
    tap.point(bed.gate.process.poll() is None and witness.passes(), "and another host is served")


def same_names(tap, bed, centre):
    """Two hosts with names that differ by case only have their own identities."""
    before = centre.counts()["hosts"]
    for name in ("Twin.example", "twin.example"):
        with TlsWire(bed, bed.authority.host(name)) as w:
            w.send("ARRIVE", ARRIVE)
            w.take()
    tap.point(centre.counts()["hosts"] == before + 2, "names that differ by case only are two hosts", centre.counts())


def key_files(tap):
    """What is no regular file where the key should be: refused at once, without waiting for a writer."""
    with Bed("/nonexistent/profd.sock") as bed:
        good = bed.keys["gate_key"]
        fifo, folder, link, loop = (os.path.join(bed.folder, n) for n in ("fifo", "folder", "link", "loop"))
        os.mkfifo(fifo, 0o600)
        os.mkdir(folder, 0o700)
        os.symlink(loop, loop)
        os.symlink(good, link)
        for what, path in (("a FIFO", fifo), ("a directory", folder), ("a device", "/dev/zero"),
                           ("a symbolic link to itself", loop)):
            bed.gate.configure(**{**bed.keys, "gate_key": path})
            done = run(bed.gate.program, "--config", bed.gate.file, timeout=LONG)
            tap.point(done.returncode == 78 and path in done.stderr, f"the key is {what}: exit 78", done)
        bed.gate.configure(**{**bed.keys, "gate_key": link})
        tap.point(bed.start(), "a symbolic link to a key is followed", bed.gate.logged())


def half_open(tap, bed, witness):
    """2,000 connections of one address that never begin a handshake."""
    before, open_ones = memory(bed), []
    try:
        for _ in range(2000):
            s = socket.socket()
            s.setblocking(False)
            open_ones.append(s)
            s.connect_ex(("127.0.0.2", bed.port))
        tap.point(until(witness.passes), "2,000 connections of one address without a handshake: another host is served")
        tap.point(memory(bed) < before + (64 << 20), "and the gate stays below 64 MiB more",
                  (before, memory(bed)))
    finally:
        for s in open_ones:
            s.close()


def garbage(tap, bed, witness):
    """What is no TLS 1.3."""
    for what, data in (("oversized record", b"\x16\x03\x01\xff\xff" + b"x" * 70000),
                       ("a ClientHello of 16 KiB of nothing", b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc" + bytes(16380)),
                       ("application data first", b"\x17\x03\x03\x00\x10" + bytes(16)),
                       ("an alert flood", b"\x15\x03\x03\x00\x02\x01\x00" * 5000),
                       ("change_cipher_spec flood", b"\x14\x03\x03\x00\x01\x01" * 5000),
                       ("SSLv2", b"\x80\x2e\x01\x00\x02" + bytes(44)), ("HTTP", b"GET / HTTP/1.1\r\n\r\n" * 100)):
        with socket.create_connection(("127.0.0.1", bed.port)) as s:
            s.settimeout(LONG)
            try:
                s.sendall(data)
                while s.recv(65536):
                    pass
                ended = True
            except socket.timeout:
                ended = False
            except OSError:
                ended = True
        tap.point(ended, f"{what}: the connection is ended")
    tap.point(bed.gate.process.poll() is None and witness.passes(), "and another host is served")


def key_updates(tap, bed, witness):
    """KeyUpdate with request for an answer, many times."""
    pair = bed.authority.host("updates.example")
    client = subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{bed.port}", "-cert", pair[0], "-key",
                               pair[1], "-CAfile", bed.authority.ca], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        for _ in range(50):
            client.stdin.write(b"K\n")
            client.stdin.flush()
        tap.point(witness.passes(), "KeyUpdate requests in a row: another host is served")
    except BrokenPipeError:
        tap.point(witness.passes(), "KeyUpdate requests: the connection was ended, another host is served")
    finally:
        client.kill()
        client.wait()


def chain(bed, depth):
    """A certificate of a host under that many intermediate ones, all signed."""
    base = os.path.join(bed.folder, "chain")
    issuer, key, certificates = bed.authority.ca, bed.authority.key, []
    for i in range(depth + 1):
        last = i == depth
        name = f"{base}{i}"
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", name + ".key",
                "-out", name + ".csr", "-subj", f"/CN={'deep.example' if last else f'middle {i}'}")
        with open(name + ".ext", "w") as f:
            f.write(f"basicConstraints=critical,CA:{'FALSE' if last else 'TRUE'}\n")
        openssl("x509", "-req", "-in", name + ".csr", "-CA", issuer, "-CAkey", key, "-set_serial", str(1000 + i),
                "-extfile", name + ".ext", "-days", "7", "-out", name + ".crt")
        certificates.insert(0, open(name + ".crt").read())
        issuer, key = name + ".crt", name + ".key"
    os.chmod(key, 0o600)
    with open(base + ".pem", "w") as f:
        f.write("".join(certificates))
    return base + ".pem", key


def chains(tap, bed, witness):
    for depth, accepted in ((8, True), (9, False)):
        try:
            with TlsWire(bed, chain(bed, depth)) as w:
                answered = w.welcome and w.welcome[0] == "WELCOME"
        except (OSError, ssl.SSLError):
            answered = False
        tap.point(bool(answered) == accepted,
                  f"a chain with {depth} intermediate certificates is {'accepted' if accepted else 'refused'}",
                  bed.gate.logged())
    tap.point(witness.passes(), "and another host is served")


def names(tap, bed, centre):
    """Names in certificates that look like something else."""
    def subject(value, san):
        base = tempfile.mktemp(dir=bed.folder)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", base + ".key",
                "-out", base + ".csr", "-utf8", "-subj", f"/CN={value}" if value else "/O=none")
        os.chmod(base + ".key", 0o600)
        with open(base + ".ext", "w") as f:
            f.write(san)
        openssl("x509", "-req", "-in", base + ".csr", "-CA", bed.authority.ca, "-CAkey", bed.authority.key,
                "-set_serial", str(int.from_bytes(os.urandom(8), "big")), "-extfile", base + ".ext", "-days", "7",
                "-out", base + ".crt")
        return base + ".crt", base + ".key"

    nothing = "basicConstraints=CA:FALSE\n"
    many = "subjectAltName=" + ",".join(f"DNS:n{i}.example" for i in range(1000)) + "\n"
    dns = lambda data: "subjectAltName=DER:" + der(data) + "\n"
    cases = [("..", subject("..", nothing), True), ("empty", subject("", nothing), False),
             ("300 bytes in subjectAltName", subject("a", dns(b"x" * 300)), False),
             ("NUL in subjectAltName", subject("a", dns(b"good.example\0.evil")), False),
             ("invalid UTF-8 in subjectAltName", subject("a", dns(b"b\xff\xfe")), False),
             ("an empty DNS name", subject("a", dns(b"")), False), ("1,000 names", subject("a", many), True),
             ("umlauts in the common name", subject("höst", nothing), False),
             ("markup", subject('"><script>x', nothing), True)]
    before = centre.counts()
    for what, pair, accepted in cases:
        with TlsWire(bed, pair, hello=False) as w:
            try:
                w.send("HELLO", field(1, 1) + field(2, 1) + field(3, "x"))
                first = w.take()
                if first and first[0] == "WELCOME":
                    w.send("ARRIVE", ARRIVE)
                    first = w.take()
            except OSError as failure:
                first = failure
            good = isinstance(first, tuple) and first[0] == "ADMIT"
            tap.point(good == accepted, f"a host named {what}: {'admitted' if accepted else 'refused'}", first)
    tap.point(centre.json("status", "--json")["store"]["centre"]["hosts"] == before["hosts"] + 3,
              "only those that were admitted are known", centre.counts())


def der(data):
    """subjectAltName with one DNS name, as openssl wants it."""
    def block(tag, content):
        n = len(content)
        size = bytes([n]) if n < 128 else bytes([0x82, n >> 8, n & 255])
        return bytes([tag]) + size + content
    return ":".join(f"{b:02x}" for b in block(0x30, block(0x82, data)))


def false_daemon(tap):
    """Another user's process listens where the daemon should."""
    if os.getuid() != 0:
        tap.skip("a socket of another user is not the daemon's", "needs root")
        return
    folder = tempfile.mkdtemp(prefix="profd-false-")
    os.chmod(folder, 0o777)
    path = os.path.join(folder, "profd.sock")

    def listen(say):
        s = socket.socket(socket.AF_UNIX)
        s.bind(path)
        os.chmod(path, 0o666)
        s.listen(64)
        say("ready")
        while True:
            s.accept()

    with Bed(path) as bed:
        other = Other(listen)
        try:
            tap.point(other.line() == "ready" and bed.start(), "a process of another user listens", bed.gate.logged())
            tap.point(until(lambda: "belongs to user" in bed.gate.logged()),
                      "the gate does not take its socket for the daemon's", bed.gate.logged())
            with TlsWire(bed, bed.authority.host("careful.example")) as w:
                w.send("ARRIVE", ARRIVE)
                answer = w.take()
                tap.point(answer[0] == "NACK" and b"does not answer" in answer[3][4], "and tells hosts to wait", answer)
        finally:
            other.end()
            shutil.rmtree(folder, ignore_errors=True)


class Centre(Daemon):
    def __init__(self):
        super().__init__("--gate", "--relay-interval", "1s")

    def counts(self):
        return self.json("status", "--json")["store"]["centre"]


def main():
    with Tap() as tap, Centre() as centre, Bed(centre.socket) as bed, Daemon("--relay", "tls://c:1") as d:
        if not tap.point(bed.start(), "profd-gate listens", bed.gate.logged()):
            return
        witness = Witness(bed, d)
        tap.point(witness.passes(), "a host is served", bed.gate.logged())
        names(tap, bed, centre)
        chains(tap, bed, witness)
        garbage(tap, bed, witness)
        key_updates(tap, bed, witness)
        half_open(tap, bed, witness)
        early_data(tap, bed, witness)
        pieces(tap, bed, centre)
        half_closed(tap, bed, witness)
        attest_garbage(tap, bed, witness)
        same_names(tap, bed, centre)
        key_files(tap)
        greedy(tap, bed, centre, witness)
        held_memory(tap, bed, witness)
        false_daemon(tap)


if __name__ == "__main__":
    main()
