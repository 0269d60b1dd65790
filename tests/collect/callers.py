#!/usr/bin/python3
"""Who called a sampled function: what the unwind information says, and never a frame pointer that a function does not
keep."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import Bed, Tap, symbols  # noqa: E402

KINDS = (("as Debian builds", []), ("no frame pointers", ["-fomit-frame-pointer"]),
         ("frame pointers", ["-fno-omit-frame-pointer"]),
         ("frame pointers, but not in leaves", ["-fno-omit-frame-pointer", "-momit-leaf-frame-pointer"]),
         ("not PIE", ["-no-pie", "-fno-pie"]), ("-O0", ["-O0"]), ("-Os", ["-Os"]))
CHAIN = [("main", "outer"), ("outer", "varies"), ("varies", "inner")]
NONE = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]


MINE = {"main", "outer", "varies", "inner", "quiet", "spin", "innocent"}
TRUE = {("main", "outer", "varies", "inner", "spin"), ("main", "quiet", "spin")}


def own(p):
    """Pairs with a function of the program as callee, by names."""
    return {pair: n for pair, n in p.sampled().items() if pair[1] in MINE}


def true(tap, p, what):
    pairs, ticks = own(p), p.ticks()
    into = {pair: n for pair, n in pairs.items() if pair[1] == "spin"}
    tap.point(ticks["spin"] > 20 and set(into) <= {("inner", "spin"), ("quiet", "spin")}
              and sum(into.values()) == ticks["spin"], f"{what}: every tick of spin has one of its two callers",
              (pairs, ticks, p["TICKS"], p["TICKS_BLOCKED"], p["TICKS_DROPPED"], p["CPU_NS"]))
    inner = pairs.get(("inner", "spin"), 0)
    tap.point(inner > 0 and all(pairs.get(pair, 0) >= inner for pair in CHAIN)
              and all(caller != "innocent" for caller, _ in pairs),
              f"{what}: the callers of its callers, up to main", pairs)


def stacks(tap, p, what, exact):
    """By frame pointers: a function that keeps none has no frame, and never another function's."""
    seen = {tuple(n for n in names if n in MINE) for names in p.stacks() if names[-1] == "spin"}
    tap.point(seen and all(path in TRUE if exact else any(is_part(path, true) for true in TRUE) for path in seen),
              f"no unwind information but that of spin, {what}: the stacks", seen)


def is_part(path, of):
    rest = iter(of)
    return all(name in rest for name in path)


def begins(tap, p, what):
    """Without symbols, call sites of one function would be several functions if a callee were an address inside."""
    exe = p.module(1)["name"]
    starts = {address for address, _, _ in symbols(exe)}
    # A tick can fall into a stub of the linker: its unwind entry begins where the section of the stubs does.
    sections = subprocess.run(["readelf", "-SW", exe], capture_output=True, text=True, check=True).stdout
    starts |= {int(address, 16) for address in re.findall(r"\.plt\S*\s+PROGBITS\s+(\w+)", sections)}
    callees = {begin for _, _, _, _, module, _, begin, _ in p["stacks"] if module == 1}
    tap.point(callees and callees <= starts, f"{what}: a callee is where it begins", [hex(a) for a in callees - starts])


def run(tap, bed, what, options, compiler="gcc"):
    exe = bed.build("callers.c", *options, name="callers", compiler=compiler)
    seen = [p for p in bed.run("env", "PROFD_RATE=250", exe, "0.4") if p.module(1)["name"] == exe]
    if tap.point(len(seen) == 1 and bed.returncode == 0, f"{what}: attached", (seen, bed.err)):
        return seen[0]
    return None


def main():
    with Tap() as tap, Bed() as bed:
        for compiler in ("gcc", "clang-14", "clang"):
            if not shutil.which(compiler):
                continue
            for what, options in KINDS:
                p = run(tap, bed, f"{compiler}, {what}", options, compiler)
                if p:
                    true(tap, p, f"{compiler}, {what}")
                    begins(tap, p, f"{compiler}, {what}")
            if compiler != "gcc":
                break
        for what, options in (("frame pointers", ["-fno-omit-frame-pointer"]), ("neither", ["-fomit-frame-pointer"])):
            p = run(tap, bed, f"no unwind information, {what}", [*NONE, *options])
            if p:
                tap.point(p.ticks()["spin"] > 20 and set(own(p)) == {("inner", "spin"), ("quiet", "spin")},
                          f"no unwind information but that of spin, {what}: nobody else's caller is named", own(p))
                stacks(tap, p, what, what != "neither")


main()
