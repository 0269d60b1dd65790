"""A centre with a CA of its own: its keys and certificates, and the enrolment of hosts, with the real programs."""
import os
import shutil
import sqlite3
import stat
import tempfile
import time
import uuid

from enrol_bed import ARRIVE, NAMES, Fleet, ca, check, count, secret
from harness import LONG, NOBODY, Daemon, Tap, as_user, run, until
from tls_bed import Authority, openssl
from wire import Wire, field

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
        w.send("ARRIVE", ARRIVE)
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
    with fleet.daemon() as d:
        sent = fleet.sends(d, "web-1")
        until(lambda: (fleet.hosts()["web-1"]["last_segment"] or 0) > 0)
        row = fleet.hosts()["web-1"]
        check(tap, "an enrolled host sends; hosts says tenant, version, lag and the end of the certificate",
              sent and row["tenant"] == "shop" and row["version"] and row["lag_seconds"] >= 0 and row["enrolled"] and
              row["certificate_end"] > time.time() + 29 * 86400 and len(row["identity"]) == 32 and
              row["machine_id"] == machine_id() and not row["two_machines"], row)
        verified = fleet.profctl("verify")
        check(tap, "what it sent is counted, and the centre's sums agree", fleet.counted() == 1 and
              verified.returncode == 0, f"{verified.stdout} {verified.stderr}")
        with sqlite3.connect(os.path.join(fleet.centre.state, "profd.db")) as db:
            uids = [n for n, in db.execute("SELECT uid FROM series")]
        check(tap, "its series belong to its tenant", uids and all(n == 4294967294 - 1 for n in uids), uids)
    text = fleet.profctl("hosts").stdout.splitlines()
    columns = ("host", "identity", "tenant", "certificate until", "last segment", "lag", "version", "machine-id")
    check(tap, "hosts as text has the same columns", all(c in text[0] for c in columns) and
          any(line.startswith("web-1 ") and row["identity"] in line and " shop " in line for line in text[1:]), text)
    answer = fleet.renew("web-2")
    check(tap, "an enrolled host gets its next certificate", "ENROLLED" in answer and "BEGIN CERTIFICATE" in answer and
          open(fleet.host("web-2", "relay.crt")).read() not in answer, answer)


def machine_id():
    return open("/etc/machine-id").read().strip() if os.path.exists("/etc/machine-id") else ""


def knows_keys(tap, fleet):
    fleet.forge("stranger", uuid.uuid4().hex, "shop")
    fleet.forge("thief", fleet.hosts()["web-1"]["identity"], "shop")
    for name, words in (("stranger", "does not know the enrolment"), ("thief", "enrolled with another key")):
        renewed, arrived = fleet.renew(name), fleet.arrive(name)
        check(tap, f"a certificate of a key that was not enrolled ({name}): RENEW and ARRIVE are refused in words",
              "this key was not enrolled" in renewed and words in arrived, (renewed, arrived))
    check(tap, "and nothing was stored for it", "stranger" not in fleet.hosts())


def keeps_texts(tap, fleet):
    for what, answer in (("control characters", fleet.arrive("web-1", "m\x1b[2J")), ("60 bytes more than it may",
                         fleet.arrive("web-1", "", "9" * 123)), ("a newline", fleet.arrive("web-1", "", "1\n2"))):
        check(tap, f"a host whose version or machine-id has {what} is refused in words",
              "printable ASCII" in answer or "at most 63" in answer, answer)
    token = fleet.token()
    for name in ("a\x1b[31mb", "a b", "", "x" * 256, "a\nb"):
        done = fleet.enroll(name, token, directory="texts")
        check(tap, f"a host with the name {name[:9]!r} is not enrolled", done.returncode != 0 and
              "name of the host" in done.stderr and "\x1b" not in done.stderr, done.stderr)
    check(tap, "its token is as good as before", fleet.enroll("texts-1", token, directory="texts").returncode == 0)


def key_kinds(tap, fleet):
    token = secret(fleet.token("--uses", "99"))
    kinds = {"P-256": ("ec", "ec_paramgen_curve:P-256"), "P-384": ("ec", "ec_paramgen_curve:P-384"),
             "Ed25519": ("ed25519",), "RSA of 2048 bits": ("rsa", "rsa_keygen_bits:2048"),
             "P-521": ("ec", "ec_paramgen_curve:P-521"), "secp256k1": ("ec", "ec_paramgen_curve:secp256k1"),
             "RSA of 1024 bits": ("rsa", "rsa_keygen_bits:1024"),
             "RSA with a large exponent": ("rsa", "rsa_keygen_bits:2048", f"rsa_keygen_pubexp:{2**200 + 235}"),
             "a signature of another key": ("ec", "ec_paramgen_curve:P-256")}
    for what, (kind, *options) in kinds.items():
        key, request = fleet.host("kinds.key"), fleet.host("kinds.der")
        openssl("genpkey", "-algorithm", kind, *[x for o in options for x in ("-pkeyopt", o)], "-out", key)
        openssl("req", "-new", "-key", key, "-subj", "/CN=x", "-outform", "DER", "-out", request)
        der = bytearray(open(request, "rb").read())
        if "signature" in what:
            der[-1] ^= 1
        answer = fleet.ask(None, "ENROLL", field(1, bytes(der)) + field(3, token) + field(4, "kinds") + field(6, "1"))
        good = list(kinds).index(what) < 4
        check(tap, f"{what}: {'enrolled' if good else 'refused in words'}", "ENROLLED" in answer if good else
              "the key must be of" in answer or "not signed by its key" in answer, answer)


def rows_of(text):
    return [line for line in text.splitlines() if line.startswith("revoked: ")]


def revokes(tap, fleet):
    token = fleet.token("--tenant", "shop", "--uses", "2")
    other = fleet.token("--tenant", "bank")
    ok = [fleet.enroll("twin", t, directory=d).returncode for t, d in ((token, "twin-1"), (other, "twin-2"))]
    done = fleet.profctl("hosts", "revoke", "twin")
    check(tap, "a name that two hosts have revokes neither, and their identities and tenants are said",
          ok == [0, 0] and done.returncode == 65 and "2 enrolled hosts have the name" in done.stderr and
          "(tenant shop)" in done.stderr and "(tenant bank)" in done.stderr and
          "ENROLLED" in fleet.renew("twin-1") + fleet.renew("twin-2"), done.stderr)
    said = openssl("x509", "-in", fleet.host("twin-2", "relay.crt"), "-noout", "-ext", "subjectAltName")
    identity = said.split("urn:uuid:")[1][:36]
    done = fleet.profctl("hosts", "revoke", identity)
    refused, heard = fleet.refuses_revoked("twin-2")
    check(tap, "an identity revokes that host alone", done.returncode == 0 and rows_of(done.stdout) ==
          [f"revoked: twin, identity {identity.replace('-', '')}, tenant bank"] and refused and
          "ENROLLED" in fleet.renew("twin-1"), (done.stdout, done.stderr, heard))
    with fleet.wire("web-2") as w:
        w.send("ARRIVE", ARRIVE)
        admitted = w.take()[0] == "ADMIT"
        done = fleet.profctl("hosts", "revoke", "web-2")
        w.socket.settimeout(LONG)
        try:
            closed = w.socket.recv(1) == b""
        except OSError:
            closed = True
    check(tap, "hosts revoke closes the connection of the host", admitted and done.returncode == 0 and closed,
          done.stderr)
    check(tap, "its key is refused from then on", *fleet.refuses_revoked("web-2"))
    check(tap, "hosts says so", fleet.hosts()["web-2"]["revoked"] and not fleet.hosts()["web-1"]["revoked"])
    again = fleet.profctl("hosts", "revoke", "web-2")
    check(tap, "the command may be repeated", again.returncode == 0 and len(rows_of(again.stdout)) == 1, again.stderr)
    nobody = fleet.profctl("hosts", "revoke", "nobody")
    check(tap, "a name that no host has is refused", nobody.returncode != 0 and "no enrolled host" in nobody.stderr,
          nobody.stderr)
    kept = open(os.path.join(fleet.centre.state, "revocations")).read()
    check(tap, "revoked keys and used tokens are in a file that no restore replaces",
          "key " in kept and "token " in kept and mode(os.path.join(fleet.centre.state, "revocations")) == 0o600, kept)


def restores(tap, fleet):
    """The backup knows nothing of what is revoked and used up afterwards."""
    open_one, once = fleet.token("--tenant", "shop", "--uses", "9"), fleet.token()
    fleet.enroll("keeper", open_one)
    backup = os.path.join(fleet.folder, "backup")
    done = fleet.centre.ctl("backup", backup)
    check(tap, "a backup is made", done.returncode == 0, done.stderr)
    check(tap, "then a host is revoked, and a token used up", fleet.enroll("late-1", once).returncode == 0 and
          fleet.profctl("hosts", "revoke", "keeper").returncode == 0)
    revoked = fleet.hosts()["keeper"]["revoked"]
    fleet.centre.stop()
    done = run(fleet.centre.program, "--state-dir", fleet.centre.state, "--restore", backup)
    fleet.centre.start()
    until(lambda: "does not answer" not in fleet.arrive("web-1"))
    check(tap, "restored from the backup, hosts says when the host was revoked", done.returncode == 0 and
          revoked and fleet.hosts()["keeper"]["revoked"] == revoked, (done.stderr, revoked, fleet.hosts()["keeper"]))
    check(tap, "its key is refused", *fleet.refuses_revoked("keeper"))
    for what, token, words in (("that was open has expired", open_one, "the token has expired"),
                               ("that was used up stays so", once, "the token is used up")):
        done = fleet.enroll("late-2", token)
        check(tap, f"a token {what}", done.returncode != 0 and words in done.stderr, done.stderr)
    answer = fleet.arrive("late-1")
    check(tap, "a host that was enrolled after the backup is told to enrol again", "enrol the host again" in answer,
          answer)
    os.unlink(fleet.host("late-1", "relay.crt"))
    done = fleet.enroll("late-1", fleet.token())
    check(tap, "which it does with a new token", done.returncode == 0 and "ADMIT" in fleet.arrive("late-1"),
          done.stderr)


def rolls_over(tap, fleet):
    """A new key for the CA, as profd-signer(8) describes it."""
    bundle = os.path.join(fleet.ca, "gate-ca.crt")
    before, old = fleet.token("--uses", "9"), open(bundle).read()
    fleet.enroll("old-1", before)
    fleet.enroll("old-2", before)
    done = ca(fleet.ca, "roll")
    until(lambda: fleet.gate.logged().count("certificates were read") > 0)
    names = [fleet.enroll("new-1", fleet.token()).returncode, fleet.enroll("new-2", before).returncode]
    issued = [openssl("x509", "-in", fleet.host(n, "relay.crt"), "-noout", "-ext", "authorityKeyIdentifier")
              for n in ("old-1", "new-1")]
    check(tap, "after ca roll the new key issues, and tokens of before are good", done.returncode == 0 and
          names == [0, 0] and issued[0] != issued[1], (done.stderr, names, issued))
    answers = [fleet.arrive(n) for n in ("old-1", "new-1", "new-2")]
    check(tap, "certificates of both keys are accepted", all("ADMIT" in a for a in answers), answers)
    with fleet.wire("old-1") as w:
        w.send("RENEW", field(3, "1"))
        answer = w.take()[3]
    for n, name in ((1, "relay.crt"), (2, "relay-ca.crt")):
        with open(fleet.host("old-1", name), "wb") as f:
            f.write(answer[n])
    check(tap, "a host that renews gets the certificate of the new key, too", answer[2].count(b"BEGIN") == 2 and
          "ADMIT" in fleet.arrive("old-1"), answer)
    served = lambda: openssl("x509", "-in", os.path.join(fleet.ca, "gate.crt"), "-noout", "-serial")
    was, read = served(), fleet.gate.logged().count("certificates were read")
    done = ca(fleet.ca, "gate", *NAMES)
    until(lambda: fleet.gate.logged().count("certificates were read") > read)
    with fleet.daemon() as d:
        new, late = fleet.sends(d, "old-1"), fleet.flush(d, "old-2")
        check(tap, "after ca gate, a host that has renewed goes on; one that has not says why it cannot",
              done.returncode == 0 and served() != was and new and late.returncode != 0 and
              "certificate" in late.stderr, (done.stderr, late.stderr))
        stale, fresh = fleet.enroll("new-3", before), fleet.enroll("new-4", fleet.token())
        check(tap, "a token of before names the old key and is refused; a new one is good", stale.returncode != 0 and
              "certificate" in stale.stderr and fresh.returncode == 0, (stale.stderr, fresh.stderr))
        read = fleet.gate.logged().count("certificates were read")
        openssl("x509", "-in", bundle, "-out", bundle + ".new")
        os.rename(bundle + ".new", bundle)
        until(lambda: fleet.gate.logged().count("certificates were read") > read)
        check(tap, "without the old certificate in gate-ca.crt, its hosts are refused; those of the new key are not",
              old.strip() not in open(bundle).read() and "ADMIT" not in fleet.arrive("old-2") and
              fleet.sends(d, "old-1"), fleet.arrive("old-2"))


def beside_a_pki(tap, fleet):
    """Hosts of a site's own PKI, made with openssl, beside those that enrol."""
    site = Authority(fleet.folder, "site")
    with open(os.path.join(fleet.ca, "gate-ca.crt"), "a") as f:
        f.write(open(site.ca).read())
    read = fleet.gate.logged().count("certificates were read")
    until(lambda: fleet.gate.logged().count("certificates were read") > read)
    certificate, key = site.host("site-1.example")
    os.makedirs(fleet.host("site-1"))
    os.rename(certificate, fleet.host("site-1", "relay.crt"))
    os.rename(key, fleet.host("site-1", "relay.key"))
    shutil.copy(os.path.join(fleet.ca, "gate-ca.crt"), fleet.host("site-1", "relay-ca.crt"))
    with fleet.daemon() as d:
        sent = fleet.sends(d, "site-1")
        row = fleet.hosts()["site-1.example"]
    check(tap, "a host of a site's PKI sends beside them, as the tenant default; hosts says that it did not enrol", sent
          and row["tenant"] == "default" and not row["enrolled"] and row["certificate_end"] > time.time(), row)
    renewed = fleet.renew("site-1")
    check(tap, "its certificate is the site's to renew", "not enrolled" in renewed, renewed)
    liar, key = site.issue("liar", ["DNS:liar", "URI:urn:profd:tenant:bank"])
    os.makedirs(fleet.host("liar"))
    os.rename(liar, fleet.host("liar", "relay.crt"))
    os.rename(key, fleet.host("liar", "relay.key"))
    arrived = fleet.arrive("liar")
    check(tap, "a certificate of the site that states a tenant is refused", "does not know the enrolment" in arrived,
          arrived)
    check(tap, "and a host that enrols still does", fleet.enroll("beside", fleet.token()).returncode == 0)


def signs_for_profd_alone(tap, fleet):
    path = fleet.socket
    check(tap, "the signer's socket is of mode 0600", mode(path) == 0o600)
    if os.geteuid() != 0:
        tap.skip("another user is refused", "not root")
        return
    os.chmod(fleet.folder, 0o755)
    os.chmod(os.path.dirname(fleet.folder), 0o755)

    def ask():
        try:
            with Wire(path, hello=False) as w:
                return str(w.take())
        except OSError as e:
            return str(e)
    closed = as_user(NOBODY, ask)
    os.chmod(path, 0o666)
    opened = as_user(NOBODY, ask)
    check(tap, "another user cannot connect; and is refused in words where the mode would allow it",
          "Permission denied" in closed and "may not have certificates signed" in opened, (closed, opened))
    with Wire(path, hello=False) as w:
        w.send("SIGN", field(1, b"no key") + field(2, b"i" * 16) + field(3, "x") + field(4, "y"))
        answer = str(w.take())
    check(tap, "what is no key is not signed", "public key" in answer, answer)
    with Wire(path, hello=False) as w:
        w.send("HELLO", field(1, 1))
        answer = str(w.take())
    check(tap, "and it answers nothing but SIGN", "only SIGN" in answer, answer)


def enrols_again(tap, fleet):
    """A revoked machine gets another identity while its profd runs: the epoch of its segments stays."""
    with fleet.daemon() as d:
        fleet.enroll("phoenix", fleet.token())
        fleet.sends(d, "phoenix")
        before = fleet.counted()
        fleet.profctl("hosts", "revoke", "phoenix")
        count(d, 3)
        refused = fleet.flush(d, "phoenix")
        for name in ("relay.crt", "relay.key"):
            os.unlink(fleet.host("phoenix", name))
        done = fleet.enroll("phoenix", fleet.token("--tenant", "shop"))
        sent = fleet.sends(d, "phoenix")
        relay = d.json("status", "--json")["store"]["relay"]
        check(tap, "a machine that is enrolled again after it was revoked sends what it could not, once",
              refused.returncode != 0 and done.returncode == 0 and sent and fleet.counted() == before + 2 and
              relay["acknowledged"]["uploads"] == relay["accepted"]["uploads"], (refused, done, relay))


def local_users(tap, fleet):
    """Of the centre's machine: only the gate may speak for hosts, and only operators make tokens."""
    if os.geteuid() != 0:
        tap.skip("other users are refused", "not root")
        return
    os.chmod(fleet.centre.folder, 0o755)
    known = lambda: {(h["identity"], h["revoked"]) for h in fleet.hosts().values()}
    before = known()

    def ask():
        said = []
        for kind, message in (("ENROLL", field(2, b"key") + field(3, b"s") + field(4, "mine")),
                              ("RENEW", field(1, b"key")), ("LIST_REVOKED", field(1, 1))):
            with Wire(fleet.centre.socket) as w:
                w.send(kind, message)
                said.append(str(w.take()))
        for verb in (("enrol-token", "default", "1", "60"), ("hosts",), ("revoke", "web-1")):
            with Wire(fleet.centre.socket) as w:
                said.append(str(w.admin(*verb)))
        return said
    said = as_user(NOBODY, ask)
    check(tap, "another user may not send ENROLL, RENEW and LIST_REVOKED, make tokens, list hosts or revoke them",
          len(said) == 6 and all("user 65534" in s for s in said) and known() == before, said)


def main():
    folder = tempfile.mkdtemp(prefix="profd-enrol-")
    try:
        with Tap() as tap:
            makes_a_ca(tap, os.path.join(folder, "ca"))
            rolls_a_ca(tap, os.path.join(folder, "ca"))
            with Fleet(os.path.join(folder, "fleet")) as fleet:
                for part in (enrols, refuses, sends_and_renews, knows_keys, keeps_texts, key_kinds, revokes,
                             enrols_again, local_users, restores, beside_a_pki, signs_for_profd_alone):
                    part(tap, fleet)
            with Fleet(os.path.join(folder, "roll")) as fleet:
                rolls_over(tap, fleet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
