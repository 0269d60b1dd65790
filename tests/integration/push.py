#!/usr/bin/env python3
"""Profiles that clients of Pyroscope push: a Node.js program with the unmodified @pyroscope/nodejs is in the report;
pprof, forms and folded text to /ingest; PusherService/Push from buf curl, which is Connect's own client; who may push;
what a hostile sender gets."""
import gzip
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import uuid

from harness import LONG, NODE_MODULES, Daemon, Tap, free_port, post, until
from wire import field, varint

APP = r"""
const Pyroscope = require('@pyroscope/nodejs');
Pyroscope.init({ serverAddress: process.argv[2], authToken: process.argv[3], appName: 'shop.js', tags: { region: 'eu' },
                 flushIntervalMs: 1000, wall: { collectCpuTime: true, samplingDurationMs: 1000 } });
Pyroscope.start();
function innerLoop(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) % 7; return s; }
function middleCall(n) { return innerLoop(n) + 1; }
let x = 0;
(function step() { x += middleCall(1e6); setImmediate(step); })();
"""
PROTO = """syntax = "proto3";
package push.v1;
message LabelPair { string name = 1; string value = 2; }
message RawSample { bytes raw_profile = 1; string ID = 2; }
message RawProfileSeries { repeated LabelPair labels = 1; repeated RawSample samples = 2; }
message PushRequest { repeated RawProfileSeries series = 1; }
message PushResponse {}
service PusherService { rpc Push(PushRequest) returns (PushResponse) {} }
"""
PERIOD = 10000000
TIME = int(time.time()) * 10**9


def pprof(types=(("samples", "count"), ("cpu", "nanoseconds")), samples=((("leaf", "main"), (3, 3 * PERIOD)),),
          period=("cpu", "nanoseconds"), time_nanos=TIME):
    """A profile with names and no addresses."""
    texts, functions, out = [""], [], b""

    def text(t):
        if t not in texts:
            texts.append(t)
        return texts.index(t)

    for t, unit in types:
        out += field(1, field(1, text(t)) + field(2, text(unit)))
    for stack, values in samples:
        ids = []
        for name in stack:
            if name not in functions:
                functions.append(name)
            ids.append(functions.index(name) + 1)
        out += field(2, b"".join(field(1, i) for i in ids) + b"".join(varint(16) + varint(v) for v in values))
    for i, name in enumerate(functions):
        out += field(4, field(1, i + 1) + field(4, field(1, i + 1))) + field(5, field(1, i + 1) + field(2, text(name)))
    if period:
        out += field(11, field(1, text(period[0])) + field(2, text(period[1]))) + field(12, PERIOD)
    out += field(9, time_nanos) + field(10, 10**9)
    return out + b"".join(field(6, t.encode()) for t in texts)


def flood():
    """A small profile of very many frames: each sample is at one location, which has 128 lines."""
    out = field(1, field(1, 1) + field(2, 2)) + field(5, field(1, 1) + field(2, 1))
    out += field(4, field(1, 1) + field(4, field(1, 1)) * 128) + field(2, field(1, 1) + field(2, 1)) * 300000
    return out + b"".join(field(6, t) for t in (b"", b"objects", b"count"))


def form(boundary="XX", **parts):
    return b"".join(f"--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n"
                    "Content-Type: application/octet-stream\r\n\r\n".encode() + body + b"\r\n"
                    for name, body in parts.items()) + f"--{boundary}--\r\n".encode()


def build_of(d, service):
    rows = d.json("builds", "--json")["rows"]
    return next((r["build_id"] for r in rows if r["name"].startswith(service + "[")), None)


def ticks(d, service, dimension=None):
    """name → ticks of a service's functions."""
    build = build_of(d, service)
    if not build:
        return {}
    done = d.ctl("report", build, "--json", *(["--dimension", dimension] if dimension else []))
    r = json.loads(done.stdout or '{"functions": []}')
    return {f["name"]: f["ticks"] for f in r["functions"] if f["ticks"]}


def stored(d):
    return int(re.search(r'profd_uploads_total\{result="ok",reason=""\} (\d+)', d.get("/metrics")[2].decode())[1])


def provenance(d, service):
    return d.json("report", build_of(d, service), "--json")["provenance"]


def test_node(tap, d, port, token):
    if not shutil.which("node") or not os.path.isdir(os.path.join(NODE_MODULES, "@pyroscope", "nodejs")):
        return tap.skip("a Node.js program with @pyroscope/nodejs", "node or the module is not installed")
    folder = tempfile.mkdtemp(prefix="profd-push-")
    try:
        with open(os.path.join(folder, "app.js"), "w") as f:
            f.write(APP)
        client = subprocess.Popen(["node", os.path.join(folder, "app.js"), f"http://127.0.0.1:{port}", token],
                                  env=dict(os.environ, NODE_PATH=NODE_MODULES), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        got = until(lambda: client.poll() is not None or ticks(d, "shop.js", "wall"))
        client.terminate()
        told = client.communicate()[1]
    finally:
        shutil.rmtree(folder)
    got = got if isinstance(got, dict) else {}
    busy = {name: n for name, n in got.items() if "innerLoop" in name}
    if not tap.point(busy and sum(busy.values()) > sum(got.values()) / 2,
                     "the functions of a Node.js program are in the report, where its time was", (told, got)):
        return None
    r = d.json("report", build_of(d, "shop.js"), "--json", "--dimension", "wall")
    inner = next((f for f in r["functions"] if "innerLoop" in f["name"]), {"callers": []})
    tap.point(any("middleCall" in c["name"] for c in inner["callers"]), "and their callers", inner)
    labels = {(k, v) for k in ("service_name", "service", "region", "host")
              for v in (x["value"] for x in d.json("labels", k, "--json")["rows"])}
    tap.point({("service_name", "shop.js"), ("service", "shop.js"), ("region", "eu"), ("host", "node")} <= labels,
              "with the labels of the application, and the host of the token", labels)
    p = provenance(d, "shop.js")
    return tap.point(not p["exact"] and "no-ids" in p["inexact_reasons"], "the sum is not exact, because of no-ids", p)


def test_ingest(tap, d, port, token):
    def send(body, query, kind="application/octet-stream"):
        return post(port, "/ingest?" + query, body, token, kind)

    got = send(pprof(), f"name=one.app%7Bk.x=v%7D&format=pprof&spyName=gospy&from={TIME // 10**9}")
    tap.point(got[0] == 200 and got[2] == b"" and ticks(d, "one.app") == {"leaf": 3},
              "pprof: cpu time is ticks of its period, and the samples beside it count once",
              (got, ticks(d, "one.app")))
    keys = {r["name"] for r in d.json("labels", "--json")["rows"]}
    tap.point({"k_x", "service_name", "service"} <= keys, "a dot in a label's name becomes an underscore", keys)
    got = send(gzip.compress(pprof()), "name=one.app&format=pprof&spyName=gospy")
    tap.point(got[0] == 200 and ticks(d, "one.app") == {"leaf": 6}, "gzip; a request without an id counts each time",
              (got, ticks(d, "one.app")))
    heap = pprof((("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_space", "bytes")),
                 ((("leaf", "main"), (1, 200, 30)),), ("space", "bytes"))
    config = {"alloc_objects": {"units": "objects"}, "alloc_space": {"units": "bytes"}}
    got = send(form(profile=gzip.compress(heap), sample_type_config=json.dumps(config).encode()), "name=form",
               "multipart/form-data; boundary=XX")
    tap.point(got[0] == 200 and ticks(d, "form", "alloc_space") == {"leaf": 200}
              and ticks(d, "form", "alloc_objects") == {"leaf": 1} and not ticks(d, "form", "inuse_space"),
              "a form: the sample types that its configuration names", (got, ticks(d, "form", "alloc_space")))
    got = send(b"main;work;leaf 7\nmain;work 3\r\n", "name=text&sampleRate=50")
    r = d.json("report", build_of(d, "text"), "--json")
    tap.point(got[0] == 200 and ticks(d, "text") == {"leaf": 7, "work": 3} and r["totals"]["rates"] == [50],
              "folded text", (got, ticks(d, "text"), r["totals"]))
    got = send(b"main;work\nmain;work\n", "name=lines&format=lines")
    tap.point(got[0] == 200 and ticks(d, "lines") == {"work": 2}, "lines: each is a sample", (got, ticks(d, "lines")))


def test_push(tap, d, port, token):
    def request(profile, name="cpu", service="pushed", ident=""):
        labels = b"".join(field(1, field(1, k.encode()) + field(2, v.encode()))
                          for k, v in (("__name__", name), ("service_name", service), ("pod", "p-1")))
        return field(1, labels + field(2, field(1, profile) + field(2, ident.encode())))

    target = "/push.v1.PusherService/Push"
    one = request(pprof(), ident=str(uuid.uuid4()))
    for i in range(2):
        got = post(port, target, one, token, "application/proto", Connect_Protocol_Version=1)
        tap.point(got[0] == 200 and got[1]["content-type"] == "application/proto" and got[2] == b""
                  and ticks(d, "pushed") == {"leaf": 3}, f"Push {i + 1}: a profile with an id counts once",
                  (got, ticks(d, "pushed")))
    post(port, target, gzip.compress(request(pprof())), token, "application/proto", Content_Encoding="gzip")
    post(port, target, request(gzip.compress(pprof())), token, "application/proto")
    p = provenance(d, "pushed")
    tap.point(ticks(d, "pushed") == {"leaf": 6} and "no-ids" not in p["inexact_reasons"],
              "without an id, what it is, with its labels and times, is its id", (ticks(d, "pushed"), p))
    post(port, target, request(pprof(time_nanos=0)), token, "application/proto")
    tap.point("no-ids" in provenance(d, "pushed")["inexact_reasons"], "but not without times")
    before = stored(d)
    empty = pprof(samples=((("leaf",), (0, 0)),))
    got = post(port, target, request(empty, service="first") + request(pprof(), service="second"), token,
               "application/proto")
    tap.point(got[0] == 400 and b"no samples" in got[2] and ticks(d, "second") == {"leaf": 3}
              and stored(d) == before + 1, "a profile behind a refused one is stored, and is counted", (got, before))
    long = pprof((("alloc_in_new_tlab_objects", "count"), ("alloc_in_new_tlab_bytes", "bytes"), ("a:b", "count")),
                 ((("leaf",), (2, 70, 5)),), None)
    post(port, target, request(long, "alloc", "long"), token, "application/proto")
    got = [ticks(d, "long", name) for name in ("alloc_in_n~70d5", "alloc_in_n~e868", "a_b")]
    tap.point(got == [{"leaf": 2}, {"leaf": 70}, {"leaf": 5}], "types with the same long beginning are two", got)
    own = pprof((("seconds", "count"), ("collector", "count"), ("wall", "count")), ((("leaf",), (2, 3, 5)),), None)
    answer = post(port, target, request(own, "own", "own"), token, "application/proto")
    got = [ticks(d, "own", name + "_") for name in ("seconds", "collector", "wall")]
    tap.point(got == [{"leaf": 2}, {"leaf": 3}, {"leaf": 5}] and not ticks(d, "own", "seconds"),
              "counts whose type has the name of a time are no time", (answer, got))
    wall = pprof((("wall", "nanoseconds"),), ((("leaf",), (3 * 10**7,)),), None)
    post(port, target, request(wall, "wall", "elapsed"), token, "application/proto")
    got = d.json("report", build_of(d, "elapsed"), "--json", "--dimension", "wall")["totals"]["seconds"]
    tap.point(got == 0.03, "elapsed time without a period is nanoseconds", got)
    mutex = pprof((("contentions", "count"), ("delay", "nanoseconds")), ((("leaf",), (2, 70)),), None)
    for name in ("mutex", "block"):
        post(port, target, request(mutex, name, "waits"), token, "application/proto")
    tap.point(ticks(d, "waits", "mutex_delay") == {"leaf": 70} == ticks(d, "waits", "block_delay"),
              "delays of mutexes and of blocking are not added to each other", ticks(d, "waits", "mutex_delay"))
    got = post(port, target + "?x=1", request(pprof(), service="query"), token, "application/proto")
    tap.point(got[0] == 200 and got[1]["content-type"] == "application/proto" and ticks(d, "query") == {"leaf": 3},
              "a query in its target makes it nothing else", got)
    buf = os.path.join(NODE_MODULES, ".bin", "buf")
    if not os.path.exists(buf):
        return tap.skip("buf curl", "the module @bufbuild/buf is not installed")
    import base64
    with open(os.path.join(d.folder, "push.proto"), "w") as f:
        f.write(PROTO)
    with open(os.path.join(d.folder, "buf.yaml"), "w") as f:
        f.write("version: v2\n")
    body = {"series": [{"labels": [{"name": "service_name", "value": "buf"}],
                        "samples": [{"rawProfile": base64.b64encode(pprof()).decode(), "ID": str(uuid.uuid4())}]}]}

    def curl(body, credentials):
        return subprocess.run([buf, "curl", "--schema", d.folder, "--protocol", "connect", "-H",
                               f"Authorization: Bearer {credentials}", "-d", json.dumps(body),
                               f"http://127.0.0.1:{port}{target}"], cwd=d.folder, capture_output=True, text=True,
                              timeout=LONG, env=dict(os.environ, HOME=d.folder, BUF_CACHE_DIR=d.folder))

    done = curl(body, token)
    tap.point(done.returncode == 0 and json.loads(done.stdout) == {} and ticks(d, "buf") == {"leaf": 3},
              "buf curl pushes", (done, ticks(d, "buf")))
    body["series"][0]["samples"][0]["rawProfile"] = base64.b64encode(b"nonsense").decode()
    done = curl(body, token)
    tap.point(done.returncode != 0 and '"code": "invalid_argument"' in done.stderr and "Profile" in done.stderr,
              "and gets Connect's error", done)
    other = pprof(samples=((("json",), (1, PERIOD)),))
    body["series"][0]["samples"][0]["rawProfile"] = base64.b64encode(other).decode()
    got = post(port, target, json.dumps(body).encode(), token, "application/json; charset=utf-8")
    tap.point(got[0] == 200 and got[2] == b"{}" and got[1]["content-type"] == "application/json", "JSON", got)
    got = post(port, target, b'{"series":7}', token, "application/json")
    tap.point(got[0] == 400 and json.loads(got[2])["code"] == "invalid_argument", "an error in JSON", got)


def test_rights(tap, d, port, reader):
    body, target = pprof(), "/ingest?name=rights&format=pprof"
    tap.point(post(port, target, body)[0] == 401, "without a token: 401")
    got = post(port, target, body, reader)
    tap.point(got[0] == 403 and b"right write" in got[2], "with a token that may only read: 403", got)
    got = post(d.http, target, body)
    tap.point(got[0] == 200 and ticks(d, "rights") == {"leaf": 3}, "on the Unix socket the user sends", got)
    got = post(port, "/ingest?name=rights%7Bhost=other%7D&format=pprof", body, d.token("pusher", "--write"))
    tap.point(got[0] == 403 and b"for host pusher" in got[2], "a token does not speak for another host", got)
    group = d.token("group", "--write", "--hosts", "web-*")
    got = [post(port, f"/ingest?name=hosts%7Bhost={h}%7D&format=pprof", body, group)[0] for h in ("web-1", "db-1")]
    tap.point(got == [200, 403], "one for several hosts speaks for these", got)
    got = post(port, "/push.v1.PusherService/Push", b"", reader, "application/proto")
    tap.point(got[0] == 403, "Push likewise", got)
    got = post(d.http, "/push.v1.PusherService/Push", b"", kind="text/plain")
    tap.point(got[0] == 415 and b"application/proto" in got[2], "Push takes two types", got)


def test_hostile(tap, d, port, token):
    good, fold = pprof(), "name=bad&format=folded"
    multi = "multipart/form-data; boundary=XX"
    deep = b"main" + b";f" * 5000 + b" 1\n"
    bomb = gzip.compress(b"\0" * (80 << 20), 9)
    cases = [
        ("no name", "format=pprof", good, None, 422, "no service"),
        ("an open brace", "name=a%7Bk=v&format=pprof", good, None, 400, "APP{label=value"),
        ("no equals sign", "name=a%7Bk%7D", b"a 1", None, 400, "APP{label=value"),
        ("a wrong time", "name=a&from=yesterday", b"a 1", None, 400, "from"),
        ("a wrong rate", "name=a&sampleRate=-1", b"a 1", None, 400, "sampleRate"),
        ("rate 0", "name=a&sampleRate=0", b"a 1", None, 400, "sampleRate"),
        *((f"format {f}", f"name=a&format={f}", good, None, 422, "pprof, folded") for f in ("jfr", "tree", "trie",
                                                                                          "speedscope")),
        ("no protobuf", "name=a&format=pprof", b"\xff" * 50, None, 400, "Profile"),
        ("an empty profile", "name=a&format=pprof", b"", None, 400, "empty"),
        ("a cut gzip", "name=a&format=pprof", gzip.compress(good)[:-20], None, 400, "gzip"),
        ("a bomb", "name=a&format=pprof", bomb, None, 413, "when decompressed"),
        ("negative values", "name=a&format=pprof", pprof(samples=((("leaf",), (2**64 - 1, 0)),)), None, 422, "-1"),
        ("a missing function", "name=a&format=pprof", good.replace(field(4, field(1, 1) + field(4, field(1, 1))),
                                                                   field(4, field(1, 1) + field(4, field(1, 77)))),
         None, 400, "function 77"),
        ("no number", fold, b"main;leaf\n", None, 400, "line 1"),
        ("a number that is too large", fold, b"a 1\nmain;leaf 99999999999999999999999\n", None, 400, "line 2"),
        ("no samples", fold, b"\n\n", None, 422, "no samples"),
        ("no boundary", "name=a", form(profile=good), "multipart/form-data", 400, "boundary"),
        ("another boundary", "name=a", form(profile=good), multi[:-2] + "YY", 400, "boundary"),
        ("a form without a profile", "name=a", form(other=good), multi, 400, "no part named profile"),
        ("a cut form", "name=a", form(profile=good)[:-30], multi, 400, "cut"),
        ("17 parts", "name=a", form(**{f"p{i}": b"" for i in range(17)}), multi, 413, "16 parts"),
        ("wrong configuration", "name=a", form(profile=good, sample_type_config=b"[1]"), multi, 400,
         "sample_type_config"),
        ("a cumulative type", "name=a", form(profile=good, sample_type_config=b'{"cpu":{"cumulative":true}}'), multi,
         422, "cumulative"),
        ("a previous profile", "name=a", form(profile=good, prev_profile=good), multi, 422, "prev_profile"),
        ("other types", "name=a", form(profile=good, sample_type_config=b'{"x":{}}'), multi, 422, "sample types"),
        ("300,000 samples of 128 frames", "name=a&format=pprof", gzip.compress(flood()), None, 413, "16000000 frames"),
        ("10,000,000 empty samples", "name=a&format=pprof", gzip.compress(b"\x12\x00" * 10**7), None, 422, "MiB"),
    ]
    for what, query, body, kind, status, word in cases:
        got = post(port, "/ingest?" + query, body, token, kind or "application/octet-stream")
        tap.point(got[0] == status and word.encode() in got[2], f"hostile: {what}: {status}", got)
    got = post(port, "/ingest?name=deep", deep, token)
    tap.point(got[0] == 200 and sum(ticks(d, "deep").values()) == 1, "5,000 frames: the outer ones are left out", got)
    got = post(port, "/push.v1.PusherService/Push", b"\x0a\xff\xff\xff\x7f", token, "application/proto")
    tap.point(got[0] == 400 and json.loads(got[2])["code"] == "invalid_argument", "Push: a cut message", got)
    tap.point(ticks(d, "bad") == {} and d.ctl("verify").returncode == 0, "nothing of it was stored")


with Tap() as tap:
    port = free_port()
    with Daemon("--http", f"127.0.0.1:{port}") as d:
        token, reader = d.token("node", "--write"), d.token("reader", "--read")
        test_node(tap, d, port, token)
        test_ingest(tap, d, port, token)
        test_push(tap, d, port, token)
        test_rights(tap, d, port, reader)
        test_hostile(tap, d, port, token)
