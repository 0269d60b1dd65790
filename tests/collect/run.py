#!/usr/bin/python3
"""profctl run, ps, pause and resume, with the real daemon: what a command sees of them, how it ends, and what reports
then say."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import BUILD, COLLECT, COLLECT_STATIC, LONG, ROOT, Bed, Tap, run, wait_until  # noqa: E402
from harness import Daemon, patient  # noqa: E402

PROFCTL = os.path.join(BUILD, "profctl")
GO = "/usr/lib/go-1.19/bin/go"


class Shop:
    """A daemon, a folder with programs that count their own calls, and what the daemon says of them."""

    def __init__(self, daemon, bed):
        self.daemon, self.bed, self.env = daemon, bed, dict(bed.env(preload=False), PROFD_SOCKET=daemon.socket)

    def run(self, *words, **options):
        """profctl run, to its end."""
        env = dict(self.env, **options.pop("env", {}))
        return run(PROFCTL, *patient(("run", *words)), env=env, cwd=self.bed.folder, **options)

    def live(self, *command, env=(), words=()):
        """A process that goes on, under the collector."""
        p = subprocess.Popen([PROFCTL, "run", *words, *[str(c) for c in command]], env=dict(self.env, **dict(env)),
                             cwd=self.bed.folder, stdout=subprocess.PIPE)
        p.stdout.readline()
        self.child = wait_until(lambda: run("pgrep", "-P", p.pid).stdout.split())[0]
        return p

    def calls(self, exe, *options):
        """(calls by function, calls_exact) of its report; ({}, None) before there is one."""
        done = self.daemon.ctl("report", exe, "--json", *options)
        if done.returncode:
            return {}, None
        report = json.loads(done.stdout)
        return {f["name"]: f["calls"] + f.get("self_calls", 0)
                for f in report["functions"]}, report.get("provenance", report).get("calls_exact")

    def processes(self, *options):
        return self.daemon.json("ps", "--json", *options)["rows"]

    def truth(self):
        """What all programs counted themselves since the last forget(), by function."""
        total = {}
        for name in os.listdir(self.bed.folder):
            if name.startswith("truth."):
                for f, n in self.bed.truth(int(name[6:])).items():
                    total[f] = total.get(f, 0) + n
        return total

    def forget(self):
        self.bed.forget_truth()


def off(truth, calls):
    return {f: (n, calls.get(f, 0)) for f, n in truth.items() if calls.get(f, 0) != n}


def refusals(tap, shop):
    for words, status, word in ((["nosuch"], 127, "nosuch"), (["/etc/passwd"], 126, "/etc/passwd"),
                                (["-l", "bad-name=1", "true"], 65, "bad-name"),
                                (["-l", "x", "true"], 64, "NAME=VALUE"), (["--rate", "1e3", "true"], 64, "1e3"),
                                (["--rate", "10001", "true"], 64, "10001"),
                                (["--clock", "sun", "true"], 64, "sun"), (["--clock", "wall", "true"], 64, "nanosleep"),
                                (["--memory", "0", "true"], 64, "from 1"),
                                ([], 64, "no command"),
                                (["--wait", "-1", "true"], 64, "-1"), (["--zork", "true"], 64, "--zork"),
                                (["-l"], 64, "no value"), (["--socket", "x" * 200, "true"], 64, "107")):
        done = shop.run(*words)
        tap.point(done.returncode == status and word in done.stderr and done.stderr.count("\n") == 1
                  and not done.stdout,
                  f"run {' '.join(words)[:40]}: {status} and one sentence", (done.returncode, done.stderr, done.stdout))
    for words, status, word in ((["pause"], 64, "no process"), (["pause", "999999999"], 66, "999999999"),
                                (["pause", "--off", "nolabel=x"], 66, "nolabel"),
                                (["pause", "1", "--rate", "1e1"], 64, "1e1"),
                                (["ps", "abc"], 64, "abc"), (["ps", "-l", "x"], 64, "x")):
        done = shop.daemon.ctl(*words)
        tap.point(done.returncode == status and word in done.stderr and done.stderr.count("\n") == 1
                  and not done.stdout,
                  f"{' '.join(words)}: {status} and one sentence", (done.returncode, done.stderr, done.stdout))


def bad_labels(tap, shop, exe):
    """A label of the environment that breaks the rules costs no call: it is left out, and the report says so."""
    many = {f"PROFD_LABEL_l{n}".encode(): b"v" for n in range(70)}
    shop.run("-l", "host=elsewhere", "-l", "only=this", exe, "exit")
    calls, exact = shop.calls(exe, "-l", "host=elsewhere")
    here, _ = shop.calls(exe, "-l", "only=this", "-l", "host=" + socket.gethostname())
    tap.point(calls and exact and not here, "a label host that is given counts", (calls, exact, here))
    for what, env, kept in (("a reserved name", {b"PROFD_LABEL___x": b"1", b"PROFD_LABEL_ok": b"1"}, "ok=1"),
                            ("a value that is not UTF-8", {b"PROFD_LABEL_bad": b"\xff", b"PROFD_LABEL_ok": b"2"},
                             "ok=2"), ("the 65th", many, "l0=v")):
        shop.forget()
        done = subprocess.run([PROFCTL, "run", exe, "exit"],
                              env={**{os.fsencode(k): os.fsencode(v) for k, v in shop.env.items()}, **env},
                              cwd=shop.bed.folder, stdin=subprocess.DEVNULL, capture_output=True)
        calls, exact = shop.calls(exe, "-l", kept)
        from_where = shop.daemon.json("report", exe, "--json", "-l", kept)["provenance"] if calls else {}
        tap.point(done.returncode == 0 and calls and not off(shop.truth(), calls) and exact is True
                  and from_where["exact"] is False
                  and from_where["inexact_reasons"] == ["label-left-out"],
                  f"{what}: left out, every call is there, and the report says so", (done, calls, from_where))
    shop.forget()


def commands(tap, shop, exe):
    done = shop.daemon.ctl("ps")
    tap.point(done.returncode == 0 and done.stdout.count("\n") == 1 and "No live processes" in done.stdout,
              "ps says in one line that nothing is attached", done.stdout)
    done = shop.run("-l", "service=web shop", "-l", "zone=a=b", "--rate", "250", exe, "threads", "2", "5000")
    tap.point((done.returncode, done.stdout, done.stderr) == (0, "", ""), "a command runs, and nothing is printed",
              done)
    calls, exact = shop.calls(exe)
    tap.point(exact is True and not off(shop.truth(), calls),
              "when it is over, the report has every call, by name, and is exact", (exact, off(shop.truth(), calls)))
    calls, _ = shop.calls(exe, "-l", "service=web shop", "-l", "zone=a=b")
    tap.point(not off(shop.truth(), calls), "under its labels", calls)
    calls, _ = shop.calls(exe, "-l", "host=" + socket.gethostname())
    tap.point(calls and not off(shop.truth(), calls), "and under the label host, as an upload would be", calls)
    names = {os.path.basename(b["name"]): b["symbols"] for b in shop.daemon.json("builds", "--all", "--json")["rows"]}
    libc = [n for n in names if n.startswith("libc.so")]
    tap.point(names[os.path.basename(exe)] and libc and names[libc[0]], "libraries have their names, too", names)
    done = shop.run("--", exe, "kill")
    tap.point(done.returncode == 128 + 9 and not off(shop.truth(), shop.calls(exe)[0]),
              "128 + the signal for one that is killed, and its counts are there", done)
    done = shop.run("sh", "-c", "echo out; echo err >&2; exit 7")
    tap.point((done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n"),
              "output and status are the command's", done)
    for mode in ("_exit", "abort", "segv", "exec", "vfork", "quick_exit"):
        shop.run(exe, mode, "1", "2000")
    tap.point(not off(shop.truth(), shop.calls(exe)[0]), "and so are those of processes that end in any other way",
              off(shop.truth(), shop.calls(exe)[0]))
    shop.run("sh", "-c", f"{exe} forks 3 200 | cat; ({exe} threads 3 100 & {exe} threads 1 50; wait) | sort | (read x; "
                         f"{exe} threads 1 7)")
    tap.point(not off(shop.truth(), shop.calls(exe)[0]), "trees of forks, pipelines, background jobs",
              off(shop.truth(), shop.calls(exe)[0]))
    done = shop.run("-v", exe, "threads", "1", "10")
    tap.point(done.stderr.startswith("profctl: run: all counts are stored by profd") and done.stderr.count("\n") == 1,
              "-v says so", done.stderr)
    shop.forget()


def many(tap, shop):
    """As a build tool does: hundreds of one program, each of a millisecond."""
    exe = shop.bed.build("truth.c", "-pg", name="short")
    n = 300
    done = shop.run("-l", "job=many", "sh", "-c", f"i=0; while [ $i -lt {n} ]; do {exe} threads 1 3 & {exe} threads 1 "
                                                  f"2; wait; i=$((i+2)); done")
    calls, exact = shop.calls(exe)
    rows = [b for b in shop.daemon.json("builds", "--json")["rows"] if b["name"] == exe]
    tap.point(done.returncode == 0 and exact is True and not off(shop.truth(), calls)
              and rows[0]["processes_started"] == n,
              f"{n} short processes: each is counted", (done, exact, off(shop.truth(), calls), rows))
    shop.forget()


def environment(tap, shop, exe):
    own, source = os.path.join(shop.bed.folder, "libown.so"), os.path.join(shop.bed.folder, "own_preload.c")
    with open(source, "w") as f:
        f.write("int own_preload;\n")
    run("gcc", "-shared", "-fPIC", "-o", own, source)
    done = run("env", f"LD_PRELOAD={own}", PROFCTL, "run", "sh", "-c", "echo $LD_PRELOAD",
               env=dict(shop.env, ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0"))
    tap.point(done.returncode == 0 and done.stdout.endswith(f"libprofd-collect.so:{own}\n"),
              "an LD_PRELOAD of the user's stays", (done.stdout, done.stderr))
    here = os.path.relpath(shop.daemon.socket, shop.bed.folder)
    done = shop.run("--socket", here, "sh", "-c", "cd /; echo $PROFD_SOCKET $PROFD_RATE $PROFD_REWRITE")
    tap.point(os.path.realpath(done.stdout.split()[0]) == shop.daemon.socket and not done.stderr,
              "a relative socket becomes absolute", done)
    done = shop.run("--rate", "7", "--rewrite", "sh", "-c", "echo $PROFD_RATE $PROFD_REWRITE").stdout
    tap.point(done == "7 1\n", "options reach the command", done)
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
        child = subprocess.Popen([PROFCTL, "run", "sleep", "300"], env=shop.env)
        wait_until(lambda: run("pgrep", "-P", child.pid, "sleep").returncode == 0)
        child.send_signal(number)
        tap.point(child.wait(timeout=LONG) == 128 + number, f"{signal.Signals(number).name} is passed on",
                  child.returncode)
    absent = {"PROFD_SOCKET": "/nonexistent/s"}
    done = shop.run(exe, "threads", "1", "10", env=absent)
    tap.point(done.returncode == 0 and done.stderr.count("\n") == 1 and "/nonexistent/s" in done.stderr,
              "without a daemon: one sentence, and the command runs all the same", done.stderr)
    done = shop.run("--require-daemon", "sh", "-c", "echo it ran", env=absent)
    tap.point(done.returncode == 69 and not done.stdout and done.stderr.count("\n") == 1,
              "--require-daemon: it is not run", done)
    done = run(PROFCTL, "run", "--help")
    tap.point(done.returncode == 0 and all(w in done.stdout for w in ("--rate", "--wait", "--require-daemon")),
              "run --help")
    said = [run(PROFCTL, "run", "-v", *words, exe, "exit", env=shop.env, cwd=shop.bed.folder).stderr
            for words in ((), ("--wait", "0"))]
    tap.point("did not wait" not in said[0] and "did not wait" in said[1],
              "without --wait it waits until the counts are stored, with --wait 0 it does not", said)
    static = shop.bed.build("truth.c", "-pg", "-static", name="static")
    done = shop.run(static, "threads", "1", "10")
    tap.point(done.returncode == 0 and done.stderr.count("\n") == 1 and "static" in done.stderr,
              "a static program: that it runs uncounted", done)
    static = shop.bed.build("truth.c", "-pg", "-static", name="static", libraries=[COLLECT_STATIC, "-ldl", "-pthread"])
    shop.forget()
    done = shop.run(static, "threads", "1", "10")
    tap.point(done.returncode == 0 and not done.stderr and not off(shop.truth(), shop.calls(static)[0]),
              "one with the collector linked in is counted", done)
    listener = socket.socket(socket.AF_UNIX) # takes connections, and says nothing
    path = os.path.join(shop.bed.folder, "mute")
    listener.bind(path)
    listener.listen(8)
    done = shop.run("--wait", "1", "sh", "-c", "exit 5", env={"PROFD_SOCKET": path})
    tap.point(done.returncode == 5 and done.stderr.count("\n") == 1, "a daemon that says nothing holds nothing up",
              done)
    listener.close()
    shop.forget()


def other_libraries(tap, shop):
    """Programs without glibc run, and what is advised is possible."""
    source, gosource = (os.path.join(shop.bed.folder, name) for name in ("hello.c", "hello.go"))
    open(source, "w").write('#include <stdio.h>\n#include <stdlib.h>\nint main(void) { return printf("good %s\\n", '
                            'getenv("LD_PRELOAD") ? "preloaded" : "alone") < 0; }\n')
    open(gosource, "w").write('package main\nfunc main() { print() }\n')
    built = []
    if shutil.which("musl-gcc"):
        for name, options, words in (("musl", (), ["linked with musl", "link it with glibc"]),
                                     ("muslstatic", ("-static",), ["static and without glibc"])):
            built.append((name, run("musl-gcc", *options, "-o", os.path.join(shop.bed.folder, name), source), words,
                          "good preloaded\n"))
    if os.path.exists(GO):
        built.append(("go", run(GO, "build", "-o", os.path.join(shop.bed.folder, "go"), gosource,
                                env=dict(os.environ, CGO_ENABLED="0", HOME=shop.bed.folder,
                                         GOCACHE=os.path.join(shop.bed.folder, "cache")), timeout=300),
                      ["Go program", "runtime/pprof", "profctl upload"], ""))
    for name, made, words, out in built:
        done = shop.run(os.path.join(shop.bed.folder, name))
        tap.point(made.returncode == 0 and done.returncode == 0 and done.stdout == out and done.stderr.count("\n") == 1
                  and all(w in done.stderr for w in words),
                  f"a program of another C library ({name}) runs, and says how it can be counted", (made, done))
    if len(built) < 3:
        tap.skip("programs of musl and Go", "musl-tools or golang-1.19-go is not installed")


def sanitized(tap, shop):
    """Programs of sanitizers start, in the tree, too, and each call is counted."""
    own = os.path.join(shop.bed.folder, "own_options.c")
    with open(own, "w") as f:
        f.write('const char *__asan_default_options(void) { return "detect_leaks=0"; }\n')
    shared = run("clang", "-print-file-name=libclang_rt.asan-x86_64.so").stdout.strip() if shutil.which("clang") else ""
    kinds = [("gcc", "address"), ("gcc", "address", "-static-libasan"), ("gcc", "undefined"), ("gcc", "thread"),
             ("gcc", "address", own)]
    if shared:
        kinds += [("clang", "address"), ("clang", "memory"),
                  ("clang", "address", "-shared-libasan", f"-Wl,-rpath,{os.path.dirname(shared)}")]
    else:
        tap.skip("programs of clang's sanitizers", "clang is not installed")
    source = os.path.join(shop.bed.folder, "fib.c")
    with open(source, "w") as f:
        f.write("long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"
                "int main(void) { return fib(20) == 6765 ? 0 : 1; }\n")
    for n, (compiler, kind, *options) in enumerate(kinds):
        exe = os.path.join(shop.bed.folder, f"sanitized{n}")
        made = run(compiler, "-pg", f"-fsanitize={kind}", *options, "-o", exe, source)
        ways = {"alone": [exe], "child": ["sh", "-c", "ASAN_OPTIONS=detect_leaks=0 $0", exe]}
        if kind != "address" or options[-1:] == [own]:
            del ways["child"]  # it does not read the variable, or only the variable would let it start
        for way, words in ways.items():
            done = shop.run("-l", f"way={way}", *words)
            tap.point(done.returncode == 0 and not done.stderr
                      and shop.calls(exe, "-l", f"way={way}")[0].get("fib") == 21891,
                      f"{compiler} -fsanitize={' '.join([kind, *map(os.path.basename, options[:1])])}, {way}: it runs "
                      "and is counted", (made, done))
    shop.forget()


def uncounted(tap, shop):
    """What is started and not counted is listed once, with its reason."""
    folder, source = shop.bed.folder, os.path.join(shop.bed.folder, "nothing.c")
    with open(source, "w") as f:
        f.write("int main(void) { return 0; }\n")
    paths = {name: os.path.join(folder, name) for name in ("counted", "fixed", "suid", "musl_child")}
    for name, options in (("counted", []), ("fixed", ["-static"]), ("suid", [])):
        run("gcc", *options, "-o", paths[name], source)
    wanted = {paths["fixed"] + " (3 times)": "it is static; link it with libprofd-collect.a",
              paths["counted"]: "it is started without the variable LD_PRELOAD"}
    script = ("$0/counted; $0/fixed; (exec $0/fixed); env -i $0/counted; $1 -c 'import os; "
              "os.posix_spawn(\"'$0'/fixed\", [\"x\"], os.environ); os.wait()'; "
              "[ ! -e $0/musl_child ] || $0/musl_child; [ ! -u $0/suid ] || $0/suid")
    if shutil.which("musl-gcc"):
        run("musl-gcc", "-o", paths["musl_child"], source)
        wanted[paths["musl_child"]] = "it is linked with musl"
    if os.getuid() == 0:
        os.chown(paths["suid"], 12345, 12345)
        os.chmod(paths["suid"], 0o4755)
        os.mkdir(os.path.join(folder, "root"))
        inside = shutil.copy(paths["fixed"], os.path.join(folder, "root/inside"))
        script += "; chroot $0/root /inside"
        wanted[paths["suid"]] = "it changes its user or group"
        wanted[inside] = "it is started below another root directory"
    done = shop.run("sh", "-c", script, folder, "/usr/bin/python3")
    lines = done.stderr.splitlines()
    tap.point(done.returncode == 0 and len(lines) == 1 + len(wanted)
              and f"at least {2 + len(wanted)} programs were not counted" in lines[0]
              and all(sum(f"run: not counted: {path}: {why}" in line for line in lines) == 1
                      for path, why in wanted.items()),
              f"{len(wanted)} kinds of programs in a tree are listed as not counted", done)
    times = int(re.search(r"at least (\d+) programs", lines[0])[1])
    report = shop.daemon.json("report", os.path.realpath("/bin/sh"), "--json")
    text = shop.daemon.ctl("report", os.path.realpath("/bin/sh")).stdout
    tap.point(report["collector"]["programs_not_counted"] == times
              and "clock" not in report["provenance"]["inexact_reasons"]
              and f"not counted: {times} programs that processes of profctl run started\n" in text,
              "and the report's heading has their number", (times, report["collector"], text[:1500]))
    done = shop.run("sh", "-c", f"{paths['counted']}; {paths['counted']}; ls /nowhere")
    tap.point("profctl" not in done.stderr, "where all is counted, nothing is listed", done)
    done = [shop.run("--check", name) for name in (paths["fixed"], paths["counted"], "nosuchprogram")]
    tap.point([d.returncode for d in done] == [65, 0, 66]
              and done[0].stdout == f"{paths['fixed']} will not be counted: {wanted[paths['fixed'] + ' (3 times)']}\n"
              and done[1].stdout.startswith(f"{paths['counted']} will be counted\n"), "--check says it before", done)


def limited(tap, shop, exe):
    """What the process's own limits forbid is said in a sentence, and the command runs."""
    for words, what in ((("-f", "0"), "ulimit -f"), (("-f", "1000"), "ulimit -f"), (("-n", "4"), "ulimit -n")):
        done = run("bash", "-c", f'ulimit {" ".join(words)}; exec "$@"', "-", PROFCTL, "run", "sh", "-c", "exit 6",
                   env=shop.env)
        tap.point(done.returncode == 6 and done.stderr.count("\n") == 1 and "runs without profiling" in done.stderr
                  and what in done.stderr,
                  f"{' '.join(words)}: one sentence, and the command runs", done)
    for words in (("-f", "2000"), ("-n", "16")):
        shop.forget()
        label = f"limit={words[0][1]}"
        done = run("bash", "-c", f'ulimit {" ".join(words)}; exec "$@"', "-", PROFCTL, "run", "-l", label, exe,
                   "threads", "1", "10", env=shop.env, cwd=shop.bed.folder)
        tap.point(done.returncode == 0 and not done.stderr and not off(shop.truth(), shop.calls(exe, "-l", label)[0]),
                  f"{' '.join(words)}: all is counted", done)
    shop.forget()


def lives(tap, shop, exe):
    p = shop.live(exe, "spin", words=("-l", "service=long"))
    rows = wait_until(lambda: [r for r in shop.processes("-l", "service=long") if r["calls"] > 0])
    tap.point(rows and rows[0]["pid"] == int(shop.child) and rows[0]["state"] == "counting" and rows[0]["name"] == exe,
              "ps lists a process while it counts", rows)
    text = shop.daemon.ctl("ps", shop.child).stdout.splitlines()
    line = rf" *{shop.child} steady +\S+ +[\d:-]+ +\d+ +\d+ +\S+ +(-|<?\d[\d.]*%) counting +(yes|no) +service=long"
    tap.point(len(text) == 2 and re.match(line, text[1]), "as a table", text)
    tap.point("No live process matches" in shop.daemon.ctl("ps", "-l", "service=none").stdout,
              "or says that there is none")
    tap.point(wait_until(lambda: shop.calls(exe)[0].get("leaf", 0) > 0),
              "and reports have its counts, by name, though it never ends")
    done = shop.daemon.ctl("pause", "service=long")
    tap.point(done.returncode == 0 and done.stdout == f"paused {shop.child} steady\n", "pause names it", done)

    def sees(state):
        return wait_until(lambda: [r for r in shop.processes() if r["pid"] == int(shop.child) and r["state"] == state],
                          LONG)
    tap.point(sees("paused"), "ps says so")

    def still():
        """Its counts, if they are the same as at the harvest before, while it went on calling."""
        first, made = shop.processes(shop.child)[0], sum(shop.truth().values())
        wait_until(lambda: sum(shop.truth().values()) > made + 100000)
        last = wait_until(lambda: (r := shop.processes(shop.child)[0])["harvested"] > first["harvested"] and r, 5)
        return (first["calls"] == (last or first)["calls"] and first["ticks"] == (last or first)["ticks"]
                and (last or first)["calls"])
    stood = wait_until(still)
    tap.point(stood, "its counts stand still", shop.processes(shop.child))
    done = shop.daemon.ctl("pause", "--off", shop.child, "--rate", "9")
    tap.point(done.stdout == f"counting {shop.child} steady\n" and not done.stderr and
              wait_until(lambda: shop.processes(shop.child)[0]["calls"] > stood), "pause --off: they go on",
              (done, shop.processes(shop.child)))
    instance = shop.processes(shop.child)[0]["instance"]
    done = shop.daemon.ctl("pause", instance[:8], "--json")
    tap.point(done.returncode == 0 and json.loads(done.stdout)["rows"][0]["instance"] == instance,
              "an instance's first characters name it; --json is the daemon's", done)
    done = shop.daemon.ctl("pause", "--off", instance[:8], "--rate", "500")
    tap.point(done.returncode == 0 and "99" in done.stderr, "a rate above that of the start: it says what can be had",
              done)
    shop.daemon.stop(signal.SIGKILL)
    shop.daemon.start()
    tap.point(wait_until(lambda: [r for r in shop.processes() if r["instance"] == instance and r["state"]
                                  == "counting"]), "a daemon that was killed and started again finds it")
    os.kill(int(shop.child), signal.SIGKILL)
    tap.point(p.wait(LONG) == 128 + 9, "profctl run outlives the daemon that it began with")
    p.stdout.close()
    tap.point(wait_until(lambda: not [r for r in shop.processes() if r["instance"] == instance and r["state"]
                                      != "ended"]), "at its end it leaves the list", shop.processes())
    shop.forget()


def exact_over_restarts(tap, shop, exe):
    """The daemon killed again and again while a process counts: in the end the sum is the program's own, but for calls
    in flight."""
    p = shop.live(exe, "forever", "2", words=("-l", "service=restarts"))
    for how in (signal.SIGKILL, signal.SIGTERM):
        wait_until(lambda: [r for r in shop.processes() if r["pid"] == int(shop.child) and r["calls"] > 0])
        shop.daemon.stop(how)
        shop.daemon.start()
    wait_until(lambda: [r for r in shop.processes() if r["pid"] == int(shop.child)])
    os.kill(int(shop.child), signal.SIGKILL)
    p.wait(LONG)
    p.stdout.close()
    truth = shop.truth()
    calls, _ = shop.calls(exe, "-l", "service=restarts")
    missing = {f: truth[f] - calls.get(f, 0) for f in ("leaf", "middle", "outer") if truth[f] != calls.get(f, 0)}
    tap.point(sum(abs(n) for n in missing.values()) <= 3 and truth["leaf"] > 1000000,
              "restarts of the daemon under a process of three threads: only the call in flight of each may be on one "
              "side alone", (missing, truth))
    shop.forget()


def own_signal(tap, shop):
    exe = shop.bed.build("odd.c", "-pg")
    done = shop.run(exe, "sigprof")
    calls, exact = shop.calls(exe)
    origin = shop.daemon.json("report", exe, "--json")["provenance"]
    tap.point(done.returncode == 0 and exact is True and not off(shop.truth(), calls) and not origin["ticks_exact"]
              and origin["inexact_reasons"] == ["ticks-lost"],
              "a program that takes SIGPROF itself loses ticks, and its calls are exact", (done, exact, origin))
    done = shop.run("--rate", "10000", "true")
    tap.point(done.returncode == 0 and "samples a second" in done.stderr and done.stderr.count("\n") == 1,
              "a rate that no kernel delivers: it says so", done)
    shop.forget()


def filtered(tap, shop):
    """A filter that the collector does not see being installed: the daemon does, and says so before it ends. It comes
    when the daemon has all executables of the process: a tick that is asked for one makes system calls."""
    exe = shop.bed.build("filtered.c", "-pg")
    p = shop.live(exe, "raw", "live")
    pid = int(shop.child)

    def harvest_after(moment):
        return wait_until(lambda: [r for r in shop.processes() if r["pid"] == pid and r["harvested"] > moment])
    wait_until(lambda: shop.calls(exe)[0].get("middle"))
    moment = ""
    for _ in range(3):
        moment = harvest_after(moment)[0]["harvested"]
    os.kill(pid, signal.SIGUSR1)
    wait_until(lambda: "Seccomp:\t2" in open(f"/proc/{pid}/status").read())
    for _ in range(3):
        moment = harvest_after(moment)[0]["harvested"]
    shop.daemon.stop(signal.SIGKILL)
    time.sleep(4)  # so long that ticks would look for a daemon
    os.kill(pid, signal.SIGUSR1)
    said = p.communicate(timeout=LONG)[0]
    tap.point((p.returncode, said) == (0, b"good\n"), "a filter that kills: no system call while the daemon is away, "
              "and none at the end", (p.returncode, said))
    shop.daemon.start()
    shop.forget()


def names_on_ticks(tap, shop):
    """Without profctl run: the daemon asks the live process, which answers on its ticks; a short one at its end."""
    source = os.path.join(shop.bed.folder, "own.c")
    with open(source, "w") as f:
        f.write("__attribute__((noinline)) void own_work(void) { __asm__ volatile(\"\"); }\n"
                "int main(int n, char **v) { (void)v; for (long i = 0; n > 1 || i < 100000000; i++) own_work(); return "
                "0; }\n")
    for name, arguments in (("endless", ["x"]), ("brief", [])):
        exe = shop.bed.build(source, "-pg", "-DNAME=" + name, f"-Wl,--defsym={name}=0", name=name)
        p = subprocess.Popen([exe, *arguments], env=dict(shop.env, LD_PRELOAD=COLLECT), cwd=shop.bed.folder)

        def named():
            return shop.calls(exe)[0].get("own_work")
        if arguments:
            tap.point(wait_until(named), "a live process is asked for its executable and sends it",
                      shop.daemon.ctl("builds", "--all").stdout)
            p.kill()
            p.wait()
        else:
            p.wait(LONG)
            tap.point(wait_until(lambda: named() == 100000000),
                      "one that ends soon has sent it by then, and every call is there",
                      shop.daemon.ctl("builds", "--all").stdout)


def late(tap, shop, exe):
    shop.daemon.stop()
    p = subprocess.Popen([exe, "exit"], env=dict(shop.env, LD_PRELOAD=COLLECT, PROFD_LABEL_service="late"),
                         cwd=shop.bed.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdout.readline()
    shop.daemon.start()
    p.stdin.close()
    p.wait(LONG)
    p.stdout.close()
    tap.point(wait_until(lambda: shop.calls(exe, "-l", "service=late")[0].get("leaf") == 1500),
              "a process that began before the daemon is there when it has ended",
              shop.calls(exe, "-l", "service=late"))
    shop.forget()


REFUSED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from wire import Wire
w = Wire(os.environ["PROFD_SOCKET"])
w.send("ATTACH", b"", 1, fds=[os.open("/dev/null", os.O_RDONLY)])
sys.exit(w.take()[0] != "NACK")
"""


def vouches(tap, shop, exe):
    """"All counts are stored" is said only if no process of the command can have been missed."""
    go, on = (os.path.join(shop.bed.folder, name) for name in ("first.done", "daemon.back"))
    command = f"{exe} threads 1 10; touch {go}; until [ -e {on} ]; do sleep 0.05; done; {exe} threads 1 10"
    p = subprocess.Popen([PROFCTL, "run", "-v", "sh", "-c", command], env=shop.env, cwd=shop.bed.folder,
                         stderr=subprocess.PIPE, text=True)
    wait_until(lambda: os.path.exists(go))
    shop.daemon.stop(signal.SIGKILL)
    lost = run(exe, "threads", "1", "10", env=dict(shop.env, LD_PRELOAD=COLLECT), cwd=shop.bed.folder)
    shop.daemon.start()
    open(on, "w").close()
    said = p.communicate(timeout=LONG)[1]
    tap.point(lost.returncode == 0 and "run: it is unknown whether all counts" in said and "restarted" in said
              and said.count("\n") == 1,
              "the daemon was away for a while: run says that it does not know", said)
    script = os.path.join(shop.bed.folder, "refused.py")
    open(script, "w").write(REFUSED)
    done = shop.run(sys.executable, script, os.path.join(ROOT, "tests", "integration"))
    tap.point(done.returncode == 0 and "it is unknown" in done.stderr and "refused 1 process" in done.stderr
              and done.stderr.count("\n") == 1, "a process was refused: so, too, and without -v", done)
    done = shop.run("-v", exe, "threads", "1", "10")
    tap.point(done.returncode == 0 and done.stderr.startswith("profctl: run: all counts are stored by profd"),
              "the next command is not blamed for it", done)
    shop.forget()


def rooted_elsewhere(tap, shop, exe):
    if os.getuid() != 0:
        return tap.skip("in a root folder of its own", "needs root")
    done = shop.run("-l", "service=root", exe, "chroot")
    calls, exact = shop.calls(exe, "-l", "service=root")
    tap.point(done.returncode == 3 and exact is True and not off(shop.truth(), calls),
              "a process that changes its root folder, and its user, is counted to its end",
              (done, exact, off(shop.truth(), calls)))
    shop.forget()
    return True


def installed(tap, shop):
    if b"__asan_init" in open(PROFCTL, "rb").read():
        return tap.skip("the installed library", "make install would link again, without the sanitizer")
    root = os.path.join(shop.bed.folder, "root")
    done = run("make", "-s", "-C", ROOT, "install-collect", f"B={BUILD}", f"DESTDIR={root}", "prefix=/usr", timeout=300)
    tap.point(done.returncode == 0, "make install-collect", done.stderr[-500:])
    os.makedirs(os.path.join(root, "usr/bin"), exist_ok=True)
    os.link(PROFCTL, os.path.join(root, "usr/bin/profctl")) if os.stat(PROFCTL).st_dev == os.stat(root).st_dev else run(
            "cp", PROFCTL, os.path.join(root, "usr/bin/profctl"))
    done = run(os.path.join(root, "usr/bin/profctl"), "run", "sh", "-c", "echo $LD_PRELOAD", env=shop.env)
    tap.point(done.returncode == 0 and os.path.realpath(done.stdout.strip()).startswith(os.path.realpath(root)
            + "/usr/lib/libprofd-collect.so.0"), "an installed profctl finds the library", done)
    pc = open(os.path.join(root, "usr/lib/pkgconfig/libprofd-collect.pc")).read()
    return tap.point("-lprofd-collect" in pc and "@" not in pc
                     and os.path.exists(os.path.join(root, "usr/lib/libprofd-collect.a")),
                     "with the archive, and what pkg-config wants", pc)


def main():
    with Tap() as tap, Bed(harvester=False) as bed, Daemon("--harvest-interval", "1s") as daemon:
        shop = Shop(daemon, bed)
        exe, steady = bed.build("truth.c", "-pg", "-rdynamic"), bed.build("steady.c", "-pg")
        commands(tap, shop, exe)
        bad_labels(tap, shop, exe)
        refusals(tap, shop)
        many(tap, shop)
        environment(tap, shop, exe)
        lives(tap, shop, steady)
        other_libraries(tap, shop)
        sanitized(tap, shop)
        uncounted(tap, shop)
        limited(tap, shop, exe)
        exact_over_restarts(tap, shop, exe)
        own_signal(tap, shop)
        filtered(tap, shop)
        names_on_ticks(tap, shop)
        late(tap, shop, steady)
        vouches(tap, shop, exe)
        rooted_elsewhere(tap, shop, steady)
        installed(tap, shop)


main()
