"""How old a report of live processes is: as_of in JSON, the line Live in text, its age on a terminal. A tag of before
is not confirmed once the process has ended, even without anything new."""
import datetime
import json
import os
import re
import signal
import subprocess
import time

from attach import sync, wait_for
from harness import PROFCTL, Daemon, Tap, run, run_until
from look import SGR, Terminal, terminal_env
from restart import Bed, begin

LINE = re.compile(r"^Live      as of (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ): 1 process was still running$", re.M)
SHOWN = re.compile(r"^Live      as of \S+Z \(\d+ (s|min) ago\): 1 process was still running$", re.M)


def moment(text):
    return datetime.datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text).replace("Z", "+00:00")).timestamp()


def heading(text):
    """The lines before the first table, without the empty one."""
    return re.split(r"\n\s*(?:Flat profile:|Call graph)\n", text)[0].splitlines()


def live(tap, d, p, began):
    said = json.loads(d.ctl("report", p.exe, "--json").stdout)["provenance"]
    tap.point(said["live"] == 1 and began - 1 <= moment(said["as_of"]) <= time.time() + 1,
              "JSON: how many live, and as of when", (began, said))
    text = d.ctl("report", p.exe).stdout
    tap.point(bool(LINE.search(text)), "text: the time, which stays true in a file", text[:800])
    heads = [(words, heading(d.ctl(words[0], p.exe, *words[1:]).stdout))
             for words in (["report"], ["report", "--flat"], ["report", "-l", f"host={os.uname().nodename}"],
                           ["report", "--since", "now-1h", "--limit", "1"], ["top"], ["top", "--limit", "1"])]
    tap.point(all("Coverage  unknown: no tick in " in "\n".join(head) and 4 < len(head) <= 7 for _, head in heads),
              "six lines are before the tables, and one that says what is wrong", heads)
    full = heading(d.ctl("report", p.exe, "--verbose").stdout)
    tap.point(any(line.startswith("Coverage ") for line in full) and any("all stored time" in line for line in full),
              "--verbose: all lines", full)
    shown = SGR.sub("", Terminal([PROFCTL, "report", p.exe, "--no-pager"], terminal_env(d)).text)
    tap.point(bool(SHOWN.search(shown)), "on a terminal: how long ago that was", shown[:800])
    shown = SGR.sub("", Terminal([PROFCTL, "top", p.exe, "-n", "1"], terminal_env(d)).text)
    tap.point(bool(SHOWN.search(shown)), "top: so does it", shown[:800])
    said_by = re.search(r"^From .*$", text, re.M).group()
    tap.point(said_by.startswith("From      1 process started, 1 machine"),
              "a live process is no number of uploads", said_by)
    done = d.ctl("report", p.exe, "--json", "--until", said["as_of"])
    past = json.loads(done.stdout)["provenance"] if done.returncode == 0 else {"live": 0, "as_of": None}
    tap.point((past["live"], past["as_of"]) == (0, None), "a time range that ends before the latest reading is not "
              "live", past)


def ended(tap, d, p):
    build = next(r["build_id"] for r in d.json("builds", "--json")["rows"] if r["name"] == p.exe)
    pages = [f"/api/v1/builds/{build}/report", "/api/v1/builds"]

    def confirmed():
        tags = [d.get(page)[1]["etag"] for page in pages]
        return [d.get(page, If_None_Match=tag)[0] for page, tag in zip(pages, tags)] == [304, 304] and tags
    tags = wait_for(confirmed)
    p.tell("kill")
    p.process.wait()
    sync(d)
    report, builds = (d.get(page, If_None_Match=tag) for page, tag in zip(pages, tags))
    said = json.loads(report[2])["provenance"] if report[0] == 200 else report
    tap.point(report[0] == 200 and (said["live"], said["as_of"], said["exact"]) == (0, None, True),
              "it has ended: what was kept is not confirmed, and the report is not live", said)
    tap.point(builds[0] == 200, "nor is the list of builds confirmed", builds)
    text = d.ctl("report", p.exe).stdout
    tap.point(not LINE.search(text), "the text has no such line", text[:800])


def library(tap, d):
    done = d.ctl("report", "libc.so.6")
    tap.point(done.returncode == 0 and "\nShown     this build alone, in every process that loaded it\n"
              in done.stdout, "report of a library's name", done)


def unticked(tap, d):
    exe = os.path.join(d.folder, "spin")
    source = "#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC / 5) { } return 0; }\n"
    built = run("gcc", "-pg", "-x", "c", "-o", exe, "-", input=source)
    assert built.returncode == 0, built.stderr
    assert d.ctl("run", "--clock", "off", "--", exe).returncode == 0
    text, said = d.ctl("report", exe).stdout, json.loads(d.ctl("report", exe, "--json").stdout)["collector"]
    tap.point(re.search(r"^ +\d+ms without ticks: the clock was off$", text, re.M) is not None
              and said["without_ticks_reason"] == "the clock was off" and said["without_ticks_seconds"] >= 0.19,
              "why there are no ticks: the collector's clock was off", (text[:1200], said))


def ticked(tap, d):
    source = "#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC / 2) { } return 0; }\n"
    exe, done = run_until(lambda path, _: "ticks-lost" not in "".join(heading(d.ctl("report", path).stdout)),
                          d, "busy", ["-pg", "-x", "c", "-"], "run", "--", (), input=source)
    assert done.returncode == 0, done.stderr
    heads = [heading(d.ctl(*words).stdout) for words in (
        ["report", exe], ["report", exe, "--flat"], ["top", exe, "--limit", "1"],
        ["report", exe, "-l", f"host={os.uname().nodename}", "--since", "now-1h", "--limit", "1", "--focus", "main"])]
    # A kernel whose processors are busy delivers ticks late, which the report says in a line of its own.
    usual = [[line for line in head if "samples stood for" not in line] for head in heads]
    tap.point(all(4 <= len(head) <= 6 for head in usual), "where nothing is wrong, six lines at most are before them",
              heads)
    for words in (["report", exe], ["report", exe, "--flat"], ["report", exe, "--graph", "--limit", "1"]):
        text = d.ctl(*words).stdout
        tap.point(text.count("*") == 0 or text.count("\n* ") == 1 < text.count("*"),
                  f"{' '.join(words[2:])}: a mark is explained where it follows", text)


def uncounted(tap, d):
    """A program that calls nothing: no tick is inside the collector, which is no overhead of exactly 0."""
    spin = subprocess.Popen([PROFCTL, "run", "-l", "does=spin", "--", "sh", "-c", "while :; do :; done"], env=d.env)
    row = wait_for(lambda: (n := d.json("ps", "-l", "does=spin", "--json")["rows"]) and n[0]["overhead"] is not None
                   and n[0])
    shown, pids = d.ctl("ps", "-l", "does=spin").stdout, d.ctl("ps", "--pids", "-l", "does=spin").stdout.split()
    # 3 by the number of samples, which are at least 30. On a busy machine a sample can stand for several ticks.
    tap.point(row["overhead"] == 0 and 3 / row["ticks"] - 1e-12 < row["overhead_below"] <= 3 / 30
              and re.search(r" <\d+\.\d\d% ", shown), "ps: what the overhead is below", (row, shown))
    tap.point(pids == [str(row["pid"])], "ps --pids: the process ids alone", pids)
    os.kill(int(pids[0]), signal.SIGKILL)
    spin.wait()


# Generated code that counts down from its argument; with an argument, main runs it for 0.4 s of CPU time and then work.
GENERATED = """#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__)
static const unsigned char code[] = {0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3};
#else
static const unsigned code[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0};
#endif
static volatile int n;
__attribute__((noinline)) void work(void) { for (int i = 0; i < 1000000; i++) n += i; }
int main(int argc, char **argv)
{
    void *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    __builtin___clear_cache(page, (char *)page + sizeof code);
    void (*generated)(long);
    memcpy(&generated, &page, sizeof page);
    if (argc < 2) generated(400000000);
    for (clock_t end = clock() + CLOCKS_PER_SEC * 2 / 5; argc > 1 && clock() < end;) generated(1000000);
    for (clock_t end = clock() + CLOCKS_PER_SEC * 2 / 5; argc > 1 && clock() < end;) work();
    return (argv[0] == 0);
}
"""


def generated(tap, d):
    """Ticks in generated code are in the total, as [outside]: percentages of others are shares of all of it."""
    exe = os.path.join(d.folder, "generated")
    assert run("gcc", "-pg", "-O1", "-x", "c", "-o", exe, "-", input=GENERATED).returncode == 0
    assert d.ctl("run", "--rate", "250", "--", exe, "both").returncode == 0
    report, text = d.json("report", exe, "--json"), d.ctl("report", exe).stdout
    f, totals, c = {x["name"]: x for x in report["functions"]}, report["totals"], report["collector"]
    ticks = sum(x["ticks"] for x in report["functions"])
    tap.point(f["[outside]"]["self_seconds"] > 0.2 and abs(f["[outside]"]["self_seconds"] - c["outside_seconds"]) < 1e-9
              and abs(sum(x["self_seconds"] for x in report["functions"]) - totals["seconds"]) < 1e-9
              and ticks == totals["ticks"] == round(totals["seconds"] * 250)
              and abs(totals["seconds"] - c["attributed_seconds"] - c["outside_seconds"]) < 1e-9,
              "the total has the ticks in generated code", (f["[outside]"], totals, c))
    tap.point(re.search(r"^ *[3-7]\d\.\d\d .* \[outside\]$", text, re.M) and "import" not in text, "so has the text",
              text)
    work = next(r for r in d.json("functions", "--name", "work", "--json")["rows"] if r["name"] == "work")
    most = 100 * f["work"]["self_seconds"] / totals["seconds"]  # there are other programs
    tap.point(0 < work["percent"] <= most + 1e-6 and work["percent"] < 75,
              "and what profctl functions divides by", (work, totals))
    build = report["build_id"]
    answers = [json.loads(d.get(f"/api/v1/{path}")[2]) for path in (f"builds/{build}/groups?step=1d", "load")]
    sums = (sum(r["seconds"] for r in answers[0]["rows"]),
            sum(sum(r["seconds"]) for r in answers[1]["rows"] if r["build_id"] == build))
    tap.point(all(abs(s - totals["seconds"]) < 1e-6 for s in sums), "and what groups and the overview's series have",
              (sums, totals))
    side = json.loads(d.get(f"/api/v1/diff?a={build}&b={build}&metric=self")[2])["a"]
    tap.point(abs(side["seconds"] - totals["seconds"]) < 1e-6 and side["ticks"] == totals["ticks"],
              "and each side of a comparison", side)
    alone = d.json("report", exe, "--json", "--scope", "build")
    tap.point(not any(x["self_seconds"] for x in alone["functions"] if x["name"] == "[outside]"),
              "of a build alone it is no part", alone["totals"])
    only = os.path.join(d.folder, "only")
    assert run("gcc", "-pg", "-O1", "-x", "c", "-o", only, "-", input=GENERATED).returncode == 0
    assert d.ctl("run", "--rate", "250", "--", only).returncode == 0
    report, text = d.json("report", only, "--json"), d.ctl("report", only).stdout
    tap.point(abs(report["totals"]["seconds"] - report["collector"]["sampled_seconds"]) < 0.05
              and report["totals"]["seconds"] > 0.05 and report["functions"][0]["name"] == "[outside]"
              and " [outside]\n" in text, "also where there are hardly others, or none", (report["totals"], text))


with Tap() as tap, Daemon("--harvest-interval", "1s") as d, Bed(harvester=False) as bed:
    began = time.time()
    p = begin(d, bed)
    try:
        live(tap, d, p, began)
        library(tap, d)
        generated(tap, d)
        ended(tap, d, p)
    finally:
        p.end()
    unticked(tap, d)
    ticked(tap, d)
    uncounted(tap, d)
