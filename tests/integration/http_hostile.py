"""Hostile and malformed requests against a running daemon, both listeners: each is answered as it must be, with every
header that guards a page, and closed; afterwards memory, descriptors and log are what they were, and good clients are
served. The tables are those of the threat model: DNS rebinding (W1), forged requests (W2), leaks (W3), names that are
programs (W4), odd peers (U1), frames (U2), memory (U3), drips (U4), crowds (U5), and the forms that other servers take
(6.1)."""
import collections
import gzip
import json
import os
import socket
import time
import urllib.parse

from harness import LONG, Daemon, Tap, free_port, parse_response, until
from http_client import TOKEN, Client, HalfRequests, crowded_out, half_a_request, start_with_token, store_large_list
from wire import Wire, sender_number, upload

GUARD = {"x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin",
         "cross-origin-opener-policy": "same-origin",
         "referrer-policy": "no-referrer", "cache-control": "no-store",
         "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox"}
MB = 1 << 20
# Every method and every Origin that a page could make a browser send (W2).
METHODS = "POST PUT DELETE PATCH OPTIONS TRACE CONNECT PROPFIND LINK get Get GETX X".split()


def request(line=b"GET /healthz HTTP/1.1", fields=b"", body=b"", host=b"Host: {host}\r\n", token=True):
    if isinstance(line, str):
        line = line.encode("latin-1")
    if isinstance(fields, str):
        fields = fields.encode("latin-1")
    return (line + b"\r\n" + host + (f"Authorization: Bearer {TOKEN}\r\n".encode() if token else b"") + fields
            + b"\r\n" + body)


def forms():
    """(name, bytes, statuses that are right): what 6.1 lists and more; the same on both listeners."""
    yield "length and chunks", request(fields="Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                                       body=b"0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n"), {400}
    yield "chunks and length", request(fields="Transfer-Encoding: gzip, chunked\r\nContent-Length: 5\r\n",
                                       body=b"0\r\n\r\n"), {400}
    for coding in ("chunked", "identity", "gzip, chunked", "CHUNKED", "chunked, chunked", "x", ""):
        yield f"Transfer-Encoding: {coding}", request(fields=f"Transfer-Encoding: {coding}\r\n",
                                                      body=b"5\r\nhello\r\n0\r\nX-T: y\r\n\r\n"), {400}
    yield "two lengths that differ", request(fields="Content-Length: 0\r\nContent-Length: 34\r\n",
                                             body=b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), {400}
    yield "two lengths alike", request(fields="Content-Length: 0\r\nContent-Length: 0\r\n"), {400}
    for length in ("+5", "-1", "0x5", "5 5", "5,5", "1e1", "5;", "", "18446744073709551616", "99999999999999999999999",
                   "\xb2", "five"):
        yield f"Content-Length: {length!r}", request(fields=f"Content-Length: {length}\r\n", body=b"hello"), {400}
    for length in ("5", "00005", "18446744073709551615", "1"):
        yield f"a body of {length}", request(fields=f"Content-Length: {length}\r\n", body=b"hello"), {413}
    yield "a folded line", request(fields="X: y\r\n z\r\n"), {400}
    yield "a folded first line", request(fields="\r\n X: y\r\n"), {200, 400}
    yield "bare line feeds", b"GET /healthz HTTP/1.1\nHost: a\n\n", {400}
    yield "a bare line feed in a field", request(fields="X: y\nZ: w\r\n"), {400}
    yield "a bare carriage return", request(fields="X: y\rZ: w\r\n"), {400}
    yield "carriage returns twice", request(fields="X: y\r\r\n"), {400}
    yield "space before the colon", request(fields="X : y\r\n"), {400}
    yield "a field without a name", request(fields=": y\r\n"), {400}
    yield "a field without a colon", request(fields="Xy\r\n"), {400}
    yield "a name with a slash", request(fields="X/Y: z\r\n"), {400}
    yield "a name that is not ASCII", request(fields="X\xe4: z\r\n"), {400}
    yield "no Host", request(host=b""), {400}
    yield "two Hosts", request(fields="Host: localhost\r\n"), {400}
    yield "Host with a space before its colon", request(host=b"Host : localhost\r\n"), {400}
    for host in ("a b", "a/b", "u@localhost", "[::1", "::1", "localhost:", "localhost:x", "localhost:99999",
                 "localhost:-1", "\xe4", "a,b", "", "%6c"):
        yield f"Host: {host!r}", request(host=f"Host: {host}\r\n".encode("latin-1")), {400}
    for byte in (0, 1, 7, 8, 0x1b, 0x7f):
        yield f"byte {byte:#x} in a field", request(fields=b"X: a" + bytes([byte]) + b"b\r\n"), {400}
        yield f"byte {byte:#x} in the target", request(line=b"GET /health" + bytes([byte]) + b" HTTP/1.1"), {400}
    for target in ("", "*", "healthz", "http://localhost/healthz", "http://evil.example/", "//evil.example/healthz",
                   "/a b", "/../../etc/passwd", "/./healthz", "/api/..",
                   "/%2e%2e/%2e%2e/etc/passwd", "/%2E./x", "/%00", "/a%00b", "/%2fhealthz", "/a%5cb", "/%", "/%4",
                   "/%zz", "/<x>", "/a#b", "/\xe4", "/\"x\"", "/{x}", "/|",
                   "/^", "/`", "/%0d%0aX:%20y", "/%1b%5b31m", "/%7f", "localhost:80", "/a\\b"):
        yield f"target {target!r}", request(line=f"GET {target} HTTP/1.1"), {400}
    for version in ("HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "HTTP/3.0", "HTTP/9.9"):
        yield version, request(line=f"GET /healthz {version}"), {505}
    for version in ("http/1.1", "HTTP/1", "HTTP/11", "HTTP/1.1 ", "HTTP/1.1x", "HTTP/1.10", "HTP/1.1", "HTTP /1.1", "",
                    "HTTPS/1.1"):
        yield f"version {version!r}", request(line=f"GET /healthz {version}"), {400}
    for line in ("GET", "GET /healthz", " GET /healthz HTTP/1.1", "GET  /healthz HTTP/1.1", "GET\t/healthz HTTP/1.1",
                 "G ET / HTTP/1.1", "GET /healthz HTTP/1.1 x", "\x16\x03\x01\x02\x00\x01",
                 "PRI * HTTP/2.0x", "SSH-2.0-x", "\x00" * 40, "\xff\xfe"):
        yield f"line {line[:20]!r}", request(line=line), {400}
    yield "an empty line first", b"\r\n" + request(), {400}
    yield "HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {505}
    yield "a frame of the other socket", b"\x40\0\0\0\1\1\0\0\1\0\0\0" + bytes(64), {400}
    for name, value, status in (("Expect", "100-continue", 417), ("Expect", "x", 417), ("Upgrade", "h2c", 400),
                                ("Upgrade", "websocket", 400), ("Connection", "a;b", 400),
                                ("Connection", "\"x\"", 400), ("Accept-Encoding", "gzip;q=9", 400),
                                ("Accept-Encoding", "gzip gzip", 400), ("Accept-Encoding", "*;q=0", 406),
                                ("Accept-Encoding", "identity;q=0, br", 406)):
        yield f"{name}: {value}", request(fields=f"{name}: {value}\r\n"), {status}
    for name in ("If-None-Match", "Origin", "Authorization", "Sec-Fetch-Site", "Content-Length"):
        yield f"{name} twice", request(fields=f"{name}: 0\r\n{name}: 0\r\n"), {400}
    yield "a line of 5,000", request(line="GET /" + "a" * 5000 + " HTTP/1.1"), {414}
    yield "a method of 5,000", request(line="G" * 5000 + " / HTTP/1.1"), {414}
    yield "65 fields", request(fields="X: y\r\n" * 65), {431}
    yield "a field of 9,000", request(fields="X: " + "y" * 9000 + "\r\n"), {431}
    yield "a name of 9,000", request(fields="X" * 9000 + ": y\r\n"), {431}
    yield "endless fields", request(fields="X: y\r\n" * 50000), {431}
    for method in METHODS:
        yield f"{method}", request(line=f"{method} /api/v1/builds HTTP/1.1"), {405}
        yield f"{method} with chunks", request(line=f"{method} /api/v1/builds HTTP/1.1",
                                               fields="Transfer-Encoding: chunked\r\n",
                                               body=b"2\r\n{}\r\n0\r\n\r\n"), {
                                                   405 if method in ("POST", "PUT") else 400}
        yield f"{method} with a body", request(line=f"{method} /api/v1/builds HTTP/1.1",
                                               fields="Content-Type: text/plain\r\nContent-Length: 2\r\n",
                                               body=b"{}"), {405}


def bodies():
    """(name, bytes, statuses that are right) of POST to the path that takes bodies. A well framed body reaches the
    handler, which refuses what it holds."""
    line, fields = "POST /api/v1/uploads HTTP/1.1", "Content-Type: application/x-protobuf\r\n"
    chunked, junk = fields + "Transfer-Encoding: chunked\r\n", b"\xff\xfe\xff\xfe"
    smuggled = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"

    def coded(coding, body):
        return request(line, fields + f"Content-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n", body)
    yield "no length", request(line, fields), {411}
    yield "a length of 16 MiB and 1", request(line, fields + "Content-Length: 16777217\r\n"), {413}
    yield "chunks and length", request(line, chunked + "Content-Length: 4\r\n", b"0\r\n\r\n" + smuggled), {400}
    yield "chunked twice", request(line, chunked + "Transfer-Encoding: chunked\r\n", b"0\r\n\r\n" + smuggled), {400}
    for size in ("", "x", "-1", "+4", "0x4", "4 ", "4;x=y", "000000004", "f" * 16, "4\n"):
        yield f"a chunk of {size!r}", request(line, chunked,
                                              size.encode() + b"\r\n" + junk + b"\r\n0\r\n\r\n"), {400}
    yield "a chunk of 4 GiB", request(line, chunked, b"ffffffff\r\n" + junk), {413}
    yield "a chunk that is longer", request(line, chunked, b"3\r\n" + junk + b"\r\n0\r\n\r\n"), {400}
    yield "a trailer", request(line, chunked, b"4\r\n" + junk + b"\r\n0\r\nX: y\r\n\r\n"), {400}
    yield "another expectation", request(line, fields + "Content-Length: 4\r\nExpect: x\r\n", junk), {417}
    for coding in ("br", "gzip, zstd", "deflate", ""):
        yield f"Content-Encoding: {coding!r}", coded(coding, junk), {415}
    bomb = gzip.compress(bytes(32 * MB))
    yield "a bomb", coded("gzip", bomb), {413}
    yield "a bomb that states little", coded("gzip", bomb[:-4] + b"\x10\0\0\0"), {400}
    yield "gzip that is cut", coded("gzip", gzip.compress(junk)[:-1]), {400}
    yield "two members", coded("gzip", gzip.compress(junk) * 2), {400}
    yield "gzip that is none", coded("gzip", junk * 8), {400}
    yield "zstd that is none", coded("zstd", junk * 8), {400}


def forgeries():
    """(name, bytes, status) for TCP only: names that are not ours (W1), pages of others (W2, W3), tokens."""
    for host in ("evil.example", "localhost.evil.com:{port}", "127.0.0.1.evil.com:{port}", "localhost.:{port}",
                 "localhost", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}",
                 "[::]:{port}", "[::ffff:127.0.0.1]:{port}", "127.1:{port}", "2130706433:{port}", "0x7f.0.0.1:{port}",
                 "10.0.0.1:{port}", "xn--localhost:{port}", "LOCALHOST.EVIL:{port}"):
        yield f"Host: {host}", request(host=f"Host: {host}\r\n".encode()), {421}
        yield f"Host: {host}, with X-Forwarded-Host", request(
                host=f"Host: {host}\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\n".encode()), {421}
    for site in ("cross-site", "same-site", "other", ""):
        yield f"Sec-Fetch-Site: {site!r}", request(fields=f"Sec-Fetch-Site: {site}\r\n"), {403}
    for origin in ("https://evil.example", "http://evil.example:{port}", "null", "file://", "http://localhost",
                   "https://localhost:{port}", "http://localhost:1", "http://LOCALHOST.:{port}",
                   "chrome-extension://x", "http://127.0.0.1:{port}.evil", ""):
        for line in ("GET /api/v1/builds HTTP/1.1", "POST /api/v1/builds HTTP/1.1", "OPTIONS /api/v1/builds HTTP/1.1"):
            yield f"{line.split()[0]} of {origin!r}", request(line=line, fields=f"Origin: {origin}\r\n"), {403}
    for token in ("", "Bearer", "Bearer ", "Bearer x", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Bearer{TOKEN}",
                  f"Basic {TOKEN}", f"Bearer \"{TOKEN}\"", f"bearer\t{TOKEN}",
                  f"Bearer {TOKEN.upper()}", "Digest username=x", "Negotiate x"):
        yield f"Authorization: {token[:14]!r}", request(fields=f"Authorization: {token}\r\n", token=False), {401}
    for target in ("/api/v1/builds", "/metrics", "/nothing", "/openapi.json", f"/api/v1/builds?token={TOKEN}",
                   f"/api/v1/builds?access_token={TOKEN}"):
        yield f"{target[:20]} without a token", request(line=f"GET {target} HTTP/1.1",
                                                        fields=f"Cookie: token={TOKEN}\r\n", token=False), {401}


def say(address, data, seconds=LONG):
    """The raw answer to these bytes, up to the end."""
    s = socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX)
    s.settimeout(seconds)
    s.connect(address)
    out = b""
    try:
        s.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass
    try:
        while piece := s.recv(65536):
            out += piece
            if b"\r\n\r\n" in out and b"\r\nConnection: close\r\n" not in out:
                break
    except ConnectionResetError:
        pass
    s.close()
    return out


def judged(address, port, data, statuses):
    """What is wrong with the answer; "" if nothing."""
    out = say(address, data.replace(b"{host}", f"localhost:{port}".encode()).replace(b"{port}", str(port).encode()))
    if not out:
        return "no answer"
    status, headers, body = parse_response(out)
    if status not in statuses:
        return f"{status} {body[:150]}"
    if status < 400:
        return ""
    if out.count(b"\r\n\r\n") != 1 or headers.get("connection") != "close" or len(body) != int(
            headers["content-length"]):
        return f"not one closed answer: {out[:300]}"
    wrong = ([k for k, v in GUARD.items() if headers.get(k) != v]
             + [k for k in headers if k.startswith("access-control") or k in ("server", "x-powered-by", "set-cookie")])
    if wrong or "date" not in headers:
        return f"headers {wrong}"
    problem = json.loads(body.decode())
    if headers["content-type"] != "application/problem+json" or problem["status"] != status or len(
            problem["detail"]) < 10 or not problem["code"]:
        return f"no problem document: {body[:200]}"
    return "control characters" if any(c < " " or c == "\x7f" for c in problem["detail"]) else ""


def state(d):
    with open(f"/proc/{d.process.pid}/statm") as f:
        rss = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    return len(os.listdir(f"/proc/{d.process.pid}/fd")), rss, len(d.logged().splitlines())


def tables(tap, d, port):
    count, writes = 0, d.token("writes", "--write")
    for listener, address in (("Unix socket", d.http), ("TCP", ("127.0.0.1", port))):
        bad, n = [], 0
        for name, data, statuses in (*forms(), *((n, b.replace(TOKEN.encode(), writes.encode()), s)
                                                 for n, b, s in bodies())):
            if listener == "Unix socket":  # where the token of the other listener is that of no reader
                data = data.replace(f"Authorization: Bearer {TOKEN}\r\n".encode(), b"")
            fault = judged(address, port, data, statuses | ({421} if listener == "TCP"
                    and name.startswith("Host: 'localhost:'") else set()))
            n += 1
            if fault:
                bad.append(f"{name}: {fault}")
        tap.point(not bad, f"{listener}: {n} malformed requests, each refused with its status, in words, guarded and "
                           f"closed", "\n".join(bad[:12]))
        count += n
    bad, n = [], 0
    for name, data, statuses in forgeries():
        fault = judged(("127.0.0.1", port), port, data, statuses)
        n += 1
        if fault:
            bad.append(f"{name}: {fault}")
    tap.point(not bad, f"TCP: {n} forged hosts, origins and tokens", "\n".join(bad[:12]))
    tap.point(count + n >= 150, f"{count + n} requests in all", count + n)


def guarded(tap, d, port):
    """The headers of every good answer, and of errors from the handlers (W3)."""
    client, bad = Client(port), []
    for target, kind in (("/", 200), ("/style.css", 200), ("/app.js", 200), ("/api/v1/builds", 200),
                         ("/api/v1/labels", 200), ("/openapi.json", 200), ("/healthz", 200),
                         ("/readyz", 200), ("/metrics", 200), ("/api/v1/status", 200), ("/api/v1/functions", 200),
                         ("/nothing", 404), ("/api/v1/nothing", 404),
                         ("/api/v1/builds?x=1", 400), ("/api/v1/builds/ffffff", 404), ("/api/v1/builds/ab", 422),
                         ("/api/v1/builds/" + "ee" * 20 + "/report", 200)):
        for method in ("GET", "HEAD"):
            status, headers, _ = client.ask(target, method=method)
            wrong = [k for k, v in GUARD.items() if headers.get(k) != v
                     and k not in ("cache-control", "content-security-policy")]
            policy = headers.get("content-security-policy", "")
            page = target in ("/", "/style.css", "/app.js")
            policed = ("default-src 'none'" in policy and "frame-ancestors 'none'" in policy
                       and ("sandbox" in policy) != page)
            if (status != kind or wrong or not policed or "cache-control" not in headers
                    or any(k.startswith("access-control") or k in ("server", "set-cookie") for k in headers)):
                bad.append((method, target, status, wrong, headers))
    client.close()
    tap.point(not bad, "34 answers to good and bad questions carry every guarding header", bad[:3])


NAMES = ("</script><img src=x onerror=alert(1)>", "\x1b]0;owned\x07\x1b[2J", "\u202egnp.exe", "a\r\nX-Evil: 1",
         "\u2028\u2029", "'\"><svg/onload=1>", "%s%n%p", "../../../etc/passwd", "\x7f\x80\x9b31m")


def names(tap, d, port):
    """Names and labels that are programs for somebody, given by uploads: valid JSON in which nothing of them is raw
    (W4, W5)."""
    with Wire(d.socket) as w:
        for n, name in enumerate(NAMES):
            build = f"{n:02x}" + "ee" * 19 if n else "ee" * 20
            w.send("UPLOAD", upload(sender_number(), 1, build_id=build, name=name, labels=(("service", name),)), n + 1)
            while (answer := w.take())[0] == "WANT_OBJECT":
                pass
            if answer[0] != "ACK":
                tap.point(False, f"an upload named {name!r}", answer)
        w.send("UPLOAD", upload(sender_number(), 1, build_id="ef" * 20,
                                name=b"\xff\xfe\xed\xa0\x80".decode("latin-1").encode("latin-1")), 99)
        answer = w.take()
        tap.point(answer[0] == "NACK", "a name that is no UTF-8 is refused", answer)
    client, bad, seen = Client(port), [], set()
    targets = ["/api/v1/builds", "/api/v1/labels", "/api/v1/labels/service/values", "/api/v1/functions"]
    for n, name in enumerate(NAMES):
        build = f"{n:02x}" + "ee" * 19 if n else "ee" * 20
        targets += [f"/api/v1/builds/{build}", f"/api/v1/builds/{build}/report",
                    f"/api/v1/builds/{build}/groups?by=service",
                    "/api/v1/labels/" + urllib.parse.quote("x" + name.replace("/", ""), safe="") + "/values",
                    f"/api/v1/builds?{urllib.parse.quote(name, safe='')}=1",
                    f"/api/v1/builds/{build}/report?focus={urllib.parse.quote(name, safe='')}",
                    f"/api/v1/builds/{build}/report?format={urllib.parse.quote(name, safe='')}"]
    for target in targets:
        status, headers, body = client.ask(target)
        raw = ([c for c in body if (c < 32 and c != 10) or c == 127]
               or [w for w in (b"<", b">", b"\xe2\x80\xa8", b"\xc2\x9b") if w in body])
        try:
            value = json.loads(body.decode("utf-8", errors="strict"))
        except ValueError as error:
            value = {"error": str(error)}
        if status not in (200, 400, 404) or "error" in value or not headers["content-type"].startswith(
                ("application/json", "application/problem+json")) or \
                "x-evil" in headers or any(ord(c) < 32 or ord(c) > 126 for v in headers.values() for c in v) or [c
                        for c in raw if c != 127]:
            bad.append((target, status, raw[:5], body[:200]))
        if target == "/api/v1/labels/service/values" and status == 200:
            seen = {row["value"] for row in value["rows"]}
    client.close()
    tap.point(not bad, f"{len(targets)} answers about hostile names: valid JSON, no control character, no markup, "
                       f"clean headers", "\n".join(map(str, bad[:5])))
    tap.point(set(NAMES) <= seen, "and the names themselves are all there, unharmed", seen)


def peers(tap, d):
    """U1: client addresses of every length, names in the file system, and none."""
    bad = []
    for n in list(range(1, 108)) + [0, -1]:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(LONG)
        path = os.path.join(d.folder, "client")
        s.bind("\0" + "x" * (n - 1) if n > 0 else "" if n == 0 else path)
        s.connect(d.http)
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        out = b""
        while piece := s.recv(4096):
            out += piece
        s.close()
        if not out.startswith(b"HTTP/1.1 200"):
            bad.append((n, out[:100]))
    tap.point(not bad, "clients bound to addresses of 1 to 107 bytes, automatic and in a folder", bad[:3])


def drips(tap, d, port):
    """U4 and 6.1: a byte now and then is cut off at the deadline of the whole, on both listeners; half requests by the
    hundred are (U5)."""
    held = []
    for n in range(120):
        address = d.http if n % 2 else ("127.0.0.1", port)
        s = socket.socket(socket.AF_UNIX if n % 2 else socket.AF_INET)
        s.connect(address)
        s.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        s.setblocking(False)
        held.append(s)
    open_ones, cut, deadline = list(held), [], time.monotonic() + LONG
    while open_ones and time.monotonic() < deadline:
        for s in list(open_ones):
            try:
                s.send(b"y")
                cut.append(s.recv(4096))
                open_ones.remove(s)
            except BlockingIOError:
                pass
            except OSError:
                open_ones.remove(s)
                cut.append(b"HTTP/1.1 408 reset")
        time.sleep(0.1)
    tap.point(not open_ones and all(c.startswith(b"HTTP/1.1 408") for c in cut),
              "120 dripping requests: each is cut off with 408 while it drips", (len(open_ones), cut[:2]))
    for s in held:
        s.close()


def floods(tap, d, port):
    """U3 and 6.1: pipelined megabytes, endless chunks, and a reader who takes nothing."""
    before = state(d)
    rows = []
    for name, begin, piece in (("pipelined requests", b"", b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 2000),
                               ("a header without end", b"GET / HTTP/1.1\r\n", b"X: y\r\n" * 20000),
                               ("chunks without end", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                                                      b"\r\n", b"ffff\r\n" + b"x" * 65535 + b"\r\n")):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(5)
        s.connect(d.http)
        sent = 0
        try:
            s.sendall(begin)
            for _ in range(400):
                s.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        rows.append((name, sent))
        s.close()
    idle = []
    for _ in range(60):  # large answers, and nobody takes them
        s = socket.socket(socket.AF_UNIX)
        s.connect(d.http)
        s.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n")
        idle.append(s)
    time.sleep(0.5)
    during = state(d)
    for s in idle:
        s.close()
    tap.point(all(sent < (20 if "chunks" in name else 8) * MB for name, sent in rows)
              and during[1] - before[1] < 64 * MB,
              f"floods end early: {rows}, {(during[1] - before[1]) >> 20} MB more", (before, during))


def crowd(tap, d, port, large):
    """U5: more connections than the limit: refused in words, and service returns."""
    told, late = crowded_out(port, large), half_a_request(port)
    tap.point(told and told[0] == 503 and b"connections" in told[2] and told[1].get("retry-after") and b" 408 " in late,
              "one connection more than the limit: 503 and when to come again; half a request: 408", (told, late[:100]))

    def served():
        try:
            return Client(port).ask("/healthz")[0] == 200
        except (EOFError, OSError):
            return False
    tap.point(until(served), "and service returns", d.logged()[-500:])


def busy(tap, port, large):
    """Connections that always ask, as many as there are places: a newcomer is served, one of them is closed."""
    held = [Client(port) for _ in range(256)]
    for c in held:
        c.connect([(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096), (socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)])
        c.ask("/healthz")
        c.socket.sendall(c.request(large))
        c.socket.recv(12)
    answers = [Client(port).ask("/healthz")[0] for _ in range(20)]
    for c in held:
        c.close()
    tap.point(answers == [200] * 20, "256 connections that are always busy: 20 others are served", answers)


def made_up(tap):
    """Credentials are judged where none are needed, too."""
    port = free_port()
    with Daemon("--http", f"127.0.0.1:{port}", "--http-open") as d:
        answers = [Client(port).ask("/api/v1/builds", token=token, **more) for token, more in
                   (("", {}), (TOKEN, {}), ("", {"Authorization": "Basic YTpi"}))]
        tap.point([a[0] for a in answers] == [200, 401, 401] and b"token" in answers[1][2]
                  and "www-authenticate" in answers[1][1],
                  "--http-open: without a token 200, with a token of nobody 401", (answers, d.logged()[-200:]))


def half_requests(tap, port):
    """Half requests by the thousand, opened again as they close: a client with the token is served all the same."""
    answers = collections.Counter()
    with HalfRequests(port, 1500) as held:
        while held.opened < 3000:
            time.sleep(0.01)
        for _ in range(100):
            client = Client(port)
            try:
                answers[client.ask("/healthz")[0]] += 1
            except (OSError, EOFError) as e:
                answers[type(e).__name__] += 1
            client.close()
    tap.point(answers == {200: 100}, f"1,500 half requests, opened again as they close ({held.opened} times): 100 "
                                     f"requests with the token are answered", answers)


def main():
    with Tap() as tap, Daemon(start=False) as d:
        made_up(tap)
        port = free_port()
        d.options = ("--http", f"127.0.0.1:{port}")
        start_with_token(d)
        pid = d.process.pid
        names(tap, d, port)
        guarded(tap, d, port)
        large = store_large_list(d.socket)
        before = state(d)
        builds = d.ctl("builds", "--json").stdout
        for part in (lambda: tables(tap, d, port), lambda: peers(tap, d), lambda: drips(tap, d, port),
                     lambda: floods(tap, d, port), lambda: crowd(tap, d, port, large),
                     lambda: busy(tap, port, large),
                     lambda: half_requests(tap, port)):
            part()
        slack = 400 * MB if "asan" in os.environ.get("PROFD_BUILD", "") else 32 * MB
        until(lambda: (now := state(d))[0] <= before[0] and now[1] - before[1] < slack)
        after = state(d)
        tap.point(after[0] <= before[0] and after[1] - before[1] < slack and after[2] - before[2] < 60,
                  f"descriptors {before[0]} → {after[0]}, memory {before[1] >> 20} → {after[1] >> 20} MB, "
                  f"{after[2] - before[2]} lines of log", (before, after))
        tap.point(not any(c < " " and c != "\n" for c in d.logged()), "no control character in the log",
                  d.logged()[-300:])
        tap.point(d.ctl("builds", "--json").stdout == builds, "nothing that is stored has changed")
        tap.point(d.process.poll() is None and d.process.pid == pid and d.stop() == 0,
                  "one process, and it ends with 0", d.logged()[-500:])


if __name__ == "__main__":
    main()
