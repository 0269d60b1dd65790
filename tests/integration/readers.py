"""Readers over the network: every path of the API, asked with every kind of credentials. What another tenant has is in
no byte of an answer."""
import hashlib
import json
import os
import shutil
import socket
import sqlite3

import harness
from harness import PROFCTL, Daemon, Tap, as_user, free_port, programs, run, until
from http_client import TOKEN, Client

PROXY, OTHER, FIRST, SECOND = 60131, 60132, 60133, 60134  # users; the last two become tenants
MOVED = {FIRST: 4294967293, SECOND: 4294967292}  # tenants 2 and 3
TABLES = ("build_set_user", "series", "sender", "build_user", "user_epoch", "object_sender", "user_bytes")


def upload(d, uid, exe, arguments, service):
    gmon = harness.profile(d.folder, exe, arguments, uid)
    run("chmod", "-R", "a+rX", exe, os.path.dirname(gmon), os.path.join(d.folder, "profctl"))
    done = run("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", os.path.join(d.folder, "profctl"),
               "upload", "-l", f"service={service}", "-e", exe, gmon, cwd=d.folder,
               env=dict(d.env, XDG_STATE_HOME="/nonexistent", HOME="/nonexistent", PROFD_SPOOL="/nonexistent/spool"))
    assert done.returncode == 0, done.stderr


def add(d, *arguments):
    done = d.ctl("reader", "add", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


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
        db.execute("DELETE FROM reader_tenant WHERE reader=(SELECT id FROM reader WHERE name='bare')")
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
        query = [f"{name}={value}" for name, value in (("by", "service"), ("name", "main"), ("a", build), ("b", build))
                 if any(p["name"] == name and p["in"] == "query" for p in parameters)]
        for name, value in known.items():
            path = path.replace(name, value)
        assert "{" not in path, f"the test does not know the parameter of {path}"
        yield "?".join([path, "&".join(query)] if query else [path])


def own(path):
    """The status for a reader of the tenant that has the build: totals are of all tenants together."""
    return 403 if path in ("/metrics", "/api/v1/status") else 200


def foreign(path):
    """The status for a reader of another tenant: the build does not exist for it."""
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
    judge(tap, "a wrong token: 401", d, first, both, bearer("profd-reader-" + "0" * 64), nothing(401))
    judge(tap, "a wrong token on the Unix socket: 401", d, first, both, unix("profd-reader-" + "0" * 64),
          nothing(401))
    until(lambda: d.get("/healthz", Authorization=f"Bearer {tokens['expired']}")[0] == 401)
    judge(tap, "an expired reader: 401", d, first, both, bearer(tokens["expired"]), nothing(401))
    judge(tap, "a reader without a role: 403", d, first, both, bearer(tokens["bare"]), nothing(403))
    for way, ask in (("TCP", bearer), ("the Unix socket", unix)):
        judge(tap, f"a reader of another tenant, on {way}", d, first, [first], ask(tokens["second"]), foreign)
        judge(tap, f"a reader of the tenant, on {way}", d, first, [second], ask(tokens["first"]), own)
        judge(tap, f"an admin of the tenant, on {way}", d, first, [second], ask(tokens["admin"]), own)
        judge(tap, f"a reader of both, on {way}", d, first, [], ask(tokens["both"]), own)
        judge(tap, f"a reader of everything, on {way}", d, first, [], ask(tokens["all"]), nothing(200))
    judge(tap, "the token of the listener", d, first, [], bearer(TOKEN), nothing(200))
    judge(tap, "the header from the proxy", d, first, [second], by_user(d, PROXY, X_Remote_User="alice"), own)
    judge(tap, "the header from the proxy names a reader of another tenant", d, second, [second],
          by_user(d, PROXY, X_Remote_User="alice"), foreign)
    judge(tap, "the header from another user: 403", d, first, both, by_user(d, OTHER, X_Remote_User="alice"),
          nothing(403))
    judge(tap, "the header from root: 403", d, first, both, lambda path: d.get(path, X_Remote_User="alice"),
          nothing(403))
    judge(tap, "the header over TCP, with a good token: 403", d, first, both,
          lambda path: tcp.ask(path, token=TOKEN, X_Remote_User="alice"), nothing(403))
    judge(tap, "the proxy names no such reader: 403", d, first, both, by_user(d, PROXY, X_Remote_User="mallory"),
          nothing(403))
    judge(tap, "the header beside a token: 403", d, first, both,
          by_user(d, PROXY, X_Remote_User="alice", Authorization=f"Bearer {tokens['all']}"), nothing(403))
    judge(tap, "the proxy names nobody: 401", d, first, both, by_user(d, PROXY), nothing(401))


def tags(tap, d, tokens, first):
    """ETags of one reader are worth nothing to another."""
    for path in ("/api/v1/builds", f"/api/v1/builds/{first.build}/report"):
        mine = d.get(path, Authorization=f"Bearer {tokens['first']}")[1]["etag"]
        same = d.get(path, Authorization=f"Bearer {tokens['first']}", If_None_Match=mine)[0]
        other = d.get(path, Authorization=f"Bearer {tokens['second']}", If_None_Match=mine)[0]
        tap.point(same == 304 and other == foreign(path), f"an ETag of {path} is of its reader's tenant",
                  (same, other))


def removal(tap, d, port, tokens):
    """A reader that is removed is refused at once, also on a connection that is kept."""
    kept = Client(port)
    before = kept.ask("/api/v1/builds", token=tokens["both"])[0]
    held = kept.socket
    rows = d.json("reader", "list", "--json")["rows"]
    done = d.ctl("reader", "remove", "both")
    after = kept.ask("/api/v1/builds", token=tokens["both"])[0]
    tap.point((before, done.returncode, after) == (200, 0, 401) and held is not None,
              "a removed reader is refused on its connection", (before, done, after))
    tap.point("both" in [r["name"] for r in rows] and not any(tokens["both"] in str(r) for r in rows),
              "the list shows no token", rows)
    again = d.ctl("reader", "remove", "both")
    tap.point(again.returncode == 66 and 'no reader "both"' in again.stderr, "there is nothing to remove twice", again)
    d.stop()
    with open(os.path.join(d.state, "profd.db"), "rb") as f:
        stored = f.read()
    tap.point(not any(t.encode() in stored for t in tokens.values() if t), "no token is in the database")
    d.start()
    tap.point(d.get("/api/v1/builds", Authorization=f"Bearer {tokens['first']}")[0] == 200,
              "readers outlive a restart")


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

    def names(reader):
        status, _, body = d.get(f"/api/v1/builds/{build}/functions?name=main", Authorization=f"Bearer {tokens[reader]}")
        return [r["name"] for r in json.loads(body)["rows"]] if status == 200 else status
    etag = d.get(f"/api/v1/builds/{build}/report", Authorization=f"Bearer {tokens['first']}")[1]["etag"]
    tap.point(names("first") == [] and names("second") == 404, "a build without symbols", names("first"))
    said = put(d.http, build, content, tokens["blue-admin"])
    tap.point(said[0] == 200 and names("first") == [] and names("second") == 404,
              "an operator of another tenant names nothing of this one", said)
    said = put(port, build, content, tokens["admin"])
    tap.point(said[0] == 200 and names("first") == ["main"] and names("both") == ["main"],
              "an operator of the tenant names its functions", (said, names("first")))
    again = d.get(f"/api/v1/builds/{build}/report", Authorization=f"Bearer {tokens['first']}", If_None_Match=etag)[0]
    tap.point(again == 200, "the report is a new one", again)
    tap.point(put(d.http, build, content, tokens["both-admin"])[0] == 200, "an operator of two tenants")
    said = [put(port, build, content, tokens["admin"], query=q) for q in ("?code=maybe", "?cod=1", "?code=1")]
    addresses = d.get(f"/api/v1/builds/{build}/functions/main/addresses", Authorization=f"Bearer {tokens['first']}")
    tap.point([status for status, _ in said] == [400, 400, 200] and "code=maybe" in said[0][1]
              and json.loads(addresses[2])["instructions"], "code=1 stores the instructions, too", (said, addresses))
    done = as_user(PROXY, lambda: [put(d.http, build, b"x", None, "X-Remote-User: alice\r\n")])
    tap.point(done[0][0] == 403 and "role" in done[0][1], "a reader that a proxy names needs the role, too", done)


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
            ("without a token, on the Unix socket", lambda: put(d.http, build, content), 403, "role admin"),
            ("without a token, on TCP", lambda: put(port, build, content), 401, "no valid bearer token"),
            ("with the token of the listener", lambda: put(port, build, content, TOKEN), 403, "role admin"),
            ("with a reader's token", lambda: put(port, build, content, tokens["first"]), 403, "role read"),
            ("of another build", lambda: put(port, build, other, tokens["admin"]), 422, "is build"),
            ("of no ELF file", lambda: put(port, build, b"#!/bin/sh\n" * 100, tokens["admin"]), 422, "ELF"),
            ("that is cut", lambda: put(port, build, content[:3000], tokens["admin"]), 422, ""),
            ("without a length", lambda: put(port, build, b"", tokens["admin"], length=""), 411, "Content-Length"),
            ("of no bytes", lambda: put(port, build, b"", tokens["admin"]), 400, "body"),
            ("too large", lambda: put(port, build, b"", tokens["admin"], length=1 << 30), 413, "at most"),
            ("in chunks", lambda: put(port, build, b"0\r\n\r\n", tokens["admin"], "Transfer-Encoding: chunked\r\n",
                                      length=""), 400, "Transfer-Encoding"),
            ("with an id that is none", lambda: put(port, "%2e%2e", content, tokens["admin"]), 400, ""),
            ("for another path", lambda: put(port, build + "/x", content, tokens["admin"]), 405, "PUT")):
        said = asked()
        tap.point(said[0] == status and words in said[1], f"symbols {name}: {status}", said)
    first = put(port, build, b"", tokens["admin"], length=len(content), finish=False)
    until(lambda: put(port, build, content, tokens["admin"])[0] == 503)
    said = put(port, build, content, tokens["blue-admin"])
    tap.point(said[0] == 200, "while one reader sends slowly, another may send", said)
    second = put(port, build, b"", tokens["blue-admin"], length=len(content), finish=False)
    until(lambda: put(port, build, content, tokens["both-admin"])[0] == 503)
    second.close()
    first.sendall(content[:1000])
    said = answer(first, content[1000:])
    tap.point(said[0] == 200, "a slow one ends well, an abandoned one frees its place", said)
    until(lambda: put(port, build, content, tokens["both-admin"])[0] == 200)
    until(lambda: len(os.listdir(f"/proc/{d.process.pid}/fd")) <= before)
    tap.point(True, "no descriptor is left")


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
    client, seen = Client(port), set()
    for i in range(10000):
        seen.add(client.ask("/api/v1/builds", token=f"profd-reader-{i:064x}")[0])
    tap.point(seen == {401} and d.get("/api/v1/builds", Authorization=f"Bearer {good}")[0] == 200,
              "10,000 wrong tokens", seen)
    tap.point(len(d.logged()) < 1 << 20, "they do not fill the log", d.logged()[-600:])


def refusals(tap, d):
    for arguments, status, words in (
            (("add", "x"), 64, "--tenant"), (("add", "x y", "-t", "a"), 64, "letters"),
            (("add", "x", "-t", "a", "--role", "write"), 64, "read or admin"),
            (("add", "x", "-t", "a,all"), 64, "every tenant"), (("add", "x", "-t", "a,,b"), 64, "tenant"),
            (("add", "x", "-t", "a", "--expires", "soon"), 64, "30m"), (("add", "first", "-t", "a"), 65, "there is a"),
            (("forget", "x"), 64, "add, list or remove")):
        done = d.ctl("reader", *arguments)
        tap.point(done.returncode == status and words in done.stderr, f"reader {' '.join(arguments)} is refused", done)
    done = run("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups",
               os.path.join(d.folder, "profctl"), "reader", "list", env=d.env, cwd=d.folder)
    tap.point(done.returncode == 77 and 'may not use the command "reader-list"' in done.stderr,
              "only administrators see the list", done)


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
            tap.skip("readers of tenants", "needs root and setpriv")
            return
        port = free_port()
        with Daemon(start=False) as d:
            token = os.path.join(d.folder, "token")
            with open(token, "w") as f:
                f.write(TOKEN)
            d.options = ("--http", f"127.0.0.1:{port}", "--http-token", token, "--proxy-user", str(PROXY))
            os.chmod(token, 0o600)
            d.start()
            shutil.copy(PROFCTL, os.path.join(d.folder, "profctl"))
            built = programs(os.path.join(d.folder, "programs"))
            exes = [shutil.copy(os.path.join(built, name), os.path.join(d.folder, f"{word}-program"))
                    for name, word in (("calc", "orange"), ("cycle", "purple"), ("twins", "orange-third"))]
            upload(d, FIRST, exes[0], ["3"], "orange-service")
            upload(d, SECOND, exes[1], [], "purple-service")
            tokens = {"first": add(d, "first", "--tenant", "red"), "second": add(d, "second", "--tenant", "blue"),
                      "admin": add(d, "admin", "--role", "admin", "--tenant", "red"),
                      "both": add(d, "both", "--tenant", "red,blue"), "all": add(d, "all", "--tenant", "all"),
                      "bare": add(d, "bare", "--tenant", "red"),
                      "expired": add(d, "expired", "--tenant", "red", "--expires", "1s")}
            add(d, "alice", "--tenant", "red", "--proxy")
            upload(d, FIRST, exes[2], [], "orange-service")
            unnamed = next(r["build_id"] for r in d.json("builds", "--json")["rows"] if r["name"].endswith(exes[2]))
            for name, tenant in (("blue-admin", "blue"), ("both-admin", "red,blue")):
                tokens[name] = add(d, name, "--role", "admin", "--tenant", tenant)
            move(d, unnamed)
            first, second = (Side(d, exe, s) for exe, s in zip(exes, ("orange-service", "purple-service")))
            table(tap, d, port, tokens, first, second)
            tags(tap, d, tokens, first)
            symbols(tap, d, port, tokens, unnamed, exes[2])
            symbols_refused(tap, d, port, tokens, unnamed, exes)
            hostile(tap, d, port, tokens)
            refusals(tap, d)
            reserved(tap, d)
            removal(tap, d, port, tokens)


main()
