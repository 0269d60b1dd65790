"""make bench, OTLP: how many requests a second are durable, each one profile of 2,000 distinct stacks of depth 20, and
what CPU time the daemon takes for one. BENCH_REQUESTS (300) is their number."""
import gzip
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Daemon  # noqa: E402
from otlp import submit  # noqa: E402
from wire import field, fixed  # noqa: E402

REQUESTS = int(os.environ.get("BENCH_REQUESTS", "300"))
STACKS, DEPTH, FUNCTIONS, SENDERS = 2000, 20, 3000, 4
SECOND = 10**9


def dictionary(seed):
    """Half of the functions are native code of a build, half have names only. The stacks are those of a call tree."""
    rnd = random.Random(seed)
    texts = ["", "samples", "count", "cpu", "nanoseconds", "process.executable.build_id.gnu", "profile.frame.type",
             "libservice.so"]
    names = len(texts)
    texts += [f"module{rnd.randrange(200)}.Handler{i}.method_{i * 7919 % 10007}" for i in range(FUNCTIONS)]
    d = field(1, b"") + field(1, field(4, 7) + field(5, [1])) + field(2, b"")
    for i in range(FUNCTIONS):
        native = i % 2
        d += field(2, (field(1, 1) + field(2, 0x1000 + 64 * i) if native else field(3, field(1, i + 1))) +
                  field(4, [2 if native else 3]))
    d += field(3, b"") + b"".join(field(3, field(1, names + i)) for i in range(FUNCTIONS)) + field(4, b"")
    d += b"".join(field(5, t) for t in texts)
    values = ((5, "ab" * 20), (6, "native"), (6, "cpython"))
    d += field(6, b"") + b"".join(field(6, field(1, key) + field(2, field(1, v))) for key, v in values)
    stacks, stack = set(), []
    while len(stacks) < STACKS:
        keep = rnd.randrange(DEPTH // 4, DEPTH) if stack else 0  # outer frames that the next stack has, too
        stack = stack[:keep] + [rnd.randrange(1, FUNCTIONS + 1) for _ in range(DEPTH - keep)]
        stacks.add(tuple(reversed(stack)))
    return field(2, d + field(7, b"") + b"".join(field(7, field(1, list(s))) for s in stacks))


def request(table, start):
    kind, period = field(1, 1) + field(2, 2), field(1, 3) + field(2, 4)
    samples = b"".join(field(2, field(1, i + 1) + field(4, [1 + i % 5])) for i in range(STACKS))
    p = field(1, kind) + samples + fixed(3, start) + field(4, 5 * SECOND) + field(5, period) + field(6, SECOND // 20)
    resource = field(1, field(1, "service.name") + field(2, field(1, "shop")))
    return gzip.compress(field(1, field(1, resource) + field(2, field(2, p))) + table, 6)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    table, now = dictionary(1), time.time_ns() - 60 * SECOND
    bodies = [request(table, now + i * 1000) for i in range(REQUESTS)]
    with Daemon(wrapper=("taskset", "-c", "0")) as d:
        assert submit(d.http, request(table, now - 1), coding="gzip")[0] == 200
        answers, rest = [], iter(bodies)

        def send():
            for body in rest:
                answers.append(submit(d.http, body, coding="gzip")[0])
        senders = [threading.Thread(target=send) for _ in range(SENDERS)]
        before, began = cpu_seconds(d.process.pid), time.monotonic()
        for s in senders:
            s.start()
        for s in senders:
            s.join()
        seconds, cpu = time.monotonic() - began, cpu_seconds(d.process.pid) - before
        assert answers == [200] * REQUESTS, answers
        assert d.json("status", "--json")["uploads"] == REQUESTS + 1
    print(f"{'OTLP requests a second, 2,000 stacks of depth 20 each, durable, one core':<74} {REQUESTS / seconds:.0f}")
    print(f"{'  bytes of a request in gzip; CPU time of the daemon for one':<74} {len(bodies[0]):,}; "
          f"{1000 * cpu / REQUESTS:.1f} ms")


if __name__ == "__main__":
    main()
