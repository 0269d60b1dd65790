# not a test
"""The error rates of profctl diff, measured on pools of real profiles (pool.py): what equal sides look like, whether
intervals hold a known change, and how often a change of some size is found."""
import collections
import copy
import math
import os
import random
import subprocess

from pool import METRICS, TIMES, Linked, in_parallel, slower, symbols
from programs import VARIANTS

ENOUGH = 230  # ticks of the slower function a side: 150 are tested, and a sample may have fewer than its mean
FEWEST = 60   # processes a side, which are in 12 groups
PLANNED = ((10, 500), (5, 500))  # increases by so many percent, planned with so many processes a side
FULL = 4      # of so many splits one compares calls
PARTS = 4     # of the work, each with random numbers of its own
COPIES = 8    # of each process, in which other ticks of the slower function are there twice
SHARE = 0.19  # of the time, of the function whose increase is to be found
# Increases by so many percent, found with so many processes a side: asked in how many of a single test, and among all
# functions.
AT_SIZE = ((10, 3000, 1, 0.91), (5, 3000, 0.80, 0.19), (5, 10000, 1, 0.85))


class Rate:
    """A part of tests, and its standard error; tests of one group, a split or a comparison, depend on one another."""

    def __init__(self):
        self.groups = []

    def add(self, hits, tests):
        self.groups.append((hits, tests))

    @classmethod
    def of(cls, rates):
        """All of several together."""
        out = cls()
        out.groups = [group for rate in rates for group in rate.groups]
        return out

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


def naive_p(ticks_a, ticks_b, change):
    """As if ticks were independent and no process differed from another: what tools without groups could say."""
    return normal_p(change / math.sqrt(1 / ticks_a + 1 / ticks_b))


def equal_sides(program, pools, splits, raw, seed=1):
    """Random halves of a pool's processes, as two builds of the same code: so many splits of each pool, in one of FULL
    of which numbers of calls are compared, too. Of each pool {metric: (rate of p < .05, rate of splits with a
    discovery)}; "any": of all metrics; "naive": self shares by √n."""
    parts = [(pool, part) for pool in range(len(pools)) for part in range(PARTS)]
    out = [{} for _ in pools]

    def work(what):
        pool, part = what
        draw, processes, answers = random.Random(f"{seed} {what}"), list(pools[pool]), []
        with Linked({v: program.exes[v] for v in ("base", "again")}, f"{seed} {what}") as c:
            for i, split in enumerate(range(part, splits, PARTS)):
                draw.shuffle(processes)
                half, metrics = len(processes) // 2, TIMES if i % FULL else METRICS
                tests = list(c.tests(("base", processes[:half]), ("again", processes[half:]), metrics))
                answers.append((say_split(tests, metrics), raw_split(f"{pool}\t{split}", tests)))
        return answers

    for (pool, _), answers in zip(parts, in_parallel(work, parts)):
        for said, lines in answers:
            raw.write(lines)
            for metric, (hits, tests, found) in said.items():
                below, discovery = out[pool].setdefault(metric, (Rate(), Rate()))
                below.add(hits, tests)
                discovery.add(found, 1)
    return out


def say_split(tests, metrics):
    """{metric: (tests with p < .05, tests, whether there is a discovery)}"""
    ps, found = {m: [] for m in metrics}, dict.fromkeys(metrics, False)
    for metric, _, _, verdict, *numbers in tests:
        ps[metric].append(float(numbers[Linked.P]))
        found[metric] = found[metric] or verdict == "changed"
    if metrics == METRICS:
        ps["any"], found["any"] = [p for of in ps.values() for p in of], any(found.values())
    ps["naive"] = [naive_p(float(numbers[0]), float(numbers[1]), float(numbers[4]))
                   for metric, _, _, _, *numbers in tests if metric == "self"]
    found["naive"] = any(q <= 0.05 for q in discoveries(ps["naive"]))
    return {metric: (sum(p < 0.05 for p in of), len(of), found[metric]) for metric, of in ps.items()}


def raw_split(head, tests):
    """Lines of all tests of time; of the many others those with p < .05."""
    return "".join("\t".join([head, *test]) + "\n" for test in tests
                   if test[0] in TIMES or float(test[4 + Linked.P]) < 0.05)


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

    METRICS = ("self", "time-per-call")

    def __init__(self, program, pools, raw, seed):
        self.program, self.pools, self.raw, self.function, self.seed = program, pools, raw, program.slower[1], seed
        self.base = copy.copy(pools["base"][0])  # all of them together
        self.base.used = collections.Counter()
        for p in pools["base"]:
            self.base.used.update(p.used)
        self.places = symbols(program.exes["base"])
        self.ticks, self.share = self.find(self.function)

    def find(self, function):
        """(ticks of it in a process, its part of all ticks)"""
        ticks = sum(self.base.ticks(self.places[function]).values())
        return ticks / len(self.pools["base"]), ticks / sum(self.base.used.values())

    def in_parts(self, count, work, increase=0.02):
        """work(compare, draw, numbers below count that are this part's): all answers in one list. Comparisons plan for
        the increase."""
        def one(part):
            draw = random.Random(f"{self.seed} {part}")
            with Linked({v: self.program.exes[v] for v in [*self.pools, "again"]}, f"{self.seed} {part}") as c:
                c.plan_for(increase)
                return work(lambda a, b: c.compare(a, b, self.METRICS), draw, range(part, count, PARTS))
        return [answer for answers in in_parallel(one, range(PARTS)) for answer in answers]

    def whole(self):
        """{variant: {metric: row of the function}}, of the whole pools."""
        variants = [v for v in self.pools if v != "base"]

        def work(compare, _, numbers):
            return [(variants[i], compare(("base", self.pools["base"]), (variants[i], self.pools[variants[i]])))
                    for i in numbers]

        return {v: {m: row_of(diff, m, self.function) for m in self.METRICS}
                for v, diff in sorted(self.in_parts(len(variants), work))}

    def intervals(self, comparisons):
        """(processes a side, [(metric, work that was added, the pools' row, rate of intervals that hold the pools'
        change)], the rate of all)"""
        count, truth, each, all_of = max(FEWEST, math.ceil(ENOUGH / self.ticks)), self.whole(), {}, Rate()
        variants = list(truth)

        def work(compare, draw, numbers):
            sides = ((v, sample(draw, self.pools["base"], count), sample(draw, self.pools[v], count))
                     for v in (variants[i % len(variants)] for i in numbers))
            return [(v, compare(("base", a), (v, b))) for v, a, b in sides]

        for i, (variant, diff) in enumerate(self.in_parts(comparisons, work)):
            hits = []
            for metric, whole in truth[variant].items():
                r = row_of(diff, metric, self.function)
                if r is None:
                    continue
                hits.append(r["low"] <= whole["change"] <= r["high"])
                each.setdefault((metric, variant), Rate()).add(hits[-1], 1)
                self.raw.write(f"{i}\t{variant}\t{metric}\t{count}\t{r['ticks_a']:g}\t{r['ticks_b']:g}\t"
                               f"{whole['change']:.5f}\t{r['change']:.5f}\t{r['low']:.5f}\t{r['high']:.5f}\t"
                               f"{r['p']:.4g}\t{r['q']:.4g}\n")
            all_of.add(sum(hits), len(hits))
        return count, [(m, made(self.share, VARIANTS[v])[m], truth[v][m], rate)
                       for (m, v), rate in sorted(each.items())], all_of

    def of_size(self, share):
        """The function whose part of all ticks is nearest to this."""
        return min(sorted(self.places), key=lambda name: abs(self.find(name)[1] - share))

    def power(self, function, repeats, sizes):
        """Of each size (percent, processes): (ticks of the function a side, functions tested, rate found alone, rate
        found among all). The slower side is made of the pool of equal ones: some ticks of the function are there
        twice."""
        draw, pools = random.Random(self.seed), {}
        for percent, _ in sizes:
            if percent not in pools:
                pools[percent] = slower(self.pools["base"], self.places[function], percent / 100, COPIES,
                                        draw)
        for percent, count in sizes:
            def work(compare, draw, numbers):
                return [rows_of(compare(("base", sample(draw, self.pools["base"], count)),
                                        ("again", sample(draw, pools[percent], count))), "time-per-call")
                        for _ in numbers]

            single, several, tested = Rate(), Rate(), 0
            for rows in self.in_parts(repeats, work):
                r = next((r for r in rows if r["function"] == function), None)
                single.add(r is not None and r["p"] < 0.05, 1)
                several.add(r is not None and r["verdict"] == "changed", 1)
                tested += len(rows)
            yield round(count * self.find(function)[0]), round(tested / repeats), single, several

    def planned(self, function, repeats, percent, count):
        """As diff --plan says: two equal sides of count processes are compared, and then sides with as many times the
        data as the row of the function says. Of a test of this function alone and of one among all: (processes a side,
        functions tested, rate found), as many as repeats."""
        increase, metric = percent / 100, "time-per-call"
        grown = slower(self.pools["base"], self.places[function], increase, COPIES, random.Random(self.seed))

        def sides(draw, pool, n):
            return ("base", sample(draw, self.pools["base"], n)), ("again", sample(draw, pool, n))

        def work(compare, draw, numbers):
            return [one(compare, draw) for _ in numbers]

        def one(compare, draw):
            found = []
            for said in ("needed_alone", "data_needed"):
                row = row_of(compare(*sides(draw, self.pools["base"], count)), metric, function)
                n = math.ceil(count * row[said])
                rows = rows_of(compare(*sides(draw, grown, n)), metric)
                row = next(r for r in rows if r["function"] == function)
                alone = said == "needed_alone"
                found.append((n, len(rows), row["p"] <= 0.05 if alone else row["verdict"] == "changed"))
            return found

        answers = self.in_parts(repeats, work, increase)
        for way in zip(*answers):
            rate, sizes, tested = Rate(), *zip(*((n, rows) for n, rows, _ in way))
            for *_, found in way:
                rate.add(found, 1)
            yield sizes, sum(tested) / len(tested), rate


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
