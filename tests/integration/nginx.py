"""systemd/nginx.conf in the real nginx in front of profd's Unix socket, as it is shipped: only its paths, name and
ports are replaced. `nginx.py SCREENSHOT` keeps a picture of the dashboard."""
import base64
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys

from harness import LONG, NODE_MODULES, ROOT, Daemon, Tap, free_port, profile, programs, run, until
from tls_bed import Authority

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")
CHROMIUM = shutil.which(os.environ.get("CHROMIUM", "chromium"))
NAME, PASSWORD = "profd.example", "correct horse"
MAIN = """worker_processes 1;
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/nginx.log info;
events {{ worker_connections 256; }}
http {{
    access_log off;
    {temporary}
    include {folder}/site.conf;
}}
"""


class Proxy:
    def __init__(self, d):
        self.folder, self.process = d.folder, None
        self.port, self.plain_port = free_port(), free_port()
        authority = Authority(d.folder)
        self.ca = authority.ca
        pair = authority.issue("proxy", (f"DNS:{NAME}", "DNS:localhost"))
        site = open(os.path.join(ROOT, "systemd/nginx.conf")).read()
        for old, new in (("/run/profd/http.sock", d.http), ("/etc/ssl/profd.example.crt", pair[0]),
                         ("/etc/ssl/private/profd.example.key", pair[1]), ("443 ssl", f"{self.port} ssl"),
                         ("listen 80;", f"listen {self.plain_port};"), (":80;", f":{self.plain_port};"),
                         ("/etc/nginx/profd.users;", f"{d.folder}/users;"),
                         (f"server_name {NAME};", f"server_name {NAME} localhost;")):
            if old not in site:
                raise RuntimeError(f"systemd/nginx.conf has no {old!r} any more")
            site = site.replace(old, new)
        self.write("site.conf", site)
        lines = [f"{name}:{run('openssl', 'passwd', '-6', PASSWORD).stdout.strip()}" for name in ("alice", "mallory")]
        self.write("users", "\n".join(lines) + "\n")
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        self.write("nginx.conf", MAIN.format(
            folder=d.folder, user="user www-data;" if os.geteuid() == 0 else "",
            temporary=" ".join(f"{kind}_temp_path {d.folder}/tmp-{kind};" for kind in kinds)))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as f:
            f.write(text)

    def __enter__(self):
        self.process = subprocess.Popen([NGINX, "-p", self.folder, "-c", os.path.join(self.folder, "nginx.conf")],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def listens():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0 or self.process.poll() is not None
        until(listens)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(LONG)

    def ask(self, path, *options, user="alice", password=PASSWORD):
        """(status, protocol version, headers, body) by curl."""
        body = os.path.join(self.folder, "body")
        named = ["-u", f"{user}:{password}"] if user else []
        done = run("curl", "-sS", "--cacert", self.ca, "-o", body, "-D", "-", "-w", "%{http_version}", *named,
                   *options, f"https://localhost:{self.port}{path}")
        head, _, version = done.stdout.rpartition("\n")
        lines = head.strip().split("\n") if head.strip() else [done.stderr]
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        words = lines[0].split()
        return (int(words[1]) if len(words) > 1 and words[1].isdigit() else done.stderr), version, headers, \
            open(body, "rb").read() if os.path.exists(body) else b""


def reads(tap, d, p, build):
    status, version, headers, body = p.ask("/api/v1/builds", "--http2")
    tap.point(status == 200 and version == "2" and build.encode() in body
              and "max-age" in headers.get("strict-transport-security", ""), "a user reads over HTTP/2",
              (status, version, headers, body[:300], open(f"{d.folder}/nginx.log").read()[-600:]))
    path = f"/api/v1/builds/{build}/report?format=text"
    status, version, _, body = p.ask(path, "--http1.1", "--tlsv1.2", "--tls-max", "1.2")
    tap.point(status == 200 and version == "1.1" and body == d.get(path)[2],
              "and over HTTP/1.1 with TLS 1.2: the bytes of the "
              "Unix socket", (status, version, body[:200]))
    old = p.ask("/", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0")
    tap.point(not isinstance(old[0], int), "TLS 1.1 is refused", old)
    done = run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}",
               f"http://localhost:{p.plain_port}/x?y=1")
    tap.point(done.stdout == "301 https://localhost/x?y=1", "HTTP without TLS leads to TLS", done)


def codings(tap, d, p, build):
    """Compression is profd's: the ETag of each coding comes through, and gets 304."""
    path = f"/api/v1/builds/{build}/report"
    plain = p.ask(path)
    tags = {}
    for coding in ("gzip", "zstd"):
        status, _, headers, body = p.ask(path, "-H", f"Accept-Encoding: {coding}")
        tags[coding] = headers.get("etag", "")
        decoded = run(coding, "-dc", os.path.join(p.folder, "body"), binary=True).stdout
        direct = d.get(path, Accept_Encoding=coding)[1]
        tap.point(status == 200 and headers.get("content-encoding") == coding and decoded == plain[3]
                  and len(body) < len(plain[3]) and tags[coding] == direct["etag"] and tags[coding].startswith('"')
                  and "accept-encoding" in headers.get("vary", "").lower(),
                  f"{coding}: profd's bytes, and its strong ETag", (status, headers, direct))
        again = p.ask(path, "-H", f"Accept-Encoding: {coding}", "-H", f"If-None-Match: {tags[coding]}")
        tap.point(again[0] == 304 and again[2].get("etag") == tags[coding], f"{coding}: with it 304", again[:3])
    tap.point(len({plain[2]["etag"], *tags.values()}) == 3, "each coding has its own", (plain[2], tags))
    other = p.ask(path, "-H", "Accept-Encoding: gzip", "-H", 'If-None-Match: "another"')
    tap.point(other[0] == 200, "another ETag gets the report", other[:3])


def header(tap, d, p, build, tokens):
    def sees(*options, **user):
        status, _, _, body = p.ask("/api/v1/builds", *options, **user)
        return status, build.encode() in body
    basic = base64.b64encode(f"alice:{PASSWORD}".encode()).decode()
    wrong = base64.b64encode(b"alice:wrong").decode()
    tap.point(sees() == (200, True) and sees(user="mallory")[0] == 403,
              "a user is the reader of this name; a user without a reader is refused", (sees(), sees(user="mallory")))
    tap.point(sees(user=None)[0] == 401 and sees(password="wrong")[0] == 401, "without a password, or "
              "with a wrong one: 401")
    for spelling in ("X-Remote-User", "x-remote-user", "X_Remote_User", "X-REMOTE-USER"):
        got = sees("-H", f"{spelling}: alice", user=None), sees("-H", f"{spelling}: alice", user="mallory")
        tap.point((got[0][0], got[1][0]) == (401, 403), f"a client's own {spelling} is not believed", got)
    both = sees("-H", "X-Remote-User: mallory")
    tap.point(both == (200, True), "nor does it spoil the user's", both)
    bearer = [f"Authorization: Bearer {tokens[n]}" for n in ("all", "other")]
    tap.point([sees("-H", b, user=None) for b in bearer] == [(200, True), (200, False)],
              "a token is passed on, and profd judges it", [sees("-H", b, user=None) for b in bearer])
    tap.point(sees("-H", "Authorization: Bearer nonsense", user=None)[0] == 401, "a wrong token: 401")
    got = sees("-H", bearer[1], "-H", "X-Remote-User: alice", user=None)
    tap.point(got == (200, False), "a token with the header of another: only the token counts", got)
    twice = [sees("-H", one, "-H", two, user=None) for one, two in
             ((bearer[1], f"Authorization: Basic {wrong}"), (f"Authorization: Basic {wrong}", bearer[1]),
              ("Authorization: Bearer nonsense", f"Authorization: Basic {wrong}"))]
    tap.point(not any(seen for _, seen in twice), "two Authorization headers give no rights that neither has", twice)
    tap.point(sees("-H", f"Authorization: Basic {basic}", user=None) == (200, True), "only the right password does")
    origins = [sees("-H", f"Origin: {o}")[0] for o in (f"https://localhost:{p.port}", f"http://localhost:{p.port}",
                                                      "https://elsewhere.example", "https://localhost", "null")]
    tap.point(origins == [200, 200, 403, 403, 403], "pages of other origins are refused, pages of this one are "
              "not", origins)
    method = p.ask("/api/v1/builds", "-X", "DELETE")
    tap.point(method[0] == 405, "other methods are profd's to refuse", method[:3])


def by_profctl(tap, d, p, exe, tokens):
    """profctl through the same server: a reader reads, and one with the role admin sends symbols."""
    def ask(name, *verb):
        token = os.path.join(p.folder, f"{name}.token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            f.write(tokens[name] + "\n")
        return d.ctl(*verb, "--server", f"https://localhost:{p.port}", "--token-file", token, "--cacert", p.ca)
    done = ask("all", "report", exe)
    tap.point(done.returncode == 0 and done.stdout == d.ctl("report", exe).stdout, "profctl report --server https://: "
              "the text of the Unix socket", (done, d.ctl("report", exe)))
    done = ask("builder", "symbols", exe), ask("all", "symbols", exe)
    tap.point(done[0].returncode == 0 and done[1].returncode == 77, "profctl symbols: a reader with the role "
              "admin sends them, another one may not", done)


def smuggled(tap, p):
    """Raw bytes, which curl would not send."""
    context = ssl.create_default_context(cafile=p.ca)
    for what, data in (("two lengths", b"Content-Length: 0\r\nContent-Length: 9\r\n"),
                       ("a name with a space", b"X-Remote-User : alice\r\n"),
                       ("a folded header", b"X-A: b\r\n X-Remote-User: alice\r\n")):
        with context.wrap_socket(socket.create_connection(("localhost", p.port), LONG),
                                 server_hostname="localhost") as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + data + b"\r\n")
            answer = s.recv(4096)
        tap.point(re.match(rb"HTTP/1\.1 (400|401) ", answer) is not None, f"{what}: nothing is read", answer[:100])


def dashboard(tap, p, build, shot):
    done = run("node", os.path.join(ROOT, "tests/browser/proxied.mjs"), os.path.dirname(NODE_MODULES),
               f"https://localhost:{p.port}/", build, "alice", PASSWORD, shot, timeout=LONG,
               env=dict(os.environ, CHROMIUM=CHROMIUM, HOME=p.folder))
    said = json.loads(done.stdout) if done.returncode == 0 else {}
    tap.point(said and not said["errors"] and said["protocol"] == "h2" and "cycle" in said["text"]
              and set(said["statuses"]) <= {"200", "304", "401"}, "the dashboard in Chromium, through nginx, over "
              "HTTP/2", (done.stderr[-1500:], said))


def main():
    with Tap() as tap:
        if not NGINX or os.geteuid() != 0:
            tap.skip("nginx in front of profd", "needs root, and nginx: sh tests/deps.sh check")
            return
        with Daemon("--proxy-user", "www-data") as d:
            exe = os.path.join(programs(os.path.join(d.folder, "programs")), "cycle")
            done = d.ctl("upload", "-e", exe, profile(d.folder, exe, ["60"], "60"))
            build = d.json("builds", "--json")["rows"][0]["build_id"]
            run("chmod", "-R", "a+rX", d.folder)
            os.chmod(d.http, 0o666)
            add = {"all": ("all", "--tenant", "all"), "other": ("other", "--tenant", "shop"),
                   "builder": ("builder", "--tenant", "shop", "--role", "admin"),
                   "alice": ("alice", "--tenant", "all", "--proxy")}
            tokens = {n: d.ctl("reader", "add", *a).stdout.strip() for n, a in add.items()}
            with Proxy(d) as p:
                tap.point(done.returncode == 0 and p.process.poll() is None, "nginx starts with the shipped "
                          "configuration", run(NGINX, "-t", "-p", d.folder, "-c", f"{d.folder}/nginx.conf").stderr)
                reads(tap, d, p, build)
                codings(tap, d, p, build)
                header(tap, d, p, build, tokens)
                by_profctl(tap, d, p, exe, tokens)
                smuggled(tap, p)
                if CHROMIUM and os.path.isdir(os.path.join(NODE_MODULES, "playwright-core")):
                    dashboard(tap, p, build, sys.argv[1] if len(sys.argv) > 1 else "")
                else:
                    tap.skip("the dashboard through nginx", "needs chromium and playwright-core")


main()
