#!/usr/bin/python3
"""profctl export --otlp and report -f otlp: a decoder of its own reads the bytes and finds no fault of a producer of
OpenTelemetry, and another daemon that receives them has the same times and calls."""
import gzip
import hashlib
import os
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != HERE]  # "http" there is a test
import http.server  # noqa: E402
sys.path.insert(0, HERE)
from harness import Daemon, Tap, free_port, profile, run, symbols  # noqa: E402
from wire import all_fields, field, fixed  # noqa: E402

SOURCE = """static volatile int n;
__attribute__((noinline)) void leaf(void) { for (int i = 0; i < 10000000; i++) n++; }
__attribute__((noinline)) void down(int k) { if (k) down(k - 1); leaf(); }
__attribute__((noinline)) void left(void) { leaf(); down(3); }
__attribute__((noinline)) void right(void) { leaf(); left(); }
int main(void) { left(); right(); return 0; }
"""
SECOND = 10**9


def every(data, number):
    return [v for n, v in all_fields(data) if n == number]


def one(data, number, otherwise=0):
    return (every(data, number) or [otherwise])[-1]


def numbers(data, number):
    """Of a repeated integer, packed or not."""
    out = []
    for v in every(data, number):
        out += [v] if isinstance(v, int) else [n for _, n in all_fields(b"".join(b"\x08" + bytes(b) for b in cut(v)))]
    return out


def cut(packed):
    """The bytes of each varint."""
    piece = []
    for byte in packed:
        piece.append(byte)
        if byte < 128:
            yield piece
            piece = []


class Request:
    """The tables of the dictionary and the profiles of a request."""

    def __init__(self, data):
        d = one(data, 2, b"")
        (self.mappings, self.locations, self.functions, self.links, self.strings, self.attributes,
         self.stacks) = (every(d, n) for n in range(1, 8))
        self.resources = every(data, 1)
        self.resource = {one(a, 1).decode(): one(one(a, 2), 1).decode()
                         for r in self.resources for a in every(one(r, 1), 1)}
        scopes = [s for r in self.resources for s in every(r, 2)]
        self.scope = [(one(one(s, 1), 1), one(one(s, 1), 2)) for s in scopes]
        self.profiles = {self.kind(p): p for s in scopes for p in every(s, 2)}

    def text(self, index):
        return self.strings[index].decode()

    def kind(self, p):
        return self.text(one(one(p, 1), 1)), self.text(one(one(p, 1), 2))

    def pairs(self, indices):
        return {self.text(one(self.attributes[i], 1)): one(one(self.attributes[i], 2), 1).decode() for i in indices}

    def name(self, location):
        lines = every(self.locations[location], 3)
        return self.text(one(self.functions[one(lines[0], 1)], 1)) if lines else None

    def samples(self, kind):
        """[(names of the stack, innermost first; value)]"""
        return [(tuple(map(self.name, numbers(self.stacks[one(s, 1)], 1))), *numbers(s, 4))
                for s in every(self.profiles[kind], 2)]


def faults(r):
    """What a checker of OTLP profiles complains of."""
    out, used = [], {n: {0} for n in "mappings locations functions links strings attributes stacks".split()}
    tables = {n: getattr(r, n) for n in used}

    def use(table, index):
        used[table].add(index)
        if not 0 <= index < len(tables[table]):
            out.append(f"{table}[{index}] does not exist")

    for name, rows in tables.items():
        zero = field(1, bytes(16)) + field(2, bytes(8)) if name == "links" else b""
        if not rows or rows[0] not in (b"", zero):
            out.append(f"{name}[0] is not the zero value")
        if len(set(rows)) != len(rows):
            out.append(f"{name} has equal rows")
    for row in r.mappings[1:]:
        use("strings", one(row, 4))
        for i in numbers(row, 5):
            use("attributes", i)
        if not [k for k in r.pairs(numbers(row, 5)) if k.startswith("process.executable.build_id.")]:
            out.append("a mapping has no build-id")
        if one(row, 1) >= one(row, 2) and (one(row, 1), one(row, 2)) != (0, 0):
            out.append("a mapping ends before it begins")
    for row in r.locations[1:]:
        use("mappings", one(row, 1))
        for line in every(row, 3):
            use("functions", one(line, 1))
        for i in numbers(row, 4):
            use("attributes", i)
    for row in r.functions[1:]:
        for n in (1, 2, 3):
            use("strings", one(row, n))
    for row in r.attributes[1:]:
        use("strings", one(row, 1))
        if one(row, 1) == 0:
            out.append("an attribute has no key")
    for row in r.stacks[1:]:
        for i in numbers(row, 1):
            use("locations", i)
            if i == 0:
                out.append("a stack has location 0")
    for p in r.profiles.values():
        for n in (1, 2):
            use("strings", one(one(p, 1), n))
            use("strings", one(one(p, 5, b""), n))
        for i in numbers(p, 11):
            use("attributes", i)
        seen = set()
        for s in every(p, 2):
            use("stacks", one(s, 1))
            if len(numbers(s, 4)) != 1 or one(s, 1) in seen or numbers(s, 2) or one(s, 1) == 0:
                out.append("a sample has not one value, an attribute or the stack of another one")
            seen.add(one(s, 1))
        if len(one(p, 7, b"")) != 16 or not any(one(p, 7)):
            out.append("profile_id is not 16 bytes")
    for name, rows in tables.items():
        unused = set(range(len(rows))) - used[name]
        if unused:
            out.append(f"{name} {sorted(unused)[:5]} are not referred to")
        for row in rows if name == "strings" else []:
            row.decode()
    return out


def fault_is_found():
    """The checks see what is wrong: an unused string."""
    d = b"".join(field(n, b"") for n in range(1, 8)) + field(5, "unused")
    return "not referred to" in " ".join(faults(Request(field(2, d)))) and fixed(3, 1)


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers as the class says, one after the other."""
    answers, requests = [], []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.path, dict(self.headers), body))
        status, headers, answer = self.answers.pop(0)
        self.send_response(status)
        for k, v in {"Content-Type": "application/x-protobuf", "Content-Length": str(len(answer)), **headers}.items():
            self.send_header(k, v)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def program(folder):
    source, exe = os.path.join(folder, "tree.c"), os.path.join(folder, "tree")
    with open(source, "w", encoding="utf-8") as f:
        f.write(SOURCE)
    done = run("gcc", "-O1", "-g", "-pg", "-fno-optimize-sibling-calls", "-Wl,--build-id", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    return exe


def functions(d, build, *options):
    return {f["name"]: f for f in d.json("report", build, "--json", *options)["functions"]}


def check_bytes(tap, d, exe):
    data = d.ctl("report", exe, "-f", "otlp", binary=True).stdout
    r, said = Request(data), d.json("report", exe, "--json")
    tap.point(fault_is_found(), "the checks find a fault")
    tap.point(not faults(r), "the request has no fault", faults(r))
    tap.point(d.ctl("report", exe, "-f", "otlp", binary=True).stdout == data, "the same sum gives the same bytes")
    tap.point(r.resource == {"service.name": "tree", "process.executable.name": "tree"}
              and r.scope[0][0] == b"profd" and r.scope[0][1], "resource and scope", (r.resource, r.scope))
    tap.point(set(r.profiles) == {("cpu", "nanoseconds"), ("calls", "count")}, "times and exact calls", r.profiles)
    self_ns, pairs = {}, {}
    for stack, value in r.samples(("cpu", "nanoseconds")):
        self_ns[stack[0]] = self_ns.get(stack[0], 0) + value
    wrong = [(f["name"], f["self_seconds"], self_ns) for f in said["functions"]
             if abs(self_ns.get(f["name"], 0) - f["self_seconds"] * SECOND) > 1]
    tap.point(not wrong and sum(self_ns.values()) == round(said["totals"]["seconds"] * SECOND),
              "the stacks' ends have the self times of the report", wrong)
    for stack, value in r.samples(("calls", "count")):
        pairs[stack] = value
    truth = {(row["name"], f["name"]): row["calls"] for f in said["functions"] for row in f["callees"]
             if row["calls"]}
    tap.point(pairs == truth and pairs[("down", "down")] == 6, "each pair has its calls", (pairs, truth))
    about = r.pairs(numbers(r.profiles[("calls", "count")], 11))
    tap.point("no stack was observed" in about["profd.stacks"], "an attribute says that pairs were counted", about)
    about = {}
    for time in ("measured", "calls"):
        other = Request(d.ctl("report", exe, "-f", "otlp", "--time", time, binary=True).stdout)
        about[time] = other.pairs(numbers(other.profiles[("cpu", "nanoseconds")], 11))["profd.stacks"]
        tap.point(not faults(other), f"times by {time}: no fault", faults(other))
    tap.point(about["measured"] == "observed" and "derived" in about["calls"], "and whether stacks are derived", about)
    ids = {os.path.basename(r.text(one(m, 4))): r.pairs(numbers(m, 5)) for m in r.mappings[1:]}
    tap.point(ids["tree"] == {"process.executable.build_id.gnu": said["build_id"]}, "the mapping has the GNU build-id",
              ids)
    at = {r.name(i): one(row, 2) for i, row in enumerate(r.locations) if i and r.name(i) == "main"}
    low, size = symbols(exe)["main"]
    tap.point(low <= at["main"] < low + size, "addresses are those in the file", at)
    return data


def check_lossy(tap, exe, folder):
    """glibc says nothing of threads: its calls may be fewer than there were."""
    with Daemon() as d:
        path = profile(folder, exe, (), 1)
        assert d.ctl("upload", "-e", exe, path).returncode == 0
        r = Request(d.ctl("report", exe, "-f", "otlp", binary=True).stdout)
        about = r.pairs(numbers(r.profiles[("cpu", "nanoseconds")], 11))
        tap.point(set(r.profiles) == {("cpu", "nanoseconds")} and "threads-unknown" in about["profd.not_exact"]
                  and not faults(r), "calls that are not exact are left out, and the reasons are there",
                  (list(r.profiles), about, faults(r)))


def check_round_trip(tap, d, exe, data):
    port = free_port()
    with Daemon("--http", f"127.0.0.1:{port}") as other:
        url, token = f"http://127.0.0.1:{port}", other.token_file("export", "--write")
        done = d.ctl("export", "--otlp", url, exe)
        tap.point(done.returncode != 0 and "401" in done.stderr, "without a token it is refused", done.stderr)
        for _ in range(2):
            done = d.ctl("export", "--otlp", url, "--otlp-token-file", token, exe)
            tap.point(done.returncode == 0 and done.stdout == "", "another daemon takes the request", done.stderr)
        assert other.ctl("symbols", exe).returncode == 0
        ours = d.json("report", exe, "--json")
        theirs = functions(other, ours["build_id"])
        wrong = [(f["name"], f["self_seconds"], theirs.get(f["name"], {}).get("self_seconds"))
                 for f in ours["functions"] if f["self_seconds"]
                 and abs(f["self_seconds"] - theirs.get(f["name"], {}).get("self_seconds", 0)) > 2e-9]
        tap.point(not wrong, "it has the same time in each function, once", wrong)
        calls = functions(other, ours["build_id"], "--dimension", "calls")
        wrong = [(f["name"], f["calls"] + f["self_calls"], calls.get(f["name"], {}).get("self_seconds"))
                 for f in ours["functions"] if f["calls"] + f["self_calls"]
                 and calls.get(f["name"], {}).get("self_seconds") != f["calls"] + f["self_calls"]]
        tap.point(not wrong and len(calls) > 3, "and the same calls", wrong)
        tap.point(faults(Request(data)) == [], "what was sent has no fault")


def check_answers(tap, d, exe, data):
    server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"

    def export(*answers):
        Receiver.answers[:], Receiver.requests[:] = answers, []
        return d.ctl("export", "--otlp", url, exe), list(Receiver.requests)

    try:
        done, got = export((503, {"Retry-After": "0"}, b""), (429, {"Retry-After": "0"}, b""), (200, {}, b""))
        tap.point(done.returncode == 0 and len(got) == 3, "a busy receiver is asked again", (done.stderr, len(got)))
        path, headers, body = got[2]
        tap.point(path == "/v1development/profiles" and headers["Content-Type"] == "application/x-protobuf"
                  and headers["Content-Encoding"] == "gzip" and "Authorization" not in headers
                  and gzip.decompress(body) == data and len({hashlib.sha256(b).digest() for _, _, b in got}) == 1,
                  "the body is the report's, in gzip, the same each time", (path, headers))
        done, got = export((503, {"Retry-After": "4000"}, b""))
        tap.point(done.returncode != 0 and "503" in done.stderr and len(got) == 1, "a long wait is left to the user",
                  done.stderr)
        done, got = export((400, {}, field(1, 3) + field(2, "it is no good")))
        tap.point(done.returncode != 0 and "it is no good" in done.stderr and len(got) == 1,
                  "what is refused is not sent again", done.stderr)
        done, _ = export((200, {}, field(1, field(1, 1) + field(2, "too old"))))
        tap.point(done.returncode != 0 and "rejected 1" in done.stderr and "too old" in done.stderr,
                  "rejected profiles are an error with the reason", done.stderr)
        done, _ = export((200, {}, field(1, field(2, "a word of warning"))))
        tap.point(done.returncode == 0 and "a word of warning" in done.stderr, "a warning is printed", done.stderr)
        done, _ = export((200, {}, b"<html>"))
        tap.point(done.returncode != 0 and "that are not OTLP" in done.stderr, "another answer is an error",
                  done.stderr)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    for bad, word in ((("--otlp", "ftp://x", exe), "https://HOST"), (("--otlp", url, "-o", "x", exe), "--output"),
                      (("--otlp", "http://192.0.2.1:4318", exe), "127.0.0.1")):
        done = d.ctl("export", *bad)
        tap.point(done.returncode != 0 and word in done.stderr, f"{bad[1]} {bad[2][:2]}: refused", done.stderr)


def main():
    with Tap() as tap, Daemon() as d, tempfile.TemporaryDirectory() as folder:
        exe = program(folder)
        check_lossy(tap, exe, folder)
        done = d.ctl("run", "--rate", "250", "--", exe, cwd=folder)
        assert done.returncode == 0, done.stderr
        data = check_bytes(tap, d, exe)
        check_round_trip(tap, d, exe, data)
        check_answers(tap, d, exe, data)


if __name__ == "__main__":
    main()
