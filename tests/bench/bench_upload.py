"""make bench, uploads: how many a second are durable, beside bare SQLite and gprof -s over the same profile; what
10,000 connections of every kind cost; how long an acknowledgement takes while reports are made. BENCH_SECONDS (60) is
the length of the burst; the other rows take a sixth of it each. BENCH_CONNECTIONS (10,000). BENCH_SMALL=1: a tenth of
both."""
import os
import random
import resource
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import BUILD, Daemon, Gmon, bounds, run, symbols  # noqa: E402
from wire import Wire, header, sender_number, upload  # noqa: E402

SMALL = os.environ.get("BENCH_SMALL", "") not in ("", "0")
SECONDS = float(os.environ.get("BENCH_SECONDS", "6" if SMALL else "60"))
SHORT = max(SECONDS / 6, 1)
CONNECTIONS = int(os.environ.get("BENCH_CONNECTIONS", "1000" if SMALL else "10000"))
FUNCTIONS, SIZE, ARCS, BINS = 900, 204, 1149, 60


def metric(d, name):
    """Sum over the labels."""
    return sum(float(l.rsplit(" ", 1)[1]) for l in d.get("/metrics")[2].decode().splitlines()
               if l.startswith((f"profd_{name} ", f"profd_{name}{{")))


def tool(name):
    return os.path.join(BUILD, "tests", name)


def values(text):
    return {k: float(v) for k, _, v in (line.partition(" ") for line in text.splitlines())}


def measured(*command, timeout=300):
    done = run(*command, timeout=timeout)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return values(done.stdout)


def row(what, text):
    print(f"{what:<74} {text}", flush=True)


def executable(folder):
    """A program of the size of a Lua: FUNCTIONS functions of SIZE bytes; the path and the address of the first."""
    path = os.path.join(folder, "interpreter")
    with open(path + ".s", "w") as f:
        f.write(".text\n.globl main\n.type main,@function\nmain: xorl %eax,%eax\nret\n.size main,.-main\n.balign 16\n")
        for i in range(FUNCTIONS):
            f.write(f".globl f{i:04}\n.type f{i:04},@function\nf{i:04}: ret\n.skip {SIZE - 1}, 0x90\n.size "
                    f"f{i:04},.-f{i:04}\n")
        f.write('.section .note.GNU-stack,"",@progbits\n')
    assert run("gcc", "-pg", "-no-pie", "-Wl,--build-id", "-o", path, path + ".s").returncode == 0
    return path, symbols(path)["f0000"][0]


def interpreter(path, exe, first, seed):
    """gmon.out shaped like that of a Lua of the same size: arcs by ascending caller, a few from each, a few callees
    that all call, call counts over six decades, most of the time in a few dozen places. The seed is the run's: the arcs
    are always the same."""
    shape, draw = random.Random(0), random.Random(seed)
    g = Gmon(*bounds(exe))
    used = sorted(shape.sample(range(FUNCTIONS), 420))
    arcs = set()
    while len(arcs) < ARCS:
        caller = used[shape.randrange(420)]
        callee = used[min(int(shape.paretovariate(0.8) - 1), 419) * 131 % 420]
        arcs.add((first + SIZE * caller + shape.randrange(1, SIZE - 1), first + SIZE * callee))
    for caller, callee in sorted(arcs):
        g.arc(caller, callee, min(int(draw.paretovariate(0.25)), 40000000))
    for _ in range(BINS):
        g.tick(first + SIZE * used[draw.randrange(420)] + 4 * draw.randrange(SIZE // 4),
               min(int(draw.paretovariate(0.7)), 900))
    return g.write(path)


def profile(d):
    """An executable that the daemon knows, a payload for the generator, and the sizes."""
    exe, first = executable(d.folder)
    gmon = interpreter(os.path.join(d.folder, "one.gmon"), exe, first, 1)
    payload = os.path.join(d.folder, "payload")
    sizes = measured(tool("template"), exe, gmon, payload)
    done = d.ctl("upload", "-e", exe, gmon)
    assert done.returncode == 0, done.stderr
    return exe, first, gmon, payload, sizes


def show(got):
    return (f"{got['acks_per_second']:8.0f}/s  slowest second {got['slowest_second']:.0f}  p50 {got['p50_ms']:.2f} ms  "
            f"p99 {got['p99_ms']:.2f} ms  "
            f"max {got['max_ms']:.0f} ms  BUSY {got['busy']:.0f}")


def throughput(d, exe, first, payload, sizes):
    bare = os.path.join(d.folder, "bare")

    def limit(seconds, batch):
        os.makedirs(bare, exist_ok=True)
        got = measured(tool("bare_sqlite"), bare, int(sizes["counts"]), batch, seconds)
        for name in os.listdir(bare):
            os.remove(os.path.join(bare, name))
        return got["rows_per_second"]

    for connections, window in ((1, 1), (1, 256), (100, 16), (CONNECTIONS, 1)):
        got = measured(tool("load"), "-c", connections, "-w", window, "-s", 20, "-t", SHORT, d.socket, payload)
        row(f"durable uploads, {connections} connection{'s' * (connections > 1)}, {window} in flight each", show(got))
    got = measured(tool("load"), "-c", 100, "-w", 16, "-s", 20, "-u", 1, "-t", SHORT, d.socket, payload)
    row("the same, each upload from a process of its own (100 × 16)", show(got))
    batches, upkeep = metric(d, "write_batches_total"), metric(d, "upkeep_seconds_total")
    burst = measured(tool("load"), "-c", 100, "-w", 32, "-s", 20, "-t", SECONDS, d.socket, payload,
                     timeout=SECONDS + 120)
    batch = max(round(burst["acks"] / (metric(d, "write_batches_total") - batches)), 1)
    row(f"burst of {SECONDS:.0f} s, 100 connections, 32 in flight each",
        f"{show(burst)}  {batch} a transaction; {metric(d, 'upkeep_seconds_total') - upkeep:.1f} s of upkeep meanwhile")
    # The limit beside it: moments of both in turn, so that what else this machine does hits both.
    ours, bare_rates = [], []
    for _ in range(5):
        bare_rates.append(limit(max(SHORT / 5, 1), batch))
        ours.append(measured(tool("load"), "-c", 100, "-w", 32, "-s", 20, "-t", max(SHORT / 5, 1), d.socket,
                             payload)["acks_per_second"])
    share = sorted(100 * o / b for o, b in zip(ours, bare_rates))
    row("bare SQLite, one thread, same bytes, pragmas and batches, in turn with profd",
        f"{sorted(bare_rates)[2]:8.0f}/s; profd {sorted(ours)[2]:.0f}/s: {share[2]:.0f} % of it "
        f"({share[0]:.0f}–{share[-1]:.0f} %)")
    files = [interpreter(os.path.join(d.folder, f"{n}.gmon"), exe, first, n) for n in range(500)]
    began = time.perf_counter()
    done = run("gprof", "-s", exe, *files, cwd=d.folder, env=dict(os.environ, LC_ALL="C"), timeout=300)
    assert done.returncode == 0, done.stderr
    row("gprof -s over files of the same profile, nothing durable", f"{500 / (time.perf_counter() - began):8.0f}/s")


def under_reports(d, exe, payload):
    """A steady 1,000 uploads a second, latencies from the planned moment, without and with two connections that ask for
    full reports without pause."""
    target = f"/api/v1/builds/{d.json('report', exe, '--json', '--limit', '1')['build_id']}/report"
    calm, loud, asked = [], [], 0
    for _ in range(3):
        common = ("-c", 20, "-w", 64, "-r", 1000, "-s", 20, "-t", max(SHORT / 2, 1))
        calm.append(measured(tool("load"), *common, d.socket, payload)["p99_ms"])
        got = measured(tool("load"), *common, "-q", target, "-Q", 2, d.socket, payload)
        loud.append(got["p99_ms"])
        asked += got["answers"]
    calm.sort(), loud.sort()
    row("p99 of an ACK at 1,000/s, without and with full reports all the time",
        f"{calm[1]:8.2f} ms and {loud[1]:.2f} ms ({loud[1] / calm[1]:.1f} ×; {asked:.0f} reports)")


def rss(d):
    with open(f"/proc/{d.process.pid}/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / (1 << 20)


def crowds(d, payload):
    """10,000 connections at a time, and what they do to somebody else's uploads."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with open(payload, "rb") as f:
        body = f.read()

    def unread(w, n):
        mine = sender_number()
        w.raw(b"".join(header("UPLOAD", k + 1, len(b)) + b for k in range(8) for b in [upload(mine, k + 1)]))

    kinds = {
        "idle": lambda w, n: None,
        "half a frame sent": lambda w, n: w.raw((header("UPLOAD", 1, len(body)) + body)[:len(body) // 2]),
        "8 uploads sent, no answer read": unread,
        "a byte a second": lambda w, n: w.raw(b"\x40"),
    }
    for name, act in kinds.items():
        deadline = time.monotonic() + 15 # what the row before took goes back when nothing is under way
        while rss(d) > 48 and time.monotonic() < deadline:
            time.sleep(0.5)
        before, held = rss(d), []
        for n in range(CONNECTIONS):
            try:
                w = Wire(d.socket)
                w.socket.setblocking(False)
                act(w, n)
                held.append(w)
            except (OSError, TypeError):
                break
        most = rss(d)
        got = measured(tool("load"), "-c", 10, "-w", 8, "-t", 3, d.socket, payload)
        most = max(most, rss(d))
        if name == "a byte a second":
            for w in held:
                try:
                    w.raw(b"\0")
                except OSError:
                    pass
        row(f"{len(held):,} connections, {name}", f"{before:.0f} → {most:.0f} MB; others: "
                                                  f"{got['acks_per_second']:.0f}/s, p99 {got['p99_ms']:.1f} ms")
        for w in held:
            w.close()


def main():
    with Daemon() as d:
        exe, first, gmon, payload, sizes = profile(d)
        row("the profile: gmon.out, upload's payload, stored counts",
            f"{sizes['gmon']:.0f} B, {sizes['payload']:.0f} B, {sizes['counts']:.0f} B ({sizes['arcs']:.0f} arcs, "
            f"{sizes['bins']:.0f} bins)")
        throughput(d, exe, first, payload, sizes)
    with Daemon() as d:
        exe, first, gmon, payload, sizes = profile(d)
        under_reports(d, exe, payload)
        crowds(d, payload)


if __name__ == "__main__":
    main()
