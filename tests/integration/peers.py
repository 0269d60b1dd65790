"""What clients do about the other end of a Unix socket: a server whose user cannot be told is not trusted, and a full
queue of new connections is waited for."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import harness
from harness import LONG, PROFD, ROOT, Daemon, Tap, run, until

sys.path.insert(0, os.path.join(ROOT, "tests", "collect"))
from bed import Bed  # noqa: E402

STRANGER = 60127


def live(d):
    return d.json("ps", "--json")["rows"]


def unmapped(tap):
    """In a user namespace that maps nobody, every user looks like the overflow uid, oneself included."""
    if os.getuid() != 0 or not shutil.which("setpriv") or run("unshare", "--user", "true").returncode != 0:
        return tap.skip("servers of unmapped users", "needs root, setpriv and user namespaces")
    with Daemon(start=False, wrapper=["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}",
                                      "--clear-groups"]) as d, Bed(harvester=False) as bed:
        binary = shutil.copy(PROFD, d.folder)  # the checkout may be unreadable to others
        os.chmod(d.folder, 0o777)
        command = [binary if word == PROFD else word for word in d.command()]
        d.command = lambda: command
        d.start()
        done = d.ctl("builds")
        tap.point(done.returncode == 77 and str(STRANGER) in done.stderr, "a server of another user's is not trusted",
                  done)
        done = run("unshare", "--user", harness.PROFCTL, "builds", env=d.env)
        tap.point(done.returncode == 77 and "user namespace" in done.stderr,
                  "nor where its uid looks like one's own because neither is mapped", done)
        for name, prefix in (("another user's", []), ("an unmapped user's", ["unshare", "--user"])):
            exe = bed.build("steady.c", "-pg", "-rdynamic")
            p = subprocess.Popen([*prefix, exe, "_exit"], env=dict(bed.env(), PROFD_SOCKET=d.socket),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=bed.folder)
            p.stdout.readline()
            p.communicate(timeout=LONG)
            asked = run("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups",
                        shutil.copy(harness.PROFCTL, d.folder), "builds", "--json",
                        env=d.env, cwd=d.folder)
            tap.point(asked.returncode == 0 and json.loads(asked.stdout)["rows"] == [],
                      f"the collector hands nothing to {name} server", asked)
    with Daemon(start=False, wrapper=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]) as d:
        for program in (PROFD, harness.PROFCTL):
            shutil.copy(program, d.folder)
        os.chmod(d.folder, 0o777)
        command = [os.path.join(d.folder, "profd") if word == PROFD else word for word in d.command()]
        d.command = lambda: command
        d.start()
        done = run(*d.wrapper, os.path.join(d.folder, "profctl"), "builds", env=d.env, cwd=d.folder)
        tap.point(done.returncode == 0, "where all users are mapped, uid 65534 is a user like any other", done)
        done = run("unshare", "--user", "--map-root-user", harness.PROFCTL, "builds", env=d.env)
        tap.point(done.returncode == 77, "root of a user namespace does not trust it either", done)


def crowded(tap):
    """The daemon accepts late: no client is sent away by the kernel's queue, and the collector comes again."""
    with Daemon(start=False) as d, Bed(harvester=False) as bed, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(d.socket)
        listener.listen(0)
        exe = bed.build("steady.c", "-pg", "-rdynamic")  # now: a client waits 20 seconds for its connection
        with socket.socket(socket.AF_UNIX) as first:
            first.connect(d.socket)  # the queue is full
            clients = [subprocess.Popen([harness.PROFCTL, "builds"], env=d.env, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True) for _ in range(20)]
            p = subprocess.Popen([exe, "spin"], env=dict(bed.env(), PROFD_SOCKET=d.socket), stdout=subprocess.PIPE,
                                 cwd=bed.folder)
            p.stdout.readline()
            time.sleep(1)  # a client that does not wait has ended by then
            tap.point(all(c.poll() is None for c in clients), "20 clients wait for a place in the queue",
                      [c.poll() for c in clients])
        fd = os.dup2(listener.fileno(), 200)
        with open(d.log, "ab") as log:
            d.process = subprocess.Popen(["bash", "-c", 'exec 3<&200 200<&-; LISTEN_PID=$$ exec "$@"', "bash", PROFD,
                                          "--state-dir", d.state],
                                         env=dict(d.env, LISTEN_FDS="1", LISTEN_FDNAMES="upload"), pass_fds=(fd,),
                                         stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        os.close(fd)
        said = [(c.communicate(timeout=LONG)[1], c.returncode) for c in clients]
        tap.point(all(code == 0 for _, code in said), "all are served when the daemon accepts", said)
        rows = until(lambda: live(d))
        tap.point(rows and rows[0]["calls"] > 0 or bool(until(lambda: [r for r in live(d) if r["calls"] > 0])),
                  "so is the process that counts", (rows, d.logged()))
        p.send_signal(signal.SIGKILL)
        p.communicate(timeout=LONG)


def main():
    with Tap() as tap:
        for part in (unmapped, crowded):
            part(tap)


main()
