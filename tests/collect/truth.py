#!/usr/bin/python3
"""Counts beside the truth: programs that count their own calls, under the collector. `truth.py --table` adds glibc's
numbers."""
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import ARCS, COLLECT, COLLECT_STATIC, BUILD, Bed, Tap, difference, run, wait_until  # noqa: E402

TABLE = "--table" in sys.argv
KILLS = int(os.environ.get("KILLS", "200"))
rows = []


def glibc(bed, command):
    """Calls that glibc's own collector has for the same run: its gmon.out, as gprof reads it."""
    path = os.path.join(bed.folder, "gmon.out")
    if os.path.exists(path):
        os.unlink(path)
    p = subprocess.run(command, env=bed.env(preload=False), cwd=bed.folder, capture_output=True)
    del p
    if not os.path.exists(path):
        return None
    total = {}
    for line in run("gprof", "-b", "-p", "-z", command[0], path).stdout.splitlines():
        words = line.split()
        if len(words) >= 5 and words[3].isdigit():
            total[words[-1]] = int(words[3])
    return total


def remember(bed, case, truth, calls, command):
    if not TABLE:
        return
    theirs = glibc(bed, command)
    functions = [f for f in ("leaf", "handler", "compare", "plugin_a") if f in truth]
    for f in functions[:1] if "handler" not in truth else functions:
        rows.append((case, f, truth[f], calls[f], "no file" if theirs is None else theirs.get(f, 0)))


def own(bed, processes, exe):
    return [p for p in processes if p.pid == bed.pid and p.raw.get("modules") and p.module(1)["name"] == exe]


def exact(tap, bed, exe, case, *arguments, status=0, env=None, preload=True, command=()):
    """One process's counts are its own counts, and said to be exact."""
    line = [*command, exe, *[str(a) for a in arguments]]
    seen = bed.run(*line, env=env, preload=preload)
    mine = own(bed, seen, exe)
    if not tap.point(len(mine) == 1 and not mine[0].failed and bed.returncode == status, f"{case}: attached",
                     [(p.failed, p.raw.get("pid")) for p in seen] + [bed.returncode, status, bed.err]):
        return None
    truth, calls = bed.truth(bed.pid), mine[0].calls()
    tap.point(sum(truth.values()) > 0 and not difference(truth, calls) and mine[0]["exact"],
              f"{case}: every call counted ({sum(truth.values())})",
              (difference(truth, calls), dict(truth), dict(calls)))
    remember(bed, case, truth, calls, line)
    bed.forget_truth()
    return mine[0]


def arcs_have_both_ends(tap, bed, exe):
    p = exact(tap, bed, exe, "one thread", "threads", 1, 100000)
    arcs = p.pairs()
    expected = {("worker", "outer"): 100000, ("outer", "middle"): 100000, ("outer", "leaf"): 100000,
                ("middle", "leaf"): 200000}
    tap.point(all(arcs[a] == n for a, n in expected.items()), "each arc has its caller and its count", arcs)
    tap.point(p.module(1)["build"] == build_id(exe), "the program's build-id is that of its file", p.module(1))
    tap.point(p["ENDED"] == 1 and p["CPU_NS"] > 0, "the end in good order is noted")


def build_id(path):
    for line in run("readelf", "-n", path).stdout.splitlines():
        if "Build ID:" in line:
            return line.split()[-1]
    return ""


def deaths(tap, bed, exe):
    for mode, status in (("_exit", 3), ("quick_exit", 3), ("abort", -signal.SIGABRT), ("segv", -signal.SIGSEGV),
                         ("term", -signal.SIGTERM),
                         ("kill", -signal.SIGKILL), ("exec", 0), ("vfork", 0)):
        exact(tap, bed, exe, mode, mode, 1, 50000, status=status)


def forks(tap, bed, exe):
    seen = bed.run(exe, "forks", 4, 500)
    wrong = [(p.pid, difference(bed.truth(p.pid), p.calls())) for p in seen if p.failed
             or difference(bed.truth(p.pid), p.calls())]
    tap.point(len(seen) == 31 and not wrong and all(p["exact"] for p in seen),
              "a tree of 31 forked processes, each with its own counts", wrong)
    by_name = {p["instance"]: p for p in seen}
    roots = [p for p in seen if p["parent"] == "0" * 32]
    tap.point(len(by_name) == 31 and len(roots) == 1 and all(p["parent"] in by_name for p in seen if p not in roots),
              "each has a name of its own and knows its parent")
    bed.forget_truth()


def plugins(tap, bed, exe, preload=True):
    p = exact(tap, bed, exe, "two libraries at one address, in turn", "plugins", 101, 500, preload=preload)
    calls = p.calls()
    # anybody may take the hole that one leaves, so that the next stands elsewhere; what counts is that both stood at
    # one place
    a, b = ({m["bias"] for m in p["modules"].values() if name in m["name"]} for name in ("libplugin_a", "libplugin_b"))
    tap.point(calls["plugin_a_inner"] == 51 * 500 * 3 and calls["plugin_b_inner"] == 50 * 500 * 5 and a & b,
              "inside the libraries, too; they did share the address", (calls, a, b))
    tap.point(sum("libplugin" in m["name"] for m in p["modules"].values()) == 2 and p["used"] < 1 << 20,
              "a library that comes back is the same as before: memory does not grow", (p["used"], p["modules"]))


def kills(tap, bed, exe):
    """SIGKILL at random moments: at most one call in flight for each thread is missing, for each function one."""
    worst, lost, made, bad = 0, 0, 0, []
    generator = random.Random(5)
    before = {p["instance"] for p in bed.dump() if "instance" in p.raw}
    threads = {}
    for i in range(KILLS):
        n = (1, 1, 2, 4)[i % 4]
        p = subprocess.Popen([exe, "forever", str(n)], env=bed.env(), cwd=bed.folder, stdout=subprocess.PIPE)
        p.stdout.readline()
        time.sleep(generator.random() * 0.02)
        p.send_signal(signal.SIGKILL)
        p.wait()
        p.stdout.close()
        threads[p.pid] = n
    for q in bed.dump():
        if q.raw.get("instance") in before or q.pid not in threads or q.module(1)["name"] != exe:
            continue
        truth, calls = bed.truth(q.pid), q.calls()
        n = threads.pop(q.pid)
        off = {f: truth[f] - calls[f] for f in ("leaf", "middle", "outer") if truth[f] != calls[f]}
        worst = max([worst, *[abs(v) for v in off.values()]])
        lost, made = lost + sum(abs(v) for v in off.values()), made + sum(truth.values())
        if sum(abs(v) for v in off.values()) > n or q.failed:
            bad.append((n, off, q.failed))
    tap.point(not bad and not threads and made > 0, f"{KILLS} times SIGKILL: at most one call in flight for each "
                                                    f"thread", (bad[:5], list(threads)[:5]))
    print(f"  # {made} calls made, {lost} not yet counted when killed, at most {worst} of one function", flush=True)
    if TABLE:
        rows.append((f"SIGKILL × {KILLS}", "all", made, made - lost, "no file"))
    bed.forget_truth()


def ways_to_compile(tap, bed):
    kinds = [("gcc -pg", "gcc", ["-pg"]), ("gcc -pg, not PIE", "gcc", ["-pg", "-no-pie", "-fno-pie"]),
             ("gcc -pg -mfentry", "gcc", ["-pg", "-mfentry"]),
             ("gcc -pg -fno-plt -z now", "gcc", ["-pg", "-fno-plt", "-Wl,-z,now"]),
             ("gcc -O0 -pg", "gcc", ["-O0", "-pg"]),
             ("gcc -Os -pg, not PIE", "gcc", ["-Os", "-pg", "-no-pie", "-fno-pie"]),
             ("gcc -finstrument-functions", "gcc", ["-finstrument-functions"]), ("clang -pg", "clang", ["-pg"]),
             ("clang -pg -mfentry", "clang", ["-pg", "-mfentry"]),
             ("clang -finstrument-functions", "clang", ["-finstrument-functions"])]
    for name, compiler, options in kinds:
        if name.endswith("finstrument-functions"): # without the library the names exist nowhere
            options = [*options, "-Wl,--unresolved-symbols=ignore-all"]
        exe = bed.build("truth.c", *options, name="kind", compiler=compiler)
        exact(tap, bed, exe, name, "threads", 2, 20000)
    objects = os.path.join(bed.folder, "plain.o")
    run("gcc", "-O2", "-pg", "-fno-optimize-sibling-calls", "-c", "-o", objects,
        os.path.join(os.path.dirname(__file__), "programs", "truth.c"))
    exe = bed.build(objects, name="nogcrt")
    exact(tap, bed, exe, "compiled -pg, linked without", "threads", 2, 20000)


def ways_to_link(tap, bed):
    kinds = [("linked with the library", ["-pg", "-L" + bed.folder, "-lprofd-collect", "-Wl,-rpath," + bed.folder]),
             ("linked with the archive", ["-pg", COLLECT_STATIC]), ("static", ["-pg", "-static", COLLECT_STATIC]),
             ("static-pie", ["-pg", "-static-pie", "-fPIE", COLLECT_STATIC])]
    os.symlink(os.path.abspath(COLLECT), os.path.join(bed.folder, "libprofd-collect.so"))
    os.symlink(os.path.abspath(COLLECT), os.path.join(bed.folder, "libprofd-collect.so.0"))
    for name, options in kinds:
        early = [o for o in options if not o.endswith(".a") and not o.startswith("-l")]
        late = [o for o in options if o.endswith(".a") or o.startswith("-l")]
        exe = bed.build("truth.c", *early, name="linked", libraries=[*late, "-ldl", "-pthread"])
        exact(tap, bed, exe, name, "threads", 4, 20000, preload=False)
        exact(tap, bed, exe, name + ", churn", "churn", 100, 100, preload=False)
        if name == "linked with the archive":
            exact(tap, bed, exe, "linked and preloaded: one of the two counts", "threads", 2, 20000)
            exe = bed.build("truth.c", *early, "-rdynamic", name="linked", libraries=[*late, "-ldl", "-pthread"])
            plugins(tap, bed, exe, False)


def main():
    with Tap() as tap, Bed() as bed:
        exe = bed.build("truth.c", "-pg", "-rdynamic")
        for name, which, repeat in (("plugin_a", "T_plugin_a", 3), ("plugin_b", "T_plugin_b", 5)):
            bed.build("plugin.c", "-pg", "-shared", "-fPIC", f"-DNAME={name}", f"-DWHICH={which}",
                      f"-DREPEAT={repeat}", name=f"lib{name}.so")
        arcs_have_both_ends(tap, bed, exe)
        for n in (2, 4, 16):
            exact(tap, bed, exe, f"{n} threads", "threads", n, 100000 if n < 16 else 30000)
        exact(tap, bed, exe, "a storm of signals", "storm", 1, 300000)
        exact(tap, bed, exe, "1,200 short threads", "churn", 1200, 100)
        p = exact(tap, bed, exe, "called back by libc", "qsort")
        tap.point(any("libc" in p.module(c[1])["name"] for c in p["counts"] if c[0] == ARCS and p.module(c[1])
                      and p.name(c[3], c[4]) == "compare"),
                  "the caller lies in libc, under its own build")
        deaths(tap, bed, exe)
        forks(tap, bed, exe)
        plugins(tap, bed, exe)
        kills(tap, bed, exe)
        ways_to_compile(tap, bed)
        ways_to_link(tap, bed)
        if TABLE:
            print(f"# {'case':<42} {'function':<10} {'true':>12} {'ours':>12} {'glibc':>12}")
            for row in rows:
                print("# {:<42} {:<10} {:>12} {:>12} {:>12}".format(*row))


main()
