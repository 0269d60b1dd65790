"""Readers over the network: every path of the API, asked with every kind of credentials. What another tenant has is in
no byte of an answer."""
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


def move(d):
    """What two users of this machine have sent becomes that of two tenants, as if hosts had sent it."""
    d.stop()
    with sqlite3.connect(os.path.join(d.state, "profd.db")) as db:
        for table in TABLES:
            for uid, tenant in MOVED.items():
                db.execute(f"UPDATE {table} SET uid=? WHERE uid=?", (tenant, uid))
        db.execute("DELETE FROM reader_tenant WHERE reader=(SELECT id FROM reader WHERE name='bare')")
    db.close()
    d.start()
    os.chmod(d.http, 0o666)


def paths(d, build, address):
    """Every path of the interface, with what it needs: a new one is asked for without a change here."""
    known = {"{id}": build, "{address}": address, "{name}": "service"}
    api = json.loads(d.get("/openapi.json")[2])
    for path, methods in api["paths"].items():
        parameters = [api["components"]["parameters"][p["$ref"].rpartition("/")[2]] if "$ref" in p else p
                      for p in methods["get"].get("parameters", [])]
        query = [f"{name}={value}" for name, value in (("by", "service"), ("name", "main"))
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
    return 404 if "/builds/" in path else own(path)


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
    tap.point(done.returncode == 77 and "may not reader-list" in done.stderr, "only administrators see the list", done)


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
                    for name, word in (("calc", "orange"), ("cycle", "purple"))]
            upload(d, FIRST, exes[0], ["3"], "orange-service")
            upload(d, SECOND, exes[1], [], "purple-service")
            tokens = {"first": add(d, "first", "--tenant", "red"), "second": add(d, "second", "--tenant", "blue"),
                      "admin": add(d, "admin", "--role", "admin", "--tenant", "red"),
                      "both": add(d, "both", "--tenant", "red,blue"), "all": add(d, "all", "--tenant", "all"),
                      "bare": add(d, "bare", "--tenant", "red"),
                      "expired": add(d, "expired", "--tenant", "red", "--expires", "1s")}
            add(d, "alice", "--tenant", "red", "--proxy")
            move(d)
            first, second = (Side(d, exe, s) for exe, s in zip(exes, ("orange-service", "purple-service")))
            table(tap, d, port, tokens, first, second)
            tags(tap, d, tokens, first)
            refusals(tap, d)
            reserved(tap, d)
            removal(tap, d, port, tokens)


main()
