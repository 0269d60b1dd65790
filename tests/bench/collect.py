"""make bench-collect: what a counted call costs, beside glibc's mcount. The same binary runs with either, interleaved;
overhead is ns of CPU per call above the build without -pg. Medians; the ratio is what counts. `ret` is a preloaded
mcount that does nothing but return, called as every preloaded one is: no collector that leaves call sites alone can be
faster. `jump` is two jumps, there and back: nor can one that rewrites them. ROUNDS=n; with PACKAGES=folder
(tests/oracle/packages.sh folder jansson) a real library, too."""
import glob
import json
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "collect"))
sys.path.insert(0, os.path.join(ROOT, "tests", "collect"))
import sites  # noqa: E402
from bed import COLLECT, Bed  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "11"))
PACKAGES = os.environ.get("PACKAGES", "")
SOURCE = os.path.join(HERE, "collect", "calls.cc")
COLUMNS = ("base", "glibc", "ret", "plain", "jump", "rewritten", "off")


def build(out, *sources_and_options):
    compiler = "g++" if any(s.endswith(".cc") for s in sources_and_options) else "gcc"
    subprocess.run([compiler, "-O2", "-fno-optimize-sibling-calls", "-o", out, *sources_and_options, "-pthread"],
                   check=True)
    return out


def assembly(bed, name, text):
    path = os.path.join(bed.folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text + '.section .note.GNU-stack,"",@progbits\n')
    return path


def jumping(bed, name, *sources_and_options):
    """The -pg build with each call of mcount made a jump there and back: what rewriting can come to, without counting
    anything."""
    path, jumps, lines = os.path.join(bed.folder, name + ".jump.s"), 0, []
    source = next(s for s in sources_and_options if s.endswith((".cc", ".s")))
    if source.endswith(".cc"):
        made = path + ".cc.s"
        subprocess.run(["g++", "-O2", "-fno-optimize-sibling-calls", "-pg", "-S", "-o", made, source,
                        *[o for o in sources_and_options if o.startswith("-D")]], check=True)
        source = made
    with open(source, encoding="utf-8") as f, open(path, "w", encoding="utf-8") as out:
        for line in f:
            if "mcount@GOTPCREL" in line:
                lines.append(f".p2align 6\n.Lthere{jumps}: .byte 0xe9\n.long .Lback{jumps}-.-4\n")
                line = f".byte 0x67, 0xe9\n.long .Lthere{jumps}-.-4\n.Lback{jumps}:\n"
                jumps += 1
            out.write(line)
        out.write(".text\n" + "".join(lines) + '.section .note.GNU-stack,"",@progbits\n')
    return path


def once(bed, exe, arguments, preload="", **env):
    env = bed.env(preload=False, **env)
    if preload:
        env["LD_PRELOAD"] = preload
    done = subprocess.run([exe, *map(str, arguments)], env=env, cwd=bed.folder, capture_output=True, text=True,
                          check=True)
    return float(done.stdout.split()[0])


def verdict(ratio, goal):
    return f"{ratio:6.3f} {goal:5} {'' if ratio <= goal else 'above'}"


def row(bed, name, programs, arguments, goals, off_goal):
    """Medians of CPU time: without -pg, and above it all others. programs: plain, counted, jumping (or None)."""
    plain, counted, jump = programs
    runs = {"base": (plain, "", {}), "glibc": (counted, "", {}), "ret": (counted, bed.empty, {}),
            "plain": (counted, COLLECT, {}),
            "jump": (jump, "", {}), "rewritten": (counted, COLLECT, {"PROFD_REWRITE": 1}),
            "off": (counted, COLLECT, {"PROFD_REWRITE": 1, "BENCH_OFF": 1})}
    times = {c: [] for c in COLUMNS}
    for _ in range(ROUNDS):
        for c in COLUMNS:
            if runs[c][0]:
                times[c].append(once(bed, runs[c][0], arguments, runs[c][1], **runs[c][2]))
    base = statistics.median(times["base"])
    over = {c: statistics.median(times[c]) - base if times[c] else float("nan") for c in COLUMNS}
    most = off_goal if off_goal >= 0.2 else off_goal * over["glibc"]
    print(f"{name:<28} {base:7.2f} {over['glibc']:7.2f} {over['ret']:7.2f} {over['plain']:7.2f} {over['jump']:7.2f} "
          f"{over['rewritten']:7.2f} {over['off']:7.2f} | "
          f"{over['ret'] / over['glibc']:6.3f} {verdict(over['plain'] / over['glibc'], goals[0]):<18} "
          f"{over['jump'] / over['glibc']:6.3f} "
          f"{verdict(over['rewritten'] / over['glibc'], goals[1]):<18} {most:5.2f} "
          f"{'' if over['off'] <= most else 'above'}", flush=True)


def losing(bed, exe, n, threads):
    """Calls that are missing afterwards."""
    missing = []
    for rewrite in (0, 1):
        seen = bed.run(exe, "fib", n, threads, env=bed.env(PROFD_REWRITE=rewrite))
        calls = sum(count for name, count in seen[0].calls().items() if "fib" in name)
        missing.append(int(bed.out.split()[1]) - calls)
    print(f"{f'calls lost by {threads} threads':<44} {missing[0]:8} plain, {missing[1]} rewritten (goal 0)", flush=True)


def killing(bed):
    exe, worst = bed.build("truth.c", "-pg", name="killed"), [0, 0]
    for i in range(60):
        before = {q["instance"] for q in bed.dump() if "instance" in q.raw}
        p = subprocess.Popen([exe, "forever", "2"], env=bed.env(PROFD_REWRITE=i % 2), cwd=bed.folder,
                             stdout=subprocess.PIPE)
        p.stdout.readline()
        time.sleep(0.001 * (i % 20))
        p.send_signal(signal.SIGKILL)
        p.wait()
        p.stdout.close()
        q = next(q for q in bed.dump() if q["instance"] not in before)
        truth, calls = bed.truth(p.pid), q.calls()
        worst[i % 2] = max(worst[i % 2], sum(abs(truth[f] - calls[f]) for f in ("leaf", "middle", "outer")))
        bed.forget_truth()
    print(f"{'calls in flight lost by SIGKILL, 2 threads':<44} {worst[0]:8} plain, {worst[1]} rewritten, at most in 30 "
          f"kills each (goal 2)", flush=True)


def starting(bed, plain, counted, empty):
    """Microseconds of CPU from exec to exit of a program that does nothing, above those without a preloaded library."""
    gone = "/nonexistent/profd.sock"
    runs = {"none": (plain, bed.env(preload=False)), "a library that does nothing": (plain,
            bed.env(preload=False, LD_PRELOAD=empty)),
            "with a daemon": (plain, bed.env()), "without one": (plain, bed.env(PROFD_SOCKET=gone)),
            "counted": (counted, bed.env(preload=False, GMON_OUT_PREFIX=os.path.join(bed.folder, "gmon"))),
            "-pg, with a daemon": (counted, bed.env()), "-pg, rewritten": (counted, bed.env(PROFD_REWRITE=1))}
    times = {name: [] for name in runs}
    for _ in range(30 * ROUNDS):
        for name, (exe, e) in runs.items():
            pid = os.posix_spawn(exe, [exe, "leaf", "1"], e,
                                 file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
            usage = os.wait4(pid, 0)[2]
            times[name].append(usage.ru_utime + usage.ru_stime)
    for name in runs:
        base = statistics.median(times["none" if runs[name][0] == plain else "counted"])
        if name not in ("none", "counted"):
            than = "" if runs[name][0] == plain else " than with glibc's collector"
            print(f"{'start and end: ' + name:<44} {(statistics.median(times[name]) - base) * 1e6:8.0f} µs of CPU "
                  f"more{than} (goal 150)", flush=True)


def sweeping(bed, program, plain):
    """How long the daemon's part takes: a process of many call sites, and a thousand small ones."""
    bed.stop()
    bed.start()
    subprocess.run([program, "tree", "3"], env=bed.env(), stdout=subprocess.DEVNULL, check=True, cwd=bed.folder)
    for what, rounds in (("a process with 10,000 call sites", 9), ("1,000 small processes", 5)):
        if rounds == 5:
            bed.stop()
            bed.start()
            for _ in range(1000):
                subprocess.run([plain, "leaf", "1"], env=bed.env(), stdout=subprocess.DEVNULL, check=True,
                               cwd=bed.folder)
        results = []
        for _ in range(rounds):
            bed.say("sweep")
            results.append(json.loads(bed.process.stdout.readline()))
        processes, size, slots, counts, _ = results[0]
        micros = statistics.median(r[4] for r in results)
        print(f"{'harvest: ' + what:<44} {micros:8.0f} µs: {processes} processes, {size} bytes, {slots} slots, "
              f"{counts} counts; "
              f"{micros / slots * 16384:.0f} µs for 16k slots")


def ticking(bed):
    """Ticks beside CPU time × rate."""
    exe = bed.build("truth.c", "-fno-omit-frame-pointer", "-rdynamic", name="burner")
    for rate in (99, 1000):
        shares = []
        for _ in range(min(ROUNDS, 7)):
            p = next(q for q in bed.run("env", f"PROFD_RATE={rate}", exe, "burn", 2, 100) if q.module(1)["name"] == exe)
            shares.append(100 * p["TICKS"] / (p["CPU_NS"] / 1e9 * rate))
        print(f"{f'ticks of three threads at {rate} Hz':<44} {statistics.median(shares):8.1f} % of CPU time × rate "
              f"(goal 97 to 103)")


def library(bed, pad):
    tree = os.path.join(PACKAGES, "jansson", "tree")
    if not PACKAGES or not os.path.isdir(tree):
        print("a real library: not measured (PACKAGES=folder of tests/oracle/packages.sh, with jansson)")
        return
    sources = [os.path.join(HERE, "collect", "library.c"), *sorted(glob.glob(os.path.join(tree, "src", "*.c"))), pad]
    options = ["-DHAVE_CONFIG_H", "-I" + os.path.join(tree, "src")]
    programs = [build(os.path.join(bed.folder, "library-" + name), *options, *more, *sources) for name,
                more in (("plain", []), ("counted", ["-pg"]))]
    row(bed, "jansson, parse and dump (µs)", (*programs, None), (300,), (0.32, 0.26), 0.15)


def main():
    with Bed() as bed:
        # glibc's arc table is a part of the text
        pad = assembly(bed, "pad.s", ".text\n.globl bench_pad\nbench_pad:\n.fill 400000,1,0x90\nret\n")
        plain = build(os.path.join(bed.folder, "plain"), SOURCE, pad)
        counted = build(os.path.join(bed.folder, "counted"), SOURCE, "-pg", pad)
        jump = build(os.path.join(bed.folder, "jump"), jumping(bed, "calls", SOURCE), pad, "-lstdc++")
        empty = assembly(bed, "empty.s", ".text\n" + "".join(f".globl {n}\n.type {n},@function\n{n}: ret\n"
                for n in ("mcount", "__monstartup", "_mcleanup")))
        bed.empty = build(os.path.join(bed.folder, "empty.so"), empty, "-shared")
        all_three = (plain, counted, jump)
        print(f"{'ns of CPU per call, above':<28} {'base':>7} {'glibc':>7} {'ret':>7} {'plain':>7} {'jump':>7} "
              f"{'rewr.':>7} {'off':>7} | {'ret':>6} {'plain/glibc, goal':<18} "
              f"{'jump':>6} {'rewritten, goal':<18} {'off, at most'}")
        row(bed, "fib", all_three, ("fib", 30), (0.22, 0.14), 0.2)
        row(bed, "a leaf in a loop", all_three, ("leaf", 5000000), (0.22, 0.14), 0.2)
        row(bed, "four leaves in a loop", all_three, ("leaves", 5000000), (0.22, 0.14), 0.2)
        for kinds, goals in ((4, (0.75, 0.38)), (32, (0.45, 0.20)), (256, (0.06, 0.02))):
            row(bed, f"virtual calls, {kinds} targets", all_three,
                ("virtual", 2000000 if kinds < 256 else 1000000, kinds), goals, 0.15)
        tree = None
        for functions, rounds, goals in ((10000, 60, (1.1, 0.50)), (100000, 6, (0.80, 0.42))):
            programs = []
            for name, options in (("plain", []), ("counted", ["-pg"])):
                path = os.path.join(bed.folder, f"sites{functions}-{name}.s")
                calls = sites.source(path, functions, bool(options))
                programs.append(build(path + ".exe", SOURCE, f"-DTREE={calls}", *options, path))
            path = jumping(bed, f"sites{functions}", path)
            row(bed, f"{functions} call sites", (*programs, build(path + ".exe", SOURCE, f"-DTREE={calls}", path)),
                ("tree", rounds), goals, 0.15)
            tree = tree or programs[1]
        library(bed, pad)
        for threads in (2, 4, 8):
            row(bed, f"fib, {threads} threads", all_three, ("fib", 28, threads), (0.25, 0.16), 0.15)
        for threads in (2, 4, 8):
            losing(bed, counted, 28, threads)
        killing(bed)
        ticking(bed)
        starting(bed, plain, counted, bed.empty)
        sweeping(bed, tree, counted)


main()
