"""make bench-collect: what a counted call costs, beside glibc's mcount. The same binary runs with either, interleaved; overhead is ns of CPU
per call above the build without -pg. Medians; the ratio is what counts."""
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "collect"))
sys.path.insert(0, os.path.join(ROOT, "tests", "collect"))
import sites  # noqa: E402
from bed import COLLECT, Bed  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "7"))


def build(out, source, *options):
    compiler = "g++" if source.endswith(".cc") else "gcc"
    subprocess.run([compiler, "-O2", "-fno-optimize-sibling-calls", *options, "-o", out, source, "-pthread"], check=True)
    return out


def once(bed, exe, arguments, preload):
    env = bed.env(preload=False)
    if preload:
        env["LD_PRELOAD"] = preload
    done = subprocess.run([exe, *map(str, arguments)], env=env, cwd=bed.folder, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])


def row(bed, name, plain, counted, arguments, goal):
    """Medians of CPU time: without -pg, and above it glibc, an mcount that only returns, and ours."""
    times = {"base": [], "glibc": [], "empty": [], "ours": []}
    for _ in range(ROUNDS):
        times["base"].append(once(bed, plain, arguments, ""))
        times["glibc"].append(once(bed, counted, arguments, ""))
        times["empty"].append(once(bed, counted, arguments, bed.empty))
        times["ours"].append(once(bed, counted, arguments, COLLECT))
    base = statistics.median(times["base"])
    theirs, empty, ours = (statistics.median(times[k]) - base for k in ("glibc", "empty", "ours"))
    ratio = ours / theirs if theirs > 0 else float("nan")
    print(f"{name:<32} {base:8.2f} {theirs:9.2f} {empty:9.2f} {ours:9.2f} {ratio:8.3f} {goal:>6}  {'' if ratio <= goal else 'above'}", flush=True)


def starting(bed, plain, empty):
    """Microseconds of CPU from exec to exit of a program that does nothing, above those without a preloaded library."""
    env = {"none": bed.env(preload=False), "a library that does nothing": bed.env(preload=False, LD_PRELOAD=empty), "with a daemon": bed.env(),
           "without one": bed.env(PROFD_SOCKET="/nonexistent/profd.sock")}
    times = {name: [] for name in env}
    for _ in range(40 * ROUNDS):
        for name, e in env.items():
            pid = os.posix_spawn(plain, [plain, "leaf", "1"], e, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
            usage = os.wait4(pid, 0)[2]
            times[name].append(usage.ru_utime + usage.ru_stime)
    base = statistics.median(times["none"])
    for name in list(env)[1:]:
        print(f"{'start and end: ' + name:<44} {(statistics.median(times[name]) - base) * 1e6:8.0f} µs of CPU (goal 150)")


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
                subprocess.run([plain, "leaf", "1"], env=bed.env(), stdout=subprocess.DEVNULL, check=True, cwd=bed.folder)
        results = []
        for _ in range(rounds):
            bed.say("sweep")
            results.append(json.loads(bed.process.stdout.readline()))
        processes, size, slots, counts, _ = results[0]
        micros = statistics.median(r[4] for r in results)
        print(f"{'harvest: ' + what:<44} {micros:8.0f} µs: {processes} processes, {size} bytes, {slots} slots, {counts} counts; "
              f"{micros / slots * 16384:.0f} µs for 16k slots")


def ticking(bed):
    """Ticks beside CPU time × rate."""
    exe = bed.build("truth.c", "-fno-omit-frame-pointer", "-rdynamic", name="burner")
    for rate in (99, 1000):
        shares = []
        for _ in range(ROUNDS):
            p = next(q for q in bed.run("env", f"PROFD_RATE={rate}", exe, "burn", 2, 100) if q.module(1)["name"] == exe)
            shares.append(100 * p["TICKS"] / (p["CPU_NS"] / 1e9 * rate))
        print(f"{f'ticks of three threads at {rate} Hz':<44} {statistics.median(shares):8.1f} % of CPU time × rate (goal 97 to 103)")


def main():
    with Bed() as bed:
        source = os.path.join(HERE, "collect", "calls.cc")
        pad = os.path.join(bed.folder, "pad.s")
        with open(pad, "w", encoding="utf-8") as f: # glibc's arc table is a part of the text
            f.write(".text\n.globl bench_pad\nbench_pad:\n.fill 400000,1,0x90\nret\n.section .note.GNU-stack,\"\",@progbits\n")
        plain = build(os.path.join(bed.folder, "plain"), source, pad)
        counted = build(os.path.join(bed.folder, "counted"), source, "-pg", pad)
        empty = os.path.join(bed.folder, "empty.s")
        with open(empty, "w", encoding="utf-8") as f:
            f.write(".text\n" + "".join(f".globl {n}\n.type {n},@function\n{n}: ret\n" for n in ("mcount", "__monstartup", "_mcleanup")) +
                    ".section .note.GNU-stack,\"\",@progbits\n")
        bed.empty = build(os.path.join(bed.folder, "empty.so"), empty, "-shared")
        print(f"{'ns of CPU per call':<32} {'base':>8} {'+ glibc':>9} {'+ ret':>9} {'+ ours':>9} {'ratio':>8} {'goal':>6}")
        row(bed, "fib", plain, counted, ("fib", 32), 0.22)
        row(bed, "a leaf in a loop", plain, counted, ("leaf", 20000000), 0.22)
        row(bed, "four leaves in a loop", plain, counted, ("leaves", 20000000), 0.22)
        for kinds, goal in ((4, 0.75), (32, 0.45), (256, 0.06)):
            row(bed, f"virtual calls, {kinds} targets", plain, counted, ("virtual", 10000000 if kinds < 256 else 2000000, kinds), goal)
        tree = None
        for functions, rounds, goal in ((10000, 200, 1.1), (100000, 20, 0.8)):
            programs = []
            for name, options in (("plain", []), ("counted", ["-pg"])):
                path = os.path.join(bed.folder, f"sites{functions}-{name}.s")
                calls = sites.source(path, functions, bool(options))
                programs.append(build(path + ".exe", source, f"-DTREE={calls}", *options, path))
            row(bed, f"{functions} call sites", *programs, ("tree", rounds), goal)
            tree = tree or programs[1]
        for threads in (2, 4, 8):
            row(bed, f"fib, {threads} threads", plain, counted, ("fib", 30, threads), 0.25)
        ticking(bed)
        starting(bed, plain, bed.empty)
        sweeping(bed, tree, counted)


main()
