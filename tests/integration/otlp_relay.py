#!/usr/bin/python3
"""relay = otlp:URL: profd-relay sends each upload of a host to another profd as OTLP. That one has the same times and
calls, once, whatever the network loses; what it refuses is put aside with its reason."""
import contextlib
import gzip
import os
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != HERE]  # "http" there is a test
import http.server  # noqa: E402
import urllib.error  # noqa: E402
import urllib.request  # noqa: E402
sys.path.insert(0, HERE)
from harness import Daemon, Tap, free_port, post, until  # noqa: E402
from https_bed import Relay  # noqa: E402
from otlp_export import Request, faults, functions, one, program  # noqa: E402
from relaying import BUILDS, body, equation, window  # noqa: E402
from wire import Wire, encoded, field, sender_number  # noqa: E402

PROTOBUF = "application/x-protobuf"


class Between(http.server.BaseHTTPRequestHandler):
    """Passes requests on to a receiver, if there is one. answers: (status, headers, body), each given once instead of
    the receiver's answer; status None: it ends within its head."""
    answers, requests, receiver, protocol_version = [], [], None, "HTTP/1.1"

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.path, dict(self.headers), data))
        status, headers, said = 200, {"Content-Type": PROTOBUF}, b""
        if self.receiver:
            there = urllib.request.Request(
                self.receiver + self.path, data, {k: v for k, v in self.headers.items() if k != "Host"})
            try:
                with urllib.request.urlopen(there) as answer:
                    said = answer.read()
            except urllib.error.HTTPError as e:
                status, said = e.code, e.read()
        if self.answers:
            status, headers, said = self.answers.pop(0)
        if status is None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le")
            self.close_connection = True
            return
        self.send_response(status)
        trailer = headers.pop("Trailer", None)
        length = {"Transfer-Encoding": "chunked"} if trailer else {"Content-Length": len(said)}
        for name, value in {**headers, **length}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"%x\r\n%s\r\n0\r\n%s: 0\r\n\r\n" % (len(said), said, trailer) if trailer else said)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def between(receiver=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
    threading.Thread(target=server.serve_forever).start()
    Between.answers[:], Between.requests[:], Between.receiver = [], [], receiver
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def ledger(d):
    return d.json("status", "--json")["store"]["relay"]


def upload(d, calls, labels=b""):
    with Wire(d.socket) as w:
        w.send("UPLOAD", body(sender_number(), 1, BUILDS[0], 1, calls) + labels)
        while w.take()[0] != "ACK":
            pass


def check_second_profd(tap, folder):
    """What a program counted on the host is at the other profd, although the first answer is lost."""
    exe, port = program(folder), free_port()
    with Daemon("--http", f"127.0.0.1:{port}") as other, between(f"http://127.0.0.1:{port}") as url:
        token = other.token("host", "--write")
        with Daemon("--relay", f"otlp:{url}") as d:
            relay = Relay(d, f"otlp:{url}", token, None)
            done = d.ctl("run", "--rate", "250", "-l", "service=tree", "-l", "version=7", "-l", "zone=a", "--", exe)
            assert done.returncode == 0, done.stderr
            Between.answers[:] = [(502, {"Content-Type": "text/html"}, b"<html>")]
            lost = relay.once()
            tap.point(lost.returncode == 69 and "502" in lost.stderr and url in lost.stderr,
                      "an answer that is lost is a failed round", (lost.returncode, lost.stderr))
            said = ledger(d)
            tap.point("502" in (said.get("error") or "") and said["acknowledged"]["uploads"] == 0,
                      "status says why", said)
            assert d.ctl("symbols", exe).returncode == 0  # names may come between two attempts
            done = relay.once()
            tap.point(done.returncode == 0 and equation(ledger(d)) and ledger(d)["sealed"]["uploads"] == 0
                      and ledger(d)["acknowledged"]["uploads"] > 0 and not ledger(d)["not_counted"]["uploads"],
                      "the next round sends it again", (done.stderr, ledger(d)))
            again = len(Between.requests)
            assert relay.once().returncode == 0
            tap.point(len(Between.requests) == again, "what was sent is not sent again", again)
            ours, r = d.json("report", exe, "--json"), Request(gzip.decompress(Between.requests[-1][2]))
            path, headers, _ = Between.requests[-1]
            tap.point(path == "/v1development/profiles" and headers["Content-Type"] == PROTOBUF and not faults(r)
                      and headers["Authorization"] == f"Bearer {token}", "the requests are OTLP without a fault",
                      (path, headers, faults(r)))
            tap.point(r.resource.items() >= {"service.name": "tree", "service.version": "7", "zone": "a",
                                             "process.executable.name": "tree"}.items() and r.resource["host.name"],
                      "labels are attributes of the resource", r.resource)
        assert other.ctl("symbols", exe).returncode == 0
        theirs, calls = (functions(other, ours["build_id"], *o) for o in ((), ("--dimension", "calls")))
        wrong = [(f["name"], f["self_seconds"], theirs.get(f["name"], {}).get("self_seconds"))
                 for f in ours["functions"] if f["self_seconds"]
                 and abs(f["self_seconds"] - theirs.get(f["name"], {}).get("self_seconds", 0)) > 2e-9]
        tap.point(not wrong and len(theirs) > 3, "the other profd has the same time in each function, once", wrong)
        wrong = [(f["name"], f["calls"] + f["self_calls"], calls.get(f["name"], {}).get("self_seconds"))
                 for f in ours["functions"] if f["calls"] + f["self_calls"]
                 and calls.get(f["name"], {}).get("self_seconds") != f["calls"] + f["self_calls"]]
        tap.point(not wrong and len(calls) > 3, "and the same calls", wrong)


def check_receivers(tap):
    """What other receivers answer."""
    with between() as url, Daemon("--relay", f"otlp:{url}") as d:
        relay = Relay(d, f"otlp:{url}", "0" * 20, None, relay_host="rack 1&id=2")
        os.unlink(relay.token)
        upload(d, 5)
        Between.answers[:] = [(503, {"Retry-After": "1"}, b"")]
        relay.start()
        until(lambda: ledger(d)["acknowledged"]["uploads"] == 1)
        named = Request(gzip.decompress(Between.requests[-1][2])).resource["host.name"]
        tap.point(named == "rack 1&id=2", "the name of the host is sent as it is", named)
        tap.point(len(Between.requests) == 2 and len({data for _, _, data in Between.requests}) == 1,
                  "a busy receiver gets the same request again", len(Between.requests))
        tap.point(all("Authorization" not in h for _, h, _ in Between.requests), "without a file there is no token")
        relay.stop()
        upload(d, 6)
        Between.answers[:] = [(400, {"Content-Type": PROTOBUF}, field(1, 3) + field(2, "it is no good"))]
        done = relay.once()
        tap.point(done.returncode == 0 and "it is no good" in done.stderr and ledger(d)["not_counted"]["uploads"] == 1
                  and equation(ledger(d)), "what is refused is put aside, with the reason", (done.stderr, ledger(d)))
        upload(d, 7)
        Between.answers[:] = [(200, {"Content-Type": PROTOBUF}, field(1, field(1, 1) + field(2, "too old")))]
        done = relay.once()
        tap.point(done.returncode == 0 and "too old" in done.stderr and ledger(d)["not_counted"]["uploads"] == 2,
                  "so is what is rejected in part", (done.stderr, ledger(d)))
        upload(d, 8)
        for answer, status in (((401, {}, b""), 77), ((404, {}, b""), 65),
                               ((200, {"Content-Type": "text/html"}, b"<html>"), 76),
                               ((200, {"Content-Type": "application/json"}, b'{"error":"log in"}'), 76),
                               ((None, {}, b"half a head"), 69)):
            Between.answers[:] = [answer]
            done = relay.once()
            tap.point(done.returncode == status and ledger(d)["sealed"]["uploads"] == 1,
                      f"{answer[0]} {answer[2]}: the upload is kept", (done.returncode, done.stderr, ledger(d)))
        d.stop()
        d.start()
        done = relay.once()
        tap.point(done.returncode == 0 and equation(ledger(d)) and ledger(d)["acknowledged"]["uploads"] == 4,
                  "and arrives after the daemon was started again", (done.stderr, ledger(d)))
        upload(d, 9)
        headers = {"Content-Type": "application/json", "Trailer": b"X-Sum"}
        Between.answers[:] = [(200, headers, b'{"partialSuccess":{}}')]
        done = relay.once()
        tap.point(done.returncode == 0 and ledger(d)["acknowledged"]["uploads"] == 5,
                  "an answer in JSON with a trailer is read", done)
        check_contents(tap, d, relay)
        check_another(tap, d, url)
        status, said = post(d.http, "/v1development/profiles", b"", kind=PROTOBUF)[::2]
        tap.point(status == 409 and url.encode() in said, "this daemon takes no profiles, and says where they go",
                  (status, said))
        answer = d.get("/outgoing?id=1")
        tap.point(answer[0] == 404, "only the relay asks for outgoing uploads", answer)


def check_contents(tap, d, relay):
    """All dimensions of an upload are sent, and labels as they are."""
    def histogram(rate, dimension, ticks):
        return 0, 0x1000, 0x2000, 1024, rate, dimension, dimension[0], {1: ticks}

    counts = encoded([histogram(100, "seconds", 7), histogram(1, "instructions", 11), histogram(1, "alloc", 13)],
                     [(0x1100, 0x1001, 3)])
    with Wire(d.socket) as w:
        w.send("UPLOAD", body(sender_number(), 1, BUILDS[1], 1, 3, counts=counts) + window(time.time())
               + field(7, field(1, "zone") + field(2, "a\nb")))
        while w.take()[0] != "ACK":
            pass
    done, r = relay.once(), Request(gzip.decompress(Between.requests[-1][2]))
    sums = {kind: sum(s[1] for s in r.samples(kind)) for kind in r.profiles}
    tap.point(sums == {("cpu", "nanoseconds"): 7 * 10**7, ("alloc", "count"): 13, ("instructions", "count"): 11,
                       ("calls", "count"): 3} and not faults(r), "every dimension of an upload is sent, and its calls",
              (done.stderr, sums, faults(r)))
    tap.point(len({one(p, 7) for p in r.profiles.values()}) == 4, "each with an id of its own")
    tap.point(r.resource.get("zone") == "a\nb", "the value of a label is sent as it is", r.resource)
    target = f"/api/v1/builds/{BUILDS[1]}/report?format=otlp"
    kinds = [set(Request(d.get(target + more)[2]).profiles) for more in ("", "&dimension=alloc")]
    tap.point(kinds == [set(sums), {("alloc", "count"), ("calls", "count")}],
              "format=otlp has every dimension, or that which it was asked for", kinds)


def check_another(tap, d, url):
    """The URL of another receiver."""
    upload(d, 10)
    before = ledger(d)["acknowledged"]["uploads"]
    done = Relay(d, f"otlp:{url}/other", "0" * 20, None).once()
    tap.point(done.returncode == 65 and "relay move" in done.stderr and ledger(d)["acknowledged"]["uploads"] == before,
              "another receiver gets nothing until relay move", (done.returncode, done.stderr))
    done = Relay(d, f"otlp:{url}/", "0" * 20, None).once()
    tap.point(done.returncode == 0 and ledger(d)["acknowledged"]["uploads"] == before + 1,
              "a slash at the end of the URL makes it no other one", (done.returncode, done.stderr))


def check_urls(tap):
    with Daemon(start=False) as d:
        for bad in ("otlp:ftp://x", "otlp:http://192.0.2.1:4318", "otlp:http://127.0.0.1.example", "otlp:", "otlp:x"):
            relay = Relay(d, bad, "0" * 20, None)
            done = relay.once()
            tap.point(done.returncode == 78 and "otlp:" in done.stderr, f"{bad} is refused", done.stderr)


def main():
    with Tap() as tap, tempfile.TemporaryDirectory() as folder:
        check_second_profd(tap, folder)
        check_receivers(tap)
        check_urls(tap)


main()
