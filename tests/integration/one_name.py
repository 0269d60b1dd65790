"""Own time, time with callees and calls have one name each: self_seconds, total_seconds, calls. No schema and no answer
has another one for them, but for those that formats of other programs require. No field is deprecated."""
import csv
import io
import json
import os
import re

from harness import ROOT, Daemon, Tap, profile, programs

# Other ideas whose names have the same words.
OTHERS = {
    "children_seconds", "self_share", "total_share", "total_percent",
    "self_least", "self_most",                  # bounds of an estimated self_seconds
    "measured_self", "measured_total",          # what stacks say, beside what calls say
    "self_calls", "calls_outside", "calls_inside", "of_calls", "caller_calls", "all_calls",  # parts and sums of calls
    "calls_per_caller_call", "measured_per_call", "seconds_per_call", "seconds_by_calls", "calls_per_second",
    "calls_exact", "calls_sampled",
    "calls_lost", "calls_junk", "not_called", "not_called_basis", "never_called", "break_calls",
    "call_sites", "totals", "processes_with_own_sigprof", "callers", "callees", "caller", "callee",
    "callee_address",
    "static_callers", "static_callees",
    "callers_left_out", "callees_left_out", "static_callers_left_out", "static_callees_left_out",
    "more_callers", "more_callees", "callers_not_named",
}
WORDS = re.compile(r"(?:^|_)(?:(?:self|own|exclusive|totals?|inclusive|cumulative|descendants|children)(?:_|$)|call)")
ONE = {"self_seconds", "total_seconds", "calls"}


def schemas(node, at):
    """(place, properties) of every object that a schema describes."""
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict):
            yield at, node["properties"]
        for key, value in node.items():
            yield from schemas(value, f"{at}/{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from schemas(value, f"{at}/{i}")


def faults_of_names(at, names):
    for name in names:
        plain = name.removesuffix("_str")
        if WORDS.search(plain) and plain not in ONE | OTHERS:
            yield f"{at}: {name}"
        elif plain == "seconds" and "seconds_per_call" in names:  # elsewhere seconds are of all functions
            yield f"{at}: {name} of a caller"


def objects(node, at=""):
    if isinstance(node, dict):
        yield at, node
        for key, value in node.items():
            yield from objects(value, f"{at}/{key}")
    elif isinstance(node, list):
        for value in node:
            yield from objects(value, at)


def documents(tap):
    found, deprecated = [], []
    for name in ("openapi.json", "report.schema.json"):
        with open(os.path.join(ROOT, "schema", name), encoding="utf-8") as f:
            schema = json.load(f)
        found += schemas(schema, name)
        deprecated += [name + at for at, one in objects(schema) if "deprecated" in one]
    tap.point(not deprecated, "no field is deprecated", deprecated)
    faults = [fault for at, properties in found for fault in faults_of_names(at, properties)]
    tap.point(not faults, "schemas have one name for self time, total time and calls", faults[:10])
    known = {k for _, properties in found for k in properties}
    tap.point(len(found) > 60 and ONE <= known, "they describe all three", (len(found), sorted(ONE - known)))
    bad = ["own_seconds", "self", "self_seconds", "inclusive_time", "called", "seconds", "seconds_per_call"]
    tap.point(len(list(faults_of_names("", bad))) == 5, "and the test finds other names",
              list(faults_of_names("", bad)))


def targets(build, address):
    report, function = f"/api/v1/builds/{build}/report", f"/api/v1/builds/{build}/functions/{address}"
    return ([f"{report}?limit=0", f"{report}?view=flat&limit=0", f"{report}?format=tree",
             f"{report}?format=graph", function]
            + [f"{function}/{part}" for part in ("series?step=1h", "addresses", "callers")]
            + [f"/api/v1/builds/{build}{part}" for part in ("", "/groups?by=service", "/functions?name=a", "/cycles",
                                                            "/never-called")]
            + ["/api/v1/builds", "/api/v1/functions", "/api/v1/load", "/api/v1/processes",
               f"/api/v1/diff?a={build}&b={build}&a.label.service=web&b.label.service=batch"])


def answers(tap, d, build, address):
    for target in targets(build, address):
        status, _, body = d.get(target)
        faults = [f for at, one in objects(json.loads(body)) for f in faults_of_names(at, one)]
        tap.point(status == 200 and not faults, target.replace(build, "ID").replace(address, "ADDRESS"),
                  (status, faults[:5], body[:300]))
    answer = json.loads(d.get(f"/api/v1/builds/{build}/report?format=graph")[2])
    tap.point(answer["cycles"] and all(ONE - {"calls"} <= c.keys() for c in answer["cycles"]),
              "cycles have times", answer["cycles"])


def tables(tap, d, exe, name):
    head = next(csv.reader(io.StringIO(d.ctl("report", exe, "-f", "csv").stdout)))
    tap.point(ONE <= set(head) and not list(faults_of_names("csv", head)), "report -f csv", head)
    rows = list(csv.DictReader(io.StringIO(d.ctl("callers", exe, name, "-f", "csv").stdout)))
    faults = [f for row in rows for f in faults_of_names("csv", row)]
    named = all("total_seconds" in r and "calls" in r for r in rows)
    tap.point(rows and not faults and named, "callers -f csv", faults)


def main():
    with Tap() as tap, Daemon() as d:
        documents(tap)
        exe = os.path.join(programs(os.path.join(d.folder, "programs")), "calc")
        for service, seed in (("web", "7"), ("batch", "8")):
            path = profile(d.folder, exe, ["-s", seed, "-n", "6000"], service)
            assert d.ctl("upload", "-e", exe, "-l", f"service={service}", path).returncode == 0
        build = d.json("builds", "--json")["rows"][0]["build_id"]
        report = json.loads(d.ctl("report", exe, "--json").stdout)
        cycle = next(f for f in report["functions"] if f["cycle"] and f["callers"])
        answers(tap, d, build, cycle["address"])
        tables(tap, d, exe, cycle["name"])


main()
