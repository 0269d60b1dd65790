#!/usr/bin/python3
"""Whole stacks: a program that knows its own paths. Each leaf is reached by one path, so that every stack that was
recorded is one of them, or it is wrong."""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import COLLECT_STATIC, SAMPLES, Bed, Tap  # noqa: E402

# From main or from the function with which a thread begins; None: the outer frames cannot be known.
PATHS = {"one": "main first shared", "two": "main second shared", "three": "main second shared",
         "varies": "main varies shared", "aligned": "main aligned shared",
         "recursion": "main even odd even odd even odd even", "tail": "main tail", "compare": "main sorts compare",
         "jump": "main jumper jumps", "thread": "worker shared", "arguments": "main arguments",
         "child": "main forks shared"}
ENDS = ["main asks", "main switches", "main signals"]  # without a leaf of their own
CUT = {"signal": ("on_signal",), "alternate": (), "coroutine": (), "deep": ("deep",) * 126}
CODE = {"on_signal", "on_alternate", "coroutine"}
SHOWN = ("one", "two", "three", "varies", "aligned", "recursion", "tail", "compare", "jump", "thread", "arguments")
KINDS = (("-O0", ["-O0"]), ("-O2", []), ("-O2, frame pointers", ["-fno-omit-frame-pointer"]), ("-Os", ["-Os"]),
         ("-O2, calls at the end are jumps", ["-foptimize-sibling-calls"]), ("-pg", ["-pg"]),
         ("-pg -mfentry", ["-pg", "-mfentry"]), ("-fcf-protection", ["-fcf-protection=full"]),
         ("not PIE", ["-no-pie", "-fno-pie"]))


TRUE = {tuple(f"{path} leaf_{name}".split()) for name, path in PATHS.items()}
TRUE |= {tuple(path.split()) for path in ENDS}
TRUE |= {("main", "leaf_tail"), ("main", *["deep"] * 301, "leaf_deep")}
THROWS = {tuple(path.split()) for path in (
    "main last catcher middle thrower leaf_throw burn", "main last catcher middle guard_end leaf_guard burn",
    "main last catcher leaf_catch burn", "main last leaf_last burn")}


class Judge:
    """What the functions of a program may look like on a stack."""

    def __init__(self, true, more=()):
        self.prefixes = {path[:i] for path in true for i in range(len(path) + 1)}
        self.names = {name for path in true for name in path} | set(more)

    def own(self, frames):
        return tuple(n for n in (n.replace(".cold", "") for n in frames) if n in self.names)

    def wrong(self, frames):
        """'' if the path is true; otherwise what is wrong with it."""
        names = self.own(frames)
        if frames[0] != "[incomplete]":
            return "" if names in self.prefixes else "no such path"
        if len(frames) > 128:
            return "too deep"
        leaf = names[-1][5:] if names and names[-1].startswith("leaf_") else ""
        if len(names) < 2:  # where the thread is, and no caller
            return ""
        if leaf in CUT:
            return "" if names[:-1] == CUT[leaf] else "not its callers"
        if len(frames) == 128 and names in self.prefixes:  # what called main is too far out
            return ""
        return "" if names[0] == "on_signal" or set(names) == {"deep"} else "it has outer frames"


class Parts(Judge):
    """A program without tables, whose functions keep no frame pointers: frames may be missing."""

    def wrong(self, frames):
        names = self.own(frames)
        found = any(all(n in rest for n in names) for rest in map(iter, self.prefixes))
        return "" if len(names) < 2 or found else "not of one path"


PROGRAM = (TRUE, CODE | {f"leaf_{name}" for name in CUT})


def check(tap, what, p, judge, leaves, whole=True, again=tuple):
    """again: runs the program once more, for paths that no tick has found; the kernel gives few ticks a second."""
    stacks = p.stacks()
    wrong = {" ".join(path): judge.wrong(path) for path in stacks if judge.wrong(path)}
    tap.point(not wrong, f"{what}: every stack is a path of the program", dict(list(wrong.items())[:8]))
    total, ticks = sum(stacks.values()), sum(c for kind, *_, c in p["counts"] if kind == SAMPLES)
    tap.point(total == ticks and p["TICKS"] == ticks + p["TICKS_INSIDE"] + p["TICKS_BLOCKED"] + p["TICKS_DROPPED"]
              and p["bad"] == p["not_yet"] == p["PAIRS_DROPPED"] == 0, f"{what}: every tick has its stack",
              (total, ticks, p["TICKS"], p["TICKS_INSIDE"], p["PAIRS_DROPPED"]))
    seen = {path[-1] for path in stacks}
    for _ in range(20):
        missing = {name for name in leaves if f"leaf_{name}" not in seen}
        seen |= {path[-1] for q in (again() if missing else ()) for path in q.stacks()}
    tap.point(not missing, f"{what}: every path was seen", missing)
    cut = [path for path in stacks if path[0] == "[incomplete]" and path[-1].replace("leaf_", "") in PATHS]
    tap.point(not cut or not whole, f"{what}: stacks reach the beginning of their thread", cut[:8])


def run_once(bed, exe, static=False):
    seen = bed.run("env", "PROFD_RATE=2000", exe, "0.5", preload=not static)
    return [p for p in seen if not p.failed and p.module(1)["name"] == exe]


def run(tap, bed, what, exe, static=False):
    """The processes of a program, the first one first."""
    seen = run_once(bed, exe, static)
    if tap.point(seen and bed.returncode == 0, f"{what}: runs", (len(seen), bed.returncode, bed.err)):
        return sorted(seen, key=lambda p: p.pid != bed.pid)
    return []


def one(tap, bed, what, options, compiler="gcc"):
    exe = bed.build("paths.c", *options, name="paths", compiler=compiler)
    for p, leaves in zip(run(tap, bed, what, exe), (SHOWN, ("child",))):
        check(tap, f"{what}, {leaves[-1]}", p, Judge(*PROGRAM), leaves, again=lambda: run_once(bed, exe))


def static(tap, bed, what, options, judge, whole):
    exe = bed.build("paths.c", "-static", *options, name="paths", libraries=[COLLECT_STATIC, "-ldl", "-pthread"])
    for p in run(tap, bed, what, exe, static=True)[:1]:
        check(tap, what, p, judge, set(SHOWN) - {"thread"}, whole, lambda: run_once(bed, exe, static=True))


def throws(tap, bed, options):
    what = "exceptions " + " ".join(options)
    exe = bed.build("throws.cc", *options, compiler="g++")
    for p in run(tap, bed, what, exe):
        check(tap, what, p, Judge(THROWS), ())
        seen = [p.stacks()]  # chance decides where few ticks fall: up to five runs
        while not any("_Unwind_RaiseException" in path and path[0] != "[incomplete]" for q in seen for path in q) \
                and len(seen) < 5:
            seen += [q.stacks() for q in run_once(bed, exe)]
        cut = [path for q in seen for path in q if path[0] == "[incomplete]"]
        tap.point(any("_Unwind_RaiseException" in path and path[0] != "[incomplete]" for q in seen for path in q)
                  and all("_Unwind" in " ".join(path) for path in cut),
                  f"{what}: while they are thrown; incomplete is only what replaces its own return address", cut[:4])


def full(tap, bed):
    """More paths than a tree has frames: what does not fit is counted at a caller, and nothing is lost or wrong."""
    for depth, fits in ((8, True), (17, False)):
        exe, what = bed.build("full.c", name="full"), f"{1 << depth} paths"
        p = next(q for q in bed.run("env", "PROFD_RATE=99", exe, depth) if q.module(1)["name"] == exe)
        names = {tuple(n for n in path if n in ("main", "branch", "leaf")) for path in p.stacks()}
        true = {("main", *["branch"] * n) for n in range(depth + 2)} | {("main", *["branch"] * (depth + 1), "leaf"), ()}
        tap.point(bed.returncode == 0 and names <= true, f"{what}: every stack is a path of the program", names - true)
        total, ticks = sum(p.stacks().values()), sum(c for kind, *_, c in p["counts"] if kind == SAMPLES)
        tap.point(total == ticks >= 1 << depth and p["bad"] == p["not_yet"] == 0, f"{what}: every tick has its stack",
                  (total, ticks, p["bad"], p["not_yet"]))
        nodes = len(p["stacks"])
        tap.point((p["PAIRS_DROPPED"] == 0) == fits and nodes <= 65400 and (fits or nodes > 40000),
                  f"{what}: {'all' if fits else 'as many as possible'} with all frames", (nodes, p["PAIRS_DROPPED"]))


def main():
    with Tap() as tap, Bed() as bed:
        full(tap, bed)
        for compiler in ("gcc", "clang"):
            if not shutil.which(compiler):
                tap.skip(compiler, "is not installed")
                continue
            for what, options in KINDS:
                if compiler == "gcc" or what in ("-O0", "-O2", "-pg -mfentry"):
                    one(tap, bed, f"{compiler}, {what}", options, compiler)
        static(tap, bed, "static, with a table", ["-Wl,--eh-frame-hdr"], Judge(*PROGRAM), True)
        static(tap, bed, "static, frame pointers", ["-fno-omit-frame-pointer"], Parts(*PROGRAM), False)
        static(tap, bed, "static, neither", [], Parts(*PROGRAM), False)
        for options in (["-O0"], ["-O2"], ["-O2", "-fno-omit-frame-pointer"]):
            throws(tap, bed, options)


main()
