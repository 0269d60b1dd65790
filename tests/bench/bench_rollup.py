"""make bench, the store's sums: bytes that processes leave, single and rolled up; how fast uploads are rolled up. Rates
are uploads per second of the store's own processor time, the median of three runs; bytes are exact. BENCH_SMALL=1:
fewer uploads."""
import os
import statistics
import subprocess
import tempfile

BUILD = os.environ["PROFD_BUILD"]
SMALL = os.environ.get("BENCH_SMALL", "") not in ("", "0")


def row(what, text):
    print(f"{what:<74} {text}", flush=True)


def measured(processes, series, stacks=0):
    with tempfile.TemporaryDirectory(prefix="profd-bench-") as folder:
        out = subprocess.run([os.path.join(BUILD, "tests", "rollup"), os.path.join(folder, "b.db"), str(processes),
                              str(series), "256", str(stacks)],
                             capture_output=True, text=True, timeout=600, check=True).stdout
    return {k: float(v) for k, _, v in (line.partition(" ") for line in out.splitlines())}


def bytes_of_processes():
    for processes in (1, 10, 100, 1000):
        v = measured(processes, 1)
        row(f"bytes of {processes} processes of a Lua's size in one hour",
            f"single {v['raw'] * processes:,.0f} ({v['encoded']:,.0f} encoded each); rolled up {v['hour']:,.0f} and "
            f"spread "
            f"{v['hour_spread']:,.0f}")


def bytes_of_stacks():
    """What stacks add to the sums of an hour, above the same processes without them."""
    for processes in (100, 1000):
        plain = measured(processes, 1)
        v = measured(processes, 1, 100)
        nodes = v["nodes"]
        row(f"bytes of stacks of {processes} processes of a Lua's size, 100 ticks each, in one hour",
            f"{nodes:,.0f} nodes: {v['hour'] - plain['hour']:,.0f}, with groups "
            f"{v['hour'] + v['hour_spread'] - plain['hour'] - plain['hour_spread']:,.0f}; "
            f"{(v['hour'] - plain['hour']) / nodes:.1f} and "
            f"{(v['hour_spread'] - plain['hour_spread']) / nodes:.1f} a node")


def rates():
    uploads = 2000 if SMALL else 20000
    for what, series in (("one series", 1), ("50 series", 50), ("as many series", uploads)):
        runs = [measured(uploads, series) for _ in range(3)]
        middle = {k: statistics.median(r[k] for r in runs) for k in runs[0]}
        row(f"uploads/s of processor time, {uploads:,} of {what}",
            f"stored {middle['put']:,.0f}, rolled up {middle['rolled']:,.0f}; longest slice {middle['longest_ms']:.0f} "
            f"ms")


bytes_of_processes()
bytes_of_stacks()
rates()
