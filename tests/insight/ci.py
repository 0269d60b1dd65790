#!/usr/bin/python3
"""schema/ci/profd-compare.sh as a pipeline runs it. Without arguments: a C++ operator that is called more often fails
the step, in Markdown and JUnit too; equal trees pass it; a tree or benchmark that fails is reported. The numbers of
calls are exact, so that no load of the machine matters.

ci.py FOLDER BZIP2-TREE [seeded=N] [equal=N]: make ci-trial. The script compares Debian's bzip2 with one that sorts one
block of eight twice, and with itself, with its own threshold; prints each answer, and how many were right. The trees
are built once, before the first comparison. A comparison that fails, or needs more than LONG seconds, counts as a
regression that was not found, and as an alarm between equal trees."""
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Daemon, LONG, PROFCTL, PROFD, ROOT, Tap, run  # noqa: E402

SCRIPT = os.path.join(ROOT, "schema", "ci", "profd-compare.sh")
SOURCE = """struct Set { int bits; };
__attribute__((noinline)) Set operator|(Set a, Set b) { return {a.bits | b.bits}; }
__attribute__((noinline)) int same(int i) { return i ^ 5; }
int main(int count, char **)
{
    Set all = {0};
    for (int i = 0; i < %d; i++) all = all | Set{same(i)};
    return count > 1 || all.bits == 0;
}
"""
BUILD_BZIP2 = "make -s libbz2.a bzip2.o CFLAGS='-O2 -g -pg -D_FILE_OFFSET_BITS=64' >/dev/null && " \
              "gcc -pg -o bzip2 bzip2.o libbz2.a"


def step(report, *words, **variables):
    return run("timeout", LONG, "sh", SCRIPT, *words, timeout=2 * LONG,
               env=dict(os.environ, PROFD=PROFD, PROFCTL=PROFCTL, REPORT=report, **variables))


def tree(folder, name, calls):
    path = os.path.join(folder, name)
    os.mkdir(path)
    with open(os.path.join(path, "main.cc"), "w") as f:
        f.write(SOURCE % calls)
    return path


def short(tap, folder):
    old, new, equal = (tree(folder, n, calls) for n, calls in (("old", 40), ("new", 50), ("equal", 40)))
    rule = {"BUILD": "g++ -O1 -g -pg -o set main.cc", "FAIL_ON": "calls-per-process>2%"}
    done = step(folder, old, new, "set", **rule)
    suite = xml.parse(os.path.join(folder, "profd-diff.xml")).getroot() if done.returncode == 1 else None
    failed = suite is not None and [c.get("name") for c in suite if c.find("failure") is not None]
    tap.point(failed and sorted(failed) == ["operator|(Set, Set)", "same(int)"]
              and suite.get("failures") == "2" and suite.get("tests") == str(len(suite))
              and suite.get("skipped") == str(len(suite.findall("testcase/skipped"))),
              "two functions are called 25 % more often: status 1, and two tests of JUnit fail", (done, failed))
    with open(os.path.join(folder, "profd-diff.md")) as f:
        text = f.read()
    rows = [line for line in text.splitlines() if line.startswith("| <code>")]
    tap.point(text.startswith("**") and "compared group by group" in text
              and "\ncalls-per-process by more than 2%: 2 certainly\n" in text
              and [r.split("|")[2:5] for r in rows] == [[" 40 ", " 50 ", " +25.0% "]] * 2
              and all(r.count("|") == 7 for r in rows) and text.count("```") == 2,
              "Markdown has a row of seven cells for each of them, however they are named", text)
    done = step(folder, old, equal, "set", **rule)
    tap.point(done.returncode == 0 and "<failure" not in open(os.path.join(folder, "profd-diff.xml")).read(),
              "equal trees pass", done)
    for words, more, sentence in ((("set",), {"BUILD": "false"}, f"BUILD failed in {old}"),
                                  (("set", "wrong"), {}, f"the benchmark failed in {new}"),
                                  (("set",), {"PROFD": "/bin/false"}, "profd did not start")):
        done = run("sh", SCRIPT, old, new, *words, env=dict(os.environ, **{"PROFD": PROFD, "PROFCTL": PROFCTL, **rule,
                                                                          **more}))
        tap.point(done.returncode == 2 and sentence in done.stderr, f"status 2: {sentence.replace(folder, '')}", done)
    for trees in ((folder + "/no", new), ("", new), (old, "")):
        done = run("sh", SCRIPT, *trees, "set", env=dict(os.environ, PROFD=PROFD, PROFCTL=PROFCTL, **rule))
        tap.point(done.returncode == 2 and "there is no tree" in done.stderr, "a mistyped tree is no pass", done)
    file = os.path.join(folder, "file")
    open(file, "w").close()
    done = step(file, old, equal, "set", RUNS="2", **rule)
    tap.point(done.returncode == 2 and "REPORT" in done.stderr, "a REPORT that cannot be written is no regression",
              done)
    done = run(PROFCTL, "diff", "a", "b", "-f", "junit")
    tap.point(done.returncode == 64 and "junit needs --fail-on" in done.stderr, "JUnit without a threshold", done)


def pairs(tap, folder):
    """Processes with one value of compare_pair are in one random group, whatever their version."""
    with Daemon() as d:
        for version in ("old", "new"):
            for pair in (1, 2, 3, 4) * 2:
                done = d.ctl("run", "--require-daemon", "-l", f"version={version}", "-l", f"compare_pair={pair}", "--",
                             os.path.join(folder, version, "set"))
                assert done.returncode == 0, done.stderr
        for more in (), ("--paired",):
            done = d.ctl("diff", "set@version=old", "set@version=new", "--json", *more)
            diff = json.loads(done.stdout)
            tap.point([diff[s]["processes_started"] for s in "ab"] == [8, 8]
                      and diff["a"]["groups"] == diff["b"]["groups"] <= 4 and diff["paired"] == bool(more),
                      f"16 processes in 4 pairs are in at most 4 groups{': paired' if more else ''}", diff)
        done = d.ctl("diff", "set@version=old", "set@version=new", "--paired")
        tap.point(", compared group by group" in done.stdout and "is on both" not in done.stdout,
                  "two builds are compared group by group, and nothing is said to be on both sides", done)


def cpu_seconds(tree, words):
    process = subprocess.Popen(["./bzip2", *words], cwd=tree, stdout=subprocess.DEVNULL)
    usage = os.wait4(process.pid, 0)[2]
    return usage.ru_utime + usage.ru_stime


def write_words(size):
    """Text of which all blocks of bzip2 cost about the same: 2,000 words, a few of them often."""
    draw = random.Random(1)
    vocabulary = ["".join(draw.choice("etaoinshrdlucm") for _ in range(draw.randint(2, 9))) for _ in range(2000)]
    return " ".join(vocabulary[min(int(draw.paretovariate(0.6)), 2000) - 1] for _ in range(size // 4))[:size]


def trial(folder, source, wanted):
    trees = {name: os.path.join(folder, name) for name in ("old", "new", "equal")}
    text = os.path.join(folder, "text")
    os.makedirs(folder, exist_ok=True)
    with open(text, "w") as f:
        f.write(write_words(1499000))
    for path in trees.values():
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(source, path, ignore=shutil.ignore_patterns("*.o", "*.a", "bzip2", "gmon.out"))
    path = os.path.join(trees["new"], "compress.c")
    with open(path) as f:
        before = f.read()
    after = before.replace("BZ2_blockSort ( s );\n", "BZ2_blockSort ( s );\n      if (s->blockNo % 8 == 1) "
                           "BZ2_blockSort ( s );\n")
    assert after != before, "compress.c has another form"
    with open(path, "w") as f:
        f.write(after)
    for path in trees.values():
        assert run("sh", "-c", BUILD_BZIP2, cwd=path).returncode == 0
    words = ["-1", "-c", text]
    spent = [[cpu_seconds(trees[n], words) for n in ("old", "new")] for _ in range(100)]
    truth = statistics.mean(b for _, b in spent) / statistics.mean(a for a, _ in spent) - 1
    print(f"bzip2 needs {statistics.mean(a for a, _ in spent):.3f} s of CPU time. With the regression, 100 processes "
          f"of each in turn needed {100 * truth:+.1f} %.\nRUNS={os.environ.get('RUNS', 60)}; "
          f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    right = True
    for name, kind, n, least, most in (("new", "with the regression", wanted["seeded"], 0.9, 1),
                                       ("equal", "without", wanted["equal"], 0, 0.075)):
        alarms = failed = 0
        for i in range(n):
            done = step(folder, trees["old"], trees[name], "bzip2", *words, BUILD="true")
            if done.returncode not in (0, 1):
                failed += 1
                why = f"no answer after {LONG} s" if done.returncode == 124 else f"failed: {done.stderr.strip()}"
                print(f"{kind} {i + 1}: status {done.returncode}, {why}; this counts as a wrong answer", flush=True)
                continue
            alarms += done.returncode
            with open(os.path.join(folder, "profd-diff.md")) as f:
                row = re.search(r"<code>each process</code> \| (.*) \|", f.read())[1]
            print(f"{kind} {i + 1}: status {done.returncode}, {row}", flush=True)
        print(f"{kind}: {alarms} alarms in {n} comparisons, {failed} of which gave no answer\n", flush=True)
        right &= n * least <= alarms and alarms + failed * (least == 0) <= n * most
    return right


if len(sys.argv) > 1:
    given = {"seeded": 40, "equal": 200, **{k: int(v) for k, v in (w.split("=") for w in sys.argv[3:])}}
    sys.exit(not trial(os.path.abspath(sys.argv[1]), sys.argv[2], given))
with Tap() as tap, tempfile.TemporaryDirectory(prefix="profd-ci-") as folder:
    short(tap, folder)
    pairs(tap, folder)
