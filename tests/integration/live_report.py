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
from harness import PROFCTL, Daemon, Tap, run
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
    exe = os.path.join(d.folder, "busy")
    source = "#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC / 2) { } return 0; }\n"
    built = run("gcc", "-pg", "-x", "c", "-o", exe, "-", input=source)
    assert built.returncode == 0, built.stderr
    assert d.ctl("run", "--", exe).returncode == 0
    heads = [heading(d.ctl(*words).stdout) for words in (
        ["report", exe], ["report", exe, "--flat"], ["top", exe, "--limit", "1"],
        ["report", exe, "-l", f"host={os.uname().nodename}", "--since", "now-1h", "--limit", "1", "--focus", "main"])]
    tap.point(all(4 <= len(head) <= 6 for head in heads), "where nothing is wrong, six lines at most are before them",
              heads)
    for words in (["report", exe], ["report", exe, "--flat"], ["report", exe, "--graph", "--limit", "1"]):
        text = d.ctl(*words).stdout
        tap.point(text.count("*") == 0 or text.count("\n* ") == 1 < text.count("*"),
                  f"{' '.join(words[2:])}: a mark is explained where it follows", text)


def uncounted(tap, d):
    """A program that calls nothing: no tick is inside the collector, which is no overhead of exactly 0."""
    spin = subprocess.Popen([PROFCTL, "run", "-l", "does=spin", "--", "sh", "-c", "while :; do :; done"], env=d.env)
    row = wait_for(lambda: (n := d.json("ps", "-l", "does=spin", "--json")["rows"]) and n[0]["ticks"] >= 30 and n[0])
    shown, pids = d.ctl("ps", "-l", "does=spin").stdout, d.ctl("ps", "--pids", "-l", "does=spin").stdout.split()
    tap.point(row["overhead"] == 0 and abs(row["overhead_below"] - 3 / row["ticks"]) < 1e-12
              and re.search(r" <\d+\.\d\d% ", shown), "ps: what the overhead is below", (row, shown))
    tap.point(pids == [str(row["pid"])], "ps --pids: the process ids alone", pids)
    os.kill(int(pids[0]), signal.SIGKILL)
    spin.wait()


with Tap() as tap, Daemon("--harvest-interval", "1s") as d, Bed(harvester=False) as bed:
    began = time.time()
    p = begin(d, bed)
    try:
        live(tap, d, p, began)
        library(tap, d)
        ended(tap, d, p)
    finally:
        p.end()
    unticked(tap, d)
    ticked(tap, d)
    uncounted(tap, d)
