# not a test
"""A server of ClickHouse's HTTP interface around chDB, which is a current ClickHouse as a library: what profd uses of
the interface, answered as a server answers it. One statement at a time runs. It may be killed at any time.

chdb.py LIBRARY FOLDER PORT [--user NAME:PASSWORD]... [--grant STATEMENT]... [--certificate FILE --key FILE]

LIBRARY: libchdb.so of the npm package in package.json beside this file. FOLDER has the data, and is made if it is not
there. Without --user, the user is default, without a password. With --grant, statements may do what these allow and no
more, whoever sends them; --grant without TO. It prints a line when it listens on 127.0.0.1:PORT."""
import argparse
import ctypes
import http.server
import os
import re
import ssl
import sys
import threading
import urllib.parse

# Parameters of a URL that are not settings. readonly is one, which a session could not set back.
PARAMETERS = {"query", "database", "wait_end_of_query", "buffer_size", "default_format", "user", "password", "readonly"}
INSERT = re.compile(rb"\s*INSERT\s.*?(?=\sFORMAT\s+\w+\s*$)", re.I | re.S)
NAME = re.compile(r"\w+")
STATUS = {60: 404, 81: 404, 192: 403, 193: 403, 497: 403, 516: 403, 241: 500}  # of errors; else 500, or 400 below 100


class Engine:
    """The library, with one connection."""

    def __init__(self, library, folder, grants=()):
        self.lib, self.lock, self.set = ctypes.CDLL(library), threading.Lock(), set()
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        for name, result, arguments in (
                ("chdb_connect", ctypes.POINTER(pointer), (ctypes.c_int, ctypes.c_void_p)),
                ("chdb_query_n", pointer, (pointer, ctypes.c_char_p, size, ctypes.c_char_p, size)),
                ("chdb_result_buffer", pointer, (pointer,)), ("chdb_result_length", size, (pointer,)),
                ("chdb_result_error", ctypes.c_char_p, (pointer,)), ("chdb_destroy_query_result", None, (pointer,))):
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        words = [b"clickhouse", b"--path=" + os.fsencode(folder)]
        if grants:
            words[1] = b"--config-file=" + os.fsencode(self.limit(folder, grants))
        self.connection = self.lib.chdb_connect(len(words), (ctypes.c_char_p * len(words))(*words))
        if not self.connection:
            raise RuntimeError(f"chDB does not open {folder}")
        self.data = os.path.join(folder, "statement-data")
        self.version = self.run(b"SELECT version()").decode().strip()

    @staticmethod
    def limit(folder, grants):
        """A configuration in which the only user has these rights. It may always choose the database `default`, which a
        request without a database means."""
        queries = "".join(f"<query>{g}</query>" for g in (*grants, "GRANT SHOW DATABASES ON default.*"))
        base = folder.rstrip("/")
        for name, text in (("users", "<profiles><default/></profiles><quotas><default/></quotas><users><default>"
                            "<password/><profile>default</profile><quota>default</quota>"
                            f"<networks><ip>::/0</ip></networks><grants>{queries}</grants></default></users>"),
                           ("config", f"<path>{base}/</path><users_config>{base}.users.xml</users_config>")):
            with open(f"{base}.{name}.xml", "w") as f:
                f.write(f"<clickhouse>{text}</clickhouse>")
        return f"{base}.config.xml"

    def run(self, statement):
        """What it answers. RuntimeError: the server's sentence."""
        result = self.lib.chdb_query_n(self.connection[0], statement, len(statement), b"TabSeparated", 12)
        error, at = self.lib.chdb_result_error(result), self.lib.chdb_result_buffer(result)
        answer = ctypes.string_at(at, self.lib.chdb_result_length(result)) if at else b""
        self.lib.chdb_destroy_query_result(result)
        if error:
            raise RuntimeError(error.decode(errors="replace"))
        return answer

    def ask(self, statement, data, database, settings):
        """Runs a statement with these settings, and those of the statement before only."""
        with self.lock:
            for name in self.set - set(settings):
                self.run(f"SET {name} = DEFAULT".encode())
            for name, value in settings.items():
                quoted = value.replace("\\", "\\\\").replace("'", "\\'")
                self.run(f"SET {name} = '{quoted}'".encode())
            self.set = set(settings)
            self.run(f"USE `{database}`".encode())
            if (insert := INSERT.match(statement)) is None:
                return self.run(statement + data)
            # In a statement, white space and a semicolon at the end of data are lost.
            with open(self.data, "wb") as f:
                f.write(data)
            return self.run(insert[0] + b" FROM INFILE '" + os.fsencode(self.data) + b"'" + statement[insert.end():])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine = users = None

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind, headers=()):
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("X-ClickHouse-Server-Display-Name", "chdb"), *headers,
                            ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, text):
        found = re.match(r"Code: (\d+)", text)
        code = int(found[1]) if found else 1002
        text = re.sub(r" \(version [^)]*\)", "", text).rstrip() + f" (version {self.engine.version} (official build))\n"
        self.reply(STATUS.get(code, 400 if code < 100 else 500), text.encode(), "text/plain; charset=UTF-8",
                   [("X-ClickHouse-Exception-Code", str(code))])

    def do_GET(self):
        if self.path == "/ping":
            self.reply(200, b"Ok.\n", "text/html; charset=UTF-8")
        else:
            self.do_POST()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, keep_blank_values=True))
        user = self.headers.get("X-ClickHouse-User", asked.get("user", "default"))
        if self.users.get(user) != self.headers.get("X-ClickHouse-Key", asked.get("password", "")):
            self.refuse(f"Code: 516. DB::Exception: {user}: Authentication failed: password is incorrect, or there is "
                        "no user with such name. (AUTHENTICATION_FAILED)")
            return
        settings = {k: v for k, v in asked.items() if k not in PARAMETERS}
        # What follows a query of the URL in the body is its data; a statement that is in the body has no other.
        statement = asked["query"].encode() + b"\n" if "query" in asked else body
        try:
            if bad := [k for k in settings if not NAME.fullmatch(k)]:
                raise RuntimeError(f"Code: 115. DB::Exception: Unknown setting '{bad[0]}'. (UNKNOWN_SETTING)")
            answer = self.engine.ask(statement, body if "query" in asked else b"", asked.get("database", "default"),
                                     settings)
        except RuntimeError as e:
            self.refuse(str(e))
            return
        kind = re.search(rb"\sFORMAT\s+(\w+)[\s;]*$", statement, re.I)
        binary = kind is not None and kind[1].startswith((b"RowBinary", b"Native"))
        if INSERT.match(statement) or not re.match(rb"\s*(SELECT|SHOW|DESC|EXISTS|WITH|EXPLAIN)", statement, re.I):
            binary = False
        self.reply(200, answer, "application/octet-stream" if binary else "text/tab-separated-values; charset=UTF-8",
                   [("X-ClickHouse-Format", kind[1].decode() if kind else "TabSeparated")])


def main():
    p = argparse.ArgumentParser()
    for name in ("library", "folder", "port"):
        p.add_argument(name)
    p.add_argument("--user", action="append")
    p.add_argument("--grant", action="append")
    p.add_argument("--certificate")
    p.add_argument("--key")
    args = p.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    Handler.engine = Engine(args.library, args.folder, args.grant or ())
    Handler.users = dict(u.split(":", 1) for u in args.user or ["default:"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(args.port)), Handler)
    server.daemon_threads = True
    if args.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(args.certificate, args.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(f"{Handler.engine.version} listens on port {args.port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
