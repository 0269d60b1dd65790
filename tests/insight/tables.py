# not a test
"""The error rates of profctl diff, measured on pools of real profiles (pool.py): what equal sides look like, whether
intervals hold a known change, and how often a change of some size is found."""
import math
import os
import random
import subprocess

from pool import Comparer, slower, symbols
from programs import VARIANTS

ENOUGH = 230  # ticks of the slower function a side: 150 are tested, and a sample may have fewer than its mean
FEWEST = 60   # processes a side, which are in 12 groups
POWER = 8.4   # (t + z)² of one test that finds a change in 80 % of cases
BUNDLES = 1.35  # variance of ticks over Poisson's at 250 Hz
COPIES = 8      # of each process, in which other ticks of the slower function are there twice
# Increases by so many percent, found with so many processes a side, of a function with 19 % of the time: asked in how
# many of a single test, and among all functions.
AT_SIZE = ((10, 3000, 1, 0.91), (5, 3000, 0.80, 0.19), (5, 10000, 1, 0.85))


class Rate:
    """A part of tests, and its standard error; tests of one group, a split or a comparison, depend on one another."""

    def __init__(self):
        self.groups = []

    def add(self, hits, tests):
        self.groups.append((hits, tests))

    @property
    def tests(self):
        return sum(tests for _, tests in self.groups)

    @property
    def part(self):
        return sum(hits for hits, _ in self.groups) / max(1, self.tests)

    @property
    def error(self):
        return math.sqrt(sum((h - self.part * t) ** 2 for h, t in self.groups)) / max(1, self.tests)

    def __str__(self):
        return f"{100 * self.part:6.2f} ± {100 * self.error:.2f} %" if self.tests else "–"


def normal_p(z):
    return math.erfc(abs(z) / math.sqrt(2))


def rows_of(diff, metric):
    return next(t["rows"] for t in diff["metrics"] if t["metric"] == metric)


def row_of(diff, metric, function):
    return next((r for r in rows_of(diff, metric) if r["function"] == function), None)


def naive_p(r):
    """As if ticks were independent and no process differed from another: what tools without groups could say."""
    return normal_p(math.log(r["b"] / r["a"]) / math.sqrt(1 / r["ticks_a"] + 1 / r["ticks_b"]))


def equal_sides(program, processes, splits, raw, seed=1):
    """Random halves of the processes, as two builds of the same code. {metric: (rate of p < .05, rate of splits with a
    discovery)}; "any": of all metrics; "naive": self shares by √n."""
    out, draw, processes = {}, random.Random(seed), list(processes)
    with Comparer({v: program.exes[v] for v in ("base", "again")}, seed) as c:
        for split in range(splits):
            draw.shuffle(processes)
            half = len(processes) // 2
            diff = c.compare(("base", processes[:half]), ("again", processes[half:]))
            naive, every, found = [], [], []
            for table in diff["metrics"]:
                tested = [r for r in table["rows"] if r["p"] is not None]
                every += [r["p"] for r in tested]
                found.append(any(r["verdict"] == "changed" for r in tested))
                note(out, table["metric"], [r["p"] for r in tested], found[-1])
                for r in tested:
                    raw.write(f"{split}\t{table['metric']}\t{r['function']}\t{r['ticks_a']:g}\t{r['ticks_b']:g}\t"
                              f"{r['p']:.6g}\t{r['q']:.6g}\t{r['verdict']}\n")
                naive += [naive_p(r) for r in tested if table["metric"] == "self"]
            note(out, "any", every, any(found))
            note(out, "naive", naive, any(q <= 0.05 for q in discoveries(naive)))
    return out


def note(out, metric, ps, found):
    below, discovery = out.setdefault(metric, (Rate(), Rate()))
    below.add(sum(p < 0.05 for p in ps), len(ps))
    discovery.add(found, 1)


def discoveries(ps):
    """q by Benjamini and Hochberg."""
    least, out = 1, []
    for rank, p in sorted(enumerate(sorted(ps), 1), reverse=True):
        least = min(least, p * len(ps) / rank)
        out.append(least)
    return out


def sample(draw, processes, count):
    return [draw.choice(processes) for _ in range(count)]


def made(share, every):
    """By how much the function was made slower: {metric: increase}. Its work is done twice in 1 of so many calls, which
    takes a second time as long as the first if the processor's caches and predictions do not know it from the first."""
    part = 1 / every
    return {"time-per-call": part, "self": (1 + part) / (1 + part * share) - 1}


class Slower:
    """Comparisons of base with a slower variant, resampled from the pools. What the pools differ by is the truth of
    such comparisons."""

    def __init__(self, program, pools, raw, seed):
        self.program, self.pools, self.raw, self.function = program, pools, raw, program.slower[1]
        self.draw = random.Random(seed)
        self.comparer = Comparer({v: program.exes[v] for v in [*pools, "again"]}, seed)
        self.place = symbols(program.exes["base"])[self.function]
        ticks = sum(sum(p.ticks(self.place).values()) for p in pools["base"])
        self.ticks = ticks / len(pools["base"])
        self.share = ticks / sum(n for p in pools["base"] for n in p.used.values())

    def compare(self, variant, count, processes=None):
        return self.comparer.compare(("base", sample(self.draw, self.pools["base"], count)),
                                     (variant, sample(self.draw, processes or self.pools[variant], count)),
                                     "&metric=self,time-per-call")

    def whole(self, variant):
        """{metric: row of the function}, of the whole pools."""
        diff = self.comparer.compare(("base", self.pools["base"]), (variant, self.pools[variant]),
                                     "&metric=self,time-per-call")
        return {m: row_of(diff, m, self.function) for m in ("self", "time-per-call")}

    def intervals(self, comparisons):
        """(processes a side, [(metric, what it was made slower by, the pools' row, rate of intervals that hold the
        pools' change)], the rate of all)"""
        count, each, all_of = max(FEWEST, math.ceil(ENOUGH / self.ticks)), {}, Rate()
        variants = [v for v in self.pools if v != "base"]
        truth = {v: self.whole(v) for v in variants}
        for i in range(comparisons):
            variant, hits = variants[i % len(variants)], []
            diff = self.compare(variant, count)
            for metric, whole in truth[variant].items():
                r = row_of(diff, metric, self.function)
                if r is None or r["p"] is None:
                    continue
                hits.append(r["low"] <= whole["change"] <= r["high"])
                each.setdefault((metric, variant), Rate()).add(hits[-1], 1)
                self.raw.write(f"{i}\t{variant}\t{metric}\t{count}\t{r['ticks_a']:g}\t{r['ticks_b']:g}\t"
                               f"{whole['change']:.5f}\t{r['change']:.5f}\t{r['low']:.5f}\t{r['high']:.5f}\t"
                               f"{r['p']:.4g}\t{r['q']:.4g}\n")
            all_of.add(sum(hits), len(hits))
        return count, [(m, made(self.share, VARIANTS[v])[m], truth[v][m], rate)
                       for (m, v), rate in sorted(each.items())], all_of

    def power(self, repeats, sizes):
        """Of each size (percent, processes): (ticks of the function a side, functions tested, rate found alone, rate
        found among all). The slower side is made of the pool of equal ones: some ticks of the function are there
        twice."""
        pools = {}
        for percent, count in sizes:
            if percent not in pools:
                pools[percent] = slower(self.pools["base"], self.place, percent / 100, COPIES, self.draw)
            single, several, tested = Rate(), Rate(), 0
            for _ in range(repeats):
                diff = self.compare("again", count, pools[percent])
                r = row_of(diff, "time-per-call", self.function)
                single.add(r is not None and r["p"] is not None and r["p"] < 0.05, 1)
                several.add(r is not None and r["verdict"] == "changed", 1)
                tested += sum(r["p"] is not None for r in rows_of(diff, "time-per-call"))
            yield round(count * self.ticks), round(tested / repeats), single, several

    def rule(self, percent):
        """Processes a side with which one test finds an increase in 80 % of cases."""
        return math.ceil(2 * BUNDLES * POWER / math.log1p(percent / 100) ** 2 / self.ticks)


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
