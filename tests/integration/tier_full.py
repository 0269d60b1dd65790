"""ClickHouse on a disk that is full: no day is moved, the operator is told why, every answer stays as it was, and
uploads go on. When there is space again, all past days are moved."""
import os
import subprocess

from harness import Daemon, Tap, run, until
from tier import SINCE, Bed, daemon, differing, fill, sealed, tier
from tier_bed import Chdb, Old
from windows import send, settled

SIZE = "64m"


class Small:
    """A server of this kind whose data is on a small tmpfs."""

    def __init__(self, kind):
        self.server = kind()
        self.path = os.path.join(self.server.folder, "data")
        os.makedirs(self.path, exist_ok=True)
        owner = os.stat(self.path)
        options = f"size={SIZE},uid={owner.st_uid},gid={owner.st_gid}"
        done = run("mount", "-t", "tmpfs", "-o", options, "none", self.path)
        self.why_not = done.stderr.strip()

    def __enter__(self):
        if not self.why_not:
            self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop()
        if not self.why_not:
            subprocess.run(["umount", "-l", self.path], check=False)
        self.server.__exit__()

    def occupy(self):
        """Fills the disk to its last byte."""
        with open(os.path.join(self.path, "ballast"), "wb", buffering=0) as f:
            try:
                while f.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def free(self):
        os.unlink(os.path.join(self.path, "ballast"))


def full(tap, kind):
    name = kind.__name__
    with Small(kind) as small, Daemon("--raw-age", "1s") as plain:
        if small.why_not:
            tap.skip(name, f"no tmpfs can be mounted: {small.why_not}")
            return
        with daemon(small.server) as d:
            bed = Bed()
            done = d.ctl("tier", "init")
            tap.point(done.returncode == 0, f"{name}: tables are made while there is space", done.stdout + done.stderr)
            small.occupy()
            bodies = bed.uploads(90)
            for each in (plain, d):
                fill(each, bed, bodies)
            tap.point(settled(plain) and settled(d), f"{name}: two daemons have the same sums")
            said = until(lambda: (t := tier(d))["error"] and t)
            tap.point(said and said["days_sealed"] == 0 and said["failures"] > 0,
                      f"{name}: on a full disk no day is moved, and status says why", (said, tier(d)))
            before, after = bed.ask(plain), bed.ask(d)
            tap.point(after == before, f"{name}: every answer has the bytes of a daemon without ClickHouse",
                      differing(before, after)[:3])
            more = bed.uploads(30, oldest=20)
            for each in (plain, d):
                send(each, more)
            tap.point(settled(plain) and settled(d), f"{name}: uploads go on")
            small.free()
            tap.point(sealed(d) and tier(d)["days_sealed"] >= SINCE - 3, f"{name}: with space all past days are moved",
                      (tier(d), d.logged()[-2000:]))
            before, after = bed.ask(plain), bed.ask(d)
            tap.point(after == before, f"{name}: and no answer has changed", differing(before, after)[:3])
            done = d.ctl("verify")
            tap.point(done.returncode == 0 and "no mismatch" in done.stdout, f"{name}: all of it adds up",
                      done.stdout + done.stderr)


def main():
    with Tap() as tap:
        for kind in (Chdb, Old):
            tap.skip(kind.__name__, kind.why_not) if kind.why_not else full(tap, kind)


if __name__ == "__main__":
    main()
