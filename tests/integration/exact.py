"""Where calls of a process could be missing, or stand twice, under "exact": children without a daemon, setuid, exec."""
import os
import signal
import sys
import time

from harness import NOBODY, ROOT, Daemon, Other, Tap
from clocks import FAKETIME
from memory import Attached, Memory
from restart import Program, begin, said
from wire import Wire, sender_number, upload

sys.path.insert(0, os.path.join(ROOT, "tests", "collect"))
from bed import Bed  # noqa: E402
from attach import processes, sync, total, wait_for  # noqa: E402

SOON = 45  # seconds; below the minute after which every process of the run before is looked at


def bench():
    return Daemon("--harvest-interval", "1s", "--log-level", "info"), Bed(harvester=False)


def whole(d, p):
    return wait_for(lambda: said(d, p.exe) == (p.made, [], False))


def back(d, p):
    """The process has attached again, by itself if it was not found."""
    return wait_for(
        lambda: p.tell("spin 20") or [r for r in processes(d) if r["pid"] == p.pid and r["state"] == "counting"]
    )


def children_away(tap):
    """Children that are born and die while no daemon runs: the parent says so."""
    for line, gone, exact in (
        ("fork 100", (1,), False),
        # Two were not read. The parent knows of its child only, and profd of both if the child still ran when it came.
        ("twice 100", (1, 2), False),
        ("raw 100", (1,), False),
        ("vfork 100", None, True),
        ("fork 0", None, True),
        ("child", None, True),
    ):
        d, bed = bench()
        with d, bed:
            p = begin(d, bed)
            try:
                d.stop(signal.SIGKILL)
                p.tell(line)
                p.made += 100 if line.startswith("vfork") else 0
                d.start()
                if exact:
                    tap.point(
                        whole(d, p),
                        f"{line} while no daemon runs: nothing is missing",
                        (p.made, said(d, p.exe), d.logged()),
                    )
                    continue
                back(d, p)
                p.call(1)
                sync(d)
                wait_for(lambda: (said(d, p.exe)[0] or 0) >= p.made)
                now = said(d, p.exe)
                tap.point(
                    now[1] != [] and (now[0] == p.made),
                    f"{line} while no daemon runs: the parent's report is not exact",
                    (p.made, now, d.logged()),
                )
                report = d.json("report", p.exe, "--json")["provenance"]
                tap.point(report["not_read"] in gone, f"{line}: so many processes are not read: {gone}", report)
                p.process.stdin.close()
                p.process.wait()
                tap.point(
                    sync(d) == "ACK" and said(d, p.exe)[1] != [],
                    f"{line}: nor when the parent has ended",
                    said(d, p.exe),
                )
                d.stop()
                d.start()
                tap.point(said(d, p.exe)[1] != [], f"{line}: nor when profd is started again", said(d, p.exe))
                tap.point(d.ctl("verify").returncode == 0, f"{line}: what is stored adds up")
            finally:
                p.end()


def given_up(tap):
    """A child was not read, and its parent goes on. After ten minutes of profd, whose clock is fast here, an upload
    states what is missing, by which a centre learns it; the child is still missing."""
    d, bed = bench()
    with d, bed:
        p = begin(d, bed)
        try:
            d.stop(signal.SIGKILL)
            p.tell("fork 100")
            d.env.update(LD_PRELOAD=FAKETIME, FAKETIME="+0 x100")
            d.start()
            back(d, p)
            first = said(d, p.exe)[1]
            marked = wait_for(lambda: "end-not-seen" in (s := said(d, p.exe)[1]) and s)
            tap.point("end-not-seen" not in first and "not-read" in marked, "a child is given up: both is said",
                      (first, marked, d.logged()))
            p.tell("fork 10")
            p.made += 10
            tap.point(wait_for(lambda: said(d, p.exe)[0] == p.made), "the next child is read", said(d, p.exe))
            d.stop(signal.SIGKILL)
            p.tell("fork 100")
            d.start()
            back(d, p)
            origin = wait_for(lambda: (o := d.json("report", p.exe, "--json")["provenance"])["not_read"] == 2 and o)
            tap.point(origin, "another child that was not read is known beside it", said(d, p.exe))
            wait_for(lambda: d.logged().count("had children that were never read") == 2)
            counted = d.json("report", p.exe, "--json")["collector"]["ends_not_seen"]
            tap.point(d.logged().count("had children that were never read") == 2 and counted == 0,
                      "each is marked once, and none counts as an end of the parent", (counted, d.logged()))
            p.process.stdin.close()
            p.process.wait()
            last = wait_for(lambda: not processes(d) and said(d, p.exe))
            tap.point(last and last[0] == p.made and "end-not-seen" in last[1], "when the parent has ended, it is said",
                      last)
            tap.point(d.ctl("verify").returncode == 0, "what is stored adds up")
        finally:
            p.end()


def left_behind(tap):
    """A child that fork()'s handlers do not know outlives its parent, and has its memory: what it counts there is read,
    and what it counts while no daemon runs is not exact, although its parent ended under the eyes of one."""
    for name in ("counts while no daemon runs", "counts while one runs", "ends without a call"):
        d, bed = bench()
        with d, bed:
            p = begin(d, bed)
            child = 0
            try:
                p.tell("leave 100")
                child = int(open(os.path.join(bed.folder, "left")).read())
                p.process.stdin.close()
                p.process.wait()
                before = sync(d), said(d, p.exe)
                tap.point(
                    before == ("ACK", (1000, [], False)),
                    f"a child that {name}: when its parent has ended, what was counted is stored",
                    before,
                )
                if name.startswith("counts while no"):
                    d.stop(signal.SIGKILL)
                os.kill(child, signal.SIGKILL if name.startswith("ends") else signal.SIGUSR1)
                wait_for(lambda: not alive(child))
                if name.startswith("counts while no"):
                    d.start()
                    last = wait_for(lambda: (s := said(d, p.exe))[1] and s, SOON)
                    tap.point(last, "its calls are missing, and the report is not exact", said(d, p.exe))
                elif name.startswith("counts"):
                    last = wait_for(lambda: (s := said(d, p.exe))[0] == 1100 and s[1] and s, SOON)
                    tap.point(last, "its calls are there, and that it had its parent's memory is said", said(d, p.exe))
                else:
                    last = wait_for(lambda: not processes(d)) and said(d, p.exe)
                    tap.point(last == (1000, [], False), "the report is exact", (last, processes(d)))
                tap.point(d.ctl("verify").returncode == 0, "what is stored adds up")
            finally:
                if child and alive(child):
                    os.kill(child, signal.SIGKILL)
                p.process.stdout.close()


def alive(pid):
    """Not ended, nor a zombie that no process has waited for."""
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def children_seen(tap):
    """Children that attach, before or after their parent, take nothing from it."""
    d, bed = bench()
    with d, bed:
        p = begin(d, bed)
        try:
            for n in range(20):
                p.tell("fork 10")
                p.made += 10
            p.tell("twice 10")
            p.tell("child")
            p.made += 10
            tap.point(
                sync(d) == "ACK" and whole(d, p),
                "20 children, a grandchild and one that ran another program: exact",
                (p.made, said(d, p.exe)),
            )
            d.stop(signal.SIGKILL)
            p.tell("keep 30")
            p.made += 30
            d.start()
            tap.point(
                whole(d, p),
                "a child that was born while no daemon ran has attached since: exact",
                (p.made, said(d, p.exe), processes(d), d.logged()),
            )
            p.tell("reap")
            tap.point(
                sync(d) == "ACK" and said(d, p.exe) == (p.made, [], False),
                "and when it has ended",
                (p.made, said(d, p.exe)),
            )
            for how in (signal.SIGKILL, signal.SIGTERM):
                d.stop(how)
                d.start()
                tap.point(whole(d, p), f"and after {how.name} of profd", (p.made, said(d, p.exe)))
            tap.point(d.ctl("verify").returncode == 0, "what is stored adds up")
        finally:
            p.end()


def another_user(tap):
    """A process that changes its user goes on where it was."""
    if os.geteuid() != 0:
        tap.skip("a process that changes its user", "wants root")
        return
    for how in (signal.SIGTERM, signal.SIGKILL):
        d, bed = bench()
        with d, bed:
            os.chmod(bed.folder, 0o755)
            p = begin(d, bed)
            try:
                p.tell(f"setuid {NOBODY}")
                p.call(1000)
                d.stop(how)
                p.call(1000)
                d.start()
                taken = next(r for r in [*processes(d), {"instance": None}])["instance"]
                tap.point(
                    taken is None,
                    f"{how.name}: a process that is another user's by now is not looked into",
                    processes(d),
                )
                tap.point(
                    back(d, p) and whole(d, p),
                    f"{how.name}: it attaches as its new user: every call once, and exact",
                    (p.made, said(d, p.exe), d.logged()),
                )
                rows = [r for r in processes(d) if r["pid"] == p.pid]
                tap.point(
                    len(rows) == 1 and rows[0]["uid"] == 0,
                    f"{how.name}: it is one process, of the user as whom it began",
                    rows,
                )
                p.call(5)
                p.tell("kill")
                p.process.wait()
                tap.point(sync(d) == "ACK" and whole(d, p), f"{how.name}: its end is seen", (p.made, said(d, p.exe)))
                tap.point(d.ctl("verify").returncode == 0, f"{how.name}: what is stored adds up")
            finally:
                p.end()


def taken_over(tap):
    """Nobody goes on with another user's counts by its instance alone."""
    if os.geteuid() != 0:
        tap.skip("an instance that another user names", "wants root")
        return
    d, bed = bench()
    with d, bed:
        os.chmod(bed.folder, 0o755)
        p = begin(d, bed)
        try:
            p.tell("close")
            instance = bytes.fromhex(processes(d)[0]["instance"])
            d.stop(signal.SIGKILL)
            d.start()

            def thief(say):
                m = Memory(instance=instance, name="/bin/thief")
                m.call(7)
                a = Attached(d.socket, m)
                say(a.answer[0])

            other = Other(thief)
            answer = other.line()
            wait_for(lambda: total(d, "/bin/thief") == 7)
            rows = [r for r in processes(d) if r["name"] == "/bin/thief"]
            tap.point(
                answer == "ACK"
                and len(rows) == 1
                and rows[0]["uid"] == NOBODY
                and said(d, p.exe) == (1000, ["not-read"], True),
                "another process with the same instance is counted for its own user; the first one is still not read",
                (answer, rows, said(d, p.exe)),
            )
            other.end()
        finally:
            p.end()


def ends(tap):
    """A process that was not found again, and ends or runs another program: that is said as soon as it can be known."""
    for line, name in (("kill", "it is killed"), ("again", "it runs itself again")):
        d, bed = bench()
        with d, bed:
            p = begin(d, bed)
            try:
                p.tell("close")
                d.stop(signal.SIGKILL)
                p.call(700)
                d.start()
                wait_for(lambda: "previous run finished" in d.logged())
                tap.point(
                    said(d, p.exe) == (1000, ["not-read"], True), f"{name}: before, it is not read", said(d, p.exe)
                )
                p.tell(line)
                last = wait_for(lambda: (s := said(d, p.exe))[1] == ["end-not-seen"] and s, SOON)
                tap.point(bool(last) and not last[2], f"{name}: the report says so at once", said(d, p.exe))
            finally:
                p.end()


def away(tap):
    """exec of a program that is not counted: the counts until then are whole, and what runs then is another program."""
    d, bed = bench()
    with d, bed:
        p = begin(d, bed)
        try:
            p.call(500)
            p.tell("away")
            tap.point(
                wait_for(lambda: not processes(d), SOON),
                "a process that runs a program without the collector is no live process any more",
                processes(d),
            )
            tap.point(
                said(d, p.exe) == (p.made, [], False),
                "what it counted until then is whole, and exact",
                (p.made, said(d, p.exe)),
            )
            d.stop(signal.SIGKILL)
            d.start()
            tap.point(
                p.process.poll() is None and said(d, p.exe) == (p.made, [], False),
                "also for the next daemon, while it runs",
                said(d, p.exe),
            )
        finally:
            p.end()
    d, bed = bench()
    with d, bed:
        p = begin(d, bed)
        try:
            d.stop(signal.SIGKILL)
            p.call(500)
            p.tell("away")
            wait_for(lambda: os.readlink(f"/proc/{p.pid}/exe") != p.exe)
            d.start()
            tap.point(
                wait_for(lambda: said(d, p.exe) == (1000, ["end-not-seen"], False), SOON),
                "when no daemon saw it: end-not-seen",
                said(d, p.exe),
            )
        finally:
            p.end()


def down(tap):
    """What began and ended while no daemon ran is not known: a report that spans such a time says so, others do not."""
    with Daemon() as d:
        def put():
            with Wire(d.socket) as w:
                w.send("UPLOAD", upload(sender_number(), 1, ticks=1, build_id="ab" * 20), 7)
                while (answer := w.take())[0] == "WANT_OBJECT":
                    pass
                assert answer[0] == "ACK", answer

        def told():
            p = d.json("report", "ab" * 20, "--json")["provenance"]
            text = d.ctl("report", "ab" * 20).stdout
            line = [row for row in text.splitlines() if row.startswith("Down ")]
            return p["down_count"], p["down_seconds"], p["inexact_reasons"], line

        put()
        reasons = told()[2]
        tap.point(told() == (0, 0, reasons, []), "before: profd always ran", told())
        for n, how in ((1, signal.SIGTERM), (2, signal.SIGKILL)):
            d.stop(how)
            time.sleep(0.05)  # times of files have a grain: what is shorter than 10 ms is not seen
            d.start()
            before = told()
            tap.point(before[0] == n - 1, f"{how.name}: nothing is stored since: nothing is said of it", before)
            put()
            now = told()
            tap.point(now[0] == n and now[1] > before[1] and now[2] == reasons and now[3] and
                      f"({n} stop" in now[3][0], "later data: the report says how often, and for how long, profd did "
                      "not run; that is no reason of its own", now)
        with open(os.path.join(d.state, "runs"), "a") as f:
            f.write("not a line")
        d.stop()
        time.sleep(0.05)
        d.start()
        put()
        tap.point(told()[0] == 3, "a damaged end of the file of runs hides no other", told())
        d.stop()
        with open(os.path.join(d.state, "runs"), "wb") as f:
            f.write(os.urandom(4000))
        d.start()
        now = told()
        tap.point(now[0] == 0 and now[2] == reasons, "of a file that holds anything else nothing is known", now)


def main():
    with Tap() as tap:
        for part in (down, children_away, given_up, left_behind, children_seen, another_user, taken_over, ends, away):
            if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
                part(tap)


if __name__ == "__main__":
    main()
