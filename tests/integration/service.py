"""profd as a service: what it tells its manager, ends under load, crashes by the dozen, HTTP from outside,
units."""
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import harness
from daemon import Daemon, Load, total
from harness import LONG, PROFD, ROOT, Tap, free_port, parse_response, run, until
from wire import Wire, sender_number, upload


def stop_under_load(tap):
    """SIGTERM while the senders go on: what was acknowledged is there, the rest can be sent again."""
    with Daemon(start=False) as d:
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(os.path.join(d.folder, "notify"))
        manager.settimeout(LONG)
        d.env["NOTIFY_SOCKET"], d.env["WATCHDOG_USEC"] = os.path.join(d.folder, "notify"), "200000"
        d.start()
        loads = [Load(d.socket) for _ in range(4)]
        for load in loads:
            load.start()
        said = [manager.recv(100) for _ in range(3)]

        def hear():  # all the time: the kernel keeps few datagrams for who does not listen
            while said[-1] != b"STOPPING=1":
                said.append(manager.recv(100))
        hearing = threading.Thread(target=hear, daemon=True)
        hearing.start()
        until(lambda: min(len(load.acked) for load in loads) >= 50)
        status = d.stop()
        for load in loads:
            load.stop = True
        for thread in (*loads, hearing):
            thread.join(LONG)
        tap.point(status == 0, "SIGTERM while senders go on: exit 0", (status, d.logged()[-600:]))
        tap.point(said[0] == b"READY=1" and said[-1] == b"STOPPING=1" and set(said[1:-1]) == {b"WATCHDOG=1"},
                  f"READY=1, {len(said) - 2} times WATCHDOG=1, STOPPING=1, in this order", said[:3] + said[-3:])
        d.env.pop("NOTIFY_SOCKET"), d.env.pop("WATCHDOG_USEC")
        d.start()
        acked, counted, sent = sum(len(x.acked) for x in loads), total(d), sum(x.sent for x in loads)
        tap.point(200 <= acked <= counted <= sent, f"{acked} acknowledged, {counted} stored, {sent} sent")
        lost = 0
        for load in loads: # each acknowledged id must be known
            with Wire(d.socket) as w:
                for n in sorted(load.acked):
                    w.send("UPLOAD", upload(load.sender, n), n)
                    while (answer := w.take())[0] == "WANT_OBJECT":
                        pass
                    lost += not (answer[0] == "ACK" and answer[3].get(1))
        tap.point(lost == 0 and total(d) == counted, "each of the acknowledged is a duplicate now: none was lost", lost)


def frozen(tap):
    """A process that has stopped working does not tell its watchdog that it works."""
    with Daemon(start=False) as d:
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(os.path.join(d.folder, "notify"))
        d.env["NOTIFY_SOCKET"], d.env["WATCHDOG_USEC"], d.env["WATCHDOG_PID"] = os.path.join(d.folder,
                "notify"), "200000", "1"
        d.start()
        manager.settimeout(LONG)
        said = [manager.recv(100)]
        manager.settimeout(1)
        try:
            while True:
                said.append(manager.recv(100))
        except socket.timeout:
            pass
        tap.point(said == [b"READY=1"], "a watchdog for another process is none of ours", said)


def many_crashes(tap):
    """kill -9 twenty times at random moments under load; every id is then sent again."""
    seed = int(os.environ.get("SEED", "1"))
    rng = random.Random(seed)
    with Daemon() as d:
        loads = [Load(d.socket) for _ in range(3)]
        for load in loads:
            load.start()
        for _ in range(20):
            before = sum(len(load.acked) for load in loads)
            until(lambda: sum(len(load.acked) for load in loads) > before + rng.randrange(60))
            time.sleep(rng.random() * 0.02)
            d.stop(signal.SIGKILL)
            d.start()
        for load in loads:
            load.stop = True
        for load in loads:
            load.join(LONG)
        acked, sent, lost = sum(len(load.acked) for load in loads), sum(load.sent for load in loads), 0
        for load in loads:
            with Wire(d.socket) as w:
                for n in range(1, load.sent + 1):
                    w.send("UPLOAD", upload(load.sender, n), n)
                    while (answer := w.take())[0] == "WANT_OBJECT":
                        pass
                    lost += n in load.acked and not (answer[0] == "ACK" and answer[3].get(1))
        counted = total(d)
        tap.point(lost == 0 and counted == sent and acked >= 20,
                  f"20 times kill -9: {acked} acknowledged, 0 lost, 0 double of {sent} (seed {seed})",
                  (lost, counted))
        tap.point(run("pgrep", "-g", str(os.getpgid(d.process.pid)), "profd-elf").stdout.count("\n") <= 2
                  or until(lambda: run("pgrep", "-g", str(os.getpgid(d.process.pid)),
                                          "profd-elf").stdout.count("\n") <= 2),
                  "no broker of a killed daemon is left")


def spool_crash(tap):
    """profctl against a daemon that dies: what it could not deliver is in the spool, and comes once."""
    with Daemon() as d:
        exe = os.path.join(harness.programs(os.path.join(d.folder, "programs")), "cycle")
        from example_gmon import example
        gmon = example(exe, os.path.join(d.folder, "one.gmon"))
        delivered = 0
        for n in range(6):
            p = subprocess.Popen([harness.PROFCTL, "upload", "-e", exe, *[gmon] * 40], env=d.env,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(0.005 * n)
            d.stop(signal.SIGKILL)
            said = p.communicate(timeout=LONG)[1]
            # it may be killed while it takes the executable: the profiles are stored, and profctl says what is not
            if p.returncode != 0 and (p.returncode != 69 or b"executable not stored" not in said):
                tap.point(False, "profctl without a daemon", (p.returncode, said))
            delivered += 40
            d.start()
        done = d.ctl("upload", "-e", exe, gmon)  # takes what waits in the spool along
        delivered += 1
        tap.point(done.returncode == 0 and d.json("builds", "--json")["rows"][0]["uploads"] == delivered,
                  f"6 kills under profctl upload: {delivered} uploads counted once",
                  (done, d.json("builds", "--json")["rows"]))


def ask(address, request, end=True):
    """(status, headers, body) of raw bytes over a socket, or None when it was closed without an answer."""
    s = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    s.settimeout(LONG)
    s.connect(address)
    s.sendall(request)
    data = b""
    try:
        while piece := s.recv(65536):
            data += piece
            if not end and b"\r\n\r\n" in data:
                break
    except ConnectionResetError:
        pass
    s.close()
    return parse_response(data) if data else None


ATTACKS = ( # (name, request, status)
    ("two Hosts", b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    ("no Host", b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    ("length and chunks", b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                          b"0\r\n\r\n", 400),
    ("two lengths", b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 30\r\n\r\nGET /metrics "
                    b"HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("bare line feeds", b"GET /healthz HTTP/1.1\nHost: a\n\n", 400),
    ("a folded line", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", 400),
    ("space before colon", b"GET /healthz HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    ("NUL", b"GET /healthz\0 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("dots", b"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("encoded dots", b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("an absolute target", b"GET http://evil/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("an endless line", b"GET /" + b"a" * 200000, 414),
    ("endless headers", b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 40000, 431),
    ("POST", b"POST /api/v1/builds HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", 405),
    ("DELETE", b"DELETE /api/v1/builds HTTP/1.1\r\nHost: a\r\n\r\n", 405),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("a GET with a body", b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 413),
    ("another site's page", b"GET /healthz HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: cross-site\r\n\r\n", 403),
    ("another origin", b"GET /healthz HTTP/1.1\r\nHost: a\r\nOrigin: http://evil.example\r\n\r\n", 403),
)


def listeners(tap):
    port = free_port()
    with Daemon("--http", f"127.0.0.1:{port}", "--http-open") as d:
        with Wire(d.socket) as w:
            w.send("UPLOAD", upload(sender_number(), 1), 1)
            w.take()
        for name, request, status in ATTACKS:
            answer = ask(d.http, request)
            good = answer and answer[0] == status and answer[1].get("connection") == "close"
            good = (good and answer[1]["content-type"].startswith("application/problem+json")
                    and json.loads(answer[2])["status"] == status)
            tap.point(bool(good), f"HTTP, {name}: {status}, a problem document, the end", answer)
        for host, status in ((f"localhost:{port}", 200), (f"127.0.0.1:{port}", 200), (f"[::1]:{port}", 200),
                             ("evil.example", 421),
                             (f"evil.example:{port}", 421), (f"localhost.evil.example:{port}", 421),
                             (f"127.0.0.1.evil.example:{port}", 421),
                             ("localhost:1", 421), ("localhost", 421), (f"localhost.:{port}", 421),
                             (f"user@localhost:{port}", 400), ("", 400)):
            request = f"GET /api/v1/builds HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            answer = ask(("127.0.0.1", port), request.encode())
            tap.point(answer is not None and answer[0] == status and (status == 200) == (b"build_id" in answer[2]),
                      f"TCP, Host {host!r}: {status}", answer)
        request = (f"GET /api/v1/builds HTTP/1.1\r\nHost: localhost:{port}\r\nX-Forwarded-Host: evil\r\n"
                   "Connection: close\r\n\r\n")
        answer = ask(("127.0.0.1", port), request.encode())
        headers = answer[1]
        tap.point("access-control-allow-origin" not in headers and headers.get("x-content-type-options") == "nosniff"
                  and headers.get("cross-origin-resource-policy") == "same-origin"
                  and headers["content-type"].startswith("application/json"),
                  "no page of another origin may read the answers", headers)
        tap.point(d.get("/healthz")[0] == 200 and d.process.poll() is None, "the daemon lives")
    for address, words in (("0.0.0.0:8080", "0.0.0.0"), ("[::]:8080", "::"), ("192.0.2.1:8080", "192.0.2.1"),
                           ("127.0.0.1:99999", "99999"), ("localhost", "localhost")):
        with Daemon("--http", address, "--http-open", start=False) as d:
            done = run(*d.command(), env=d.env)
            tap.point(done.returncode == 78 and words in done.stderr and len(done.stderr.strip().splitlines()) == 1
                      and not os.path.exists(d.state),
                      f"--http {address}: exit 78, nothing was made", done)


def units(tap):
    """The unit files, by systemd's own judgement."""
    if not shutil.which("systemd-analyze"):
        return tap.skip("systemd's units", "no systemd-analyze")
    if b"__asan_init" in (binary := open(PROFD, "rb").read()) or b"__tsan_init" in binary:
        return tap.skip("systemd's units", "make install would link again, without the sanitizer")
    with Daemon(start=False) as d:
        done = run("make", "-s", "-C", ROOT, "install", f"B={os.path.dirname(PROFD)}", f"DESTDIR={d.folder}/root",
                   "prefix=/usr")
        tap.point(done.returncode == 0, "make install DESTDIR=", done.stderr[-1500:])
        own = run("make", "-sn", "-C", ROOT, "install", f"B={os.path.dirname(PROFD)}", f"prefix={d.folder}/own")
        other = [line for line in own.stdout.splitlines() if re.search(r"[ =>]/(usr/lib|etc)/", line)]
        tap.point(own.returncode == 0 and f"{d.folder}/own/lib/systemd" in own.stdout and not other,
                  "with a prefix of one's own nothing is installed outside of it", other[:3])
        folder = os.path.join(d.folder, "root/usr/lib/systemd/system")
        files = [os.path.join(folder, n) for n in sorted(os.listdir(folder))]
        for f in files: # verified where it stands
            text = re.sub(r"(?m)^ExecStart=/usr/(s?bin)/", rf"ExecStart={d.folder}/root/usr/\1/", open(f).read())
            open(f, "w").write(text)
        done = run("systemd-analyze", "verify", "--man=no", *files,
                   env=dict(os.environ, SYSTEMD_UNIT_PATH=folder + ":"))
        said = [line for line in done.stderr.splitlines() if "profd" in line]
        tap.point(done.returncode == 0 and not said, "systemd-analyze verify says nothing about them", done.stderr)
        for f in files:
            if f.endswith(".service"):  # --threshold is tenths
                done = run("systemd-analyze", "security", "--offline=true", "--threshold=22", f)
                last = (done.stdout.strip().splitlines() or ["?"])[-1]
                tap.point(done.returncode == 0 and "exposure level" in last, f"systemd-analyze security: {last}",
                          done.stdout[-3000:] + done.stderr)


def main():
    with Tap() as tap:
        for part in (stop_under_load, frozen, many_crashes, spool_crash, listeners, units):
            part(tap)


main()
