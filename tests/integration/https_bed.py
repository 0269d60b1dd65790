# not a test
"""nginx and HAProxy with the configurations that are shipped, in front of a daemon's HTTP socket: paths, ports, name
and certificate are replaced, and nothing else unless a test asks for it. They run without privileges, in a folder of
their own.

    with Daemon(*proxied()) as d, Nginx(d) as proxy:
        assert proxy.ask("/healthz").status == 200
"""
import contextlib
import json
import os
import pwd
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
from collections import namedtuple

from harness import BUILD, LONG, NODE_MODULES, ROOT, free_port, run, until

NGINX, HAPROXY = (shutil.which(name, path="/usr/sbin:/usr/bin") for name in ("nginx", "haproxy"))
RELAY = os.path.join(BUILD, "profd-relay")
CHROMIUM = shutil.which(os.environ.get("CHROMIUM", "chromium"))
NAME, USER = "profd.example", "www-data"
NAMES = (f"DNS:{NAME}", "DNS:localhost", "IP:127.0.0.1")
MAIN = """worker_processes 2;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/log info;
events {{ worker_connections 16384; }}
http {{
    {temporary}
    include {folder}/site.conf;
}}
"""
Answer = namedtuple("Answer", "status version headers body error")


def openssl(*arguments):
    done = run("openssl", *arguments)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {arguments}: {done.stderr}")
    return done.stdout


def certificate(folder, name="server", names=NAMES, days=10):
    """(certificate, key) that have signed themselves; days below 0: it has expired."""
    out, key, request, extensions = (os.path.join(folder, f"{name}.{end}") for end in ("crt", "key", "csr", "ext"))
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
            request, "-subj", f"/CN={name}")
    with open(extensions, "w") as f:
        f.write(f"subjectAltName={','.join(names)}\n")
    openssl("x509", "-req", "-in", request, "-signkey", key, "-extfile", extensions, "-days", str(days), "-out", out)
    return out, key


def why_not():
    """Why the proxies cannot run here as another user than the daemon, or ""."""
    try:
        pwd.getpwnam(USER)
    except KeyError:
        return f"needs the user {USER}"
    return "" if os.geteuid() == 0 and NGINX and HAPROXY else "needs root, nginx and HAProxy: sh tests/deps.sh check"


def proxied():
    """Options of a daemon behind a proxy: who the proxy is, and that it may open the socket. Without root the proxy
    runs as the daemon's user, and what it asks without a token is that user's."""
    return ("--proxy-user", USER, "--read-group", USER) if os.geteuid() == 0 else ()


class HttpsProxy:
    """upstream: the path of a daemon's HTTP socket, or a Daemon. changes: (old, new) of the shipped text. Processes are
    ended by their ids."""

    program, shipped = None, ""

    def __init__(self, upstream, changes=(), port=None):
        self.upstream = upstream if isinstance(upstream, str) else upstream.http
        self.folder = tempfile.mkdtemp(prefix="profd-proxy-")
        self.port, self.plain_port, self.process = port or free_port(), free_port(), None
        self.log = os.path.join(self.folder, "log")
        self.certificate, self.key = certificate(self.folder)
        self.ca = os.path.join(self.folder, "ca.pem")
        shutil.copy(self.certificate, self.ca)
        self.at = f"https://localhost:{self.port}"
        with open(os.path.join(ROOT, self.shipped)) as f:
            self.text = f.read()
        for old, new in (*self.places(), *changes):
            self.change(old, new)

    def change(self, old, new):
        if old not in self.text:
            raise RuntimeError(f"{self.shipped} has no {old!r} any more")
        self.text = self.text.replace(old, new)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def places(self):
        """Replacements of what depends on the machine."""
        return ()

    def command(self):
        """Writes the files, and returns the command."""
        raise NotImplementedError

    def start(self):
        """Returns when it listens."""
        command = self.command()
        open(self.log, "ab").close()
        as_user = []
        if os.geteuid() == 0:
            run("chown", "-R", USER, self.folder)
            os.chmod(self.folder, 0o755)
            as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*as_user, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.folder, start_new_session=True)
        if not until(lambda: self.listens() or self.process.poll() is not None) or self.process.poll() is not None:
            raise RuntimeError(f"{self.program} does not listen: {self.logged()[-2000:]}")
        return self

    def listens(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self, how=signal.SIGTERM):
        """Ends it, and what it has started."""
        if self.process and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)  # requests that are being answered may take their time
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(LONG)

    def logged(self):
        return open(self.log, errors="replace").read() if os.path.exists(self.log) else ""

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, path, *options, user=None, token=None):
        """By curl. user: NAME:PASSWORD. An answer without a status has the error of curl."""
        body, head = os.path.join(self.folder, "body"), os.path.join(self.folder, "head")
        for old in (body, head):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(old)
        named = (["-u", user] if user else []) + (["-H", f"Authorization: Bearer {token}"] if token else [])
        done = run("curl", "-sS", "--cacert", self.ca, "-o", body, "-D", head, "-w", "%{http_code} %{http_version}",
                   *named, *options, f"{self.at}{path}")
        status, _, version = done.stdout.partition(" ")
        lines = open(head).read().strip().split("\n\n")[-1].split("\n") if os.path.exists(head) else []
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        return Answer(int(status) if done.returncode == 0 else 0, version, headers,
                      open(body, "rb").read() if os.path.exists(body) else b"", done.stderr)


class Nginx(HttpsProxy):
    """users: NAME → PASSWORD; then nginx asks for passwords, as the comments of the file say. more: servers beside
    the shipped one."""

    program, shipped = NGINX, "systemd/nginx.conf"

    def __init__(self, upstream, changes=(), users=None, more="", **options):
        super().__init__(upstream, changes, **options)
        self.more = more
        if users:
            for line in ("auth_basic $profd_realm;", "auth_basic_user_file /etc/nginx/profd.users;",
                         "set $profd_user $remote_user;", "set $profd_authorization $profd_token;"):
                self.change(f"#{line}", line)
            lines = [f"{name}:{openssl('passwd', '-6', password).strip()}\n" for name, password in users.items()]
            self.change("/etc/nginx/profd.users;", f"{self.write('users', ''.join(lines))};")

    def places(self):
        return (("/run/profd/http.sock", self.upstream), ("/etc/ssl/profd.example.crt", self.certificate),
                ("/etc/ssl/private/profd.example.key", self.key),
                ("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"),
                ("    listen [::]:443 ssl http2 backlog=4096;\n", ""), ("    listen [::]:80;\n", ""),
                ("listen 80;", f"listen 127.0.0.1:{self.plain_port};"),
                (f"server_name {NAME};", f"server_name {NAME} localhost;"),
                ("/var/log/nginx/profd.log profd buffer=64k flush=5s", f"{self.folder}/access.log profd"))

    def command(self):
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        self.write("site.conf", self.text + self.more)
        main = self.write("nginx.conf", MAIN.format(
            folder=self.folder, temporary=" ".join(f"{kind}_temp_path {self.folder}/tmp-{kind};" for kind in kinds)))
        return [NGINX, "-p", self.folder, "-e", self.log, "-c", main]

    def accesses(self):
        path = os.path.join(self.folder, "access.log")
        return open(path, errors="replace").read() if os.path.exists(path) else ""


class Haproxy(HttpsProxy):
    program, shipped = HAPROXY, "systemd/haproxy.cfg"

    def places(self):
        pair = self.write("server.pem", open(self.certificate).read() + open(self.key).read())
        connections = min(20000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2 - 100)
        return (("/run/profd/http.sock", self.upstream), ("/etc/ssl/private/profd.example.pem", pair),
                ("bind :443", f"bind 127.0.0.1:{self.port}"), ("bind :80", f"bind 127.0.0.1:{self.plain_port}"),
                ("maxconn 20000", f"maxconn {connections}"),
                ("    user haproxy\n    group haproxy\n", ""), ("log /dev/log local0", "log stdout format raw local0"))

    def command(self):
        return [HAPROXY, "-db", "-f", self.write("haproxy.cfg", self.text)]

    def accesses(self):
        return self.logged()


class Relay:
    """profd-relay beside the daemon of a host, with a file of its configuration and one of its token."""

    def __init__(self, daemon, url, token, ca, **keys):
        self.folder, self.process = daemon.folder, None
        self.file, self.log, self.token = (os.path.join(daemon.folder, f"relay.{end}")
                                           for end in ("conf", "log", "token"))
        with open(os.open(self.token, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            f.write(f"{token}\n")
        self.keys = {"socket": daemon.socket, "relay": url, "relay_token": self.token, "relay_ca": ca,
                     "relay_interval": "1s"}
        self.configure(**keys)

    def configure(self, **keys):
        self.keys.update(keys)
        with open(self.file, "w") as f:
            f.write("".join(f"{k.replace('_', '-')} = {v}\n" for k, v in self.keys.items() if v is not None))

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([RELAY, "--config", self.file], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        return self

    def once(self):
        """One round, as a finished command."""
        return run(RELAY, "--config", self.file, "--once")

    def hurry(self):
        """It comes again within its interval, however long it wanted to wait."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGHUP)

    def logged(self):
        return open(self.log, errors="replace").read() if os.path.exists(self.log) else ""

    def stop(self, how=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(LONG) if self.process else None


def dashboard(proxy, build, user, password, shot=""):
    """What tests/browser/proxied.mjs says of the dashboard in Chromium, or None where Chromium is not installed."""
    if not CHROMIUM or not os.path.isdir(os.path.join(NODE_MODULES, "playwright-core")):
        return None
    done = run("node", os.path.join(ROOT, "tests/browser/proxied.mjs"), os.path.dirname(NODE_MODULES),
               f"{proxy.at}/", build, user, password, shot, timeout=LONG,
               env=dict(os.environ, CHROMIUM=CHROMIUM, HOME=proxy.folder))
    return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr[-1500:]}
