"""SIGHUP and profctl reload: profd and profd-relay take over a changed configuration while they run, say
what needs a restart, and keep the old one if the new one has an error."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from centre import Relay
from example_gmon import example
from harness import AS_NOBODY, BUILD, LONG, PROFCTL, Daemon, Tap, programs, readable_copy, run, until


class Configured(Daemon):
    """A daemon with a configuration file."""

    def __init__(self, **keys):
        super().__init__(start=False)
        self.file = os.path.join(self.folder, "profd.conf")
        self.options = ("--config", self.file)
        self.write(**keys)
        self.start()

    def write(self, text="", **keys):
        with open(self.file, "w") as f:
            f.write(text + "".join(f"{k.replace('_', '-')} = {v}\n" for k, v in keys.items()))

    def reload(self, *text, **keys):
        self.write(*text, **keys)
        return self.ctl("reload")

    def status(self):
        return self.json("status", "--json")["store"]


def said(tap, done, applied, restart, name):
    lines = [line for line, keys in ((f"Applied: {applied}", applied),
                                     (f"Not applied before profd is restarted: {restart}", restart)) if keys]
    tap.point(done.returncode == 0 and done.stdout.splitlines() == lines, name, (done, lines))


def values(tap, d, exe, gmon):
    """Each key by its effect."""
    tap.point(d.ctl("upload", "-e", exe, gmon).returncode == 0 and d.status()["raw_uploads"] == 1,
              "an upload is stored by itself")
    done = d.reload(user_share="20%", raw_age="1s", log_level="info", keep_age="300d")
    said(tap, done, "raw-age, keep-age, user-share, log-level", "", "profctl reload names the keys that were applied")
    tap.point(d.status()["user_share_percent"] == 20, "user-share applies", d.status())
    tap.point(until(lambda: d.status()["raw_uploads"] == 0), "raw-age applies at once: the upload is rolled up")
    done = d.ctl("reload")
    tap.point(done.returncode == 0 and done.stdout.startswith("No key of the configuration has changed"),
              "without a change profctl reload says so", done)
    d.write(user_share="30%")
    d.process.send_signal(signal.SIGHUP)
    tap.point(until(lambda: d.status()["user_share_percent"] == 30), "SIGHUP does the same", d.status())
    tap.point(until(lambda: "read again; changed: raw-age, keep-age, user-share, log-level" in d.logged()),
              "and the log names the keys", d.logged())


def restarts(tap, d):
    done = d.reload(relay="https://centre.example", socket="/run/elsewhere", user_share="40%")
    said(tap, done, "user-share", "relay", "keys that need a restart are named, and the others applied; an option of "
                                           "the command line still overrides the file")
    tap.point(d.json("status", "--json")["store"]["relay"] is None, "what needs a restart has not changed")
    done = d.reload(user_share="40%")
    tap.point(done.returncode == 0 and done.stdout.startswith("No key"), "taking it back is no change", done)


ERRORS = (("user-share = 41%\nraw-age = soon\n", ":2: raw-age is \"soon\""),
          ("user-share = 41%\n\n# a comment\ncolour = red\n", ":4: unknown key \"colour\""),
          ("user-share = 41%\nuser-share = 42%\n", ":2: the key \"user-share\" occurs twice"),
          ("user-share = 41%\nkeep-age = 1h\nraw-age = 2h\n", ":2: keep-age 1h is less than raw-age 2h"),
          ("user-share = 41%\nread-group = no-such-group\n", ":2: read-group: "),
          ("user-share = 41%\nrelay = http://centre\n", ":2: relay is \"http://centre\""))


def errors(tap, d):
    for text, sentence in ERRORS:
        done = d.reload(text)
        tap.point(done.returncode == 78 and d.file + sentence in done.stderr
                  and d.status()["user_share_percent"] == 40,
                  f"refused, with file, line and key, and nothing has changed: {sentence}", done)
    before = d.logged().count("the configuration stays as it was")
    d.process.send_signal(signal.SIGHUP)
    tap.point(until(lambda: d.logged().count("the configuration stays as it was") > before)
              and d.status()["user_share_percent"] == 40, "SIGHUP logs the error, and nothing has changed", d.logged())
    os.unlink(d.file)
    done = d.ctl("reload")
    tap.point(done.returncode == 78 and d.status()["user_share_percent"] == 40,
              "the file of --config is missing: nothing has changed", done)


def groups(tap, d):
    program = readable_copy(PROFCTL, d.folder)
    env = dict(d.env, XDG_STATE_HOME="/nonexistent", HOME="/nonexistent")

    def ask(verb):
        return run(*AS_NOBODY, program, verb, env=env, cwd=d.folder).returncode
    tap.point(ask("reload") == 77, "an ordinary user may not reload")
    d.reload(admin_group="65534")
    tap.point(ask("verify") == 0 and ask("reload") == 0, "admin-group applies to the next connection")
    d.reload(read_group="65534")
    tap.point(ask("verify") == 77 and os.stat(d.http).st_gid == 65534,
              "and is taken back; the HTTP socket gets the new read-group", os.stat(d.http))


def harvests(tap):
    """A live process is read after the new interval."""
    with Configured(harvest_interval="1h") as d:
        source = os.path.join(d.folder, "spin.c")
        with open(source, "w") as f:
            f.write("int leaf(int n) { return n + 1; }\nint main(void) { int n = 0; for (;;) { n = leaf(n) & 7; } }\n")
        exe = os.path.join(d.folder, "spin")
        run("gcc", "-pg", "-O0", "-o", exe, source)
        p = subprocess.Popen([PROFCTL, "run", exe], env=d.env)
        try:
            def harvested():
                status, _, body = d.get("/metrics")
                return int(next(w.split()[1] for w in body.decode().splitlines()
                                if w.startswith("profd_harvests_total ")))
            until(lambda: harvested() >= 2)
            d.reload(harvest_interval="1s")
            first = harvested()
            tap.point(until(lambda: harvested() >= first + 3), "harvest-interval: a live process is read every second")
        finally:
            for pid in run("pgrep", "-P", p.pid).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            p.wait()


def load(tap, exe, gmon):
    """Uploads go on while the configuration is read again and again."""
    with Configured(user_share="50%") as d:
        results, stop = [], threading.Event()

        def send():
            while not stop.is_set():
                results.append(d.ctl("upload", "-e", exe, gmon).returncode)
        threads = [threading.Thread(target=send) for _ in range(4)]
        for t in threads:
            t.start()
        reloads = [d.reload(user_share=f"{20 + n % 60}%", raw_age=f"{1 + n % 3}h",
                            log_level=("info", "notice")[n % 2]).returncode for n in range(60)]
        until(lambda: len(results) > 50)
        stop.set()
        for t in threads:
            t.join()
        stored = d.json("report", exe, "--json")["provenance"]["uploads"]
        tap.point(not any(results) and not any(reloads) and stored == len(results),
                  f"{len(reloads)} reloads under {len(results)} uploads: all acknowledged, all counted once",
                  (stored, len(results), reloads, d.logged()[-500:]))


def centre(tap):
    """relay-interval and host-detail of a centre."""
    with Configured(relay_interval="3600s") as c, Daemon() as host:
        relay = Relay(host, c, "host-1")
        relay.arrive()
        long = relay.wait
        done = c.reload(relay_interval="1s", host_detail="never")
        said(tap, done, "host-detail, relay-interval", "", "relay-interval and host-detail of a centre are applied")
        relay.arrive()
        tap.point(long > 1500 * 1000 > 2000 > relay.wait, "hosts are told the new interval", (long, relay.wait))


def network(tap):
    """profd-relay."""
    with Daemon("--relay", "https://localhost:1") as host, socket.create_server(("127.0.0.1", 0)) as listener, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        file, token, log = (os.path.join(host.folder, name) for name in ("relay.conf", "relay.token", "relay.log"))

        def write(**keys):
            keys = {"relay": "https://localhost:1", "socket": host.socket, "relay-token": token, **keys}
            with open(file, "w") as f:
                f.write("".join(f"{k.replace('_', '-')} = {v}\n" for k, v in keys.items()))

        def logged():
            return open(log, errors="replace").read()
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write("a-token-of-twenty-bytes-or-more\n")
        write(relay_interval="1h")
        ready.bind(os.path.join(host.folder, "notify"))
        ready.settimeout(LONG)
        listener.settimeout(LONG)
        with open(log, "ab") as out:
            p = subprocess.Popen([os.path.join(BUILD, "profd-relay"), "--config", file], stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=out, env=dict(os.environ, NOTIFY_SOCKET=ready.getsockname()))
        try:
            tap.point(ready.recv(100) == b"READY=1", "profd-relay has read its configuration")
            for keys in ({"relay_interval": "never"}, {"relay": "http://x"}):
                write(**keys)
                before = logged().count("stays as it was")
                until(lambda: (p.send_signal(signal.SIGHUP), time.sleep(0.05),
                               logged().count("stays as it was") > before)[-1])
                tap.point(f"{file}:" in logged() and p.poll() is None,
                          "profd-relay logs file and line of an error, and goes on", logged())
            write(relay=f"https://localhost:{listener.getsockname()[1]}", relay_interval="1s")
            p.send_signal(signal.SIGHUP)
            listener.accept()[0].close()
            tap.point(True, "with a good configuration it goes to the centre")
        finally:
            p.kill()
            p.wait()


def main():
    with Tap() as tap:
        folder = programs(os.path.join(tempfile.mkdtemp(prefix="profd-reload-"), "programs"))
        exe = os.path.join(folder, "cycle")
        gmon = os.path.join(folder, "cycle.gmon")
        example(exe, gmon)
        try:
            with Configured(user_share="50%") as d:
                values(tap, d, exe, gmon)
                restarts(tap, d)
                errors(tap, d)
                if os.getuid() == 0 and shutil.which("setpriv"):
                    groups(tap, d)
                else:
                    tap.skip("groups", "needs root and setpriv")
            harvests(tap)
            load(tap, exe, gmon)
            centre(tap)
            network(tap)
        finally:
            shutil.rmtree(os.path.dirname(folder), ignore_errors=True)


if __name__ == "__main__":
    main()
