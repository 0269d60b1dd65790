#!/usr/bin/python3
"""profctl diff: two versions of a real program, of which one function got slower, one is called once more, one was
moved, one renamed, one inlined, and one is new. The counts of 96 processes a side are made up, so that every verdict is
known."""
import csv
import io
import json
import os
import random
import re
import shutil
import sys

sys.dont_write_bytecode = True
from harness import Daemon, Tap, run, until  # noqa: E402
from shop import NOW, PROCESSES, after_call, build, build_id, fleet, send, upload  # noqa: E402
from wire import Wire, field  # noqa: E402

OLD = """__attribute__((noinline)) int quote(int i) { while (i > 9) n += i /= 7; return n; }
__attribute__((noinline)) static int wrap(int i) { return n * i; }"""
NEW = """__attribute__((noinline)) int fresh(int i) { return n |= i; }
__attribute__((noinline)) int quote_all(int i) { while (i > 9) n += i /= 7; return n; }
static inline __attribute__((always_inline)) int wrap(int i) { return n * i; }"""

TWINS = """__attribute__((noinline)) int quiet(int i) { return n += 5 * i; }
__attribute__((noinline)) int seldom(int i) { return n += 7 * i; }
__attribute__((noinline)) int left(int i) { return n += 3 * i; }
__attribute__((noinline)) int right(int i) { return n += 3 * i; }"""


def table(diff, metric):
    return next(t for t in diff["metrics"] if t["metric"] == metric)


def row(diff, metric, function, caller=None):
    return next((r for r in table(diff, metric)["rows"] if r["function"] == function
                 and r["caller"] in (None, caller or r["caller"])), None)


def within(r, truth):
    return r["low"] <= truth <= r["high"]


def verdicts(tap, d, a, b):
    done = d.ctl("diff", a, b, "--json")
    tap.point(done.returncode == 0, "two versions are compared", done.stderr)
    diff = json.loads(done.stdout)
    sides = diff["a"], diff["b"]
    tap.point(all(s["processes_started"] == PROCESSES and s["groups"] >= 12 for s in sides) and not diff["paired"],
              "each side has its processes, in random groups", sides)
    r = row(diff, "time-per-call", "parse")
    tap.point(r["verdict"] == "changed" and within(r, 0.3), "parse is 30 % slower, and the interval holds that", r)
    others = [row(diff, "time-per-call", f)["verdict"] for f in ("render", "idle", "step")]
    tap.point(table(diff, "time-per-call")["common"] is None and "changed" not in others[1:],
              "four functions stand for no common factor; idle and step did not change", others)
    r = row(diff, "calls-per-parent", "render", "step")
    tap.point((r["verdict"], r["a"], r["b"], r["p"]) == ("constant-changed", 2, 3, None),
              "render is called 3 times a step instead of 2, without a doubt", r)
    r = row(diff, "calls-per-parent", "parse", "step")
    tap.point(r["verdict"] == "constant", "parse is called once a step, as before", r)
    share = [s / (s + 10) for s in (4, 5.2)]
    r = row(diff, "self", "parse")
    tap.point(r["verdict"] == "changed" and within(r, share[1] / share[0] * 15.2 / 16.2 - 1),
              "its share grew by what fresh left of it", r)
    tap.point([f["function"] for f in diff["only_in_b"]["rows"]] == ["fresh"],
              "fresh is only in B; parse is matched in spite of its new address", diff["only_in_b"])
    r = row(diff, "calls-per-parent", "quote_all", "step")
    tap.point(r and (r["renamed_from"], r["verdict"]) == ("quote", "constant") and not any(
        r["renamed_from"] for r in table(diff, "calls-per-parent")["rows"] if r["function"] != "quote_all"),
        "quote was renamed: the code is the same", r or table(diff, "calls-per-parent"))
    tap.point([(f["function"], f["inlined"], f["idle"]) for f in diff["only_in_a"]["rows"]] == [("wrap", True, False)]
              and not any(diff["only_in_b"]["rows"][0][flag] for flag in ("inlined", "idle")),
              "wrap is only in A: B has inlined it", diff["only_in_a"])
    return diff


def words(tap, d, a, b):
    text = d.ctl("diff", a, b, "--plan").stdout
    lines = [line for line in text.splitlines() if line.startswith("  parse ")]
    tap.point(any("slower" in line for line in lines) and "Seen only in B: 1 function" in text,
              "the text says which function is slower", text)
    tap.point("  wrap  self 0%" in text and "; B has inlined it\n" in text
              and "quote_all (in A quote, the same code)" in d.ctl("diff", a, b, "--all").stdout,
              "it says what was inlined, and what was renamed", text)
    tap.point("the same in every group of processes" in text and "2% needs" in text,
              "it says what is certain, and how much data 2 % needs", text)
    table = list(csv.DictReader(io.StringIO(d.ctl("diff", a, b, "-f", "csv").stdout, newline="")))
    tap.point(all(any(r["function"] == "parse" and r["metric"] == m for r in table) for m in ("self", "time-per-call"))
              and all(None not in r and None not in r.values() for r in table), "CSV", table[:3])
    tap.point([(r["metric"], r["function"], r["verdict"], float(r["b"] or r["a"]) > 0, r["a"] == "") for r in table
               if r["verdict"].startswith("only-in-") and r["caller"] == ""]
              == [("self", "fresh", "only-in-b", True, True), ("self", "wrap", "only-in-a", False, False),
                  ("total", "fresh", "only-in-b", True, True), ("total", "wrap", "only-in-a", False, False)],
              "with what one side only has", [r for r in table if r["verdict"].startswith("only-in")])
    both = d.ctl("diff", a, a, "--metric", "self,time-per-call")
    tap.point("no significant change" in both.stdout and both.returncode == 0
              and "\nBoth sides are of one time: what was counted then is on both.\n" in both.stdout,
              "a build is no different from itself", both.stdout)
    tap.point(" 1 functions" not in text + both.stdout, "one function is no functions", text)


def results(tap, d, a, b):
    def status(*options):
        return d.ctl("diff", a, b, *options).returncode
    tap.point(status("--fail-on", "time-per-call>20%") == 1, "exit 1: parse is certainly more than 20 % slower")
    tap.point(status("--fail-on", "time-per-call>20%", "--watch", "idle") == 0, "exit 0: idle is not")
    close = [status("--fail-on", "time-per-call>30%", "-w", "parse", *more) for more in ((), ("--strict",))]
    tap.point(close == [0, 3], "30 % cannot be told from 30 %: exit 0, or 3 with --strict", close)
    tap.point(status("--fail-on", "self>2%", "--watch", "nobody", "--strict") == 3, "nothing is known of nobody")
    for options, word in ((("--fail-on", "self>x"), "fail_on"), (("--metric", "speed"), "metric"),
                          (("--fdr", "2"), "fdr"), (("--strict",), "--fail-on")):
        done = d.ctl("diff", a, b, *options)
        tap.point(done.returncode == 64 and word in done.stderr, f"{options} is refused", done.stderr)


def sides(tap, d, a, b):
    done = d.ctl("diff", "shop@version=1", "shop@version=2", "--json", "--metric", "self")
    diff = json.loads(done.stdout) if done.returncode == 0 else {}
    tap.point(diff and [diff[s]["build_id"] for s in "ab"] == [build_id(a), build_id(b)]
              and diff["a"]["match"] == 'version="1"', "versions are found by label", done.stderr + done.stdout[:300])
    done = d.ctl("diff", f"{a}@version=1", f"{b}@version=2", "--json", "--metric", "self")
    named = json.loads(done.stdout) if done.returncode == 0 else {}
    tap.point(named and named["a"] == diff["a"] and named["b"] == diff["b"], "and of an executable",
              done.stderr + done.stdout[:300])
    os.symlink(a, os.path.join(d.folder, "alias"))
    done = d.ctl("diff", "alias", b, "--json", "--metric", "self",
                 env=dict(d.env, PATH=d.folder + ":" + os.environ["PATH"]))
    linked = json.loads(done.stdout) if done.returncode == 0 else {}
    tap.point(linked and linked["a"]["build_id"] == build_id(a), "a command of PATH that is a link", done.stderr)
    for verb, *rest in (["report"], ["cycles"], ["never-called"], ["export", "-o", "-"], ["callers", "parse"],
                        ["annotate", "parse", "--exe", a], ["groups", "--by", "version"]):
        named, plain = (d.ctl(verb, shown, *rest, *more, binary=True) for shown, more in
                        (("shop@version=1", ()), (a, ("-l", "version=1"))))
        tap.point(named.returncode == plain.returncode == 0 and named.stdout == plain.stdout,
                  f"{verb} takes a version by label, too", named.stderr + plain.stderr)
    odd = os.path.join(d.folder, "odd@version=1")
    shutil.copy2(a, odd)
    done = d.ctl("report", odd, "--json")
    tap.point(done.returncode == 0 and json.loads(done.stdout)["build_id"] == build_id(a),
              "a file of such a name is a file", done.stderr)
    done = d.ctl("report", "shop@version=9")
    tap.point(done.returncode == 66 and "version" in done.stderr, "a version that is not there, of another verb",
              done.stderr)
    done = d.ctl("diff", "shop@version=1", "shop@version=9")
    tap.point(done.returncode == 66 and "version" in done.stderr, "a version that is not there", done.stderr)
    done = d.ctl("diff", b, b, "--a-until", str(NOW - 3600), "--b-since", str(NOW - 3600), "--json")
    diff = json.loads(done.stdout) if done.returncode == 0 else {}
    r = diff and row(diff, "time-per-call", "parse")
    tap.point(r and diff["paired"] and r["verdict"] != "changed" and within(r, 0),
              "two windows of one build, group by group", done.stderr + str(r))
    text = d.ctl("diff", b, b, "--a-until", str(NOW), "--b-since", str(NOW - 7300), "--metric", "self").stdout
    tap.point(re.search(r"\nWhat was counted from \S+Z to \S+Z may be on both sides\.\n", text)
              and "on both" not in d.ctl("diff", b, b, "--a-until", str(NOW - 3600), "--b-since",
                                         str(NOW - 3600)).stdout, "two windows that overlap", text)
    done = d.ctl("diff", a, b, "--b-label", "version=7")
    tap.point(done.returncode == 1 and "b: nothing matches" in done.stderr, "a side without uploads", done.stderr)
    target = f"/api/v1/diff?a={build_id(a)}&b={build_id(b)}&limit=1"
    first = d.get(target)
    again = d.get(target, If_None_Match=first[1]["etag"])
    tap.point(first[0] == 200 and again[0] == 304, "an ETag over both sides", (first[:2], again[:2]))
    return first[1]["etag"], target


def directories(tap, d):
    """Versions of a program that were built in their own directories: a static function is one row."""
    for version in "12":
        top = os.path.join(d.folder, f"dirs-{version}")
        for part, calls in (("src", "reply"), ("lib", "serve")):
            os.makedirs(os.path.join(top, part))
            with open(os.path.join(top, part, "main.c"), "w") as f:
                f.write("static volatile int n; __attribute__((noipa)) static void hash(int i) { n += i; }\n"
                        f"void {calls}(void) {{ hash({version}); n++; }}\n"
                        + ("void serve(void); int main(void) { serve(); reply(); reply(); n++; }\n" if part == "src"
                           else ""))
        done = run("gcc", "-g", "-pg", "-O1", "-o", "twice", "src/main.c", "lib/main.c", cwd=top)
        assert done.returncode == 0, done.stderr
        done = d.ctl("run", "-l", "set=dirs", os.path.join(top, "twice"))
        assert done.returncode == 0, done.stderr
    ask = ("functions", "-l", "set=dirs", "--name", "hash")
    until(lambda: "in 2 programs" in d.ctl(*ask).stdout)
    rows = json.loads(d.ctl(*ask, "--sort", "calls", "--json").stdout)["rows"]
    tap.point([(r["file"], r["calls"], r["programs"], r["builds"]) for r in rows]
              == [("src/main.c", 4, 2, 2), ("lib/main.c", 2, 2, 2)], "static functions of two source directories", rows)


def functions(tap, d, a, b):
    """profctl functions over both builds, beside the reports of each."""
    wanted = {}
    for exe in (a, b):
        for f in d.json("report", exe, "--json")["functions"]:
            wanted[f["name"]] = wanted.get(f["name"], 0) + f["self_seconds"]
    done = d.ctl("functions", "--json", "--limit", "100")
    rows = {r["name"]: r for r in json.loads(done.stdout)["rows"]} if done.returncode == 0 else {}
    tap.point(rows and all(abs(rows[n]["self_seconds"] - wanted[n]) < 1e-9 for n in ("parse", "render", "idle", "step"))
              and rows["parse"]["builds"] == 2 and rows["fresh"]["builds"] == 1,
              "profctl functions adds up both builds", done.stderr + str(rows))
    text = d.ctl("functions", "-m", 'version=~"1|2"', "--limit", "2").stdout.splitlines()
    tap.point("2 programs" in text[0] and f"{2 * PROCESSES} processes" in text[0] and "FUNCTION" in text[1]
              and text[4].endswith("more; --limit shows them"), "as a table", text)
    table = list(csv.DictReader(io.StringIO(d.ctl("functions", "-f", "csv", "--limit", "100").stdout, newline="")))
    tap.point({r["name"]: (float(r["self_seconds"]), int(r["calls"])) for r in table}
              == {n: (r["self_seconds"], r["calls"]) for n, r in rows.items()}
              and d.ctl("functions", "-f", "json").stdout == d.ctl("functions", "--json", "--limit", "20").stdout,
              "as CSV, and -f json", table)
    tap.point(all(r["calls_sampled"] == "0" for r in table), "which says that calls were counted", table)
    for more in (["--by", "version"], ["--by", "version", "--by", "host", "--step", "1d"]):
        said = d.ctl("groups", a, *more, "--json").stdout
        groups = json.loads(said)["rows"]
        table = list(csv.DictReader(io.StringIO(d.ctl("groups", a, *more, "-f", "csv").stdout, newline="")))
        fields = ["label_version", "uploads", "processes_started", "hosts", "calls", *(["time", "width"] if
                  "--step" in more else [])]
        tap.point(groups and [[r[f] for f in fields] + [float(r["seconds"]), r["exact"] == "1",
                                                       r["inexact_reasons"].split()] for r in table]
                  == [[str(r[f]) for f in fields] + [r["seconds"], r["exact"], r["inexact_reasons"]] for r in groups]
                  and d.ctl("groups", a, *more, "-f", "json").stdout == said, "groups as CSV, and -f json",
                  (table, said))
    lines = [line.split() for line in d.ctl("functions", "-m", 'version="1"').stdout.splitlines()]
    tap.point([line[4] for line in lines if line[-1] == "main"] == ["-"],
              "of what nothing was seen to call, no number of calls", lines)
    done = d.ctl("functions", "-l", "version=9")
    tap.point(done.returncode == 1 and "nothing matches" in done.stderr, "of nothing", done.stderr)


def by_name(tap, d, exe):
    """A path names a function by its address or by its name."""
    base = f"/api/v1/builds/{build_id(exe)}/functions"
    parse = next(r for r in json.loads(d.get(f"{base}?name=parse")[2])["rows"] if r["name"] == "parse")
    for rest in ("", "/series?step=1h"):
        named, placed = (d.get(f"{base}/{which}{rest}") for which in ("parse", parse["address"]))
        tap.point(named[0] == 200 and named[2] == placed[2], f"the function parse{rest} by name", (named, placed))
        status, _, body = d.get(f"{base}/nobody{rest}")
        tap.point(status == 404 and b"nobody" in body, f"no function nobody{rest}", body)
    status, _, body = d.get(f"{base}/fade")
    tap.point(status == 404 and b"0xfade" in body, "hexadecimal digits are an address first", body)


def rolled_up(tap, old, new, raw):
    """The same fleet in hourly sums: groups are kept, so every number is."""
    with Daemon("--raw-age", "1s") as d:
        fleet(d, old, 1, "1", 1.0, 0, NOW - 7200, also=("quote", "wrap"))
        fleet(d, new, 2, "2", 1.3, 1, NOW - 7200, fresh=True, also=("quote_all",))
        status = until(lambda: (s := json.loads(d.get("/api/v1/status")[2]))["raw_uploads"] == 0 and s)
        done = d.ctl("diff", old, new, "--json")
        sums = json.loads(done.stdout) if done.returncode == 0 else {"metrics": None}
        tap.point(status and status["rollups"] > 0 and sums["metrics"] == raw["metrics"],
                  "sums say what single uploads said, to the last digit", done.stderr or sums["metrics"])


def same_build(tap):
    """One build on both sides, which has two functions of the same code: each is called on one side only."""
    with Daemon() as d:
        exe = build(d.folder, "twins", TWINS, "+ left(n) + right(n) + quiet(n) + seldom(n)")
        fleet(d, exe, 1, "1", 1.0, 0, NOW, also=("left",), spent={"quiet": 0}, seldom=("seldom",))
        fleet(d, exe, 2, "2", 1.0, 0, NOW, also=("right",), spent={"quiet": 5, "seldom": 5})
        sides = "shop@version=1", "shop@version=2"
        done = d.ctl("diff", *sides, "--json")
        diff = json.loads(done.stdout) if done.returncode == 0 else {}
        rows = diff and [[(r["function"], r["idle"], r["inlined"]) for r in diff[f"only_in_{s}"]["rows"]] for s in "ab"]
        tap.point(rows == [[("left", True, False)], [("right", True, False)]],
                  "what is called on one side only is on the other, too, and is not renamed", done.stderr or rows)
        text = d.ctl("diff", *sides).stdout
        tap.point("Seen only in A: 1 function\n  left  self 0%, with callees 0%, " in text
                  and all(f"; {side} contains it, but it was not seen there" in text for side in "AB")
                  and "the same code" not in text and "inlined" not in text,
                  "and the text says so", text)
        said = re.fullmatch(r".*: quiet has a larger share \(.*%\); .*; 1 function that was not seen in 1, right; "
                            r"1 function that was not seen in 2, left\.", text.splitlines()[0])
        tap.point(said and " new " not in text, "what took most time is said first; one build has no new functions",
                  text)
        lines = [line for line in text.splitlines() if line.startswith("  quiet ")]
        tap.point(len(lines) == 2 and all(line.endswith("  larger share (q < 0.0001)") for line in lines),
                  "what took little time before, a tick in each of 96 processes, and much now, is found", text)
        lines = [line for line in text.splitlines() if line.startswith("  seldom ")]
        tap.point(len(lines) == 2 and lines[0].endswith("  in too few processes of A"),
                  "with ticks in six processes before it is shown although it cannot be tested", text)
        copies(tap, d)
        left_out(tap, d, exe)
        few(tap, d, exe)
        without_ticks(tap, d, exe)
        rare(tap, d, exe)
        uneven(tap, d, exe)
        sampled(tap, d, exe)


def functions_of(d):
    return json.loads(d.ctl("functions", "-m", 'version=~"1|p"', "--json").stdout)["rows"]


def sampled(tap, d, exe):
    """A program that counts no calls: times with callees are those of stacks, and nothing rests on calls. step takes
    40 % of the time of A and 60 % of that of B, all of it in parse; the other time is in quiet, which main calls."""
    stacks = {after_call(exe, "step", "parse"): "parse", after_call(exe, "main", "quiet"): "quiet"}
    draw = random.Random(7)
    with Wire(d.socket) as w:
        for process in range(2 * PROCESSES):
            part = (4, 6)[process % 2] * draw.uniform(0.8, 1.2)
            ticks = {"parse": round(10 * part), "quiet": round(10 * (10 - part))}
            w.send("UPLOAD", upload(exe, process, ticks, {}, {"version": "pq"[process % 2]}, NOW, stacks))
            answer = w.take()
            assert answer[0] == "ACK", answer
    done = d.ctl("diff", "shop@version=p", "shop@version=q", "--json")
    diff = json.loads(done.stdout) if done.returncode == 0 else {"metrics": []}
    r = diff["metrics"] and row(diff, "total", "step")
    tap.point(r and diff["time"] == "measured" and r["verdict"] == "changed" and abs(r["change"] - 0.5) < 0.15
              and abs(r["a"] - 0.4) < 0.04 and abs(r["b"] - 0.6) < 0.06,
              "time with callees is that of stacks, for a function without ticks of its own", done.stderr or r)
    tap.point([m["metric"] for m in diff["metrics"] if m["not_computed"]]
              == ["all-calls-per-process", "time-per-call", "calls-per-process", "calls-per-parent"]
              and all("calls of A were not counted" in m["not_computed"] for m in diff["metrics"]
                      if m["metric"] not in ("time-per-process", "self", "total")),
              "what rests on calls is refused", diff["metrics"])
    done = d.ctl("functions", "-m", 'version=~"p|q"', "--json")
    rows = {r["name"]: r for r in json.loads(done.stdout)["rows"]} if done.returncode == 0 else {}
    seconds = rows and json.loads(done.stdout)["seconds"]
    tap.point(rows and abs(rows["step"]["total_seconds"] - seconds / 2) < seconds / 20
              and rows["step"]["self_seconds"] == 0
              and abs(rows["main"]["total_seconds"] - rows["quiet"]["self_seconds"]) < 1e-6,
              "and so in the list of functions of all programs", done.stderr or (seconds, rows))
    text = d.ctl("functions", "-m", 'version=~"p|q"').stdout
    tap.point(any(line.split()[4:] == ["-", "1", "step"] for line in text.splitlines()),
              "where no call is counted", text)
    text = d.ctl("functions", "-m", 'version=~"1|p"').stdout
    tap.point(any(line.split()[4:5] == [f"~{r['calls']}"] for line in text.splitlines() for r in functions_of(d)
                  if r["name"] == "step"), "or where some are not", text)
    done = d.ctl("diff", "shop@version=1", "shop@version=q", "--metric", "self,total")
    tap.point("cannot be compared: only one side has stacks of most ticks" in done.stdout
              and done.stdout.count("cannot be compared") == 1, "times of stacks and times by calls are not compared",
              done.stdout + done.stderr)


def copies(tap, d):
    """B calls a function less often because it has inlined copies of it: that is said beside the change."""
    body = "int hash(int i) { return n += 3 * i; }"
    old = build(d.folder, "out", f"static __attribute__((noinline)) {body}", "+ hash(n)")
    new = build(d.folder, "in", f"static inline __attribute__((always_inline)) {body}\n"
                "int (*volatile kept)(int) = hash;", "+ hash(n) + kept(n)")
    with Wire(d.socket) as w:
        for process in range(2 * PROCESSES):
            calls = {("main", "step"): 1, ("step", "hash"): 1 if process % 2 else 30, ("step", "parse"): 1}
            w.send("UPLOAD", upload((old, new)[process % 2], process, {"parse": 20}, calls, {}, NOW))
            while (answer := w.take())[0] == "WANT_OBJECT":
                pass
            assert answer[0] == "ACK", answer
    assert all(d.ctl("symbols", exe).returncode == 0 for exe in (old, new))
    diff = json.loads(d.ctl("diff", old, new, "--json").stdout)
    r = row(diff, "calls-per-parent", "hash", "step")
    tap.point((r["verdict"], r["inlined_a"], r["inlined_b"]) == ("constant-changed", False, True)
              and all(x["inlined_a"] is x["inlined_b"] is None for x in (row(diff, "calls-per-parent", "parse", "step"),
                                                                         row(diff, "self", "parse"))),
              "B has inlined copies of hash", diff["metrics"][4])
    text = d.ctl("diff", old, new).stdout
    said = r"hash from step  30 -> 1 .*; B has inlined copies of it, and no call of these is counted\n"
    tap.point(re.search(said, text) and text.count("inlined copies") == 2,
              "which the text says where numbers of calls changed", text)
    text = d.ctl("diff", old, new, "--fail-on", "time-per-call>2%", "--watch", "hash").stdout
    tap.point("\ntime-per-call by more than 2%: cannot be told, because nothing could be compared\n" in text,
              "where nothing was compared, nothing is said of numbers", text)
    without_partner(tap, d, old, new)


def without_partner(tap, d, old, new):
    """Two builds, group by group: the partner of A's first process, which called parse much more often, is missing."""
    builds, calls = (old, new), lambda n: {("main", "step"): 1, ("step", "parse"): n}
    send(d, [upload(builds[i % 2], i // 2, {"parse": 20}, calls(4 if i else 100), {"pair": "yes"}, NOW)
             for i in range(2 * PROCESSES) if i != 1])
    done = d.ctl("diff", old, new, "--paired", "--a-label", "pair=yes", "--b-label", "pair=yes", "--json")
    diff = json.loads(done.stdout) if done.returncode == 0 else {}
    r = diff and row(diff, "calls-per-process", "parse")
    tap.point(r and diff["paired"] and [diff[s]["processes_started"] for s in "ab"] == [PROCESSES, PROCESSES - 1]
              and (r["a"], r["b"], r["verdict"]) == (5, 4, "not-significant") and within(r, 0),
              "a process without its partner counts on its side, and widens the interval", done.stderr or (r, diff))
    text = d.ctl("diff", old, new, "--paired", "--a-label", "pair=yes", "--b-label", "pair=yes").stdout
    tap.point(f" {PROCESSES} processes" in text and f" {PROCESSES - 1} processes" in text,
              "the text says how many processes each side has", text)


def left_out(tap, d, exe):
    """Calls of functions that only some processes count are not compared."""
    with Wire(d.socket) as w:
        for process in range(4 * PROCESSES):
            version = "klmn"[process % 4]
            left = version in "kl" or version == "m" and process % 8 > 3
            calls = {("main", "step"): 4, **({} if left else {("step", "parse"): 4})}
            body = upload(exe, process, {"parse": 20}, calls, {"version": version}, NOW)
            w.send("UPLOAD", body + (field(9, 131072) if left else b""))
            assert (answer := w.take())[0] == "ACK", answer
    refused = {}
    for a, b in ("kl", "ln", "nm", "mm"):
        done = d.ctl("diff", exe, exe, "--a-label", f"version={a}", "--b-label", f"version={b}", "--json")
        refused[a + b] = [m["metric"] for m in json.loads(done.stdout)["metrics"]
                          if "left functions out" in (m["not_computed"] or "")]
    counted = ["all-calls-per-process", "time-per-call", "calls-per-process", "calls-per-parent"]
    tap.point(refused == {"kl": [], "ln": counted, "nm": counted, "mm": counted},
              "calls are compared if both sides left functions out in every process, or in none", refused)


def few(tap, d, exe):
    """What is not compared is not called unchanged."""
    with Wire(d.socket) as w:
        for process in range(24):
            w.send("UPLOAD", upload(exe, process, {"parse": 2}, {}, {"version": "ab"[process % 2]}, NOW))
            tap.point((answer := w.take())[0] == "ACK", "an upload without calls", answer)
    done = d.ctl("diff", "shop@version=a", "shop@version=b")
    tap.point(done.stdout.count("1 function: too few samples (150 a side, in about 20 processes) for a test") == 2
              and done.stdout.count("nothing to compare: no function has counted calls on both sides") == 2
              and "no function has ticks and counted calls on both sides" in done.stdout
              and "no significant change" not in done.stdout, "what was not tested is not called unchanged",
              done.stderr + done.stdout)


def without_ticks(tap, d, exe):
    """A function that is called on both sides, and has ticks in B only: it is not said to take no time in A."""
    calls = {("main", "step"): 1, ("step", "parse"): 1, ("step", "render"): 1}
    with Wire(d.socket) as w:
        for process in range(2 * PROCESSES):
            ticks = {"parse": 20, **({"render": 20} if process % 2 else {})}
            w.send("UPLOAD", upload(exe, process, ticks, calls, {"version": "xy"[process % 2]}, NOW))
            answer = w.take()
            assert answer[0] == "ACK", answer
    text = d.ctl("diff", "shop@version=x", "shop@version=y").stdout
    lines = [line for line in text.splitlines() if line.startswith("  render ")]
    shown = [line.split("  ")[2] for line in lines[:3]]
    tap.point(shown == ["no ticks -> 50%", "no ticks -> 50%", "no ticks -> 200 ms"],
              "a function without ticks takes no known time", text)


def rare(tap, d, exe):
    """A function that few processes of B and none of A have: it stands where the sentence has it, and is uncertain."""
    send(d, [upload(exe, process, {"parse": 20, **({"quiet": 900} if process in (1, 3, 5) else {})}, {},
                    {"version": ("old", "new")[process % 2]}, NOW) for process in range(2 * PROCESSES)])
    done = d.ctl("diff", "shop@version=old", "shop@version=new", "--json")
    diff = json.loads(done.stdout) if done.returncode == 0 else {"sentence": ""}
    first = diff["sentence"] and table(diff, "self")["rows"][0]
    tap.point(": 1 function that was not seen in old, quiet, takes " in diff["sentence"]
              and [first[k] for k in ("function", "verdict", "words", "p")]
              == ["quiet", "uncertain", "in too few processes of B", None],
              "what few processes of one side have is uncertain, and first", done.stderr or (diff["sentence"], first))
    text = d.ctl("diff", "shop@version=old", "shop@version=new", "--metric", "self").stdout
    row = next(line for line in text.split("\nSelf time")[1].splitlines() if line.startswith("  "))
    tap.point(row.startswith("  quiet ") and row.endswith("  in too few processes of B"), "and in the text", text)


def leads(tap):
    """A new function that takes 53 % of the time stands first; what a process needs in all stands above it."""
    with Daemon() as d:
        old = build(d.folder, "one", "", "")
        new = build(d.folder, "two", "__attribute__((noinline)) int fresh(int i) { return n ^= i; }", "+ fresh(n)")
        solo = {"labels": lambda process: {} if process else {"solo": "yes"}}
        fleet(d, old, 1, "1", 1.0, 0, NOW, **solo)
        fleet(d, new, 2, "2", 1.0, 0, NOW - 6 * 86400, spent={"fresh": 16}, **solo)
        fleet(d, new, 3, "2", 1.0, 0, NOW, spent={"fresh": 16})
        diff = json.loads(d.ctl("diff", old, new, "--json").stdout)
        first = table(diff, "self")["rows"][0]
        tap.point((first["function"], first["verdict"], first["a"]) == ("fresh", "only-in-b", None)
                  and abs(first["b"] - 16 / 30) < 0.02, "a new function is the first row of the shares", first)
        alone = json.loads(d.get(f"/api/v1/diff?a={build_id(old)}&b={build_id(new)}&label.solo=yes")[2])
        got = [(table(alone, m)["not_computed"] is None, [(r["function"], r["verdict"], r["a"], r["change"], r["p"])
                                                          for r in table(alone, m)["rows"]]) for m in ("self", "total")]
        tap.point(got == [(False, [("fresh", "only-in-b", None, None, None)])] * 2
                  and table(alone, "self")["rows"][0]["b"] == alone["only_in_b"]["rows"][0]["self_share"] > 0.3
                  and table(alone, "self")["counts"]["only-in-b"] == 1 and not table(alone, "time-per-call")["rows"],
                  "also of one process a side, of which no share can be tested", alone["metrics"])
        text = d.ctl("diff", old, new).stdout
        lines = text.splitlines()
        said = r"2 uses 2\.\d × the CPU time of 1 for each process: 1 new function, fresh, takes 5\d %\."
        tap.point(re.fullmatch(said, lines[0]) and lines[0] == diff["sentence"] and diff["lead"] == "self",
                  "the answer is one sentence, which leads", (lines[0], diff["sentence"]))
        order(tap, diff)
        head = lines.index("Each process")
        tap.point(lines[head + 1].startswith("  CPU time  ") and lines[head + 2].startswith("  Calls  ")
                  and head < lines.index("Seen only in B: 1 function") < lines.index("Self time per call"),
                  "first what a process needs, then what is new", text)
        tap.point("no significant change\n" not in text and "no significant change\n" not in d.ctl(
            "diff", old, new, "--metric", "time-per-call").stdout, "nothing is called unchanged beside it", text)
        whole = [table(diff, m)["rows"] for m in ("time-per-process", "all-calls-per-process")]
        sums = {s: (diff[s]["seconds"] / diff[s]["processes_started"]) for s in "ab"}
        tap.point([len(rows) for rows in whole] == [1, 1] and all(r[0]["function"] is None for r in whole)
                  and all(abs(whole[0][0][s] - sums[s]) < 1e-9 for s in "ab") and within(whole[0][0], 30 / 14 - 1)
                  and whole[0][0]["verdict"] == "changed", "CPU time per process", (whole, sums))
        calls = {s: sum(f["calls"] + f["self_calls"] for f in d.json("report", exe, "--json")["functions"])
                 / diff[s]["processes_started"] for s, exe in (("a", old), ("b", new))}
        tap.point(all(abs(whole[1][0][s] - calls[s]) < 1e-9 for s in "ab"), "and calls per process", (whole, calls))
        status = [d.ctl("diff", old, new, "--fail-on", *rule).returncode for rule in
                  (("time-per-process>50%",), ("time-per-process>400%",), ("self>2%", "--strict"), ("self>2%",))]
        tap.point(status == [1, 0, 3, 0], "--fail-on of a whole process; what is new has grown from nothing", status)
        plan_in_reach(tap, d, old, new)


def order(tap, diff):
    """What is new or gone, then what changed, then what perhaps did, each by the time of a process that it moved."""
    ranks = {"only-in-a": 0, "only-in-b": 0, "changed": 1, "constant-changed": 1, "uncertain": 2}
    rows = table(diff, "self")["rows"]
    keys = [(ranks.get(r["verdict"], 3), -abs((r["seconds_b"] or 0) - (r["seconds_a"] or 0))) for r in rows]
    whole = diff["b"]["seconds"] / diff["b"]["processes_started"]
    tap.point(keys == sorted(keys) and all(abs(r["seconds_b"] / whole - r["b"]) < 1e-9 for r in rows),
              "rows stand by the size of their effect", [(r["function"], r["words"], k) for r, k in zip(rows, keys)])


def plan_in_reach(tap, d, old, new):
    """No amount of data is named that nobody can collect: beyond 30 days, or 100 times what is there."""
    def needs(*more):
        diff = json.loads(d.ctl("diff", old, new, "--json", *more).stdout)
        return [(r["needs"], r["data_needed"]) for t in diff["metrics"] for r in t["rows"] if r["p"] is not None]
    long, short = (needs("--fail-on", "self>1%", "--b-since", str(NOW - t)) for t in (7 * 86400, 60))
    tap.point(any(n == "too-much" for n, _ in long) and all(x is None or x <= 6 for _, x in long)
              and any(x is not None and x > 12 for _, x in short), "6 days of data: 30 days more are 5 times as many",
              (long, short))
    never = needs("--fail-on", "self>0.01%")
    text = d.ctl("diff", old, new, "--plan", "--fail-on", "self>0.01%").stdout
    tap.point(never and all(n == ("too-much", None) for n in never) and " times the data" not in text
              and "0.01% cannot be told: these processes differ too much" in text, "and beyond 100 times", text)
    text = d.ctl("diff", old, new, "--fdr", "1e-30").stdout
    tap.point(re.search(r"  probably smaller share \(p < 0\.0001 in \d+ tests, q < 0\.0001\)\n", text)
              and not re.search(r"0%, -.*may be chance", text), "an interval without 0 is not called chance", text)


def uneven(tap, d, exe):
    """Where only a change to more than twice could be seen, that is not called a result."""
    draw = random.Random(3)
    with Wire(d.socket) as w:
        for process in range(2 * PROCESSES):
            ticks = {"parse": draw.choice((5,) * 15 + (30000,)), "idle": 50}
            w.send("UPLOAD", upload(exe, process, ticks, {}, {"version": "uv"[process % 2]}, NOW))
            answer = w.take()
            assert answer[0] == "ACK", answer
    text = d.ctl("diff", "shop@version=u", "shop@version=v", "--metric", "time-per-process,self", "--all").stdout
    diff = json.loads(d.ctl("diff", "shop@version=u", "shop@version=v", "--json").stdout)
    shown = [r["visible"] for t in diff["metrics"] for r in t["rows"]] + [t["visible"] for t in diff["metrics"]]
    tap.point(diff["metrics"][0]["rows"][0]["visible"] is None and all(x is None or x <= 1 for x in shown),
              "no increase to more than twice is said to be visible", (shown, text))


with Tap() as tap, Daemon() as d:
    leads(tap)
    same_build(tap)
    old = build(d.folder, "shop1", OLD, "+ quote(n) + wrap(n)")
    new = build(d.folder, "shop2", NEW, "+ fresh(n) + quote_all(n) + wrap(n)")
    fleet(d, old, 1, "1", 1.0, 0, NOW - 7200, also=("quote", "wrap"))
    fleet(d, new, 2, "2", 1.3, 1, NOW - 7200, fresh=True, also=("quote_all",))
    rolled_up(tap, old, new, verdicts(tap, d, old, new))
    words(tap, d, old, new)
    results(tap, d, old, new)
    functions(tap, d, old, new)
    by_name(tap, d, new)
    fleet(d, new, 3, "2", 1.3, 1, NOW, fresh=True)
    etag, target = sides(tap, d, old, new)
    fleet(d, new, 4, "3", 1.3, 1, NOW, fresh=True)
    tap.point(d.get(target)[1]["etag"] != etag, "which changes when B gets data")
    directories(tap, d)
