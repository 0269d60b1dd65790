# not a test
"""An HTTP client that keeps its connection and lets every byte of a request be chosen."""
import collections
import hashlib
import os
import select
import socket
import sqlite3
import struct
import threading
import time

from wire import Wire, counts, field, sender_number

TOKEN = "profd_0123456789abcdefghij"


def start_with_token(d):
    """Starts a daemon that admits TOKEN, as if it had been drawn for a token of its own."""
    d.start()
    d.token("tests")
    d.stop()
    with sqlite3.connect(os.path.join(d.state, "profd.db")) as db:
        db.execute("UPDATE token SET hash=?", (hashlib.sha256(TOKEN.encode()).digest(),))
    db.close()
    d.start()


class Client:
    """Requests on one connection as long as the daemon keeps it, of a TCP port or the path of a Unix socket."""

    def __init__(self, where):
        self.where, self.socket, self.rest = where, None, b""

    def connect(self, options=()):
        tcp = isinstance(self.where, int)
        self.socket = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
        for option in options:
            self.socket.setsockopt(*option)
        self.socket.settimeout(300)
        self.socket.connect(("127.0.0.1", self.where) if tcp else self.where)
        self.rest = b""

    def request(self, target, method="GET", token=TOKEN, **headers):
        fields = {"Host": f"127.0.0.1:{self.where}" if isinstance(self.where, int) else "localhost", **headers}
        if token:
            fields["Authorization"] = f"Bearer {token}"
        return ((f"{method} {target} HTTP/1.1\r\n" + "".join(f"{k.replace('_', '-')}: {v}\r\n" for k,
                v in fields.items())).encode() + b"\r\n")

    def ask(self, target, method="GET", raw=None, **fields):
        """(status, headers, body). raw: these bytes instead."""
        request = raw or self.request(target, method, **fields)
        for attempt in range(2):
            if self.socket is None:
                self.connect()
            try:
                self.socket.sendall(request)
                return self.answer(method)
            except (ConnectionError, EOFError):
                self.close()
                if attempt:
                    raise
        return None

    def answer(self, method):
        data = self.rest
        while b"\r\n\r\n" not in data:
            piece = self.socket.recv(65536)
            if not piece:
                raise EOFError(data)
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            key, _, value = line.partition(":")
            headers.setdefault(key.lower(), value.strip())
        status = int(lines[0].split()[1])
        wanted = 0 if method == "HEAD" or status in (204, 304) else int(headers["content-length"])
        while len(body) < wanted:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise EOFError(body)
            body += piece
        self.rest = body[wanted:]
        if headers.get("connection") == "close":
            self.close()
        return status, headers, body[:wanted]

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None


def store_large_list(path):
    """Names builds through the daemon's upload socket until their list has half a megabyte; the target that asks for
    it."""
    body = field(1, struct.pack("<QI", sender_number(), 7)) + field(2, 1)
    for n in range(128):
        body += field(6, field(1, f"1a59e{n:035x}") + field(2, f"/large/{n}/" + "x" * 4000))
    with Wire(path) as w:
        w.send("UPLOAD", body + field(8, counts(1)) + field(11, "0123456789abcdef" * 2))
        while (answer := w.take())[0] != "ACK":
            assert answer[0] == "WANT_OBJECT", answer
    return "/api/v1/builds?limit=1000"


def crowded_out(port, large, deadline=300):
    """What one connection too many is told; None if every connection was served until the deadline. Each client asks
    for a large answer and takes only its first bytes, so its connection is neither idle nor waiting for a request:
    nothing may replace it. The small segments and buffers of these clients keep the kernel from taking the whole
    answer."""
    held, end = collections.deque(maxlen=700), time.monotonic() + deadline
    client = Client(port)
    while time.monotonic() < end:
        client.connect([(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096), (socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)])
        client.socket.sendall(client.request(large))
        first = client.socket.recv(12)
        if not first.endswith(b" 200"):
            client.rest = first
            return client.answer("GET")
        held.append(client.socket)
    return None


class HalfRequests:
    """So many connections that hold half a request each; what the daemon closes is opened again, until the block is
    left."""

    def __init__(self, port, count):
        self.port, self.count, self.stop, self.opened = port, count, False, 0
        self.thread = threading.Thread(target=self.run)

    def open(self):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", self.port))
        self.poll.register(s, select.POLLOUT)
        self.sockets[s.fileno()] = s
        self.opened += 1

    def run(self):
        self.sockets, self.poll = {}, select.poll()
        while not self.stop:
            while len(self.sockets) < self.count:
                self.open()
            for fd, event in self.poll.poll(100):
                s = self.sockets[fd]
                try:
                    if event == select.POLLOUT:
                        s.send(b"GET / HTTP/1.1\r\nHost: ")
                        self.poll.modify(s, select.POLLIN)
                        continue
                except OSError:
                    pass
                self.poll.unregister(s)
                self.sockets.pop(fd).close()
        for s in self.sockets.values():
            s.close()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        self.thread.join()


def half_a_request(port):
    """What a client is told in the end that says half a request."""
    with socket.create_connection(("127.0.0.1", port), 300) as s:
        s.sendall(b"GET /healthz HT")
        return s.recv(4096)
