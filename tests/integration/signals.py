#!/usr/bin/python3
"""Signal handlers that work on top of work, one on top of another: a report names each handler under what it
interrupted, or its stack begins in "[incomplete]". No report has a call that nobody made."""
import json
import os
import shutil

from harness import ROOT, Daemon, Tap, run

SOURCE = os.path.join(ROOT, "tests/programs/interrupted.c")
OWN = {"main", "work", "burn", "handler_outer", "handler_inner"}
HANDLERS = {"handler_outer": {"main", "work"}, "handler_inner": {"handler_outer"}}  # and what each may interrupt
CALLERS = {"work": {"main"}, "burn": set(HANDLERS), "handler_outer": {"__restore_rt"},
           "handler_inner": {"__restore_rt"}}  # in a stack, where they are known
CALLS = {("main", "work"), ("handler_outer", "burn"), ("handler_inner", "burn")}
TRAMPOLINE = "__restore_rt"  # the kernel calls a handler so that it returns there
KINDS = (("gcc", "-O0"), ("gcc", "-O2"), ("gcc", "-O2", "-pg"), ("clang", "-O2", "-fno-omit-frame-pointer"),
         ("clang", "-O1", "-pg"))


def faults_of(frames):
    """What is wrong with a stack, or ''."""
    for outer, inner in zip(frames, frames[1:]):
        if outer != "[incomplete]" and outer not in CALLERS.get(inner, {outer}):
            return f"{outer} called {inner}"
        if outer in OWN and inner in OWN and (outer, inner) not in CALLS:
            return f"{outer} called {inner}"
    for at, name in enumerate(frames):
        below = [n for n in frames[:at] if n in OWN]
        if name in HANDLERS and below and below[-1] not in HANDLERS[name]:
            return f"{name} on top of {below[-1]}"
        if name == TRAMPOLINE and frames[:at] != ("[incomplete]",):
            return f"{frames[at - 1]} called {name}"
        if name in HANDLERS and not below and frames[0] != "[incomplete]":
            return f"{name} begins a stack that is not marked"
    return ""


def one(tap, d, kind, *how):
    what, exe = " ".join(kind + how), os.path.join(d.folder, "interrupted-" + "".join(kind + how))
    built = run(kind[0], *kind[1:], "-g", "-Wl,--build-id=uuid", "-o", exe, SOURCE)
    truth = [0.0, 0.0]  # CPU seconds in handlers, and all
    for _ in range(20):  # the kernel gives few ticks a second on a busy machine
        done = d.ctl(*(how or ("run",)), "--rate", "250", "--", exe, "20")
        truth = [a + float(b) for a, b in zip(truth, done.stdout.split())]
        folded = [line.rsplit(" ", 1) for line in d.ctl("report", exe, "-f", "folded").stdout.splitlines()]
        stacks = {tuple(path.split(";")): int(n) for path, n in folded}
        seen = {name for path in stacks for name in path}
        if done.returncode or OWN <= seen:
            break
    tap.point(built.returncode == 0 and done.returncode == 0, f"{what}: runs", built.stderr + done.stderr)
    wrong = {path: fault for path in stacks if (fault := faults_of(path))}
    tap.point(stacks and not wrong, f"{what}: each handler is under what it interrupted, or its stack is marked", wrong)
    tap.point(OWN <= seen, f"{what}: every function is named", OWN - seen)
    report = json.loads(d.ctl("report", exe, "--json").stdout)
    arcs = {(row["name"], f["name"]) for f in report["functions"] for row in f["callers"]
            if row["name"] in OWN and f["name"] in OWN and (row["calls"] or row.get("measured_total"))}
    tap.point(arcs <= CALLS, f"{what}: no arc of the report is a call that nobody made", arcs - CALLS)
    burned = sum(n for path, n in stacks.items() if set(path) & set(HANDLERS))
    marked = sum(n for path, n in stacks.items() if path[0] == "[incomplete]")
    share, real = burned / sum(stacks.values()), truth[0] / truth[1]
    # Of 60 ticks, which a busy machine gives at least, 3/4 have a standard error of 0.056.
    tap.point(abs(share - real) < 0.35, f"{what}: handlers have their share of the ticks", (share, real))
    print(f"# {what}: {share:.0%} of the ticks are in handlers, {real:.0%} of the time, and "
          f"{marked / sum(stacks.values()):.0%} in stacks that begin in [incomplete]", flush=True)


def main():
    with Tap() as tap, Daemon() as d:
        for kind in KINDS:
            if shutil.which(kind[0]):
                one(tap, d, kind)
                if kind in (("gcc", "-O0"), ("clang", "-O2", "-fno-omit-frame-pointer")):
                    one(tap, d, kind, "record")
                if kind == ("gcc", "-O2"):
                    one(tap, d, kind, "record")
                    one(tap, d, kind, "record", "--unwind", "table")
            else:
                tap.skip(" ".join(kind), f"{kind[0]} is not installed")


if __name__ == "__main__":
    main()
