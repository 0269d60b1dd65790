"""make demo-fleet in its short form: one run of the program on each host in each phase."""
import os
import sys

from harness import ROOT, Tap, run


def main():
    with Tap() as tap:
        done = run(sys.executable, os.path.join(ROOT, "tests/demo/fleet.py"), 1, timeout=1500)
        last = (done.stdout.strip().splitlines() or ["nothing was printed"])[-1]
        tap.point(done.returncode == 0 and last.startswith("Equal: 24 processes on 6 hosts"), last,
                  done.stdout[-3000:] + done.stderr[-3000:])


if __name__ == "__main__":
    main()
