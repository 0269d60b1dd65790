"""Many who want to enrol, and few who may: what a flood at the gate, a host that renews without end and a signer that
hangs leave to the others; and what the hosts of one tenant leave to those of another."""
import os
import shutil
import signal
import socket
import ssl
import tempfile
import threading

from enrol_bed import Fleet, check
from harness import LONG, Tap, until
from tls_bed import TlsWire, openssl
from wire import field

MOST = 128  # connections without a certificate: LIMIT_GATE_WITHOUT_CERTIFICATE


class From(TlsWire):
    """A connection from another address of this machine."""

    def __init__(self, fleet, address, name=None):
        self.plain = socket.create_connection(("127.0.0.1", fleet.port), LONG, source_address=(address, 0))
        self.socket = fleet.context(name).wrap_socket(self.plain, server_hostname="localhost")
        self.buffer = b""
        self.send("HELLO", field(1, 1) + field(2, 1) + field(3, "flood"))
        self.welcome = self.take()


def request(fleet):
    key, der = fleet.host("flood.key"), fleet.host("flood.der")
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-subj",
            "/CN=x", "-outform", "DER", "-out", der)
    with open(der, "rb") as f:
        return f.read()


def idle(tap, fleet, d):
    """Connections without a certificate that send nothing."""
    wires, refused = [], 0
    for i in range(2 * MOST):
        try:
            wires.append(From(fleet, f"127.0.0.{2 + i % 2}"))
        except OSError:
            refused += 1
    open_ones = 0
    for w in wires:
        w.socket.setblocking(False)
        try:
            w.socket.recv(1)  # the end, or that the time is over
        except ssl.SSLWantReadError:
            open_ones += 1
        except OSError:
            pass
    check(tap, f"{2 * MOST} connections without a certificate hold at most {MOST} places", open_ones <= MOST,
          (open_ones, refused))
    check(tap, "a host with a certificate sends beside them", fleet.sends(d, "web-1"))
    for w in wires:
        w.close()


class Flood(threading.Thread):
    def __init__(self, fleet, address, frame):
        super().__init__(daemon=True)
        self.fleet, self.address, self.frame, self.ended, self.answers = fleet, address, frame, False, []
        self.start()

    def run(self):
        while not self.ended:
            try:
                with From(self.fleet, self.address) as w:
                    w.send("ENROLL", self.frame)
                    self.answers.append(str(w.take()))
            except OSError as e:
                self.answers.append(str(e))


def guesses(tap, fleet, d):
    """Guessed tokens, from one address, as fast as it goes."""
    der = request(fleet)
    before = set(fleet.hosts())
    floods = [Flood(fleet, "127.0.0.9", field(1, der) + field(3, os.urandom(25)) + field(4, "guess")) for _ in range(4)]
    until(lambda: any("enrol in this second" in a for f in floods for a in list(f.answers)))
    sent = fleet.sends(d, "web-1")
    done = fleet.enroll("welcome", fleet.token())
    for f in floods:
        f.ended = True
    for f in floods:
        f.join(LONG)
    answers = [a for f in floods for a in f.answers]
    said = {"no such token": 0, "enrol in this second": 0}
    for a in answers:
        for words in said:
            said[words] += words in a
    check(tap, "guessed tokens are refused in words, and most are not looked at: too many in a second",
          all(said.values()), (said, answers[:3]))
    check(tap, "meanwhile a host sends, and one at another address enrols at once", sent and done.returncode == 0 and
          "two minutes" not in done.stderr, done.stderr)
    check(tap, "nothing was stored for the others", set(fleet.hosts()) == before | {"welcome"}, fleet.hosts())


def patience(tap, fleet):
    """profctl enroll asks again by itself while its address has used up its share."""
    der = request(fleet)
    floods = [Flood(fleet, "127.0.0.1", field(1, der) + field(3, os.urandom(25)) + field(4, "guess")) for _ in range(4)]
    until(lambda: any("enrol in this second" in a for f in floods for a in list(f.answers)))
    token, done = fleet.token("--uses", "99"), []
    for i in range(9):
        done.append(fleet.enroll(f"patient-{i}", token))
        if "two minutes" in done[-1].stderr:
            break
    for f in floods:
        f.ended = True
    for f in floods:
        f.join(LONG)
    check(tap, "profctl enroll goes on by itself after the gate was busy", all(x.returncode == 0 for x in done),
          [x.stderr for x in done])


def renewals(tap, fleet):
    """A host that renews without end."""
    answers = []
    until(lambda: answers.append(fleet.renew("web-1", again=False)) or
          "has renewed its certificate in this second" in answers[-1])
    other = fleet.renew("web-2")
    check(tap, "a host renews once a second, so that others can, too", "ENROLLED" in answers[0] and "ENROLLED" in other,
          (answers[-1], other))


def hanging_signer(tap, fleet, d):
    fleet.signer.send_signal(signal.SIGSTOP)
    try:
        done = fleet.profctl("invite")
        renewed, again = fleet.renew("web-2"), fleet.renew("web-1")
        sent = fleet.sends(d, "web-1")
    finally:
        fleet.signer.send_signal(signal.SIGCONT)
    check(tap, "a signer that hangs: tokens and renewals are refused in words, and segments go on", done.returncode != 0
          and all("profd-signer does not answer" in said for said in (done.stderr, renewed, again)) and sent,
          (done.stderr, renewed, again))
    check(tap, "when it goes on, renewals do", until(lambda: "ENROLLED" in fleet.renew("web-2")))


def main():
    folder = tempfile.mkdtemp(prefix="profd-enrol-")
    try:
        with Tap() as tap, Fleet(os.path.join(folder, "fleet")) as fleet, fleet.daemon() as d:
            token = fleet.token("--uses", "2")
            for name in ("web-1", "web-2"):
                fleet.enroll(name, token)
            idle(tap, fleet, d)
            guesses(tap, fleet, d)
            patience(tap, fleet)
            renewals(tap, fleet)
            hanging_signer(tap, fleet, d)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
