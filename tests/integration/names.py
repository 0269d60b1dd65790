"""Names of live processes: they come with ATTACH, whatever the process does or does not do afterwards."""
import json
import os
import shutil
import signal
import sys

from harness import ROOT, Daemon, Tap, run
from memory import Attached, Memory

sys.path.insert(0, os.path.join(ROOT, "tests", "collect"))
from bed import Bed  # noqa: E402
from attach import processes, sync, total, wait_for  # noqa: E402
from restart import Program  # noqa: E402


def builds(d):
    """name → whether it has names."""
    return {r["name"]: r["symbols"] for r in d.json("builds", "--json")["rows"]}


def leaf(d, exe):
    done = d.ctl("report", exe, "--json")
    return (done.returncode == 0 and sum(f["calls"] + f["self_calls"] for f in json.loads(done.stdout)["functions"]
                                         if f["name"] == "leaf"))


def idle(tap, bed):
    """LD_PRELOAD alone; a few calls, and never a tick."""
    with Daemon("--harvest-interval", "1s") as d:
        p = Program(bed, d, PROFD_CLOCK="off")
        try:
            p.call(10)
            tap.point(wait_for(lambda: leaf(d, p.exe) == 10), "an idle program has names without a tick", builds(d))
            named = wait_for(lambda: (b := builds(d)) and all(b[n] for n in b if n.startswith("/")
                    and "profd-collect" not in n) and b)
            tap.point(named and any("libc.so" in n for n in named), "so have the objects it was started with",
                      builds(d))
        finally:
            p.end()


def killed(tap, bed):
    """Killed before anything else could happen."""
    with Daemon("--harvest-interval", "1s") as d:
        p = Program(bed, d, PROFD_CLOCK="off")
        p.call(10)
        p.end()
        tap.point(sync(d) == "ACK" and wait_for(lambda: leaf(d, p.exe) == 10), "after SIGKILL the names are there",
                  builds(d))


def late(tap, bed):
    """A daemon with an empty database that is found later."""
    with Daemon("--harvest-interval", "1s") as d:
        p = Program(bed, d)
        try:
            p.call(10)
            wait_for(lambda: leaf(d, p.exe) == 10)
            d.stop(signal.SIGKILL)
            shutil.rmtree(d.state)
            d.start()
            got = wait_for(lambda: p.tell("spin 20") or leaf(d, p.exe) == 10)
            tap.point(bool(got), "another daemon gets them when the process attaches there", (builds(d), processes(d)))
        finally:
            p.end()


def deleted(tap, bed):
    """A process whose program was deleted counts on: it is asked for its executable again."""
    with Daemon("--harvest-interval", "1s") as d:
        p = Program(bed, d)
        try:
            p.call(10)
            wait_for(lambda: leaf(d, p.exe) == 10)
            for _ in range(2):
                gone = d.ctl("delete", "-y", p.exe)
                p.call(10)
                got = wait_for(lambda: p.tell("spin 20") or leaf(d, p.exe) == 10)
                tap.point(gone.returncode == 0 and bool(got), "after delete the names of a live program come again",
                          (gone, builds(d), d.ctl("report", p.exe).stdout[:500]))
        finally:
            p.end()


def vdso(tap, bed):
    exe = bed.build("ask_time.c", "-pg")
    with Daemon("--harvest-interval", "1s") as d:
        p = Program(bed, d)
        p.end()
        done = run(exe, "3", env=bed.env(PROFD_SOCKET=d.socket), cwd=bed.folder)
        sync(d)
        named = wait_for(lambda: [n for n, has in builds(d).items() if "vdso" in n and has])
        tap.point(done.returncode == 0 and bool(named), "the vDSO, which has no file, has names", builds(d))


def without(tap):
    """A client that hands over its memory alone."""
    with Daemon("--harvest-interval", "1s") as d:
        m = Memory(name="/bin/alone")
        a = Attached(d.socket, m, wait=False)
        m.call(3)
        kinds = set()
        while not {"ACK", "WANT_OBJECT"} <= kinds and (frame := a.take()):
            kinds.add(frame[0])
        tap.point({"ACK", "WANT_OBJECT"} <= kinds and wait_for(lambda: total(d, "/bin/alone") == 3),
                  "ATTACH without executables is served, and asked for them", kinds)
        a.close(), m.close()


def main():
    with Tap() as tap, Bed(harvester=False) as bed:
        for part in (idle, killed, late, deleted, vdso):
            part(tap, bed)
        without(tap)


if __name__ == "__main__":
    main()
