#!/usr/bin/python3
"""The collector on AArch64: built by the cross compiler, run by qemu's user emulation, counted by the same
harvester."""
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ["NM"] = "aarch64-linux-gnu-nm"
from bed import ROOT, Bed, Tap, difference, run  # noqa: E402

CROSS = "aarch64-linux-gnu-"


def build(bed):
    out = os.path.join(bed.folder, "arm")
    done = run("make", "-C", ROOT, f"B={out}", f"CC={CROSS}gcc", f"LD={CROSS}ld", f"AR={CROSS}ar",
               f"OBJCOPY={CROSS}objcopy",
               os.path.join(out, "libprofd-collect.so"), os.path.join(out, "libprofd-collect.a"), timeout=240)
    return (out if done.returncode == 0 else None), done.stdout + done.stderr


def check(tap, bed, collect, exe, name, preload, *arguments, status=0, exact=True):
    front = (["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
             + (["-E", f"LD_PRELOAD={collect}/libprofd-collect.so"] if preload else []))
    seen = bed.run(*front, exe, *arguments, env=bed.env(preload=False))
    wrong = []
    for p in seen:
        off = difference(bed.truth(p.pid), p.calls()) if not p.failed else p.failed
        if off or p["exact"] != exact:
            wrong.append((p.pid, off, p["exact"]))
    tap.point(seen and not wrong and bed.returncode == status, f"{name}: {' '.join(map(str, arguments))}",
              (wrong, len(seen), bed.returncode, bed.err))
    bed.forget_truth()
    return seen[0] if seen else None


def main():
    with Tap() as tap, Bed() as bed:
        if not shutil.which("qemu-aarch64") or not shutil.which(CROSS + "gcc"):
            tap.skip("the collector on AArch64", "needs qemu-user and gcc-aarch64-linux-gnu")
            return
        collect, words = build(bed)
        if not tap.point(collect, "the cross compiler builds it", words):
            return
        kinds = [("-pg", ["-pg"], []), ("not PIE", ["-pg", "-no-pie", "-fno-pie"], []),
                 ("signed addresses", ["-pg", "-mbranch-protection=standard"], []),
                 ("static", ["-pg", "-static"], [f"{collect}/libprofd-collect.a"]),
                 ("-finstrument-functions", ["-finstrument-functions", "-Wl,--unresolved-symbols=ignore-all"], [])]
        for name, options, archive in kinds:
            exe = bed.build("truth.c", *options, compiler=CROSS + "gcc", libraries=[*archive, "-ldl", "-pthread"],
                            name="truth")
            preload = not archive
            check(tap, bed, collect, exe, name, preload, "threads", 4, 5000)
            # The emulator's signal return lies in no object, so that handlers are called from nowhere here; their calls
            # count.
            check(tap, bed, collect, exe, name, preload, "storm", 1, 5000, exact=False)
            check(tap, bed, collect, exe, name, preload, "forks", 1, 100)
            check(tap, bed, collect, exe, name, preload, "churn", 20, 50)
            check(tap, bed, collect, exe, name, preload, "kill", 1, 5000, status=-signal.SIGKILL)
            if name in ("-pg", "signed addresses"):
                p = check(tap, bed, collect, exe, name, preload, "burn", 0, 80)
                tap.point(p["TICKS"] > 20 and p.ticks()["burn"] > 0.8 * (p["TICKS"] - p["TICKS_BLOCKED"]),
                          f"{name}: ticks in their place, but those that came late",
                          (p["TICKS"], p["TICKS_BLOCKED"], p.ticks()))
                tap.point(p.sampled()["life", "burn"] > 10, f"{name}: sampled pairs", p.sampled())
        for name, options in (("callers", []), ("callers, no frame pointers", ["-fomit-frame-pointer"]),
                              ("callers, signed addresses", ["-mbranch-protection=standard"])):
            exe = bed.build("callers.c", *options, compiler=CROSS + "gcc", name="callers")
            p = bed.run("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-E",
                        f"LD_PRELOAD={collect}/libprofd-collect.so", exe, "0.3", env=bed.env(preload=False))[0]
            into = {pair for pair in p.sampled() if pair[1] == "spin"}
            tap.point(p.ticks()["spin"] > 5 and into == {("inner", "spin"), ("quiet", "spin")}
                      and p.sampled()["main", "outer"] > 0, f"{name}: by unwind information",
                      (p.ticks(), p.sampled()))


main()
