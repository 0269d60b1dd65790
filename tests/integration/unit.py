"""The installed unit: the literal command of profd.service, as its user, with the environment that systemd sets and the
sockets that the .socket units describe. What only systemd itself can apply, the sandbox above all, is tested by
tests/nspawn.

The test runs in a mount namespace of its own, where the installed files stand in their final places."""
import grp
import json
import os
import pwd
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from harness import AS_NOBODY, BUILD, LONG, NOBODY, PROFD, ROOT, Tap, parse_response, run, until as wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "collect"))
from bed import Bed  # noqa: E402
from example_gmon import example  # noqa: E402
from harness import programs, record_lock  # noqa: E402


def parse_unit(path):
    """Section → key → values, of a unit file."""
    unit, section = {}, None
    for line in open(path):
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            section = unit.setdefault(line[1:-1], {})
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            section.setdefault(key, []).append(value)
    return unit


def in_namespace():
    """Is this process the one in the namespace? The first one runs the second."""
    if os.environ.get("PROFD_UNIT_NAMESPACE"):
        return True
    done = subprocess.run(["unshare", "--mount", "--propagation=private", "true"], capture_output=True)
    if os.getuid() != 0 or not shutil.which("setpriv") or done.returncode != 0:
        return False
    os.execvpe("unshare", ["unshare", "--mount", "--propagation=private", sys.executable, os.path.abspath(__file__)],
               dict(os.environ, PROFD_UNIT_NAMESPACE="1"))


class Manager:
    """As much of systemd as a service sees: sockets, environment, notifications and the store of descriptors."""

    def __init__(self, folder):
        self.root, self.process, self.stored, self.said = os.path.join(folder, "root"), None, {}, []
        self.log = os.path.join(folder, "log")
        self.install()
        units = os.path.join(self.root, "usr/lib/systemd/system")
        self.unit = parse_unit(os.path.join(units, "profd.service"))
        self.service = self.unit["Service"]
        self.sockets = [parse_unit(os.path.join(units, name))["Socket"] for name in self.service["Sockets"][0].split()]
        self.user = pwd.getpwnam(self.service["User"][0])
        self.gid = grp.getgrnam(self.service["Group"][0]).gr_gid
        self.make_state()
        self.open_sockets()

    def install(self):
        """make install; then its files, its user and an empty /run and /var/lib stand where the units expect them."""
        done = run("make", "-s", "-C", ROOT, "install", f"B={BUILD}", f"DESTDIR={self.root}", "prefix=/usr",
                   timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"make install: {done.stderr}")
        shutil.copytree("/etc", os.path.join(self.root, "etc"), symlinks=True, dirs_exist_ok=True)
        self.add_users()
        for path in ("/usr/sbin", "/run", "/var/lib", "/etc"):
            os.makedirs(self.root + path, exist_ok=True)
            subprocess.run(["mount", "--bind", self.root + path, path], check=True)

    def add_users(self):
        """The lines of the installed sysusers file, in the copies of passwd and group."""
        number = 64990
        for line in open(os.path.join(self.root, "usr/lib/sysusers.d/profd.conf")):
            words = line.split()
            if not words or words[0] not in "ug" or any(g.gr_name == words[1] for g in grp.getgrall()):
                continue
            number += 1
            with open(os.path.join(self.root, "etc/group"), "a") as f:
                f.write(f"{words[1]}:x:{number}:\n")
            if words[0] == "u":
                with open(os.path.join(self.root, "etc/passwd"), "a") as f:
                    f.write(f"{words[1]}:x:{number}:{number}::/var/lib/profd:/usr/sbin/nologin\n")

    def make_state(self):
        self.state = os.path.join("/var/lib", self.service["StateDirectory"][0])
        os.mkdir(self.state)
        os.chmod(self.state, int(self.service["StateDirectoryMode"][0], 8))
        os.chown(self.state, self.user.pw_uid, self.gid)

    def open_sockets(self):
        self.listeners = {}
        for s in self.sockets:
            path = s["ListenStream"][0]
            os.makedirs(os.path.dirname(path), int(s["DirectoryMode"][0], 8), exist_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            os.chmod(path, int(s["SocketMode"][0], 8))
            if "SocketGroup" in s:
                os.chown(path, 0, grp.getgrnam(s["SocketGroup"][0]).gr_gid)
            listener.listen(int(s["Backlog"][0]))
            self.listeners[s["FileDescriptorName"][0]] = listener
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind("/run/notify")
        os.chmod("/run/notify", 0o777)

    def environment(self, passed):
        env = {"LANG": "C.UTF-8", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "HOME": self.user.pw_dir,
               "LOGNAME": self.user.pw_name, "USER": self.user.pw_name, "SHELL": self.user.pw_shell,
               "INVOCATION_ID": "0" * 32,
               "STATE_DIRECTORY": self.state, "NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "2000000"}
        return dict(env, LISTEN_FDS=str(len(passed)), LISTEN_FDNAMES=":".join(passed)) if passed else env

    def start(self, sockets=True):
        passed = {**({n: s.fileno() for n, s in self.listeners.items()} if sockets else {}), **self.stored}

        def place():
            high = [os.dup2(fd, 300 + i) for i, fd in enumerate(passed.values())]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, int(self.service["LimitNOFILE"][0])),) * 2)
        # $$ is still the number of the process when profd has taken the shell's place
        command = ["sh", "-c", 'export LISTEN_PID=$$ WATCHDOG_PID=$$ SYSTEMD_EXEC_PID=$$; exec "$@"', "sh", "setpriv",
                   f"--reuid={self.user.pw_uid}", f"--regid={self.gid}", "--init-groups",
                   "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", *self.service["ExecStart"][0].split()]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env=self.environment(passed), preexec_fn=place,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd="/", umask=int(self.service["UMask"][0], 8),
                                            pass_fds=tuple(range(3, 3 + len(passed))))
        self.said = []
        return self.process

    def listen(self, seconds=0.2):
        """Takes what the daemon says to its manager; False when nothing came."""
        self.notify.settimeout(seconds)
        try:
            data, fds, _, _ = socket.recv_fds(self.notify, 4096, 4)
        except (socket.timeout, TimeoutError):
            return False
        lines = dict(line.split("=", 1) for line in data.decode().splitlines())
        if lines.get("FDSTORE"):
            self.stored[lines["FDNAME"]] = fds[0]
        elif lines.get("FDSTOREREMOVE") and lines["FDNAME"] in self.stored:
            os.close(self.stored.pop(lines["FDNAME"]))
        self.said.append(data.decode())
        return True

    def hears(self, what):
        return (wait_for(lambda: self.listen() and any(what in s for s in self.said)
                         or self.process.poll() is not None) and any(what in s for s in self.said))

    def logged(self):
        return open(self.log, errors="replace").read()[-3000:]

    def ctl(self, *arguments, **env):
        """The installed profctl of an ordinary environment: nothing names a socket."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PROFD", "XDG"))}
        return run(os.path.join(self.root, "usr/bin/profctl"), *arguments, env=dict(kept, LC_ALL="C", **env))

    def get(self, target):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(LONG)
            s.connect("/run/profd/http.sock")
            s.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            data = b""
            while piece := s.recv(65536):
                data += piece
        return parse_response(data)


def starts(tap, m):
    p = m.start(sockets=False)
    tap.point(p.wait(LONG) == 78 and m.logged().count("\n") == 1 and "--socket" in m.logged()
              and os.listdir(m.state) == [],
              "without sockets, and with no place for its own: exit 78, one sentence, nothing was made",
              (p.returncode, m.logged(), os.listdir(m.state)))
    with open("/etc/profd.conf", "w") as f:
        f.write("log-level = colour\n")
    p = m.start()
    tap.point(p.wait(LONG) == 78 and "colour" in m.logged(),
              "it reads /etc/profd.conf: exit 78 for a wrong value there", m.logged())
    os.unlink("/etc/profd.conf")
    m.start()
    if not tap.point(m.hears("READY=1"), f"{m.service['ExecStart'][0]} as {m.user.pw_name}, sockets passed in: "
                                         f"READY=1", (m.said, m.logged())):
        return False
    owner = {os.stat(os.path.join(m.state, f)).st_uid for f in os.listdir(m.state)}
    tap.point(owner == {m.user.pw_uid}, "what it keeps is its own", owner)
    tap.point(m.hears("WATCHDOG=1"), "the watchdog is told", m.said)
    return True


def uploads(tap, m, folder):
    exe = os.path.join(programs(os.path.join(folder, "programs")), "cycle")
    done = m.ctl("upload", "-e", exe, example(exe, os.path.join(folder, "gmon")), XDG_STATE_HOME=folder)
    tap.point(done.returncode == 0, "profctl upload finds it and delivers", done)
    report = m.ctl("report", exe, "--json")
    names = {f["name"] for f in json.loads(report.stdout)["functions"]} if report.returncode == 0 else report
    tap.point("main" in names, "its report has names: symbols were read", names)
    status, _, body = m.get("/api/v1/builds")
    tap.point(status == 200 and [r["name"] for r in json.loads(body)["rows"]] == [exe], "the HTTP socket lists it",
              (status, body))


def counts(m, exe):
    done = m.ctl("report", exe, "--json")
    report = json.loads(done.stdout) if done.returncode == 0 else {"functions": []}
    return {f["name"]: f["calls"] + f["self_calls"] for f in report["functions"]}


def lives(tap, m, folder):
    """A live process is read, by name; and again when the daemon was killed and its manager had kept the memory."""
    with Bed(harvester=False) as bed:
        exe = bed.build("steady.c", "-pg", "-rdynamic")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PROFD", "XDG"))}
        p = subprocess.Popen([os.path.join(m.root, "usr/bin/profctl"), "run", exe, "spin"],
                             env=dict(kept, TRUTH=os.path.join(bed.folder, "truth"), XDG_STATE_HOME=folder),
                             cwd=bed.folder, stdout=subprocess.PIPE)
        p.stdout.readline()
        child = wait_for(lambda: run("pgrep", "-P", p.pid).stdout.split())
        try:
            got = wait_for(lambda: (c := counts(m, exe)).get("leaf", 0) > 0 and c)
            tap.point(bool(got) and got["middle"] > 0,
                      "profctl run: a live process is harvested, with names", (got, m.logged()))
            tap.point(wait_for(lambda: m.listen() is False and m.stored), "the manager was given its memory", m.said)
            before = counts(m, exe).get("leaf", 0)
            m.process.kill()
            m.process.wait()
            m.start()
            tap.point(m.hears("READY=1"), "kill -9, started again with what the manager kept: READY=1", m.logged())
        finally:
            os.kill(int(child[0]), signal.SIGKILL)
            p.communicate(timeout=LONG)
        truth = bed.truth(int(child[0]))["leaf"]
        # SIGKILL may stop the program between the collector's count and its own.
        got = wait_for(lambda: counts(m, exe).get("leaf") in (truth, truth + 1))
        tap.point(got and truth > before, f"when it is killed its {truth} calls are there",
                  (counts(m, exe), truth, m.logged()))
        exact = [r["exact"] for r in m.ctl("builds", "--json").returncode == 0
                 and json.loads(m.ctl("builds", "--json").stdout)["rows"] if r["name"] == exe]
        tap.point(exact == [True], "and its row is exact", exact)


BUSY = "int main(void) { for (volatile unsigned long i = 0;; i++) { } }\n"


def named(m, exe, uid):
    """Names of the functions in the report of one user's uploads."""
    report = m.ctl("report", exe, "--json", f"--uid={uid}")
    return {f["name"] for f in json.loads(report.stdout)["functions"]} if report.returncode == 0 else set()


def records(tap, m, folder):
    """profd-record.service: the literal command, as its user with its capabilities; another user's process is stored as
    that user's, with names."""
    unit = parse_unit(os.path.join(m.root, "usr/lib/systemd/system/profd-record.service"))["Service"]
    rating = run("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=15",
                 os.path.join(m.root, "usr/lib/systemd/system/profd-record.service"))
    tap.point(rating.returncode == 0, f"profd-record.service: {(rating.stdout.strip().splitlines() or ['?'])[-1]}",
              rating.stdout[-1500:] + rating.stderr)
    tap.point("RestrictSUIDSGID" not in unit, "profd-record.service: openat2 is not forbidden", unit)
    source, exe = os.path.join(folder, "busy.c"), os.path.join(folder, "busy")
    with open(source, "w", encoding="utf-8") as f:
        f.write(BUSY)
    built = run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-o", exe, source)
    user, state = pwd.getpwnam(unit["User"][0]), os.path.join("/var/lib", unit["StateDirectory"][0])
    os.mkdir(state, int(unit["StateDirectoryMode"][0], 8))
    os.chown(state, user.pw_uid, user.pw_gid)
    caps = ",".join("+" + c.removeprefix("CAP_").lower() for c in unit["AmbientCapabilities"][0].split())
    assert unit["AmbientCapabilities"] == unit["CapabilityBoundingSet"] and built.returncode == 0
    command = unit["ExecStart"][0].split()
    env = dict(e.split("=", 1) for e in unit["Environment"][0].split())
    busy = subprocess.Popen([*AS_NOBODY, exe])
    sampling = subprocess.Popen(["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
                                 "--no-new-privs", f"--inh-caps=-all,{caps}", f"--ambient-caps=-all,{caps}",
                                 f"--bounding-set=-all,{caps}", m.root + command[0], *command[1:]],
                                env=env, stderr=subprocess.PIPE, text=True)
    try:
        rows = wait_for(lambda: [r for r in json.loads(m.ctl("builds", "--json").stdout)["rows"] if r["name"] == exe]
                        or sampling.poll() is not None)
        names = wait_for(lambda: "main" in (n := named(m, exe, NOBODY)) and n or sampling.poll() is not None)
        tap.point(bool(rows) and "main" in named(m, exe, NOBODY),
                  "profd-record.service: counts and names are those of the user", (rows, names, m.logged()))
    finally:
        busy.kill()
        busy.wait()
        sampling.terminate()
        said = sampling.communicate(timeout=LONG)[1]
    tap.point(sampling.returncode == 0 and said == "",
              "profd-record.service: SIGTERM: exit 0, nothing to complain about",
              (sampling.returncode, said))


def main():
    with Tap() as tap:
        if b"__asan_init" in (binary := open(PROFD, "rb").read()) or b"__tsan_init" in binary:
            return tap.skip("the installed unit", "make install would link again, without the sanitizer")
        if not in_namespace():
            return tap.skip("the installed unit", "needs root, setpriv and a mount namespace")
        folder = tempfile.mkdtemp(prefix="profd-unit-")
        os.chmod(folder, 0o755)
        m = Manager(folder)
        try:
            if starts(tap, m):
                uploads(tap, m, folder)
                lives(tap, m, folder)
                with record_lock():
                    records(tap, m, folder)
                m.process.terminate()
                tap.point(m.process.wait(LONG) == 0 and all(os.path.exists(s["ListenStream"][0]) for s in m.sockets),
                          "SIGTERM: exit 0, the sockets stay", m.logged())
        finally:
            if m.process and m.process.poll() is None:
                m.process.kill()
                m.process.wait()
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
