"""systemd/nginx.conf and systemd/haproxy.cfg in the real programs in front of profd's Unix socket, as they are shipped:
only paths, name and ports are replaced. `proxies.py SCREENSHOT` keeps a picture of the dashboard behind nginx."""
import base64
import contextlib
import os
import re
import socket
import ssl
import sys

from harness import LONG, Daemon, Tap, profile, programs, run, until
from https_bed import Haproxy, Nginx, dashboard, proxied, why_not

PASSWORD = "correct horse"


class Case:
    """A daemon with one build, tokens, and a proxy in front of it."""

    def __init__(self, tap, d, proxy, exe, build, tokens):
        self.tap, self.d, self.proxy, self.exe, self.build, self.tokens = tap, d, proxy, exe, build, tokens
        self.what = proxy.program.rpartition("/")[2]

    def point(self, ok, name, detail=""):
        return self.tap.point(ok, f"{self.what}: {name}", detail)

    def sees(self, *options, **credentials):
        """(status, is the build in the answer)"""
        a = self.proxy.ask("/api/v1/builds", *options, **credentials)
        return a.status, self.build.encode() in a.body


def reads(c):
    a = c.proxy.ask("/api/v1/builds", "--http2", token=c.tokens["all"])
    c.point(a.status == 200 and a.version == "2" and c.build.encode() in a.body
            and "max-age" in a.headers.get("strict-transport-security", ""), "a token reads over HTTP/2",
            (a, c.proxy.logged()[-600:]))
    path = f"/api/v1/builds/{c.build}/report?format=text"
    a = c.proxy.ask(path, "--http1.1", "--tlsv1.2", "--tls-max", "1.2", token=c.tokens["all"])
    c.point(a.status == 200 and a.version == "1.1" and a.body == c.d.get(path)[2],
            "and over HTTP/1.1 with TLS 1.2: the bytes of the Unix socket", a)
    old = c.proxy.ask("/", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0")
    c.point(old.status == 0, "TLS 1.1 is refused", old)
    done = run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}",
               f"http://localhost:{c.proxy.plain_port}/x?y=1")
    c.point(re.fullmatch(r"301 https://localhost(:\d+)?/x\?y=1", done.stdout) is not None,
            "HTTP without TLS leads to TLS", done)
    method = c.proxy.ask("/api/v1/builds", "-X", "DELETE", token=c.tokens["all"])
    c.point(method.status == 405, "other methods are profd's to refuse", method)
    # The proxy answers from the headers and closes. A client that sends its body at the same time can
    # find the connection reset, and lose the answer.
    long = c.proxy.ask("/api/v1/builds", "--http1.1", "-H", "Expect: 100-continue", "--expect100-timeout", "60",
                       "--data-binary", "x" * 70000, token=c.tokens["all"])
    c.point(long.status == 413, "a body where none belongs is refused by the proxy", long)


def codings(c):
    """Compression is profd's: the ETag of each coding comes through, and gets 304."""
    path = f"/api/v1/builds/{c.build}/report"
    ask = lambda *options: c.proxy.ask(path, *options, token=c.tokens["all"])  # noqa: E731
    plain = ask()
    tags = {}
    for coding in ("gzip", "zstd"):
        a = ask("-H", f"Accept-Encoding: {coding}")
        tags[coding] = a.headers.get("etag", "")
        decoded = run(coding, "-dc", os.path.join(c.proxy.folder, "body"), binary=True).stdout
        direct = c.d.get(path, Accept_Encoding=coding)[1]
        c.point(a.status == 200 and a.headers.get("content-encoding") == coding and decoded == plain.body
                and len(a.body) < len(plain.body) and tags[coding] == direct["etag"] and tags[coding].startswith('"')
                and "accept-encoding" in a.headers.get("vary", "").lower(),
                f"{coding}: profd's bytes, and its strong ETag", (a, direct))
        again = ask("-H", f"Accept-Encoding: {coding}", "-H", f"If-None-Match: {tags[coding]}")
        c.point(again.status == 304 and again.headers.get("etag") == tags[coding], f"{coding}: with it 304", again)
    c.point(len({plain.headers["etag"], *tags.values()}) == 3, "each coding has its own", (plain.headers, tags))
    other = ask("-H", "Accept-Encoding: gzip", "-H", 'If-None-Match: "another"')
    c.point(other.status == 200, "another ETag gets the report", other)


def credentials(c):
    """No header of a client gives it more than its token."""
    bearer = {n: f"Authorization: Bearer {t}" for n, t in c.tokens.items()}
    wrong = f"Authorization: Basic {base64.b64encode(b'alice:wrong').decode()}"
    c.point([c.sees(token=c.tokens[n]) for n in ("all", "other")] == [(200, True), (200, False)],
            "a token is passed on, and profd judges it")
    c.point(c.sees()[0] == 401 and c.sees(token="nonsense")[0] == 401, "without a token, or with a wrong one: 401",
            (c.sees(), c.sees(token="nonsense")))
    for spelling in ("X-Remote-User", "x-remote-user", "X_Remote_User", "X-REMOTE-USER"):
        got = c.sees("-H", f"{spelling}: alice"), c.sees("-H", f"{spelling}: alice", token=c.tokens["other"])
        c.point(got == ((401, False), (200, False)), f"a client's own {spelling} is not believed", got)
    both = c.sees("-H", "X-Remote-User: mallory", token=c.tokens["all"])
    c.point(both == (200, True), "nor does it spoil the token", both)
    twice = [c.sees("-H", one, "-H", two) for one, two in
             ((bearer["other"], wrong), (wrong, bearer["other"]), ("Authorization: Bearer nonsense", wrong))]
    c.point(not any(seen for _, seen in twice), "two Authorization headers give no rights that neither has", twice)
    origins = [c.sees("-H", f"Origin: {o}", token=c.tokens["all"])[0]
               for o in (c.proxy.at, c.proxy.at.replace("https", "http"), "https://elsewhere.example",
                         "https://localhost", "null")]
    c.point(origins == [200, 200, 403, 403, 403], "pages of other origins are refused, pages of this one "
            "are not", origins)


def crowded(c):
    """One token keeps the places of hosts only up to its limit: another one is answered."""
    context, held = ssl.create_default_context(cafile=c.proxy.ca), []
    head = (f"POST /api/v1/uploads HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {c.tokens['all']}\r\n"
            "Content-Type: application/x-protobuf\r\nContent-Length: 40000\r\n\r\n").encode()
    for _ in range(60):
        s = context.wrap_socket(socket.create_connection(("127.0.0.1", c.proxy.port), LONG),
                                server_hostname="localhost")
        s.sendall(head + b"x" * 100)
        held.append(s)
        s.setblocking(False)
    told = {}

    def refused():
        """The answers that are 503, once those are there that come at once."""
        for n, s in enumerate(held):
            with contextlib.suppress(OSError):
                told[n] = told.get(n) or s.recv(64)
        return (found := sum(said.startswith(b"HTTP/1.1 503") for said in told.values())) >= 12 and found
    refused = until(refused)
    # By HTTP/1.1: a stream of HTTP/2 may be reset before curl has read the answer to a body that nobody reads.
    own = c.proxy.ask("/api/v1/uploads", "--http1.1", "-X", "POST", "--data-binary", "x", token=c.tokens["all"])
    other = c.proxy.ask("/api/v1/uploads", "-X", "POST", "--data-binary", "x", token=c.tokens["other"])
    reader = c.sees(token=c.tokens["all"])
    for s in held:
        s.close()
    c.point(refused == 12 and own.status == 503, "of 60 slow requests of one token, 12 are refused at once",
            (refused, own))
    c.point(other.status not in (0, 502, 503) and reader == (200, True), "another token, and readers, are answered",
            (other, reader))
    c.point(until(lambda: c.proxy.ask("/api/v1/uploads", "-X", "POST", "--data-binary", "x",
                                      token=c.tokens["all"]).status not in (0, 502, 503)),
            "when they have ended, the token is served again")


def by_profctl(c):
    """profctl through the same server: a token reads, and one with the right admin sends symbols."""
    def ask(name, *verb):
        token = os.path.join(c.proxy.folder, f"{name}.token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            f.write(c.tokens[name] + "\n")
        return c.d.ctl(*verb, "--server", c.proxy.at, "--token-file", token, "--cacert", c.proxy.ca)
    done = ask("all", "report", c.exe)
    c.point(done.returncode == 0 and done.stdout == c.d.ctl("report", c.exe).stdout,
            "profctl report --server https://: the text of the Unix socket", done)
    done = ask("builder", "symbols", c.exe), ask("all", "symbols", c.exe)
    c.point(done[0].returncode == 0 and done[1].returncode == 77, "profctl symbols: a token with the right admin "
            "sends them, another one may not", done)


def smuggled(c):
    """Raw bytes, which curl would not send."""
    context = ssl.create_default_context(cafile=c.proxy.ca)
    for what, data in (("two lengths", b"Content-Length: 0\r\nContent-Length: 9\r\n"),
                       ("a name with a space", b"X-Remote-User : alice\r\n"),
                       ("a folded header", b"X-A: b\r\n X-Remote-User: alice\r\n"),
                       ("a length and chunks", b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")):
        with context.wrap_socket(socket.create_connection(("localhost", c.proxy.port), LONG),
                                 server_hostname="localhost") as s:
            s.sendall(b"GET /api/v1/builds HTTP/1.1\r\nHost: localhost\r\n" + data + b"\r\n0\r\n\r\n")
            answer = s.recv(4096)
        c.point(re.match(rb"HTTP/1\.1 (400|401|413) ", answer) is not None, f"{what}: nothing is read", answer[:100])


def shown(c, user, password, shot=""):
    said = dashboard(c.proxy, c.build, user, password, shot)
    if said is None:
        c.tap.skip(f"{c.what}: the dashboard", "needs chromium and playwright-core")
    else:
        c.point(said.get("errors") == [] and said["protocol"] == "h2" and "cycle" in said["text"]
                and set(said["statuses"]) <= {"200", "304", "401"}, "the dashboard in Chromium, over HTTP/2", said)


def passwords(c, shot):
    """People have names and passwords, which nginx checks."""
    alice, mallory = f"alice:{PASSWORD}", f"mallory:{PASSWORD}"
    basic = base64.b64encode(alice.encode()).decode()
    wrong = f"Authorization: Basic {base64.b64encode(b'alice:wrong').decode()}"
    other = f"Authorization: Bearer {c.tokens['other']}"
    c.point(c.sees(user=alice) == (200, True) and c.sees(user=mallory)[0] == 403,
            "a name with a password reads what its token may; a name without a token is refused",
            (c.sees(user=alice), c.sees(user=mallory)))
    c.point(c.sees()[0] == 401 and c.sees(user="alice:wrong")[0] == 401, "without a password, or with a wrong one: 401")
    got = c.sees("-H", "X-Remote-User: alice"), c.sees("-H", "X-Remote-User: alice", user=mallory)
    c.point((got[0][0], got[1][0]) == (401, 403), "a client's own X-Remote-User is not believed", got)
    c.point(c.sees("-H", "X-Remote-User: mallory", user=alice) == (200, True), "nor does it spoil the name")
    c.point(c.sees(token=c.tokens["other"]) == (200, False) and c.sees("-H", other, "-H", "X-Remote-User: alice")
            == (200, False), "a token is passed on, and with it no name counts")
    twice = [c.sees("-H", one, "-H", two) for one, two in ((other, wrong), (wrong, other))]
    c.point(not any(seen for _, seen in twice), "two Authorization headers give no rights that neither has", twice)
    c.point(c.sees("-H", f"Authorization: Basic {basic}") == (200, True), "only the right password does")
    shown(c, "alice", PASSWORD, shot)


def main():
    with Tap() as tap:
        if why_not():
            tap.skip("profd behind proxies", why_not())
            return
        with Daemon(*proxied()) as d:
            exe = os.path.join(programs(os.path.join(d.folder, "programs")), "cycle")
            done = d.ctl("upload", "-e", exe, profile(d.folder, exe, ["60"], "60"))
            tap.point(done.returncode == 0, "a program is counted", done)
            build = d.json("builds", "--json")["rows"][0]["build_id"]
            add = {"all": ("all", "--read"), "other": ("other", "--read", "--tenant", "shop"),
                   "builder": ("builder", "--tenant", "shop", "--admin"),
                   "alice": ("alice", "--read", "--proxy")}
            tokens = {n: d.token(*a) for n, a in add.items()}
            for proxy in (Nginx(d), Haproxy(d)):
                with proxy:
                    c = Case(tap, d, proxy, exe, build, tokens)
                    for act in (reads, codings, credentials, crowded, by_profctl, smuggled):
                        act(c)
                    shown(c, "", tokens["all"])
            with Nginx(d, users={"alice": PASSWORD, "mallory": PASSWORD}) as proxy:
                passwords(Case(tap, d, proxy, exe, build, tokens), sys.argv[1] if len(sys.argv) > 1 else "")


main()
