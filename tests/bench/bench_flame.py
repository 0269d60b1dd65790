"""Flame graphs of Pyroscope's query API, and the report of the same data: 20,000 functions, each question with a window
that no answer of before can serve. Processor time of the daemon: its first question, and the median of ROUNDS more.

PROFDS=PROFD… asks these daemons in turn instead of the build's, and compares their answers."""
import contextlib
import os
import shutil
import statistics
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
import harness  # noqa: E402
import shapes  # noqa: E402
import stack_tree  # noqa: E402
from harness import Daemon, post  # noqa: E402
from wire import field  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "11"))
PROFDS = os.environ.get("PROFDS", harness.PROFD).split()
FUNCTIONS, ARCS, NODES = 20000, 160000, 60000
CPU, METHOD = "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "/querier.v1.QuerierService/SelectMergeStacktraces"


def spent(pid):
    """Seconds of processor time that all threads of a process have used."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def faults(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rpartition(")")[2].split()[7])


def flame(d, build, number):
    """As Grafana asks: Connect with protobuf."""
    body = field(1, CPU) + field(2, "{}") + field(3, 1 + number) + field(4, 4 * 10**12) + field(5, 16384)
    return post(d.http, METHOD, body, kind="application/proto", Connect_Protocol_Version=1)


def report(d, build, number):
    return d.get(f"/api/v1/builds/{build}/report?limit=200&since={1 + number}")


def measured(d, ask, build, number):
    """(seconds of the processor, page faults, answer)."""
    before = spent(d.process.pid), faults(d.process.pid)
    status, _, answer = ask(d, build, number)
    assert status == 200, answer
    # What a question leaves to free ends with the answer or just behind it.
    d.get("/api/v1/status")
    return spent(d.process.pid) - before[0], faults(d.process.pid) - before[1], answer


def graph(shape):
    def send(d):
        exe = shapes.executable(d.folder, FUNCTIONS)
        gmon = shapes.profile(os.path.join(d.folder, "gmon.out"), FUNCTIONS, *shape(FUNCTIONS, ARCS))
        sent = d.ctl("upload", "-e", exe, gmon, timeout=300)
        assert sent.returncode == 0, sent.stderr
        return d.json("report", exe, "--json", "--limit", "1")["build_id"]
    return send


def stacks(arcs):
    def send(d):
        exe, build, first = stack_tree.executable(d.folder, FUNCTIONS)
        assert d.ctl("symbols", exe).returncode == 0
        callers, callees, calls, _ = shapes.layered(FUNCTIONS, arcs)
        made = sorted({(first + stack_tree.SIZE * v + stack_tree.RETURN, first + stack_tree.SIZE * w): n
                       for v, w, n in zip(callers, callees, calls)}.items())
        stack_tree.send(d.socket, exe, build, first, FUNCTIONS, NODES, [(*ends, n) for ends, n in made])
        return build
    return send


def copies(d):
    """A daemon of each program on a copy of the database."""
    out = []
    for program in PROFDS:
        out.append(Daemon(start=False))
        out[-1].program = program
        shutil.copytree(d.state, out[-1].state)
        out[-1].start()
    return out


def compared(title, d, build):
    """Asks all programs each question in turn, and prints a line for each."""
    for what, ask in (("flame graph of 16,384 nodes", flame), ("report, top 200", report)):
        with contextlib.ExitStack() as daemons:
            asked = [daemons.enter_context(daemon) for daemon in copies(d)]
            rounds = [[measured(daemon, ask, build, number) for daemon in asked] for number in range(ROUNDS + 1)]
        same = all(answer == of_one[0][2] for of_one in rounds for _, _, answer in of_one)
        for program, first, more in zip(PROFDS, rounds[0], zip(*rounds[1:])):
            name = f"{title}: {what}"
            print(f"{name:<66}           – {statistics.median(m[0] for m in more):9.4f} s  of the daemon's CPU, "
                  f"{statistics.median(m[1] for m in more):,.0f} page faults; first question {first[0]:.3f} s; "
                  f"{len(first[2]):,} bytes{'' if len(PROFDS) == 1 else ' ' + program}"
                  f"{'' if same else ' THE ANSWERS DIFFER'}", flush=True)


def main():
    for name, send in ((f"{ARCS:,} arcs, one cycle", graph(shapes.giant_cycle)),
                       (f"{ARCS:,} arcs downwards", graph(shapes.layered)),
                       (f"{NODES:,} frames of stacks", stacks(0)),
                       (f"{NODES:,} frames, {ARCS:,} arcs", stacks(ARCS))):
        with Daemon() as d:
            build = send(d)
            d.stop()
            compared(f"{FUNCTIONS:,} functions, {name}", d, build)


if __name__ == "__main__":
    main()
