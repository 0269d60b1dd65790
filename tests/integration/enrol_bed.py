# not a test
"""A centre with a CA of its own, the real programs, and hosts that enrol there."""
import base64
import json
import os
import socket
import ssl
import subprocess
import uuid

from clocks import clock
from harness import BUILD, LONG, Daemon, free_port, run, until
from relaying import body
from tls_bed import GATE, RELAY, Service, TlsWire, openssl
from wire import Wire, field, sender_number

SIGNER, PROFCTL = os.path.join(BUILD, "profd-signer"), os.path.join(BUILD, "profctl")
DAY = 86400
NAMES = ("localhost", "127.0.0.1", "::1")
ARRIVE = field(4, 1) + field(5, 1) + field(6, 9)


def check(tap, name, ok, detail=""):
    return tap.point(ok, name, detail)


def ca(folder, *arguments):
    return run(PROFCTL, "ca", *arguments, "--dir", folder, timeout=LONG)


def count(d, calls, build="7a" * 20):
    """A program on the host of d counts, and is answered."""
    with Wire(d.socket) as w:
        w.send("UPLOAD", body(sender_number(), 1, build, 0, calls))
        while w.take()[0] != "ACK":
            pass


def secret(token):
    return base64.urlsafe_b64decode(token[len("profd1-"):])[32:]


class Fleet:
    """A centre in a folder: signer, daemon and gate. ahead: of its clock, seconds."""

    def __init__(self, folder, ahead=0):
        self.folder, self.ca, self.hosts_made = folder, os.path.join(folder, "ca"), []
        os.makedirs(folder)
        made = ca(self.ca, "init", *NAMES)
        if made.returncode:
            raise RuntimeError(made.stderr)
        self.socket, self.port = os.path.join(folder, "signer.sock"), free_port()
        self.centre = Daemon("--gate", "--relay-interval", "1s", "--signer", self.socket, start=False)
        self.gate = Service(GATE, folder, "gate", socket=self.centre.socket, signer=self.socket,
                            gate_certificate=os.path.join(self.ca, "gate.crt"),
                            gate_key=os.path.join(self.ca, "gate.key"), gate_ca=os.path.join(self.ca, "gate-ca.crt"),
                            gate_listen=f"[::]:{self.port}")
        self.plain = dict(self.centre.env)
        self.begin(ahead)

    def begin(self, ahead=0):
        env = clock(ahead)
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        with open(os.path.join(self.folder, "signer.log"), "ab") as log:
            self.signer = subprocess.Popen([SIGNER, "--dir", self.ca, "--socket", self.socket], stderr=log, env=env,
                                           stdin=subprocess.DEVNULL)
        until(lambda: os.path.exists(self.socket))
        self.centre.env = dict(self.plain, **{k: v for k, v in env.items() if k.startswith(("FAKE", "LD_PRE"))})
        self.centre.start()
        self.gate.start(env=env)
        until(self.reaches)

    def end(self):
        self.gate.stop()
        self.signer.kill()
        self.signer.wait()
        self.centre.stop()

    def move(self, ahead):
        """Everything of the centre starts again with another clock."""
        self.end()
        self.begin(ahead)

    def reaches(self):
        try:
            with socket.create_connection(("localhost", self.port)):
                return True
        except OSError:
            return False

    def profctl(self, *arguments):
        return run(PROFCTL, arguments[0], "--socket", self.centre.socket, *arguments[1:], timeout=LONG)

    def token(self, *arguments):
        done = self.profctl("invite", *arguments)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def enroll(self, name, token, directory=None, env=None):
        return run(PROFCTL, "enroll", f"tls://localhost:{self.port}", "--token", token, "--name", name, "--dir",
                   self.host(directory or name), timeout=LONG, env=env)

    def host(self, name, *file):
        return os.path.join(self.folder, name, *file)

    def hosts(self):
        return {h["name"]: h for h in json.loads(self.profctl("hosts", "--json").stdout)["rows"]}

    def counted(self):
        return self.centre.json("status", "--json")["store"]["centre"]["counted"]["uploads"]

    def context(self, name=None):
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        c.load_verify_locations(os.path.join(self.ca, "gate-ca.crt"))
        if name:
            c.load_cert_chain(self.host(name, "relay.crt"), self.host(name, "relay.key"))
        return c

    def wire(self, name=None):
        return TlsWire(self, context=self.context(name))

    def ask(self, name, kind, message):
        """What the gate answers to one frame, as text; how the connection ended, if it gives none."""
        try:
            with self.wire(name) as w:
                w.send(kind, message)
                return f"{w.welcome} {w.take()}"
        except OSError as e:
            return str(e)

    def renew(self, name, again=True):
        """again: also if the host has renewed in this second."""
        answers = []
        until(lambda: answers.append(self.ask(name, "RENEW", field(3, "1"))) or
              not (again and "in this second" in answers[-1]))
        return answers[-1]

    def arrive(self, name, machine="", version="1"):
        return self.ask(name, "ARRIVE", ARRIVE + field(9, machine) + field(10, version))

    def refuses_revoked(self, name):
        """What RENEW and ARRIVE of a revoked host are answered. The gate closes a connection when it learns of it,
        maybe before the answer; then it is asked again."""
        heard = []
        for ask in (self.renew, self.arrive):
            until(lambda: heard.append(ask(name)) or "revoked" in heard[-1])
        return not any("ENROLLED" in a or "ADMIT" in a for a in heard), heard

    def daemon(self, ahead=0, start=True):
        """The profd of a host."""
        d = Daemon("--relay", f"tls://localhost:{self.port}", start=False)
        d.env.update({k: v for k, v in clock(ahead).items() if k.startswith(("FAKE", "LD_PRE"))})
        return d.start() if start else d

    def relay(self, d, name, **keys):
        return Service(RELAY, self.folder, f"relay-{name}", **{
            "socket": d.socket, "relay": f"tls://localhost:{self.port}",
            "relay_certificate": self.host(name, "relay.crt"), "relay_key": self.host(name, "relay.key"),
            "relay_ca": self.host(name, "relay-ca.crt"), "relay_interval": "1s", **keys})

    def flush(self, d, name, env=None, **keys):
        """One flush of the host's relay: what it did."""
        r = self.relay(d, name, **keys)
        return run(r.program, "--config", r.file, "--once", timeout=LONG, env=env)

    def sends(self, d, name, env=None):
        """Does what the host counts now reach the centre?"""
        before = self.counted()
        count(d, 1)
        return until(lambda: self.flush(d, name, env).returncode == 0 and self.counted() > before)

    def forge(self, name, identity, tenant="default"):
        """A certificate for a new key, signed by the CA's key behind the centre's back."""
        os.makedirs(self.host(name))
        key, request, extensions = (self.host(name, n) for n in ("relay.key", "csr", "ext"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out",
                request, "-subj", f"/CN={name}")
        with open(extensions, "w") as f:
            f.write(f"subjectAltName=DNS:{name},URI:urn:uuid:{uuid.UUID(identity)},URI:urn:profd:tenant:{tenant}\n")
        openssl("x509", "-req", "-in", request, "-CA", os.path.join(self.ca, "gate-ca.crt"), "-CAkey",
                os.path.join(self.ca, "ca.key"), "-set_serial", "77", "-extfile", extensions, "-days", "7", "-out",
                self.host(name, "relay.crt"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        with open(os.path.join(self.folder, "signer.log")) as f:
            for said in (self.gate.logged(), f.read()):
                if "Sanitizer" in said or "runtime error:" in said:
                    print(said)
        self.centre.__exit__(None, None, None)
