# not a test
"""What tests of the fleet's network share: certificates made by openssl, profd-gate and profd-relay as processes, and
the protocol spoken by hand over TLS."""
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import uuid

from harness import BUILD, LONG, free_port, run, until
from https_bed import openssl
from wire import Wire, field

RELAY, GATE = os.path.join(BUILD, "profd-relay"), os.path.join(BUILD, "profd-gate")


class Authority:
    """A CA in a folder; issue() makes a key and a certificate."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        self.ca, self.key = (os.path.join(folder, f"{name}.{end}") for end in ("crt", "key"))
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                self.key, "-out", self.ca, "-subj", f"/CN={name}", "-days", "30")

    def issue(self, name, alternatives=(), days=7, serial=None):
        """(certificate, key); days below 0: it has expired."""
        base = os.path.join(self.folder, f"{self.name}-{name}")
        request, extensions = base + ".csr", base + ".ext"
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                base + ".key", "-out", request, "-subj", f"/CN={name}")
        os.chmod(base + ".key", 0o600)
        with open(extensions, "w") as f:
            f.write(f"subjectAltName={','.join(alternatives)}\n" if alternatives else "basicConstraints=CA:FALSE\n")
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.key, "-set_serial",
                str(serial or int.from_bytes(os.urandom(8), "big")), "-extfile", extensions, "-days", str(days), "-out",
                base + ".crt")
        return base + ".crt", base + ".key"

    def host(self, name, number=None, **options):
        """Certificate and key of a host with an identity; number makes that known."""
        return self.issue(name, [f"DNS:{name}", f"URI:urn:uuid:{uuid.UUID(int=number or uuid.uuid4().int)}"], **options)


class Service:
    """A program with its configuration in a file of its own."""

    def __init__(self, program, folder, name, **keys):
        self.program, self.process = program, None
        self.file, self.log = (os.path.join(folder, f"{name}.{end}") for end in ("conf", "log"))
        self.configure(**keys)

    def configure(self, **keys):
        with open(self.file, "w") as f:
            f.write("".join(f"{k.replace('_', '-')} = {v}\n" for k, v in keys.items() if v is not None))

    def start(self, *options, **more):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.program, "--config", self.file, *options], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, **more)
        return self

    def logged(self):
        return open(self.log, errors="replace").read() if os.path.exists(self.log) else ""

    def stop(self, kill=True):
        if self.process and self.process.poll() is None:
            (self.process.kill if kill else self.process.terminate)()
        return self.process.wait(LONG) if self.process else None


class Bed:
    """A CA, unless there is one, the centre's certificate, and a gate in front of a Unix socket."""

    def __init__(self, socket_path, address="[::]", authority=None, **keys):
        self.folder = tempfile.mkdtemp(prefix="profd-tls-")
        self.authority, self.port = authority or Authority(self.folder), free_port()
        names = ("DNS:localhost", "DNS:centre.example", "IP:127.0.0.1", "IP:::1")
        certificate, key = self.authority.issue(f"centre-{self.port}", names)
        self.revoked = os.path.join(self.folder, "revoked")
        open(self.revoked, "w").close()
        self.keys = {"socket": socket_path, "gate_certificate": certificate, "gate_key": key,
                     "gate_ca": self.authority.ca, "gate_revoked": self.revoked,
                     "gate_listen": f"{address}:{self.port}", **keys}
        self.gate = Service(GATE, self.folder, "gate", **self.keys)

    def start(self):
        self.gate.start()
        return until(lambda: self.reaches() or self.gate.process.poll() is not None) and self.reaches()

    def reaches(self):
        try:
            with socket.create_connection(("localhost", self.port)):
                return True
        except OSError:
            return False

    def relay(self, d, name, pair, **keys):
        """profd-relay beside the daemon of a host."""
        given = {"socket": d.socket, "relay": f"tls://localhost:{self.port}", "relay_certificate": pair[0],
                 "relay_key": pair[1], "relay_ca": self.authority.ca, "relay_interval": "1s", **keys}
        return Service(RELAY, self.folder, name, **given)

    def context(self, pair=None):
        """Of a client of the gate."""
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        c.load_verify_locations(self.authority.ca)
        if pair:
            c.load_cert_chain(*pair)
        return c

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gate.stop()
        if "Sanitizer" in self.gate.logged() or "runtime error:" in self.gate.logged():
            print(self.gate.logged())
        shutil.rmtree(self.folder, ignore_errors=True)


def relay_once(r):
    """One flush of profd-relay."""
    return run(r.program, "--config", r.file, "--once", timeout=LONG)


class TlsWire(Wire):
    """The protocol by hand, over TLS."""

    def __init__(self, bed, pair=None, hello=True, context=None, address="localhost"):
        self.plain = socket.create_connection((address, bed.port), LONG)
        self.socket = (context or bed.context(pair)).wrap_socket(self.plain, server_hostname="localhost")
        self.buffer, self.welcome = b"", None
        if hello:
            self.send("HELLO", field(1, 1) + field(2, 1) + field(3, "tls_bed.py"))
            self.welcome = self.take()

    def send(self, kind, body=b"", tag=1, flags=0, fds=()):
        from wire import header
        self.socket.sendall(header(kind, tag, len(body), flags) + body)
