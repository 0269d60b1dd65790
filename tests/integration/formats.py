"""Exports into other tools' formats, each read by its own consumer: pprof by the pprof tool, callgrind by
callgrind_annotate, DOT by Graphviz; folded, speedscope, CSV and Grafana's frames by their published rules. Every one
agrees with the JSON report."""
import csv
import glob
import io
import json
import os
import re
import shutil
import unicodedata
import xml.etree.ElementTree

from formats_hostile import hostile_program
from harness import NODE_MODULES, Daemon, Tap, profile, programs, run

RUNS = {
    "cycle": [["6"], ["9"]],
    "calc": [["-s", "7", "-n", "6000"], ["1+2*(3-4)^2"]],
    "shapes": [["20000"], ["5000"]],
    "heat": [["50"]],
    "uselib": [["10"]],
    "sorter": [["300000", "1"]],
}
PPROF = next(iter(glob.glob("/usr/lib/go-1.*/pkg/tool/*/pprof")), None)


def close(a, b, allowed):
    return abs(a - b) <= allowed


def text(d, exe, form, *options):
    done = d.ctl("report", exe, "-f", form, *options, binary=True)
    if done.returncode != 0:
        raise RuntimeError(f"{form}: {done.stderr}")
    return done.stdout


def pprof_top(path, index, folder):
    """name → (flat, cumulative) as the pprof tool adds them up."""
    unit = "ns" if index == "cpu" else "count"
    done = run(PPROF, "-top", "-noinlines", "-nodecount=0", "-nodefraction=0", "-edgefraction=0",
               f"-sample_index={index}", f"-unit={unit}", path, env=dict(os.environ, HOME=folder, PPROF_TMPDIR=folder))
    rows, started = {}, False
    for line in done.stdout.splitlines():
        words = line.split(None, 5)
        if started and len(words) == 6:
            number = [float(re.sub(r"[a-z]+$", "", words[i])) for i in (0, 3)]
            rows[words[5]] = tuple(number)
        started = started or line.lstrip().startswith("flat")
    return done, rows


def test_pprof(tap, d, exe, name, report):
    path = os.path.join(d.folder, f"{name}.pb")
    open(path, "wb").write(text(d, exe, "pprof"))
    if PPROF is None:
        tap.skip(f"{name}: pprof", "no pprof tool here")
        return
    done, cpu = pprof_top(path, "cpu", d.folder)
    total = report["totals"]["seconds"]
    tap.point(done.returncode == 0 and close(sum(v[0] for v in cpu.values()), total * 1e9, 10),
              f"{name}: the pprof tool adds up to the report's seconds", done)
    wrong = [(f["name"], f["self_seconds"], cpu.get(f["name"])) for f in report["functions"]
             if f["self_seconds"] > 1e-3 * total and (f["name"] not in cpu
                                                      or not close(cpu[f["name"]][0], f["self_seconds"] * 1e9,
                                                                   1e4 * total + 10))]
    tap.point(not wrong, f"{name}: flat times are the report's self times", wrong)
    wrong = [(f["name"], f["total_seconds"], cpu.get(f["name"])) for f in report["functions"]
             if f["cycle"] == 0 and f["total_seconds"] > 1e-3 * total
             and not close(cpu.get(f["name"], (0, 0))[1], f["total_seconds"] * 1e9, 1e4 * total + 1e6)]
    tap.point(not wrong, f"{name}: cumulative times are the report's totals", wrong)
    done, calls = pprof_top(path, "calls", d.folder)
    wrong = [(f["name"], f["calls"] + f["self_calls"], calls.get(f["name"])) for f in report["functions"]
             if f["calls"] + f["self_calls"] and calls.get(f["name"], (0, 0))[0] != f["calls"] + f["self_calls"]]
    tap.point(done.returncode == 0 and not wrong, f"{name}: its call counts are exact", wrong)
    raw = run(PPROF, "-raw", path, env=dict(os.environ, HOME=d.folder, PPROF_TMPDIR=d.folder)).stdout
    comments = run(PPROF, "-comments", path, env=dict(os.environ, HOME=d.folder, PPROF_TMPDIR=d.folder)).stdout
    tap.point(report["build_id"] in raw and "synthetic" in comments, f"{name}: build-id and \"synthetic\" are in it",
              comments)


def test_callgrind(tap, d, exe, name, report):
    path = os.path.join(d.folder, f"callgrind.out.{name}")
    open(path, "wb").write(text(d, exe, "callgrind"))
    if shutil.which("callgrind_annotate") is None:
        tap.skip(f"{name}: callgrind", "no callgrind_annotate here")
        return
    done = run("callgrind_annotate", "--threshold=100", "--tree=calling", "--show-percs=no", path)
    total = round(report["totals"]["seconds"] * 1e9)
    shown = re.search(r"^\s*([\d,]+)\s+PROGRAM TOTALS", done.stdout, re.M)
    tap.point(done.returncode == 0 and shown is not None and close(int(shown.group(1).replace(",", "")), total,
                                                                  len(report["functions"])),
              f"{name}: callgrind_annotate reads {total} ns", done.stdout[:600] + done.stderr)
    wrong = []
    for f in report["functions"]:
        for row in f["callees"]:
            if row["calls"] > 0:
                want = rf">   .*{re.escape(row['name'])} \({row['calls']:,}x\)"
                if not re.search(want, done.stdout):
                    wrong.append(want)
    tap.point(not wrong and len(report["functions"]) > 0, f"{name}: every arc has its count in callgrind_annotate's "
              f"tree",
              "\n".join(wrong[:5]) + "\n" + done.stdout[-1500:])


def test_dot(tap, d, exe, name, report):
    source = text(d, exe, "dot")
    path = os.path.join(d.folder, f"{name}.dot")
    open(path, "wb").write(source)
    if shutil.which("dot") is None:
        tap.skip(f"{name}: dot", "no Graphviz here")
        return
    done = run("dot", "-Tsvg", path)
    edges = len(re.findall(r"^  f\d+ -> f\d+ ", source.decode(), re.M))
    wanted = sum(len(f["callees"]) for f in report["functions"]) if len(report["functions"]) <= 80 else None
    tap.point(done.returncode == 0 and done.stderr == "" and "<svg" in done.stdout
              and (wanted is None or edges == wanted),
              f"{name}: Graphviz draws {edges} arcs", done.stderr)
    few = text(d, exe, "dot", "--limit", "3").decode()
    tap.point(len(re.findall(r"^  f\d+ \[", few, re.M)) == min(3, len(report["functions"])),
              f"{name}: --limit 3 draws three functions", few)


def test_stacks(tap, d, exe, name, report):
    total = report["totals"]["seconds"]
    own = {f["name"]: f["self_seconds"] for f in report["functions"]}
    flat, count = {}, 0
    for line in text(d, exe, "folded").decode().splitlines():
        stack, _, n = line.rpartition(" ")
        frames = stack.split(";")
        count += int(n)
        flat[frames[-1]] = flat.get(frames[-1], 0) + int(n)
        if frames[0] != "[synthetic stacks]":
            flat["bad"] = line
    wrong = [(n, s, flat.get(n.replace(";", ":"))) for n, s in own.items()
             if s > 1e-3 * total and not close(flat.get(n.replace(";", ":"), 0), s * 1e6, 2e-5 * total * 1e6 + 50)]
    tap.point(close(count, total * 1e6, 2) and not wrong and "bad" not in flat,
              f"{name}: folded stacks add up, leaves are self times", wrong or count)
    scope = json.loads(text(d, exe, "speedscope"))
    p = scope["profiles"][0]
    frames = scope["shared"]["frames"]
    good = (scope["$schema"] == "https://www.speedscope.app/file-format-schema.json" and p["type"] == "sampled"
            and p["unit"] == "seconds" and len(p["samples"]) == len(p["weights"]) and p["startValue"] == 0
            and close(p["endValue"], sum(p["weights"]), 1e-9) and close(p["endValue"], total, 1e-6 + 1e-6 * total)
            and all(0 <= i < len(frames) for s in p["samples"] for i in s) and "synthetic" in p["name"]
            and set(scope) == {"$schema", "exporter", "activeProfileIndex", "name", "shared", "profiles"})
    tap.point(good and (len(p["samples"]) > 0) == (total > 0),
              f"{name}: speedscope's rules hold for {len(p['samples'])} samples", str(scope)[:400])


def speedscope_schema():
    """The JSON schema in speedscope's own npm package; None if it is not installed."""
    found = glob.glob(os.path.join(NODE_MODULES, "speedscope", "dist", "release", "file-format-schema*.json"))
    return json.load(open(found[0])) if found else None


def test_speedscope_schema(tap, d, schema, exes):
    """Every export against the schema, in a process of its own: the validator's modules have names that tests have,
    too."""
    if schema is None:
        return tap.skip("speedscope's own schema accepts every export",
                        "speedscope is not installed: sh tests/deps.sh check")
    path = os.path.join(d.folder, "speedscope.schema.json")
    json.dump(schema, open(path, "w"))
    check = ("import json, sys, jsonschema; schema = json.load(open(sys.argv[1]))\n"
             "validator = jsonschema.validators.validator_for(schema)(schema); bad = 0\n"
             "for path in sys.argv[2:]:\n"
             "    for e in list(validator.iter_errors(json.load(open(path))))[:3]: bad = 1; print(path, "
             "list(e.absolute_path), e.message[:300])\n"
             "sys.exit(bad)")
    files = []
    for exe in exes:
        files.append(os.path.join(d.folder, f"{os.path.basename(exe)}.speedscope.json"))
        open(files[-1], "wb").write(text(d, exe, "speedscope"))
    done = run("/usr/bin/python3", "-c", check, path, *files, cwd=d.folder)
    tap.point(done.returncode == 0, f"speedscope's own schema accepts {len(files)} exports", done.stdout + done.stderr)
    broken = json.load(open(files[0]))
    broken["profiles"][0]["unit"] = "fortnights"
    del broken["shared"]["frames"]
    json.dump(broken, open(files[0], "w"))
    tap.point(run("/usr/bin/python3", "-c", check, path, files[0], cwd=d.folder).returncode == 1,
              "and refuses one that was broken")


def test_tables(tap, d, exe, name, report):
    rows = list(csv.DictReader(io.StringIO(text(d, exe, "csv").decode(), newline="")))
    same = [(r["name"], float(r["self_seconds"]), int(r["calls"]), r["address"]) for r in rows]
    want = [(f["name"], f["self_seconds"], f["calls"], f["address"]) for f in report["functions"]]
    tap.point(same == want, f"{name}: CSV has the report's {len(want)} functions in its order", (same[:3], want[:3]))
    graph = json.loads(text(d, exe, "graph"))
    ids = {n["id"] for n in graph["nodes"]}
    calls = sum(e["calls"] for e in graph["edges"])
    wanted = sum(r["calls"] for f in report["functions"] for r in f["callees"] if r["index"] != f["index"])
    tap.point(len(ids) == len(graph["nodes"]) and all(e["source"] in ids and e["target"] in ids for e in graph["edges"])
              and (calls == wanted or graph["not_shown"] > 0),
              f"{name}: the node graph's {len(graph['edges'])} edges carry all calls", (calls, wanted))
    few = json.loads(text(d, exe, "graph", "--limit", "2"))
    known = {n["id"] for n in few["nodes"] + few["context"]}
    for cycle in report["cycles"]:
        shown = [c for c in few["cycles"] if c["cycle"] == cycle["number"]]
        least = min(n["total_seconds"] for n in few["nodes"])
        if not shown and cycle["total_seconds"] <= least and not any(n["cycle"] == cycle["number"]
                                                                     for n in few["nodes"]):
            continue
        c = shown[0]
        tap.point((c["members"], c["calls_outside"], c["calls_inside"])
                  == (len(cycle["members"]), cycle["calls_outside"], cycle["calls_inside"])
                  and close(c["total_seconds"], cycle["total_seconds"], 1e-9)
                  and sum(r["calls"] for r in c["callers"])
                  + c["more_callers"]["calls"] == sum(r["calls"] for r in cycle["callers"])
                  and sum(r["calls"] for r in c["callees"])
                  + c["more_callees"]["calls"] == sum(r["calls"] for r in cycle["callees"])
                  and all(r["id"] in known for r in c["callers"] + c["callees"]),
                  f"{name}: cycle {cycle['number']} has the report's figures, callers and callees in a picture of 2 "
                  f"functions", c)


def test_short_names(tap, d, exe, name, report):
    """names=short shortens what people read, and says the whole name beside it where it is JSON."""
    short = json.loads(text(d, exe, "json", "--names", "short"))
    wide = [f for f in short["functions"] if "short_name" in f]
    templates = [f for f in report["functions"] if f["raw_name"].startswith("_Z")
                 and ("<" in f["name"] or "__cxx11" in f["name"])]
    names = [f.get("short_name", f["name"]) for f in short["functions"]]
    tap.point([f["name"] for f in short["functions"]] == [f["name"] for f in report["functions"]]
              and all("std::allocator" not in f["short_name"] for f in wide)
              and len(set(names)) == len({f["name"] for f in report["functions"]}) and (not templates or wide),
              f"{name}: short names stand beside whole ones, and tell functions apart",
              [f["short_name"] for f in wide][:5])
    listing = text(d, exe, "text", "--names", "short").decode()
    tap.point(all(f["short_name"] in listing for f in wide)
              and listing.count("\n") == text(d, exe, "text").decode().count("\n"),
              f"{name}: text with short names has the same lines")


def test_hostile_names(tap, d, folder):
    """Names chosen by others: quotes, separators, markup, escapes."""
    exe, path = hostile_program(folder)
    assert d.ctl("upload", "-e", exe, path).returncode == 0
    for form in ("pprof", "otlp", "callgrind", "folded", "speedscope", "dot", "csv", "tree", "graph", "text", "json"):
        out = text(d, exe, form)
        seen = "" if form in ("pprof", "otlp") else out.decode()
        hidden = ({hex(ord(c)) for c in seen if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")}
                  - {"0xa", "0xd", "0x9", "0xc"})
        tap.point(len(out) > 100 and not hidden, f"hostile names in {form}: no control and no invisible character "
                                                 f"passes", hidden)
        if form == "csv":
            csv_is_harmless(tap, d, exe, seen)
        if form in ("speedscope", "tree", "graph", "json"):
            tap.point(json.loads(out) is not None and b"</script>" not in out,
                      f"hostile names in {form}: valid and no markup")
    if shutil.which("dot"):
        dot = os.path.join(folder, "hostile.dot")
        open(dot, "wb").write(text(d, exe, "dot"))
        done = run("dot", "-Tsvg", dot)
        tap.point(done.returncode == 0 and done.stderr == "", "hostile names: Graphviz reads them", done.stderr)
        svg_is_harmless(tap, text(d, exe, "svg"))
    return exe


def csv_is_harmless(tap, d, exe, seen):
    """No cell is a formula to a spreadsheet, and the names can be had back."""
    cells = [cell for row in csv.reader(io.StringIO(seen, newline="")) for cell in row]
    tap.point("'=1+1" in cells and "'+1+1" in cells and not [c for c in cells if c[:1] in tuple("=+@\t\r\uff1d")
            or c[:1] == "-" and not re.fullmatch(r"-[0-9.e+-]+", c)],
              "hostile names in csv: no cell begins a formula", [c for c in cells if "1+1" in c])
    names = {f["name"] for f in json.loads(text(d, exe, "json"))["functions"]}
    back = {c[1:] if c[:1] == "'" else c for c in cells}
    plain = {"=1+1", "+1+1", "-1+1", "@SUM(1)", "'quoted", "\uff1d1+1"}
    tap.point(plain <= names and plain <= back, "and without the mark they are the names",
              (plain - names, plain - back))
    tap.point("\u202egnp.exe" in names and "tag\U000e0041\U000e007f" in names,
              "JSON escapes what is not seen, and its readers get it back", names)


SVG = "{http://www.w3.org/2000/svg}"


def svg_is_harmless(tap, data):
    """What a browser would make of the picture: shapes and text, nothing that runs, loads or leads elsewhere."""
    tree = xml.etree.ElementTree.fromstring(data)
    tags = {e.tag for e in tree.iter()}
    extra = (tags - {SVG + t for t in ("svg", "g", "title", "polygon", "path", "text", "a", "ellipse", "polyline",
                                       "defs", "style")})
    attributes = [(k, v) for e in tree.iter() for k, v in e.attrib.items()
                  if k.lower().startswith("on") or k.endswith("href") or "script" in v.lower()
                  and not k.endswith("title")]
    tap.point(not extra and not attributes and not tree.findall(f".//{SVG}style"),
              "hostile names in svg: shapes and text only",
              (extra, attributes[:3]))
    texts = [t for e in tree.iter(SVG + "text") for t in e.itertext()]
    tap.point(len(texts) > 10 and any("<" in t for t in texts)
              and not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "".join(texts)),
              "and the names are text in it, without controls", texts[:5])


def test_pictures(tap, d, exe, report):
    """svg is drawn by Graphviz; without it a sentence says so and nothing is left behind."""
    folder = os.path.join(d.folder, "pictures")
    os.makedirs(folder)
    none = d.ctl("report", exe, "-f", "svg", "-o", os.path.join(folder, "x.svg"), env={**d.env, "PATH": folder})
    tap.point(none.returncode == 66 and len(none.stderr.splitlines()) == 1 and "Graphviz" in none.stderr
              and os.listdir(folder) == [],
              "svg without Graphviz: one sentence, no file", none)
    if shutil.which("dot") is None:
        return tap.skip("pictures", "no Graphviz here")
    out = os.path.join(folder, "x.svg")
    done = d.ctl("report", exe, "-f", "svg", "-o", out)
    tree = xml.etree.ElementTree.parse(out).getroot()
    nodes = [g for g in tree.iter(SVG + "g") if g.get("class") == "node"]
    tips = {v for e in tree.iter(SVG + "a") for k, v in e.attrib.items() if k.endswith("title")}
    tap.point(done.returncode == 0 and done.stdout == "" and len(nodes) == len(report["functions"]),
              f"svg shows {len(nodes)} functions", done)
    tap.point({f["name"] for f in report["functions"]} <= tips, "every function's whole name is its tooltip",
              {f["name"] for f in report["functions"]} - tips)
    longest = max((len(t) for e in tree.iter(SVG + "text") for t in e.itertext()), default=0)
    tap.point(longest <= 90, "long names are cut in their boxes", longest)
    tap.point(text(d, exe, "svg").startswith(b"<?xml"), "svg to a pipe")
    fake = os.path.join(folder, "bin")
    os.makedirs(fake)
    with open(os.path.join(fake, "dot"), "w") as f:
        f.write("#!/bin/sh\necho half\nexit 3\n")
    os.chmod(os.path.join(fake, "dot"), 0o755)
    done = d.ctl("report", exe, "-f", "svg", "-o", os.path.join(folder, "y"),
                 env={**d.env, "PATH": f"{fake}:/usr/bin:/bin"})
    tap.point(done.returncode == 70 and "status 3" in done.stderr and not os.path.exists(os.path.join(folder, "y")),
              "a dot that fails is an error, and leaves no half picture", done)
    bad = d.ctl("report", "ffffffff", "-f", "svg", "-o", os.path.join(folder, "z"))
    tap.point(bad.returncode == 66 and "ffffffff" in bad.stderr and not os.path.exists(os.path.join(folder, "z")),
              "an unknown build draws nothing", bad)


with Tap() as tap, Daemon() as d:
    folder = programs(os.path.join(d.folder, "programs"))
    for name, runs in RUNS.items():
        exe = os.path.join(folder, name)
        if not os.path.exists(exe):
            tap.skip(name, "not built here")
            continue
        files = [profile(d.folder, exe, arguments, n) for n, arguments in enumerate(runs)]
        assert d.ctl("upload", "-e", exe, *files).returncode == 0
        report = d.json("report", exe, "--json")
        for test in (test_pprof, test_callgrind, test_dot, test_stacks, test_tables, test_short_names):
            test(tap, d, exe, name, report)
    hostile = test_hostile_names(tap, d, d.folder)
    shapes = os.path.join(folder, "shapes")
    test_pictures(tap, d, shapes, d.json("report", shapes, "--json"))
    test_speedscope_schema(tap, d, speedscope_schema(), [*(os.path.join(folder, n) for n in RUNS
            if os.path.exists(os.path.join(folder, n))), hostile])
    bad = d.ctl("report", os.path.join(folder, "cycle"), "-f", "docx")
    tap.point(bad.returncode != 0 and "speedscope" in bad.stderr and "docx" in bad.stderr,
              "an unknown format is named, with the known ones",
              bad)
