#!/usr/bin/python3
"""Many threads, forks, execs and short processes: every stack is a path of the program, and every tick is somewhere.
STORM=n multiplies the numbers of processes (STORM=40: 10,000 short ones)."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import SAMPLES, Bed, Tap, wait_until  # noqa: E402

TIMES = int(os.environ.get("STORM", "1"))
DEPTH = 6  # of forks: 127 processes
THREADS, EXECS, SHORT, AT_ONCE = 1000, 60, 250, 8
PATHS = {"worker shared leaf_thread", "main threads", "main execs shared leaf_exec", "main shortly shared leaf_short"}
PATHS |= {"main " + "spawn " * n + "shared leaf_fork" for n in range(1, DEPTH + 2)}
TRUE = {tuple(path.split()[:i]) for path in PATHS for i in range(len(path.split()) + 1)}
NAMES = {name for path in TRUE for name in path}


def judge(tap, what, seen, least):
    """least: of the processes that must be there."""
    wrong, unplaced, ticks, cut = set(), [], 0, 0
    for p in seen:
        placed = sum(c for kind, *_, c in p["counts"] if kind == SAMPLES)
        if sum(c for _, c in p.paths()) != placed or p["bad"] or p["not_yet"] or p["TICKS"] != placed + sum(
                p[f"TICKS_{name}"] for name in ("INSIDE", "BLOCKED", "DROPPED")):
            unplaced.append((p.pid, p["TICKS"], placed, sum(c for _, c in p.paths())))
        for frames, n in p.stacks().items():
            names = tuple(name for name in frames if name in NAMES)
            if frames[0] == "[incomplete]":
                cut += n
                names = names if len(names) > 1 else ()
            if names not in TRUE:
                wrong.add(" ".join(frames))
        ticks += placed
    tap.point(len(seen) >= least and ticks > 0 and not wrong, f"{what}: every stack is a path of the program",
              (len(seen), ticks, sorted(wrong)[:4]))
    # On a busy machine one tick weighs 5 and more: some of them may find threads that begin or end.
    tap.point(not unplaced and 5 * cut <= ticks + 60, f"{what}: every tick has its stack, up to the first function",
              (unplaced[:4], cut, ticks))


def run(bed, exe, *words, n=1):
    """What n processes, AT_ONCE of them at a time, leave behind."""
    before, failed = {p["instance"] for p in bed.dump() if "instance" in p.raw}, 0
    for _ in range(0, n, AT_ONCE):
        started = [subprocess.Popen([exe, *map(str, words)], env=bed.env(PROFD_RATE=1000), cwd=bed.folder)
                   for _ in range(min(AT_ONCE, n))]
        failed += sum(p.wait(timeout=300) != 0 for p in started)
    wait_until(lambda: not any(p["alive"] for p in bed.dump()))
    return [p for p in bed.dump() if p.raw.get("instance") not in before and not p.failed], failed


def main():
    with Tap() as tap:
        for what, words, n, least in ((f"{THREADS} threads", ("threads", THREADS), 1, 1),
                                      ("forks of forks", ("forks", DEPTH), 1, 2 ** (DEPTH + 1) - 1),
                                      ("programs that replace themselves", ("execs", EXECS), 1, EXECS + 1),
                                      (f"{SHORT} short processes", ("short",), SHORT, SHORT)):
            for _ in range(TIMES):
                with Bed() as bed:  # it reads at most 4,096 processes
                    seen, failed = run(bed, bed.build("storm.c"), *words, n=n)
                    tap.point(not failed, f"{what}: no program fails", failed)
                    judge(tap, what, seen, least)


main()
