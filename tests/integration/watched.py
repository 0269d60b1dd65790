#!/usr/bin/python3
"""The watch list: counters of watched functions for Prometheus, which never decrease."""
import json
import re
import sys

sys.dont_write_bytecode = True
from harness import Daemon, Tap, run, until  # noqa: E402
from shop import NOW, PROCESSES, build, build_id, fleet  # noqa: E402

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
    return f["self_seconds"], f["calls"]


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
        tap.point(counters(d, "render")["calls_total"] == wanted(d, a, "render")[1], "and of the other function")
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
        token = d.token("tenant", "--read", "--tenant", "t")
        status, _, text = d.get("/metrics", Authorization=f"Bearer {token}")
        tap.point(status == 403 or b"watch" not in text, "a token of one tenant does not see the counters",
                  (status, text))


with Tap() as TAP:
    counts(TAP)
    configuration(TAP)
    rights(TAP)
