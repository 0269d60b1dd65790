"""The HTTP server as well-behaved clients use it: codings, validators, HEAD, one other origin; and that an answer given
again is never an old one, nor somebody else's."""
import ctypes
import ctypes.util
import gzip
import json
import os
import socket
import threading

from harness import NOBODY, Daemon, Other, Tap, bounds, free_port, run, symbols
from http_client import Client, start_with_token
from wire import Wire, sender_number, upload

ORIGIN = "https://grafana.example"
SOURCE = "static volatile int n;\n" + "".join(f"void f{i}(void) {{ n++; }}\n" for i in range(300)) + \
         "int main(void) { " + " ".join(f"f{i}();" for i in range(300)) + " return 0; }\n"


def unzstd(data):
    """The stdlib has no zstd; the library is there, since profd is linked with it."""
    lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(16 << 20)
    n = lib.ZSTD_decompress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)))
    return out.raw[:n] if n <= len(out) else b""


def decoded(answer):
    coding = answer[1].get("content-encoding")
    return {"gzip": gzip.decompress, "zstd": unzstd, None: bytes}[coding](answer[2])


def program(d):
    source, exe = os.path.join(d.folder, "p.c"), os.path.join(d.folder, "p")
    with open(source, "w") as f:
        f.write(SOURCE)
    assert run("gcc", "-pg", "-O0", "-o", exe, source).returncode == 0
    assert run(exe, cwd=d.folder).returncode == 0
    assert d.ctl("upload", "-e", exe, os.path.join(d.folder, "gmon.out")).returncode == 0
    return d.json("builds", "--json")["rows"][0]["build_id"]


def codings(tap, client, build):
    """Which coding comes of which wish, and that the bytes are the same behind it."""
    report = f"/api/v1/builds/{build}/report"
    targets = [report, report + "?format=text", report + "?format=csv", report + "?view=flat", "/openapi.json", "/",
               "/app.js", "/style.css"]
    wishes = ((None, None), ("gzip", "gzip"), ("zstd", "zstd"), ("gzip, deflate, br", "gzip"),
              ("gzip, deflate, br, zstd", "zstd"), ("identity", None),
              ("zstd;q=0.1, gzip;q=0.9", "gzip"), ("*", "zstd"), ("gzip;q=0", None), ("br", None),
              ("identity;q=0, *;q=0.5", "zstd"), ("gzip;q=0.5, identity", None))
    bad, sizes, tags = [], {}, {}
    for target in targets:
        plain = client.ask(target)
        for wish, coding in wishes:
            answer = client.ask(target, **({"Accept_Encoding": wish} if wish else {}))
            sizes.setdefault(target, {})[coding] = len(answer[2])
            tags.setdefault(target, set()).add((coding, answer[1].get("etag")))
            if answer[0] != 200 or answer[1].get("content-encoding") != coding or decoded(answer) != plain[2] or len(
                    answer[2]) != int(answer[1]["content-length"]) \
                    or "Accept-Encoding" not in answer[1].get("vary", ""):
                bad.append((target, wish, answer[:2], len(answer[2])))
        for wish in ("gzip", "zstd", "identity"):
            got, head = (client.ask(target, method=m, Accept_Encoding=wish) for m in ("GET", "HEAD"))
            if head[2] or {**head[1], "date": 0} != {**got[1], "date": 0}:
                bad.append((target, wish, "HEAD", head[:2], got[1]))
    tap.point(not bad, f"{len(targets)} answers in the coding of each of {len(wishes)} wishes, and the same bytes "
                       f"behind it; HEAD likewise", bad[:3])
    big = sizes[report]
    tap.point(max(big["gzip"], big["zstd"]) < big[None] / 3,
              f"a report of {big[None]} bytes: gzip {big['gzip']}, zstd {big['zstd']}", big)
    tap.point(all(len({tag for _, tag in t}) == 3 and len(t) == 3 for t in tags.values()),
              "each coding has an ETag of its own", tags)
    bad = []
    for target, known in tags.items():
        for _, tag in known:
            for wish in ("gzip", "zstd", "identity"):
                answer = client.ask(target, Accept_Encoding=wish, If_None_Match=f'"other", {tag}')
                if answer[0] != 304 or answer[1]["etag"] != tag or answer[2] or "content-encoding" in answer[1]:
                    bad.append((target, tag, wish, answer[:2]))
    tap.point(not bad, "If-None-Match with any of them: 304, and which one", bad[:3])
    small = client.ask("/healthz", Accept_Encoding="gzip")
    tap.point("content-encoding" not in small[1], "what is small is sent as it is")
    must = client.ask("/api/v1/labels", Accept_Encoding="identity;q=0, gzip")
    tap.point(must[1].get("content-encoding") == "gzip" and json.loads(decoded(must))
              == json.loads(client.ask("/api/v1/labels")[2]),
              "unless it may not be", must)
    metrics = client.ask("/metrics", Accept_Encoding="gzip")
    tap.point(metrics[1].get("content-encoding") == "gzip" and b"profd_builds" in decoded(metrics),
              "/metrics, for Prometheus, too", metrics[:2])
    packed = client.ask(report + "?format=pprof", Accept_Encoding="gzip")
    tap.point(packed[0] == 200 and "content-encoding" not in packed[1], "a binary format is left alone", packed[:2])
    none = client.ask(report, Accept_Encoding="br, identity;q=0")
    tap.point(none[0] == 406 and b"gzip" in none[2] and none[1]["content-type"] == "application/problem+json",
              "nothing acceptable: 406 in words", none)


def origin(tap, client, build):
    """One configured origin, and no other."""
    asks = {"Origin": ORIGIN, "Sec_Fetch_Site": "cross-site"}
    pre = client.ask(f"/api/v1/builds/{build}/report", method="OPTIONS", token=None,
                     Access_Control_Request_Method="GET",
                     Access_Control_Request_Headers="authorization,if-none-match", **asks)
    tap.point(pre[0] == 204 and pre[1].get("access-control-allow-origin") == ORIGIN
              and pre[1].get("access-control-allow-methods") == "GET, HEAD" and
              pre[1].get("access-control-allow-headers") == "Authorization, If-None-Match"
              and pre[1].get("vary") == "Origin" and
              int(pre[1]["access-control-max-age"]) > 0 and "access-control-allow-credentials" not in pre[1],
              "a preflight without a token: 204", pre)
    seen = []
    for target, status in ((f"/api/v1/builds/{build}/report", 200), ("/api/v1/builds/ffffff", 404), ("/nothing", 404),
                           ("/api/v1/builds?x=y", 400), ("/healthz", 200)):
        answer = client.ask(target, **asks)
        seen.append((target, answer[0] == status and answer[1].get("access-control-allow-origin") == ORIGIN
                     and "Origin" in answer[1].get("vary", "") and
                     "ETag" in answer[1].get("access-control-expose-headers", "")))
    refused = client.ask("/api/v1/builds", token=None, **asks)
    seen.append(("401", refused[0] == 401 and refused[1].get("access-control-allow-origin") == ORIGIN))
    tap.point(all(ok for _, ok in seen), "its pages may read answers and errors", seen)
    bad = []
    for other in ("https://evil.example", ORIGIN + ".evil", ORIGIN + ":444", "http://grafana.example", "null", "",
                  "https://", "*"):
        for method in ("GET", "OPTIONS"):
            answer = client.ask("/api/v1/builds", method=method, Origin=other)
            if answer[0] != 403 or "access-control-allow-origin" in answer[1] or answer[1].get("vary") != "Origin":
                bad.append((other, method, answer))
    tap.point(not bad, "other origins: 403, without a word for them", bad[:2])
    plain = client.ask("/api/v1/builds")
    tap.point("access-control-allow-origin" not in plain[1] and "Origin" in plain[1]["vary"],
              "who is no page is told nothing of it", plain[1])
    tap.point(client.ask("/", method="OPTIONS", token=None)[0] == 405, "OPTIONS that is no preflight: 405")
    for wrong in ("*", "null", "grafana.example", "https://grafana.example/", "https://a b", "ftp://x", "https://",
                  "https://u@x", "https://x:99999", "https://x?y"):
        with Daemon("--http-origin", wrong, start=False) as d:
            done = run(*d.command(), env=d.env)
            if not (done.returncode == 78 and "http-origin" in done.stderr and wrong in done.stderr
                    and not os.path.exists(d.state)):
                bad.append((wrong, done))
    tap.point(not bad, "what is no origin is refused at the start, by name", bad[:2])


def fresh(tap):
    """Behind an acknowledgement every answer knows of it, through both listeners, while others ask the same all the
    time."""
    with Daemon() as d:
        target, build = "/api/v1/builds/" + "ab" * 20 + "/report?view=flat", "ab" * 20
        sender, acknowledged, faults, asked, over = sender_number(), [0], [], [0], threading.Event()

        def seen(body):
            return json.loads(body)["provenance"]["uploads"]

        def by_http():
            client, tag = Client(d.http), None
            while not over.is_set():
                least = acknowledged[0]
                answer = client.ask(target, token=None, **({"If_None_Match": tag[0]} if tag else {}))
                if answer[0] == 200:
                    tag = (answer[1]["etag"], seen(answer[2]))
                elif answer[0] != 304 or answer[1]["etag"] != tag[0]:
                    faults.append(answer[:2])
                    continue
                asked[0] += 1
                if tag[1] < least:
                    faults.append(f"HTTP: {tag[1]} uploads, and {least} were acknowledged before the question")

        def by_socket():
            with Wire(d.socket) as w:
                while not over.is_set():
                    least = acknowledged[0]
                    status, body = w.query(target)
                    asked[0] += 1
                    if status != 200 or seen(body) < least:
                        faults.append((status, seen(body), least))

        with Wire(d.socket) as w:
            def put():
                w.send("UPLOAD", upload(sender, acknowledged[0] + 1, build_id=build), 5)
                while (answer := w.take())[0] == "WANT_OBJECT":
                    pass
                assert answer[0] == "ACK", answer
                acknowledged[0] += 1

            put()
            def reporting(what):
                def body():
                    try:
                        what()
                    except Exception as error:
                        faults.append(repr(error))
                return body

            threads = [threading.Thread(target=reporting(t)) for t in (by_http, by_http, by_socket)]
            for t in threads:
                t.start()
            for n in range(400):
                put()
                if n % 20 == 0:  # let some questions find everything unchanged
                    before = asked[0]
                    while asked[0] < before + 50 and not faults:
                        over.wait(0.001)
            over.set()
            for t in threads:
                t.join()
        metrics = d.get("/metrics")[2].decode()
        at_once = next((int(float(line.split()[-1])) for line in metrics.splitlines()
                        if line.startswith('profd_answers_total{how="at_once"}')), -1)
        tap.point(not faults, f"{asked[0]} answers while {acknowledged[0]} uploads came, {at_once} at once: none older "
                              f"than its question", faults[:5])
        tap.point(at_once > 0, "and some were given without asking the store", at_once)


def own(tap):
    """One question, several askers: each gets the answer about what is his."""
    if os.getuid() != 0:
        tap.skip("answers of several users", "not root")
        return
    with Daemon() as d:
        build = "cd" * 20

        def provenance(w):
            return json.loads(w.query(f"/api/v1/builds/{build}/report")[1])["provenance"]

        def attack(say):
            with Wire(d.socket) as w:
                w.send("UPLOAD", upload(3, 1, build_id=build), 1)
                while (answer := w.take())[0] == "WANT_OBJECT":
                    pass
                say(answer[0])
                for _ in range(2):
                    say(json.dumps([provenance(w) for _ in range(20)]))
                    wait.recv(1)

        wait, go_on = socket.socketpair()
        other = Other(attack)
        stored, theirs = other.line(), json.loads(other.line())
        with Wire(d.socket) as w:
            w.send("UPLOAD", upload(4, 1, build_id=build), 1)
            while (answer := w.take())[0] == "WANT_OBJECT":
                pass
            mine = [provenance(w) for _ in range(20)]
        go_on.send(b"x")
        theirs += json.loads(other.line())
        other.end()
        tap.point(stored == "ACK" and all(p["uploads"] == 2 and p["uids"] == [0, NOBODY] for p in mine)
                  and all(p["uploads"] == 1 and p["uids"] == [NOBODY] for p in theirs),
                  "the same question of two users, again and again: each about his own", (stored, theirs[:2], mine[:2]))


def main():
    with Tap() as tap, Daemon(start=False) as d:
        port = free_port()
        d.options = ("--http", f"127.0.0.1:{port}", "--http-origin", "HTTPS://Grafana.Example:443")
        start_with_token(d)
        client, build = Client(port), program(d)
        codings(tap, client, build)
        origin(tap, client, build)
        client.close()
        fresh(tap)
        own(tap)


if __name__ == "__main__":
    main()
