# not a test
"""Servers of ClickHouse for the tests of the tier: a current one (chDB behind tests/tier/chdb.py) and Debian's 18.16,
each in a folder and on a port of its own, and what can stand between profd and them.

    with Chdb() as server, Between(server.http) as gate:
        server.query("SELECT 1")
        with Daemon(*server.options(gate.http)) as d: …

They may be killed (stop) and started again on the same data and port."""
import contextlib
import os
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from harness import AS_NOBODY, LONG, NOBODY, ROOT, free_port, parse_response

LIBRARY = os.path.join(ROOT, "build", "tier", "node_modules", "@chdb", "lib-linux-x64-gnu", "libchdb.so")
OLD = shutil.which("clickhouse-server", path="/usr/sbin:/usr/bin")
MEMORY = 3 << 30  # bytes of data of one old server, at most
PASSWORD = 'it\'s"here"&<there>'  # of the user `writer`


class Server:
    """A server in a folder. Users: default, without a password; writer, with PASSWORD."""

    tls = False

    def __init__(self):
        # Not in memory: a killed server must find what it had.
        self.folder = tempfile.mkdtemp(prefix="profd-tier-")
        os.chmod(self.folder, 0o755)
        self.http, self.process = free_port(), None

    def command(self):
        raise NotImplementedError

    def start(self):
        with open(os.path.join(self.folder, "out"), "ab") as out:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            cwd=self.folder, env=dict(os.environ, HOME=self.folder),
                                            preexec_fn=self.bound)
        deadline = time.monotonic() + LONG
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.http), 1).close()
                return self
            time.sleep(0.02)
        raise RuntimeError(f"{self.process.args[0]} does not listen: {open(os.path.join(self.folder, 'out')).read()}")

    def bound(self):
        pass

    def stop(self, how=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(LONG)

    def query(self, statement, data=None, user="default", password="", **settings):
        """The reply as text. With data, which is bytes, the statement is an INSERT. RuntimeError: the server's
        sentence."""
        target = {"wait_end_of_query": 1, **settings}
        body = statement.encode() if data is None else data
        if data is not None:
            target["query"] = statement
        key = f"X-ClickHouse-Key: {password}\r\n" if password else ""
        with contextlib.ExitStack() as stack:
            s = stack.enter_context(socket.create_connection(("127.0.0.1", self.http), LONG))
            if self.tls:
                context = ssl.create_default_context(cafile=self.certificate)
                s = stack.enter_context(context.wrap_socket(s, server_hostname="localhost"))
            s.sendall(f"POST /?{urllib.parse.urlencode(target)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                      f"X-ClickHouse-User: {user}\r\n{key}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            reply = b""
            while piece := s.recv(65536):
                reply += piece
        status, _, body = parse_response(reply)
        if status != 200:
            raise RuntimeError(body.decode(errors="replace"))
        return body.decode(errors="surrogateescape")

    def url(self, database="profd", user=None, port=None, host="127.0.0.1", **parameters):
        """As the key tier of profd.conf(5). port: of what stands between."""
        rest = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        return (f"{'https' if self.tls else 'http'}://{user + '@' if user else ''}{host}:{port or self.http}"
                f"/{database}{rest}")

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Chdb(Server):
    """A current server. pair: (certificate, key), for TLS. grants: all that it allows from the next start on."""

    why_not = "" if os.path.exists(LIBRARY) else "needs chDB: sh tests/deps.sh check"

    def __init__(self, pair=None):
        super().__init__()
        self.tls, (self.certificate, self.key) = bool(pair), pair or (None, None)
        self.grants = []

    def command(self):
        return [sys.executable, os.path.join(ROOT, "tests", "tier", "chdb.py"), LIBRARY, self.folder + "/data",
                str(self.http), "--user", "default:", "--user", f"writer:{PASSWORD}",
                *(x for g in self.grants for x in ("--grant", g)),
                *(("--certificate", self.certificate, "--key", self.key) if self.tls else ())]


CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><log>{folder}/server.log</log><errorlog>{folder}/error.log</errorlog></logger>
  <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
  <interserver_http_port>{interserver}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
  <listen_host>127.0.0.1</listen_host><max_connections>64</max_connections><keep_alive_timeout>10</keep_alive_timeout>
  <max_concurrent_queries>32</max_concurrent_queries><uncompressed_cache_size>8388608</uncompressed_cache_size>
  <mark_cache_size>67108864</mark_cache_size><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
  <user_files_path>{folder}/files/</user_files_path><format_schema_path>{folder}/schemas/</format_schema_path>
  <users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
  <default_database>default</default_database><timezone>Asia/Tokyo</timezone><mlock_executable>false</mlock_executable>
  <remote_servers>{clusters}</remote_servers>{more}
</yandex>
"""
USERS = """<?xml version="1.0"?>
<yandex>
  <profiles>
    <default><max_memory_usage>1000000000</max_memory_usage></default>
    <reader><readonly>1</readonly></reader>
  </profiles>
  <users>
    <default><password></password>{rest}<profile>default</profile></default>
    <writer><password>it's"here"&amp;&lt;there&gt;</password>{rest}<profile>default</profile></writer>
    <reader><password></password>{rest}<profile>reader</profile></reader>
  </users>
  <quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows>
    <read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas>
</yandex>
""".replace("{rest}", "<networks><ip>127.0.0.1</ip></networks><quota>default</quota>")


class Old(Server):
    """Debian's 18.16. A third user, reader, may only read."""

    why_not = "" if OLD else "needs clickhouse-server: sh tests/deps.sh check"

    def __init__(self):
        super().__init__()
        self.tcp, self.interserver = free_port(), free_port()
        self.configure()

    def configure(self, clusters="", more=""):
        """clusters, more: XML of the server's configuration."""
        for name in ("data", "tmp", "files", "schemas"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        for name, text in (("config.xml", CONFIG.format(folder=self.folder, http=self.http, tcp=self.tcp,
                                                        interserver=self.interserver, clusters=clusters, more=more)),
                           ("users.xml", USERS)):
            with open(os.path.join(self.folder, name), "w") as f:
                f.write(text)
        if os.getuid() == 0:
            for path, _, files in os.walk(self.folder):
                for name in (path, *(os.path.join(path, f) for f in files)):
                    os.chown(name, NOBODY, NOBODY)

    def command(self):
        return [*(AS_NOBODY if os.getuid() == 0 else ()), OLD, f"--config-file={self.folder}/config.xml"]

    def bound(self):
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def cluster(name, shards):
    """A cluster for Old.configure; shards are lists of servers."""
    return f"<{name}>" + "".join(
        "<shard><internal_replication>true</internal_replication>" + "".join(
            f"<replica><host>127.0.0.1</host><port>{s.tcp}</port></replica>" for s in shard) + "</shard>"
        for shard in shards) + f"</{name}>"


class Zookeeper:
    """A server of ZooKeeper in a folder of its own. It may be stopped and started again."""

    JARS = [f"/usr/share/java/{name}.jar" for name in (
        "zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "netty-all", "commons-cli", "metrics-core",
        "snappy-java")]
    why_not = "" if all(map(os.path.exists, JARS)) else "needs zookeeper: sh tests/deps.sh check"

    def __init__(self):
        self.port, self.process = free_port(), None
        self.folder = tempfile.mkdtemp(prefix="profd-zookeeper-")
        with open(os.path.join(self.folder, "zoo.cfg"), "w") as f:
            f.write(f"tickTime=500\ndataDir={self.folder}/data\nclientPort={self.port}\n"
                    "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n")

    def start(self):
        with open(os.path.join(self.folder, "out"), "ab") as out:
            self.process = subprocess.Popen(
                ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", ":".join(self.JARS),
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", os.path.join(self.folder, "zoo.cfg")],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder)
        deadline = time.monotonic() + LONG
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as s:
                s.sendall(b"srvr")
                if s.recv(64).startswith(b"Zookeeper version"):  # before: it "is not currently serving requests"
                    return self
            time.sleep(0.05)
        raise RuntimeError("ZooKeeper does not start: " + open(os.path.join(self.folder, "out")).read())

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(LONG)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Fleet:
    """Old servers as a cluster `fleet` of shards with replicas, which need a Zookeeper that runs."""

    def __init__(self, shards=2, replicas=1, keeper=None):
        self.shards = [[Old() for _ in range(replicas)] for _ in range(shards)]
        self.servers = [s for shard in self.shards for s in shard]
        self.keeper = keeper
        for i, shard in enumerate(self.shards):
            for j, s in enumerate(shard):
                s.configure(cluster("fleet", self.shards), "" if keeper is None else (
                    f"<zookeeper><node><host>127.0.0.1</host><port>{keeper.port}</port></node></zookeeper>"
                    f"<macros><shard>{i}</shard><replica>r{j}</replica></macros>"))

    def url(self, database="profd", servers=None, **parameters):
        """Names all servers, or these."""
        if self.keeper is not None:
            parameters["replicated"] = 1
        names = ",".join(f"127.0.0.1:{s.http}" for s in servers or self.servers)
        return f"http://{names}/{database}?" + urllib.parse.urlencode({"cluster": "fleet", **parameters})

    def __enter__(self):
        try:
            for s in self.servers:
                s.start()
        except BaseException:
            self.__exit__()
            raise
        deadline = time.monotonic() + LONG
        while self.keeper is not None and not all(map(self.sees_keeper, self.servers)):
            if time.monotonic() > deadline:
                raise RuntimeError("a server does not reach ZooKeeper")
            time.sleep(0.05)
        return self

    @staticmethod
    def sees_keeper(server):
        """A server connects when it first needs it; on a busy machine the first handshakes can fail."""
        with contextlib.suppress(RuntimeError):
            return bool(server.query("SELECT count() FROM system.zookeeper WHERE path = '/'"))
        return False

    def __exit__(self, *_):
        for s in self.servers:
            s.__exit__()


class Between:
    """Passes requests to a server without TLS, one on each connection. damage: None, or a function that gets the
    socket, the whole request and answer(), which asks the server and returns its whole reply; it sends what it wants,
    and the connection is then closed. seen: first lines of the requests. Requests whose first line does not contain
    `only` are passed on unharmed and are not seen."""

    def __init__(self, port, only=""):
        self.port, self.only, self.damage, self.seen = port, only, None, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.http = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.listener.accept()
                threading.Thread(target=self.connection, args=(s,), daemon=True).start()

    def connection(self, s):
        with contextlib.suppress(OSError, ValueError), s:
            data = b""
            while b"\r\n\r\n" not in data:
                if not (piece := s.recv(65536)):
                    return
                data += piece
            head, _, body = data.partition(b"\r\n\r\n")
            size = next((int(x[15:]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:")), 0)
            while len(body) < size:
                if not (piece := s.recv(65536)):
                    return
                body += piece
            request = head + b"\r\nConnection: close\r\n\r\n" + body
            line = head.split(b"\r\n")[0].decode()
            if self.only not in line:
                s.sendall(self.ask(request))
                return
            self.seen.append(line)
            if self.damage:
                self.damage(s, request, lambda: self.ask(request))
            else:
                s.sendall(self.ask(request))

    def ask(self, request):
        with socket.create_connection(("127.0.0.1", self.port), LONG) as s:
            s.sendall(request)
            reply = b""
            while piece := s.recv(65536):
                reply += piece
        return reply.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def drop(_, __, ___):
    """The request is lost."""


def lose_reply(_, __, answer):
    """The server runs the statement, and its reply is lost."""
    answer()


def cut(s, _, answer):
    """Half of the reply arrives."""
    reply = answer()
    s.sendall(reply[:len(reply) // 2])


def delay(seconds):
    def late(s, _, answer):
        time.sleep(seconds)
        s.sendall(answer())
    return late
