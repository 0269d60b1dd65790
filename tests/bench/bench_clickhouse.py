#!/usr/bin/python3
"""A centre in ClickHouse, Debian's 18.16, of two shards on this machine: what two daemons store in a second, what a row
takes, and how long a program over 30 days and the largest of 10,000 hosts take. Hours of before are copies of one real
rollup of each program, totals of days by host are made by the server; two open hours are real segments. All have stacks
and symbols. Wall time says little on a machine that does other things, so CPU seconds of daemon and servers stand
beside it. At the end: tables, and plans of the heaviest questions (clickhouse_plans.py).
bench_clickhouse.py [days=N] [programs=N] [hosts=N] [segments=N]"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import clickhouse_plans  # noqa: E402
from clickhouse_bed import Bed  # noqa: E402
from harness import BUILD, PROFCTL, Daemon, run  # noqa: E402
from wire import Wire  # noqa: E402

HISTORY = os.path.join(BUILD, "tests", "history")
SIZE = {"days": 30, "programs": 20, "hosts": 10000, "segments": 8000}
TENANT = 4294967294


def program(n):
    return f"aa{n:038x}"


def store(url, jobs):
    """Runs several writers beside each other. [(rows, segments, seconds)] and the seconds of all."""
    began = time.monotonic()
    running = [subprocess.Popen([HISTORY, url, "put", *map(str, job)], stdout=subprocess.PIPE, text=True)
               for job in jobs]
    out = [p.communicate()[0].split() for p in running]
    if any(p.returncode for p in running):
        raise RuntimeError("a writer failed")
    return [(int(r), int(s), float(t)) for r, s, t in out], time.monotonic() - began


def columns(server, table):
    names = server.query(f"SELECT groupArray(name) FROM system.columns WHERE database = 'profd' AND table = '{table}'")
    return [n.strip("'") for n in names.strip()[1:-1].split(",")]


def copy_hours(server, table, hour, days, changed):
    """Copies the rows of an hour to the hours of the days before it."""
    names = columns(server, table)
    for day in range(days):
        server.query(
            f"INSERT INTO profd.{table} ({', '.join(names)}) SELECT {', '.join(changed.get(n, n) for n in names)} "
            f"FROM (SELECT * FROM profd.{table} FINAL WHERE hour = {hour}) "
            f"ARRAY JOIN arrayMap(x -> x + {day * 24 + 1}, range(24)) AS k", insert_distributed_sync=1)


def make_history(bed, size, hour):
    """Hours of before, and totals of their days by host."""
    a = bed.servers[0]
    for s in bed.servers:
        s.query(f"INSERT INTO profd.host (identity, number, slot, name, uid) SELECT toFixedString(concat('made', "
                f"toString(n)), 16), toUInt64(1), toUInt32(n), concat('h', toString(n)), toUInt32({TENANT}) FROM "
                f"(SELECT arrayJoin(arrayMap(x -> x + 2001, range({size['hosts'] - 2000}))) AS n)")
    every = "arrayStringConcat(arrayMap(x -> '\\x01', range(%d)))" % size["hosts"]  # slots 1, 2, 3, …
    copy_hours(a, "rollup", hour, size["days"], {
        "hour": "toUInt32(hour - k)", "commit": "commit - toUInt64(k) * 4398046511104", "hosts": every,
        "first": "first - toInt64(k) * 3600000000000", "last": "last - toInt64(k) * 3600000000000"})
    for s in bed.servers:
        copy_hours(s, "change", hour, size["days"], {"hour": "toUInt32(hour - k)"})
    for day in range(hour // 24 - size["days"], hour // 24):
        a.query(
            "INSERT INTO profd.host_day (program, series, day, generation, host, version, uploads, processes, ticks, "
            f"calls, first, last, inexact, nanoseconds, touching) SELECT program, series, toUInt32({day}), "
            "toUInt32(0), toUInt32(n), version, toUInt64(12), toUInt64(12), toUInt64(100 + n), toUInt64(n * 7), "
            f"toInt64({day * 86400 * 10**9}), toInt64({day * 86400 * 10**9 + 10**9}), toUInt32(0), "
            "[toUInt64(n * 10000000), toUInt64(1)], [toUInt64(n * 7), toUInt64(1)] FROM (SELECT program, series, "
            f"sum(version) AS version FROM profd.rollup WHERE intDiv(hour, 24) = {day} GROUP BY program, series) "
            f"ARRAY JOIN arrayMap(x -> x + 1, range({size['hosts']})) AS n", insert_distributed_sync=1)


def spent(pids):
    """CPU seconds of processes so far."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as f:
            total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def ask(bed, url, name, target, asked):
    """A question to daemons that have just started, and to the last of them again."""
    servers, first, again = [s.process.pid for s in bed.servers], [], []
    for _ in range(3):
        with Daemon("--store", url) as d, Wire(d.socket) as w:
            for i in range(7 if len(first) == 2 else 1):
                began, cpu = time.monotonic(), (spent([d.process.pid]), spent(servers))
                status, body = w.query(target)
                (again if i else first).append((time.monotonic() - began, spent([d.process.pid]) - cpu[0],
                                                spent(servers) - cpu[1]))
                if status != 200:
                    raise RuntimeError(body.decode())
    middle = [sorted(x)[len(x) // 2] for x in zip(*first)]
    each = ", ".join(f"{x[0]:.2f}" for x in first)
    print(f"{name}: {middle[0]:.2f} s just started (asked {asked}; median of {each}; "
          f"CPU of the daemon {middle[1]:.2f} s, of the servers {middle[2]:.2f} s), "
          f"{1000 * sorted(x[0] for x in again)[3]:.0f} ms again (median of 6), {len(body)} bytes", flush=True)


def rows_of(server, table, database="profd"):
    """Rows, bytes on disk."""
    return [int(n) for n in server.query(
        "SELECT sum(rows), sum(bytes_on_disk) FROM cluster('shards', system.parts) WHERE active AND "
        f"database = '{database}' AND table = '{table}_local'").split()]


def measure_plain(bed, size, hour):
    """Bytes of a row without stacks."""
    url = bed.url("plain", cluster="shards")
    if (done := run(PROFCTL, "clickhouse", "init", url)).returncode:
        raise RuntimeError(done.stderr)
    store(url, [(hour, size["segments"] // 4, 1000, size["programs"], 1, 0)])
    count, stored = rows_of(bed.servers[0], "segment_group", "plain")
    print(f"a row of a segment without stacks: {stored / count / 1000:.2f} KB (asked at most 3.8) in {count} rows",
          flush=True)


def main():
    size = dict(SIZE)
    size.update((k, int(v)) for k, v in (a.split("=") for a in sys.argv[1:]))
    hour = int(time.time()) // 3600
    with Bed(2) as bed:
        a, url = bed.servers[0], bed.url("profd", cluster="shards")
        done = run(PROFCTL, "clickhouse", "init", url)
        if done.returncode:
            raise RuntimeError(done.stderr)
        print("load average " + " ".join(f"{x:.1f}" for x in os.getloadavg()))
        measure_plain(bed, size, hour)
        subprocess.run([HISTORY, url, "symbols", str(size["programs"])], check=True)
        store(url, [(hour - 4, 50 * size["programs"], 1000, size["programs"], 1, 1)])
        subprocess.run([HISTORY, url, "compact", str(hour)], check=True)
        for h in (hour - 1, hour):
            each, took = store(url, [(h, size["segments"] // 4, 1000, size["programs"], first, 1)
                                     for first in (1, 1001)])
        rows, segments = (sum(x[i] for x in each) for i in range(2))
        busy = max(x[2] for x in each)
        print(f"{segments} segments of 350 arcs, {rows} rows, by two writers at once, {busy:.1f} s in the store: "
              f"{rows / busy:.0f} rows a second (asked 2,000), {segments / busy:.0f} segments a second; with what "
              f"makes them {took:.1f} s", flush=True)
        count, stored = rows_of(a, "segment_group")
        print(f"a row of a segment with stacks: {stored / count / 1000:.2f} KB in {count} rows")
        count, stored = rows_of(a, "rollup")
        print(f"a rollup of an hour of 50 segments, with groups and stacks: {stored / count / 1000:.1f} KB")
        began = time.monotonic()
        make_history(bed, size, hour - 4)
        count, stored = rows_of(a, "rollup")
        days, host_bytes = rows_of(a, "host_day")
        print(f"history: {count} rollups, {stored / 1e6:.0f} MB, {days} totals of days by host, {host_bytes / 1e6:.0f} "
              f"MB, made in {time.monotonic() - began:.0f} s", flush=True)
        base = f"/api/v1/builds/{program(0)}"
        since = f"since={(hour - 24 * size['days']) * 3600}"
        ask(bed, url, f"one program over {size['days']} days, top 200 functions, JSON",
            f"{base}/report?limit=200&{since}", "1 s; from a warm cache 50 ms")
        ask(bed, url, f"groups by host and day over {size['days']} days, 50 largest hosts",
            f"{base}/groups?by=host&step=1d&limit=50&{since}", "2 s")
        clickhouse_plans.show(bed, url, base, since, size["days"])
        print("load average " + " ".join(f"{x:.1f}" for x in os.getloadavg()))


if __name__ == "__main__":
    main()
