"""schema/grafana-dashboard.json against a real daemon: every address that a panel or a variable asks for is answered,
and every field that its columns name is there, of the type they name. Grafana itself is not to be had here: the
file is checked against the types that it publishes."""
import json
import os
import re
import shutil
import tempfile
import urllib.parse
from datetime import datetime, timezone

from harness import NODE_MODULES, ROOT, Daemon, Tap, profile, programs, run

PATH = os.path.join(ROOT, "schema/grafana-dashboard.json")
INFINITY = "yesoreyeram-infinity-datasource"
TYPES = {"string": str, "number": (int, float), "boolean": bool, "timestamp_epoch": int}
FORMATS = {"table", "timeseries", "node-graph-nodes", "node-graph-edges"}
# What the panels of Grafana read by name.
NEEDS = {"flamegraph": {"level", "value", "self", "label"}, "node-graph-nodes": {"id", "title", "mainstat"},
         "node-graph-edges": {"id", "source", "target"}, "timeseries": {"time"}}


def fill(text, values):
    """Grafana's ${name} and ${name:format}; what is not known stays and is found by the caller."""
    return re.sub(r"\$\{(\w+)(?::\w+)?\}", lambda m: values.get(m.group(1), m.group(0)), text)


def typed(value, kind):
    if kind == "timestamp":
        return (isinstance(value, str) and datetime.fromisoformat(re.sub(r"(\.\d{6})\d*Z$|Z$",
                lambda m: (m.group(1) or "") + "+00:00", value)))
    if kind == "number" and isinstance(value, bool):
        return False
    return isinstance(value, TYPES[kind])


def ask(d, query, values):
    """(address, rows or None, what is wrong)."""
    target = fill(query["url"], values)
    parameters = [(p["key"], fill(p["value"], values)) for p in query["url_options"]["params"]]
    target += "?" + urllib.parse.urlencode(parameters) if parameters else ""
    if "$" in urllib.parse.unquote(target):
        return target, None, "a variable that does not exist"
    status, headers, body = d.get(target)
    if status != 200 or "json" not in headers.get("content-type", ""):
        return target, None, f"{status} {headers.get('content-type')} {body[:300]}"
    rows = json.loads(body)
    for word in query["root_selector"].split(".") if query["root_selector"] else []:
        rows = rows.get(word) if isinstance(rows, dict) else None
    if not isinstance(rows, list) or not rows:
        return target, None, f"no rows at {query['root_selector']}: {body[:300]}"
    wrong = [(c["selector"], c["type"], row.get(fill(c["selector"], values))) for row in rows for c in query["columns"]
             if not typed(row.get(fill(c["selector"], values)), c["type"])]
    return target, rows, wrong[:3] or None


def queries(dashboard):
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield f"panel \"{panel['title']}\" {target['refId']}", target, panel["type"]


def test_shape(tap, dashboard):
    panels = dashboard["panels"]
    tap.point(len({p["id"] for p in panels}) == len(panels) and dashboard["uid"] and dashboard["title"],
              "panels have ids of their own")
    kinds = {p["type"] for p in panels}
    tap.point({"table", "timeseries", "flamegraph", "nodeGraph"} <= kinds
              and kinds == {r["id"] for r in dashboard["__requires"] if r["type"] == "panel"},
              "every kind of panel is there, and required", kinds)
    cells = [(p["gridPos"]["x"] + i, p["gridPos"]["y"] + k) for p in panels for i in range(p["gridPos"]["w"])
             for k in range(p["gridPos"]["h"])]
    tap.point(len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24,
              "panels lie beside each other in 24 columns")
    names = [v["name"] for v in dashboard["templating"]["list"]]
    tap.point(names[0] == "datasource" and {"build", "label", "value", "step", "function"} <= set(names)
              and len(set(names)) == len(names),
              "variables for the data source, build, label, value, step and function", names)
    known = set(names) | {"__from", "__to", "__data", "__url_time_range"}
    used = set(re.findall(r"\$\{(\w+)", json.dumps(dashboard)))
    tap.point(used <= known and set(names) <= used, "every variable that is used exists, and the other way round",
              used ^ set(names))
    for name, query, kind in queries(dashboard):
        form = query["format"]
        texts = {c["text"] for c in query["columns"]}
        need = NEEDS.get("flamegraph" if kind == "flamegraph" else form, set())
        tap.point(query["datasource"] == {"type": INFINITY, "uid": "${datasource}"} and query["type"] == "json"
                  and query["source"] == "url"
                  and query["parser"] == "backend" and form in FORMATS and query["url"].startswith("/api/v1/")
                  and query["url_options"]["method"] == "GET" and need <= texts,
                  f"{name}: an Infinity query with the fields its panel reads", query)


# Each breaks a rule of Grafana's types: the check can fail.
BREAKS = (
    lambda d: d["panels"][0].update(type="tabel"),
    lambda d: d["panels"][0].update(gridpos={}),
    lambda d: d["panels"][0]["options"].update(shwHeader=True),
    lambda d: d["panels"][1]["options"]["legend"].update(displayMode="grid"),
    lambda d: d["panels"][1]["fieldConfig"]["defaults"]["custom"].update(drawStyle="pie"),
    lambda d: d["templating"]["list"][0].update(refresh=7),
    lambda d: d["time"].update({"from": 1}),
)


def test_types(tap, dashboard):
    """By the TypeScript compiler. What an import form adds (__…) has no type."""
    name = "the file has the types of @grafana/schema"
    compiler = os.path.join(NODE_MODULES, "typescript", "bin", "tsc")
    if not os.path.exists(compiler) or not os.path.isdir(os.path.join(NODE_MODULES, "@grafana", "schema")):
        return tap.skip(name, "typescript or @grafana/schema is not installed: sh tests/deps.sh check")
    files = [{k: v for k, v in json.loads(json.dumps(dashboard)).items() if not k.startswith("__")}
             for _ in range(1 + len(BREAKS))]
    for wrong, file in zip(BREAKS, files[1:]):
        wrong(file)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(NODE_MODULES)) as folder:
        source = os.path.join(folder, "dashboard.ts")
        shutil.copy(os.path.join(ROOT, "tests/browser/grafana.ts"), source)
        with open(source) as f:
            head = f.read().count("\n")
        with open(source, "a") as f:  # each in one line
            f.writelines(f"export const d{i}: File = {json.dumps(d)};\n" for i, d in enumerate(files))
        done = run("node", compiler, "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module",
                   "nodenext", "--pretty", "false", source, cwd=folder)
    errors = {int(line) - head - 1: text for line, text in re.findall(r"\.ts\((\d+),\d+\): (.*)", done.stdout)}
    tap.point(min(errors, default=0) > 0, name, done.stdout + done.stderr)
    tap.point(set(errors) == set(range(1, 1 + len(BREAKS))), f"{len(BREAKS)} files that break them are found", errors)
    return None


def test_answers(tap, d, dashboard, now):
    values = {"__from": str((now - 86400) * 1000), "__to": str((now + 3600) * 1000)}
    for variable in dashboard["templating"]["list"]:
        name = variable["name"]
        if variable["type"] == "custom":
            options = variable["query"].split(",")
            values[name] = variable["current"]["value"]
            tap.point(values[name] in options, f"variable {name}: its value is one of {options}")
        elif variable["type"] == "query":
            query = variable["query"]["infinityQuery"]
            target, rows, wrong = ask(d, query, values)
            tap.point(rows and not wrong and {c["text"] for c in query["columns"]} == {"__text", "__value"},
                      f"variable {name}: {target}", wrong)
            field = next((c["selector"] for c in query["columns"] if c["text"] == "__value"), None)
            if name == "label":
                tap.point(any(r[field] == "service" for r in rows), "the label that was uploaded can be chosen")
                values[name] = "service"
            else:
                values[name] = variable.get("allValue") or rows[0][field]
        elif variable["type"] == "datasource":
            tap.point(variable["query"] == INFINITY, "the data source is an Infinity one")
    steps = next(v for v in dashboard["templating"]["list"] if v["name"] == "step")["query"].split(",")
    for name, query, _ in queries(dashboard):
        target, rows, wrong = ask(d, query, values)
        tap.point(rows is not None and not wrong, f"{name}: {target[:70]}", f"{target}\n{wrong}")
        if any(p["value"] == "${step}" for p in query["url_options"]["params"]):
            bad = [s for s in steps if ask(d, query, {**values, "step": s})[2]]
            tap.point(not bad, f"{name}: in every step that can be chosen", bad)
    return values


def test_narrowed(tap, d, dashboard, values):
    """One and several values of the label, as Grafana writes them with :pipe, and a time range without data."""
    name, query, _ = next(q for q in queries(dashboard) if "groups" in q[1]["url"])
    for chosen, count in (("web", 1), ("web|batch", 2), (".*", 2)):
        _, rows, wrong = ask(d, query, {**values, "value": chosen})
        tap.point(not wrong and len({r["label_service"] for r in rows or []}) == count,
                  f"{name}: {chosen} is {count} series", wrong)
    _, rows, wrong = ask(d, query, {**values, "__from": "1000000000000", "__to": "1000086400000"})
    tap.point(rows is None and "no rows" in wrong, "a day of 2001 has no rows, and is no error", wrong)


NAME, LABEL = r"[a-zA-Z_:][a-zA-Z0-9_:]*", r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (NaN|[+-]Inf|-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)")
WANTED = {  # name: type, as dashboards know them
    "profd_build_info": "gauge", "profd_uploads_total": "counter", "profd_upload_bytes_total": "counter",
    "profd_samples_total": "counter",
    "profd_calls_total": "counter", "profd_upload_duration_seconds": "histogram",
    "profd_query_duration_seconds": "histogram",
    "profd_db_bytes": "gauge", "profd_wal_bytes": "gauge", "profd_builds": "gauge",
    "profd_symbols_missing_builds": "gauge",
    "profd_ledger_mismatch_total": "counter"}


def parse_metrics(text):
    """family → (type, [(name, labels, value)]) of the text format 0.0.4; whatever is not exactly that is an error."""
    families, helped, current = {}, set(), None
    if not text.endswith("\n"):
        raise ValueError("the last line is not ended")
    for line in text[:-1].split("\n"):
        if head := re.fullmatch(rf"# HELP ({NAME}) (.+)", line):
            if head.group(1) in helped:
                raise ValueError(f"HELP twice: {line}")
            helped.add(head.group(1))
        elif head := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram|summary|untyped)", line):
            current = head.group(1)
            if current in families or current not in helped:
                raise ValueError(f"TYPE twice or without HELP: {line}")
            families[current] = (head.group(2), [])
        elif sample := SAMPLE.fullmatch(line):
            base = (re.sub(r"_(bucket|sum|count)$", "", sample.group(1)) if current
                    and families[current][0] == "histogram" else sample.group(1))
            if base != current:
                raise ValueError(f"a sample outside of its family {current}: {line}")
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample.group(2) or ""))
            if any(labels == known and sample.group(1) == name for name, known, _ in families[current][1]):
                raise ValueError(f"a sample twice: {line}")
            families[current][1].append((sample.group(1), labels, float(sample.group(3).replace("Inf", "inf"))))
        else:
            raise ValueError(f"no line of the format: {line}")
    return families


def histogram_faults(samples):
    """Cumulative buckets up to +Inf, which is the count, for every set of labels."""
    series = {}
    for name, labels, value in samples:
        key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        series.setdefault(key, {})[(name.rsplit("_", 1)[1], labels.get("le"))] = value
    for key, found in series.items():
        edges = [(float(le.replace("Inf", "inf")), v) for (kind, le), v in found.items() if kind == "bucket"]
        if edges != sorted(edges) or [v for _, v in edges] != sorted(v for _,
                v in edges) or edges[-1][0] != float("inf") \
                or edges[-1][1] != found.get(("count", None)) or ("sum", None) not in found:
            yield key


def test_metrics(tap, d):
    status, headers, body = d.get("/metrics")
    tap.point(status == 200 and headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8",
              "/metrics has the format's type", headers)
    families = parse_metrics(body.decode())
    tap.point(len(families) > 40, f"every line of {len(families)} families is of the format, with HELP and TYPE before "
                                  f"its samples")
    wrong = {n: families.get(n, ("missing",))[0] for n, kind in WANTED.items()
             if families.get(n, ("missing",))[0] != kind}
    tap.point(not wrong, "the names and types that dashboards know", wrong)
    odd = [n for n, (kind, _) in families.items() if (kind == "counter") != n.endswith("_total")
           or not n.startswith("profd_")
           or re.search(r"_(ms|us|ns|kb|mb|minutes|hours|percent|milliseconds)(_|$)", n)]
    tap.point(not odd, "counters end with _total and nothing else does; base units only", odd)
    units = [n for n, (kind, _) in families.items() if kind == "histogram" and not n.endswith(("_seconds", "_bytes"))]
    tap.point(not units, "histograms say their unit", units)
    faults = [(n, k) for n, (kind, samples) in families.items() if kind == "histogram"
              for k in histogram_faults(samples)]
    tap.point(not faults, "buckets are cumulative and end with the count", faults)
    secret = [(n, labels) for n, (_, samples) in families.items() for _, labels, _ in samples
              if set(labels) & {"build_id", "build", "pid", "function", "name", "host"}]
    tap.point(not secret, "no label of which there may be many", secret)
    broken = [t for t in ("a 1\n", "# HELP a b\n# TYPE a counter\nb 1\n", "# HELP a b\n# TYPE a gauge\na{x=1} 1\n",
                          "# HELP a b\n# TYPE a gauge\na 1",
                          "# HELP a b\n# TYPE a gauge\na 1\na 2\n") if not refused(t)]
    tap.point(not broken, "and the test's own parser refuses what is not the format", broken)


def refused(text):
    try:
        parse_metrics(text)
        return False
    except ValueError:
        return True


with Tap() as tap, Daemon() as d:
    dashboard = json.load(open(PATH))
    folder = programs(os.path.join(d.folder, "programs"))
    for name, arguments, service in (("calc", ["-s", "7", "-n", "6000"], "web"),
                                     ("calc", ["-s", "8", "-n", "3000"], "batch")):
        exe = os.path.join(folder, name)
        path = profile(d.folder, exe, arguments, service)
        assert d.ctl("upload", "-e", exe, "-l", f"service={service}", path).returncode == 0
    test_shape(tap, dashboard)
    test_types(tap, dashboard)
    values = test_answers(tap, d, dashboard, int(datetime.now(timezone.utc).timestamp()))
    test_narrowed(tap, d, dashboard, values)
    test_metrics(tap, d)
