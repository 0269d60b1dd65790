#!/usr/bin/python3
"""Self times of a gmon.out beside exact addresses of the same ticks (tests/oracle/bins.py; `make bins` prints the
table)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oracle"))
import bins  # noqa: E402
from harness import Daemon, Tap, bounds  # noqa: E402

TICKS = 200

with Tap() as tap, Daemon() as daemon:
    programs = bins.programs(daemon.folder)
    results = {name: bins.measure(daemon, daemon.folder, name, *programs[name], TICKS)
               for name in ("fib -O0", "calc -O2", "calc -Os")}
    for name, r in results.items():
        error = bins.distance(r.ours, r.exact)
        tap.point(r.ticks > 0 and abs(sum(r.ours.values()) - r.ticks) < 1e-6,
                  f"{name}: every one of {r.ticks} ticks is some function's", r)
        # A tick of a shared bin that goes to the wrong function is missing there and too many here.
        tap.point(error <= 2 * r.shared + 1e-6, f"{name}: only ticks of shared bins can be wrong: error {error:.1f}, "
                                                f"in shared bins {r.shared}", r)
        tap.point(not bins.unmarked(r), f"{name}: what is wrong by more than a tenth is marked, with bounds that hold",
                  bins.unmarked(r))
        tap.point(("shared-bins" in r.reasons) == bool(r.marked) == ("~" in r.text.split("Flat profile:")[-1]),
                  f"{name}: {len(r.marked)} self times are marked, and the reasons say it", r.text)
    # A bin of glibc is a little shorter than four bytes, so a few hold the end of one function and the beginning of the
    # next, aligned one. Only their ticks make estimates. A function with ten times as many ticks of its own is not
    # marked, so that a few shared ticks may mark nothing, but not more than a tenth of all.
    for name, r in results.items():
        tap.point(r.shared > 0 if r.marked else r.shared <= r.ticks / 10,
                  f"{name}: self times are estimates only if ticks are in shared bins: {r.shared} of {r.ticks}", r.text)
    exe = programs["calc -O2"][0]
    bins_of = bins.owners_of(exe, bins.Profil(*bounds(exe))).values()
    shared = sum(len(functions) > 1 for functions in bins_of)
    tap.point(shared <= 0.05 * len(bins_of), f"aligned functions share {shared} of {len(bins_of)} bins")
