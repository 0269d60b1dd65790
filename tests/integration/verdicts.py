#!/usr/bin/python3
"""The watch list: counters of watched functions for Prometheus, which never decrease, and verdicts on new versions."""
import io
import json
import re
import sys
from csv import DictReader

sys.dont_write_bytecode = True
from harness import Daemon, Tap, run, until  # noqa: E402
from shop import NOW, PROCESSES, build, build_id, fleet, upload  # noqa: E402
from wire import Wire  # noqa: E402

WATCH = ("--watch", "service=api:parse,render", "--watch-interval", "1s")


def service(name):
    return lambda process: {"service": name}


def scrape(d):
    return d.get("/metrics")[2].decode()


def samples(d):
    """(name, labels, value) of every line"""
    return [(name, labels or "", float(value)) for name, labels, value
            in re.findall(r"^(profd_[a-z_]+)(?:\{(.*)\})? (\S+)$", scrape(d), re.M)]


def counters(d, function="parse", watch="service=api"):
    """{name of the counter: value}"""
    labels = f'watch="{watch}",function="{function}"'
    return {name.removeprefix("profd_watch_"): value for name, of, value in samples(d)
            if of == labels and name.startswith("profd_watch_")}


def wanted(d, exe, function="parse"):
    """Self seconds and calls of a function in the report of a build."""
    f = next(f for f in d.json("report", exe, "--json")["functions"] if f["name"] == function)
    return f["self"], f["calls"]


def is_at(d, seconds, calls):
    c = counters(d)
    return c and abs(c["self_seconds_total"] - seconds) < 1e-6 and c["calls_total"] == calls


def counts(tap):
    with Daemon(*WATCH) as d:
        a, b = build(d.folder, "one", "", ""), build(d.folder, "two", "int other;", "+ 1")
        tap.point(until(lambda: counters(d) and set(counters(d).values()) == {0}),
                  "a watched function of which nothing is stored has counters that are 0")
        fleet(d, a, 1, "1", 1, 0, NOW - 7200, labels=service("api"))
        fleet(d, b, 2, "1", 1, 0, NOW - 7200, labels=service("other"))
        first = wanted(d, a)
        tap.point(until(lambda: is_at(d, *first)), "the counters are those of the report, of this service only",
                  (first, counters(d)))
        done = run("promtool", "check", "metrics", input=scrape(d))
        tap.point(done.returncode == 0 and not done.stdout + done.stderr, "promtool check metrics finds nothing",
                  done.stdout + done.stderr)
        tap.point(counters(d, "render")["calls_total"] == wanted(d, a, "render")[1]
                  and counters(d)["total_seconds_total"] >= counters(d)["self_seconds_total"],
                  "and of the other function; time with callees")
        d.stop()
        d.start()
        tap.point(is_at(d, *first), "a restart changes nothing", (first, counters(d)))
        assert d.ctl("delete", "--yes", build_id(a)).returncode == 0
        tap.point(until(lambda: counters(d)["removals_total"] == 1) and is_at(d, *first),
                  "a delete changes nothing, and is counted", counters(d))
        fleet(d, a, 3, "1", 1, 0, NOW - 3600, labels=service("api"))
        second = wanted(d, a)
        tap.point(until(lambda: is_at(d, first[0] + second[0], first[1] + second[1])),
                  "what comes then is added", (first, second, counters(d)))
        d.stop()
        d.start()
        tap.point(is_at(d, first[0] + second[0], first[1] + second[1]) and counters(d)["removals_total"] == 1,
                  "and stays after a restart", counters(d))
        versions(tap, d, a)


def versions(tap, d, exe):
    rows = json.loads(d.get("/api/v1/versions?label.service=api")[2])["rows"]
    tap.point([(r["program"], r["version"], r["build_id"], r["uploads"]) for r in rows]
              == [("/srv/shop", "1", build_id(exe), PROCESSES)], "the versions of a service", rows)


def verdicts(d, **wanted):
    """Rows of profctl verdicts with these fields."""
    return [r for r in json.loads(d.ctl("verdicts", "--json").stdout)["rows"]
            if all(r[k] == v for k, v in wanted.items())]


def metric(d, name, version):
    return [value for n, labels, value in samples(d) if n == name and f'version="{version}"' in labels]


def unwatched(d, *what, **how):
    """A fleet that comes while nothing is watched: the first comparison is of all of it."""
    d.stop()
    d.options, watching = (), d.options
    d.start()
    fleet(d, *what, labels=service("api"), **how)
    d.stop()
    d.options = watching
    d.start()


def compared(tap):
    """Version 2 is as version 1; version 3 has a slower parse; of version 4 there is too little."""
    with Daemon(*WATCH, "--watch-threshold", "10%") as d:
        a, b = build(d.folder, "one", "", ""), build(d.folder, "two", "int other;", "+ 1")
        tap.point(d.ctl("verdicts").stdout.startswith("no verdicts"), "without data there is no verdict")
        unwatched(d, a, 1, "1", 1, 0, NOW - 7200)
        unwatched(d, b, 2, "2", 1, 0, NOW - 3600)
        tap.point(until(lambda: verdicts(d, after="2", function="parse", verdict="no-difference")),
                  "the same program once more: no difference", verdicts(d))
        r = verdicts(d, after="2", function="parse")[0]
        tap.point(r["before"] == "1" and r["build_id_before"] == build_id(a) and r["build_id_after"] == build_id(b)
                  and r["low"] < 0 < r["high"] and r["looks"] == 1 and r["visible"] <= 0.1
                  and abs(r["confidence"] - (1 - 0.05 / (2 * 1 * 2))) < 1e-9,
                  "with an interval of the confidence of the first of its looks", r)
        d.stop()
        fleet_after_restart(tap, d, r)
        unwatched(d, a, 3, "3", 1.6, 0, NOW - 1800)
        tap.point(until(lambda: verdicts(d, after="3", function="parse", verdict="increased")),
                  "a function that got slower is found", verdicts(d))
        r = verdicts(d, after="3", function="parse")[0]
        truth = (6.4 / 16.4) / (4 / 14) - 1
        tap.point(r["before"] == "2" and r["low"] <= truth <= r["high"], "and the interval holds the truth",
                  (r, truth))
        tap.point(metric(d, "profd_regression", "3") and max(metric(d, "profd_regression", "3")) == 1
                  and not metric(d, "profd_regression", "2"), "the metric tells of the newest verdict",
                  scrape(d)[-900:])
        done = run("promtool", "check", "metrics", input=scrape(d))
        tap.point(done.returncode == 0 and not done.stdout + done.stderr, "promtool check metrics finds nothing",
                  done.stdout + done.stderr)
        exports(tap, d)
        too_little(tap, d, b)
        elsewhere(tap, d)


def elsewhere(tap, d):
    """Each version may have a directory of its own: version 5 of /srv/shop is /srv/5/shop. Another program of the name
    that states no version is no version of it, but has versions: its builds."""
    exe, other, next_one = (build(d.folder, name, f"int {name};", "+ 2") for name in ("five", "other", "next"))
    unwatched(d, exe, 6, "5", 1, 0, NOW - 300, program="/srv/5/shop")
    tap.point(until(lambda: verdicts(d, after="5", function="parse", verdict="no-difference")),
              "a version in another directory is compared", verdicts(d, after="5"))
    r = verdicts(d, after="5", function="parse")[0]
    tap.point(r["before"] == "4" and r["program"] == "/srv/5/shop", "with the version before", r)
    before = verdicts(d)
    unwatched(d, other, 7, "", 1, 0, NOW - 200, program="/opt/shop")
    unwatched(d, next_one, 9, "", 1, 0, NOW - 100, program="/opt/shop")
    tap.point(until(lambda: verdicts(d, after=build_id(next_one), function="parse", verdict="no-difference")),
              "builds of another program of this name, which states no versions", verdicts(d))
    rows = [r for r in verdicts(d) if r["program"] == "/opt/shop"]
    tap.point({r["before"] for r in rows} == {build_id(other)} and len(before) + len(rows) == len(verdicts(d)),
              "are compared with each other only", rows)


def fleet_after_restart(tap, d, before):
    d.start()
    looks = [counters(d)["calls_total"], verdicts(d, after="2", function="parse")]
    tap.point(looks[1] == [before], "a restart keeps the verdict, and does not compare again", looks)


def exports(tap, d):
    status, headers, text = d.get("/api/v1/verdicts")
    again = d.get("/api/v1/verdicts", If_None_Match=headers["etag"])
    tap.point(status == 200 and again[0] == 304, "an ETag", (status, again[:2]))
    rows = json.loads(d.get("/api/v1/verdicts?format=annotations")[2])
    tap.point(rows and all(set(r) == {"time", "title", "text", "tags"} and isinstance(r["time"], int) for r in rows)
              and any("increased" in r["tags"] and "parse" in r["tags"] for r in rows), "annotations for Grafana", rows)
    later = json.loads(d.get(f"/api/v1/verdicts?since={NOW + 10 ** 6}")[2])
    tap.point(later["rows"] == [], "a time range", later)
    csv = d.ctl("verdicts", "-f", "csv").stdout.splitlines()
    tap.point(csv[0].startswith("watch,program,function") and len(csv) > 3, "CSV", csv)
    table = list(DictReader(io.StringIO(d.ctl("verdicts", "-f", "csv").stdout, newline="")))
    tap.point([[r["function"], r["change"]] for r in table]
              == [[r["function"], "" if r["change"] is None else f"{r['change']:.17g}"] for r in verdicts(d)],
              "which has no number where none is known", table)
    text = d.ctl("verdicts").stdout
    tap.point("increased" in text and "parse (self)" in text and "3 after 2" in text, "text", text)
    tap.point(d.get("/api/v1/verdicts?format=xml")[0] == 400, "a format that is none is refused")
    for path in ("/api/v1/verdicts", "/api/v1/labels"):
        whole, page, rows = json.loads(d.get(path)[2])["rows"], {"next": ""}, []
        while page["next"] is not None:
            cursor = f"&cursor={page['next']}" if page["next"] else ""
            page = json.loads(d.get(f"{path}?limit=1{cursor}")[2])
            rows += page["rows"]
        tap.point(rows == whole == json.loads(d.get(f"{path}?limit=0")[2])["rows"] and len(whole) > 1,
                  f"{path} in pages", (rows, whole))
    answers = [d.get(f"/api/v1/verdicts?since={since}&until={NOW}") for since in (NOW, NOW + 1, NOW - 1)]
    tap.point([a[0] for a in answers] == [400, 400, 200] and b"is not before" in answers[0][2],
              "a window that ends before it begins is refused", answers)
    token = d.ctl("reader", "add", "tenant", "--tenant", "t").stdout.strip()
    tap.point(d.get("/api/v1/verdicts", Authorization=f"Bearer {token}")[0] == 403,
              "a reader of one tenant may not read verdicts")


def too_little(tap, d, exe):
    """One process is too little for a verdict; when more of them come, there is one, over a restart in between."""
    few = draw_few(d, exe)
    tap.point(few and few[0]["why"], "too little data: cannot tell yet, and why", verdicts(d, after="4"))
    tap.point("cannot tell yet" in d.ctl("verdicts").stdout, "in the text too")
    d.stop()
    d.start()
    tap.point(verdicts(d, after="4", function="parse", verdict="waiting"), "it waits over a restart")
    unwatched(d, exe, 5, "4", 1, 0, NOW - 600)
    tap.point(until(lambda: verdicts(d, after="4", function="parse", verdict="decreased")),
              "with more data there is a verdict: faster than version 3", verdicts(d, after="4"))


def draw_few(d, exe):
    body = upload(exe, 77, {"parse": 3, "step": 2}, {("main", "step"): 1, ("step", "parse"): 1},
                  {"version": "4", "service": "api"}, NOW - 900)
    with Wire(d.socket) as w:
        w.send("UPLOAD", body)
        until(lambda: w.take()[0] == "ACK")
    until(lambda: verdicts(d, after="4", function="parse", verdict="waiting"))
    return verdicts(d, after="4", function="parse", verdict="waiting")


def configuration(tap):
    with Daemon(start=False) as d:
        for value, word in (("parse", "NAME=VALUE"), ("a=b:", "NAME=VALUE"), ("a:f", "is not NAME=VALUE"),
                            ("a=b:f,f", "twice"), ("a=b:" + ",".join(f"f{i}" for i in range(21)), "20 functions"),
                            ("a=b:f,,g", "between 1 and 256")):
            done = run(*d.command(), "--watch", value)
            tap.point(done.returncode == 78 and word in done.stderr, f"watch {value[:20]} is refused", done)
        done = run(*d.command(), "--watch", "a=b:f", "--watch", "a=b:g")
        tap.point(done.returncode == 78 and "occurs twice" in done.stderr,
                  "two watches of the same labels are refused", done)


def rights(tap):
    with Daemon(*WATCH, "--watch", "service=shop:f(int, int),ns::g<int, int>") as d:
        tap.point(until(lambda: counters(d, "f(int, int)", "service=shop") and
                        counters(d, "ns::g<int, int>", "service=shop")), "two watches; commas inside a C++ name")
        token = d.ctl("reader", "add", "tenant", "--tenant", "t").stdout.strip()
        status, _, text = d.get("/metrics", Authorization=f"Bearer {token}")
        tap.point(status == 403 or b"watch" not in text, "a reader of one tenant does not see the counters",
                  (status, text))


with Tap() as TAP:
    counts(TAP)
    compared(TAP)
    configuration(TAP)
    rights(TAP)
