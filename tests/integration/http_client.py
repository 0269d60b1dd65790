# not a test
"""An HTTP client that keeps its connection and lets every byte of a request be chosen."""
import socket

TOKEN = "pfd_read_0123456789abcdefghij"


class Client:
    """Requests on one connection as long as the daemon keeps it, of a TCP port or the path of a Unix socket."""

    def __init__(self, where):
        self.where, self.socket, self.rest = where, None, b""

    def connect(self):
        tcp = isinstance(self.where, int)
        self.socket = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", self.where) if tcp else self.where)
        self.rest = b""

    def ask(self, target, method="GET", token=TOKEN, raw=None, **headers):
        """(status, headers, body). raw: these bytes instead."""
        fields = {"Host": f"127.0.0.1:{self.where}" if isinstance(self.where, int) else "localhost", **headers}
        if token:
            fields["Authorization"] = f"Bearer {token}"
        request = raw or (f"{method} {target} HTTP/1.1\r\n" + "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in fields.items())).encode() + b"\r\n"
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


def crowded_out(port, most=256):
    """(what one connection too many is told, what half a request is told in the end). A client that has said nothing yet gives way to a
    newcomer, and half requests have two seconds, so it may take several crowds until one fills the door."""
    answer, late = None, b""
    for _ in range(40):
        crowd = []
        for _ in range(most):
            s = socket.create_connection(("127.0.0.1", port), 20)
            s.sendall(b"GET /healthz HT")
            crowd.append(s)
        client = Client(port)
        for _ in range(8):
            try:
                client.connect()
                client.socket.settimeout(0.2)
                answer = client.answer("GET")
            except (EOFError, OSError):
                pass
            client.close()
            if answer:
                break
        if answer:
            crowd[-1].settimeout(20)
            try:
                late = crowd[-1].recv(4096)
            except OSError:
                answer = None
        for s in crowd:
            s.close()
        if answer and late:
            break
    return answer, late
