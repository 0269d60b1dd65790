# not a test
"""The error rates of profctl diff, measured on pools of real profiles (pool.py): what equal sides look like, whether
intervals hold a known change, and how often a change of some size is found."""
import math
import os
import random
import re
import subprocess
import tempfile

from pool import Comparer, encoded, ticks_of  # noqa: F401
from programs import VARIANTS

ENOUGH = 230  # ticks of the slower function a side: 150 are tested, and a sample may have fewer than its mean
POWER = 8.4   # (t + z)² of one test that finds a change in 80 % of cases
BUNDLES = 1.35  # variance of ticks over Poisson's at 250 Hz


def normal_p(z):
    return math.erfc(abs(z) / math.sqrt(2))


def rows_of(diff, metric):
    return next(t["rows"] for t in diff["metrics"] if t["metric"] == metric)


def row_of(diff, metric, function):
    return next((r for r in rows_of(diff, metric) if r["function"] == function), None)


def naive_p(r):
    """As if ticks were independent and no process differed from another: what tools without groups could say."""
    return normal_p(math.log(r["b"] / r["a"]) / math.sqrt(1 / r["ticks_a"] + 1 / r["ticks_b"]))


def equal_sides(program, pools, splits, raw, seed=1):
    """Random halves of one variant's processes, as two builds of the same code. {metric: (tests, p < .05, splits with
    a discovery)}; "naive" stands for self shares by √n."""
    out, draw, names = {}, random.Random(seed), sorted(pools)
    with Comparer({v: program.exes[v] for v in ("base", "again")}, seed) as c:
        for split in range(splits):
            processes = list(pools[names[split % len(names)]])
            draw.shuffle(processes)
            half = len(processes) // 2
            diff = c.compare(("base", processes[:half]), ("again", processes[half:]))
            naive = []
            for table in diff["metrics"]:
                tested = [r for r in table["rows"] if r["p"] is not None]
                note(out, table["metric"], [r["p"] for r in tested], any(r["verdict"] == "changed" for r in tested))
                for r in tested:
                    raw.write(f"{split}\t{table['metric']}\t{r['function']}\t{r['ticks_a']:g}\t{r['ticks_b']:g}\t"
                              f"{r['p']:.6g}\t{r['q']:.6g}\t{r['verdict']}\n")
                naive += [naive_p(r) for r in tested if table["metric"] == "self"]
            note(out, "naive", naive, any(q <= 0.05 for q in discoveries(naive)))
    return out


def note(out, metric, ps, found):
    tests, below, splits = out.get(metric, (0, 0, 0))
    out[metric] = tests + len(ps), below + sum(p < 0.05 for p in ps), splits + found


def discoveries(ps):
    """q by Benjamini and Hochberg."""
    least, out = 1, []
    for rank, p in sorted(enumerate(sorted(ps), 1), reverse=True):
        least = min(least, p * len(ps) / rank)
        out.append(least)
    return out


def sample(draw, processes, count):
    return [draw.choice(processes) for _ in range(count)]


def truth_of(program, share, slower):
    """Logarithms of the true changes: of time per call, and of the self share."""
    part = 1 / slower
    return math.log1p(part), math.log1p(part) - math.log1p(part * share)


def instructions(program, seed=1):
    """{variant: instructions of the slower function per call}, counted by callgrind."""
    out = {}
    for variant in ("base", "2", "5", "10"):
        with tempfile.TemporaryDirectory() as where:
            arguments, given = program.arguments(program.folder, seed)
            subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=cg", program.exes[variant],
                            *arguments], cwd=where, input=given, capture_output=True, check=True)
            text = subprocess.run(["callgrind_annotate", "--threshold=100", "--show-percs=no", "cg"], cwd=where,
                                  capture_output=True, text=True).stdout
        own = re.search(r"^\s*([\d,]+) .*:%s " % program.slower[1], text, re.M)
        out[variant] = int(own[1].replace(",", "")) if own else 0
    return out


class Slower:
    """Comparisons of base with a slower variant, resampled from the pools."""

    def __init__(self, program, pools, raw, seed):
        self.program, self.pools, self.raw, self.function = program, pools, raw, program.slower[1]
        self.draw = random.Random(seed)
        self.comparer = Comparer({v: program.exes[v] for v in pools}, seed)
        self.ticks = ticks_of(program.exes["base"], self.function, pools["base"]) / len(pools["base"])
        self.share = self.ticks * len(pools["base"]) / sum(n for p in pools["base"] for n in p[2].values())

    def compare(self, variant, count):
        return self.comparer.compare(("base", sample(self.draw, self.pools["base"], count)),
                                     (variant, sample(self.draw, self.pools[variant], count)),
                                     "&metric=self,time-per-call")

    def whole(self, variant):
        """{metric: the change between the whole pools}: of what is drawn from them, this is the truth."""
        diff = self.comparer.compare(("base", self.pools["base"]), (variant, self.pools[variant]),
                                     "&metric=self,time-per-call")
        return {m: row_of(diff, m, self.function)["change"] for m in ("self", "time-per-call")}

    def intervals(self, comparisons):
        """[(variant, metric, true change, the pools' change, tests, holds the truth, holds the pools' change)]"""
        count, out = math.ceil(ENOUGH / self.ticks), {}
        variants = [v for v in self.pools if v != "base"]
        whole = {v: self.whole(v) for v in variants}
        for i in range(comparisons):
            variant = variants[i % len(variants)]
            diff = self.compare(variant, count)
            for metric, truth in zip(("time-per-call", "self"), truth_of(self.program, self.share, VARIANTS[variant])):
                r, change = row_of(diff, metric, self.function), math.expm1(truth)
                if r is None or r["p"] is None:
                    continue
                tests, holds, holds_pool = out.get((variant, metric, change), (0, 0, 0))
                out[variant, metric, change] = (tests + 1, holds + (r["low"] <= change <= r["high"]), holds_pool
                                                + (r["low"] <= whole[variant][metric] <= r["high"]))
                self.raw.write(f"{i}\t{variant}\t{metric}\t{count}\t{r['ticks_a']:g}\t{r['ticks_b']:g}\t{change:.5f}\t"
                               f"{whole[variant][metric]:.5f}\t{r['change']:.5f}\t{r['low']:.5f}\t{r['high']:.5f}\t"
                               f"{r['p']:.4g}\t{r['q']:.4g}\n")
        return [(v, m, c, whole[v][m], *n) for (v, m, c), n in out.items()]

    def power(self, comparisons, percents):
        """[(variant, processes, ticks, found alone, found among all)] with the data that the rule asks for."""
        out = []
        for percent in percents:
            ticks = 2 * BUNDLES * POWER / math.log1p(percent / 100) ** 2
            count, single, several = math.ceil(ticks / self.ticks), 0, 0
            for _ in range(comparisons):
                r = row_of(self.compare(str(percent), count), "time-per-call", self.function)
                single += r is not None and r["p"] is not None and r["p"] < 0.05
                several += r is not None and r["verdict"] == "changed"
            out.append((percent, count, round(ticks), single / comparisons, several / comparisons))
        return out


REQUESTS = """#include <stdlib.h>
static volatile int n;
static unsigned state;
static unsigned draw(unsigned most) { state = state * 1103515245u + 12345u; return (state >> 16) %% most; }
%s
void request(void)
{
    for (unsigned i = 0; i < 200; i++)
        for (unsigned k = draw(4); k > 0; k--) all[i]();
    all[137](); %s
}
int main(int argc, char **argv)
{
    state = (unsigned)atoi(argv[argc - 1]);
    for (unsigned left = 20 + draw(60); left > 0; left--) request();
    return 0;
}
"""


def request_source(more):
    functions = "".join(f"__attribute__((noinline)) void f{i}(void) {{ n += {i}; }}\n" for i in range(200))
    return REQUESTS % (functions + "static void (*const all[])(void) = {" + ", ".join(f"f{i}" for i in range(200))
                       + "};", "all[137]();" if more else "")


def peers(program, comparer, processes, slower, folder):
    """Lines that pprof -diff_base and perf diff print about the same two sides."""
    comparer.compare(("base", processes), ("10", slower))
    lines, files = [], []
    for variant, side in (("base", "a"), ("10", "b")):
        files.append(os.path.join(folder, f"{program.name}-{variant}.pb"))
        done = comparer.daemon.ctl("report", program.exes[variant], "-l", f"c={comparer.label}", "-f", "pprof", "-o",
                                   files[-1])
        assert done.returncode == 0, done.stderr
    done = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=8", "-sample_index=cpu", "-diff_base", *files],
                          capture_output=True, text=True, env=dict(os.environ, PATH=os.environ["PATH"]
                          + ":/usr/lib/go-1.19/bin", HOME=folder))
    lines += ["pprof -top -diff_base:"] + (done.stdout or done.stderr).splitlines()
    return lines + perf_diff(program, folder)


def perf_diff(program, folder, runs=10):
    data = []
    for variant in ("base", "10"):
        script = os.path.join(folder, f"{program.name}-{variant}.sh")
        with open(script, "w") as f:
            for seed in range(runs):
                arguments, given = program.arguments(program.folder, seed)
                name = f"{script}.{seed}"
                with open(name, "wb") as g:
                    g.write(given)
                f.write(" ".join([program.exes[variant], *arguments, "<", name, ">/dev/null\n"]))
        data.append(os.path.join(folder, f"{program.name}-{variant}.data"))
        done = subprocess.run(["perf", "record", "-q", "-F", "250", "-e", "cpu-clock:u", "-o", data[-1], "sh", script],
                              capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            return ["perf record: " + done.stderr.strip()[:200]]
    # The programs of two builds have two names, which perf diff compares.
    done = subprocess.run(["perf", "diff", "-q", "-s", "sym", *data], capture_output=True, text=True, cwd=folder)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return ["perf diff:"] + (lines[:8] or done.stderr.splitlines()[:3])
