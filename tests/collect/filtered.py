#!/usr/bin/python3
"""Programs with seccomp filters and real SIGPROFs under the collector: they end as without it, and are counted."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import LONG, Bed, Tap, difference, wait_until  # noqa: E402
from page import Live  # noqa: E402


def filters(tap, bed):
    plain, counted = bed.build("filtered.c", name="plain"), bed.build("filtered.c", "-pg", name="counted")
    for exe in (plain, counted):
        for clock in ("cpu", "off"):
            for how, what in [("prctl", w) for w in ("strict", "list", "exits", "trap", "errno")] + \
                             [("syscall", "list"), ("syscall", "strict")]:
                env = bed.env(PROFD_CLOCK=clock, PROFD_RATE=1000)
                p = next((p for p in bed.run(exe, how, what, env=env) if p.pid == bed.pid), None)
                said = f"{os.path.basename(exe)}, clock {clock}, {what} by {how}: it ends as without the collector"
                tap.point(bed.returncode == 0 and bed.out == "good\n", said, (bed.returncode, bed.out, bed.err))
                calls = p and p.calls()
                tap.point(p and not p.failed and (exe == plain or (p["exact"] and not difference(
                    bed.truth(bed.pid), calls))) and (clock == "off" or p["TICKS"] > 120),  # the calibration has 50
                          "its calls and ticks are there",
                          p and (calls, p["TICKS"]))
                bed.forget_truth()


def steady(tap, bed):
    """The filter is installed behind the collector's back, and kills at any system call but those of the program."""
    for options in ((), ("-pg",)):
        p = Live(bed, bed.build("filtered.c", *options, name="steady"), "raw", "list", PROFD_RATE=1000)
        p.has_page()
        os.kill(p.pid, signal.SIGSTOP)  # no tick comes while it is read how many there were
        before = p.wait(lambda q: q["TICKS"] > 0)["TICKS"]
        os.kill(p.pid, signal.SIGUSR1)
        os.kill(p.pid, signal.SIGCONT)
        p.process.wait(LONG)
        seen = p.seen()
        tap.point(p.process.returncode == 0 and seen["TICKS"] > before + 80,
                  f"ticks of a process with a daemon make no system call {options}",
                  (p.process.returncode, before, seen["TICKS"]))
        p.end()
        bed.forget_truth()


def dispositions(tap, bed):
    exe = bed.build("sigprof.c")
    for how in ("raise", "kill", "timer", "itimer"):
        for what in ("default", "reset", "ignore", "handler"):
            p = next((p for p in bed.run(exe, how, what) if p.pid == bed.pid), None)
            ends = what in ("default", "reset")
            tap.point((bed.returncode, bed.out) == ((-signal.SIGPROF, "") if ends else (0, "good\n")),
                      f"SIGPROF by {how}, {what}: as without the collector", (bed.returncode, bed.out))
            tap.point(p and p["TICKS"] > 0 and p["FOREIGN_SIGPROF"] == (not ends),
                      "it has had ticks, and lost them only by a disposition of its own", p and p.raw)


def main():
    with Tap() as tap, Bed() as bed:
        filters(tap, bed)
        steady(tap, bed)
        dispositions(tap, bed)


if __name__ == "__main__":
    main()
