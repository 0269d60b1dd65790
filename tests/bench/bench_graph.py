"""Large graphs: `profctl gprof` beside gprof on the same files in the same run, text to a pipe; and the same graphs as
JSON from the store. Medians of ROUNDS runs, gprof once. BENCH_SMALL=1 leaves the largest graph out."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import shapes  # noqa: E402
from harness import PROFCTL, Daemon  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "5"))
PATIENCE = 120  # seconds that gprof gets
SMALL = os.environ.get("BENCH_SMALL", "") not in ("", "0")
ENTRY = b"-" * 47 + b"\n"


class Run:
    """A command whose output goes through a pipe to us: seconds, bytes of output, MiB of memory at most, and how it
    ended."""

    def __init__(self, *command, patience=PATIENCE, entries=0, cwd=None):
        began = time.perf_counter()
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env=dict(os.environ, LC_ALL="C"), cwd=cwd,
                             preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        signal.signal(signal.SIGALRM, lambda *_: p.kill())
        signal.alarm(patience)
        self.bytes = left = 0
        while data := os.read(p.stdout.fileno(), 1 << 20):
            self.bytes += len(data)
            left += data.count(ENTRY) if entries else 0
            if entries and left >= entries:
                break
        p.stdout.close()
        _, status, usage = os.wait4(p.pid, 0)
        late = signal.alarm(0) == 0
        p.returncode = os.waitstatus_to_exitcode(status)
        self.seconds, self.memory, self.status = time.perf_counter() - began, usage.ru_maxrss / 1024, p.returncode
        stopped = entries and p.returncode == -signal.SIGPIPE
        self.words = (f"> {patience} s" if late and p.returncode == -signal.SIGKILL else "" if p.returncode == 0
                      or stopped else
                      signal.Signals(-p.returncode).name if p.returncode < 0 else f"exit {p.returncode}")


def median(action):
    runs = [action() for _ in range(ROUNDS)]
    runs.sort(key=lambda r: r.seconds)
    middle = runs[len(runs) // 2]
    middle.memory = max(r.memory for r in runs)
    return middle


def line(what, theirs, ours, note=""):
    peer = "–" if theirs is None else theirs.words or f"{theirs.seconds:.3f} s"
    ratio = (f"{theirs.seconds / ours.seconds:.1f} ×" if theirs is not None and not theirs.words and not ours.words
             else "–")
    mine = ours.words or f"{ours.seconds:.4f} s"
    print(f"{what:<66} {peer:>11} {mine:>11} {ratio:>10}  {ours.memory:.0f} MiB{', ' + note if note else ''}",
          flush=True)


def made(make):
    """Does it in a process of its own: a child's memory at most counts that of the process it was forked from."""
    pid = os.fork()
    if pid == 0:
        try:
            make()
        except BaseException as error:  # the child may not go on as if it were us
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def local(folder, name, functions, shape, patience):
    """One row: the whole listing. Returns the executable and the file."""
    exe, gmon = os.path.join(folder, f"shape{functions}"), os.path.join(folder, "graph.gmon")
    made(lambda: shapes.profile(gmon, functions, *shape()) and shapes.executable(folder, functions))
    theirs = Run("gprof", "-b", exe, gmon, patience=patience)
    ours = median(lambda: Run(PROFCTL, "gprof", "-b", exe, gmon))
    line(f"{name}: all text", theirs, ours, f"{ours.bytes / 1e6:.0f} MB of text")
    return exe, gmon


def stored(name, exe, *gmons):
    """One row: JSON of the 200 functions of most time, cold from the store, a daemon for each."""
    with Daemon() as d:
        os.environ.update(PROFD_SOCKET=d.socket)
        sent = d.ctl("upload", "-e", exe, *gmons, timeout=300)
        assert sent.returncode == 0, sent.stderr
        ours = median(lambda: Run(PROFCTL, "report", exe, "--json", "--limit", "200"))
        with open(f"/proc/{d.process.pid}/status") as f:
            ours.memory = next(int(l.split()[1]) for l in f if l.startswith("VmHWM")) / 1024
        if ours.words:
            ours.words = (d.ctl("report", exe, "--json", "--limit", "200", timeout=300).stderr.split(": ",
                    1)[-1].strip() or ours.words)
        line(f"{name}: JSON from the store, top 200", None, ours, "of the daemon")


def files_summed(folder):
    """gprof -s of a thousand small files."""
    import graphs
    exe, first = graphs.executable(folder, 3600)
    files = [graphs.lua_sized(os.path.join(folder, f"lua{n}.gmon"), exe, first, 3600, seed=n % 20) for n in range(1000)]
    theirs = Run("gprof", "-s", exe, *files, cwd=folder)
    ours = median(lambda: Run(PROFCTL, "gprof", "-s", exe, *files, cwd=folder))
    line("1,000 files of a busy interpreter summed (-s)", theirs, ours)
    for f in files:
        os.unlink(f)


def largest(folder):
    """gprof has no answer in any time. What a user looks at are the first entries: profctl gprof -q … | head."""
    name, functions = "1,000,000 functions, 10,000,000 arcs", 1000000
    exe, gmon = os.path.join(folder, f"shape{functions}"), os.path.join(folder, "graph.gmon")
    parts = [os.path.join(folder, f"part{i}.gmon") for i in range(3)]

    def make():
        shapes.executable(folder, functions)
        callers, callees, calls, ticks = shapes.layered(functions, 10000000)
        shapes.profile(gmon, functions, callers, callees, calls, ticks)
        for i, part in enumerate(parts):  # an upload has an end
            some = slice(i * 3400000, (i + 1) * 3400000)
            shapes.profile(part, functions, callers[some], callees[some], calls[some],
                           ticks if i == 0 else [0] * functions)
    made(make)
    theirs = Run("gprof", "-b", "-q", exe, gmon, patience=20, entries=200)
    line(f"{name}: first 200 entries (| head)", theirs, median(lambda: Run(PROFCTL, "gprof", "-b", "-q", exe, gmon,
            entries=200)))
    line(f"{name}: flat profile, all lines", None, median(lambda: Run(PROFCTL, "gprof", "-b", "-p", exe, gmon)))
    stored(name, exe, *parts)


def main():
    folder = tempfile.mkdtemp(prefix="profd-bench-")
    print(f"\n{'large graphs (memory: of ours at most)':<66} {'gprof':>11} {'profd':>11} {'ratio':>10}", flush=True)
    try:
        for name, functions, shape, patience in (
                ("20,000 functions, 160,000 arcs, one cycle", 20000, lambda: shapes.giant_cycle(20000, 160000),
                 PATIENCE),
                ("80,000 functions, 320,000 arcs, no DWARF", 80000, lambda: shapes.layered(80000, 320000), PATIENCE),
                ("fan-in of 40,000", 40000, lambda: shapes.fan_in(40000), PATIENCE),
                ("fan-out of 40,000", 40000, lambda: shapes.fan_out(40000), PATIENCE),
                ("a chain of 400,000 calls", 400000, lambda: shapes.chain(400000), 60),
                ("400,000 functions, 2,000,000 arcs", 400000, lambda: shapes.layered(400000, 2000000), 20)):
            exe, gmon = local(folder, name, functions, shape, patience)
            stored(name, exe, gmon)
        files_summed(folder)
        if not SMALL:
            largest(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
