"""profd as a process: starts that must be refused, peers that must be survived, stops and crashes without loss."""
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

import harness
from harness import LONG, PROFD, Tap, free_port, run, until
from wire import Wire, field, header, sender_number, upload

ROOT_USER = os.getuid() == 0 and shutil.which("setpriv")


class Daemon(harness.Daemon):
    """One whose log is looked at in the end: a sanitizer's report goes to our own standard error, where it fails the
    run."""

    def __exit__(self, *what):
        self.stop()
        log = self.logged()
        if "Sanitizer" in log or "runtime error:" in log:
            print(log, file=sys.stderr)
        super().__exit__(*what)


def refused(tap, name, daemon, status, *words):
    """A start that must fail with this exit status and a sentence that holds the words."""
    done = run(*daemon.command(), env=daemon.env)
    said = done.stderr.strip()
    tap.point(done.returncode == status and len(said.splitlines()) == 1 and all(w in said for w in words),
              f"{name}: exit {status}, one sentence", f"exit {done.returncode}: {done.stderr}")


def starts(tap):
    with Daemon() as d:
        second = Daemon(start=False)
        second.state = d.state
        refused(tap, "a second profd on the state directory", second, 75, "another profd", d.state)
        shutil.rmtree(second.folder)
        second = Daemon(start=False)
        second.socket = d.socket
        refused(tap, "a second profd on a live socket", second, 75, "answers on", d.socket)
        shutil.rmtree(second.folder)
        with Wire(d.socket) as w:
            tap.point(w.query("/healthz")[0] == 200, "the first one still answers")
    with Daemon(start=False) as d:
        d.socket = os.path.join(d.folder, "x" * 120)
        refused(tap, "a socket path too long", d, 78, "107", "x" * 20)
        tap.point(not os.path.exists(d.state), "nothing was made before that was found out")
    with Daemon("--colour", "red", start=False) as d:
        refused(tap, "an unknown option", d, 64, "--colour")
    with Daemon("--http", "0.0.0.0:80", "--http-open", start=False) as d:
        refused(tap, "TCP beyond loopback", d, 78, "0.0.0.0:80")
    with Daemon(start=False) as d:
        conf = os.path.join(d.folder, "profd.conf")
        open(conf, "w").write("# mine\nlog-level = info\ncolour = red\n")
        d.options = ("--config", conf)
        refused(tap, "an unknown key", d, 78, f"{conf}:3", "colour")
    if not ROOT_USER:
        tap.skip("a state directory without write permission", "needs root and setpriv")
        return
    with Daemon(start=False, wrapper=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")) as d:
        binary = shutil.copy(PROFD, os.path.join(d.folder, "profd")) # the checkout may be unreadable to others
        os.mkdir(d.state, 0o755)
        command = d.command()
        command[command.index(PROFD)] = binary
        d.command = lambda: command
        refused(tap, "a state directory without write permission", d, 73, "ermission", d.state)


def first_answers(tap):
    """What a new daemon says of its disk is true from its first answer on, before anything was uploaded."""
    with Daemon() as d:
        status = d.json("status", "--json")["store"]
        tap.point(status["reserve"] in ("held", "missing") and status["no_space"] is None
                  and d.get("/readyz")[0] == 200,
                  "a daemon on a new state directory keeps space for removing before it answers", status)


def databases(tap):
    def checked(name, make, status, *words):
        with Daemon(start=False) as d:
            os.mkdir(d.state, 0o700)
            path = os.path.join(d.state, "profd.db")
            make(path)
            before = open(path, "rb").read() if os.path.isfile(path) else None
            refused(tap, name, d, status, *words)
            after = open(path, "rb").read() if os.path.isfile(path) else None
            tap.point(before == after and set(os.listdir(d.state)) <= {"lock", "profd.db", "runs"},
                      f"{name}: nothing was touched",
                      os.listdir(d.state))

    def newer(path):
        with Daemon() as good:
            good.stop()
            shutil.copy(os.path.join(good.state, "profd.db"), path)
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA user_version=9999")
        db.close()

    checked("a directory as database", os.mkdir, 78, "profd.db")
    checked("a text file as database", lambda p: open(p, "w").write("shopping list\n" * 1000), 74, "profd.db")
    checked("a database of a newer version", newer, 78, "9999")


def peers(tap):
    with Daemon() as d:
        def hostile(name, words, send, hello=True, status=None, tag=None):
            with Wire(d.socket, hello=hello) as w:
                send(w)
                answer = w.take()
                good = answer and answer[0] == "NACK" and all(x in answer[3][4].decode() for x in words)
                good = good and (status is None or answer[3].get(1) == status) and (tag is None or answer[1] == tag)
                tap.point(bool(good) and w.ended(), f"{name}: a NACK in words, then the end", answer)

        hostile("garbage before HELLO", ["HELLO"], lambda w: w.raw(os.urandom(3) + b"\x20" + os.urandom(60)),
                hello=False)
        hostile("UPLOAD before HELLO", ["before HELLO"], lambda w: w.send("UPLOAD", upload(1, 1), 9), hello=False,
                status=3, tag=9)
        hostile("an unknown type", ["99"], lambda w: w.raw(header(99, 17)), status=5, tag=17)
        hostile("a frame of 2^32-1 bytes", ["4294967295"], lambda w: w.raw(header("UPLOAD", 18, 0xffffffff)), status=2,
                tag=18)
        hostile("an unknown version", ["77"], lambda w: w.raw(header("UPLOAD", 19, 0, version=77)), status=4, tag=19)
        hostile("a client from the future", ["200"], lambda w: w.send("HELLO", field(1, 200) + field(2, 300), 2),
                hello=False, status=4)
        with Wire(d.socket) as w:
            labels = [(f"l{i}", "x") for i in range(20000)]
            w.send("UPLOAD", upload(sender_number(), 1, labels=labels), 21)
            answer = w.take()
            tap.point(answer[0] == "NACK" and "20000" in answer[3][4].decode(),
                      "20,000 labels are refused by their number", answer)
            w.send("UPLOAD", upload(sender_number(), 1), 22)
            kinds = [w.take() for _ in range(2)]
            tap.point([k[0] for k in kinds] == ["WANT_OBJECT", "ACK"] and kinds[1][1] == 22,
                      "the connection goes on; WANT_OBJECT comes before the ACK", kinds)
            w.send("UPLOAD", upload(sender_number(), 1), 23)
            tap.point(w.take()[:2] == ("ACK", 23), "a build is asked for once on a connection")
            w.send("SYNC", b"", 24)
            tap.point(w.take()[:2] == ("ACK", 24), "SYNC is acknowledged")
            w.send("DECLINE", field(1, "ab" * 20) + field(2, "gone"), 25)
            status, body = w.query("/api/v1/builds")
            rows = json.loads(body)["rows"]
            tap.point(status == 200 and len(rows) == 1 and rows[0]["uploads"] == 2, "both uploads are counted", body)
            for target, expected in (("/nowhere", 404), ("/api/v1/nowhere", 404), ("/api/v1/builds?colour=red", 400)):
                status, body = w.query(target)
                tap.point(status == expected and json.loads(body)["status"] == expected,
                          f"{target}: a problem document, {expected}", body)
            w.send("QUERY", field(1, "api/v1/builds"), 26)
            answer = w.take()
            tap.point(answer[0] == "NACK" and answer[1] == 26, "a target without a slash is refused in words", answer)
        objects(tap, d)
        pages(tap, d)
        tap.point(d.process.poll() is None, "after all this the daemon lives")


def objects(tap, d):
    with Wire(d.socket) as w, open("/bin/true", "rb") as f, open("/dev/null", "rb") as null:
        w.send("OBJECT", field(1, "") + field(2, "/bin/true"), 31, fds=[f.fileno()])
        w.send("SYNC", b"", 32)
        answers = [w.take() for _ in range(2)]
        tap.point([a[:2] for a in answers] == [("ACK", 31), ("ACK", 32)],
                  "an executable nobody asked for is stored; SYNC waits for it",
                  answers)
        w.send("OBJECT", field(1, "cd" * 20) + field(2, "/bin/true"), 33, fds=[f.fileno()])
        answer = w.take()
        tap.point(answer[0] == "NACK" and answer[1] == 33 and answer[3].get(1) == 7,
                  "another executable than the one asked for is refused",
                  answer)
        w.send("OBJECT", field(1, "") + field(2, "x"), 34, fds=[null.fileno()])
        answer = w.take()
        tap.point(answer[0] == "NACK" and answer[1] == 34, "a device is no executable", answer)
        w.send("OBJECT", field(1, "../../etc/passwd") + field(2, "x"), 35, fds=[f.fileno()])
        answer = w.take()
        tap.point(answer[0] == "NACK" and answer[1] == 35, "a path is no build-id", answer)


def pages(tap, d):
    for target, kind, word in (("/healthz", "application/json", b'"ok"'), ("/readyz", "application/json", b"ready"),
                               ("/", "text/html", b"<title>profd"), ("/app.js", "text/javascript", b"api/v1/builds"),
                               ("/style.css", "text/css", b"body"), ("/openapi.json", "application/json", b"openapi")):
        status, headers, body = d.get(target)
        tap.point(status == 200 and headers["content-type"].startswith(kind) and word in body
                  and headers["x-content-type-options"] == "nosniff", f"{target} over HTTP",
                  (status, headers, body[:200]))
    status, headers, body = d.get("/metrics")
    text = body.decode()
    tap.point(status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4"), "/metrics over HTTP",
              headers)
    tap.point('profd_uploads_total{result="ok",reason=""} 2\n' in text and "profd_stored_uploads 2\n" in text
              and 'result="rejected"' in text, "the metrics count what happened", text[:1500])
    tap.point(d.get("/nowhere")[0] == 404, "an unknown path is 404")
    tap.point(os.stat(d.http).st_mode & 0o777 == 0o660 and os.stat(d.socket).st_mode & 0o777 == 0o666
              and os.stat(os.path.join(d.state, "profd.db")).st_mode & 0o777 == 0o600, "modes of sockets and database")


def total(d):
    """Uploads counted by the daemon."""
    with Wire(d.socket) as w:
        rows = json.loads(w.query("/api/v1/builds")[1])["rows"]
        return sum(r["uploads"] for r in rows)


class Load(threading.Thread):
    """Delivers as fast as answers come, up to 64 in flight; remembers what was sent and what was acknowledged. After
    the connection breaks it goes on where it was, with the same ids, until told to stop; with insist, until everything
    sent is acknowledged."""

    def __init__(self, path, insist=False):
        super().__init__(daemon=True)
        self.insist = insist
        self.path, self.sender = path, sender_number()
        self.acked, self.sent, self.stop, self.broken, self.nacked = set(), 0, False, 0, []

    def run(self):
        while not self.stop or (self.insist and len(self.acked) < self.sent):
            try:
                with Wire(self.path) as w:
                    self.deliver(w)
            except OSError:
                time.sleep(0.01)
            self.broken += 1

    def deliver(self, w):
        flying = {}
        todo = [n for n in range(1, self.sent + 1) if n not in self.acked]
        while not self.stop or flying or (self.insist and todo):
            while len(flying) < 64 and (todo or not self.stop):
                n = todo.pop(0) if todo else self.sent + 1
                self.sent = max(self.sent, n)
                w.send("UPLOAD", upload(self.sender, n), n)
                flying[n] = True
            answer = w.take()
            if answer is None:
                return
            if answer[0] == "ACK":
                self.acked.add(answer[1])
                flying.pop(answer[1], None)
            elif answer[0] == "NACK":
                self.nacked.append(answer)
                flying.pop(answer[1], None)


def stops(tap):
    with Daemon() as d:
        loads = [Load(d.socket) for _ in range(4)]
        for load in loads:
            load.start()
        until(lambda: min(len(load.acked) for load in loads) >= 100)
        for load in loads:
            load.stop = True # what is in flight still waits for its answer
        status = d.stop()
        for load in loads:
            load.join(LONG)
        acked = sum(len(load.acked) for load in loads)
        tap.point(status == 0, "SIGTERM under load: exit 0", (status, d.logged()))
        tap.point(not os.path.exists(d.socket) and not os.path.exists(d.http), "its sockets are gone")
        tap.point(all(n[3].get(2) for load in loads for n in load.nacked), "whatever was not stored may be sent again",
                  [load.nacked[:2] for load in loads])
        d.start()
        counted = total(d)
        sent = sum(load.sent for load in loads)
        tap.point(acked <= counted <= sent, f"nothing acknowledged is lost ({acked} acknowledged, {counted} stored, "
                                            f"{sent} sent)")
        with Wire(d.socket) as idle:
            d.process.send_signal(signal.SIGINT)
            tap.point(idle.ended() and d.process.wait(LONG) == 0, "SIGINT with an idle connection: exit 0")


def crashes(tap):
    with Daemon() as d:
        loads = [Load(d.socket) for _ in range(2)]
        for load in loads:
            load.start()
        for round_number in range(5):
            before = sum(len(load.acked) for load in loads)
            until(lambda: sum(len(load.acked) for load in loads) >= before + 100)
            d.stop(signal.SIGKILL)
            d.start()
        for load in loads:
            load.stop = True
        for load in loads:
            load.join(LONG)
        acked, sent = sum(len(load.acked) for load in loads), sum(load.sent for load in loads)
        tap.point(all(load.broken >= 5 for load in loads), "five times kill -9 under load were noticed",
                  [load.broken for load in loads])
        # Everything again, with the same ids: what was stored is a duplicate, what was lost is counted now.
        for load in loads:
            with Wire(d.socket) as w:
                for n in range(1, load.sent + 1):
                    w.send("UPLOAD", upload(load.sender, n), n)
                    while (answer := w.take())[0] == "WANT_OBJECT":
                        pass
                    if n in load.acked and not (answer[0] == "ACK" and answer[3].get(1)):
                        tap.point(False, f"upload {n} was acknowledged and is lost", answer)
        counted = total(d)
        tap.point(counted == sent, f"0 lost and 0 double: {sent} sent, {acked} acknowledged meanwhile, {counted} "
                                   f"counted")


def activation(tap):
    """The supervisor holds the sockets: kill -9 refuses nobody."""
    with Daemon(start=False) as d:
        listeners = []
        for path in (d.socket, d.http):
            s = socket.socket(socket.AF_UNIX)
            s.bind(path)
            s.listen(64)
            listeners.append(s)
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(os.path.join(d.folder, "notify"))
        manager.settimeout(LONG)

        def start(names="upload:http", **more):
            def pass_on():
                # LISTEN_PID must be the child's; the sockets must be 3 and 4 (and may stand there already).
                os.environ["LISTEN_PID"] = str(os.getpid())
            env = dict(d.env, LISTEN_FDS="2", LISTEN_FDNAMES=names, NOTIFY_SOCKET=os.path.join(d.folder, "notify"),
                       **more)
            script = 'exec 3<&"$1" 4<&"$2"; shift 2; LISTEN_PID=$$ exec "$@"'
            fds = [os.dup(s.fileno()) for s in listeners]
            high = [os.dup2(fd, 200 + i) for i, fd in enumerate(fds)]
            for fd in fds:
                os.close(fd)
            log = open(d.log, "ab")
            p = subprocess.Popen(["bash", "-c", script, "bash", "200", "201", PROFD, "--state-dir", d.state], env=env,
                                 pass_fds=high,
                                 stdout=log, stderr=log)
            for fd in high:
                os.close(fd)
            return p

        p = start(WATCHDOG_USEC="400000")
        said = manager.recv(100)
        tap.point(said == b"READY=1", "READY=1 is sent to the service manager", said)
        with Wire(d.socket) as w:
            tap.point(w.query("/healthz")[0] == 200, "the upload socket that was passed in is served")
        tap.point(d.get("/healthz")[0] == 200, "so is the HTTP socket")
        tap.point(manager.recv(100) == b"WATCHDOG=1", "the watchdog is told while all is well")
        load = Load(d.socket, insist=True)
        load.start()
        for _ in range(3):
            before = len(load.acked)
            until(lambda: len(load.acked) >= before + 50)
            p.kill()
            p.wait()
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(d.socket) # nobody is there, yet nobody is refused
            p = start()
        load.stop = True
        load.join(LONG)
        tap.point(not load.is_alive() and load.acked == set(range(1, load.sent + 1)),
                  "three times kill -9: every upload was acknowledged in the end",
                  (len(load.acked), load.sent))
        tap.point(total(d) == load.sent, f"and counted once ({load.sent})")
        p.terminate()
        tap.point(p.wait(LONG) == 0 and os.path.exists(d.socket), "a socket that was passed in is not removed")
        tap.point(start(names="upload:colour").wait(LONG) == 78, "an unknown name of a descriptor: exit 78",
                  d.logged()[-300:])
        for s in listeners:
            s.close()


def descriptors(tap):
    """With few descriptors: refused in words, no spinning, and service returns."""
    with Daemon(wrapper=("prlimit", "--nofile=64:64")) as d:
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(200)]
        for s in crowd:
            s.settimeout(LONG)
            s.connect(d.socket)
        told = [s.recv(1000) for s in crowd]  # a slow machine ends the first for want of a HELLO, and serves later ones
        tap.point(any(b"connections are in use" in t or b"descriptors" in t for t in told), "one too many is told why",
                  told)
        lines = len(d.logged().splitlines())
        tap.point(lines < 60, f"the log stays short ({lines} lines)")
        for s in crowd:
            s.close()

        def served():
            try:
                with Wire(d.socket) as w:
                    return w.query("/healthz")[0] == 200
            except (OSError, TypeError, RuntimeError):
                return False
        # the first to come back may meet connections whose end was not seen yet
        tap.point(until(served), "service returns", d.logged()[-500:])


def readers(tap):
    """Loopback TCP with a token."""
    port = free_port()
    with Daemon("--http", f"127.0.0.1:{port}") as d:
        token = d.token("me")

        def ask(target="/api/v1/builds", **headers):
            with socket.create_connection(("127.0.0.1", port), LONG) as s:
                lines = "".join(f"{k}: {v}\r\n" for k, v in {"Host": f"127.0.0.1:{port}", "Connection": "close",
                        **headers}.items())
                s.sendall(f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode())
                data = b""
                while piece := s.recv(65536):
                    data += piece
            return int(data.split()[1])

        tap.point(ask() == 401, "TCP without the token: 401")
        tap.point(ask(Authorization=f"Bearer {token}x") == 401, "with a wrong token: 401")
        tap.point(ask(Authorization=f"Bearer {token}") == 200, "with the token: 200")
        tap.point([ask(t) for t in ("/", "/?build=x", "/app.js", "/style.css")] == [200] * 4
                  and [ask(t) for t in ("/metrics", "/healthz", "/openapi.json", "/app.js/", "/app.jsx")] == [401] * 5,
                  "the dashboard's own files hold no data and need no token; everything else does")


def fill(w, sender, limit=5000):
    """Uploads one by one until one is refused: (how many were acknowledged, the refusal)."""
    for n in range(1, limit):
        w.send("UPLOAD", upload(sender, n), n)
        while (answer := w.take())[0] == "WANT_OBJECT":
            pass
        if answer[0] != "ACK":
            return n - 1, answer
    return limit - 1, None


def broken_disk(tap):
    """Files that cannot grow any more make writes fail as a broken disk does (EFBIG, no ENOSPC)."""
    sender = sender_number()
    with Daemon(wrapper=("prlimit", "--fsize=440000:440000")) as d:
        with Wire(d.socket) as w:
            stored, refusal = fill(w, sender)
            tap.point(stored > 0 and refusal and refusal[3].get(1) == 17 and refusal[3].get(2) == 1,
                      f"after {stored} uploads the store fails: NACK, input/output error, send again", refusal)
            w.send("UPLOAD", upload(sender, stored + 1), 9)
            again = w.take()
            tap.point(again[0] == "NACK" and again[3].get(1) == 17, "nothing is written after that", again)
            status, body = w.query("/api/v1/builds")
            tap.point(status == 200 and json.loads(body)["rows"][0]["uploads"] == stored, "reads go on", body)
            tap.point(w.query("/readyz")[0] == 503 and w.query("/healthz")[0] == 200, "/readyz says it, /healthz stays")
        tap.point(d.stop() == 0, "it still stops in order")
        d.wrapper = []
        d.start()
        with Wire(d.socket) as w:
            w.send("UPLOAD", upload(sender, stored + 1), 9)
            while (answer := w.take())[0] == "WANT_OBJECT":
                pass
            tap.point(answer[0] == "ACK", "on a good disk the same id is accepted", answer)
        tap.point(total(d) == stored + 1, "and every acknowledged upload is there once")
    with Daemon(start=False, wrapper=("prlimit", "--fsize=440000:440000")) as d:
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(os.path.join(d.folder, "notify"))
        d.env["NOTIFY_SOCKET"] = os.path.join(d.folder, "notify")
        d.start()
        with Wire(d.socket) as w:
            fill(w, sender)
            tap.point(d.process.wait(LONG) == 74, "under a service manager the process ends with 74", d.logged())


def main():
    with Tap() as tap:
        for part in (starts, first_answers, databases, peers, stops, crashes, activation, descriptors, broken_disk,
                     readers):
            part(tap)


if __name__ == "__main__":
    main()
