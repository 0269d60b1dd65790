"""A centre with a CA of its own: its keys and certificates, and the enrolment of hosts, with the real programs."""
import os
import shutil
import stat
import tempfile

from harness import BUILD, LONG, Tap, run
from tls_bed import openssl

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


def main():
    folder = tempfile.mkdtemp(prefix="profd-enrol-")
    try:
        with Tap() as tap:
            makes_a_ca(tap, os.path.join(folder, "ca"))
            rolls_a_ca(tap, os.path.join(folder, "ca"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
