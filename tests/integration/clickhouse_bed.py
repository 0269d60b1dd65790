# not a test
"""Servers of ClickHouse, each in a directory and on ports of its own, as the shards of a cluster. Debian's 18.16."""
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

from harness import AS_NOBODY, LONG, NOBODY, free_port, parse_response

PROGRAM = shutil.which("clickhouse-server", path="/usr/sbin:/usr/bin:" + os.environ.get("PATH", ""))
MEMORY = 3 << 30  # bytes of data of one server, at most

CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><log>{folder}/server.log</log><errorlog>{folder}/error.log</errorlog></logger>
  <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>{https}
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
HTTPS = """<https_port>{port}</https_port><openSSL><server><certificateFile>{certificate}</certificateFile>
  <privateKeyFile>{key}</privateKeyFile><verificationMode>none</verificationMode><cacheSessions>false</cacheSessions>
  <loadDefaultCAFile>false</loadDefaultCAFile></server></openSSL>"""
USERS = """<?xml version="1.0"?>
<yandex>
  <profiles>
    <default><max_memory_usage>1000000000</max_memory_usage></default>
    <reader><readonly>1</readonly></reader>
  </profiles>
  <users>
    <default><password></password>{rest}<profile>default</profile></default>
    <writer><password>it's "here" &amp; &lt;there&gt;</password>{rest}<profile>default</profile></writer>
    <reader><password></password>{rest}<profile>reader</profile></reader>
  </users>
  <quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows>
    <read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas>
</yandex>
""".replace("{rest}", "<networks><ip>127.0.0.1</ip></networks><quota>default</quota>")
PASSWORD = 'it\'s "here" & <there>'


def replica(server):
    return f"<replica><host>127.0.0.1</host><port>{server.tcp}</port></replica>"


def cluster(name, shards):
    """A cluster; shards are lists of servers."""
    inner = "".join(f"<shard><internal_replication>true</internal_replication>{''.join(map(replica, s))}</shard>"
                    for s in shards)
    return f"<{name}>{inner}</{name}>"


class Server:
    """One server. pair: (certificate, key), for https too."""

    def __init__(self, folder, pair=None):
        self.folder, self.process = folder, None
        self.http, self.https, self.tcp, self.interserver = (free_port() for _ in range(4))
        self.pair = pair

    def configure(self, clusters, more=""):
        """more: of the server's configuration."""
        for name in ("data", "tmp", "files", "schemas"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        https = ""
        if self.pair:
            certificate, key = (shutil.copy(path, self.folder) for path in self.pair)
            https = HTTPS.format(port=self.https, certificate=certificate, key=key)
        for name, text in (("config.xml", CONFIG.format(folder=self.folder, http=self.http, tcp=self.tcp, https=https,
                                                        interserver=self.interserver, clusters=clusters, more=more)),
                           ("users.xml", USERS)):
            with open(os.path.join(self.folder, name), "w") as f:
                f.write(text)
        if os.getuid() == 0:
            for path, _, files in os.walk(self.folder):
                for name in (path, *(os.path.join(path, f) for f in files)):
                    os.chown(name, NOBODY, NOBODY)

    def start(self):
        wrapper = AS_NOBODY if os.getuid() == 0 else ()
        with open(os.path.join(self.folder, "out"), "ab") as out:
            self.process = subprocess.Popen(
                [*wrapper, PROGRAM, f"--config-file={self.folder}/config.xml"], stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, cwd=self.folder, env=dict(os.environ, HOME=self.folder, MALLOC_CONF="retain:false"),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)))
        deadline = time.monotonic() + LONG
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                for port in (self.http, self.tcp):
                    socket.create_connection(("127.0.0.1", port), 1).close()
                return self
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"clickhouse-server does not listen: {open(os.path.join(self.folder, 'out')).read()}")

    def stop(self, how=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(LONG) if self.process else None

    def query(self, statement, data=b"", **parameters):
        """As raw, as text."""
        return self.raw(statement, data, **parameters).decode()

    def raw(self, statement, data=b"", **parameters):
        """The reply of a statement; data goes behind it, as of an INSERT. An error of the server is raised."""
        target = urllib.parse.urlencode({"query": statement, "wait_end_of_query": 1, **parameters})
        with socket.create_connection(("127.0.0.1", self.http), LONG) as s:
            s.sendall(f"POST /?{target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n"
                      f"Connection: close\r\n\r\n".encode() + data)
            reply = b""
            while piece := s.recv(65536):
                reply += piece
        status, _, body = parse_response(reply)
        if status != 200:
            raise RuntimeError(body.decode())
        return body

    def url(self, database="profd", user=None, **parameters):
        rest = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        name = f"{user}@" if user else ""
        return f"clickhouse://{name}127.0.0.1:{self.http}/{database}{rest}"


class Zookeeper:
    """A server of ZooKeeper in a directory of its own."""

    def __init__(self, folder):
        self.port, self.folder = free_port(), folder
        os.makedirs(folder)
        with open(os.path.join(folder, "zoo.cfg"), "w") as f:
            f.write(f"tickTime=500\ndataDir={folder}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                    "admin.enableServer=false\n")
        self.start()

    def start(self):
        jars = ":".join(f"/usr/share/java/{name}.jar" for name in (
            "zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "netty-all", "commons-cli", "jline",
            "metrics-core", "snappy-java"))
        with open(os.path.join(self.folder, "out"), "ab") as out:
            self.process = subprocess.Popen(
                ["java", "-Xmx128m", "-cp", jars, "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                 os.path.join(self.folder, "zoo.cfg")], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                cwd=self.folder)
        deadline = time.monotonic() + LONG
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as s:
                    s.sendall(b"srvr")
                    if s.recv(64).startswith(b"Zookeeper version"):  # before: it "is not currently serving requests"
                        return
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError("ZooKeeper does not start: " + open(os.path.join(self.folder, "out")).read())

    def stop(self):
        self.process.kill()
        self.process.wait(LONG)


class Bed:
    """Servers that are the shards of the cluster `shards`, and the replicas of the one shard of the cluster `pair`."""

    def __init__(self, servers=2, pair=None):
        self.folder = tempfile.mkdtemp(prefix="profd-clickhouse-", dir=os.environ.get("PROFD_TEST_MEMORY"))
        os.chmod(self.folder, 0o755)
        self.servers = [Server(os.path.join(self.folder, str(i)), pair) for i in range(servers)]
        self.configure()

    def configure(self, more=""):
        for s in self.servers:
            s.configure(cluster("shards", [[x] for x in self.servers]) + cluster("pair", [self.servers]), more)

    def url(self, database="profd", user=None, **parameters):
        """Names all servers, as a cluster wants it."""
        first, *others = self.servers
        url = first.url(database, user, **parameters)
        return url.replace(f"/{database}", "".join(f",127.0.0.1:{s.http}" for s in others) + f"/{database}", 1)

    def __enter__(self):
        try:
            for s in self.servers:
                s.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for s in self.servers:
            s.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
