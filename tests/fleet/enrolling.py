#!/usr/bin/python3
"""How long it takes until many hosts have enrolled and sent: each has a key of its own and runs profctl enroll with one
token, over TLS, with real gate, centre and signer; then each sends a segment. Prints the time. enrolling.py [hosts=N]
[at_once=N]: enrolments at a time."""
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from bed import BUILD, LONG, Tap, run
from enrol_bed import Fleet

SIMULATE = os.path.join(BUILD, "tests", "simulate")


def main():
    w = {"hosts": 40, "at_once": 8}
    for argument in sys.argv[1:]:
        name, _, value = argument.partition("=")
        w[name] = int(value)
    folder = tempfile.mkdtemp(prefix="profd-enrolling-")
    try:
        with Tap() as tap, Fleet(os.path.join(folder, "fleet")) as fleet:
            began = time.monotonic()
            token = fleet.token("--tenant", "shop", "--uses", str(w["hosts"]))
            with ThreadPoolExecutor(w["at_once"]) as pool:
                done = list(pool.map(lambda i: fleet.enroll(f"host-{i}", token), range(w["hosts"])))
            enrolled = time.monotonic() - began
            failed = [d.stderr for d in done if d.returncode]
            tap.point(not failed, f"{w['hosts']} hosts have enrolled after {enrolled:.1f} s", failed[:3])
            done = run(SIMULATE, fleet.port, os.path.join(fleet.ca, "gate-ca.crt"), fleet.folder, f"hosts={w['hosts']}",
                       "connections=64", "segments=1", "interval=2", timeout=10 * LONG)
            took, hosts = time.monotonic() - began, fleet.hosts()
            tap.point(done.returncode == 0 and fleet.counted() == w["hosts"] and len(hosts) == w["hosts"] and
                      all(h["last_segment"] and h["tenant"] == "shop" for h in hosts.values()),
                      f"{w['hosts']} hosts have enrolled and sent after {took:.1f} s",
                      (done.stdout, done.stderr, fleet.counted(), len(hosts)))
            verified = fleet.profctl("verify")
            tap.point(verified.returncode == 0, "and the centre's sums agree", verified.stdout + verified.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
