"""The dashboards in schema/grafana by the types that Grafana publishes, because Grafana itself is not to be had here
(pyroscope.py asks their queries), and /metrics, which they read."""
import copy
import glob
import json
import os
import re
import shutil
import tempfile

from harness import NODE_MODULES, ROOT, Daemon, Tap, profile, programs, run

# Each breaks a rule of Grafana's types: the check can fail.
BREAKS = (
    lambda d: d["panels"][0].update(type="tabel"),
    lambda d: d["panels"][0].update(gridpos={}),
    lambda d: d["panels"][0]["options"].update(legnd=True),
    lambda d: d["panels"][1]["options"]["legend"].update(displayMode="grid"),
    lambda d: d["panels"][1]["fieldConfig"]["defaults"]["custom"].update(drawStyle="pie"),
    lambda d: d["templating"]["list"][0].update(refresh=7),
    lambda d: d["time"].update({"from": 1}),
)


def test_dashboards(tap):
    """By the TypeScript compiler."""
    name = "the files have the types of @grafana/schema"
    compiler = os.path.join(NODE_MODULES, "typescript", "bin", "tsc")
    if not os.path.exists(compiler) or not os.path.isdir(os.path.join(NODE_MODULES, "@grafana", "schema")):
        return tap.skip(name, "typescript or @grafana/schema is not installed: sh tests/deps.sh check")
    files = []
    for path in sorted(glob.glob(os.path.join(ROOT, "schema/grafana/*.json"))):
        with open(path, encoding="utf-8") as f:
            files.append(json.load(f))
    whole = len(files)
    for wrong in BREAKS:
        files.append(copy.deepcopy(files[0]))
        wrong(files[-1])
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
    tap.point(whole > 0 and min(errors, default=0) >= whole, name, done.stdout + done.stderr)
    tap.point(set(errors) == set(range(whole, len(files))), f"{len(BREAKS)} files that break them are found", errors)
    return None


NAME, LABEL = r"[a-zA-Z_:][a-zA-Z0-9_:]*", r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (NaN|[+-]Inf|-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)")
WANTED = {  # name: type, as dashboards know them
    "profd_build_info": "gauge", "profd_uploads_total": "counter", "profd_upload_bytes_total": "counter",
    "profd_samples_total": "counter",
    "profd_calls_total": "counter", "profd_upload_duration_seconds": "histogram",
    "profd_query_duration_seconds": "histogram",
    "profd_db_bytes": "gauge", "profd_wal_bytes": "gauge", "profd_builds": "gauge",
    "profd_symbols_missing_builds": "gauge",
    "profd_symbols_missing_since_seconds": "gauge",
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
    folder = programs(os.path.join(d.folder, "programs"))
    for name, arguments, service in (("calc", ["-s", "7", "-n", "6000"], "web"),
                                     ("calc", ["-s", "8", "-n", "3000"], "batch")):
        exe = os.path.join(folder, name)
        path = profile(d.folder, exe, arguments, service)
        assert d.ctl("upload", "-e", exe, "-l", f"service={service}", path).returncode == 0
    test_dashboards(tap)
    test_metrics(tap, d)
