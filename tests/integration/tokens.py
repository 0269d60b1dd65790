"""Tokens of the HTTP API: every path, asked with every kind of credentials. What another tenant has is in no byte of an
answer."""
import base64
import hashlib
import json
import os
import re
import shutil
import socket
import sqlite3
import time

import harness
from harness import PROFCTL, Daemon, Tap, as_user, free_port, programs, run, until
from http_client import Client
from uploads import batch

PROXY, OTHER, FIRST, SECOND = 60131, 60132, 60133, 60134  # users; the last two become tenants
MOVED = {FIRST: 4294967293, SECOND: 4294967292}  # tenants 2 and 3
WRONG = "profd_" + "0" * 64
TABLES = ("build_set_user", "series", "sender", "build_user", "user_epoch", "object_sender", "user_bytes")


def upload(d, uid, exe, arguments, service):
    gmon = harness.profile(d.folder, exe, arguments, uid)
    run("chmod", "-R", "a+rX", exe, os.path.dirname(gmon), os.path.join(d.folder, "profctl"))
    done = run("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", os.path.join(d.folder, "profctl"),
               "upload", "-l", f"service={service}", "-e", exe, gmon, cwd=d.folder,
               env=dict(d.env, XDG_STATE_HOME="/nonexistent", HOME="/nonexistent", PROFD_SPOOL="/nonexistent/spool"))
    assert done.returncode == 0, done.stderr


def move(d, unnamed):
    """What two users of this machine have sent becomes that of two tenants, as if hosts had sent it."""
    d.stop()
    with sqlite3.connect(os.path.join(d.state, "profd.db")) as db:
        for table in TABLES:
            for uid, tenant in MOVED.items():
                db.execute(f"UPDATE {table} SET uid=? WHERE uid=?", (tenant, uid))
        db.execute("UPDATE object_sender SET operator=1 WHERE uid>=4294901760")  # as if operators had sent them
        for table in ("object_sender WHERE object IN (SELECT id FROM object", "object"):
            db.execute(f"DELETE FROM {table} WHERE build=(SELECT id FROM build WHERE build_id=?)"
                       + ")" * ("(" in table), (unnamed,))
    db.close()
    d.start()
    os.chmod(d.http, 0o666)


def paths(d, build, address):
    """Every path of the interface, with what it needs: a new one is asked for without a change here."""
    known = {"{id}": build, "{address}": address, "{name}": "service"}
    api = json.loads(d.get("/openapi.json")[2])
    for path, methods in api["paths"].items():
        if "get" not in methods:
            continue
        parameters = [api["components"]["parameters"][p["$ref"].rpartition("/")[2]] if "$ref" in p else p
                      for p in methods["get"].get("parameters", [])]
        cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds%7B%7D"
        query = [f"{name}={value}" for name, value in (("by", "service"), ("name", "main"), ("a", build), ("b", build),
                                                       ("query", cpu), ("leftQuery", cpu), ("rightQuery", cpu),
                                                       ("label", "service"))
                 if any(p["name"] == name and p["in"] == "query" for p in parameters)]
        for name, value in known.items():
            path = path.replace(name, value)
        assert "{" not in path, f"the test does not know the parameter of {path}"
        yield "?".join([path, "&".join(query)] if query else [path])


def own(path):
    """The status for a token of the tenant that has the build: totals are of all tenants together."""
    return 403 if path in ("/metrics", "/api/v1/status") else 200


def foreign(path):
    """The status for a token of another tenant: the build does not exist for it."""
    return 404 if "/builds/" in path or "/diff?" in path else own(path)


class Side:
    """What one tenant has, and what of it may be in no answer to others."""

    def __init__(self, d, exe, service):
        row = next(r for r in d.json("builds", "--json")["rows"] if r["name"].endswith(os.path.basename(exe)))
        self.build = row["build_id"]
        functions = json.loads(d.get(f"/api/v1/builds/{self.build}/functions?name=main")[2])["rows"]
        self.address = functions[0]["address"]
        self.secrets = [service.encode(), os.path.basename(exe).encode()]


def judge(tap, name, d, mine, theirs, ask, expected):
    """ask(target) gives (status, headers, body) for these credentials. theirs is what they may not see."""
    wrong = []
    for path in paths(d, mine.build, mine.address):
        status, headers, body = ask(path)
        text = repr(headers).encode() + body
        for side in theirs:
            seen = [s for s in [*side.secrets, side.build.encode()] if s in text and s not in path.encode()]
            if path != "/openapi.json" and seen:
                wrong.append((path, "shows", seen))
        if status != expected(path):
            wrong.append((path, status, body[:200]))
        if status >= 400 and b'"detail"' not in body:
            wrong.append((path, "no sentence", body[:200]))
    tap.point(not wrong, name, wrong)


def password(token, user="any"):
    return "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()


def by_user(d, uid, **headers):
    """Asks on the Unix socket as this user."""
    def ask(target):
        status, fields, body = as_user(uid, lambda: [x if not isinstance(x, bytes) else x.decode("latin-1")
                                                     for x in d.get(target, **headers)])
        return status, fields, body.encode("latin-1")
    return ask


def table(tap, d, port, tokens, first, second):
    tcp = Client(port)

    def bearer(token):
        return lambda path: tcp.ask(path, token=token)

    def unix(token):
        return lambda path: d.get(path, Authorization=f"Bearer {token}")
    both = [first, second]

    def nothing(status):
        return lambda path: status
    judge(tap, "no credentials: 401", d, first, both, bearer(None), nothing(401))
    judge(tap, "a wrong token: 401", d, first, both, bearer(WRONG), nothing(401))
    judge(tap, "a wrong token on the Unix socket: 401", d, first, both, unix(WRONG), nothing(401))
    judge(tap, "a wrong password: 401", d, first, both,
          lambda path: tcp.ask(path, token=None, Authorization=password(WRONG)), nothing(401))
    judge(tap, "no token in Authorization, on the Unix socket: 401", d, first, both,
          lambda path: d.get(path, Authorization="Digest x"), nothing(401))
    until(lambda: d.get("/healthz", Authorization=f"Bearer {tokens['expired']}")[0] == 401)
    judge(tap, "a token that has ended: 401", d, first, both, bearer(tokens["expired"]), nothing(401))
    judge(tap, "a token with the right write alone: 403", d, first, both, bearer(tokens["write"]), nothing(403))
    for way, ask in (("TCP", bearer), ("the Unix socket", unix)):
        judge(tap, f"a token of another tenant, on {way}", d, first, [first], ask(tokens["second"]), foreign)
        judge(tap, f"a token of the tenant, on {way}", d, first, [second], ask(tokens["first"]), own)
        judge(tap, f"a token of the tenant with the right admin, on {way}", d, first, [second], ask(tokens["admin"]),
              own)
        judge(tap, f"a token of the tenant with the rights read and write, on {way}", d, first, [second],
              ask(tokens["agent"]), own)
        judge(tap, f"a token of everything, on {way}", d, first, [], ask(tokens["all"]), nothing(200))
    judge(tap, "a token as password", d, first, [second],
          lambda path: tcp.ask(path, token=None, Authorization=password(tokens["first"])), own)
    judge(tap, "X-Scope-OrgID changes nothing", d, first, [second],
          lambda path: tcp.ask(path, token=tokens["first"], X_Scope_OrgID="blue"), own)
    judge(tap, "the header from the proxy", d, first, [second], by_user(d, PROXY, X_Remote_User="alice"), own)
    judge(tap, "the header from the proxy names a token of another tenant", d, second, [second],
          by_user(d, PROXY, X_Remote_User="alice"), foreign)
    judge(tap, "the header from the proxy names a token that is not its: 403", d, first, both,
          by_user(d, PROXY, X_Remote_User="first"), nothing(403))
    judge(tap, "the header from another user: 403", d, first, both, by_user(d, OTHER, X_Remote_User="alice"),
          nothing(403))
    judge(tap, "the header from root: 403", d, first, both, lambda path: d.get(path, X_Remote_User="alice"),
          nothing(403))
    judge(tap, "the header over TCP, with a good token: 403", d, first, both,
          lambda path: tcp.ask(path, token=tokens["all"], X_Remote_User="alice"), nothing(403))
    judge(tap, "the proxy names no such token: 403", d, first, both, by_user(d, PROXY, X_Remote_User="mallory"),
          nothing(403))
    judge(tap, "the header beside a token: 403", d, first, both,
          by_user(d, PROXY, X_Remote_User="alice", Authorization=f"Bearer {tokens['all']}"), nothing(403))
    judge(tap, "the proxy names nobody: 401", d, first, both, by_user(d, PROXY), nothing(401))


def opened(tap, d, port, tokens, first, second, content):
    """--http-open: no token is needed to read. Whoever shows one is judged by it."""
    options = d.options
    d.stop()
    d.options = (*options, "--http-open")
    d.start()
    os.chmod(d.http, 0o666)
    tcp = Client(port)
    for name, token, theirs, expected in (
            ("no token reads", None, [], lambda path: 200),
            ("a wrong one: 401", WRONG, [first, second], lambda path: 401),
            ("one of a tenant reads that", tokens["first"], [second], own),
            ("one that may only write: 403", tokens["write"], [first, second], lambda path: 403)):
        judge(tap, f"--http-open: {name}", d, first, theirs, lambda path, t=token: tcp.ask(path, token=t), expected)
    said = put(port, first.build, content)
    tap.point(said[0] == 403 and "right admin" in said[1], "--http-open: nobody sends symbols without a token", said)
    d.stop()
    d.options = options
    d.start()
    os.chmod(d.http, 0o666)


def tags(tap, d, tokens, first):
    """ETags of one tenant are worth nothing to another."""
    for path in ("/api/v1/builds", f"/api/v1/builds/{first.build}/report"):
        mine = d.get(path, Authorization=f"Bearer {tokens['first']}")[1]["etag"]
        same = d.get(path, Authorization=f"Bearer {tokens['first']}", If_None_Match=mine)[0]
        other = d.get(path, Authorization=f"Bearer {tokens['second']}", If_None_Match=mine)[0]
        tap.point(same == 304 and other == foreign(path), f"an ETag of {path} is of its token's tenant",
                  (same, other))


def removal(tap, d, port, tokens, first, content):
    """A token that is removed is refused at once, also on a connection that is kept, or is being answered."""
    targets = list(paths(d, first.build, first.address))
    kept = [Client(port) for _ in targets]
    before = [c.ask(t, token=tokens["agent"])[0] for c, t in zip(kept, targets)]
    held = [c.socket for c in kept]
    slow = put(port, first.build, b"", tokens["admin"], length=len(content), finish=False)
    until(lambda: put(port, first.build, content, tokens["admin"])[0] == 503)
    rows = d.json("token", "list", "--json")["rows"]
    done = [d.ctl("token", "remove", name) for name in ("agent", "admin")]
    after = {c.ask(t, token=tokens["agent"])[0] for c, t in zip(kept, targets)}
    tap.point(before == [own(t) for t in targets] and all(held) and after == {401}
              and [x.returncode for x in done] == [0, 0], "a removed token is refused on its connections, by every "
              "path", (before, done, after))
    said = answer(slow)
    tap.point(said[0] == 401 and "removed" in said[1], "a file that was being sent with it is refused", said)
    tap.point({"agent", "alice"} <= {r["name"] for r in rows} and not any(t in str(rows) for t in tokens.values() if t),
              "the list shows no token", rows)
    again = d.ctl("token", "remove", "agent")
    tap.point(again.returncode == 66 and 'no token "agent"' in again.stderr, "there is nothing to remove twice", again)
    d.stop()
    with open(os.path.join(d.state, "profd.db"), "rb") as f:
        stored = f.read()
    tap.point(not any(t.encode() in stored for t in tokens.values() if t), "no token is in the database")
    d.start()
    said = [d.get("/api/v1/builds", Authorization=f"Bearer {tokens[t]}")[0] for t in ("first", "agent")]
    tap.point(said == [200, 401], "tokens and their ends outlive a restart", said)


def put(where, build, body, token=None, head="", length=None, finish=True, query=""):
    """(status, sentence) of a PUT of symbols; finish False: the socket, with the body not yet sent."""
    s = socket.socket(socket.AF_INET if isinstance(where, int) else socket.AF_UNIX)
    s.settimeout(harness.LONG)
    s.connect(("127.0.0.1", where) if isinstance(where, int) else where)
    host = f"127.0.0.1:{where}" if isinstance(where, int) else "localhost"
    size = f"Content-Length: {len(body) if length is None else length}\r\n" if length != "" else ""
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    target = f"/api/v1/builds/{build}/symbols{query}"
    s.sendall(f"PUT {target} HTTP/1.1\r\nHost: {host}\r\n{bearer}{size}{head}\r\n".encode())
    return answer(s, body) if finish else s


def answer(s, body=b""):
    try:
        s.sendall(body)
    except (BrokenPipeError, ConnectionResetError):
        pass
    data = b""
    while piece := s.recv(65536):
        data += piece
    s.close()
    status, _, body = harness.parse_response(data)
    return status, json.loads(body).get("detail", "")


def symbols(tap, d, port, tokens, build, exe):
    """What an operator of a tenant sends names functions of that tenant."""
    with open(exe, "rb") as f:
        content = f.read()

    def names(name):
        status, _, body = d.get(f"/api/v1/builds/{build}/functions?name=main", Authorization=f"Bearer {tokens[name]}")
        return [r["name"] for r in json.loads(body)["rows"]] if status == 200 else status
    etag = d.get(f"/api/v1/builds/{build}/report", Authorization=f"Bearer {tokens['first']}")[1]["etag"]
    tap.point(names("first") == [] and names("second") == 404, "a build without symbols", names("first"))
    said = put(d.http, build, content, tokens["blue-admin"])
    tap.point(said[0] == 200 and names("first") == [] and names("second") == 404,
              "an operator of another tenant names nothing of this one", said)
    said = put(port, build, content, tokens["admin"])
    tap.point(said[0] == 200 and names("first") == ["main"] and names("second") == 404,
              "an operator of the tenant names its functions", (said, names("first")))
    again = d.get(f"/api/v1/builds/{build}/report", Authorization=f"Bearer {tokens['first']}", If_None_Match=etag)[0]
    tap.point(again == 200, "the report is a new one", again)
    said = put(port, build, content, head=f"Authorization: {password(tokens['admin'])}\r\n")
    tap.point(said[0] == 200, "with the token as password, too", said)
    said = [put(port, build, content, tokens["admin"], query=q) for q in ("?code=maybe", "?cod=1", "?code=1")]
    addresses = d.get(f"/api/v1/builds/{build}/functions/main/addresses", Authorization=f"Bearer {tokens['first']}")
    tap.point([status for status, _ in said] == [400, 400, 200] and "code=maybe" in said[0][1]
              and json.loads(addresses[2])["instructions"], "code=1 stores the instructions, too", (said, addresses))
    done = as_user(PROXY, lambda: [put(d.http, build, b"x", None, "X-Remote-User: alice\r\n")])
    tap.point(done[0][0] == 403 and "right admin" in done[0][1], "a token that a proxy names needs it, too", done)


def symbols_refused(tap, d, port, tokens, build, exes):
    with open(exes[0], "rb") as f:
        other = f.read()
    stripped = os.path.join(d.folder, "stripped")
    run("strip", "-o", stripped, exes[2])
    run("objcopy", "--remove-section=.dynsym", stripped)
    with open(exes[2], "rb") as f:
        content = f.read()
    before = len(os.listdir(f"/proc/{d.process.pid}/fd"))
    for name, asked, status, words in (
            ("without a token, on the Unix socket", lambda: put(d.http, build, content), 403, "right admin"),
            ("without a token, on TCP", lambda: put(port, build, content), 401, "has no token"),
            ("with a wrong token", lambda: put(port, build, content, WRONG), 401, "is unknown"),
            ("with a token that has ended", lambda: put(port, build, content, tokens["expired"]), 401, "ended at"),
            ("with a token for everything", lambda: put(port, build, content, tokens["all"]), 403, "token all "),
            ("with a token that reads", lambda: put(port, build, content, tokens["first"]), 403, "token first "),
            ("with a token that writes", lambda: put(port, build, content, tokens["write"]), 403, "token write "),
            ("of another build", lambda: put(port, build, other, tokens["admin"]), 422, "is build"),
            ("of no ELF file", lambda: put(port, build, b"#!/bin/sh\n" * 100, tokens["admin"]), 422, "ELF"),
            ("that is cut", lambda: put(port, build, content[:3000], tokens["admin"]), 422, ""),
            ("without a length", lambda: put(port, build, b"", tokens["admin"], length=""), 411, "Content-Length"),
            ("of no bytes", lambda: put(port, build, b"", tokens["admin"]), 400, "body"),
            ("too large", lambda: put(port, build, b"", tokens["admin"], length=1 << 30), 413, "at most"),
            ("in chunks", lambda: put(port, build, b"0\r\n\r\n", tokens["admin"], "Transfer-Encoding: chunked\r\n",
                                      length=""), 411, "Content-Length"),
            ("that is coded", lambda: put(port, build, content, tokens["admin"], "Content-Encoding: gzip\r\n"), 415,
             "not coded"),
            ("with an id that is none", lambda: put(port, "%2e%2e", content, tokens["admin"]), 400, ""),
            ("for another path", lambda: put(port, build + "/x", content, tokens["admin"]), 405, "GET, HEAD")):
        said = asked()
        tap.point(said[0] == status and words in said[1], f"symbols {name}: {status}", said)
    first = put(port, build, b"", tokens["admin"], length=len(content), finish=False)
    until(lambda: put(port, build, content, tokens["admin"])[0] == 503)
    said = put(port, build, content, tokens["blue-admin"])
    tap.point(said[0] == 200, "while one token's holder sends slowly, another may send", said)
    second = put(port, build, b"", tokens["blue-admin"], length=len(content), finish=False)
    until(lambda: put(port, build, content, tokens["blue-admin"])[0] == 503)
    said = put(port, build, content, tokens["red-admin"])
    tap.point(said[0] == 200, "while two send slowly, a third one may send", said)
    second.close()
    first.sendall(content[:1000])
    said = answer(first, content[1000:])
    tap.point(said[0] == 200, "a slow one ends well, an abandoned one frees its place", said)
    until(lambda: put(port, build, content, tokens["blue-admin"])[0] == 200)
    until(lambda: len(os.listdir(f"/proc/{d.process.pid}/fd")) <= before)
    tap.point(True, "no descriptor is left")


def bodies(tap, d, port, tokens, build, content):
    """What takes a body, by its method and type, with every kind of credentials; and what other methods get. 400: the
    credentials are good, and the body is not."""
    uploads, symbols = "/api/v1/uploads", f"/api/v1/builds/{build}/symbols"
    ways = (("POST", uploads, "application/x-protobuf", batch(b"no name")),
            ("PUT", symbols, "application/octet-stream", content),
            ("PUT", symbols, "application/vnd.profd.symbols", content))
    removed = d.token("removed", "--read", "--write", "--admin", "--tenant", "red")
    d.ctl("token", "remove", "removed")
    client, wrong = Client(port), []

    def ask(token, method, path, kind, body, **fields):
        client.socket = None  # a refusal ends the connection
        head = client.request(path, method, token=token, Content_Type=kind, Content_Length=len(body), **fields)
        return client.ask(path, method, raw=head + body)
    for name, token, statuses in (
            ("no token", None, (401, 401, 401)), ("a wrong one", WRONG, (401, 401, 401)),
            ("one that was removed", removed, (401, 401, 401)),
            ("one that has ended and could read and write", tokens["expired-agent"], (401, 401, 401)),
            ("one that has ended and could administer", tokens["expired"], (401, 401, 401)),
            ("read", tokens["first"], (403, 403, 403)), ("everything", tokens["all"], (403, 403, 403)),
            ("write", tokens["write"], (400, 403, 400)), ("read and write", tokens["agent"], (400, 403, 400)),
            ("admin", tokens["admin"], (403, 200, 403)), ("admin of another tenant", tokens["blue-admin"],
                                                           (403, 200, 403))):
        for way, wanted in zip(ways, statuses):
            for path in (way[1], f"{way[1]}?host=x") if wanted == 401 else (way[1],):
                said = ask(token, way[0], path, *way[2:])
                if said[0] != wanted or wanted != 200 and len(json.loads(said[2])["detail"]) < 20:
                    wrong.append((name, way[:3], wanted, said))
        said = ask(token, "POST", uploads, ways[0][2], batch(), X_Remote_User="alice")
        if said[0] != 403:
            wrong.append((name, "X-Remote-User", said))
    tap.point(not wrong, "paths that take a body judge each kind of credentials", wrong)
    wrong = []
    for path, allowed in ((uploads, ["POST"]), (symbols, ["PUT"]), ("/api/v1/builds", ["GET", "HEAD"]),
                          (f"{uploads}/", ["GET", "HEAD"]), (f"{symbols}/x", ["GET", "HEAD"]), ("/", ["GET", "HEAD"])):
        for method in {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "QUERY", "get"} - set(allowed):
            said = ask(tokens["write"], method, path, ways[0][2], b"")
            if said[0] != 405 or said[1].get("allow") != ", ".join(allowed):
                wrong.append((method, path, said))
    tap.point(not wrong, "another method gets 405, with the methods that the path has", wrong)


def hostile(tap, d, port, tokens):
    """Credentials in the forms that trick other servers."""
    good = tokens["first"]

    def raw(fields, where=port):
        s = socket.socket(socket.AF_INET)
        s.settimeout(harness.LONG)
        s.connect(("127.0.0.1", where))
        s.sendall(f"GET /api/v1/builds HTTP/1.1\r\nHost: 127.0.0.1:{where}\r\n".encode() + fields
                  + b"Connection: close\r\n\r\n")
        return answer(s)
    wrong = []
    for name, fields, status in (
            ("twice", f"Authorization: Bearer {good}\r\nAuthorization: Bearer {good}\r\n".encode(), 400),
            ("folded", f"Authorization: Bearer\r\n {good}\r\n".encode(), 400),
            ("a comma", f"Authorization: Bearer x, Bearer {good}\r\n".encode(), 401),
            ("NUL", f"Authorization: Bearer {good}\0\r\n".encode(), 400),
            ("odd bytes", b"Authorization: Bearer \xff\xfe\x80\r\n", 401),
            ("upper case", f"Authorization: Bearer {good.upper()}\r\n".encode(), 401),
            ("a byte more", f"Authorization: Bearer {good}x\r\n".encode(), 401),
            ("a byte less", f"Authorization: Bearer {good[:-1]}\r\n".encode(), 401),
            ("its hash", b"Authorization: Bearer " + hashlib.sha256(good.encode()).hexdigest().encode() + b"\r\n", 401),
            ("8,000 bytes", b"Authorization: Bearer " + b"a" * 8000 + b"\r\n", 401),
            ("the name", b"Authorization: Bearer first\r\n", 401),
            ("X-Remote-User twice", b"X-Remote-User: a\r\nX-Remote-User: b\r\n", 400),
            ("X-Remote-User, empty", f"X-Remote-User: \r\nAuthorization: Bearer {good}\r\n".encode(), 403),
            ("X-Remote-User with control characters", b"X-Remote-User: a\x1b[2Jb\r\n", 400),
            ("X_Remote_User", f"X_Remote_User: alice\r\nAuthorization: Bearer {good}\r\n".encode(), 200)):
        said = raw(fields)
        if said[0] != status or any(c < " " or c == "\x7f" for c in said[1]):
            wrong.append((name, said))
    tap.point(not wrong, "credentials in odd forms", wrong)
    client, seen, logged, began = Client(port), set(), len(d.logged()), time.monotonic()
    for i in range(10000):
        seen.add(client.ask("/api/v1/builds", token=f"profd_{i:064x}")[0])
    tap.point(seen == {401} and d.get("/api/v1/builds", Authorization=f"Bearer {good}")[0] == 200,
              "10,000 wrong tokens", seen)
    lines = [line for line in d.logged()[logged:].splitlines() if "refused an HTTP request" in line]
    tap.point(len(lines) <= 1 + (time.monotonic() - began) // 60, "they write at most a line a minute", lines)


def refusals(tap, d):
    for arguments, status, words in (
            (("add", "x"), 64, "--read"), (("add", "--read"), 64, "one name"),
            (("add", "x y", "--read"), 64, "letters"),
            (("add", "x" * 65, "--read"), 64, "1 to 64"), (("add", "x", "--write", "-t", "all"), 64, "one tenant"),
            (("add", "x", "--read", "-t", ""), 64, "tenant"), (("add", "x", "--read", "-t", "a,b"), 64, "tenant"),
            (("add", "x", "--read", "--hosts", "n-*"), 64, "right write"),
            (("add", "x", "--write", "--hosts", "n-[1]"), 64, '"._@-*?"'),
            (("add", "x", "--read", "--expires", "soon"), 64, "30m"),
            (("add", "x", "--read", "--expires", "2020-01-01"), 64, "in the past"),
            (("add", "x", "--read", "--expires", "2027-13-01"), 64, "not a time"),
            (("add", "first", "--read"), 65, "there is a"), (("forget", "x"), 64, "add, list or remove")):
        done = d.ctl("token", *arguments)
        tap.point(done.returncode == status and words in done.stderr, f"token {' '.join(arguments)} is refused", done)
    done = run("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups",
               os.path.join(d.folder, "profctl"), "token", "list", env=d.env, cwd=d.folder)
    tap.point(done.returncode == 77 and 'may not use the command "token-list"' in done.stderr,
              "only administrators see the list", done)


def shown(tap, d):
    """What add and list say."""
    done = d.ctl("token", "add", "node", "--write", "--hosts", "node-*", "--expires", "2100-01-31")
    tap.point(re.fullmatch(r"profd_[0-9a-f]{64}\n", done.stdout) and "write; tenant default" in done.stderr,
              "a token is printed alone; a sentence beside it says what it may do", done)
    added = d.json("token", "add", "ci", "--admin", "--tenant", "red", "--json")
    tap.point(added["rights"] == ["read", "admin"] and added["tenant"] == "red" and added["token"].startswith("profd_")
              and added["expires"] is None, "as JSON, too; the right admin includes read", added)
    rows = {r["name"]: r for r in d.json("token", "list", "--json")["rows"]}
    tap.point(rows["node"]["rights"] == ["write"] and rows["node"]["hosts"] == "node-*"
              and rows["node"]["tenant"] == "default" and rows["node"]["expires"].startswith("2100-01-31T00:00:00")
              and rows["all"]["tenant"] == "all" and rows["alice"]["proxy"] and not rows["ci"]["proxy"],
              "the list has rights, tenant, hosts and end", rows)
    text = d.ctl("token", "list").stdout
    tap.point(re.search(r"^node +write +default +token 2100-01-31T\S+ +node-\*$", text, re.M)
              and re.search(r"^alice +read +red +proxy never *$", text, re.M), "and so has the table", text)


def given(tap, d):
    """token add --from: the token of a file."""
    def add(text, *more):
        with open(file, "w", encoding="ascii") as f:
            f.write(text)
        return d.ctl("token", "add", "given", "--from", file, *more)
    file, token = os.path.join(d.folder, "given.token"), f"profd_{os.urandom(32).hex()}"
    first, again = [add(token + "\n", "--read", "--tenant", "red") for _ in range(2)]
    rows = [r for r in d.json("token", "list", "--json")["rows"] if r["name"] == "given"]
    tap.point(first.returncode == again.returncode == 0 and first.stdout == "added token given\n" and len(rows) == 1
              and again.stdout == "token given is there already\n",
              "a token of a file is added, and not printed; adding it again changes nothing", (first, again, rows))
    seen = d.get("/api/v1/builds", Authorization=f"Bearer {token}")[0]
    d.stop()
    d.start()
    restarted = d.get("/api/v1/builds", Authorization=f"Bearer {token}")[0]
    tap.point((seen, restarted) == (200, 200), "it opens the HTTP API, after a restart, too", (seen, restarted))
    other = [add(token, "--admin", "--tenant", "red"),
             add(token, "--read", "--tenant", "red", "--expires", "90d"),
             add(f"profd_{os.urandom(32).hex()}", "--read", "--tenant", "red")]
    tap.point(all(o.returncode != 0 and "remove it first" in o.stderr for o in other),
              "other rights or another token of the name are refused", other)
    bad = [add(text, "--read") for text in ("", "secret", token[:-1], token + "0", token.replace("profd_", "PROFD_"))]
    tap.point([b.returncode for b in bad] == [64] * 5 and not any(token in b.stderr for b in bad),
              "what is not a token of 256 bits is refused", bad)
    os.unlink(file)
    gone = d.ctl("token", "add", "given", "--from", file, "--read")
    tap.point(gone.returncode == 64 and "No such file" in gone.stderr, "a file that is missing is named", gone)
    tap.point(d.ctl("token", "remove", "given").returncode == 0
              and d.get("/api/v1/builds", Authorization=f"Bearer {token}")[0] == 401, "it is removed as others are")


def reserved(tap, d):
    """A user of this machine with a number of a tenant is refused on both sockets."""
    done = run("setpriv", "--reuid=4294967294", "--regid=60999", "--clear-groups",
               os.path.join(d.folder, "profctl"), "builds", env=d.env, cwd=d.folder)
    tap.point(done.returncode == 77 and "belong to the tenants" in done.stderr, "a tenant's number has no user here",
              done)

    def connect():
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(d.http)
            return s.makefile("rb").read().decode()
    said = as_user(4294967294, connect)
    tap.point(said.startswith("HTTP/1.1 403 ") and "belong to the tenants" in said, "nor on the HTTP socket", said)


def main():
    with Tap() as tap:
        if os.getuid() != 0 or not shutil.which("setpriv"):
            tap.skip("tokens", "needs root and setpriv")
            return
        port = free_port()
        with Daemon(start=False) as d:
            d.options = ("--http", f"127.0.0.1:{port}", "--proxy-user", str(PROXY))
            d.start()
            shutil.copy(PROFCTL, os.path.join(d.folder, "profctl"))
            built = programs(os.path.join(d.folder, "programs"))
            exes = [shutil.copy(os.path.join(built, name), os.path.join(d.folder, f"{word}-program"))
                    for name, word in (("calc", "orange"), ("cycle", "purple"), ("twins", "orange-third"))]
            upload(d, FIRST, exes[0], ["3"], "orange-service")
            upload(d, SECOND, exes[1], [], "purple-service")
            tokens = {name: d.token(name, *options) for name, *options in (
                ("first", "--read", "--tenant", "red"), ("second", "--read", "--tenant", "blue"),
                ("admin", "--admin", "--tenant", "red"), ("write", "--write", "--tenant", "red"),
                ("agent", "--read", "--write", "--tenant", "red"), ("all", "--read"),
                ("expired", "--admin", "--tenant", "red", "--expires", "1s"),
                ("expired-agent", "--read", "--write", "--tenant", "red", "--expires", "1s"),
                ("blue-admin", "--admin", "--tenant", "blue"), ("red-admin", "--admin", "--tenant", "red"))}
            d.token("alice", "--read", "--tenant", "red", "--proxy")
            upload(d, FIRST, exes[2], [], "orange-service")
            unnamed = next(r["build_id"] for r in d.json("builds", "--json")["rows"] if r["name"].endswith(exes[2]))
            move(d, unnamed)
            first, second = (Side(d, exe, s) for exe, s in zip(exes, ("orange-service", "purple-service")))
            table(tap, d, port, tokens, first, second)
            tags(tap, d, tokens, first)
            symbols(tap, d, port, tokens, unnamed, exes[2])
            symbols_refused(tap, d, port, tokens, unnamed, exes)
            with open(exes[2], "rb") as f:
                bodies(tap, d, port, tokens, unnamed, f.read())
            hostile(tap, d, port, tokens)
            refusals(tap, d)
            shown(tap, d)
            reserved(tap, d)
            with open(exes[2], "rb") as f:
                content = f.read()
            opened(tap, d, port, tokens, first, second, content)
            removal(tap, d, port, tokens, Side(d, exes[2], "orange-service"), content)
            given(tap, d)


main()
