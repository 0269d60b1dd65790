"""profd-gate and profd-relay with real certificates: what a host uploads arrives at the centre once, whatever is
killed; what is no host of the fleet is refused with a sentence, and nothing of it reaches the daemon of the centre."""
import base64
import hashlib
import json
import os
import random
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

from harness import LONG, Daemon, Tap, run, until
from relaying import Sender, body, equation
from tls_bed import GATE, Authority, Bed, TlsWire
from wire import Wire, field, header, sender_number, varint


def builds(n):
    """Three made-up programs that nothing else uploads."""
    return [f"{16 * n + i:02x}" * 20 for i in range(3)]


class Centre(Daemon):
    """The daemon behind the gate."""

    def __init__(self):
        super().__init__("--gate", "--relay-interval", "1s")

    def calls(self, of):
        """build → calls in its report"""
        out = {}
        with Wire(self.socket) as w:
            for build in of:
                status, data = w.query(f"/api/v1/builds/{build}/report")
                if status == 200:
                    out[build] = json.loads(data)["totals"]["calls"]
        return out

    def counts(self):
        return self.json("status", "--json")["store"]["centre"]


def upload(d, of, n):
    """n uploads; what they count, by build."""
    sent, sender = {}, sender_number()
    with Wire(d.socket) as w:
        for i in range(1, n + 1):
            build = of[i % 3]
            w.send("UPLOAD", body(sender, i, build, i % 7, i))
            while w.take()[0] != "ACK":
                pass
            sent[build] = sent.get(build, 0) + i
    return sent


def ledger(d):
    return d.json("status", "--json")["store"]["relay"]


def settled(d):
    """True when everything that the host accepted is acknowledged."""
    relay = ledger(d)
    return relay["acknowledged"]["uploads"] == relay["accepted"]["uploads"] and relay["open_segments"] == 0


def host_daemon(bed):
    return Daemon("--relay", f"tls://localhost:{bed.port}")


def arrives(tap, bed, centre):
    """The whole way, once; by IPv6, by IPv4, and through a proxy."""
    pair = bed.authority.host("web-1.example")
    with host_daemon(bed) as d:
        of = builds(1)
        sent = upload(d, of, 30)
        r = bed.relay(d, "relay-1", pair)
        done = run(r.program, "--config", r.file, "--once")
        tap.point(done.returncode == 0 and centre.calls(of) == sent,
                  "profd-relay --once: the centre has what was uploaded",
                  (done, centre.calls(of), sent))
        rows = centre.json("groups", of[0], "--by", "host", "--json")["rows"]
        tap.point([row["label_host"] for row in rows] == ["web-1.example"], "as that of the host in the certificate",
                  rows)
        tap.point(settled(d) and equation(ledger(d)), "and the host's ledger says that it was acknowledged", ledger(d))
        proxy = Proxy()
        for what, host, proxied in (("IPv6", "[::1]", False), ("IPv4", "127.0.0.1", False),
                                    ("a proxy", "localhost", True)):
            more = upload(d, of, 5)
            r.configure(socket=d.socket, relay=f"tls://{host}:{bed.port}", relay_certificate=pair[0],
                        relay_key=pair[1], relay_ca=bed.authority.ca,
                        relay_proxy=f"http://127.0.0.1:{proxy.port}" if proxied else None)
            done = run(r.program, "--config", r.file, "--once")
            for key, n in more.items():
                sent[key] = sent.get(key, 0) + n
            tap.point(done.returncode == 0 and centre.calls(of) == sent
                      and proxy.targets == [f"localhost:{bed.port}"] * proxied, f"by {what}", (done, proxy.targets))
        for what, ends in (("before the handshake", b""), ("in the handshake", b"\x16\x03\x03\x00\x50\x02")):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                threading.Thread(target=close_after, args=(listener, ends), daemon=True).start()
                r.configure(socket=d.socket, relay=f"tls://127.0.0.1:{listener.getsockname()[1]}",
                            relay_certificate=pair[0], relay_key=pair[1], relay_ca=bed.authority.ca)
                done = run(r.program, "--config", r.file, "--once")
                tap.point(done.returncode == 69 and ("closed" in done.stderr or "reset" in done.stderr),
                          f"a centre that closes {what}: {done.stderr.strip()[-60:]}", done)
        r.configure(socket=d.socket, relay=f"tls://localhost:{bed.port}", relay_certificate=pair[0], relay_key=pair[1],
                    relay_ca=bed.authority.ca, relay_proxy=f"http://127.0.0.1:{proxy.port}")
        proxy.wants = b"\r\nProxy-Authorization: Basic " + base64.b64encode(b"me:p@ss:word") + b"\r\n"
        for password, status in (("p%40ss%3aword", 0), ("other-pass", 69)):
            upload(d, of, 1)
            r.configure(socket=d.socket, relay=f"tls://localhost:{bed.port}", relay_certificate=pair[0],
                        relay_key=pair[1], relay_ca=bed.authority.ca, log_level="debug",
                        relay_proxy=f"http://me:{password}@127.0.0.1:{proxy.port}")
            done = run(r.program, "--config", r.file, "--once")
            tap.point(done.returncode == status and "ss" + "%3aword" not in done.stderr and "pass" not in done.stderr
                      and (status == 0) == settled(d), f"a proxy that wants a password: exit {status}", done)
        proxy.refuses = True
        r.configure(socket=d.socket, relay=f"tls://localhost:{bed.port}", relay_certificate=pair[0], relay_key=pair[1],
                    relay_ca=bed.authority.ca, relay_proxy=f"http://127.0.0.1:{proxy.port}")
        done = run(r.program, "--config", r.file, "--once")
        text = d.ctl("status").stdout
        tap.point(done.returncode == 69 and "the proxy refuses the connection: HTTP/1.1 407" in done.stderr
                  and "the proxy refuses" in text, "a proxy that refuses: told, and shown by profctl status",
                  (done, text))


def close_after(listener, data):
    """Reads the client's first message, answers with this, and closes."""
    s = listener.accept()[0]
    s.recv(65536)
    s.sendall(data)
    s.close()


class Proxy:
    """An HTTP proxy that knows CONNECT."""

    def __init__(self):
        self.targets, self.refuses, self.wants = [], False, None
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
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        if self.refuses or method != "CONNECT" or (self.wants and self.wants not in head):
            s.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            s.close()
            return
        self.targets.append(target)
        host, _, port = target.rpartition(":")
        other = socket.create_connection((host, int(port)))
        s.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=pump, args=(other, s), daemon=True).start()
        pump(s, other)


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def refused_hosts(tap, bed, centre):
    """Certificates that are not accepted: a sentence at both ends, shown by profctl status, and nothing arrives."""
    foreign = Authority(bed.folder, "foreign")
    expired = bed.authority.host("old.example", days=-1)
    stolen, lost = bed.authority.host("stolen.example", serial=0xABCDEF0123), bed.authority.host("lost.example")
    key = hashlib.sha256(public_key(lost[0])).hexdigest()
    with open(bed.revoked, "w") as f:
        f.write(f"# lost and stolen\nserial ABCDEF0123\nkey {key}\n")
    tap.point(until(lambda: "certificates were read" in bed.gate.logged()), "the list of revoked hosts is read again",
              bed.gate.logged())
    before = centre.counts()
    good = bed.authority.host("good.example")
    with host_daemon(bed) as d:
        upload(d, builds(2), 3)
        for what, pair, status, sentence in (
                ("expired", expired, 77, "expired"),
                ("revoked by its serial number", stolen, 77, "the certificate of this host is revoked"),
                ("revoked by its key", lost, 77, "the certificate of this host is revoked"),
                ("of a foreign CA", foreign.host("web-1.example"), 77, "issuer"),
                ("that is not that of the key", (good[0], expired[1]), 78, "is not that of the certificate")):
            r = bed.relay(d, "refused", pair)
            done = run(r.program, "--config", r.file, "--once")
            text = d.ctl("status").stdout
            tap.point(done.returncode == status and sentence in done.stderr and sentence in text,
                      f"a certificate {what}: {done.stderr.strip()[-90:]}", (done, text))
        os.chmod(good[1], 0o640)
        r = bed.relay(d, "refused", good)
        done = run(r.program, "--config", r.file, "--once")
        tap.point(done.returncode == 78 and "mode 0640" in done.stderr, "a key that others may read is not used", done)
        os.chmod(good[1], 0o600)
        r = bed.relay(d, "refused", good, relay_ca=foreign.ca)
        done = run(r.program, "--config", r.file, "--once")
        tap.point(done.returncode == 77 and "certificate is not accepted" in done.stderr,
                  "a centre of a foreign CA: nothing is sent", done)
        r = bed.relay(d, "refused", good, relay=f"tls://127.0.0.2:{bed.port}")
        done = run(r.program, "--config", r.file, "--once")
        tap.point(done.returncode == 77 and "IP address mismatch" in done.stderr, "a centre of another name", done)
        tap.point(centre.counts() == before and ledger(d)["open"]["uploads"] == 3,
                  "nothing was sent, nothing was lost", (before, centre.counts()))
        r = bed.relay(d, "refused", good)
        done = run(r.program, "--config", r.file, "--once")
        tap.point(done.returncode == 0 and settled(d), "with a good certificate it is sent", done)
    for what, context, sentence in (("without a certificate", bed.context(), "a certificate is required"),
                                    ("with TLS 1.2", old_tls(bed, good), "TLS 1.3 is required")):
        said = len(bed.gate.logged())
        try:
            TlsWire(bed, context=context).take()
            ended = False
        except (ssl.SSLError, OSError):
            ended = True
        tap.point(ended and until(lambda: sentence in bed.gate.logged()[said:]),
                  f"a client {what} is refused: {sentence}", bed.gate.logged()[said:])


def public_key(certificate):
    """DER."""
    pem = subprocess.run(["openssl", "x509", "-in", certificate, "-pubkey", "-noout"], capture_output=True, check=True)
    return subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=pem.stdout, capture_output=True,
                          check=True).stdout


def old_tls(bed, pair):
    c = bed.context(pair)
    c.maximum_version = ssl.TLSVersion.TLSv1_2
    return c


def refused_frames(tap, bed, centre):
    """A host with a good certificate and bad manners."""
    pair, before = bed.authority.host("odd.example"), centre.counts()
    arrive = field(5, 1) + field(6, 1)
    cut = b"\x22" + varint(18)  # a field of 18 bytes of which none is there: what the gate appends must not fill it
    cases = [
        ("ARRIVE before HELLO", False, [("ARRIVE", arrive)], 3, "ARRIVE before HELLO"),
        ("a second HELLO", True, [("HELLO", field(1, 1) + field(2, 1))], 3, "a second HELLO"),
        ("DELIVER before ARRIVE", True, [("DELIVER", field(3, 1))], 3, "DELIVER before ARRIVE"),
        ("ATTACH", True, [("ATTACH", b"")], 12, "ATTACH does not pass the gate"),
        ("ADMIN", True, [("ADMIN", field(1, "backup"))], 12, "ADMIN does not pass the gate"),
        ("UPLOAD", True, [("UPLOAD", body(1, 1, builds(3)[0], 1, 1))], 12, "UPLOAD does not pass the gate"),
        ("QUERY", True, [("QUERY", field(1, "/api/v1/builds"))], 12, "QUERY does not pass the gate"),
        ("FETCH", True, [("FETCH", b"")], 12, "FETCH does not pass the gate"),
        ("FETCH_OBJECT", True, [("FETCH_OBJECT", b"")], 12, "FETCH_OBJECT does not pass the gate"),
        ("OBJECT", True, [("OBJECT", b"")], 12, "OBJECT does not pass the gate"),
        ("ATTEST before ARRIVE", True, [("ATTEST", field(2, "ab"))], 3, "ATTEST before ARRIVE"),
        ("another host's identity in ATTEST", True,
         [("ARRIVE", arrive), ("ATTEST", field(2, "ab") + field(1, b"y" * 16))], 12, "states the host"),
        ("another host's identity in OBJECT_BYTES", True,
         [("ARRIVE", arrive), ("OBJECT_BYTES", field(2, "ab") + field(1, b"y" * 16))], 12, "states the host"),
        ("an unknown type", True, [(99, b"x")], 5, "99"),
        ("another host's identity in ARRIVE", True, [("ARRIVE", field(1, b"x" * 16))], 12, "states the host"),
        ("another name in ARRIVE", True, [("ARRIVE", field(2, "other"))], 12, "states the host"),
        ("another host's identity in DELIVER", True,
         [("ARRIVE", arrive), ("DELIVER", field(3, 1) + field(1, b"y" * 16))], 12, "states the host"),
        ("a field that ends behind the frame", True, [("ARRIVE", arrive), ("DELIVER", field(3, 1) + cut)], 1,
         "not protobuf"),
        ("an empty DELIVER", True, [("ARRIVE", arrive), ("DELIVER", b"")], 1, "without a payload"),
    ]
    for what, hello, frames, status, sentence in cases:
        with TlsWire(bed, pair, hello=hello) as w:
            for i, (kind, payload) in enumerate(frames):
                w.send(kind, payload, tag=7 + i)
            answers = []
            while answer := w.take():
                answers.append(answer)
            last = answers[-1] if answers else (None,) * 4
            tap.point(last[0] == "NACK" and last[3].get(1) == status and sentence in last[3][4].decode()
                      and last[1] == 6 + len(frames), f"{what}: {(last[3] or {}).get(4, b'').decode()}", answers)
    for what, data, status in (("a length of 2^32-1", struct.pack("<IBBHI", 2**32 - 1, 1, 19, 0, 9), 2),
                               ("a compressed frame", header("DELIVER", 9, 5, 2) + b"12345", 12),
                               ("a frame of version 7", header("DELIVER", 9, 5, 0, 7) + b"12345", 4)):
        with TlsWire(bed, pair) as w:
            w.send("ARRIVE", arrive)
            first = w.take()
            w.raw(data)
            answer = w.take()
            tap.point(first[0] == "ADMIT" and answer[0] == "NACK" and answer[3][1] == status and w.ended(),
                      f"{what}: {answer[3][4].decode()}", answer)
    after = centre.counts()
    tap.point(after["counted"] == before["counted"] and after["quarantined"] == before["quarantined"],
              "nothing of all this was stored", (before, after))
    with socket.create_connection(("localhost", bed.port)) as s:
        s.settimeout(LONG)
        said = len(bed.gate.logged())
        s.sendall(b"\x16\x03\x01")
        tap.point(s.recv(1) == b"" and "the TLS handshake took more than 10 seconds" in bed.gate.logged()[said:],
                  "a handshake that does not end is ended", bed.gate.logged()[said:])


def rotates(tap, bed):
    """Certificates of both ends are replaced while they run, by a new CA."""
    pair = bed.authority.host("turn.example")
    with host_daemon(bed) as d:
        upload(d, builds(4), 2)
        r = bed.relay(d, "rotate", pair).start()
        tap.point(until(lambda: settled(d)), "a running profd-relay sends", (ledger(d), r.logged()))
        new, said = Authority(bed.folder, "new"), len(bed.gate.logged())
        centre_pair = new.issue("centre", ("DNS:localhost", "IP:127.0.0.1", "IP:::1"))
        for source, target in ((centre_pair[0], bed.keys["gate_certificate"]), (centre_pair[1], bed.keys["gate_key"])):
            os.replace(source, target)
        tap.point(until(lambda: "certificates were read" in bed.gate.logged()[said:]), "the gate reads new files",
                  bed.gate.logged()[said:])
        upload(d, builds(4), 2)
        tap.point(until(lambda: "certificate is not accepted" in d.ctl("status").stdout),
                  "the relay that trusts the old CA says so", r.logged())
        old = open(bed.authority.ca).read()
        with open(bed.authority.ca + ".new", "w") as f:
            f.write(old + open(new.ca).read())
        os.replace(bed.authority.ca + ".new", bed.authority.ca)
        tap.point(until(lambda: settled(d)), "with the new CA in its file it goes on, without a restart",
                  (ledger(d), r.logged()))
        said = len(bed.gate.logged())
        with open(bed.keys["gate_key"], "a+") as f:
            key = open(bed.keys["gate_key"]).read()
            f.truncate(0)
        tap.point(until(lambda: "of before stay in use" in bed.gate.logged()[said:]),
                  "an empty key file: the certificates of before stay in use, and that is logged",
                  bed.gate.logged()[said:])
        upload(d, builds(4), 2)
        tap.point(until(lambda: settled(d)), "and the relay still gets through", (ledger(d), r.logged()))
        with open(bed.keys["gate_key"], "w") as f:
            f.write(key)
        r.stop()


def killed(tap, bed, centre, seconds, seed):
    """Relay, gate and both daemons are killed at random points."""
    dice = random.Random(seed)
    of, start = builds(5), centre.counts()["repeats"]
    pair = bed.authority.host("killed.example")
    with host_daemon(bed) as d:
        senders = [Sender(d, random.Random(seed + i), of) for i in range(2)]
        r = bed.relay(d, "killed", pair).start()
        for s in senders:
            s.start()
        kills, end = [0, 0, 0, 0], time.monotonic() + seconds
        while time.monotonic() < end or min(kills) < 2:
            time.sleep(dice.random() * 0.3)
            which = dice.randrange(4)
            kills[which] += 1
            if which == 0:
                r.stop()
                r.start()
            elif which == 1:
                bed.gate.stop()
                until(lambda: not bed.reaches())  # its second process holds the port a moment longer
                bed.gate.start()
            else:
                (d, centre)[which - 2].stop(signal.SIGKILL)
                (d, centre)[which - 2].start()
        for s in senders:
            s.ended = True
        for s in senders:
            s.join(LONG)
        until(lambda: settled(d))
        r.stop()
        want = {}
        for s in senders:
            for (build, _), n in s.sent.items():
                want[build] = want.get(build, 0) + n
        got = centre.calls(of)
        tap.point(got == want and want, f"relay, gate, the host's profd and the centre's killed {kills} times, seed "
                  f"{seed}: the centre has what was uploaded; {centre.counts()['repeats'] - start} segments came twice",
                  {k: (want.get(k), got.get(k)) for k in set(want) | set(got) if want.get(k) != got.get(k)})
        tap.point(settled(d) and equation(ledger(d)) and d.ctl("verify").returncode == 0
                  and centre.ctl("verify").returncode == 0, "the ledgers agree, and verification finds nothing",
                  (ledger(d), r.logged()[-2000:]))


def starts(tap):
    """What profd-gate wants before it starts, and a listener that is passed in."""
    with Bed("/nonexistent/profd.sock") as other:
        os.chmod(other.keys["gate_key"], 0o644)
        done = run(GATE, "--config", other.gate.file)
        tap.point(done.returncode == 78 and "mode 0644" in done.stderr and "0600" in done.stderr,
                  f"a key that others may read: exit 78, {done.stderr.strip()[-70:]}", done)
        os.chmod(other.keys["gate_key"], 0o600)
        for what, keys, sentence in (("without a listener", {"gate_listen": None}, "no socket was passed in"),
                                     ("with a wrong address", {"gate_listen": "centre:1"}, "not ADDR:PORT"),
                                     ("without a certificate", {"gate_certificate": "/nonexistent"}, "cannot read"),
                                     ("with a key for a CA", {"gate_ca": other.keys["gate_key"]},
                                      "holds no certificate")):
            other.gate.configure(**{**other.keys, **keys})
            done = run(GATE, "--config", other.gate.file)
            tap.point(done.returncode == 78 and sentence in done.stderr, f"{what}: exit 78, {sentence}", done)
        with open(other.revoked, "w") as f:
            f.write("serial 12\nkey 77\n")
        other.gate.configure(**other.keys)
        done = run(GATE, "--config", other.gate.file)
        tap.point(done.returncode == 78 and "revoked:2:" in done.stderr, "a wrong line of the list: exit 78, its line",
                  done)
        open(other.revoked, "w").close()
        other.gate.configure(**{**other.keys, "gate_listen": None})
        with socket.create_server(("127.0.0.1", other.port), backlog=16) as listener:
            os.set_inheritable(listener.fileno(), True)
            script = 'exec 3<&"$1"; shift; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=tls; exec "$@"'
            with open(other.gate.log, "ab") as log:
                other.gate.process = subprocess.Popen(["bash", "-c", script, "bash", str(listener.fileno()), GATE,
                                                       "--config", other.gate.file], pass_fds=[listener.fileno()],
                                                      stderr=log)
        with TlsWire(other, other.authority.host("early.example")) as w:
            w.send("ARRIVE", field(5, 1))
            answer = w.take()
            tap.point(w.welcome[0] == "WELCOME" and answer[0] == "NACK" and answer[3].get(2) == 1
                      and "does not answer" in answer[3][4].decode(),
                      "a listener that is passed in; without a daemon: NACK, come again", (w.welcome, answer))
            tap.point(w.welcome[3].get(1) == 1, "a relay of version 1 of the protocol is answered in it", w.welcome)
        child = int(run("pgrep", "-P", other.gate.process.pid).stdout)
        status = open(f"/proc/{child}/status").read()
        files = [os.readlink(f"/proc/{child}/fd/{n}") for n in os.listdir(f"/proc/{child}/fd")]
        tap.point("Seccomp:\t2" in status and "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status
                  or b"__asan_init" in open(GATE, "rb").read(),
                  "the process that meets the network: seccomp, no new privileges, no capabilities", status)
        tap.point(not [f for f in files if f.startswith(other.folder) and not f.endswith("gate.log")],
                  "and no descriptor of a file", files)
        os.kill(child, signal.SIGKILL)
        tap.point(other.gate.process.wait(LONG) == 70, "if it is killed, the other one ends, too: exit 70",
                  other.gate.logged())


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with Tap() as tap, Centre() as centre, Bed(centre.socket) as bed:
        starts(tap)
        if not tap.point(bed.start(), "profd-gate listens", bed.gate.logged()):
            return
        arrives(tap, bed, centre)
        refused_hosts(tap, bed, centre)
        refused_frames(tap, bed, centre)
        rotates(tap, bed)
        killed(tap, bed, centre, seconds, seed)


if __name__ == "__main__":
    main()
