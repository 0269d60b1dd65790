"""Pyroscope's query API, asked by clients that are not ours: buf curl (connect-go, the library of Grafana and of
profilecli) and connect-node, in protobuf and in JSON, over TCP with a token. Flame graphs equal profctl's folded stacks
to the tick, series equal what was sent, and what is wrong gets Connect's error."""
import glob
import json
import os
import re
import tempfile

from harness import NODE_MODULES, ROOT, Daemon, Tap, free_port, run
from http_client import Client
from shop import NOW, after_call, build, send, upload

BUF = os.path.join(NODE_MODULES, ".bin", "buf")
CPU, CALLS = "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "calls:calls:count:calls:count"
TICK = 10_000_000  # ns, at 100 a second
STEP = 60
PATH = "/querier.v1.QuerierService/"


def tree_of(flame, sides=1):
    """{stack from below the root: (total, self) of each side}; the levels must be whole: each child in its parent."""
    names, out, above = flame["names"], {}, []
    for depth, level in enumerate(flame["levels"]):
        values, nodes, ends = [int(v) for v in level["values"]], [], [0] * sides
        for i in range(0, len(values), 3 * sides + 1):
            node = values[i:i + 3 * sides + 1]
            begins = [ends[s] + node[3 * s] for s in range(sides)]
            ends = [begins[s] + node[3 * s + 1] for s in range(sides)]
            parent = next((p for p in above if all(p[1][s] <= begins[s] and ends[s] <= p[2][s] for s in range(sides))
                           and any(p[1][s] < p[2][s] for s in range(sides))), None)
            assert (parent is None) == (depth == 0), f"level {depth}: a node lies outside of all parents"
            path = (parent[0] if parent else ()) + ((names[node[-1]],) if depth else ())
            assert path not in out, f"{path} is there twice"
            out[path] = [(node[3 * s + 1], node[3 * s + 2]) for s in range(sides)]
            nodes.append((path, [begins[s] + node[3 * s + 2] for s in range(sides)], ends))
        above = nodes
    assert names[0] == "total"
    return out


def folded_of(text):
    """profctl's folded stacks, in ticks."""
    out = {}
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        path = tuple(stack.split(";"))
        out[path] = out.get(path, 0) + round(int(count) * 1000 / TICK)
    return out


class Ask:
    """Calls by buf curl, and by a connection of our own."""

    def __init__(self, port, token, folder):
        self.port, self.token, self.schema = port, token, os.path.join(folder, "querier.binpb")
        self.own, self.called, self.different = Client(port), set(), []
        done = run("protoc", f"--descriptor_set_out={self.schema}", f"-I{ROOT}/tests/browser", "querier.proto")
        assert done.returncode == 0, done.stderr

    def call(self, method, message):
        """The answer to a message. The first of each method is asked by buf curl, too, in protobuf."""
        said = self.json(method, message)[2]
        if method not in self.called:
            self.called.add(method)
            other = self.buf(method, message)
            if other != said:
                self.different.append((method, said, other))
        return said

    def buf(self, method, message, *options):
        done = run(BUF, "curl", "--schema", self.schema, "-H", f"Authorization: Bearer {self.token}", "-d",
                   json.dumps(message), *options, f"http://127.0.0.1:{self.port}{PATH}{method}")
        return json.loads(done.stdout or "{}") if done.returncode == 0 else json.loads(done.stderr)

    def json(self, method, message, path=PATH, kind="application/json", token=None):
        """(status, headers, body) of a message, or of bytes."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        head = self.own.request(path + method, "POST", token or self.token, Content_Type=kind, Content_Length=len(body))
        status, headers, got = self.own.ask(path, "POST", raw=head + body)
        return status, headers, json.loads(got) if headers.get("content-type", "").endswith("json") else got


def store(d, folder):
    """A service of two builds with calls, one with stacks of ticks, and their executables."""
    old, new = build(folder, "old", "", ""), build(folder, "new", "", " + step(0)")
    callers = {after_call(old, "step", name): name for name in ("parse", "render")}
    calls = {("main", "step"): 10, ("step", "parse"): 20, ("step", "render"): 30, ("step", "idle"): 5}
    send(d, [upload(old, 1, {"parse": 40, "render": 7}, {}, {"service": "shop", "host": "a"}, NOW - 300,
                    stacks=callers),
             upload(new, 2, {"parse": 11, "idle": 4, "step": 1}, calls, {"service_name": "till", "zone": "x"}, NOW - 30,
                    program="/srv/till"),
             upload(new, 3, {"parse": 3}, calls, {"zone": "y"}, NOW - 90, program="/srv/till")])
    for exe in (old, new):
        assert d.ctl("symbols", exe).returncode == 0
    return old, new


def check_lists(tap, ask):
    types = [t["ID"] for t in ask.call("ProfileTypes", {}).get("profileTypes", [])]
    tap.point(types == [CALLS, CPU], "the types of profiles: calls, and CPU time", types)
    window = {"start": str((NOW - 600) * 1000), "end": str((NOW - 200) * 1000)}
    there = [t["ID"] for t in ask.call("ProfileTypes", window).get("profileTypes", [])]
    tap.point(there == [CPU], "a window without calls has no type of calls", there)
    tap.point(ask.call("ProfileTypes", {"start": "1", "end": "2"}) == {}, "a window without data has no types")
    names = ask.call("LabelNames", {})["names"]
    tap.point({"service", "host", "zone", "service_name", "program", "build_id", "__profile_type__"} <= set(names)
              and names == sorted(names), "names of labels: stored ones and those that follow", names)
    services = ask.call("LabelValues", {"name": "service_name"})["names"]
    tap.point(services == ["shop", "till"], "service_name is the label, else service, else the program", services)
    zones = ask.call("LabelValues", {"name": "zone", "matchers": ['{service_name="till", build_id!=""}']})["names"]
    tap.point(zones == ["x", "y"], "values of selected uploads", zones)
    sets = ask.call("Series", {"labelNames": ["service_name", "__profile_type__"], "matchers": [
        '{service_name="shop"}', '{__profile_type__=~"calls:.*"}']})["labelsSet"]
    sets = [{p["name"]: p["value"] for p in s["labels"]} for s in sets]
    tap.point(sorted(sets, key=str) == sorted([{"service_name": "shop", "__profile_type__": CPU},
                                               {"service_name": "till", "__profile_type__": CALLS}], key=str),
              "series of two selectors", sets)
    stats = ask.call("GetProfileStats", {})
    tap.point(stats == {"dataIngested": True, "oldestProfileTime": str((NOW - 301) * 1000),
                        "newestProfileTime": str((NOW - 30) * 1000)}, "when the first and latest profiles are from",
              stats)


def check_flame(tap, ask, d, old, new):
    def flame(selector, **more):
        return ask.call("SelectMergeStacktraces", {"profile_typeID": CPU, "label_selector": selector, **more})

    said = flame('{service="shop"}')["flamegraph"]
    written = [r'{service="\x73h\u006fp"}', r"{service='\163hop'}", "{service=`shop`}",
               r'{service=~"[\u00e9\u20ac\U0001f600s]h\\wp"}', r"{service=~`\wh.p`, zone!='\n\"`,}'}"]
    tap.point([flame(s).get("flamegraph") == said for s in written[:4]] == [True] * 4
              and ask.json("SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": written[4]})[0] == 400
              and flame(written[4].replace('\\"', '"')).get("flamegraph") == said,
              "values of selectors are strings of Go", written)
    got = {path: n[0][1] // TICK for path, n in tree_of(said).items() if n[0][1]}
    want = folded_of(d.ctl("report", old, "--format", "folded").stdout)
    tap.point(got == want and sum(got.values()) == 47 and said["total"] == str(47 * TICK)
              and said["maxSelf"] == str(40 * TICK), "stacks that were seen: profctl's, to the tick", f"{got}\n{want}")
    derived = flame('{service_name="till"}')["flamegraph"]
    got = {path: n[0][1] // TICK for path, n in tree_of(derived).items() if n[0][1]}
    want = {("derived",) + path[1:]: n for path, n in
            folded_of(d.ctl("report", new, "--format", "folded").stdout).items()}
    tap.point(got == want and sum(got.values()) == 19, "derived stacks stand below derived, and are profctl's",
              f"{got}\n{want}")
    both = tree_of(flame("{}")["flamegraph"])
    tap.point(both[()] == [(66 * TICK, 0)] and ("derived",) in both, "all programs in one", both)
    whole = sum(len(v["values"]) // 4 for v in said["levels"])
    for most in range(1, whole + 1):
        few = flame('{service="shop"}', max_nodes=str(most))["flamegraph"]
        tree_of(few)
        if not (("other" in few["names"]) == (most < whole) and few["total"] == said["total"]
                and sum(len(v["values"]) // 4 for v in few["levels"]) <= max(most, 2)):
            break
    tap.point(most == whole and few == said, "fewer nodes, the same total, and never more than max_nodes", few)
    site = [{"name": name} for name in next(path for path in tree_of(said) if path and path[-1] == "parse")]
    part = flame('{service="shop"}', stack_trace_selector={"call_site": site})["flamegraph"]
    tap.point(part["total"] == str(40 * TICK), "stacks of a call site", part)
    tap.point(flame('{service="nobody"}') == {} and flame("{}", start="1", end="2") == {}
              and ask.call("SelectMergeStacktraces", {"profile_typeID": CALLS}) == {}
              and ask.call("SelectMergeStacktraces", {"profile_typeID": "a:b:c:d:e"}) == {},
              "no data, no flame graph; calls have none")
    side = {"profile_typeID": CPU, "label_selector": '{service="shop"}'}
    diff = ask.call("Diff", {"left": side, "right": {**side, "label_selector": '{zone="x"}'}})["flamegraph"]
    tree = tree_of(diff, 2)
    tap.point(diff["leftTicks"] == str(47 * TICK) and diff["rightTicks"] == str(16 * TICK)
              and diff["total"] == str(63 * TICK) and tree[()] == [(47 * TICK, 0), (16 * TICK, 0)],
              "two sides in one graph", diff)
    merged = ask.call("SelectMergeProfile", {"profile_typeID": CPU, "label_selector": "{}"})
    texts = merged["stringTable"]
    cpu = [texts[int(t["type"])] for t in merged["sampleType"]].index("cpu")
    tap.point(sum(int(s["value"][cpu]) for s in merged["sample"]) == 66 * TICK and "parse" in texts
              and len(merged["mapping"]) == 2
              and ask.call("SelectMergeProfile", {"profile_typeID": CPU, "end": "1"}) == {},
              "all programs as one profile of pprof", merged)
    for client in (ask.json, ask.buf):
        same = client("SelectMergeStacktraces", {"profile_typeID": CPU, "format": "PROFILE_FORMAT_PPROF"})
        same = same if client == ask.buf else same[2]
        tap.point(same == {"pprof": {"profile": merged}}, "SelectMergeStacktraces has the same in pprof", same)
    for form in ("TREE", "DOT"):
        status, _, why = ask.json("SelectMergeStacktraces", {"profile_typeID": CPU,
                                                             "format": f"PROFILE_FORMAT_{form}"})
        tap.point(status == 501 and why["code"] == "unimplemented" and "PROFILE_FORMAT_PPROF" in why["message"],
                  f"the format {form} is not implemented", why)
    status, headers, again = ask.json("SelectMergeStacktraces", {"profileTypeID": CPU,
                                                                 "labelSelector": '{service="shop"}'})
    tap.point(status == 200 and again == {"flamegraph": said} and headers["content-type"] == "application/json",
              "fields may have the names of JSON", again)
    tap.point(headers.get("profd-exact") == "no; reasons=sampled"
              and ask.json("SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": '{zone="x"}'})[1]
              .get("profd-exact") == "yes", "a header says whether the numbers are exact, and why not", headers)


def check_series(tap, ask):
    start = NOW // STEP * STEP - 5 * STEP  # a point is of the step that ends there
    window = {"start": str(start * 1000), "end": str((start + 6 * STEP) * 1000), "step": STEP}

    def ends(at):
        return str((at + STEP - 1) // STEP * STEP * 1000)

    said = ask.call("SelectSeries", {"profile_typeID": CPU, "group_by": ["service_name", "zone"], **window})["series"]
    said = {tuple(p["value"] for p in s["labels"]): {p["timestamp"]: p["value"] for p in s["points"]} for s in said}
    want = {("shop",): {ends(NOW - 300): 47 * TICK}, ("till", "x"): {ends(NOW - 30): 16 * TICK},
            ("till", "y"): {ends(NOW - 90): 3 * TICK}}
    tap.point(said == want, "CPU time by service and zone, where the uploads end", f"{said}\n{want}")
    whole = ask.call("SelectSeries", {"profile_typeID": CPU, **window})["series"]
    tap.point(len(whole) == 1 and sum(p["value"] for p in whole[0]["points"]) == 66 * TICK and "labels" not in whole[0],
              "without labels there is one series", whole)
    one = ask.call("SelectSeries", {"profile_typeID": CPU, "group_by": ["service_name"], "limit": "1",
                                    **window})["series"]
    tap.point(len(one) == 1 and one[0]["labels"][0]["value"] == "shop", "a limit keeps the largest", one)
    calls = ask.call("SelectSeries", {"profile_typeID": CALLS, "label_selector": '{zone=~"x|y"}', **window})["series"]
    tap.point(sum(p["value"] for p in calls[0]["points"]) == 130, "calls, as they were counted", calls)
    mean = ask.call("SelectSeries", {"profile_typeID": CALLS, "aggregation": "TIME_SERIES_AGGREGATION_TYPE_AVERAGE",
                                    **window, "step": 3600.0, "end": str((start + 7200) * 1000)})["series"]
    tap.point(mean[0]["points"][-1]["value"] == 65, "an average is of uploads", mean)


def check_errors(tap, ask, d, port):
    def code(method, message, **more):
        status, headers, body = ask.json(method, message, **more)
        return status, body.get("code"), headers["content-type"].partition(";")[0]

    cases = [("SelectSeries", {"profileTypeID": "cpu", "start": 1, "end": 2, "step": 1}),
             ("SelectSeries", {"profileTypeID": ":::::", "start": 1, "end": 2, "step": 1}),
             ("SelectSeries", {"profileTypeID": CPU, "start": 1, "end": 2000, "step": 0.0001}),
             ("SelectSeries", {"profileTypeID": CPU, "start": 1, "end": 10**9, "step": 1}),
             ("SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": '{a="b"'}),
             ("SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": '{a=~"("}'}),
             *(("SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": "{a=%s}" % value}) for value in
               (r'"\.b"', r'"\x4"', r'"\ud800"', r'"\000"', r'"\400"', r"'\"'", "`a", "'a\"", '"a\n"')),
             ("SelectMergeStacktraces", {"profileTypeID": CPU, "start": 5, "end": 4}),
             ("LabelValues", {}), ("ProfileTypes", b"{"), ("ProfileTypes", {"start": "x"}), ("Diff", {})]
    got = [code(*case) for case in cases]
    tap.point(got == [(400, "invalid_argument", "application/json")] * len(cases), "what is wrong: invalid_argument",
              list(zip(cases, got)))
    refused = ask.json("SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": r'{a="\.b"}'})[2]["message"]
    tap.point("a string of Go" in refused and "match=" not in refused, "a selector is refused by its own rule", refused)
    tap.point(code("ProfileTypes", b"\xff", kind="application/proto") == (400, "invalid_argument", "application/json"),
              "so is what is no protobuf")
    got = [code("Nothing", {}), code("SelectHeatmap", {}), code("GitHubApp", {}, path="/vcs.v1.VCSService/"),
           code("SelectMergeStacktraces", {"profileTypeID": CPU, "profileIdSelector": ["a"]})]
    tap.point(got == [(501, "unimplemented", "application/json")] * 4, "what profd does not have: unimplemented", got)
    tap.point(code("SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": '{zone=~"(x+x+)+y"}',
                                              "start": 1}) [0] in (200, 429), "an expensive pattern ends")
    stubs = [ask.json(*stub) for stub in (("AnalyzeQuery", {}), ("Get", {}, "/settings.v1.SettingsService/"),
             ("ListRecordingRules", {}, "/settings.v1.RecordingRulesService/"),
             ("GetFeatureFlags", {}, "/capabilities.v1.FeatureFlagsService/"))]
    tap.point([s[::2] for s in stubs] == [(200, {})] * 4, "Drilldown's questions have empty answers", stubs)
    writer = d.token("writer", "--write")
    statuses = [ask.json("ProfileTypes", {}, token=t)[0] for t in ("profd_wrong", writer)]
    tap.point(statuses == [401, 403], "a token must be known, and may read", statuses)
    tap.point([ask.json("ProfileTypes", b"", kind=k)[0] for k in ("text/plain", "application/grpc")] == [415, 415],
              "other types of bodies are refused")
    tap.point(ask.json("ProfileTypes", b" " * (1 << 20) + b"{}")[0] == 413, "1 MiB of a body is the limit")
    ask.own.socket, values = None, ask.json("LabelNames", {"matchers": ["{}"] * 70000})
    tap.point(values[0] == 429 and values[2]["code"] == "resource_exhausted", "so are 65,536 values", values)
    status, _, body = ask.own.ask(PATH + "ProfileTypes", token=ask.token)
    tap.point(status == 405, "a service is asked by POST", body)
    wrong = ask.buf("SelectSeries", {"profile_typeID": "x"})
    tap.point(wrong.get("code") == "invalid_argument" and "not a type of profiles" in wrong["message"],
              "buf curl shows the sentence", wrong)


def check_get(tap, ask):
    def get(target):
        status, _, body = ask.own.ask(target, token=ask.token)
        return status, json.loads(body)

    query = CPU + "%7Bservice%3D%22shop%22%7D"
    status, said = get(f"/pyroscope/render?query={query}&from={NOW - 900}&until={NOW}000&format=json&groupBy=host")
    tap.point(status == 200 and said["flamebearer"]["numTicks"] == 47 * TICK and said["metadata"]["units"] == "samples"
              and sum(said["timeline"]["samples"]) == 47 * TICK
              and {k: sum(v["samples"]) for k, v in said["groups"].items()} == {"a": 47 * TICK},
              "/pyroscope/render: the graph and its course", said)
    flame = {"names": said["flamebearer"]["names"], "levels": [{"values": v} for v in said["flamebearer"]["levels"]]}
    tap.point(tree_of(flame)[()] == [(47 * TICK, 0)], "its levels are whole")
    other = CPU + "%7Bzone%3D%22x%22%7D"
    status, said = get(f"/pyroscope/render-diff?leftQuery={query}&rightQuery={other}&leftFrom=now-1h")
    tap.point(status == 200 and (said["leftTicks"], said["rightTicks"]) == (47 * TICK, 16 * TICK)
              and said["metadata"]["format"] == "double", "/pyroscope/render-diff", said)
    tap.point(get("/pyroscope/label-values?label=service_name") == (200, ["shop", "till"]), "/pyroscope/label-values")
    bad = [get(f"/pyroscope/render{q}")[0]
           for q in ("", "?query=x", f"?query={query}&format=dot", f"?query={query}&from=x")]
    tap.point(bad == [400] * 4, "wrong parameters are refused", bad)


def check_dashboards(tap, ask, d):
    """The queries of schema/grafana, as Grafana's data source sends them."""
    metrics = d.get("/metrics")[2].decode()
    metrics += "profd_watch_calls_total"  # is there when a function is watched
    start, empty, names = NOW - 3600, [], set()
    for path in sorted(glob.glob(os.path.join(ROOT, "schema/grafana/*.json"))):
        with open(path, encoding="utf-8") as f:
            dashboard = json.load(f)
        for panel in dashboard["panels"]:
            for t in panel["targets"]:
                names |= set(re.findall(r"profd_\w+", t.get("expr", "")))
                if "profileTypeId" not in t:
                    continue
                question = {"profile_typeID": t["profileTypeId"], "start": str(start * 1000), "end": str(NOW * 1000),
                            "label_selector": t["labelSelector"].replace("$service", "till")}
                if t["queryType"] == "metrics":
                    said = ask.call("SelectSeries", {**question, "group_by": t["groupBy"], "step": 60,
                                                     "limit": t.get("limit", 0)}).get("series")
                else:
                    question["max_nodes"] = t["maxNodes"]
                    said = ask.call("SelectMergeStacktraces", question).get("flamegraph")
                if not said:
                    empty.append((path, panel["title"]))
    tap.point(not empty, "each panel of the dashboards has data", empty)
    lacking = [name for name in names if name not in metrics]
    tap.point(len(names) > 2 and not lacking, "and names metrics that there are", lacking)


NODE = """
import { readFileSync } from "node:fs";
import { createRegistryFromDescriptors } from "@bufbuild/protobuf";
import { createPromiseClient, ConnectError } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
const [schema, baseUrl, token] = process.argv.slice(2);
const registry = createRegistryFromDescriptors(new Uint8Array(readFileSync(schema)));
const service = registry.findService("querier.v1.QuerierService");
const auth = (next) => (request) => { request.header.set("Authorization", `Bearer ${token}`); return next(request); };
const out = [];
for (const useBinaryFormat of [true, false]) {
    const client = createPromiseClient(service, createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat,
                                                                         interceptors: [auth] }));
    let headers;
    const flame = await client.selectMergeStacktraces(
        { profileTypeID: "%s", labelSelector: '{service="shop"}', maxNodes: 100n },
        { onHeader: (h) => { headers = h; }, timeoutMs: 60000 });
    const codes = [];
    for (const call of [() => client.selectMergeStacktraces({ profileTypeID: "x" }),
                        () => client.selectMergeSpanProfile({}),
                        () => client.profileTypes({}, { timeoutMs: 0, headers: { "Connect-Timeout-Ms": "0" } })]) {
        codes.push(await call().then(() => "none", (e) => ConnectError.from(e).code));
    }
    out.push({ flame: flame.toJson(), exact: headers.get("profd-exact"), codes });
}
console.log(JSON.stringify(out));
"""


def check_names(tap, ask, d, folder):
    """Dimensions that have the names of types, and functions whose names are not UTF-8."""
    exe = build(folder, "plain", "", " + step(1)")
    odd = os.path.join(folder, "odd")
    assert run("objcopy", "--redefine-sym", os.fsdecode(b"parse=p\xffrse"), exe, odd).returncode == 0
    names = ("seconds", "calls", "process_cpu", "dimension_calls")
    for i, name in enumerate(names):
        send(d, [upload(exe, 9 + i, {"parse": 100 * (2 + i)}, {}, {"service": "odd"}, NOW - 20, dimension=name)])
    assert d.ctl("symbols", odd).returncode == 0
    selector = '{service="odd"}'
    ids = [p for s in ask.call("Series", {"labelNames": ["__profile_type__"], "matchers": [selector]})["labelsSet"]
           for p in (s["labels"][0]["value"],)]
    want = {CPU: 200 * TICK, "dimension_calls:calls:count:calls:count": 3,
            "dimension_process_cpu:process_cpu:count:process_cpu:count": 4,
            "dimension_dimension_calls:dimension_calls:count:dimension_calls:count": 5}
    got = {t: int(ask.call("SelectMergeStacktraces", {"profile_typeID": t, "label_selector": selector})
                  .get("flamegraph", {}).get("total", 0)) for t in ids}
    tap.point(got == want, "dimensions with the names of types have types of their own", got)
    question = {"profile_typeID": CPU, "label_selector": selector}
    for method, texts in (("SelectMergeProfile", lambda m: m["stringTable"]),
                          ("SelectMergeStacktraces", lambda m: m["flamegraph"]["names"])):
        said, other = ask.json(method, question)[2], ask.buf(method, question)
        tap.point(said == other and r"p\xffrse" in texts(said),
                  f"{method}: names that are not UTF-8 are valid in both encodings", (said, other))
    for bad in ("b" * 300, f"{'b' * 300}:b:c:d:e"):
        status, _, said = ask.json("SelectSeries", {"profile_typeID": bad, "start": "1", "end": "2", "step": 1})
        tap.point(status == 400 and "at most 256 bytes, not" in said["message"], "a long type is refused", said)


def check_node(tap, ask, folder, want):
    script = os.path.join(folder, "client.mjs")
    with open(script, "w") as f:
        f.write(NODE % CPU)
    os.symlink(NODE_MODULES, os.path.join(folder, "node_modules"))
    done = run("node", script, ask.schema, f"http://127.0.0.1:{ask.port}", ask.token)
    said = json.loads(done.stdout) if done.returncode == 0 else []
    tap.point([s["flame"] for s in said] == [want, want] and {s["exact"] for s in said} == {"no; reasons=sampled"},
              "connect-node reads the same flame graph, in protobuf and in JSON", done.stderr or said)
    tap.point([s["codes"][:2] for s in said] == [[3, 12]] * 2, "and Connect's codes", said)


def main():
    port = free_port()
    with Tap() as tap, Daemon("--http", f"127.0.0.1:{port}") as d, tempfile.TemporaryDirectory() as folder:
        old, new = store(d, folder)
        ask = Ask(port, d.token("grafana"), folder)
        check_lists(tap, ask)
        check_flame(tap, ask, d, old, new)
        check_series(tap, ask)
        check_get(tap, ask)
        check_dashboards(tap, ask, d)
        want = ask.call("SelectMergeStacktraces", {"profile_typeID": CPU, "label_selector": '{service="shop"}'})
        check_node(tap, ask, folder, want)
        tap.point(len(ask.called) == 9 and not ask.different, "buf curl reads the same in protobuf as JSON says",
                  ask.different or ask.called)
        check_errors(tap, ask, d, port)
        check_names(tap, ask, d, folder)


main()
