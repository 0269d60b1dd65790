"""schema/openapi.json against the daemon: the document itself; every endpoint with every answer that it documents, and
none that it does not; and N requests made up from it (openapi.py N [SEED]), after which nothing is broken or lost."""
import glob
import json
import os
import random
import re
import sqlite3
import struct
import subprocess
import sys
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
# "openapi" and others there are no modules of the validator's
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != HERE]
from jsonschema import Draft202012Validator, RefResolver  # noqa: E402
sys.path.insert(0, HERE)
from http_client import TOKEN, Client, crowded_out, half_a_request, start_with_token, store_large_list  # noqa: E402
from harness import BUILD, LONG, PROFCTL, ROOT, Daemon, Tap, bounds, free_port, run, symbols, until  # noqa: E402
from wire import Wire, encoded, field, sender_number, upload, varint  # noqa: E402

DOCUMENT = json.load(open(os.path.join(ROOT, "schema/openapi.json"), encoding="utf-8"))
REPORT = Draft202012Validator(json.load(open(os.path.join(ROOT, "schema/report.schema.json"), encoding="utf-8")))
RESOLVER = RefResolver("", DOCUMENT)
GUARD = {"x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin",
         "cross-origin-opener-policy": "same-origin",
         "referrer-policy": "no-referrer", "content-security-policy": "default-src 'none'; frame-ancestors 'none'; "
         "sandbox"}
SOURCE = """static volatile int n;
__attribute__((noinline)) void leaf(int i) { n += i; }
__attribute__((noinline)) void middle(int i) { leaf(i); leaf(i); }
int main(void) { for (int i = 0; i < 1000; i++) middle(i); return 0; }
"""


def resolved(thing):
    return RESOLVER.resolve(thing["$ref"])[1] if "$ref" in thing else thing


def operations():
    return [(path, item["get"]) for path, item in DOCUMENT["paths"].items() if "get" in item]


class Book:
    """What was seen, and what was wrong with it."""

    def __init__(self):
        self.seen, self.faults = {}, []

    def check(self, path, operation, target, answer):
        status, headers, body = answer
        responses = operation["responses"]
        key = str(status) if str(status) in responses else "default" if status >= 500 or status == 408 else None
        if key is None:
            self.faults.append(f"{target}: {status} is not documented: {body[:200]}")
            return
        self.seen.setdefault((path, key), 0)
        self.seen[path, key] += 1
        wrong = ([k for k, v in GUARD.items() if headers.get(k) != v]
                 + [k for k in ("date", "cache-control") if k not in headers])
        if wrong or "server" in headers:
            self.faults.append(f"{target}: {status}: headers {wrong}: {headers}")
        content = resolved(responses[key]).get("content")
        if content is None:
            if body:
                self.faults.append(f"{target}: {status} has a body: {body[:100]}")
            return
        kind = next((k for k in content if k.partition(";")[0] == headers.get("content-type", "").partition(";")[0]),
                    None)
        if kind is None:
            self.faults.append(f"{target}: {status} is {headers.get('content-type')}, documented: {list(content)}")
        elif "json" in kind:
            self.check_json(target, status, content[kind]["schema"], body)

    def check_json(self, target, status, schema, body):
        try:
            value = json.loads(body.decode("utf-8"))
        except ValueError as error:
            self.faults.append(f"{target}: {status}: {error}: {body[:200]}")
            return
        if isinstance(value, dict) and value.get("schema") == "profd-report-1":
            bad = list(REPORT.iter_errors(value))
        else:
            bad = list(Draft202012Validator(schema, resolver=RESOLVER).iter_errors(value))
        self.faults += [f"{target}: {status}: {e.message[:300]} at {list(e.absolute_path)}" for e in bad[:3]]


def routes(tap):
    """Each path of the table that dispatch and metrics read is described, and nothing else."""
    with open(os.path.join(ROOT, "daemon/query/run.c"), encoding="utf-8") as source:
        text = source.read()
    table = set(re.findall(r'^    \{"(/[^"]*)", QUERY_', text, re.M))
    described = {re.sub(r"\{\w+\}", "{}", path) for path, item in DOCUMENT["paths"].items() if "get" in item}
    bodies = set(re.findall(r'\{"(/[^"]*)", "([A-Z]+)"\}', text))
    described_bodies = {(re.sub(r"\{\w+\}", "{}", path), method.upper()) for path, item in DOCUMENT["paths"].items()
                        for method in item if method in ("put", "post")}
    tap.point(bodies == described_bodies, "so are those that take a body", sorted(bodies ^ described_bodies))
    tap.point(table == described, "the paths are those of the route table", sorted(table ^ described))
    asked = set()
    for path in glob.glob(os.path.join(ROOT, "client/profctl/*.c")):
        with open(path, encoding="utf-8") as source:
            asked |= set(re.findall(r'"(/api/v1[^"]*)"', source.read()))
    tap.point(len(asked) > 5 and asked <= table, "profctl asks for paths of the route table", sorted(asked - table))


def document(tap):
    """OpenAPI's own rules, as far as they can be said here, and every schema and example."""
    bad, names = [], set()
    tap.point(DOCUMENT["openapi"].startswith("3.1.") and {"info", "paths", "components"} <= set(DOCUMENT),
              "OpenAPI 3.1", DOCUMENT["openapi"])

    def walk(node, at):
        if isinstance(node, dict):
            if "$ref" in node:
                try:
                    RESOLVER.resolve(node["$ref"])
                except Exception as error:
                    bad.append(f"{at}: {error}")
            for key, value in node.items():
                if key == "schema" and isinstance(value, dict):
                    try:
                        Draft202012Validator.check_schema(value)
                    except Exception as error:
                        bad.append(f"{at}: {error}")
                walk(value, f"{at}/{key}")
            if "example" in node and "schema" in node and isinstance(node["schema"], dict):
                for error in Draft202012Validator(node["schema"], resolver=RESOLVER).iter_errors(node["example"]):
                    bad.append(f"{at}: example: {error.message[:200]}")
        elif isinstance(node, list):
            for n, value in enumerate(node):
                walk(value, f"{at}/{n}")

    walk(DOCUMENT, "")
    for path, operation in operations():
        names.add(operation["operationId"])
        stated = {resolved(p)["name"] for p in operation.get("parameters", []) if resolved(p)["in"] == "path"}
        in_path = {piece[1:-1] for piece in path.split("/") if piece.startswith("{")}
        if stated != in_path:
            bad.append(f"{path}: path parameters {in_path}, described {stated}")
        where = [(resolved(p)["in"], resolved(p)["name"]) for p in operation.get("parameters", [])]
        if len(set(where)) != len(where):
            bad.append(f"{path}: a parameter twice")
        bad += [f"{path}: {s} has no description" for s, r in operation["responses"].items()
                if not resolved(r).get("description")]
    tap.point(len(names) == len(operations()), "operationIds differ")
    used = json.dumps(DOCUMENT)
    for kind, things in DOCUMENT["components"].items():
        if kind != "securitySchemes":
            bad += [f"#/components/{kind}/{name} is not used" for name in things
                    if f'"#/components/{kind}/{name}"' not in used]
    tap.point(not bad, "references, schemas, examples and parameters hold", "\n".join(bad[:20]))


def sent(d, bodies):
    with Wire(d.socket) as w:
        for n, body in enumerate(bodies):
            w.send("UPLOAD", body, n + 1)
            while (answer := w.take())[0] == "WANT_OBJECT":
                pass
            assert answer[0] == "ACK", answer


def counted(low, high, ticks, at, rate, arcs):
    """The stored encoding: one bin and arcs."""
    return encoded([(0, low, high, (high - low) // 4, rate, "seconds", "s", {(at - low) // 4: ticks})], arcs)


def fill(d):
    """A program with names over two days, two made-up builds that begin alike, rates that do not go together, and a
    label no pattern can be decided on."""
    source, exe = os.path.join(d.folder, "p.c"), os.path.join(d.folder, "p")
    with open(source, "w") as f:
        f.write(SOURCE)
    done = run("gcc", "-pg", "-O0", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    assert run(exe, cwd=d.folder).returncode == 0
    assert d.ctl("upload", "-e", exe, "-l", "service=api", os.path.join(d.folder, "gmon.out")).returncode == 0
    build = d.json("builds", "--json")["rows"][0]["build_id"]
    low, high = bounds(exe)
    low, table, now = low & ~3, symbols(exe), int(time.time())
    at = {name: table[name][0] for name in ("main", "middle", "leaf")}
    arcs = [(at["main"] + 16, at["middle"], 7), (at["middle"] + 12, at["leaf"], 14)]
    bodies = []
    for n in range(40):
        body = (field(1, struct.pack("<QI", sender_number(), 7)) + field(2, 1)
                + field(6, field(1, build) + field(2, exe)))
        body += (field(7, field(1, "host") + field(2, f"db{n % 3}"))
                 + field(7, field(1, "service") + field(2, ("api", "batch")[n % 2])))
        end = (now - n * 3600) * 10**9
        body += varint(3 << 3 | 1) + struct.pack("<Q", end - 10**9) + varint(4 << 3 | 1) + struct.pack("<Q", end)
        bodies.append(body + field(8, counted(low, high, n + 1, at["leaf"], 100 if n else 1000, arcs)) + field(10, 1)
                      + field(11, "ab" * 16))
    for n, end in enumerate(("00", "11")):
        bodies.append(upload(sender_number(), 1, build_id="abcd" + end * 18, name="</script><img src=x>\x7f",
                             labels=(("service", "a" * 200 + "b!"), ("x", '"<\u202e\n'))))
    sent(d, bodies)
    return {"id": build, "address": f"{at['leaf']:x}", "name": "service"}


class Live:
    """A process that goes on, counted while it does, with a label that no pattern can be decided on. Where there is no
    collector: none."""

    def __init__(self, d):
        source, exe = os.path.join(d.folder, "live.c"), os.path.join(d.folder, "live")
        with open(source, "w") as f:
            f.write(SOURCE.replace("return 0;", "for (;;) pause();").replace("static", "#include <unistd.h>\nstatic",
                    1))
        done = run("gcc", "-pg", "-O0", "-o", exe, source)
        assert done.returncode == 0, done.stderr
        collect = os.path.join(BUILD, "libprofd-collect.so")
        self.process = None
        if os.path.exists(collect) and "/api/v1/processes" in DOCUMENT["paths"]:
            self.process = subprocess.Popen([PROFCTL, "run", "-l", "service=" + "a" * 200 + "b!", exe], env=d.env,
                                            cwd=d.folder,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL)
            # it is listed before its memory, and with it its labels, is read
            until(lambda: any("service" in json.dumps(r) for r in json.loads(d.get("/api/v1/processes")[2])["rows"]))

    def end(self):
        if self.process:
            self.process.terminate()  # which it passes on
            self.process.wait(LONG)


def filled(path, facts, **other):
    for key, value in {**facts, **other}.items():
        path = path.replace("{" + key + "}", urllib.parse.quote(value, safe=""))
    return path


HOPELESS = "match=" + urllib.parse.quote('service=~"(a|aa)+(a|aa)+(a|aa)+b"')
GOOD = {  # questions beside the bare path; what every answer of them must be is in the document
    "/api/v1/builds": ["?limit=1", "?limit=1000"],
    "/api/v1/builds/{id}/report": [f"?format={f}&geometry=1" if f == "gprof" else f"?format={f}" for f in
                                   next(resolved(p)["schema"]["enum"]
                                        for p in dict(operations())["/api/v1/builds/{id}/report"]["parameters"]
                                        if resolved(p)["name"] == "format")] +
        ["?view=flat", "?view=graph&sort=calls&limit=2", "?scope=everywhere", "?scope=build&static=1", "?focus=leaf",
         "?since=now-90m", "?uid=0",
         "?match=host%3D%22db1%22&label.service=api", "?until=2001-01-01T00:00:00Z", "?dimension=seconds"],
    "/api/v1/builds/{id}/counts": ["?geometry=1", "?geometry=2"],
    "/api/v1/builds/{id}/groups": ["?by=host", "?by=host&by=service&step=1h", "?step=1d&limit=1",
                                   "?by=host&since=now-5h&scope=build"],
    "/api/v1/builds/{id}/functions": ["?name=e", "?name=leaf&limit=1", "?name=nobody"],
    "/api/v1/builds/{id}/functions/{address}": ["?scope=build", "?since=now-1h"],
    "/api/v1/load": ["?by=host&step=1d", "?match=service%3D%22api%22&limit=1", "?since=2001-01-01&until=2001-01-02"],
    "/api/v1/builds/{id}/functions/{address}/series": ["?step=1h", "?step=1d&match=host%3D%22db1%22",
                                                       "?step=5m&since=now-2h", "?since=1&until=9"],
    "/api/v1/functions": ["?match=service%3D%22api%22", "?sort=total&limit=1", "?sort=calls&name=a&since=now-1d",
                          "?step=1h", "?until=9&step=1h"],
    "/api/v1/diff": ["?a={id}&b={id}&a.label.service=api&b.match=service%3D%22batch%22",
                     "?a={id}&b={id}&limit=1&paired=1",
                     "?a={id}&b={id}&fail_on=self%3E2%25&watch=leaf&watch=nobody&metric=total&fdr=0.1"],
    "/api/v1/labels": ["?build_id={id}", "?build_id={id}&since=now-1h"],
    "/api/v1/labels/{name}/values": ["?limit=1", "?build_id={id}&match=host%3D%22db1%22"],
}
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds%7B%7D"
HOPELESS_CPU = CPU.replace("%7B", "%7B" + HOPELESS.partition("=")[2])
GOOD["/pyroscope/render"] = [f"?query={CPU}&from=now-2d&groupBy=host&aggregation=avg", f"?query={HOPELESS_CPU}"]
GOOD["/pyroscope/render-diff"] = [f"?leftQuery={HOPELESS_CPU}&rightQuery={CPU}"]
GOOD["/pyroscope/label-values"] = ["?label=__profile_type__"]
REQUIRED = {"/api/v1/builds/{id}/groups": "?by=host", "/api/v1/builds/{id}/functions": "?name=a",
            "/api/v1/builds/{id}/counts": "?geometry=1", "/api/v1/diff": "?a={id}&b={id}",
            "/pyroscope/render": f"?query={CPU}&from=1&until=9", "/pyroscope/label-values": "?label=program",
            "/pyroscope/render-diff": f"?leftQuery={CPU}&rightQuery={CPU}"}


def bad_requests(path, facts, target, port):
    """(raw bytes or None, target, headers and token) of what the document says is refused, for any endpoint."""
    line = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    joint = "&" if "?" in target else "?"
    yield None, target, {"Accept_Encoding": "gzip;q=7"}
    yield None, target, {"token": None}
    yield None, target, {"Origin": "https://evil.example"}
    yield None, target, {"Accept_Encoding": "*;q=0"}
    yield (line + "Content-Length: 1\r\n\r\nx").encode(), target, {}
    yield f"GET {target}{joint}x={'y' * 5000} HTTP/1.1\r\nHost: a\r\n\r\n".encode(), target, {}
    yield None, target, {"Host": "evil.example"}
    yield (line + "X: y\r\n" * 70 + "\r\n").encode(), target, {}
    if path.startswith("/api/") and path != "/api/v1/status" or path == "/openapi.json":
        yield None, target + joint + "sicne=now", {}
    if "{id}" in path:
        rest = target[target.index("?"):] if "?" in target else ""
        for other in ("ffffffffffff", "abcd", "ab", "%00x"[3:]):
            yield None, filled(path, {**facts, "id": other}) + rest, {}
    for parameter in (resolved(p)["name"] for p in DOCUMENT["paths"][path]["get"].get("parameters", [])):
        if parameter == "match":
            yield None, target + joint + HOPELESS + ("" if "{id}" in path
                                                     or path in ("/api/v1/functions", "/api/v1/processes",
                                                                 "/api/v1/diff", "/api/v1/load", "/api/v1/versions",
                                                                 "/debug/pprof/profile")
                                                     else "&build_id=abcd00"), {}
        if parameter == "b":
            for other in ("ffffffffffff", "abcd", "ab"):
                yield None, target.partition("?")[0] + f"?a={facts['id']}&b={other}", {}
        if parameter == "build_id" and "{id}" not in path:
            for other in ("ffffffffffff", "abcd", "ab"):
                yield None, target + joint + "build_id=" + other, {}


def every_answer(tap, d, port, facts, book):
    """Each endpoint with everything that it documents."""
    client = Client(port)
    heads, nothing_new = [], []
    for path, operation in operations():
        plain = filled(path, facts)
        target = plain + filled(REQUIRED.get(path, ""), facts)
        for more in [""] + GOOD.get(path, []):
            asked = filled((plain + more) if more else target, facts)
            answer = client.ask(asked)
            book.check(path, operation, asked, answer)
            if answer[0] != 200:
                continue
            other = client.ask(asked, method="HEAD")
            moves = path in ("/metrics", "/api/v1/status") or "now" in asked  # says something else a moment later
            same = {**answer[1], "date": 0} == {**other[1], "date": 0} or (moves and set(answer[1]) == set(other[1]))
            if not same or other[0] != 200 or other[2]:
                heads.append((asked, answer[:2], other))
            if "etag" in answer[1] and "now" not in asked:
                again = client.ask(asked, If_None_Match=answer[1]["etag"])
                book.check(path, operation, asked, again)
                if again[0] != 304 or again[1]["etag"] != answer[1]["etag"]:
                    nothing_new.append((asked, again[:2]))
        for raw, asked, options in bad_requests(path, facts, target, port):
            answer = client.ask(asked, raw=raw, **options)
            if answer[0] < 400:
                continue  # for this endpoint it is no mistake
            book.check(path, operation, asked, answer)
    tap.point(not heads, "HEAD has the headers of GET, and no body", heads[:3])
    tap.point(not nothing_new, "what has an ETag is 304 when asked for with it", nothing_new[:3])
    client.close()


def conflict(d, port, facts, book):
    client = Client(port)
    for path in ("/api/v1/builds/{id}/report", "/api/v1/builds/{id}/counts"):
        target = filled(path, facts) + ("?format=gprof" if path.endswith("report") else "")
        book.check(path, dict(operations())[path], target, client.ask(target))
    client.close()


def processes(d, port, book):
    """Live processes; what they are sent for changes all the time, so that they live for these questions only."""
    path = "/api/v1/processes"
    if path not in DOCUMENT["paths"]:
        return
    live, client = Live(d), Client(port)
    try:
        for target in (path, f"{path}?limit=1", f"{path}?{HOPELESS}"):
            book.check(path, dict(operations())[path], target, client.ask(target))
    finally:
        client.close()
        live.end()


def busy(d, port, book):
    """The status of one connection too many."""
    path, operation = operations()[0]
    answer = crowded_out(port, store_large_list(d.socket))
    if answer:
        book.check(path, operation, path, answer)
    return answer and answer[0]


def damaged(d, port, facts, book):
    """Counts that somebody has overwritten: 500, and no other number."""
    d.stop()
    db = sqlite3.connect(os.path.join(d.state, "profd.db"))
    tables = [t for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    changed = 0
    for table in tables:
        for column in (row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] == "counts"):
            changed += db.execute(f"UPDATE {table} SET {column} = x'01ff00'").rowcount
    db.commit()
    db.close()
    d.start()
    client, statuses = Client(port), set()
    for path, operation in operations():
        if any(w in path for w in ("report", "groups", "functions")):
            target = filled(path, facts) + REQUIRED.get(path, "")
            answer = client.ask(target)
            statuses.add(answer[0])
            book.check(path, operation, target, answer)
    client.close()
    return changed, statuses


def not_ready(book, tap):
    with Daemon(wrapper=("prlimit", "--fsize=440000:440000")) as d:
        with Wire(d.socket) as w:
            sender, answer, n = sender_number(), ("ACK",), 0
            while answer[0] != "NACK" and n < 5000:
                n += 1
                w.send("UPLOAD", upload(sender, n), n)
                while (answer := w.take())[0] == "WANT_OBJECT":
                    pass
        for target in ("/readyz", "/healthz"):
            book.check(target, dict(operations())[target], target, d.get(target))
        tap.point(d.get("/readyz")[0] == 503, "a store that cannot be written: not ready", d.get("/readyz"))


JUNK = ["", " ", "%20", "0", "-1", "1", "2", "00", "18446744073709551615", "18446744073709551616", "1e3", "0x10",
        "nan", "null", "true", "now", "now-1h", "now+1h",
        "-99999999999w", "1970-01-01T00:00:00Z", "2026-13-45T99:99:99Z", "9" * 40, "a" * 300, "%C3%A9", "%FF",
        "%C0%80", "%ED%A0%80", "%F4%90%80%80", "%0A",
        "%1b%5b31m", "%E2%80%AE", "%25", "%252e%252e", "'%3B--", "%22", "%5C",
        "<script>".replace("<", "%3C").replace(">", "%3E"), "a=b", "a&b", "/", "?", "json",
        "text", "gprof", "dot", "self", "calls", "program", "everywhere", "host", "service", "service%3D%22api%22",
        "service%3D~%22a*%22", "service%3D~%22(%22",
        "x!=", "=", "~", "*", "[]", "..", "%2e%2e", "seconds", "bytes", "7d", "1m", "401000", "leaf", "middle"]


class Mutator:
    """Requests out of the document: each parameter valid, at a border, wrong, too long, twice, empty, junk, unknown, in
    combinations."""

    def __init__(self, seed, facts):
        self.draw, self.facts, self.operations = random.Random(seed), facts, operations()

    def value(self, parameter):
        """(text, is it surely wrong)"""
        schema, draw = parameter.get("schema", {}), self.draw
        if draw.random() < 0.45:
            if "enum" in schema:
                return str(draw.choice(schema["enum"])), False
            if schema.get("type") == "integer":
                return str(draw.choice([schema.get("minimum", 0), schema.get("maximum", 1000),
                                        schema.get("default", 1)])), False
            if parameter["name"] in ("since", "until"):
                return draw.choice(["now-1h", "now", "-7d", "1763740800", "2026-11-21T15:48:00.5%2B01:00"]), False
            if parameter["name"] == "build_id":
                return self.facts["id"], False
            return draw.choice(["a", "host", "leaf", "1", "x%3D%22y%22"]), False
        if schema.get("type") == "integer" and draw.random() < 0.5:
            return draw.choice([str(schema.get("minimum", 0) - 1), "18446744073709551616", "one", "1.5", "0x1"]), True
        if "enum" in schema and draw.random() < 0.5:
            return draw.choice(["nothing-of-these", "JSON", "x" * 200]), True
        return draw.choice(JUNK), False

    def target(self):
        """A target, and, where one parameter only can be wrong, its name and value."""
        draw = self.draw
        if draw.random() < 0.04:
            return draw.choice(["/api", "/api/", "/api/v1", "/api/v2/builds", "/api/v1/builds/", "/api/v1//builds",
                                "/nothing", "/api/v1/builds/a/b/c/d/e/f/g/h/i",
                                "/index.html", "/%61pi/v1/builds", "/api/v1/" + "x" * 3000]) + draw.choice(["", "?x=y",
                                    "?"]), None
        path, operation = draw.choice(self.operations)
        facts = dict(self.facts)
        broken = draw.random() < 0.15
        if broken and "{" in path:
            facts[draw.choice(sorted(facts))] = urllib.parse.unquote(draw.choice(JUNK), errors="replace") or "x"
        described = [resolved(p) for p in operation.get("parameters", []) if resolved(p)["in"] == "query"]
        chosen = draw.sample(described, min(len(described), draw.choice([0, 1, 1, 1, 2, 3])))
        pairs, wrong = [], None
        for parameter in chosen:
            value, surely = self.value(parameter)
            name = parameter["name"].replace("{K}", draw.choice(["host", "service", "9x", ""]))
            pairs.append((name, value))
            if surely and len(chosen) == 1 and not broken:
                wrong = (name, value)
        if draw.random() < 0.1:
            pairs.append(draw.choice([("sicne", "now"), ("", "x"), ("%00", "1"), ("limit", "1"), ("Limit", "1"),
                                      ("a" * 100, "b")]))
            wrong = None
        if pairs and draw.random() < 0.05:
            pairs += pairs[:1]
            wrong = None
        if path in REQUIRED and draw.random() < 0.9 and not any(n == REQUIRED[path][1:].partition("=")[0] for n,
                _ in pairs):
            pairs += [tuple(pair.split("=")) for pair in filled(REQUIRED[path], facts)[1:].split("&")]
        elif path in REQUIRED:
            wrong = None
        query = "&".join(f"{n}={v}" for n, v in pairs)
        if draw.random() < 0.02:
            query, wrong = query.replace("=", "", 1), None
        return filled(path, facts) + ("?" + query if query else ""), wrong


def mutate(tap, d, port, facts, book, n, seed):
    mutator, client = Mutator(seed, facts), Client(port)
    documented = {p: o for p, o in operations()}
    known = [(p.split("/"), p) for p in documented]
    faults, statuses, baseline = [], {}, None
    for k in range(n):
        if k == n // 3:
            client.close()
            baseline = settled(d)
        target, wrong = mutator.target()
        method = "HEAD" if mutator.draw.random() < 0.05 else "GET"
        headers = {}
        if mutator.draw.random() < 0.1:
            headers["Accept_Encoding"] = mutator.draw.choice(["identity", "gzip;q=0", "br", "deflate, *;q=0.1"][:3])
        try:
            status, fields, body = client.ask(target, method=method, **headers)
        except (EOFError, ConnectionError, ValueError) as error:
            faults.append(f"{target}: no answer: {error!r}")
            client.close()
            continue
        statuses[status] = statuses.get(status, 0) + 1
        if status >= 500 and status not in (503, 507):
            faults.append(f"{target}: {status} {body[:200]}")
        if status >= 400 and method == "GET":
            judge(target, status, fields, body, wrong, faults)
        if status < 400 and wrong:
            faults.append(f"{target}: {wrong} passed with {status}")
        segments = target.partition("?")[0].split("/")
        match = [p for pattern, p in known if len(pattern) == len(segments)
                 and all(a == b or (a.startswith("{") and b) for a, b in zip(pattern, segments))]
        if match and method == "GET":
            book.check(match[0], documented[match[0]], target, (status, fields, body))
    client.close()
    after = settled(d, baseline[0])
    tap.point(not faults, f"{n} made-up requests, seed {seed}: {dict(sorted(statuses.items()))}: never 5xx, every "
                          f"error names what was wrong",
              "\n".join(faults[:15]))
    tap.point(d.process.poll() is None and after[0] <= baseline[0], f"descriptors are back at {baseline[0]}", after)
    tap.point(after[1] - baseline[1] < 64 << 20 or "asan" in os.environ.get("PROFD_BUILD", ""),
              f"memory: {baseline[1] >> 20} MB after a third, {after[1] >> 20} MB at the end", after)


def judge(target, status, fields, body, wrong, faults):
    try:
        problem = json.loads(body.decode("utf-8"))
        good = (fields["content-type"] == "application/problem+json" and problem["status"] == status
                and len(problem["detail"]) > 10)
    except (ValueError, KeyError):
        good, problem = False, {}
    if not good:
        faults.append(f"{target}: {status} is no problem document: {body[:200]}")
    elif any(ord(c) < 32 or ord(c) == 127 for c in problem["detail"]):
        faults.append(f"{target}: control characters in {problem['detail']!r}")
    elif wrong and status == 400 and not (wrong[0] in problem["detail"] and wrong[1][:60] in problem["detail"]):
        faults.append(f"{target}: {wrong} is not named: {problem['detail']}")


def settled(d, most=None):
    """(descriptors, resident bytes) when nothing is under way: no more descriptors than that, and as many as a moment
    ago."""
    folder, last = f"/proc/{d.process.pid}/fd", None
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        now = len(os.listdir(folder))
        if now == last and (most is None or now <= most):
            break
        last = now
        time.sleep(0.2)
    with open(f"/proc/{d.process.pid}/statm") as f:
        return last, int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with Tap() as tap, Daemon(start=False) as d:
        routes(tap)
        document(tap)
        port = free_port()
        d.options = ("--http", f"127.0.0.1:{port}")
        start_with_token(d)
        book, facts = Book(), fill(d)
        every_answer(tap, d, port, facts, book)
        processes(d, port, book)
        conflict(d, port, facts, book)
        mutate(tap, d, port, facts, book, n, seed)
        refused, late = busy(d, port, book), half_a_request(port)
        tap.point(refused == 503, "one connection too many: 503", refused)
        tap.point(b" 408 " in late, "half a request: 408", late[:100])
        changed, statuses = damaged(d, port, facts, book)
        tap.point(changed > 0 and statuses == {500}, f"{changed} damaged rows: 500 from all that read them", statuses)
        not_ready(book, tap)
        missing = [f"{path} {status}" for path, operation in operations() for status in operation["responses"]
                   if status != "default" and (path, status) not in book.seen]
        tap.point(not missing, f"each of {sum(len(o['responses']) for _, o in operations())} documented answers was "
                               f"seen", "\n".join(missing))
        tap.point(any(s == "default" for _, s in book.seen), "and other problems, too")
        tap.point(not book.faults, f"{sum(book.seen.values())} answers are as documented", "\n".join(book.faults[:25]))
        tap.point(d.stop() == 0, "the daemon ends with 0", d.logged()[-500:])


if __name__ == "__main__":
    main()
