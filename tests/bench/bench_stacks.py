#!/usr/bin/python3
"""What a tick costs on a stack of 30 frames: with warm caches, and after 8 MiB of other data. ROUNDS=n; medians."""
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "collect"))
from bed import Bed  # noqa: E402

RATE = 99


def main():
    with Bed(harvester=False) as bed:
        exe, runs = os.path.join(bed.folder, "stacks"), []
        subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-fno-optimize-sibling-calls", "-o", exe,
                        os.path.join(HERE, "collect", "stacks.c")], check=True)
        for _ in range(int(os.environ.get("ROUNDS", "5"))):
            done = subprocess.run([exe], env=bed.env(), capture_output=True, text=True, check=True)
            lines = [line.split() for line in done.stdout.splitlines()]
            runs.append({name: [float(n) for n in numbers] for name, *numbers in lines})
        for i, caches in enumerate(("warm caches", "cold caches")):
            of = {name: statistics.median(run[name][i] for run in runs) for name in runs[0]}
            print(f"{f'a stack of 30 frames, {caches}':<44} {of['stack'] - of['unknown']:8.2f} µs of CPU (goal 5); "
                  f"with its tick {of['stack']:.2f} µs, of which the signal {of['signal']:.2f}: "
                  f"{of['stack'] * RATE / 1e4:.3f} % of CPU at {RATE} Hz (goal 0.1)", flush=True)


main()
