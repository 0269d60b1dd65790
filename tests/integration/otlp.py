"""OTLP profiles (POST /v1development/profiles): what a sender of OpenTelemetry gets, and what the reports say of it.
The requests are made here, as the profiler of OpenTelemetry makes them, in both layouts and both encodings."""
import gzip
import json
import os
import re
import struct
import subprocess
import time

from harness import Daemon, Tap, free_port, post, run, symbols
from wire import field, fixed

PATH, PROTOBUF, JSON = "/v1development/profiles", "application/x-protobuf", "application/json"
SECOND = 10**9
NATIVE = "ab" * 20  # build-ids
HTLHASH = "cd" * 16


class Request:
    """A dictionary and the profiles that use it. Texts and frames get their indices when they are named first."""

    def __init__(self, old=False, start=None):
        self.old, self.start = old, start or time.time_ns() - 5 * SECOND
        self.strings, self.functions, self.mappings, self.attributes = [""], [(0, 0)], [(0, 0, [])], [(0, "")]
        self.locations, self.stacks, self.resources = [(0, 0, [], [])], [[]], []

    def index(self, table, row):
        if row not in table:
            table.append(row)
        return table.index(row)

    def text(self, t):
        return self.index(self.strings, t)

    def attribute(self, key, value):
        return self.index(self.attributes, (self.text(key), value))

    def mapping(self, name, build_id=None, key="gnu", start=0):
        ids = [self.attribute(f"process.executable.build_id.{key}", build_id)] if build_id else []
        return self.index(self.mappings, (start, self.text(name), ids))

    def frame(self, name=None, file="", kind="cpython", mapping=0, address=0):
        lines = [self.index(self.functions, (self.text(n), self.text(file)))
                 for n in ([name] if isinstance(name, str) else name or [])]
        return self.index(self.locations, (mapping, address, lines, [self.attribute("profile.frame.type", kind)]))

    def profile(self, resource, samples, kind=("samples", "count"), period=("cpu", "nanoseconds", SECOND // 20),
                id=b"", duration=5 * SECOND):
        """samples: (frames, the innermost first; values; number of timestamps)."""
        rows = [(self.index(self.stacks, frames), values, stamps) for frames, values, stamps in samples]
        self.resources.append((resource, rows, kind, period, id, duration))
        return self

    # two encodings

    def protobuf(self):
        def sample(stack, values, stamps, thread):
            attributes = [thread]
            fields = field(2, values) + field(3, attributes) if self.old else field(2, attributes) + field(4, values)
            times = b"".join(struct.pack("<Q", self.start + i) for i in range(stamps))
            return field(1, stack) + fields + (field(5, times) if times else b"")

        def value_type(pair):
            return field(1, self.text(pair[0])) + field(2, self.text(pair[1]))

        thread = self.attribute("thread.name", "worker")
        out = b""
        for resource, rows, kind, period, id, duration in self.resources:
            p = field(1, value_type(kind)) + b"".join(field(2, sample(*row, thread)) for row in rows)
            p += fixed(3, self.start) + field(4, duration) + field(7, id)
            p += field(5, value_type(period)) + field(6, period[2]) if period else b""
            attributes = b"".join(field(1, field(1, k) + field(2, field(1, v) if isinstance(v, str) else field(3, v)))
                                  for k, v in resource.items() if k != "indexed")
            for k, v in resource.get("indexed", {}).items():  # as batching processors write them
                attributes += field(1, field(3, self.text(k)) + field(2, field(8, self.text(v))))
            out += field(1, field(1, attributes) + field(2, field(2, p)))
        d = b"".join(field(1, field(1, start) + field(4, name) + field(5, ids)) for start, name, ids in self.mappings)
        d += b"".join(field(2, field(1, m) + field(2, address) + b"".join(field(3, field(1, f)) for f in lines)
                           + field(4, attributes)) for m, address, lines, attributes in self.locations)
        d += b"".join(field(3, field(1, name) + field(3, file)) for name, file in self.functions)
        d += field(4, b"") + b"".join(field(5, s) for s in self.strings)
        d += b"".join(field(6, field(1, key) + field(2, field(1, value))) for key, value in self.attributes)
        d += b"".join(field(7, field(1, stack)) for stack in self.stacks)
        return out + field(2, d)

    def json(self):
        def value_type(pair):
            return {"typeStrindex": self.text(pair[0]), "unitStrindex": self.text(pair[1])}

        resources = []
        for resource, rows, kind, period, _, duration in self.resources:
            p = {"sampleType": value_type(kind), "timeUnixNano": str(self.start), "durationNano": str(duration),
                 "samples": [{"stackIndex": stack, "linkIndex": 0, "values": [str(v) for v in values],
                              "timestampsUnixNano": [self.start + i for i in range(stamps)]}
                             for stack, values, stamps in rows]}
            if period:
                p.update(periodType=value_type(period), period=str(period[2]))
            resources.append({"resource": {"attributes": [
                {"key": k, "value": {"stringValue": v} if isinstance(v, str) else {"intValue": str(v)}}
                for k, v in resource.items() if k != "indexed"]}, "scopeProfiles": [{"profiles": [p]}]})
        return json.dumps({"resourceProfiles": resources, "unknown": [1], "dictionary": {
            "mappingTable": [{"memoryStart": str(s), "filenameStrindex": n, "attributeIndices": a}
                             for s, n, a in self.mappings],
            "locationTable": [{"mappingIndex": m, "address": str(a), "lines": [{"functionIndex": f} for f in lines],
                               "attributeIndices": at} for m, a, lines, at in self.locations],
            "functionTable": [{"nameStrindex": n, "filenameStrindex": f} for n, f in self.functions],
            "stringTable": self.strings, "linkTable": [{}],
            "attributeTable": [{"keyStrindex": k, "value": {"stringValue": v}} for k, v in self.attributes],
            "stackTable": [{"locationIndices": s} for s in self.stacks]}}).encode()


def submit(where, body, kind=PROTOBUF, token=None, coding=None):
    """(status, headers, body) of a request to a TCP port or the path of a Unix socket."""
    return post(where, PATH, body, token, kind, **({"Content_Encoding": coding} if coding else {}))


def web(name, **more):
    return {"service.name": name, "process.pid": 7, "host.name": "node1", "process.executable.name": "python3", **more}


def usual(name, old=False, **more):
    """A profile of 6 ticks, and one of 3 s off the CPU: interpreted code that calls native code, which is in the
    kernel."""
    r = Request(old)
    main, load = r.frame("main", "app.py"), r.frame("load", "app.py")
    code = r.frame(kind="native", mapping=r.mapping("libx.so.1", NATIVE), address=0x1010)
    kernel = r.frame("do_sys_read", kind="kernel", mapping=r.mapping("vmlinux", "ee" * 20), address=0x77)
    r.profile(web(name, **more), [([load, main], [], 4), ([kernel, code, load, main], [], 2)])
    r.profile(web(name, **more), [([kernel, code, main], [2 * SECOND, SECOND], 2)], ("off_cpu", "nanoseconds"), None)
    return r


def program(d, name):
    names = (name + "[cpython]", name + "[v8js]")
    return next((r for r in d.json("builds", "--json")["rows"] if r["name"] in names), None)


def folded(d, name, *options):
    """{stack: value} of the program's stacks: ticks of 20 Hz, or the values of another dimension."""
    unit = 1 if options else 50000  # microseconds of a tick
    done = d.ctl("report", program(d, name)["build_id"], "-f", "folded", *options)
    assert done.returncode == 0, done.stderr
    return {stack: int(n) // unit for stack, _, n in (line.rpartition(" ") for line in done.stdout.splitlines())}


def uploads(d):
    return d.json("status", "--json")["uploads"]


def check_one_request(t, d):
    """Names, CPU and off-CPU time apart. Returns the stacks of CPU time."""
    status, headers, body = submit(d.http, usual("shop").protobuf())
    t.point(status == 200 and body == b"" and headers["content-type"] == PROTOBUF,
            "a request is answered by an empty message in its own type", (status, headers, body))
    cpu = folded(d, "shop")
    t.point(sum(cpu.values()) == 6 and cpu.get("main;load") == 4
            and any(re.fullmatch(rf"main;load;.*{NATIVE}.*;do_sys_read", s) and n == 2 for s, n in cpu.items()),
            "ticks are the timestamps, under the names of the interpreter and of the kernel", cpu)
    off = folded(d, "shop", "--dimension", "off_cpu")
    t.point(sum(off.values()) == 3 * SECOND and len(off) == 1, "time off the CPU is a dimension of its own", off)
    report = d.json("report", program(d, "shop")["build_id"], "-f", "json")
    t.point("sampled" in json.dumps(report), "the report says that it was sampled", json.dumps(report)[:600])
    return cpu


def check_encodings(t, d, cpu):
    """Encodings and layouts give the same sums."""
    variants = {
        "gzip": lambda r: (gzip.compress(r.protobuf()), PROTOBUF, "gzip"),
        "zstd": lambda r: (subprocess.run(["zstd", "-q", "-c"], input=r.protobuf(), stdout=subprocess.PIPE,
                                          check=True).stdout, PROTOBUF, "zstd"),
        "json": lambda r: (r.json(), JSON, None),
        "json-gzip": lambda r: (gzip.compress(r.json()), JSON, "gzip"),
        "old": lambda r: (r.protobuf(), PROTOBUF, None)}
    for name, make in variants.items():
        body, kind, coding = make(usual(name, old=name == "old"))
        answer = submit(d.http, body, kind, coding=coding)
        good = answer[0] == 200 and answer[2] == (b"{}" if kind == JSON else b"")
        off = folded(d, name, "--dimension", "off_cpu")
        t.point(good and sorted(folded(d, name).values()) == sorted(cpu.values())
                and sum(off.values()) == 3 * SECOND, f"{name}: the same sums", answer)


def check_once(t, d):
    """What is sent again counts once."""
    before, r = uploads(d), usual("again")
    submit(d.http, r.protobuf())
    r.strings.append("another dictionary")
    submit(d.http, r.protobuf())
    t.point(uploads(d) == before + 2 and sum(folded(d, "again").values()) == 6, "what is sent again counts once")
    with_id = Request().profile(web("named"), [([], [], 1)], id=b"0123456789abcdef")
    submit(d.http, with_id.protobuf())
    submit(d.http, with_id.protobuf())
    t.point(uploads(d) == before + 3, "also by its profile_id")
    d.stop()
    d.start()
    submit(d.http, r.protobuf())
    t.point(uploads(d) == before + 3 and sum(folded(d, "again").values()) == 6, "also after a restart")
    other = usual("again", **{"process.pid": 8})
    other.start = r.start
    submit(d.http, other.protobuf())
    t.point(sum(folded(d, "again").values()) == 12, "another process with the same samples is another profile")


def check_frames(t, d):
    """Labels, frames without names or builds."""
    r = Request()
    code = r.frame(kind="native", mapping=r.mapping("/usr/lib/liby.so", HTLHASH, "htlhash"), address=0x20)
    lost = r.frame(kind="native", mapping=r.mapping("/usr/lib/libz.so"), address=0x20)
    wide = r.frame(kind="native", mapping=r.mapping("z" * 4096), address=0x20)
    inline = r.frame(["inner", "outer"], "x.js", "v8js")
    r.profile(web("odd", indexed={"k8s.pod.name": "pod-1", "deployment.environment.name": "test"}),
              [([code, inline], [], 1), ([lost, inline], [3], 0), ([inline], [5], 0)])
    r.profile(web("wide"), [([wide, inline], [2], 0)])
    status = submit(d.http, r.protobuf())
    odd = folded(d, "odd")
    t.point(odd.get("outer;inner") == 5 and odd.get("outer;inner;[libz.so]") == 3
            and any(HTLHASH in s for s in odd) and sum(odd.values()) == 9,
            "inlined functions, a build that is known by htlhash, code of no build", (status, odd))
    wide = folded(d, "wide")
    t.point(len(wide) == 1 and all("inner;[zz" in stack for stack in wide),
            "code of a file whose name has 4,096 bytes", wide)
    labels = {name: d.ctl("labels", name).stdout for name in ("k8s_pod_name", "deployment_environment", "host")}
    t.point("pod-1" in labels["k8s_pod_name"] and "test" in labels["deployment_environment"]
            and "node1" in labels["host"] and "pid" not in d.ctl("labels").stdout,
            "attributes of the resource become labels", labels)
    t.point(any(x["build_id"] == HTLHASH for x in d.json("builds", "--json")["rows"]), "htlhash names a build")


def check_native(t, d):
    """Native code gets its names from an executable that comes later."""
    exe = os.path.join(d.folder, "native")
    source = ("int leaf(void) { return 1; } int caller(void) { return leaf() + 1; } "
              "int main(void) { return caller(); }")
    run("gcc", "-O0", "-Wl,--build-id", "-x", "c", "-o", exe, "-", input=source)
    build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", exe).stdout)[1]
    code = run("objdump", "-d", "--no-show-raw-insn", exe).stdout
    # A caller's address is the last byte of its call.
    calls = [int(re.search(rf"call.*<{name}>\n *(\w+):", code)[1], 16) - 1 for name in ("leaf", "caller")]
    r = Request()
    mapping = r.mapping("native", build_id)
    frames = [r.frame(kind="native", mapping=mapping, address=a) for a in [symbols(exe)["leaf"][0], *calls]]
    r.profile({"process.executable.path": exe}, [(frames, [], 7)])
    submit(d.http, r.protobuf())
    done = d.ctl("symbols", exe)
    named = d.ctl("report", build_id, "-f", "folded").stdout
    t.point(done.returncode == 0 and named == "main;caller;leaf 350000\n",
            "native code has names when profctl symbols has sent its executable", (done, named))


def check_rights(t, d, port):
    """Who may send, and for which host and tenant."""
    writer, reader = d.token("node7", "--write"), d.token("eye", "--read")
    group = d.token("fleet", "--write", "--hosts", "node*", "--tenant", "other")
    request = usual("theirs").protobuf()
    t.point(submit(port, request)[0] == 401, "without a token: 401")
    t.point(submit(port, request, token=reader)[0] == 403, "without the right write: 403")
    t.point(submit(port, request, token=writer)[0] == 200 and "node7" in d.ctl("labels", "host").stdout,
            "the token's name is the host")
    t.point(submit(port, usual("fleet").protobuf(), token=group)[0] == 200, "a token for several hosts")
    answer = submit(port, Request().profile({"host.name": "elsewhere"}, [([], [], 1)]).json(), JSON, group)
    said = json.loads(answer[2])["partialSuccess"]
    t.point(answer[0] == 200 and said["rejectedProfiles"] == "1" and "elsewhere" in said["errorMessage"],
            "a host that the token is not for", answer)
    eye = d.token("other-eye", "--read", "--tenant", "other")
    done = subprocess.run(["curl", "-s", "-H", f"Authorization: Bearer {eye}",
                           f"http://127.0.0.1:{port}/api/v1/builds"], capture_output=True, text=True)
    t.point("fleet[cpython]" in done.stdout and "shop" not in done.stdout and "theirs" not in done.stdout,
            "a tenant sees its own programs only", done.stdout[:400])
    verified = d.ctl("verify")
    t.point(verified.returncode == 0, "verification agrees", verified.stdout + verified.stderr)


def check_refused(t, d):
    """What is not kept, and what is refused."""
    before, r = uploads(d), usual("partly")
    r.profile(web("partly"), [([1], [-1], 0)])
    r.profile(web("partly"), [([r.frame("f", kind="native", address=1, mapping=r.mapping(
        "pie", NATIVE, start=0x555500000000))], [1], 0)])
    r.stacks.append([10**6])
    r.resources.append((web("partly"), [(len(r.stacks) - 1, [1], 0)], ("samples", "count"), None, b"", SECOND))
    answer = submit(d.http, r.protobuf())
    t.point(answer[0] == 200 and b"-1" in answer[2] and answer[2][2:4] == b"\x08\x03" and uploads(d) == before + 2,
            "three profiles are rejected with a reason, two are kept", answer)
    deep = Request()
    deep.profile(web("deep"), [([deep.frame(f"f{i}") for i in range(1000)], [1], 0)])
    submit(d.http, deep.protobuf())
    t.point(list(folded(d, "deep").values()) == [1], "a deep stack loses its outer frames, not its tick")
    before = uploads(d)
    neither = Request().profile(web("x"), [([], [1], 0)])
    neither.attribute = lambda key, value: 77
    nested = b"\x0a\x02\x0a\x00" * 10
    hostile = {
        "no message": b"\xff\xff\xff", "cut": usual("x").protobuf()[:-9],
        "neither layout": neither.protobuf(),
        "a dictionary of 10^7 entries": field(2, field(2, b"") * 7500000),
        "too many profiles": field(1, field(2, field(2, b"") * 5000)),
        "a value of nested lists": field(1, field(1, field(1, field(1, "k") + field(2, field(5, nested * 1000))))),
    }
    for name, body in hostile.items():
        answer = submit(d.http, body)
        want = (200,) if name.endswith("lists") else (400, 413)
        t.point(answer[0] in want and (answer[0] == 200 or len(answer[2]) > 20), f"hostile: {name}",
                (answer[0], answer[2][:200]))
    many = Request().profile({**web("many"), **{f"key{i}": "value" for i in range(1100)}}, [([], [1], 0)])
    answer = submit(d.http, many.protobuf())
    t.point(answer[0] == 200 and b"at most 1024" in answer[2], "1,100 attributes of a resource", answer)
    t.point(b"v1.10.0" in submit(d.http, neither.protobuf())[2], "the sentence about layouts names the version")
    bad = json.loads(usual("x").json())
    bad["dictionary"]["stackTable"] = [{"locationIndices": "no list"}]
    answer = submit(d.http, json.dumps(bad).encode(), JSON)
    t.point(answer[0] == 400 and "message" in json.loads(answer[2]), "JSON with a wrong type", answer)
    t.point(submit(d.http, b"{" * 100000, JSON)[0] == 400, "JSON of great depth")
    t.point(submit(d.http, b"x" * 40, PROTOBUF, coding="gzip")[0] == 400, "no gzip")
    t.point(submit(d.http, usual("x").protobuf(), "text/plain")[0] == 415, "another type")
    t.point(uploads(d) == before and not re.search("Sanitizer|runtime error", d.logged()),
            "nothing is stored of it")
    long = Request()
    for _ in range(15):
        long.profile(web("long", indexed={"note": "x" * (9 << 20)}), [([long.frame("f")], [1], 0)])
    answer = submit(d.http, gzip.compress(long.protobuf(), 1), coding="gzip")
    t.point(answer[0] == 200 and answer[2][2:4] == b"\x08\x01" and uploads(d) == before + 1,
            "a text that 15 resources refer to is read 14 times", (answer[2][:300], uploads(d) - before))


def main():
    port = free_port()
    with Tap() as t, Daemon("--http", f"127.0.0.1:{port}") as d:
        check_encodings(t, d, check_one_request(t, d))
        check_once(t, d)
        check_frames(t, d)
        check_native(t, d)
        check_rights(t, d, port)
        check_refused(t, d)


if __name__ == "__main__":
    main()
