#!/usr/bin/python3
# not a test
"""A regression between two versions of a Debian package, found end to end: jq 1.6 of Debian 12 and jq 1.7.1 of
Debian 13.

regression.py FOLDER [runs=N]: fetches both sources, compiles them with -pg, runs each N times under profctl run on
orders in JSON, and prints what profctl diff, callers and annotate say, with the commands. Beside that, what pprof and
perf say of the same ticks, the CPU time of the same programs without -pg, and what cachegrind counts of the function
that profctl diff found."""
import json
import os
import random
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "integration"), os.path.join(HERE, "..", "bench")]
sys.dont_write_bytecode = True
import perf_data  # noqa: E402
from harness import PROFCTL, Daemon  # noqa: E402

VERSIONS = {"1.6": "bookworm", "1.7.1": "trixie"}
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
RATE = 250  # the kernel's own
FILES = 16
# What a shop asks of its orders: each process sorts them, and draws one more question.
SORT = "sort_by(.price)[0].id"
QUESTIONS = ("map(.price) | add", "map(.lat) | sort | length", "group_by(.customer % 100) | length",
             "unique_by(.customer) | length", "map(.items | min) | add")
HAVE = ("TM_TM_GMT_OFF ISATTY MKTIME GMTIME_R LOCALTIME_R STRPTIME STRFTIME TIMEGM SETLOCALE PTHREAD MEMMEM FLOOR SQRT "
        "POW LOG ALLOCA_H PTHREAD_KEY_CREATE ATEXIT").split()


def run(*words, **how):
    done = subprocess.run(words, capture_output=True, text=True, **how)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout


def fetch(folder):
    """The sources as apt-get source has them, of the mirror and with the keys of this system, in lists of our own."""
    places = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Identifier: Packages")
    mirror = next((p.split()[0] for p in places.splitlines() if re.search(r" (stable|bookworm|trixie) main$", p)), None)
    if mirror is None:
        sys.exit("no source of Debian 12 or 13 is configured")
    signed = f" [signed-by={KEYRING}]" if os.path.exists(KEYRING) else ""
    for sub in ("lists/partial", "cache/archives/partial", "parts"):
        os.makedirs(os.path.join(folder, "apt", sub), exist_ok=True)
    with open(os.path.join(folder, "apt", "parts", "both.list"), "w") as f:
        f.writelines(f"deb-src{signed} {mirror} {suite} main\n" for suite in VERSIONS.values())
    own = [f"-oDir::{name}={os.path.join(folder, 'apt', where)}" for name, where in
           (("Etc::SourceParts", "parts"), ("State::Lists", "lists"), ("Cache", "cache"))]
    apt = ["apt-get", "-qq", *own, "-oDir::Etc::SourceList=/dev/null", "-oAPT::Sandbox::User=root"]
    run(*apt, "update")
    for suite in VERSIONS.values():
        run(*apt, "source", "--download-only", "--tar-only", f"jq/{suite}", cwd=folder)


def compile_one(folder, version, name, *options):
    """The program, by the compiler alone: the configure scripts of the two versions look for different things."""
    tree, out = os.path.join(folder, f"jq-jq-{version}"), os.path.join(folder, version, name)
    exe, source = os.path.join(out, "jq"), os.path.join(tree, "src")
    if os.path.exists(exe):
        return exe
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(source, "builtin.jq")) as f:
        lines = [line.rstrip("\n").replace("\\", "\\\\").replace('"', '\\"') for line in f]
    for file, text in (("builtin.inc", "".join(f'"{line}\\n"\n' for line in lines)),
                       ("config_opts.inc", '#define JQ_CONFIG ""\n'),
                       ("version.h", f'#define JQ_VERSION "{version}"\n')):
        with open(os.path.join(source, file), "w") as f:
            f.write(text)
    files = [os.path.join(source, f) for f in sorted(os.listdir(source)) if f.endswith(".c") and f != "inject_errors.c"]
    number = os.path.join(source, "decNumber")
    if os.path.isdir(number):
        files += [os.path.join(number, f) for f in ("decNumber.c", "decContext.c")]
        options += ("-DUSE_DECNUM=1", "-DDECLITEND=1")
    run("gcc", "-O2", "-g", "-w", "-D_GNU_SOURCE", "-DIEEE_8087", *(f"-DHAVE_{h}" for h in HAVE),
        *options, "-I" + source, "-I" + tree, "-o", exe, *files, "-lm", "-lpthread")
    return exe


def write_orders(folder):
    paths = []
    for n in range(FILES):
        draw = random.Random(n)
        paths.append(os.path.join(folder, f"orders-{n}.json"))
        with open(paths[-1], "w") as f:
            f.writelines(json.dumps({"id": i, "customer": draw.randint(1, 10**6), "price": draw.randint(1, 10**5) / 100,
                                     "lat": draw.uniform(-90, 90), "lon": draw.uniform(-180, 180),
                                     "items": [draw.randint(1, 5000) for _ in range(draw.randint(1, 9))]}) + "\n"
                         for i in range(draw.randint(12000, 24000)))
    return paths


def arguments(orders, n):
    draw = random.Random(n)
    return ["-s", f"[{SORT}, ({draw.choice(QUESTIONS)})]", draw.choice(orders)]


def show(d, *words):
    done = d.ctl(*words)
    print(f"$ profctl {' '.join(w if re.fullmatch(r'[-@./=,:%a-zA-Z0-9_]+', w) else repr(w) for w in words)}")
    print(done.stdout + done.stderr + (f"exit status {done.returncode}\n" if done.returncode else ""), flush=True)
    return done


def slowest(d, old, new):
    """Of the functions that certainly take longer for a call, that with the most time in the new version."""
    rows = d.json("diff", old, new, "--metric", "time-per-call", "--json")["metrics"][0]["rows"]
    rows = [r for r in rows if r["verdict"] == "changed" and r["change"] > 0]
    return max(rows, key=lambda r: r["ticks_b"])["function"] if rows else None


def code_of(exe):
    """Address, length and place in the file of the code of a program."""
    line = next(words for words in map(str.split, run("readelf", "-lW", exe).splitlines())
                if words[:1] == ["LOAD"] and "E" in words[6:-1])
    return int(line[2], 16), int(line[5], 16), int(line[1], 16)


def show_peers(d, folder, counted):
    """What pprof and perf say of the same ticks: no intervals, no calls, and nothing about what is chance."""
    profiles, data = [], []
    for version, exe in counted.items():
        profiles.append(os.path.join(folder, f"{version}.pb.gz"))
        done = d.ctl("report", exe, "-f", "pprof", "-o", profiles[-1])
        assert done.returncode == 0, done.stderr
        report = d.json("report", exe, "--json")
        samples = {int(f["address"], 16): f["ticks"] for f in report["functions"]
                   if f["ticks"] and f["build_id"] == report["build_id"]}
        data.append(perf_data.write(os.path.join(folder, f"{version}.perf"), exe, *code_of(exe), samples))
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/lib/go-1.19/bin", HOME=folder)
    for title, words in ((f"go tool pprof -top -diff_base jq-{' jq-'.join(counted)}",
                          ["go", "tool", "pprof", "-top", "-nodecount=8", "-sample_index=cpu", "-diff_base",
                           *profiles]),
                         ("perf diff, of the ticks in jq", ["perf", "diff", "-q", "-s", "sym", *data])):
        text = run(*words, env=env, cwd=folder)
        lines = [line for line in text[max(0, text.find("Showing nodes")):].splitlines() if line.strip()]
        print("\n".join([f"$ {title}", *lines[:12]]) + "\n", flush=True)


def measure_time(plain, orders):
    print("CPU time of a process without -pg, the same inputs:")
    for version, exe in plain.items():
        seconds = []
        for n in range(30):
            before = os.times()
            subprocess.run([exe, *arguments(orders, n)], stdout=subprocess.DEVNULL, check=True)
            after = os.times()
            seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
        print(f"  jq {version}: {statistics.median(seconds):.3f} s, the median of 30 processes", flush=True)


def measure_misses(folder, plain, orders, function):
    """Of a function, what cachegrind counts when the same orders are sorted."""
    print(f"{function} under cachegrind, without -pg, one input:")
    for version, exe in plain.items():
        out = os.path.join(folder, "cachegrind.out")
        run("valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={out}", exe, "-s", SORT,
            orders[0])
        with open(out) as f:
            text = f.read()
        events, total, inside = re.search(r"^events: (.*)", text, re.M)[1].split(), {}, False
        for line in text.splitlines():
            if line.startswith("fn="):
                inside = line[3:] == function
            elif inside and line[:1].isdigit():
                for name, n in zip(events, line.split()[1:]):
                    total[name] = total.get(name, 0) + int(n)
        misses = total["D1mr"] + total["D1mw"]
        print(f"  jq {version}: {total['Ir']} instructions, {total['Dr'] + total['Dw']} reads and writes, {misses} of "
              "them not in the first data cache", flush=True)


def main(folder, runs):
    os.makedirs(folder, exist_ok=True)
    fetch(folder)
    for name in sorted(os.listdir(folder)):
        if name.endswith((".orig.tar.gz", ".orig.tar.xz")):
            run("tar", "-xf", name, cwd=folder)
    counted = {v: compile_one(folder, v, "pg", "-pg") for v in VERSIONS}
    plain = {v: compile_one(folder, v, "plain") for v in VERSIONS}
    orders = write_orders(folder)
    print(f"jq 1.6 of Debian 12 and jq 1.7.1 of Debian 13, {runs} processes of each, {RATE} ticks a second\n",
          flush=True)
    with Daemon() as d:
        for n in range(runs):
            for version, exe in counted.items():
                subprocess.run([PROFCTL, "run", "--rate", str(RATE), "-l", "service=orders", "-l", f"version={version}",
                                exe, *arguments(orders, n)], env=d.env, stdout=subprocess.DEVNULL, check=True)
        old, new = (f"jq@version={v}" for v in VERSIONS)
        show(d, "diff", old, new, "--metric", "self,total,time-per-call", "--limit", "6", "--fail-on",
             "time-per-call>50%")
        show_peers(d, folder, counted)
        function = slowest(d, old, new)
        if function is None:
            sys.exit("no function certainly takes longer for a call: more processes are needed, runs=N")
        show(d, "callers", counted["1.7.1"], function, "--limit", "5")
        for version in VERSIONS:
            show(d, "annotate", counted[version], function)
        show(d, "annotate", counted["1.7.1"], function, "--asm")
    measure_time(plain, orders)
    measure_misses(folder, plain, orders, function)


if __name__ == "__main__":
    options = dict(word.split("=") for word in sys.argv[2:])
    main(os.path.abspath(sys.argv[1]), int(options.get("runs", 150)))
