"""profctl record: programs whose call paths are known, storms of processes, threads, users without rights. Every sample
is accounted for, and no function gets a parent that never called it."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile

from harness import AS_NOBODY, NOBODY, PROFCTL, Daemon, Tap, as_user, perf_lock, readable_copy, record_lock, run
from harness import until
from record_bed import account, adds_up, stored
from wire import Wire, field, sender_number, upload

# Two paths with 1 and 3 parts of the work; as many threads as asked; as many processes as asked, each of one round. A
# round is a thousand times both paths: in pieces that are far shorter than the time between ticks, whose beat with the
# ticks would be seen in the shares.
PATHS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) void work(unsigned long n)
{
    for (unsigned long i = 0; i < n * 1000; i++) {
        sink += i;
    }
    __asm__ volatile("");
}
__attribute__((noinline)) void cheap(void) { work(1); __asm__ volatile(""); }
__attribute__((noinline)) void dear(void) { work(3); __asm__ volatile(""); }
static void *body(void *rounds)
{
    for (long i = 0; i < 1000 * (long)rounds; i++) {
        cheap();
        dear();
    }
    return NULL;
}
int main(int argc, char **argv)
{
    long rounds = atol(argv[1]), threads = atol(argv[2]), processes = atol(argv[3]);
    pthread_t all[64];
    for (long i = 0; i < threads; i++) {
        pthread_create(&all[i], NULL, body, (void *)rounds);
    }
    for (long i = 0; i < threads; i++) {
        pthread_join(all[i], NULL);
    }
    for (long i = 0; i < processes; i++) {
        if (fork() == 0) {
            body((void *)rounds);
            _exit(0);
        }
        wait(NULL);
    }
    if (!threads && !processes) {
        body((void *)rounds);
    }
    return 3;
}
"""


def seconds(a):
    """The time of all ticks that are stored."""
    return (a["functions"] + a["kernel"]) / 499


def sampled(a):
    """More than 100 samples of a program that ran for 300; lost ones may be its own."""
    return a["functions"] > 0 and a["functions"] + a["lost"] > 100


def build_paths(folder, name="paths"):
    """Each with a build-id that no other process on this host has."""
    source, program = os.path.join(folder, f"{name}.c"), os.path.join(folder, name)
    with open(source, "w", encoding="utf-8") as f:
        f.write(PATHS)
    done = run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread",
               f"-Wl,--build-id=0x{os.urandom(20).hex()}", "-o", program, source)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return program


def busiest(r):
    """The function with the most time of its own."""
    return max(r["functions"], key=lambda f: f["self_seconds"])


def record(d, *arguments, **options):
    return d.ctl("record", "--verbose", "--rate", "499", *arguments, **options)


@contextlib.contextmanager
def recorded(*arguments):
    """A daemon with what was recorded of a command, and what record said. On a machine that gives record no CPU time
    for longer than its memory for samples lasts, the kernel loses some, of whatever program: then once more."""
    for left in range(9, -1, -1):
        with Daemon() as d:
            done = record(d, *arguments)
            if left == 0 or account(done.stderr).get("lost") == 0:
                yield d, done
                return


# Callers that each function may have; above these stand the callers in libc, or nothing.
CALLERS = {"work": {"cheap", "dear"}, "cheap": {"body", "main"}, "dear": {"body", "main"}}


def paths(tap, what, r):
    """No invented caller; the time along the two arcs is 1 to 3."""
    rows = {f["name"]: {c["name"]: c for c in f.get("callers", ())} for f in r["functions"] if f["name"] in CALLERS}
    wrong = {n: set(c) - CALLERS[n] for n, c in rows.items() if set(c) - CALLERS[n] - {"[incomplete]"}}
    tap.point(set(rows) == set(CALLERS) and not wrong, f"{what}: no function has a caller that never called it", wrong)
    one, three = (rows["work"].get(n, {}).get("measured_total", 0) for n in ("cheap", "dear"))
    low, high = (rows["work"].get("dear", {}).get(f"measured_{n}", 0) for n in ("low", "high"))
    expected, width = 0.75 * (one + three), high - low
    tap.point(one + three > 0 and low - width <= expected <= high + width,
              f"{what}: time along arcs is measured: {one:.3f} s and {three:.3f} s", rows["work"])


LEAF = r"""
static volatile double sink;
__attribute__((noinline)) static void work(long n) { for (long i = 0; i < n; i++) sink += i * 0.5; }
__attribute__((noinline)) void cheap(void) { work(3000); }
__attribute__((noinline)) void dear(void) { work(9000); }
int main(void) { for (int i = 0; i < 40000; i++) { cheap(); dear(); } }
"""


def leaf(tap, folder):
    """A leaf that keeps no frame pointer, called by tail calls: the chain of frame pointers skips main, and neither
    cheap nor dear is on the stack."""
    source, program = os.path.join(folder, "leaf.c"), os.path.join(folder, "leaf")
    with open(source, "w", encoding="utf-8") as f:
        f.write(LEAF)
    done = run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", f"-Wl,--build-id=0x{os.urandom(20).hex()}", "-o", program,
               source)
    tap.point(done.returncode == 0, "a program whose leaf keeps no frame pointer", done.stderr)
    with Daemon() as d:
        record(d, "--", program)
        r, _ = stored(d, program)
        rows = {f["name"]: f for f in r["functions"]}
        callers = {c["name"]: c["measured_total"] for c in rows["work"]["callers"]}
        tap.point(set(callers) <= {"cheap", "dear", "[incomplete]"} and
                  0.6 < callers.get("dear", 0) / r["totals"]["seconds"] < 0.9,
                  "callers that frame pointers skip are found", callers)
        tap.point(r["stacks"]["inferred"] > 0.9 * r["stacks"]["count"], "functions that the call names are inferred",
                  r["stacks"])


def commands(tap, program):
    with recorded("--", program, "300", "0", "0") as (d, done):
        a = account(done.stderr)
        tap.point(done.returncode == 3, "the exit status is that of the command", (done.returncode, done.stderr))
        tap.point(adds_up(a) and a["functions"] > 50, "every sample of a command is accounted for", done.stderr)
        tap.point(a["lost"] == 0, "none is lost", done.stderr)
        r, row = stored(d, program)
        total = r["totals"]
        tap.point(busiest(r)["name"] == "work" and busiest(r)["self_seconds"] > 0.9 * a["functions"] / 499,
                  "the time is in the function that works", r["functions"][:2])
        tap.point(abs(total["seconds"] - seconds(a)) < 1e-9, "the report has every tick", (total, a))
        tap.point(row["processes_started"] == 1, "one process is counted", row)
        known = r["provenance"]
        tap.point(known["inexact_reasons"] == ["sampled"] and known["ticks_exact"] and not known["calls_exact"],
                  "calls that nobody counted are not called exact", known)
        text, listed = d.ctl("report", program).stdout, d.ctl("builds").stdout
        tap.point("Exact     no: sampled (ticks are exact, calls are not)" in text and
                  ", calls were not counted\n" in text and " 0 calls" not in text, "the report says so", text[:1500])
        tap.point(any(line.split()[5] == "-" for line in listed.splitlines() if line.startswith("paths")),
                  "and so does the list of builds", listed)
        paths(tap, "a command", r)
        for how, status in (("exit 5", 5), ("kill -TERM $$", 143)):
            done = d.ctl("record", "sh", "-c", how)
            tap.point(done.returncode == status, f"sh -c '{how}': exit status {status}", (done.returncode, done.stderr))
        done = d.ctl("record", "-l", "version=1.2", "-l", "comm=mine", "--rate", "499", "--", program, "99", "0", "0")
        own = d.json("report", program, "-l", "version=1.2", "-l", "comm=mine", "--json")
        tap.point(done.returncode == 3 and busiest(own)["name"] == "work", "labels are attached, and go before its own",
                  done.stderr)
        for bad in ("version", "__x=1"):
            done = d.ctl("record", "-l", bad, "--", program)
            tap.point(done.returncode == 64 and f"record: -l {bad}" in done.stderr, f"-l {bad} is refused", done.stderr)
        done = d.ctl("record", "--", "/nonexistent/program")
        tap.point(done.returncode == 127 and "No such file" in done.stderr, "a command that does not exist: 127",
                  done.stderr)


def threads(tap, program):
    with Daemon() as d:
        done = record(d, "--", program, "20", "16", "0")
        a = account(done.stderr)
        r, row = stored(d, program)
        tap.point(adds_up(a) and a["functions"] > 50, "16 threads: every sample is accounted for", done.stderr)
        tap.point(row["processes_started"] == 1 and abs(r["totals"]["seconds"] - seconds(a)) < 1e-9,
                  "16 threads are one process", (row, a))
        paths(tap, "16 threads", r)


def storm(tap, program):
    with Daemon() as d:
        done = record(d, "--", program, "1", "0", "200")
        a = account(done.stderr)
        r, row = stored(d, program)
        tap.point(adds_up(a) and a["functions"] > 50, "200 short processes: every sample is accounted for",
                  done.stderr)
        paths(tap, "200 short processes", r)
        tap.point(1 < row["processes_started"] <= 201, "each process with a sample is counted once", row)
        tap.point(abs(r["totals"]["seconds"] - seconds(a)) < 1e-9, "their ticks are in one program",
                  (r["totals"], a))
        done = record(d, "--", "sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done")
        a = account(done.stderr)
        tap.point(done.returncode == 0 and adds_up(a), "300 programs, one after the other: accounted for", done.stderr)


def process(tap, program):
    with Daemon() as d:
        victim = subprocess.Popen([program, "100000", "0", "0"])
        sampling = subprocess.Popen([PROFCTL, "record", "--verbose", "--rate", "499", "-p", str(victim.pid)], env=d.env,
                                    stderr=subprocess.PIPE, text=True)
        until(lambda: os.path.exists(f"/proc/{sampling.pid}/fd/8"))
        before = cpu_ticks(victim.pid)
        until(lambda: cpu_ticks(victim.pid) > before + 60)
        sampling.send_signal(signal.SIGINT)
        said = sampling.communicate()[1]
        a = account(said)
        tap.point(sampling.returncode == 0 and adds_up(a) and sampled(a), "-p: until Ctrl-C", said)
        r, row = stored(d, program)
        tap.point(r and busiest(r)["name"] == "work" and row["processes_started"] == 1,
                  "-p: what it did is stored", row)
        c = r["collector"]
        slack = 5 * (c["cpu_seconds"] * 499) ** 0.5 + 20
        tap.point(c["processes"] == c["processes_recorded"] == 1 and c["unclocked_seconds"] == 0 and
                  -slack < c["cpu_seconds"] * 499 - a["functions"] - a["kernel"] < slack + a["lost"] and
                  c["coverage"] is not None and c["overhead"] is None,
                  "-p: its CPU time is known, and what share of it the ticks cover", (c, said))
        sampling = subprocess.Popen([PROFCTL, "record", "-p", str(victim.pid)], env=d.env, stderr=subprocess.PIPE,
                                    text=True)
        until(lambda: os.path.exists(f"/proc/{sampling.pid}/fd/8"))
        before = cpu_ticks(victim.pid)
        until(lambda: cpu_ticks(victim.pid) > before + 30)
        victim.kill()
        victim.wait()
        said = sampling.communicate()[1]
        tap.point(sampling.returncode == 0, "-p: ends with the process", said)
        done = d.ctl("record", "-p", "99999999")
        tap.point(done.returncode != 0 and "process 99999999" in done.stderr, "-p: a process that does not exist",
                  done.stderr)


# Works for 3 s of CPU time, becomes another user, and works for as long again.
BECOMES = r"""
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) static void work(void)
{
    for (clock_t end = clock() + 3 * CLOCKS_PER_SEC; clock() < end;) {
    }
    __asm__ volatile("");
}
__attribute__((noinline)) void before(void) { work(); __asm__ volatile(""); }
__attribute__((noinline)) void after(void) { work(); __asm__ volatile(""); }
int main(void)
{
    before();
    if (setuid(65534) != 0) {
        return 1;
    }
    after();
    return 0;
}
"""


def another_user(tap, folder):
    """A process that becomes another user counts as that one's from then on, but for a second until it is read."""
    source, program = os.path.join(folder, "becomes.c"), os.path.join(folder, "becomes")
    with open(source, "w", encoding="utf-8") as f:
        f.write(BECOMES)
    done = run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-o", program, source)
    tap.point(done.returncode == 0, "a program that becomes another user", done.stderr)
    with Daemon() as d:
        os.chmod(d.socket, 0o666)
        done = record(d, "--", program)
        r, row = stored(d, program)
        client = readable_copy(PROFCTL, d.folder)
        seen = run(*AS_NOBODY, client, "report", program, "--json", env=dict(d.env, PROFD_SPOOL=""))
        tap.point(done.returncode == 0 and seen.returncode == 0 and row["processes_started"] == 1,
                  "a process that becomes another user is one process of both", (done.stderr, seen.stderr, row))
        measured = {f["name"]: f["measured_total"] for f in json.loads(seen.stdout)["functions"]}
        tap.point("before" not in measured and measured.get("after", 0) > 0,
                  "the other user sees what it did from then on", measured)
        both = {f["name"]: f["measured_total"] for f in r["functions"]}
        tap.point(both["before"] > 0 and both["after"] > measured["after"] - 1e-9, "root sees all of it", both)


def lost(tap, program):
    """While record is stopped, its memory for samples becomes full."""
    with Daemon() as d:
        victim = subprocess.Popen([program, "100000", "0", "0"])
        sampling = subprocess.Popen([PROFCTL, "record", "--verbose", "--rate", "10000", "-p", str(victim.pid)],
                                    env=d.env, stderr=subprocess.PIPE, text=True)
        until(lambda: cpu_ticks(sampling.pid) >= 10)  # it reads samples
        sampling.send_signal(signal.SIGSTOP)
        before = cpu_ticks(victim.pid)
        until(lambda: cpu_ticks(victim.pid) > before + 200)
        read = cpu_ticks(sampling.pid)
        sampling.send_signal(signal.SIGCONT)
        until(lambda: cpu_ticks(sampling.pid) > read + 1)  # it has read what is there
        after = cpu_ticks(victim.pid)
        until(lambda: cpu_ticks(victim.pid) > after + 5)  # the kernel says what it lost with the next sample
        sampling.send_signal(signal.SIGINT)
        said = sampling.communicate()[1]
        victim.kill()
        victim.wait()
        a = account(said)
        r, _ = stored(d, program)
        tap.point(adds_up(a) and a["lost"] > 100, "samples that the kernel lost are counted", said)
        tap.point(r["collector"]["samples_lost"] == a["lost"] and "ticks-lost" in r["provenance"]["inexact_reasons"],
                  "they are stored", (r["collector"], said))
        text = d.ctl("report", program).stdout
        tap.point(f"{a['lost']} samples lost by the kernel meanwhile, of this or any other program" in text,
                  "and the report says it", text[:2000])
        tap.point(r["collector"]["coverage"] < 0.95, "the ticks cover less of the CPU time", r["collector"])


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return int(f.read().rpartition(")")[2].split()[11])


def rights(tap, program):
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        level = int(f.read())
    with Daemon() as d:
        os.chmod(d.socket, 0o666)
        client = shutil.copy(PROFCTL, d.folder)
        env = dict(d.env, PROFD_SPOOL="")
        done = run(*AS_NOBODY, client, "record", "-a", env=env)
        tap.point(level < 1 or (done.returncode == 77 and "CAP_PERFMON" in done.stderr and str(level) in done.stderr),
                  "-a without permission: a sentence says what to do", (done.returncode, done.stderr))
        done = run(*AS_NOBODY, client, "record", "--verbose", "--rate", "499", "--", program, "100", "2", "0", env=env)
        a = account(done.stderr)
        if level > 2:
            tap.point(done.returncode == 77, "a command without permission", done.stderr)
            return
        tap.point(done.returncode == 3 and adds_up(a) and a["functions"] > 20, "a user samples a command of its own",
                  done.stderr)
        tap.point((level < 2) != ("time that processes spent in the kernel was not sampled" in done.stderr),
                  "what is hidden is said", done.stderr)


def claim(path, uid):
    """The user in whose name an upload and an executable are sent: what the daemon says of both, and in WELCOME."""
    with Wire(path) as w, open("/proc/self/exe", "rb") as exe:
        w.send("UPLOAD", upload(sender_number(), 1) + field(13, 1) + field(14, uid))
        first = w.take()
        while first[0] == "WANT_OBJECT":
            first = w.take()
        w.send("OBJECT", field(2, "/bin/made-up") + field(3, 1) + field(4, uid), tag=2, fds=(exe.fileno(),))
        second = w.take()
        return w.welcome[3].get(7, 0), *((m[0], m[3].get(1, 0), m[3].get(4, b"").decode()) for m in (first, second))


def claims(tap):
    with Daemon() as d:
        os.chmod(d.socket, 0o666)
        may, first, second = claim(d.socket, NOBODY)
        tap.point(may == 1 and first[0] == "ACK" and second[0] == "ACK", "root sends in the name of another user",
                  (may, first, second))
        client = readable_copy(PROFCTL, d.folder)
        seen = run(*AS_NOBODY, client, "builds", "--json", env=dict(d.env, PROFD_SPOOL=""))
        tap.point([r["name"] for r in json.loads(seen.stdout)["rows"]] == ["/bin/made-up"], "it is that user's",
                  seen.stdout)
        may, first, second = as_user(NOBODY, lambda: claim(d.socket, 0))
        wanted = "user 65534 sends in the name of user 0: only root and the user profd-record may do that"
        tap.point(may == 0 and first == ["NACK", 12, wanted] and second == ["NACK", 12, wanted],
                  "another user does not: one sentence", (may, first, second))
        may, first, second = claim(d.socket, 4294967295)
        tap.point(first[:2] == ("NACK", 12) and "tenants" in first[2], "nor does root in the name of a tenant", first)


def host(tap, program, folder):
    """-a: root's and another user's processes, each under its user, with their names."""
    other = build_paths(folder, "others")
    with Daemon() as d:
        os.chmod(d.socket, 0o666)
        sampling = subprocess.Popen([PROFCTL, "record", "--verbose", "--rate", "499", "-a"], env=d.env,
                                    stderr=subprocess.PIPE, text=True)
        until(lambda: os.path.exists(f"/proc/{sampling.pid}/fd/8"))
        theirs = subprocess.Popen([*AS_NOBODY, other, "500", "0", "0"])  # long enough for its user to be read
        ours = subprocess.Popen([program, "20", "0", "20"])
        short = [run("/bin/true").returncode for _ in range(100)]
        theirs.wait()
        ours.wait()
        sampling.send_signal(signal.SIGTERM)
        said = sampling.communicate()[1]
        a = account(said)
        tap.point(sampling.returncode == 0 and not any(short) and adds_up(a), "-a: every sample is accounted for", said)
        r, row = stored(d, other)
        tap.point(r and busiest(r)["name"] == "work" and row["processes_started"] == 1,
                  "-a: a process that began meanwhile", row)
        r, row = stored(d, program)
        tap.point(r and row["processes_started"] > 1, "-a: processes that it started", row)
        client = readable_copy(PROFCTL, d.folder)
        seen = run(*AS_NOBODY, client, "builds", "--json", env=dict(d.env, PROFD_SPOOL=""))
        names = [r["name"] for r in json.loads(seen.stdout)["rows"]]
        tap.point(other in names and program not in names, "-a: counts are those of the user of the process", names)
        report = run(*AS_NOBODY, client, "report", other, "--json", env=dict(d.env, PROFD_SPOOL=""))
        tap.point(busiest(json.loads(report.stdout))["name"] == "work",
                  "-a: the user's own executable names functions", report.stdout[:300])
        labels = {r["name"]: r for r in d.json("labels", "--json")["rows"]}
        tap.point({"comm", "host"} <= set(labels), "-a: labels", sorted(labels))
        done = d.ctl("report", other, "--json", "-l", "comm=others")
        tap.point(done.returncode == 0 and json.loads(done.stdout)["totals"]["seconds"] > 0, "-a: the name is a label",
                  done.stderr)


# Calls the kernel in a loop, from one function.
CALLS = r"""
#include <fcntl.h>
#include <unistd.h>
__attribute__((noinline)) void call(int fd, char *bytes)
{
    for (int i = 0; i < 3000; i++) {
        (void)!pread(fd, bytes, 1 << 16, 0);
    }
    __asm__ volatile("");
}
int main(void)
{
    static char bytes[1 << 16];
    int fd = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < 100; i++) {
        call(fd, bytes);
    }
    return 0;
}
"""


def kernel(tap, folder):
    source, program = os.path.join(folder, "calls.c"), os.path.join(folder, "calls")
    with open(source, "w", encoding="utf-8") as f:
        f.write(CALLS)
    done = run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-static", "-o", program, source)
    assert done.returncode == 0, done.stderr
    with open("/proc/kallsyms", encoding="utf-8") as f:
        names = {line.split()[2] for line in f}
    with recorded("--kernel", "--", program) as (d, done):
        a = account(done.stderr)
        tap.point(done.returncode == 0 and adds_up(a) and a["kernel"] > 20 and a["lost"] == 0,
                  "--kernel: every sample is accounted for", done.stderr)
        rows = {r["name"]: r for r in d.json("builds", "--all", "--json")["rows"]}
        tap.point("[kernel]" in rows and rows["[kernel]"]["symbols"], "--kernel: the kernel is a build with names",
                  rows.get("[kernel]"))
        r, _ = stored(d, program)
        in_kernel = [f for f in r["functions"] if f["self_seconds"] > 0 and f["name"] in names]
        ticks = sum(f["self_seconds"] for f in in_kernel) * 499
        tap.point(ticks > 0.9 * a["kernel"], "--kernel: its ticks are in functions of the kernel",
                  (ticks, a, [f["name"] for f in r["functions"]][:20]))
        without = record(d, "--", program)
        b = account(without.stderr)
        whole, _ = stored(d, program)
        ticks = [round(f["self_seconds"] * 499) for f in whole["functions"] if f["name"] == "[kernel]"]
        tap.point(adds_up(b) and b["kernel"] > 20 and ticks == [b["kernel"]],
                  "without --kernel its ticks are in one function", (ticks, without.stderr))
        callers = {c["name"] for f in whole["functions"] if f["name"] == "[kernel]" for c in f["callers"]}
        tap.point("pread64" in callers or "__libc_pread64" in callers or "__libc_pread" in callers,
                  "it is below the function that called it", callers)
        user = sum(f["self_seconds"] for f in whole["functions"]
                   if f["name"] != "[kernel]" and f["build_id"] != rows["[kernel]"]["build_id"]) * 499
        tap.point(abs(user - a["functions"] - b["functions"]) < 0.5, "the user's time is apart from it",
                  (user, a, b))


def cgroup(tap, program):
    """--cgroup: processes of the group and no others."""
    mounts = [line.split()[1] for line in open("/proc/mounts", encoding="utf-8") if line.split()[2] == "cgroup2"]
    if not mounts or not os.access(mounts[0], os.W_OK):
        return tap.skip("--cgroup", "no control groups of version 2 that may be changed")
    group = os.path.join(mounts[0], f"profd-test-{os.getpid()}")
    os.mkdir(group)
    inside = outside = sampling = None
    try:
        with Daemon() as d:
            enter = f"echo $$ >{group}/cgroup.procs && exec {program} 100000 0 0"
            inside = subprocess.Popen(["sh", "-c", enter])
            outside = subprocess.Popen([program, "100000", "0", "0"])
            sampling = subprocess.Popen([PROFCTL, "record", "-v", "--rate", "499", "--cgroup", os.path.basename(group)],
                                        env=d.env, stderr=subprocess.PIPE, text=True)
            until(lambda: os.path.exists(f"/proc/{sampling.pid}/fd/8"))
            before = cpu_ticks(inside.pid)
            until(lambda: cpu_ticks(inside.pid) > before + 60)
            sampling.send_signal(signal.SIGINT)
            said = sampling.communicate()[1]
            a = account(said)
            r, row = stored(d, program)
            tap.point(adds_up(a) and sampled(a) and row["processes_started"] == 1,
                      "--cgroup: the processes of the group alone", (said, row))
            labels = d.ctl("report", program, "-l", f"cgroup=/{os.path.basename(group)}", "--json")
            tap.point(labels.returncode == 0, "--cgroup: its path is a label", labels.stderr)
            done = d.ctl("record", "--cgroup", "no/such/group")
            tap.point(done.returncode == 66 and '"no/such/group"' in done.stderr, "--cgroup: one that does not exist",
                      done.stderr)
    finally:
        for p in (inside, outside):
            if p:
                p.kill()
                p.wait()
        until(lambda: not open(f"{group}/cgroup.procs", encoding="utf-8").read())
        os.rmdir(group)


def collected(tap, program):
    with Daemon() as d:
        counting = subprocess.Popen([PROFCTL, "run", "--", program, "100000", "0", "0"], env=d.env)
        until(lambda: any(r["seconds"] for r in d.json("builds", "--json")["rows"]))
        pid = int(d.json("ps", "--json")["rows"][0]["pid"])
        sampling = subprocess.Popen([PROFCTL, "record", "--verbose", "--rate", "499", "-p", str(pid)], env=d.env,
                                    stderr=subprocess.PIPE, text=True)
        until(lambda: os.path.exists(f"/proc/{sampling.pid}/fd/8"))
        before = cpu_ticks(pid)
        until(lambda: cpu_ticks(pid) > before + 30)
        sampling.send_signal(signal.SIGINT)
        said = sampling.communicate()[1]
        a = account(said)
        os.kill(pid, signal.SIGTERM)
        counting.wait()
        tap.point(adds_up(a) and a["elsewhere"] + a["lost"] == a["samples"] and a["elsewhere"] > 10,
                  "a process under the collector counts once", said)


def usage(tap):
    with Daemon() as d:
        for arguments in ((), ("-a", "true"), ("-a", "-p", "1")):
            done = d.ctl("record", *arguments)
            tap.point(done.returncode == 64 and "one of" in done.stderr, f"record {' '.join(arguments)}: refused",
                      done.stderr)
        for option, value in (("--rate", "0"), ("--rate", "10001"), ("--rate", "x"), ("-p", "0")):
            done = d.ctl("record", option, value, *(("-a",) if option == "--rate" else ()))
            tap.point(done.returncode == 64 and f'"{value}"' in done.stderr, f"record {option} {value}: refused",
                      done.stderr)


def without_daemon(tap, program):
    with Daemon(start=False) as d:
        done = record(d, "--", program, "50", "0", "0")
        tap.point(done.returncode == 3 and "in the spool" in done.stderr, "without a daemon: the spool", done.stderr)
        d.start()
        done = record(d, "--", program, "50", "0", "0")
        a = account(done.stderr)
        r, row = stored(d, program)
        tap.point(row["uploads"] == 2 and r["totals"]["seconds"] > a["functions"] / 499,
                  "the next one delivers it, too", row)


def main():
    with Tap() as tap, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = build_paths(folder)
        usage(tap)
        commands(tap, program)
        leaf(tap, folder)
        threads(tap, program)
        storm(tap, program)
        with record_lock():
            process(tap, program)
            lost(tap, program)
        if os.geteuid() == 0:
            another_user(tap, folder)
        with record_lock():
            rights(tap, program)
        without_daemon(tap, program)
        claims(tap)
        with perf_lock():
            host(tap, program, folder)
        with record_lock():
            collected(tap, program)
        kernel(tap, folder)
        with perf_lock():
            cgroup(tap, program)


main()
