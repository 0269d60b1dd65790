# not a program: bench_clickhouse.py runs it
"""What ClickHouse does for the questions that take it longest: statements, rows, bytes, milliseconds, and which parts
it selects by which conditions. Its own logs say so: system.query_log, and server.log at the level `trace`."""
import contextlib
import os
import re
import signal
import subprocess
import time

from harness import Daemon
from wire import Wire

QUERY_LOG = ("<query_log><database>system</database><table>query_log</table>"
             "<flush_interval_milliseconds>1000</flush_interval_milliseconds></query_log></yandex>")
CHANGES = (("config.xml", "<level>warning</level>", "<level>trace</level>"), ("config.xml", "</yandex>", QUERY_LOG),
           ("users.xml", "<max_memory_usage>", "<log_queries>1</log_queries><max_memory_usage>"))
PLAN = re.compile(r"\{(\S+)\} <Debug> (\S+) \(SelectExecutor\): "
                  r"(Key condition|MinMax index condition|Selected \d+ parts)(.*)")
HEAVIEST, STATEMENTS, SHORT = 3, 2, 700
VERIFY_SECONDS = 20  # at most: of the history it says for every hour that there are no segments


def log_queries(bed):
    """Starts the servers again; their caches are empty then."""
    for s in bed.servers:
        s.stop(signal.SIGTERM)
        for name, before, after in CHANGES:
            path = os.path.join(s.folder, name)
            with open(path) as f:
                text = f.read()
            if before not in text:
                raise RuntimeError(f"{name} has no {before}")
            with open(path, "w") as f:
                f.write(text.replace(before, after, 1))
        s.start()


def logged(server):
    """Statements that have ended, but for those of this program: {id: row}."""
    server.query("SYSTEM FLUSH LOGS")
    out = {}
    for line in server.query(
            "SELECT query_id, initial_query_id, port, query_duration_ms, read_rows, read_bytes, result_rows, "
            "memory_usage, query FROM system.query_log WHERE type = 2 AND query NOT LIKE '%query_log%' AND "
            "query NOT LIKE 'SYSTEM%'").splitlines():
        own, first, port, *numbers, text = line.split("\t")
        ms, rows, size, result, memory = map(int, numbers)
        out[own] = {"first": first, "port": port, "ms": ms, "rows": rows, "bytes": size, "result": result,
                    "memory": memory, "text": text.replace("\\'", "'")}
    return out


def ask(bed, url, act):
    """What a daemon that has just started makes of a question: its seconds, its statements to the first server. The
    daemon's own work has a connection of its own."""
    first = bed.servers[0]
    others = logged(first)
    with Daemon("--store", url) as d:
        before = logged(first)
        began = time.monotonic()
        act(d)
        took = time.monotonic() - began
    own = {x["port"] for i, x in before.items() if i not in others}
    return took, {i: x for i, x in logged(first).items()
                  if i not in before and x["first"] == i and x["port"] not in own}


def plans(bed, statement):
    """Of each shard: which conditions on the key and on partitions a statement has, and what they select."""
    for n, s in enumerate(bed.servers):
        ids = {i for i, x in logged(s).items() if x["first"] == statement}
        with open(os.path.join(s.folder, "server.log"), errors="replace") as f:
            for found in filter(None, map(PLAN.search, f)):
                if found[1] in ids:
                    yield f"shard {n + 1}, {found[2]}: {shorten(found[3] + found[4], 300)}"


def shorten(text, most):
    text = re.sub(r"unhex\('[0-9a-f]+'\)(,unhex\('[0-9a-f]+'\))+", "unhex(…), …", text)
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


def numbers(x):
    return f"{x['ms']} ms, {x['rows']} rows and {x['bytes'] / 1e6:.2f} MB read"


def show_tables(bed):
    print("tables, as each shard has them on disk:")
    for n, s in enumerate(bed.servers):
        for line in s.query(
                "SELECT table, count(), uniqExact(partition), sum(rows), sum(bytes_on_disk) FROM system.parts WHERE "
                "active AND database = 'profd' GROUP BY table ORDER BY sum(bytes_on_disk) DESC LIMIT 8").splitlines():
            table, parts, partitions, rows, size = line.split("\t")
            print(f"  shard {n + 1}, {table}: {rows} rows, {int(size) / 1e6:.2f} MB, {parts} parts of {partitions} "
                  "partitions")


def get(target):
    def act(d):
        with Wire(d.socket) as w:
            status, body = w.query(target)[:2]
        if status != 200:
            raise RuntimeError(body.decode())
    return act


def verify(d):
    with contextlib.suppress(subprocess.TimeoutExpired):
        d.ctl("verify", timeout=VERIFY_SECONDS)


def measure(bed, url, name, act):
    took, statements = ask(bed, url, act)
    total = {k: sum(x[k] for x in statements.values()) for k in ("ms", "rows", "bytes")}
    print(f"{name}: {took:.2f} s, {len(statements)} statements, of the servers {numbers(total)}", flush=True)
    return total["ms"], name, statements


def show_statements(bed, name, statements):
    print(f"{name}:")
    for i, x in sorted(statements.items(), key=lambda x: -x[1]["ms"])[:STATEMENTS]:
        print(f"  {numbers(x)}, {x['result']} rows of result, {x['memory'] / 1e6:.0f} MB of memory")
        print(f"  {shorten(x['text'], SHORT)}")
        for line in plans(bed, i):
            print(f"    {line}")


def show(bed, url, base, since, days):
    """base: the path of a program; since: a parameter of the window."""
    log_queries(bed)
    show_tables(bed)
    asked = [measure(bed, url, name, get(target)) for name, target in (
        (f"report of one program over {days} days", f"{base}/report?limit=200&{since}"),
        (f"groups by host and day over {days} days", f"{base}/groups?by=host&step=1d&limit=50&{since}"),
        (f"groups by hour over {days} days", f"{base}/groups?step=1h&limit=50&{since}"),
        ("a function in all builds", "/api/v1/functions?name=f1"),
        ("list of builds", "/api/v1/builds"),
        ("list of hosts", "/api/v1/hosts"))]
    verified = measure(bed, url, f"verification, its first {VERIFY_SECONDS} s at most", verify)
    print(f"the {HEAVIEST} questions that take the servers longest, the statements of each that take longest, and of "
          "verification:")
    for _, name, statements in [*sorted(asked, key=lambda x: -x[0])[:HEAVIEST], verified]:
        show_statements(bed, name, statements)
