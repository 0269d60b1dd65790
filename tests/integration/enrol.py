"""A centre with a CA of its own: its keys and certificates, and the enrolment of hosts, with the real programs."""
import json
import os
import shutil
import socket
import sqlite3
import ssl
import stat
import subprocess
import tempfile
import time

from harness import BUILD, LONG, Daemon, Tap, free_port, run, until
from relaying import body
from tls_bed import GATE, RELAY, Service, TlsWire, openssl, relay_once
from wire import Wire, field, sender_number

SIGNER = os.path.join(BUILD, "profd-signer")
PROFCTL = os.path.join(BUILD, "profctl")


def check(tap, name, ok, detail=""):
    return tap.point(ok, name, detail)


def ca(folder, *arguments):
    return run(PROFCTL, "ca", *arguments, "--dir", folder, timeout=LONG)


def contents(folder):
    return {n: open(os.path.join(folder, n)).read() for n in sorted(os.listdir(folder))}


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def makes_a_ca(tap, folder):
    done = ca(folder, "init", "localhost", "127.0.0.1", "::1")
    check(tap, "ca init makes the keys and certificates of a centre", done.returncode == 0 and
              sorted(os.listdir(folder)) == ["ca.key", "gate-ca.crt", "gate.crt", "gate.key"], done.stderr)
    check(tap, "its keys are of mode 0600",
          all(mode(os.path.join(folder, n)) == 0o600 for n in ("ca.key", "gate.key"))
          and mode(os.path.join(folder, "gate.crt")) == 0o644)
    bundle, gate = os.path.join(folder, "gate-ca.crt"), os.path.join(folder, "gate.crt")
    said = openssl("x509", "-in", gate, "-noout", "-ext", "subjectAltName,extendedKeyUsage")
    check(tap, "openssl verifies the gate's certificate for each name and address",
              all(openssl("verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", bundle, *more, gate).endswith(
                  "OK\n") for more in (("-verify_hostname", "localhost"), ("-verify_ip", "127.0.0.1"),
                                       ("-verify_ip", "::1"))) and "TLS Web Server" in said, said)
    before = contents(folder)
    again = ca(folder, "init", "localhost")
    check(tap, "a second ca init changes nothing, and says so", again.returncode == 73 and
              "exists already: nothing was changed" in again.stderr and contents(folder) == before, again.stderr)
    nameless = ca(os.path.join(folder, "other"), "init")
    check(tap, "ca init without a name is refused", nameless.returncode == 64 and "name the centre" in nameless.stderr
              and not os.path.exists(os.path.join(folder, "other")), nameless.stderr)
    check(tap, "roll and gate need a CA", all(ca(os.path.join(folder, "none"), *w).returncode == 78
                                             for w in (("roll",), ("gate", "localhost"))))


def rolls_a_ca(tap, folder):
    old = contents(folder)
    done = ca(folder, "roll")
    now = contents(folder)
    check(tap, "ca roll makes a new key, and keeps the certificate of the old one and the gate's", done.returncode == 0
              and now["ca.key"] != old["ca.key"] and now["gate-ca.crt"].endswith(old["gate-ca.crt"]) and
              now["gate-ca.crt"] != old["gate-ca.crt"] and now["gate.crt"] == old["gate.crt"], done.stderr)
    done = ca(folder, "gate", "localhost", "127.0.0.1", "::1")
    now = contents(folder)
    first = now["gate-ca.crt"].split("-----END")[0]
    check(tap, "ca gate makes a certificate that the newest key issued", done.returncode == 0 and
              now["gate.crt"] != old["gate.crt"] and first in now["gate.crt"] and now["gate.key"] != old["gate.key"],
              done.stderr)


class Fleet:
    """A centre with a CA of its own, in a folder: signer, daemon and gate."""

    def __init__(self, folder):
        self.folder, self.ca = folder, os.path.join(folder, "ca")
        os.makedirs(folder)
        ca(self.ca, "init", "localhost", "127.0.0.1", "::1")
        self.socket = os.path.join(folder, "signer.sock")
        self.port = free_port()
        self.signer = subprocess.Popen([SIGNER, "--dir", self.ca, "--socket", self.socket], stdin=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        until(lambda: os.path.exists(self.socket))
        self.centre = Daemon("--gate", "--relay-interval", "1s", "--signer", self.socket)
        self.gate = Service(GATE, folder, "gate", socket=self.centre.socket, signer=self.socket,
                            gate_certificate=os.path.join(self.ca, "gate.crt"),
                            gate_key=os.path.join(self.ca, "gate.key"), gate_ca=os.path.join(self.ca, "gate-ca.crt"),
                            gate_listen=f"[::]:{self.port}").start()
        until(self.reaches)

    def reaches(self):
        try:
            with socket.create_connection(("localhost", self.port)):
                return True
        except OSError:
            return False

    def profctl(self, *arguments):
        return run(PROFCTL, arguments[0], "--socket", self.centre.socket, *arguments[1:], timeout=LONG)

    def token(self, *arguments):
        return self.profctl("token", "new", *arguments).stdout.strip()

    def enroll(self, name, token):
        return run(PROFCTL, "enroll", f"tls://localhost:{self.port}", "--token", token, "--name", name, "--dir",
                   self.host(name), timeout=LONG)

    def host(self, name, *file):
        return os.path.join(self.folder, name, *file)

    def hosts(self):
        return {h["name"]: h for h in json.loads(self.profctl("hosts", "--json").stdout)["rows"]}

    def context(self, name=None):
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        c.load_verify_locations(os.path.join(self.ca, "gate-ca.crt"))
        if name:
            c.load_cert_chain(self.host(name, "relay.crt"), self.host(name, "relay.key"))
        return c

    def wire(self, name=None):
        return TlsWire(self, context=self.context(name))

    def relay(self, d, name):
        return Service(RELAY, self.folder, f"relay-{name}", socket=d.socket, relay=f"tls://localhost:{self.port}",
                       relay_certificate=self.host(name, "relay.crt"), relay_key=self.host(name, "relay.key"),
                       relay_ca=self.host(name, "relay-ca.crt"), relay_interval="1s")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gate.stop()
        self.signer.kill()
        self.signer.wait()
        self.centre.__exit__(None, None, None)


def enrols(tap, fleet):
    token = fleet.token("--tenant", "shop", "--uses", "2")
    done = fleet.enroll("web-1", token)
    said = openssl("x509", "-in", fleet.host("web-1", "relay.crt"), "-noout", "-ext", "subjectAltName")
    check(tap, "a host enrols with a token, and is told what comes next", done.returncode == 0 and
          "tenant shop" in done.stdout and "relay = tls://" in done.stdout, done.stderr)
    check(tap, "its key stays on the host, mode 0600; its certificate names it, its identity and its tenant",
          mode(fleet.host("web-1", "relay.key")) == 0o600 and "DNS:web-1" in said and "urn:uuid:" in said and
          "urn:profd:tenant:shop" in said, said)
    again = fleet.enroll("web-1", token)
    check(tap, "a host that is enrolled is not enrolled again", again.returncode == 73 and "already" in again.stderr,
          again.stderr)
    os.unlink(fleet.host("web-1", "relay.crt"))
    again = fleet.enroll("web-1", token)
    check(tap, "a host whose answer was lost gets the same identity with the same token, which is not used up by it",
          again.returncode == 0 and openssl("x509", "-in", fleet.host("web-1", "relay.crt"), "-noout", "-ext",
                                            "subjectAltName") == said, again.stderr)
    check(tap, "a second host enrols", fleet.enroll("web-2", token).returncode == 0)


def refuses(tap, fleet):
    used = fleet.token()
    other = fleet.token("--tenant", "bank")
    fleet.enroll("once", used)
    cases = [("used up", fleet.enroll("late", used), "the token is used up"),
             ("unknown", fleet.enroll("late", used[:-4] + ("AAAA" if used[-4:] != "AAAA" else "BBBB")),
              "no such token"),
             ("of another CA", fleet.enroll("late", used[:7] + "A" * 43 + used[50:]), "certificate"),
             ("no token", fleet.enroll("late", "profd1-x"), "no token")]
    short = fleet.token("--expires", "1s")
    time.sleep(1.5)
    cases.append(("expired", fleet.enroll("late", short), "the token has expired"))
    os.unlink(fleet.host("once", "relay.crt"))
    cases.append(("of another tenant", fleet.enroll("once", other), "another token"))
    for what, done, words in cases:
        check(tap, f"a token that is {what} is refused in words", done.returncode != 0 and words in done.stderr,
              done.stderr)
    check(tap, "nothing was stored for them", "late" not in fleet.hosts() and
          not os.path.exists(fleet.host("late", "relay.crt")))
    with fleet.wire() as w:
        w.send("ARRIVE", field(3, 1))
        check(tap, "without a certificate, ARRIVE is refused", "only send ENROLL" in str(w.take()))
    with fleet.wire() as w:
        w.send("ENROLL", field(1, b"no request") + field(3, b"s") + field(4, "x"))
        check(tap, "what is no PKCS#10 is refused", "PKCS#10" in str(w.take()))
    with fleet.wire() as w:
        w.send("ENROLL", field(1, b"no request") + field(2, b"key") + field(4, "x"))
        check(tap, "a host that states the public key itself is refused", "for the gate" in str(w.take()))
    with fleet.wire("web-2") as w:
        w.send("ENROLL", field(1, b"no request") + field(4, "x"))
        check(tap, "with a certificate, ENROLL is refused", "not allowed here" in str(w.take()))


def sends_and_renews(tap, fleet):
    with Daemon("--relay", f"tls://localhost:{fleet.port}") as d:
        of = "7a" * 20
        with Wire(d.socket) as w:
            w.send("UPLOAD", body(sender_number(), 1, of, 0, 5))
            while w.take()[0] != "ACK":
                pass
        r = fleet.relay(d, "web-1")
        until(lambda: relay_once(r).returncode == 0 and (fleet.hosts()["web-1"]["last_segment"] or 0) > 0)
        row = fleet.hosts()["web-1"]
        check(tap, "an enrolled host sends; hosts says tenant, version, lag and the end of the certificate",
              row["tenant"] == "shop" and row["version"] and row["lag_seconds"] >= 0 and row["enrolled"] and
              row["certificate_end"] > time.time() + 29 * 86400, row)
        centre = fleet.centre.json("status", "--json")["store"]["centre"]
        verified = fleet.profctl("verify")
        check(tap, "what it sent is counted, and the centre's sums agree", centre["counted"]["uploads"] == 1 and
              verified.returncode == 0, f"{centre} {verified.stdout} {verified.stderr}")
        with sqlite3.connect(os.path.join(fleet.centre.state, "profd.db")) as db:
            uids = [n for n, in db.execute("SELECT uid FROM series")]
        check(tap, "its series belong to its tenant", uids and all(n == 4294967294 - 1 for n in uids), uids)
    before = open(fleet.host("web-2", "relay.crt")).read()
    with fleet.wire("web-2") as w:
        w.send("RENEW", field(2, "") + field(3, "1"))
        kind = w.take()
    check(tap, "an enrolled host gets its next certificate", kind[0] == "ENROLLED" and b"BEGIN CERTIFICATE" in
          str(kind).encode() and before not in str(kind), kind)


def revokes(tap, fleet):
    with fleet.wire("web-2") as w:
        w.send("ARRIVE", field(3, 1) + field(5, 1) + field(6, 9))
        w.take()
        done = fleet.profctl("hosts", "revoke", "web-2")
        w.socket.settimeout(LONG)
        try:
            closed = w.socket.recv(1) == b""
        except OSError:
            closed = True
    check(tap, "hosts revoke closes the connection of the host", done.returncode == 0 and closed, done.stderr)
    answers = []
    for message in ("RENEW", "ARRIVE"):
        try:
            with fleet.wire("web-2") as w:
                answers.append(str(w.welcome))
                w.send(message, field(3, 1) if message == "ARRIVE" else field(3, "1"))
                answers.append(str(w.take()))
        except OSError as e:
            answers.append(str(e))
    check(tap, "its key is refused from then on", "revoked" in " ".join(answers), answers)
    check(tap, "hosts says so", fleet.hosts()["web-2"]["revoked"] and not fleet.hosts()["web-1"]["revoked"])
    nobody = fleet.profctl("hosts", "revoke", "nobody")
    check(tap, "a name that no host has is refused", nobody.returncode != 0 and "no enrolled host" in nobody.stderr,
          nobody.stderr)
    kept = open(os.path.join(fleet.centre.state, "revocations")).read()
    check(tap, "revoked keys and used tokens are in a file that no restore replaces",
          "key " in kept and "token " in kept, kept)


def main():
    folder = tempfile.mkdtemp(prefix="profd-enrol-")
    try:
        with Tap() as tap:
            makes_a_ca(tap, os.path.join(folder, "ca"))
            rolls_a_ca(tap, os.path.join(folder, "ca"))
            with Fleet(os.path.join(folder, "fleet")) as fleet:
                enrols(tap, fleet)
                refuses(tap, fleet)
                sends_and_renews(tap, fleet)
                revokes(tap, fleet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
