"""The daemon of a user who has no XDG_RUNTIME_DIR, as in a container or after su: daemon, profctl and the
collector meet in /tmp/profd-UID, and none of them uses that directory if another user may have made it."""
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time

from harness import BUILD, LONG, Tap, readable_copy, run, until

# Nothing of this machine's /run: no daemon of the system, no directory of the user.
ALONE = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && user=$1 && shift && mkdir -p /run/user/0 && '
         'chmod 0700 /run/user/0 && exec setpriv --reuid="$user" --regid="$user" --clear-groups "$@"', "alone"]
CODE = "int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\nint main(void) { return f(10) == 55 ? 0 : 1; }\n"


class User:
    def __init__(self, top):
        self.uid = random.randrange(50000, 60000)
        self.directory, self.home = f"/tmp/profd-{self.uid}", os.path.join(top, "home")
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.home)
        os.chown(self.home, self.uid, self.uid)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("PROFD_", "XDG_"))}
        self.env.update(HOME=self.home, PATH=f"{top}:{os.environ['PATH']}", LC_ALL="C")

    def run(self, *command, **env):
        return run(*ALONE, str(self.uid), *command, cwd=self.home, env={**self.env, **env})

    def daemon(self, **env):
        process = subprocess.Popen([*ALONE, str(self.uid), "profd"], cwd=self.home, env={**self.env, **env},
                                   stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + LONG
        while process.poll() is None and not os.path.exists(f"{self.directory}/http.sock") and time.monotonic() < end:
            time.sleep(0.02)
        return process


def test_meeting(tap, user, calls, **env):
    name = f"with {env}" if env else "without XDG_RUNTIME_DIR"
    process = user.daemon(**env)
    try:
        made = os.lstat(user.directory)
        tap.point(process.poll() is None and stat.S_IMODE(made.st_mode) == 0o700 and made.st_uid == user.uid,
                  f"{name}: profd starts, in a directory of mode 0700", (process.poll(), made))
        done = user.run("profctl", "run", "-v", "./f", **env)
        tap.point(done.returncode == 0 and f"{user.directory}/profd.sock" in done.stderr,
                  f"{name}: profctl run asks it", done)
        done = user.run("profctl", "report", "./f", "--flat", **env)
        tap.point(f" {calls} calls" in done.stdout, f"{name}: the collector found it, too", done)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def make_foreign(user, top):
    os.mkdir(user.directory, 0o700)
    os.chown(user.directory, user.uid + 1, user.uid + 1)


def make_link(user, top):
    os.mkdir(f"{top}/elsewhere", 0o700)
    os.chown(f"{top}/elsewhere", user.uid, user.uid)
    os.symlink(f"{top}/elsewhere", user.directory)


def make_open(user, top):
    os.mkdir(user.directory)
    os.chown(user.directory, user.uid, user.uid)
    os.chmod(user.directory, 0o750)


def test_hostile(tap, user, top, make):
    name = make.__name__.replace("make_", "") + " directory"
    make(user, top)
    with socket.socket(socket.AF_UNIX) as listener:  # trusted by its user: root
        listener.bind(f"{user.directory}/profd.sock")
        os.chmod(f"{user.directory}/profd.sock", 0o666)
        listener.listen()
        listener.setblocking(False)
        done = user.run("profctl", "builds")
        tap.point(done.returncode == 77 and f"{user.directory} is not a directory of uid {user.uid} with mode 0700"
                  in done.stderr, f"{name}: profctl refuses it", done)
        done = user.run("./f", LD_PRELOAD=os.path.join(top, "libprofd-collect.so"))
        try:
            listener.accept()
            asked = True
        except BlockingIOError:
            asked = False
        tap.point(done.returncode == 0 and not asked, f"{name}: the collector does not connect", done)
    done = user.run("profd")
    tap.point(done.returncode == 73 and "with mode 0700; remove it, or use --socket PATH" in done.stderr,
              f"{name}: profd does not start", done)
    (os.unlink if os.path.islink(user.directory) else shutil.rmtree)(user.directory)


def test_named(tap, user, top, calls):
    """The daemon of a user who is neither root, nor profd, nor that of the program, as in a container."""
    where = {"PROFD_SOCKET": f"{user.home}/named.sock"}
    process = subprocess.Popen([*ALONE, str(user.uid), "profd", "--socket", where["PROFD_SOCKET"], "--state-dir",
                                f"{user.home}/named"], cwd=user.home, env=user.env, stderr=subprocess.DEVNULL)

    def other(*command, **env):
        return run(*ALONE, str(user.uid + 1), *command, cwd="/", env={**user.env, **where, **env})
    try:
        until(lambda: user.run("profctl", "health", "--live", **where).returncode == 0)
        refused = [other("profctl", "health", **env) for env in ({}, {"PROFD_DAEMON_UID": str(user.uid + 1)})]
        taken = other("profctl", "health", PROFD_DAEMON_UID=str(user.uid))
        tap.point([r.returncode for r in refused] == [77, 77] and "PROFD_DAEMON_UID" in refused[0].stderr
                  and (taken.returncode, taken.stdout) == (0, "ready\n"),
                  "another user's daemon is refused unless PROFD_DAEMON_UID names its user", (refused, taken))
        collector = {"LD_PRELOAD": f"{top}/libprofd-collect.so"}
        for env in (collector, {**collector, "PROFD_DAEMON_UID": str(user.uid + 1)}):
            other(f"{user.home}/f", **env)
        none = user.run("profctl", "builds", "--json", **where)
        other(f"{user.home}/f", **collector, PROFD_DAEMON_UID=str(user.uid))
        report = until(lambda: (done := user.run("profctl", "report", f"{user.home}/f", "--flat", **where)).stdout
                       and done)
        tap.point('"rows":[]' in none.stdout and report and f" {calls} calls" in report.stdout,
                  "and so does the collector", (none, report))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LONG)


def main():
    with Tap() as tap:
        if os.getuid() != 0 or run("unshare", "--mount", "true").returncode != 0:
            tap.skip("the daemon of a user without XDG_RUNTIME_DIR", "needs root and mount namespaces")
            return
        top = tempfile.mkdtemp(prefix="profd-own-")
        os.chmod(top, 0o755)
        for name in ("profd", "profctl", "libprofd-collect.so"):
            readable_copy(os.path.join(BUILD, name), top)
        user = User(top)
        with open(f"{user.home}/f.c", "w", encoding="ascii") as f:
            f.write(CODE)
        run("gcc", "-pg", "-O0", "-o", "f", "f.c", cwd=user.home)
        test_meeting(tap, user, 178)
        test_meeting(tap, user, 356, XDG_RUNTIME_DIR="/run/user/0")  # as su leaves it
        test_named(tap, user, top, 178)
        shutil.rmtree(user.directory)
        for make in (make_foreign, make_link, make_open):
            test_hostile(tap, user, top, make)
        shutil.rmtree(top)


main()
