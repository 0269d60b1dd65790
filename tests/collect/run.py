#!/usr/bin/python3
"""profctl run: what a command sees of it, how it ends, and what arrives."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import BUILD, Bed, Tap, difference, run, wait_until  # noqa: E402

PROFCTL = os.path.join(BUILD, "profctl")


def refusals(tap, bed, env):
    for words, status, word in ((["nosuch"], 127, "nosuch"), (["/etc/passwd"], 126, "/etc/passwd"), (["-l", "bad-name=1", "true"], 65, "bad-name"),
                                (["-l", "x", "true"], 64, "NAME=VALUE"), (["--rate", "1e3", "true"], 64, "1e3"), (["--rate", "10001", "true"], 64, "10001"),
                                (["--clock", "sun", "true"], 64, "sun"), (["--memory", "0", "true"], 64, "from 1"), ([], 64, "which command"),
                                (["--zork", "true"], 64, "--zork"), (["-l"], 64, "missing"), (["--socket", "x" * 200, "true"], 64, "107")):
        done = run(PROFCTL, "run", *words, env=env, cwd=bed.folder)
        tap.point(done.returncode == status and word in done.stderr and done.stderr.count("\n") == 1 and not done.stdout,
                  f"run {' '.join(words)[:40]}: {status} and one sentence", (done.returncode, done.stderr, done.stdout))


def main():
    with Tap() as tap, Bed() as bed:
        exe, env = bed.build("truth.c", "-pg"), bed.env(preload=False)
        seen = bed.run(PROFCTL, "run", "-l", "service=web shop", "-l", "zone=a=b", "--rate", "250", exe, "threads", "2", "5000", env=env)
        tap.point(bed.returncode == 0 and not bed.out and not bed.err and len(seen) == 1, "a command runs, and nothing is printed", (bed.out, bed.err))
        p = seen[0]
        tap.point(p["labels"] == {"service": "web shop", "zone": "a=b"} and p["rate"] == 250 and p["exact"] and
                  not difference(bed.truth(p.pid), p.calls()), "labels, rate and every call arrive", p.raw)
        seen = bed.run(PROFCTL, "run", "--", exe, "kill", env=env)
        tap.point(bed.returncode == 128 + 9 and seen[0].calls()["outer"] == 100000, "128 + the signal for one that is killed, with its counts", bed.returncode)
        seen = bed.run(PROFCTL, "run", "sh", "-c", "echo out; echo err >&2; exit 7", env=env)
        tap.point((bed.returncode, bed.out, bed.err) == (7, "out\n", "err\n"), "output and status are the command's", (bed.returncode, bed.out, bed.err))
        tap.point([os.path.basename(q.module(1)["name"]) for q in seen] == [os.path.basename(os.path.realpath("/bin/sh"))],
                  "a program without -pg is there, too")
        refusals(tap, bed, env)
        done = run(PROFCTL, "run", "true", env=dict(env, LD_PRELOAD="/lib/x86_64-linux-gnu/libm.so.6"))
        tap.point(done.returncode == 0, "an LD_PRELOAD of the user's stays")
        done = run(PROFCTL, "run", "sh", "-c", "echo $PROFD_SOCKET", cwd=bed.folder, env=dict(env, PROFD_SOCKET=""))
        relative = run(PROFCTL, "run", "--socket", "s", "sh", "-c", "echo $PROFD_SOCKET", cwd=bed.folder, env=env)
        tap.point(relative.stdout == bed.socket + "\n" and done.stdout == "\n", "a relative socket becomes absolute", (relative.stdout, done.stdout))
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
            child = subprocess.Popen([PROFCTL, "run", "sleep", "30"], env=env)
            wait_until(lambda: run("pgrep", "-P", child.pid, "sleep").returncode == 0)
            child.send_signal(number)
            tap.point(child.wait(timeout=20) == 128 + number, f"{signal.Signals(number).name} is passed on", child.returncode)
        before = time.monotonic()
        done = run(PROFCTL, "run", exe, "threads", "1", "10", env=dict(env, PROFD_SOCKET="/nonexistent/s"))
        tap.point(done.returncode == 0 and not done.stderr and time.monotonic() - before < 30, "without a daemon the command runs all the same", done.stderr)
        done = run(PROFCTL, "run", "--help")
        tap.point(done.returncode == 0 and "--rate" in done.stdout, "run --help")


main()
