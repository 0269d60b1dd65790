#!/usr/bin/python3
"""What programs do that a collector must survive without being noticed: registers, SIGPROF, borrowed stacks, limits,
filters, closed descriptors, a daemon that comes and goes; and what samples, labels and switches show."""
import os
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# noqa: E402
from bed import ARCS, COLLECT, COLLECT_STATIC, HARVESTER, Bed, Tap, difference, readable_copy, run, wait_until


def own(bed, processes):
    return next((p for p in processes if p.pid == bed.pid and p.raw.get("modules")
                 and bed.folder in p.module(1)["name"]), None)


def mode(tap, bed, exe, name, what, *front, counted=True, exact=True):
    """Runs `odd NAME`: it must say "good", and its calls must be there."""
    p = own(bed, bed.run(*front, exe, name))
    tap.point(bed.returncode == 0 and bed.out == "good\n", f"{name}: {what}", (bed.returncode, bed.out, bed.err))
    if counted:
        truth = bed.truth(bed.pid)
        tap.point(p is not None and not p.failed and p["exact"] == exact
                  and not difference({f: n for f, n in truth.items() if f not in ("child", "late")}, p.calls()),
                  f"{name}: its calls are there", p and (difference(truth, p.calls()), p["exact"], p.failed))
    bed.forget_truth()
    return p


def closing(tap, bed):
    """Old words on a stack point into objects that are being unloaded, by the program or by libc itself."""
    exe = bed.build("closing.c")
    plugin = bed.build("closing.c", "-shared", "-fPIC", "-DPLUGIN", name="libclosing.so")
    env = bed.env(PROFD_RATE=1000)
    bed.run(exe, env=env)
    tap.point(bed.returncode == 0 and bed.out in ("good\n", "no module\n", "still there\n"),
              f"ticks meet an object that libc has closed: {bed.out.strip()}", (bed.returncode, bed.err))
    seen = [p for p in bed.run(exe, plugin, "3", env=env) if p.raw.get("modules") and p.module(1)["name"] == exe]
    tap.point(bed.returncode == 0 and bed.out == "good\n", "ticks in three threads while another opens and closes an "
              "object that they meet", (bed.returncode, bed.out, bed.err))
    tap.point(len(seen) == 1 and not seen[0].failed and sum(seen[0].ticks().values()) > 0, "all ticks are there",
              seen and seen[0].ticks())


def odd_programs(tap, bed):
    exe, fentry = bed.build("odd.c", "-pg"), bed.build("odd.c", "-pg", "-mfentry", name="oddf")
    if os.uname().machine == "x86_64":
        bed.build("registers.c", "-shared", "-fPIC", name="libregisters.so")
        mode(tap, bed, exe, "registers", "no vector, mask, x87 or general register changes in the first calls of a "
                                         "library", counted=False)
    p = mode(tap, bed, exe, "sigprof", "a program that takes SIGPROF gets its own ticks and none of ours")
    tap.point(p["FOREIGN_SIGPROF"] == 1 and not p["ticks_exact"], "which is noted")
    mode(tap, bed, exe, "signal", "the same by signal()")
    mode(tap, bed, exe, "default", "SIGPROF back to its default while ticks are under way", counted=False)
    static = bed.build("odd.c", "-pg", "-static", name="static", libraries=[COLLECT_STATIC, "-ldl", "-pthread"])
    for name in ("sigprof", "signal", "default", "keys"):
        bed.run(static, name, preload=False)
        tap.point(bed.returncode == 0 and bed.out == "good\n", f"static {name}", (bed.returncode, bed.out))
        bed.forget_truth()
    p = mode(tap, bed, exe, "coroutine", "frames are not followed on a borrowed stack")
    tap.point(p["TICKS"] > 20, "but its ticks are there", p["TICKS"])
    mode(tap, bed, exe, "small", "a thread with the smallest stack")
    p = mode(tap, bed, exe, "nested", "200 depths of a nested function", counted=False)
    tap.point(sum(n for f, n in p.calls().items() if f.startswith("inner")) == 201 and p["exact"], "all counted",
              p.calls())
    p = mode(tap, bed, fentry, "nested", "the same with -mfentry, whose callers are no code", counted=False)
    rows = [c for c in p["counts"] if c[0] == ARCS and c[1] == 0xffff]
    tap.point(sum(n for f, n in p.calls().items() if f.startswith("inner")) == 201 and sum(c[5] for c in rows) == 201
              and len(rows) <= 2 and
              p["CALLS_JUNK"] == 201 and not p["exact"], "all counted, from nowhere, in one row, and said so",
              (p.calls(), rows))
    p = mode(tap, bed, exe, "paused", "moncontrol(0) and (1): what is called between is not counted", exact=False)
    tap.point(p["PAUSES"] == 1, "the pause is noted")
    p = mode(tap, bed, exe, "keys", "calls from destructors of other thread keys", counted=False)
    tap.point(p.calls()["late"] == 600 and p["exact"], "counted", p.calls())
    tap.point(p["used"] < 200000, "and 200 such threads use the same tables", p["used"])
    mode(tap, bed, exe, "crowd", "2,000 threads at once")
    p = mode(tap, bed, exe, "seccomp", "a filter that refuses memfd, timers and sockets: no harm")
    tap.point(p["THREADS_UNTIMED"] == 4 and not p["ticks_exact"], "the threads without a timer are noted")


def strange_children(tap, bed):
    exe = bed.build("odd.c", "-pg")
    seen = bed.run(exe, "cloned")
    parent = own(bed, seen)
    child = next((p for p in seen if p["parent"] == parent["instance"]), None)
    tap.point(parent["FORKS_UNSEEN"] == 1 and not parent["exact"],
              "a child made by a bare clone() is noticed, and said", parent.raw)
    tap.point(child and child.calls()["handler_free"] == 1 and 1000 <= parent.calls()["middle"] <= 1500,
              "and gets counts of its own from its first new call on", child and child.calls())
    bed.forget_truth()
    if os.uname().machine == "x86_64":
        exe = bed.build("odd.c", "-pg", "-no-pie", "-fno-pie", "-rdynamic", name="low")
        bed.build("plugin.c", "-pg", "-shared", "-fPIC", "-DNAME=plugin_a", "-DWHICH=T_plugin_a", "-DREPEAT=3",
                  "-Wl,-Ttext-segment=0x100401000", name="libtwice.so")
        p = mode(tap, bed, exe, "twice", "a library 4 GiB above the program", exact=False)
        at = [m["low"] + m["bias"] for m in p["modules"].values() if "libtwice" in m["name"]]
        tap.point(at == [0x100401000] and p["OVERLAPS"] > 0, "is said to be one that keys cannot tell apart",
                  (at, p["OVERLAPS"]))


def limits(tap, bed):
    exe = bed.build("odd.c", "-pg")
    for what, option in (("files of 3 MB", "--fsize=3000000"), ("16 descriptors", "--nofile=16"),
                         ("100 MB of addresses", "--as=100000000"),
                         ("no locked memory", "--memlock=0"), ("no queued signals", "--sigpending=0")):
        mode(tap, bed, exe, "limits", f"under a limit of {what}", "prlimit", option)
    mode(tap, bed, exe, "limits", "under a limit of 300 kB of file: it runs, uncounted", "prlimit", "--fsize=300000",
         counted=False)
    p = own(bed, bed.run("env", "PROFD_COLLECT_MEMORY=1", exe, "crowd"))
    truth = bed.truth(bed.pid)
    tap.point(bed.out == "good\n" and p["exact"] and not difference(truth, p.calls()) and p["used"] <= 1 << 20,
              "2,000 threads in a region of 1 MiB: those without a table share one, and no call is lost",
              (difference(truth, p.calls()), p["used"], p["CALLS_LOST"]))
    bed.forget_truth()


DESCRIPTORS = """
import fcntl, os
for fd in sorted(int(n) for n in os.listdir("/proc/self/fd")):
    try:
        if fd > 2 and os.readlink(f"/proc/self/fd/{fd}").startswith(("/memfd", "socket")):
            print(fd, fcntl.fcntl(fd, fcntl.F_GETFD))
    except OSError:
        pass
"""


def descriptors(tap, bed):
    """The memory and the socket: programs that list or inherit descriptors shall see neither among those they use
    themselves."""
    for limit, taken, numbers in ((20000, "", (1022, 1023)), (700, "", (698, 699)), (700, "699<&0", (697, 698)),
                                  (20000, "1023<&0 1022<&0", (1020, 1021))):
        program = ["/usr/bin/python3", "-c", DESCRIPTORS]
        bed.run("bash", "-c", f'ulimit -Sn {limit}; LD_PRELOAD=$0 PROFD_CLOCK=off exec "$@" {taken}', COLLECT,
                *program, preload=False)
        tap.point(bed.out == "".join(f"{n} 1\n" for n in numbers),
                  f"of {limit} descriptors{' (' + taken + ')' if taken else ''} the collector has {numbers}, "
                  f"close-on-exec",
                  (bed.out, bed.err))


def resolver(tap, bed):
    for name, options in (("-pg", ["-pg"]), ("-pg -z now", ["-pg", "-Wl,-z,now"]),
                          ("-pg -mfentry", ["-pg", "-mfentry"])):
        p = own(bed, bed.run(bed.build("resolver.c", *options, name="resolver")))
        tap.point(bed.returncode == 0 and p and p.calls()["leaf"] == 1000, f"an instrumented ifunc resolver ({name})",
                  (bed.returncode, p and p.calls()))
        bed.forget_truth()


def daemon_comes_and_goes(tap, bed):
    exe = bed.build("truth.c", "-pg", "-rdynamic")
    bed.stop()
    os.unlink(bed.socket)
    p = subprocess.Popen([exe, "forever", "2"], env=bed.env(PROFD_LABEL_service="shop", PROFD_LABEL_zone="a=b c"),
                         cwd=bed.folder, stdout=subprocess.PIPE)
    p.stdout.readline()
    seen = []
    for what in ("a daemon that starts later is found", "so is one that was started again"):
        bed.start()
        found = wait_until(lambda: [q for q in bed.dump() if q.pid == p.pid])
        tap.point(found and not found[0].failed and found[0].calls()["leaf"] > 0, what, [q.raw for q in bed.dump()])
        seen += found
        if what.startswith("a"):
            bed.stop()
    first, second = seen[0], seen[1]
    tap.point(first["instance"] == second["instance"] and second.calls()["leaf"] > first.calls()["leaf"],
              "it is the same process, and has gone on counting")
    tap.point(second["labels"] == {"service": "shop", "zone": "a=b c", "host": socket.gethostname()},
              "with its labels, and the one of the host,", second["labels"])
    bed.say("want " + second.module(1)["build"])
    bed.say("want " + "ab" * 20)
    found = wait_until(lambda: [q for q in bed.dump() if q.pid == p.pid and q["objects"] and q["declined"]])
    tap.point(found and found[0]["object_size"] == os.path.getsize(exe),
              "it sends its executable when asked, and declines a stranger's",
              [q.raw for q in bed.dump()])
    p.kill()
    p.wait()
    p.stdout.close()
    gone = wait_until(lambda: [q for q in bed.dump() if q.pid == p.pid and not q["alive"]])
    truth = bed.truth(p.pid)
    off = {f: truth[f] - gone[0].calls()[f] for f in truth}
    tap.point(sum(abs(v) for v in off.values()) <= 2, "at its death the last calls are there", off)
    bed.forget_truth()


def closed_descriptors(tap, bed):
    exe = bed.build("truth.c", "-pg", "-rdynamic")
    p = own(bed, bed.run(exe, "closed"))
    tap.point(bed.returncode == 0 and not difference(bed.truth(bed.pid), p.calls()),
              "a program that closes every descriptor and uses the numbers itself: nothing of ours lands there, and "
              "all is counted",
              (bed.returncode, difference(bed.truth(bed.pid), p.calls())))
    bed.forget_truth()


def samples(tap, bed):
    exe = bed.build("truth.c", "-fno-omit-frame-pointer", "-rdynamic", name="plain")
    for rate in (99, 1000):
        # How near they come is the bench's. The latest of a thread may not come before its end, and are counted then.
        for what, threads in (("one thread", 0), ("three threads", 2)):
            p = own(bed, bed.run("env", f"PROFD_RATE={rate}", exe, "burn", threads, 50))
            expected, ticks = p["CPU_NS"] / 1e9 * rate, p["TICKS"] + p["TICKS_UNDELIVERED"]
            tap.point(0.95 * expected - 4 < ticks < 1.05 * expected + 4,
                      f"ticks of {what} at {rate} Hz, with the undelivered, are CPU time × rate",
                      (p["TICKS"], p["TICKS_UNDELIVERED"], expected))
            late, misplaced = p["TICKS_UNDELIVERED"], p["TICKS_BLOCKED"] + p["TICKS_DROPPED"]
            tap.point(p["ticks_exact"] == ((late * late <= ticks or late * 20 < rate) and misplaced == 0),
                      "exact unless too many are lost, or some have no place",
                      (p["TICKS"], late, misplaced, p["ticks_exact"]))
        tap.point(0 < p["SAMPLES"] <= p["TICKS"],
                  f"ticks at {rate} Hz have samples", (p["SAMPLES"], p["TICKS"]))
        placed = sum(p.ticks().values()) + p["TICKS_INSIDE"] + p["TICKS_BLOCKED"] + p["TICKS_DROPPED"]
        tap.point(p["TICKS"] == placed and p.ticks()["burn"] > 0.8 * sum(p.ticks().values()),
                  "each tick has its place", (p["TICKS"], placed, p.ticks()))
    pairs = p.sampled()
    tap.point(pairs["burner", "burn"] > pairs["life", "burn"] > 0 and not p.calls(),
              "a program without -pg shows sampled pairs and no calls", dict(pairs))
    p = own(bed, bed.run("env", "PROFD_RATE=0", exe, "burn", 1, 5))
    tap.point(p["mode"] == 0 and p["TICKS"] == 0, "PROFD_RATE=0: no ticks")
    exe = bed.build("waits.c")
    for clock in ("cpu", "wall"):  # a clock that would end waiting is not there
        p = own(bed, bed.run("env", f"PROFD_CLOCK={clock}", "PROFD_RATE=1000", exe))
        tap.point(bed.returncode == 0 and bed.out == "" and p["mode"] == 1,
                  f"PROFD_CLOCK={clock}: no wait with a timeout ends early", (bed.returncode, bed.out))


def privileges(tap, bed):
    exe = bed.build("odd.c", "-pg", name="secure", libraries=[COLLECT_STATIC, "-ldl", "-pthread"])
    if os.getuid() != 0:
        tap.skip("a set-user-id program is left alone", "needs root")
        return
    os.chmod(bed.folder, 0o755)
    os.chmod(exe, 0o4755)
    os.chmod(bed.socket, 0o777)
    seen = bed.run("setpriv", "--reuid=65534", "--clear-groups", exe, "limits", preload=False)
    tap.point(bed.returncode == 0 and bed.out == "good\n" and not own(bed, seen),
              "a set-user-id program is left alone, and runs", (bed.returncode, bed.err))
    os.chmod(exe, 0o755)
    seen = bed.run("setpriv", "--reuid=65534", "--clear-groups", exe, "limits", preload=False)
    tap.point(own(bed, seen) is not None, "another user's program attaches to root's daemon")
    bed.forget_truth()
    bed.stop()
    bed.process = None
    run("chown", "65534", bed.folder)
    foreign = subprocess.Popen(["setpriv", "--reuid=65534", "--clear-groups", readable_copy(HARVESTER, bed.folder),
                                bed.socket],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    foreign.stdout.readline()
    bed.process = foreign
    seen = bed.run(exe, "limits", preload=False)
    tap.point(bed.out == "good\n" and not own(bed, seen), "a daemon of some other user is not believed")
    bed.stop()
    run("chown", "0", bed.folder)
    bed.start()


def registers_by_construction(tap):
    """libc's memory functions use vector registers, and compilers call them unasked."""
    calls = [line for line in run("nm", "-u", COLLECT_STATIC).stdout.split() if line.startswith(("mem", "str"))]
    tap.point(not calls, "no object of the collector calls libc's memory or string functions", calls)


def main():
    with Tap() as tap, Bed() as bed:
        registers_by_construction(tap)
        if os.uname().machine == "x86_64":
            closing(tap, bed)
        odd_programs(tap, bed)
        strange_children(tap, bed)
        limits(tap, bed)
        descriptors(tap, bed)
        resolver(tap, bed)
        samples(tap, bed)
        privileges(tap, bed)
        daemon_comes_and_goes(tap, bed)
        closed_descriptors(tap, bed)


main()
