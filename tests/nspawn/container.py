"""A booted systemd-nspawn container with a copy of a root directory. Not a program."""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "integration"), os.path.join(HERE, "..", "collect")]
from harness import BUILD, ROOT, run  # noqa: E402

LONG = 120


def wait_for(condition, seconds=LONG):
    deadline = time.monotonic() + seconds
    while not (got := condition()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return got


def own_group(name):
    """A control group below that of this process. Without a group of its own, every container that systemd-nspawn
    starts has the group "payload", and units of one name in two containers are one group."""
    mounted = next(line.split()[1] for line in open("/proc/mounts") if line.split()[2] == "cgroup2")
    inside = next(line.strip()[4:] for line in open("/proc/self/cgroup") if line.startswith("0::/"))
    group = os.path.join(mounted, inside, f"{name}-{os.getpid()}")
    os.makedirs(group)
    return group


class Container:
    """A copy of the root directory, booted. units: profd is installed by make, and these are enabled."""

    def __init__(self, root, folder, units=()):
        self.root, self.folder, self.process = os.path.join(folder, "root"), folder, None
        done = run("cp", "-a", root, self.root, timeout=600)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        open(os.path.join(self.root, "etc/machine-id"), "w").close()  # its first boot
        if units:
            self.install(units)

    def install(self, units):
        done = run("make", "-s", "-C", ROOT, "install", f"B={BUILD}", f"DESTDIR={self.root}", "prefix=/usr",
                   timeout=300)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        done = run("systemctl", f"--root={self.root}", "enable", *units)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def boot(self, *network):
        network = network or ("--private-network",)
        log = open(os.path.join(self.folder, "console"), "wb")
        self.group = own_group(os.path.basename(self.folder))
        self.process = subprocess.Popen(["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot",
                                         f"--directory={self.root}",
                                         "--console=pipe", *network], stdin=subprocess.DEVNULL, stdout=log,
                                        stderr=log, preexec_fn=self.enter,
                                        env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1"))
        self.leader = wait_for(self.find_first)
        return wait_for(lambda: self.do("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"))

    def enter(self):
        with open(os.path.join(self.group, "cgroup.procs"), "w") as f:
            f.write("0")

    def find_first(self):
        """The number, outside, of process 1 of the container. systemd-nspawn has another child before."""
        for pid in run("pgrep", "-P", self.process.pid).stdout.split():
            try:
                numbers = next(line for line in open(f"/proc/{pid}/status") if line.startswith("NSpid:")).split()
            except (OSError, StopIteration):
                continue
            if len(numbers) > 2 and numbers[-1] == "1":
                return pid
        return None

    def do(self, *command, timeout=LONG, **env):
        """A command of root's in the container."""
        clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": "/root", **env}
        return run("nsenter", "-t", self.leader, "-a", *command, env=clean, timeout=timeout)

    def as_user(self, user, *command):
        """A command of another user's, as a transient unit, to its end."""
        return self.do("systemd-run", "--quiet", "--pipe", "--wait", "--collect", "-p", f"User={user}", "-E",
                       "LC_ALL=C", *command)

    def show(self, name, unit="profd.service"):
        return self.do("systemctl", "show", "-P", name, unit).stdout.strip()

    def daemon(self):
        """The number of the daemon's process here, outside."""
        inside = self.show("MainPID")
        for pid in run("pgrep", "-x", "profd").stdout.split():
            try:
                numbers = next(line for line in open(f"/proc/{pid}/status") if line.startswith("NSpid:")).split()
            except (OSError, StopIteration):
                continue
            if len(numbers) > 2 and numbers[-1] == inside:
                return int(pid)
        return 0

    def stop(self):
        if self.process and self.process.poll() is None:
            self.do("systemctl", "poweroff")
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.terminate()
                self.process.wait(60)
        if self.process:
            for folder, _, _ in os.walk(self.group, topdown=False):
                os.rmdir(folder)


def write(c, path, text, owner="root", mode=0o644):
    """A file in the container."""
    name = os.path.join(c.root, path)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w") as f:
        f.write(text)
    os.chmod(name, mode)
    c.do("chown", owner, f"/{path}")
