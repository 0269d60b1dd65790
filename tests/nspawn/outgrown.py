"""profd.service with its data in ClickHouse, in a booted systemd-nspawn container: the installed unit, as its user,
with the drop-in of profd(8), which opens exactly the address of the server.

outgrown.py ROOT    ROOT as of nspawn.py. The server of ClickHouse is this machine's, whose /usr the container sees

Prints TAP, and behind it what the service wrote to the journal. Needs root. Not part of make check: `make nspawn` runs
it."""
import json
import os
import re
import shutil
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "integration")]
from centre import Gate  # noqa: E402
from clickhouse_bed import NOBODY, PASSWORD, PROGRAM, Server  # noqa: E402
from container import Container, wait_for, write  # noqa: E402
from harness import ROOT, Daemon, Tap  # noqa: E402
from judge import calls_of, difference  # noqa: E402
from relaying import BUILDS, body  # noqa: E402
from wire import Wire, sender_number  # noqa: E402

UNITS = ("profd.socket", "profd-http.socket", "profd.service")
BELOW, SHARED = "srv/clickhouse", "/opt/machine"  # of the container: the server's folder, and this machine's /usr
OPEN, CLOSED = "127.0.0.1", "127.0.0.2"           # addresses at which the server listens
DROP_IN = "etc/systemd/system/profd.service.d/store.conf"


class Centre:
    """profd.service, asked from outside as Daemon is."""

    def __init__(self, c):
        self.c, self.socket = c, f"/proc/{c.leader}/root/run/profd/profd.sock"

    def json(self, *arguments):
        done = self.c.do("profctl", *arguments)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    def configure(self, address, port):
        """Starts the service anew with a store there."""
        write(self.c, "etc/profd.conf", f"gate = yes\nrelay-interval = 1s\nstore-password = /etc/profd/store.password\n"
                                        f"store = clickhouse://writer@{address}:{port}/profd\n")
        self.c.do("systemctl", "daemon-reload")
        return self.c.do("systemctl", "restart", "profd.service").returncode == 0


def drop_in(address):
    """As the manual has it, but for the addresses."""
    with open(os.path.join(ROOT, "daemon/profd.8")) as f:
        text = re.search(r"\n(\[Service\]\nPrivateNetwork=no\n.*?)\n\.Ed", f.read(), re.S).group(1)
    return re.sub(r"(?m)^IPAddressAllow=.*$", f"IPAddressAllow={address}", text) + "\n"


def start_server(c):
    """The server of ClickHouse as a unit in the container."""
    folder = os.path.join(c.root, BELOW)
    os.makedirs(folder)
    server = Server(folder)
    server.configure("")
    for name in ("config.xml", "users.xml"):
        path = os.path.join(folder, name)
        with open(path) as f:
            text = f.read().replace(folder, f"/{BELOW}")
        with open(path, "w") as f:
            f.write(text.replace(f"<listen_host>{OPEN}</listen_host>",
                                 "".join(f"<listen_host>{a}</listen_host>" for a in (OPEN, CLOSED))))
    libraries = f"{SHARED}/lib/x86_64-linux-gnu"
    done = c.do("systemd-run", "--quiet", "--unit=clickhouse", "-p", f"User={NOBODY}", "-p",
                f"WorkingDirectory=/{BELOW}", "-E", f"HOME=/{BELOW}", f"{libraries}/ld-linux-x86-64.so.2",
                "--library-path", libraries, PROGRAM.replace("/usr", SHARED, 1), f"--config-file=/{BELOW}/config.xml")
    return server.http, done


def boots(tap, c):
    """systemd filters addresses by programs in the kernel, which the container may load."""
    booted = c.boot("--private-network", f"--bind-ro=/usr:{SHARED}", "--system-call-filter=bpf",
                    "--capability=CAP_BPF,CAP_PERFMON")
    tap.point(booted, "the container boots", open(os.path.join(c.folder, "console"), errors="replace").read()[-2000:])
    port, done = start_server(c)
    write(c, "etc/profd/store.password", PASSWORD + "\n", "profd", 0o400)

    def made(address):
        return c.do("profctl", "clickhouse", "init", "--password-file", "/etc/profd/store.password",
                    f"clickhouse://writer@{address}:{port}/profd")
    tap.point(wait_for(lambda: made(OPEN).returncode == 0) and made(CLOSED).returncode == 0,
              "profctl reaches ClickHouse at both of its addresses",
              (done, made(OPEN), c.do("journalctl", "-b", "--no-pager", "-u", "clickhouse").stdout[-2000:]))
    return port


def upload(host, sender, sequence):
    with Wire(host.socket) as w:
        w.send("UPLOAD", body(sender, sequence, BUILDS[sequence % len(BUILDS)], sequence % 7, 1 + sequence % 5))
        while w.take()[0] != "ACK":
            pass


def refusal(centre, gate):
    """The sentences to a host and to a reader while the store is away."""
    with Wire(centre.socket) as w:
        kind, m = gate.arrive(w)
        status, text = w.query(f"/api/v1/builds/{BUILDS[0]}/report")[:2]
    return m.get(4, b"").decode() if kind == "NACK" else "", status, text.decode()


def closed(tap, centre, gate, port):
    """The unit as it is shipped."""
    started, c = centre.configure(OPEN, port), centre.c
    tap.point(not started and c.show("ExecMainStatus") == "78", "the database of before is not passed over in silence",
              c.show("ExecMainStatus"))
    c.do("systemctl", "stop", "profd.socket", "profd-http.socket", "profd.service")
    c.do("mv", "/var/lib/profd/profd.db", "/root")
    c.do("systemctl", "start", "profd.socket", "profd-http.socket")
    started = centre.configure(OPEN, port)
    told, status, text = refusal(centre, gate)
    tap.point(started and all("profd(8)" in t and "drop-in" in t for t in (told, text)) and status == 503,
              "without the drop-in hosts and readers are told what to do", (told, status, text))


def opened(tap, centre, gate, host, port):
    c, sender = centre.c, sender_number()
    write(c, DROP_IN, drop_in(OPEN))
    started = centre.configure(OPEN, port)
    for i in range(1, 40):
        upload(host, sender, i)
    while gate.round():
        pass
    want, got = calls_of(host), calls_of(centre)
    tap.point(started and want == got and len(got) == len(BUILDS),
              f"with it segments are taken and reports are answered: {sum(n[0] for n in got.values())} calls",
              difference(want, got))
    status = {line.split(":")[0]: line.split()[1:] for line in open(f"/proc/{c.daemon()}/status") if ":" in line}
    own = c.do("id", "-u", "profd").stdout.strip()
    tap.point(status["Uid"] == [own] * 4 and status["NoNewPrivs"] == ["1"] and status["CapEff"] == ["0" * 16]
              and status["Seccomp"] == ["2"], "as its user, without capabilities, with filtered system calls",
              {k: status[k] for k in ("NoNewPrivs", "CapEff", "Seccomp", "Uid")})
    security = c.do("systemd-analyze", "security", "--no-pager", "--threshold=14", "profd.service")
    tap.point(security.returncode == 0, f"systemd-analyze security: "
              f"{(security.stdout.strip().splitlines() or ['?'])[-1]}", security.stdout[-1500:])
    seen = c.do("sh", "-c", "cd /proc/$(systemctl show -P MainPID profd) && cat cmdline environ").stdout
    log = c.do("journalctl", "-b", "--no-pager", "-u", "profd").stdout
    tap.point(PASSWORD not in seen + log, "the password is neither in its arguments, its environment nor the journal")


def other(tap, centre, gate, port):
    """What the drop-in does not name stays closed, although the server listens there."""
    started = centre.configure(CLOSED, port)
    told, status, text = refusal(centre, gate)
    tap.point(started and status == 503 and CLOSED in told and CLOSED in text,
              f"another address stays closed: {told}", (told, status, text))
    centre.configure(OPEN, port)
    tap.point(set(calls_of(centre)) == set(BUILDS), "with the open one again all is there")


def hangs(tap, centre, gate, host):
    """While ClickHouse hangs, the watchdog does not end the service."""
    c, before = centre.c, centre.c.show("NRestarts")
    server = int(c.show("MainPID", "clickhouse"))
    c.do("kill", "-STOP", server)
    upload(host, sender_number(), 1)
    told, status, text = refusal(centre, gate)
    c.do("kill", "-CONT", server)
    tap.point("does not answer" in told and status == 503, "ClickHouse hangs: hosts and readers are told so",
              (told, status, text))
    while gate.round():
        pass
    want, got = calls_of(host), calls_of(centre)
    tap.point(want == got and c.show("NRestarts") == before and c.show("ActiveState") == "active",
              "it goes on: all is there, and the service was not restarted", (difference(want, got),
                                                                              c.show("NRestarts")))
    os.kill(c.daemon(), signal.SIGKILL)
    tap.point(wait_for(lambda: c.show("NRestarts") != before and c.show("ActiveState") == "active")
              and calls_of(centre) == want, "killed, it is started again by systemd, and all is there")


def main():
    folder = tempfile.mkdtemp(prefix="profd-nspawn-")
    with Tap() as tap:
        if not PROGRAM:
            tap.skip("profd.service with ClickHouse", "clickhouse-server is not installed")
            return
        c = Container(os.path.abspath(sys.argv[1]), folder, UNITS)
        try:
            port = boots(tap, c)
            with Daemon("--relay", "tls://c:1") as host:
                centre = Centre(c)
                gate = Gate(host, centre, "host-1.example")
                closed(tap, centre, gate, port)
                opened(tap, centre, gate, host, port)
                other(tap, centre, gate, port)
                hangs(tap, centre, gate, host)
        finally:
            said = c.do("journalctl", "-b", "--no-pager", "-o", "short-monotonic", "-u", "profd*").stdout
            print("".join(f"# {line}\n" for line in said.splitlines()[-100:]))
            c.stop()
            shutil.rmtree(folder, ignore_errors=True)


main()
