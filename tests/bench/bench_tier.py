"""make bench-tier: what a centre costs whose past days are in ClickHouse, beside the same centre without a tier. Pasts
are made by tests/bench/history.c. Engines: a current one (chDB) and Debian's 18.16, on this machine, so that their CPU
time is part of all wall times; CPU seconds of daemon and engine stand beside these. A figure that was asked for is
printed with it; this never fails because of a figure.

bench_tier.py [days=30] [programs=4] [hosts=10000] [series=200] [engine=both|current|18.16]"""
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from bench_upload import measured, profile, tool  # noqa: E402
from harness import Daemon, run, until  # noqa: E402
from tier_bed import Chdb, Old  # noqa: E402
from windows import state  # noqa: E402

SIZE = {"days": "30", "programs": "4", "hosts": "10000", "series": "200", "engine": "both"}
FOR_DAY = 2000  # series of the figure for sealing
FOREVER = ("--keep-age", "0", "--keep-bytes", "0")
PATIENCE = 1800


def spent(*pids):
    """CPU seconds so far."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as f:
            total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def middle(values):
    return sorted(values)[len(values) // 2]


def megabytes(n):
    return f"{n / 1e6:,.0f} MB"


class Past:
    """A database with days, which daemons get copies of."""

    def __init__(self, folder, days, programs, series, hosts, totals=1, grown=0):
        self.days, self.series, self.hosts = days, series, hosts
        self.path, began = os.path.join(folder, f"{days}-{series}-{hosts}.db"), time.monotonic()
        size = map(str, (days, programs, series, hosts, totals, grown))
        done = run(tool("history"), self.path, *size, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        print(f"made: {days} days of {series} series, one with {hosts:,} hosts: "
              f"{megabytes(os.path.getsize(self.path))} in {time.monotonic() - began:.0f} s", flush=True)

    def daemon(self, *options):
        d = Daemon(*FOREVER, *options, start=False)
        os.makedirs(d.state, 0o700)
        shutil.copyfile(self.path, os.path.join(d.state, "profd.db"))
        os.chmod(os.path.join(d.state, "profd.db"), 0o600)
        return d

    def questions(self):
        since = (int(time.time()) // 86400 - 2 - self.days) * 86400
        base = f"/api/v1/builds/aa{0:038x}"
        return {"report": f"{base}/report?limit=200&since={since}",
                "groups": f"{base}/groups?by=host&step=1d&limit=50&since={since}"}


def in_use(d):
    """Bytes of the database without its free pages."""
    s = state(d)
    return s["file_bytes"] - s["free_bytes"]


def ask(d, target, engine=None, again=6):
    """[wall, CPU of the daemon, CPU of the engine] of the first answer and the median of further ones; the answer."""
    times = []
    pids = [engine.process.pid] if engine else []
    for _ in range(1 + again):
        began, cpu, other = time.monotonic(), spent(d.process.pid), spent(*pids)
        status, _, body = d.get(target)
        times.append((time.monotonic() - began, spent(d.process.pid) - cpu, spent(*pids) - other))
        assert status == 200, (target, body)
    return times[0], middle([t[0] for t in times[1:]] or [0]), body


def ask_started(d, target, engine=None, rounds=3):
    """The same of a daemon that has just started, several times: the median."""
    first = []
    for i in range(rounds):
        d.start()
        cold, again, body = ask(d, target, engine, 6 if i == rounds - 1 else 0)
        first.append(cold)
        d.stop()
    return [middle(x) for x in zip(*first)], again, body


def seal(d, engine):
    """Waits until every day is in ClickHouse: seconds since the first began, and CPU of both. A copy of a database
    first reads whether it had sealed days before."""
    until(lambda: (t := state(d)["tier"])["lag_seconds"] or t["days_sealed"], PATIENCE)
    began, cpu, other = time.monotonic(), spent(d.process.pid), spent(engine.process.pid)
    good = until(lambda: (t := state(d)["tier"])["days_waiting"] == 0 and t["days_sealed"], PATIENCE)
    assert good, (state(d)["tier"], d.logged())
    return time.monotonic() - began, spent(d.process.pid) - cpu, spent(engine.process.pid) - other


def on_disk(engine, table="sum"):
    """Rows, bytes."""
    text = engine.query("SELECT sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'profd' "
                        f"AND table = '{table}'")
    return [int(x) for x in text.split()]


def make_tables(engine, d):
    engine.query("CREATE DATABASE IF NOT EXISTS profd")
    done = d.ctl("tier", "init")
    assert done.returncode == 0, done.stderr


def reading(past, engines):
    """A row of the table for each engine."""
    rows, asked = [], {"report": "0.7 s / 12 ms", "groups": "1.5 s"}
    with past.daemon() as d:
        here = {k: ask_started(d, q, None, 1) for k, q in past.questions().items()}
        d.start()
        plain = in_use(d)
        d.stop()
    for k, (cold, again, _) in here.items():
        print(f"  SQLite: {k}: {cold[0]:.2f} s, CPU {cold[1]:.2f} s; again {1000 * again:.0f} ms")
    for kind, name in engines:
        with kind() as engine, past.daemon("--tier", engine.url()) as d:
            d.start()
            make_tables(engine, d)
            took = seal(d, engine)
            rest = in_use(d)
            d.stop()
            count, stored = on_disk(engine)
            there = {k: ask_started(d, q, engine) for k, q in past.questions().items()}
        for k, (cold, again, body) in there.items():
            print(f"  {name}: {k}: {cold[0]:.2f} s, CPU of the daemon {cold[1]:.2f} s, of ClickHouse {cold[2]:.2f} s; "
                  f"again {1000 * again:.0f} ms (asked {asked[k]}); "
                  f"{'the bytes of SQLite' if body == here[k][2] else 'OTHER BYTES'}", flush=True)
        print(f"  {name}: {count} sums, {megabytes(stored)}: {stored / count / 1000:.1f} KB a sum; moved in "
              f"{took[0]:.0f} s, CPU of the daemon {took[1]:.0f} s, of ClickHouse {took[2]:.0f} s", flush=True)
        rows.append((past, name, plain, rest, stored,
                     *(sum(x[k][0][1:]) for x in (here, there) for k in ("report", "groups"))))
    return rows


def sealing(past, engine, name):
    """A day with uploads beside it, and one without."""
    size = ("-c", 100, "-w", 32, "-s", 20, "-t", 10)
    with past.daemon("--tier", engine.url()) as d:
        d.start()
        make_tables(engine, d)
        took = seal(d, engine)
        rows, stored = on_disk(engine)
        whole = FOR_DAY / past.series
        print(f"  {name}: a day of {past.series} series moved in {took[0]:.1f} s, CPU of the daemon {took[1]:.1f} s, "
              f"of ClickHouse {took[2]:.1f} s; {stored / rows / 1000:.1f} KB a sum of 50 uploads (asked ≤ 81.0); a "
              f"day of {FOR_DAY}: {whole * took[0]:.0f} s (asked ≤ 60)", flush=True)
    engine.query("DROP DATABASE profd")
    rates = []
    for options in ((), ("--tier", engine.url())):
        with past.daemon(*options) as d:
            d.start()
            _, _, _, payload, _ = profile(d)
            if options:
                make_tables(engine, d)
            rates.append(measured(tool("load"), *size, d.socket, payload)["acks_per_second"])
            left = state(d)["tier"]["days_waiting"] if options else 0
    print(f"  {name}: uploads a second {rates[0]:.0f}, beside sealing {rates[1]:.0f}: {rates[1] / rates[0]:.2f} × "
          f"(asked ≥ 0.9{'' if left else '; the day was moved before the end'}); the load generator and ClickHouse are "
          "on this machine, too", flush=True)


def main():
    size = dict(SIZE)
    size.update(a.split("=") for a in sys.argv[1:])
    days, programs, hosts, series = (int(size[k]) for k in ("days", "programs", "hosts", "series"))
    engines = [(kind, name) for kind, name in ((Chdb, "current"), (Old, "18.16"))
               if size["engine"] in (name, "both") and not kind.why_not]
    folder = tempfile.mkdtemp(prefix="profd-past-")
    print("load average " + " ".join(f"{x:.1f}" for x in os.getloadavg()))
    try:
        day = Past(folder, 1, 20, series, 50, 0, 1)
        for kind, name in engines:
            with kind() as engine:
                sealing(day, engine, name)
        rows = []
        for which, *size in ((engines[:1], 10, 20, 20, 100), (engines, days, programs, programs, hosts)):
            past = Past(folder, *size)
            rows += reading(past, which)
            os.remove(past.path)
        print("CPU seconds of a first answer: report and groups without a tier, and with one\n"
              "hosts  series  days  ClickHouse  SQLite alone  SQLite  in ClickHouse   without    with")
        for past, name, plain, rest, stored, *seconds in rows:
            print(f"{past.hosts:5}  {past.series:6}  {past.days:4}  {name:>10}  {megabytes(plain):>12}  "
                  f"{megabytes(rest):>6}  {megabytes(stored):>13} " + " ".join(f"{x:5.2f}" for x in seconds))
    finally:
        shutil.rmtree(folder)
    print("load average " + " ".join(f"{x:.1f}" for x in os.getloadavg()))


if __name__ == "__main__":
    main()
